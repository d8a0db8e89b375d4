"""Where the elements of shared tiles lie: for every tile the layout in which its accesses take the fewest passes.

Before: tiles lie row after row, and lanes that read a column of a matrix operand meet in one bank.  After: ``Layouts.shared`` has a
swizzle, or else a padding, for tiles whose accesses conflict.  The accesses are those that lowering will make
(``ir/operand_reads.py``, and nests by their layouts); what they cost is counted by the rules that the simulator counts with
(``access/``).  Of layouts with as many passes the one without more memory wins.

Tiles stay as they are written where nothing conflicts, where the author padded them by their shape, and where the author pinned a
layout.  A padding that lets fewer blocks run on a unit is taken only where it halves the passes of a block divided by those blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from tvm import ir

from tilelang_min.access import bank_conflicts
from tilelang_min.errors import UnknownMemoryRule
from tilelang_min.ir.expressions import as_int, index
from tilelang_min.ir.nodes import Buffer, Conditional, Copy, Expr, Gemm, Loop, Parallel, Statement, TileProgram, walk
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.shared_layout import UNIT_BYTES, SharedLayout, placed
from tilelang_min.ir.vectors import nest_of, ranges
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target, occupancy
from tilelang_min.transform.tile_accesses import TileAccess, accesses_of_gemm, accesses_of_nest

_LOOP_GUESS = 4
"""Iterations of a loop whose extent is not known: what is in it weighs more than what is around it."""
_SWIZZLED_UNITS = (8, 4, 2, 16)
"""Units of 16 bytes that a swizzle exchanges, in the order in which they are tried."""
_PADDINGS_BYTES = (16, 4, 8, 32, 64, 128)


@dataclass(frozen=True)
class _Cost:
    """Passes of all accesses to a tile, weighted by how often they run, and what of them are conflicts of other accesses than
    asynchronous copies, whose passes depend on their source as well."""

    passes: float
    conflicts: float
    copies: float
    requests: float

    @property
    def order(self) -> tuple[float, float]:
        """Less is better."""
        return (self.passes, self.requests)


def choose_shared_layouts(program: TileProgram, target: Target, layouts: Layouts) -> dict[str, SharedLayout]:
    """Layouts of the shared tiles that should not lie row after row, by name.

    Tiles that ``layouts.shared`` or the author has placed already are left alone, and those that a ring fills by boxes.
    """
    chosen = {**program.pinned, **layouts.shared}
    boxes = [
        copy.target.buffer
        for loop in walk(program.body)
        if isinstance(loop, Loop) and loop.operation in layouts.hopper.loops
        for copy in walk(loop.body)
        if isinstance(copy, Copy) and copy.source.buffer.scope == "global"
    ]
    tiles = [buffer for buffer in program.buffers if buffer.scope == "shared" and buffer not in boxes]
    for tile in tiles:
        if tile.name in chosen or prod(tile.shape[:-1]) == 1 or tile.shape[-1] == 1 or _padded(program, tile):
            continue
        found = _Choice(program, target, layouts, tile, chosen).best()
        if found is not None:
            chosen[tile.name] = found
    return chosen


class _Choice:
    """The search for one tile; ``chosen`` are the layouts of tiles that were looked at before."""

    def __init__(
        self, program: TileProgram, target: Target, layouts: Layouts, tile: Buffer, chosen: dict[str, SharedLayout]
    ) -> None:
        self.program, self.target, self.layouts, self.tile, self.chosen = program, target, layouts, tile, chosen
        self.itemsize = dtype_bytes(tile.dtype)
        self.known: dict[tuple[bool, ...], list[TileAccess]] = {}
        self.statements = list(_weighted(program.body, 1.0))

    def best(self) -> SharedLayout | None:
        """The cheapest layout; None for plain rows."""
        plain = SharedLayout.plain(self.tile.shape, self.itemsize)
        cost = self.cost(plain)
        if cost is None or cost.conflicts == 0:  # and no copy from rows elsewhere is cheaper than into rows
            return None
        first = cost
        best: SharedLayout | None = None
        for layout in self.swizzles():
            other = self.cost(layout)
            if other is not None and other.order < cost.order:
                best, cost = layout, other
                if cost.conflicts == 0 and cost.copies <= first.copies:
                    break
        if cost.conflicts == 0 and cost.copies <= first.copies:
            return best
        for layout in self.paddings():
            other = self.cost(layout)
            if other is not None and other.order < cost.order and self.worth(layout, other, best, cost):
                best, cost = layout, other
        return best

    def swizzles(self) -> Iterator[SharedLayout]:
        """All swizzles of whole rows, the natural ones first: they move a unit by one for each 128 bytes."""
        row_bytes = self.tile.shape[-1] * self.itemsize
        for units in _SWIZZLED_UNITS:
            if row_bytes % (units * UNIT_BYTES):
                continue
            natural = max(0, (128 // row_bytes).bit_length() - 1)
            for shift in sorted(range(-3, 4), key=lambda shift, natural=natural: abs(shift - natural)):  # type: ignore[misc]
                if -shift < units.bit_length() - 1:
                    yield SharedLayout.swizzled(self.tile.shape, self.itemsize, shift, units - 1)

    def paddings(self) -> Iterator[SharedLayout]:
        """Rows with a few more bytes behind each."""
        for size in _PADDINGS_BYTES:
            if size % self.itemsize == 0:
                yield SharedLayout.plain(self.tile.shape, self.itemsize, size // self.itemsize)

    def worth(self, layout: SharedLayout, cost: _Cost, best: SharedLayout | None, known: _Cost) -> bool:
        """Whether a cheaper layout is worth the blocks that no longer fit on a unit."""
        before, after = self.blocks(best), self.blocks(layout)
        return after > 0 and (after >= before or 2 * cost.passes / after <= known.passes / before)

    def blocks(self, layout: SharedLayout | None) -> int:
        """Blocks that fit on a unit as far as shared memory is concerned, with the tile placed so."""
        tiles = []
        for buffer in self.program.buffers:
            if buffer.scope == "shared":
                known = layout if buffer is self.tile else self.chosen.get(buffer.name)
                place = known or SharedLayout.plain(buffer.shape, dtype_bytes(buffer.dtype))
                tiles.append((place, self.program.stages.get(buffer.name, 1)))
        _, need = placed(tiles)
        if need > self.target.shared.block_limit:
            return 0
        found = occupancy(self.target, threads=self.program.threads, registers_per_thread=None, shared_bytes=need)
        return found.max_blocks_per_unit or 0

    # -- what it costs -----------------------------------------------------------------------------------------------

    def cost(self, layout: SharedLayout) -> _Cost | None:
        """Passes with the tile placed so; None where instructions that the kernel needs would not be possible."""
        plain = SharedLayout.plain(self.tile.shape, self.itemsize)
        passes = conflicts = copies = requests = 0.0
        accesses = self.accesses(layout)
        for access in accesses:
            # ldmatrix and cp.async take whole vectors or nothing.
            if access.whole and plain.whole(access.width) and not layout.whole(access.width):
                return None
        for same in _grouped(accesses):
            kind = same[0]
            places = np.concatenate([layout.element(one.rows, one.columns) for one in same]) * self.itemsize
            active = np.concatenate([one.active for one in same])
            sources = [one.sources for one in same if one.sources is not None]
            weights = np.concatenate([np.full(len(one.rows), one.weight) for one in same])
            try:
                found = bank_conflicts(
                    np.where(active, places, 0),
                    kind.access,
                    kind.width * self.itemsize * 8,
                    self.target,
                    active,
                    np.concatenate(sources) if sources else None,
                    kind.matrices,
                )
            except UnknownMemoryRule:
                continue
            total = float((found.per_request * weights).sum())
            passes += total
            requests += float((active.any(axis=1) * weights).sum())
            if kind.access.startswith("cp_async"):
                copies += total
            else:
                conflicts += total - float((found.per_request_ideal * weights).sum())
        return _Cost(passes, conflicts, copies, requests)

    def accesses(self, layout: SharedLayout) -> list[TileAccess]:
        """All accesses to the tile as they are lowered where it lies so."""
        key = tuple(layout.whole(width) for width in (2, 4, 8, 16))
        if key not in self.known:

            def whole(buffer: Buffer, width: int) -> bool:
                if buffer is self.tile:
                    return layout.whole(width)
                known = self.chosen.get(buffer.name)
                return known is None or known.whole(width)

            found: list[TileAccess] = []
            for statement, weight in self.statements:
                if isinstance(statement, Gemm):
                    plan = self.layouts.gemms.get(statement.operation)
                    if plan is not None and self.tile in (statement.a.buffer, statement.b.buffer):
                        found += accesses_of_gemm(self.program, self.target, statement, plan, self.tile, whole, weight)
                elif id(statement) in self.layouts.nests:
                    nest_layout = self.layouts.nests[id(statement)]
                    found += accesses_of_nest(
                        self.program, self.target, statement, nest_layout, self.tile, whole, weight
                    )
            self.known[key] = found
        return self.known[key]


def _grouped(accesses: Iterable[TileAccess]) -> list[list[TileAccess]]:
    """Accesses of one kind together."""
    groups: dict[tuple[object, ...], list[TileAccess]] = {}
    for access in accesses:
        key = (access.access, access.width, access.matrices, access.sources is None)
        groups.setdefault(key, []).append(access)
    return list(groups.values())


def _weighted(statements: tuple[Statement, ...], weight: float) -> Iterator[tuple[Statement, float]]:
    """All statements with how often they run in a block, about."""
    for statement in statements:
        if isinstance(statement, Loop):
            extent = as_int(statement.extent)
            yield from _weighted(statement.body, weight * (_LOOP_GUESS if extent is None else extent))
        elif isinstance(statement, Conditional):
            yield from _weighted(statement.then, weight)
            yield from _weighted(statement.otherwise, weight)
        else:
            yield statement, weight


def _padded(program: TileProgram, tile: Buffer) -> bool:
    """Whether the author padded the tile by its shape: nothing but a fill ever touches the last columns of its rows."""
    analyzer = ranges(program)
    used = 0
    for statement in walk(program.body):
        columns: list[Expr] = []
        if isinstance(statement, Gemm):
            regions = [region for region in (statement.a, statement.b) if region.buffer is tile]
            columns = [region.offsets[-1] + region.extents[-1] - 1 for region in regions]
        elif isinstance(statement, (Copy, Parallel)):
            nest = nest_of(program, statement)
            for variable, extent in zip(nest.variables, nest.extents, strict=True):
                analyzer.bind(variable, ir.Range(0, extent))
            columns = [access.indices[-1] for access in nest.accesses if access.buffer is tile]
        for column in columns:
            used = max(used, int(analyzer.const_int_bound(index(column)).max_value) + 1)
    return bool(0 < used < tile.shape[-1])


__all__ = ["choose_shared_layouts"]
