"""Accesses to shared tiles at their very addresses: what they cost can be counted again for tiles placed otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelang_min.access import bank_conflicts
from tilelang_min.errors import PlacementError, UnknownMemoryRule
from tilelang_min.program import SharedBuffer, ThreadProgram
from tilelang_min.simulate.counting import (
    MATRIX_KINDS,
    Addresses,
    by_warp,
    patterns,
    reads_of,
    second_addresses,
    shared_rule,
)
from tilelang_min.simulate.machine import Machine
from tilelang_min.simulate.messages import label_of
from tilelang_min.simulate.placement import Placement, Tile
from tilelang_min.simulate.result import AccessCount, merge_counts
from tilelang_min.simulate.sites import Site

Key = tuple[int, str, str, int, int]
"""Operation, tile, rule (``load``, ``atomic_loop``), bytes of a lane, matrices (0 where it is no ldmatrix)."""
_ACCESS = {"atomic_increment": "atomic", "atomic_loop": "atomic", "atomic_loop_load": "load"}


@dataclass(frozen=True, slots=True, eq=False)
class RecordedAccess:
    """The distinct requests of one operation to one tile, of one kind and width.

    ``offsets`` (requests, warp size) are bytes from the start of the tile, ``active`` its lanes, ``source`` the global
    addresses of a cp.async (-1 for lanes that fill with zeros), ``times`` (requests,) how often each ran.
    """

    key: Key
    offsets: Any
    active: Any
    source: Any
    times: Any

    def placed(self, program: ThreadProgram, tile: Tile, placement: Placement) -> Any:
        """Their byte offsets in a tile that is placed so.  Raises PlacementError where one would be misaligned or torn."""
        if placement != Placement():
            self._check_whole(program, tile)
        offsets = placement.place(tile, self.offsets)
        self._check_aligned(program, offsets)
        return offsets

    def count(self, program: ThreadProgram, offsets: Any) -> AccessCount:
        """What they cost at these byte offsets."""
        operation, name, kind, width, matrices = self.key
        one = AccessCount(
            operation=operation,
            buffer=name,
            space="shared",
            access=_ACCESS.get(kind, kind),
            width_bits=width * 8,
            requests=int(self.times.sum()),
            transactions=None,
            transactions_ideal=None,
            ways=None,
            sectors=None,
            sectors_ideal=None,
            bytes=int((self.active.sum(axis=1) * self.times).sum()) * width,
            rule="unknown",
        )
        try:
            passes = bank_conflicts(
                offsets,
                kind,
                width * 8,
                program.target,
                self.active,
                self.source,
                matrices or None,
                reads_of(self.source),
            )
        except UnknownMemoryRule:
            return one
        return replace(
            one,
            transactions=int((passes.per_request * self.times).sum()),
            transactions_ideal=int((passes.per_request_ideal * self.times).sum()),
            ways=passes.ways,
            rule=passes.rule,
        )

    def _check_whole(self, program: ThreadProgram, tile: Tile) -> None:
        width = self.key[3]
        torn = (self.offsets % tile.row_bytes + width > tile.row_bytes) & self.active
        if torn.any():
            raise PlacementError(f"the {self._label(program)} runs over the ends of rows")

    def _check_aligned(self, program: ThreadProgram, offsets: Any) -> None:
        width = self.key[3]
        if ((offsets % width != 0) & self.active).any():
            raise PlacementError(f"it breaks the {width}-byte alignment of the {self._label(program)}")

    def _label(self, program: ThreadProgram) -> str:
        """``128-bit load in T.gemm(...) (line 41)``."""
        operation, _, kind, width, _ = self.key
        what = kind if kind in MATRIX_KINDS else f"{width * 8}-bit {kind.replace('_bypass', '').replace('_', '.')}"
        return f"{what} in {label_of(program, operation)}"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """All accesses of some blocks to shared tiles, as :func:`~tilelang_min.simulate.simulate` records them.

    ``fixed`` tiles are besides read or written by units that prescribe where elements lie (bulk copies, warp group products).
    """

    program: ThreadProgram
    accesses: tuple[RecordedAccess, ...]
    fixed: frozenset[str] = frozenset()

    @property
    def tiles(self) -> dict[str, SharedBuffer]:
        """The program's shared tiles by name."""
        return {tile.name: tile for tile in self.program.shared}

    def counts(self, placements: Mapping[str, Placement] | None = None, only: str | None = None) -> list[AccessCount]:
        """Counts of every access, or of those to the tile ``only``; tiles that ``placements`` names are placed so.

        A tile keeps the bank its first byte is in.  Raises PlacementError where an access would be misaligned or would run
        over the end of a row, for a ``fixed`` tile, and for a tile that the program does not have.
        """
        tiles, chosen = self.tiles, placements or {}
        for name in chosen:
            if name not in tiles:
                raise PlacementError(
                    f"{self.program.name} has no shared tile {name!r}", remedy=f"it has: {', '.join(tiles) or 'none'}"
                )
            if name in self.fixed and chosen[name] != Placement():
                raise PlacementError(
                    f"bulk copies or wgmma prescribe where the elements of {name} lie",
                    remedy="another swizzle of theirs is another choice of the compiler, not a placement",
                )
        placed = [  # all of them before any is counted, which takes longer
            (access, self._placed(access, chosen.get(access.key[1])))
            for access in self.accesses
            if only in (None, access.key[1])
        ]
        return merge_counts(access.count(self.program, offsets) for access, offsets in placed)

    def _placed(self, access: RecordedAccess, placement: Placement | None) -> Any:
        """Byte offsets of an access: as recorded, in whatever way the compiler laid the tile out, or with the tile placed so."""
        if placement is None:
            return access.offsets
        return access.placed(self.program, Tile.of(self.tiles[access.key[1]]), placement)

    def scaled(self, factor: int) -> Recording:
        """The recording of ``factor`` times as many blocks that behave alike."""
        return replace(self, accesses=tuple(replace(a, times=a.times * factor) for a in self.accesses))


def merge_recordings(recordings: Iterable[Recording]) -> Recording:
    """One recording of several of the same program; equal requests are kept once.  There must be at least one."""
    parts = list(recordings)
    grouped: dict[Key, list[RecordedAccess]] = {}
    for recording in parts:
        for access in recording.accesses:
            grouped.setdefault(access.key, []).append(access)
    merged = tuple(_merged(key, group) for key, group in sorted(grouped.items()))
    return Recording(parts[0].program, merged, frozenset().union(*(part.fixed for part in parts)))


def record(machine: Machine) -> Recording:
    """What a machine that ran with ``exact`` has recorded."""
    program = machine.program
    tiles = {tile.name for tile in program.shared}
    grouped: dict[Key, list[RecordedAccess]] = {}
    for number, counts in sorted((machine.counts or {}).items()):
        site = machine.translation.sites[number]
        if site.place.space != "shared" or site.place.buffer.name not in tiles:
            continue
        key = (
            site.operation,
            site.place.buffer.name,
            shared_rule(site),
            site.width_bytes,
            site.lanes if site.kind in MATRIX_KINDS else 0,
        )
        for pattern, times in patterns(machine, site, counts, exact=True):
            grouped.setdefault(key, []).append(_requests(machine, site, key, pattern, times))
    merged = tuple(_merged(key, group) for key, group in sorted(grouped.items()))
    return Recording(program, merged, machine.fixed_tiles())


def _requests(machine: Machine, site: Site, key: Key, pattern: Addresses, times: int) -> RecordedAccess:
    """The warps of one pattern as requests."""
    flat = (np.broadcast_to(pattern.base, (machine.lanes,)) + pattern.offsets[0]) * pattern.unit
    lanes = np.zeros(machine.lanes, bool)
    lanes[pattern.lanes] = True
    flat = np.where(lanes, flat % machine.translation.layout.block_bytes - site.place.offset, 0)
    source = second_addresses(machine, pattern)
    active = by_warp(machine, lanes)
    running = active.any(axis=1)
    return RecordedAccess(
        key,
        by_warp(machine, flat)[running],
        active[running],
        None if source is None else source[running],
        np.full(int(running.sum()), times, np.int64),
    )


def _merged(key: Key, parts: list[RecordedAccess]) -> RecordedAccess:
    """The distinct requests of several groups with one key."""
    offsets, active, times = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("offsets", "active", "times")
    )
    sources = [part.source for part in parts]
    source = None if any(one is None for one in sources) else np.concatenate(sources)
    columns = [np.where(active, offsets, -1)] + ([] if source is None else [source])
    rows = np.ascontiguousarray(np.concatenate(columns, axis=1))
    # Rows as single values of bytes: several times as fast as comparing them column by column.
    _, first, group = np.unique(
        rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1),
        return_index=True,
        return_inverse=True,
    )
    totals = np.zeros(len(first), np.int64)
    np.add.at(totals, group.reshape(-1), times)
    return RecordedAccess(key, offsets[first], active[first], None if source is None else source[first], totals)
