"""Counting rules of atomics on NVIDIA shared memory, sm_75 and later, as Nsight Compute counts them on an H200.

**Done by the memory** (``ATOMS.ADD``, ``.MAX``, ``.MIN`` of 32-bit integers): every lane takes a pass of its own in its bank, also
those with equal addresses, which are served one after another.  An access takes as many wavefronts as lanes are in the bank with
most; the ideal is one.

**Increments** (``ATOMS.POPC.INC``: adding the constant 1) add up the lanes of an address first: as many wavefronts as a bank has
distinct words, as of a store.

**Loops** (everything else: floats, 64 bits): each round loads (``LDS``), computes, and swaps (``ATOMS.CAST.SPIN``) where nothing
has changed meanwhile.  Of the lanes of one phase (32 of 32 bits, 16 of 64 bits) and one bank the lowest tries, all others go
round again; it fails where an earlier phase has just changed its word.  A swap takes two wavefronts for each phase with a lane
left; its ideal is the least for so many lanes, two for each 128 bytes.  Loads follow the rule of loads, round by round.

These are the rounds of a warp that is alone.  Where several warps want one word at a time, more are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelang_min.access import nvidia
from tilelang_min.access.arguments import Addresses, Mask
from tilelang_min.access.passes import phase_passes
from tilelang_min.access.results import Counted, Counts
from tilelang_min.targets import SharedPhases

LINE = 128


@dataclass(frozen=True, eq=False)
class Loop:
    """What the rounds of a loop take, by request; ``ways`` of the swaps are the rounds."""

    swaps: Counted
    loads: Counted


def count_atomics(addresses: Addresses, active: Mask, rule: SharedPhases) -> Counted:
    """Atomics that the memory does."""
    passes = phase_passes(
        addresses, active, rule.phases, width_bytes=rule.width_bits // 8, banks=rule.banks, merge=False
    )
    return Counted(
        transactions=passes.sum(axis=1),
        ideal=np.count_nonzero(passes, axis=1).astype(np.int64),
        ways=passes.max(axis=1, initial=0),
        uncertain=np.zeros(len(addresses), np.bool_),
    )


def count_loops(addresses: Addresses, active: Mask, rule: SharedPhases, loads: SharedPhases) -> Loop:
    """Atomics that are loops; ``loads`` is the rule of the loads in them."""
    width = rule.width_bits // 8
    count, lanes = addresses.shape
    phase = np.zeros(lanes, np.int64)
    for number, members in enumerate(rule.phases):
        phase[list(members)] = number
    word = addresses // width
    lock = phase * (LINE // width) + word % (LINE // width)
    left = np.array(active, copy=True)
    swaps, swaps_ideal, loaded, loaded_ideal, rounds, ways = np.zeros((6, count), np.int64)
    while left.any():
        running = np.flatnonzero(left.any(axis=1))
        on = left[running]
        phases = sum(on[:, phase == number].any(axis=1).astype(np.int64) for number in range(len(rule.phases)))
        swaps[running] += 2 * phases
        swaps_ideal[running] += 2 * -(-on.sum(axis=1) * width // LINE)
        load = nvidia.count_phases(addresses[running], on, loads)
        loaded[running] += load.transactions
        loaded_ideal[running] += load.ideal
        ways[running] = np.maximum(ways[running], load.ways)
        rounds[running] += 1
        left[running] = on & ~_winners(word[running], lock[running], phase, on)
    none = np.zeros(count, np.bool_)
    return Loop(swaps=Counted(swaps, swaps_ideal, rounds, none), loads=Counted(loaded, loaded_ideal, ways, none))


def _winners(word: Addresses, lock: Addresses, phase: Counts, on: Mask) -> Mask:
    """The lanes that succeed in one round."""
    rows = np.arange(len(word))
    locked = np.zeros((len(word), int(lock.max(initial=0)) + 1), np.bool_)
    winners = np.zeros(on.shape, np.bool_)
    for lane in range(on.shape[1]):
        tries = on[:, lane] & ~locked[rows, lock[:, lane]]
        locked[rows, lock[:, lane]] |= on[:, lane]
        earlier = phase < phase[lane]
        if earlier.any():
            changed = (winners[:, earlier] & (word[:, earlier] == word[:, lane, None])).any(axis=1)
            tries &= ~changed
        winners[:, lane] = tries
    return winners


__all__ = ["Loop", "count_atomics", "count_loops"]
