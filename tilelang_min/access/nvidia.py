"""Counting rules of NVIDIA shared memory, sm_75 and later.

The model of the programming guide: lanes go in phases of 128 bytes, and a phase takes as many wavefronts as distinct
words of one bank.  Measured on an H200 beyond it, with per-instruction counters (``memory_l1_wavefronts_shared`` and
its ideal):

* the ideal of a partly predicated 64- or 128-bit access is its active bytes over 128;
* 64- and 128-bit loads in which every lane has a partner (lane ^ 1, or lane ^ 2) with the same address go in phases of
  twice as many lanes; stores do not;
* the lanes of a cp.async do not merge, even where they write the same word;
* cp.async with L1 bypass (``.cg``) follows a rule of its own that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelang_min.access.arguments import Addresses, Mask
from tilelang_min.access.passes import distinct, phase_passes
from tilelang_min.access.results import Counts
from tilelang_min.targets import SharedPhases

LINE = 128
"""Bytes that one wavefront moves at most."""

BYPASS_SOURCE = (
    "our guess, which agrees with the patterns measured on an H200 and an A100: eight lanes that write one line of 128 bytes "
    "go together, once for each line they read; other lanes one by one"
)


@dataclass(frozen=True)
class Counted:
    """Passes (requests, phases) and ideals (requests,) of requests, and which of them follow no certain rule."""

    transactions: Counts
    ideal: Counts
    ways: Counts
    uncertain: Mask


def count_phases(addresses: Addresses, active: Mask, rule: SharedPhases) -> Counted:
    """Loads, stores, cp.async, ldmatrix and stmatrix by their phases."""
    width = rule.width_bits // 8
    merge = rule.access != "cp_async"
    passes = phase_passes(addresses, active, rule.phases, width_bytes=width, banks=rule.banks, merge=merge)
    transactions, ways = passes.sum(axis=1), passes.max(axis=1, initial=0)
    ideal = np.count_nonzero(passes, axis=1).astype(np.int64)
    uncertain = np.zeros(len(addresses), dtype=np.bool_)
    if rule.access not in ("load", "store", "cp_async") or width < 8:
        return Counted(transactions, ideal, ways, uncertain)
    lanes = active.sum(axis=1)
    ideal = -(-lanes * width // LINE)
    if rule.access == "load":
        uncertain = _may_regroup(active, rule)
        _merge_pairs(addresses, active, rule, transactions, ideal, ways, uncertain)
    return Counted(transactions, ideal, ways, uncertain)


def _may_regroup(active: Mask, rule: SharedPhases) -> Mask:
    """Requests of several phases, one of them partly predicated: the hardware was once seen to take fewer passes."""
    counts = active[:, np.asarray(rule.phases).ravel()].reshape(-1, *np.shape(rule.phases)).sum(axis=2)
    partly = ((counts > 0) & (counts < len(rule.phases[0]))).any(axis=1)
    several = (counts > 0).sum(axis=1) > 1
    regroup: Mask = partly & several
    return regroup


def _merge_pairs(
    addresses: Addresses,
    active: Mask,
    rule: SharedPhases,
    transactions: Counts,
    ideal: Counts,
    ways: Counts,
    uncertain: Mask,
) -> None:
    """Count again, in place, loads whose lanes come in pairs with equal addresses: phases of twice as many lanes."""
    paired = np.zeros(len(addresses), dtype=np.bool_)
    lane = np.arange(addresses.shape[1])
    for distance in (1, 2):
        partner = lane ^ distance
        equal = (addresses == addresses[:, partner]) & active[:, partner]
        paired |= (equal | ~active).all(axis=1)
    paired &= active.any(axis=1)
    which = np.flatnonzero(paired)
    if not len(which):
        return
    width = rule.width_bits // 8
    wide = tuple(rule.phases[i] + rule.phases[i + 1] for i in range(0, len(rule.phases), 2))
    passes = phase_passes(addresses[which], active[which], wide, width_bytes=width, banks=rule.banks)
    merged = passes.sum(axis=1)
    # Measured for conflict-free pairs, where it is half.  With conflicts, half would be more than the banks can
    # deliver.
    uncertain[which] |= merged != -(-transactions[which] // 2)
    transactions[which], ways[which] = merged, passes.max(axis=1)
    ideal[which] = -(-active[which].sum(axis=1) * width // (2 * LINE))


def count_bypass(addresses: Addresses, active: Mask, source: Addresses | None) -> Counted:
    """cp.async.cg of 16 bytes a lane, by a guess: all requests are uncertain.

    Eight successive lanes whose destinations lie in one line of 128 bytes go together: a wavefront for each line of the
    source that they read, shared by all such groups of the warp.  The lanes of other groups take one each.  Without
    ``source`` (global byte addresses) each group is taken to read one line.  Ideal: distinct destination bytes over
    128.
    """
    lanes = addresses.shape[1]
    lines = addresses // LINE
    groups = (len(addresses), lanes // 8, 8)
    on = active.reshape(groups)
    lowest = np.min(lines.reshape(groups), axis=2, where=on, initial=np.iinfo(np.int64).max)
    highest = np.max(lines.reshape(groups), axis=2, where=on, initial=-1)
    together = on & (lowest == highest)[:, :, None]
    moves = lines if source is None else (lines << 42) | (source // LINE & ((1 << 42) - 1))
    alone = (on & ~together).sum(axis=2)
    transactions = distinct(moves, together.reshape(active.shape)) + alone.sum(axis=1)
    by_group = distinct(moves.reshape(-1, 8), together.reshape(-1, 8)).reshape(alone.shape)
    ideal = -(-distinct(addresses // 16, active) * 16 // LINE)
    ways = np.maximum(by_group, alone).max(axis=1, initial=0)
    return Counted(transactions, ideal, ways, np.ones(len(addresses), dtype=np.bool_))
