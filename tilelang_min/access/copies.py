"""Counting rules of cp.async, which moves data from global to shared memory without registers in between.

What it costs depends on both addresses of each lane.  The rules are those by which Nsight Compute counts on an H200; they were
found from, and then checked against, patterns measured one by one (docs/memory-model.md).

**Through the L1 cache** (``.ca``; 4, 8 or 16 bytes): lanes go in phases of 128 bytes.  In a phase two lanes stand in each
other's way where they write the same bank of shared memory or read the same bank of a line of the cache (an address modulo 128
bytes), even if it is the same word.  A phase takes as many passes as the lane with most in its way, itself counted.

**Past it** (``.cg``; 16 bytes), with *chunk* for 16 bytes, *sector* for 32 and *line* for 128:

1. Of the lanes that write one chunk only the lowest counts.
2. Lanes that write both chunks of a sector with both chunks of one sector (in order or swapped) are one move; all others are
   moves of their own.  Each move asks the L2 for a sector.
3. Lanes that read one chunk and write the same half of sectors of one line go one after another, the highest first: lane
   by lane the first of each such group, then the second, and so on.  What is in different turns does not join by rule 2
   either.
4. In each turn a pass serves all moves from one line to one line that are alike: both chunks in order, both swapped, or one
   chunk from the same half to the same half; and from sectors whose number is odd to such, or from odd to even.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelang_min.access.arguments import Addresses, Mask
from tilelang_min.access.passes import CHUNK, popcount
from tilelang_min.access.results import Counted, Counts

SOURCE = "per-instruction counters of Nsight Compute on an H200, equal in all of the measured patterns (docs/memory-model.md)"
WITHOUT_SOURCE = f"{SOURCE}; but no source addresses were given: taken to lie as the destinations do"

_LINE, _CHUNK = 128, 16
_NONE = np.iinfo(np.int64).max


def count_through(
    addresses: Addresses, active: Mask, source: Addresses | None, reads: Mask | None, width: int
) -> Counted:
    """cp.async.ca of ``width`` bytes.  Lanes not in ``reads`` fill with zeros; without ``source`` no two sources conflict."""
    lanes = addresses.shape[1]
    together = min(_LINE // width, lanes)
    shape = (len(addresses), lanes // together, together)
    in_the_way = _sharing(addresses // width, active, together)
    if source is not None:
        in_the_way |= _sharing(source // width, active if reads is None else active & reads, together)
    passes = popcount(in_the_way).reshape(shape).max(axis=2, initial=0)
    return Counted(
        transactions=passes.sum(axis=1),
        ideal=-(-active.sum(axis=1) * width // _LINE),
        ways=passes.max(axis=1, initial=0),
        uncertain=np.full(len(addresses), source is None),
    )


def _sharing(units: Addresses, on: Mask, together: int) -> Counts:
    """For each lane the lanes of its phase whose unit lies in the same bank, as bits; 0 for lanes that are off."""
    lane = np.arange(units.shape[1])
    bins = (np.arange(len(units)) * units.shape[1])[:, None] + lane // together * together + units % together
    bits = np.broadcast_to(2.0**lane, units.shape)
    masks = np.bincount(bins[on], weights=bits[on], minlength=units.size).astype(np.int64)
    sharing: Counts = np.where(on, masks[bins], 0)
    return sharing


def count_bypass(
    addresses: Addresses, active: Mask, source: Addresses | None, reads: Mask | None, *, partial: bool = False
) -> Counted:
    """cp.async.cg of 16 bytes.

    Where some lanes fill with zeros (are not in ``reads``), Nsight Compute counts the instruction twice: the lanes that read
    as going past the cache, and all lanes as going through it.  ``partial``: the size to read may be any number of bytes (SASS
    has ``.ZFILL`` then), and it counts twice in any case.  Without ``source``, sources lie as the destinations do.
    """
    sources = addresses if source is None else source
    passes, ways, ideal = (np.zeros(len(addresses), np.int64) for _ in range(3))
    for first in range(0, len(addresses), CHUNK):
        part = slice(first, first + CHUNK)
        moves = _moves(addresses[part], active[part], sources[part])
        if reads is not None:
            moves.valid &= np.take_along_axis(reads[part], moves.lane, axis=1)
        begins = _begins_pass(moves)
        passes[part], ways[part] = begins.sum(axis=1), _most_of_a_line(moves.chunk // 8, begins)
        ideal[part] = -(-moves.valid.sum(axis=1) * _CHUNK // _LINE)
    counted = Counted(passes, ideal, ways, np.full(len(addresses), source is None))
    if reads is None:
        return counted
    through = count_through(addresses, active, sources, reads, _CHUNK)
    twice = (active & ~reads).any(axis=1) | partial
    return Counted(
        passes + twice * through.transactions,
        ideal + twice * through.ideal,
        np.maximum(ways, twice * through.ways),
        counted.uncertain,
    )


def moved_sectors(source: Addresses, active: Mask, destination: Addresses) -> tuple[Counts, Counts]:
    """Sectors that the reading lanes of a cp.async.cg ask the L2 for, and the least that hold as many bytes."""
    sectors, ideal = np.zeros(len(source), np.int64), np.zeros(len(source), np.int64)
    for first in range(0, len(source), CHUNK):
        part = slice(first, first + CHUNK)
        moves = _moves(destination[part], active[part], source[part])
        chunks = moves.valid.sum(axis=1)
        sectors[part] = chunks - _joined(moves).sum(axis=1)
        ideal[part] = -(-chunks * _CHUNK // 32)
    return sectors, ideal


@dataclass(eq=False)
class _Moves:
    """Chunks that are written and where each comes from, in order of the destination: (requests, lanes) each.

    ``chunk`` and ``source`` number chunks of the two memories, ``lane`` says which lane writes it; entries that are not
    ``valid`` stand at the end.
    """

    chunk: Addresses
    source: Addresses
    lane: Addresses
    valid: Mask


def _moves(addresses: Addresses, active: Mask, source: Addresses) -> _Moves:
    """Rule 1."""
    lanes = addresses.shape[1]
    keys = np.where(active, addresses // _CHUNK * lanes + np.arange(lanes), _NONE)
    keys.sort(axis=1)
    again = keys[:, 1:] // lanes == keys[:, :-1] // lanes
    keys[:, 1:][again] = _NONE
    keys.sort(axis=1)
    chunk, lane = np.divmod(keys, lanes)
    return _Moves(chunk, np.take_along_axis(source // _CHUNK, lane, axis=1), lane, keys != _NONE)


def _joined(moves: _Moves) -> Mask:
    """Rule 2: where a move writes the first half of a sector and joins the next, which writes the second half."""
    chunk, source, valid = moves.chunk, moves.source, moves.valid
    joined = np.zeros(valid.shape, np.bool_)
    neighbours = valid[:, 1:] & valid[:, :-1] & (chunk[:, :-1] % 2 == 0) & (chunk[:, 1:] == chunk[:, :-1] + 1)
    joined[:, :-1] = neighbours & (source[:, 1:] ^ source[:, :-1] == 1)
    return joined


def _begins_pass(moves: _Moves) -> Mask:
    """Rules 3 and 4: the first move of each pass."""
    chunk, source, lane, valid = moves.chunk, moves.source, moves.lane, moves.valid
    line = np.where(valid, chunk // 8, -1 - np.arange(chunk.shape[1]))  # no two invalid ones have the same
    turn = np.zeros(chunk.shape, np.int64)
    group = source * 2 + chunk % 2
    # All moves to one line are at most seven places apart.
    for distance in range(1, 8):
        one, other = np.s_[:, :-distance], np.s_[:, distance:]
        same = (line[one] == line[other]) & (group[one] == group[other])
        if same.any():
            turn[one] += same & (lane[other] > lane[one])
            turn[other] += same & (lane[one] > lane[other])
    joins = _joined(moves)
    joins[:, :-1] &= turn[:, 1:] == turn[:, :-1]
    joined = joins.copy()
    joined[:, 1:] |= joins[:, :-1]
    swapped = (source ^ chunk) & 1
    shape = np.where(joined, 4 + swapped, 2 * (source & 1) + (chunk & 1))
    crossing = (source // 2 ^ chunk // 2) & 1
    alike = (turn * 6 + shape) * 2 + crossing
    origin = source // 8
    begins = valid.copy()
    for distance in range(1, 8):
        one, other = np.s_[:, :-distance], np.s_[:, distance:]
        begins[other] &= ~((line[one] == line[other]) & (alike[one] == alike[other]) & (origin[one] == origin[other]))
    return begins


def _most_of_a_line(line: Addresses, begins: Mask) -> Counts:
    """Passes that write the line with most of them; lines are in order in each row."""
    number = np.zeros(line.shape, np.int64)
    number[:, 1:] = (line[:, 1:] != line[:, :-1]).cumsum(axis=1)
    number += (np.arange(len(line)) * line.shape[1])[:, None]
    most: Counts = np.bincount(number[begins], minlength=line.size).reshape(line.shape).max(axis=1, initial=0)
    return most
