"""Products of few tiles: the blocks of a cluster share the iterations of a tile's loop and add up what they have.

Before, with 32 tiles on 132 units::

    T.clear(C_local)
    for k in T.Pipelined(n, num_stages=4): .. T.gemm(A_shared, B_shared, C_local)
    T.copy(C_local, C[by * 128, bx * 128])

After, four blocks a tile, ``rank`` being 0 to 3::

    T.clear(C_local)
    for k in T.Pipelined(n / 4, from rank * n / 4): .. T.gemm(A_shared, B_shared, C_local)
    C_part = the sum of C_local over the cluster, columns rank * 32 to rank * 32 + 31
    T.copy(C_part, C[by * 128, bx * 128 + rank * 32])

The loop is the only ring, at the top level, holds copies that can run ahead and products alone, and their accumulator was zero
before it.  What follows the loop is done for a part of the columns in each block where it goes element by element, and no
statement uses what another one writes to a tensor; else the first block does all of it.
"""

from __future__ import annotations

import dataclasses
from math import prod
from typing import Any

from tvm import tirx

from tilelang_min.analysis.regions import read, written
from tilelang_min.ir.expressions import as_int, index, loads, replace_loads, simplify, substitute
from tilelang_min.ir.hopper import ClusterSum
from tilelang_min.ir.nodes import (
    Assign,
    Buffer,
    Conditional,
    Copy,
    Fill,
    Gemm,
    Loop,
    Parallel,
    Region,
    Statement,
    TileProgram,
    walk,
)
from tilelang_min.ir.plans import HopperPlan, Split
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target
from tilelang_min.transform.pipeline import why_not_ahead

_Statements = tuple[Statement, ...]


def split_loops(program: TileProgram, target: Target, plan: HopperPlan, asked: bool | int) -> TileProgram:
    """The program with its loop shared out, and ``plan.split``; the program as it is where that is off or does not fit.

    ``asked``: True, as many blocks a tile as keep the units busy; a number of them; False.
    """
    if (
        asked is False
        or (asked is not True and asked < 2)
        or not plan.loops
        or plan.persistent
        or plan.cluster > 1
        or program.sizes
    ):
        return program
    loop = next((item for item in program.body if isinstance(item, Loop) and {item.operation} == plan.loops), None)
    tiles = prod(program.grid)
    if asked is True and 2 * tiles > target.devices[0].units:
        return program
    if loop is None:
        return _refused(program, plan, min(plan.loops), "the loop is not the only one of its kind, at the top level")
    found = _accumulator(program, plan, loop)
    if isinstance(found, str):
        return _refused(program, plan, loop.operation, found)
    iterations = as_int(simplify(loop.extent))
    if iterations is None:
        return _refused(program, plan, loop.operation, "how often it runs depends on the block")
    count = _count(tiles, iterations, loop.stages, target, asked)
    if count < 2 and asked is True:
        return program
    if count < 2:
        reason = f"{iterations} iterations are no {asked} shares of at least {loop.stages}"
        if asked > target.max_cluster:
            reason = f"{target.name} runs {target.max_cluster} blocks together, not {asked}"
        return _refused(program, plan, loop.operation, reason)
    return _split(program, target, plan, loop, found, count, iterations)


def _refused(program: TileProgram, plan: HopperPlan, operation: int, reason: str) -> TileProgram:
    plan.notes.append(f"{program.operations[operation].label}: not shared out between blocks: {reason}")
    return program


def _count(tiles: int, iterations: int, stages: int, target: Target, asked: bool | int) -> int:
    """Blocks a tile: the most that all run at once and have work, no less of it than fills their rings."""
    for count in range(target.max_cluster, 1, -1):
        share = -(-iterations // count)
        wanted = count == asked if asked is not True else tiles <= target.devices[0].clusters_at_once(count)
        if wanted and share * (count - 1) < iterations and share >= stages:
            return count
    return 1


def _accumulator(program: TileProgram, plan: HopperPlan, loop: Loop) -> tuple[Buffer, WarpgroupLayout] | str:
    """The one accumulator of the loop's products, or why the loop cannot be shared out."""
    products = [item for item in loop.body if isinstance(item, Gemm)]
    if len(products) + sum(isinstance(item, Copy) for item in loop.body) != len(loop.body):
        return "it does other work than products"
    for copy in loop.body:  # what an iteration leaves to the next, or to what follows, would be another block's
        if isinstance(copy, Copy) and (reason := why_not_ahead(program, loop, copy)) is not None:
            return reason
    if not all(item.operation in plan.gemms and not item.clear for item in products):
        return "its products do not add to what was there"
    accumulator = products[0].c.buffer
    if any(item.c.buffer is not accumulator for item in products):
        return "its products have several accumulators"
    if accumulator.dtype != "float32":
        return f"{accumulator.name} is {accumulator.dtype}"
    filled = False
    for statement in walk(program.body[: program.body.index(loop)]):
        if any(buffer.scope == "global" for buffer in written(statement)):
            return "what stands before it writes tensors"
        if accumulator in written(statement) or accumulator in read(program, statement):
            zero = isinstance(statement, Fill) and not loads(statement.value) and _is_zero(statement.value)
            if not zero or not any(statement is item for item in program.body):
                return f"{accumulator.name} does not begin at zero"
            filled = True
    layout = plan.gemms[products[0].operation].layout
    assert isinstance(layout, WarpgroupLayout)
    return (accumulator, layout) if filled else f"{accumulator.name} does not begin at zero"


def _is_zero(value: Any) -> bool:
    known = simplify(value)
    return float(getattr(known, "value", known)) == 0.0 if isinstance(known, (int, float, tirx.FloatImm)) else False


def _split(
    program: TileProgram,
    target: Target,
    plan: HopperPlan,
    loop: Loop,
    found: tuple[Buffer, WarpgroupLayout],
    count: int,
    iterations: int,
) -> TileProgram:
    accumulator, layout = found
    place = program.body.index(loop)
    before, behind = program.body[:place], program.body[place + 1 :]
    rank = tirx.Var("cluster_rank", "int32")
    parts = next(number for number in range(count, 0, -1) if layout.parts(number))
    made, why, tail = {}, "", behind
    if parts > 1:
        try:
            _keeps_apart(program, behind)
            narrowed = _Narrowed(program, before, accumulator, layout.part(parts).shape, rank)
            tail, made = narrowed.block(behind), narrowed.made
        except _WholeNeeded as error:
            parts, why = 1, str(error)
    if parts < count:
        tail = (Conditional(loop.operation, rank < parts, tail),)
    split = Split(loop.operation, count, parts, rank)
    kept = made.get(accumulator.name, accumulator)
    shape = ((count - 1) * layout.registers // parts, layout.threads)
    scratch = _buffer(program, f"{accumulator.name}_arrived", shape, accumulator, "shared", made)
    if _shared_bytes(program, plan, scratch) > target.shared.block_limit:
        return _refused(program, plan, loop.operation, "shared memory has no room for what other blocks send")
    if why:
        plan.notes.append(
            f"{program.operations[loop.operation].label}: one block of {count} does what follows it: {why}"
        )
    share = -(-iterations // count)
    length = share if iterations % count == 0 else tirx.Min(index(share), iterations - rank * share)
    own_loop = dataclasses.replace(loop, start=loop.start + rank * share, extent=length)
    body = (*before, own_loop, ClusterSum(loop.operation, accumulator, kept, scratch, split), *tail)
    plan.split = split
    left = [buffer for buffer in program.buffers if buffer.name not in made or buffer is accumulator]
    return dataclasses.replace(program, body=body, buffers=(*left, *made.values(), scratch))


def _buffer(
    program: TileProgram, name: str, shape: tuple[int, ...], like: Buffer, scope: str, others: dict[str, Buffer]
) -> Buffer:
    name = program.unused(name, others.values())
    return Buffer(name, shape, like.dtype, scope, like.location, tirx.decl_buffer(shape, like.tvm_dtype, name))


def _shared_bytes(program: TileProgram, plan: HopperPlan, scratch: Buffer) -> int:
    """Bytes of all shared tiles with their stages, about."""
    stages = {
        item.target.buffer.name: loop.stages
        for loop in walk(program.body)
        if isinstance(loop, Loop) and loop.operation in plan.loops
        for item in loop.body
        if isinstance(item, Copy)
    }
    tiles = [buffer for buffer in (*program.buffers, scratch) if buffer.scope == "shared"]
    return sum(tile.elements * dtype_bytes(tile.dtype) * stages.get(tile.name, 1) for tile in tiles)


class _WholeNeeded(Exception):
    """Why one part of the columns is not enough for a statement."""


def _keeps_apart(program: TileProgram, behind: _Statements) -> None:
    """Raise _WholeNeeded where a statement may use what another one writes to a tensor: another block may do either."""
    statements = [each for each in walk(behind) if not isinstance(each, Assign)]  # those of nests count with them
    for tensor in dict.fromkeys(buffer for each in statements for buffer in written(each) if buffer.scope == "global"):
        users = [each for each in statements if tensor in written(each) or tensor in read(program, each)]
        places = [side for each in users if isinstance(each, Copy) for side in (each.source, each.target)]
        mine = [place for place in places if place.buffer is tensor]
        copies = all(isinstance(each, Copy) for each in users)
        if len(users) > 1 and not (copies and all(_same_place(mine[0], each) for each in mine)):
            raise _WholeNeeded(f"{tensor.name} is used by several statements")


def _same_place(first: Region, second: Region) -> bool:
    offsets = zip(first.offsets, second.offsets, strict=True)
    return first.extents == second.extents and all(as_int(simplify(index(a) - b)) == 0 for a, b in offsets)


class _Narrowed:
    """Statements behind the loop for one part of the columns; _WholeNeeded, with the reason, where they are not element by element.

    ``made``: by name of a fragment of the accumulator's shape, the one for its part.
    """

    def __init__(
        self, program: TileProgram, before: _Statements, accumulator: Buffer, shape: tuple[int, int], rank: Any
    ) -> None:
        self.program, self.shape, self.whole = program, shape, accumulator.shape
        self.first = rank * shape[1]
        self.made: dict[str, Buffer] = {}
        self.accumulator, self.before = accumulator, before
        self.part(accumulator)

    def part(self, buffer: Buffer) -> Buffer:
        """The fragment for the part of another."""
        if buffer.name not in self.made:
            self.made[buffer.name] = _buffer(
                self.program, f"{buffer.name}_part", self.shape, buffer, "fragment", self.made
            )
        return self.made[buffer.name]

    def narrows(self, buffer: Buffer) -> bool:
        """Whether a buffer is a fragment of which a part is enough."""
        if buffer.scope != "fragment" or buffer.shape != self.whole:
            return False
        if buffer is not self.accumulator:
            for statement in walk(self.before):
                if buffer in written(statement):
                    raise _WholeNeeded(f"{buffer.name} is filled in front of the loop")
        return True

    def block(self, statements: _Statements) -> _Statements:
        """All of some statements."""
        out: list[Statement] = []
        for statement in statements:
            if isinstance(statement, Conditional):
                if loads(statement.condition):
                    raise _WholeNeeded("a condition reads a tile")
                then, otherwise = self.block(statement.then), self.block(statement.otherwise)
                out.append(dataclasses.replace(statement, then=then, otherwise=otherwise))
            elif isinstance(statement, Copy):
                out.append(self.copy(statement))
            elif isinstance(statement, Fill):
                out.append(dataclasses.replace(statement, region=self.region(statement.region)))
            elif isinstance(statement, Parallel):
                out.append(self.nest(statement))
            else:
                label = self.program.operations[statement.operation].label
                raise _WholeNeeded(f"{label} needs whole rows")
        return tuple(out)

    def copy(self, copy: Copy) -> Copy:
        sides = [self.narrows(side.buffer) for side in (copy.source, copy.target)]
        if not any(sides):
            if copy.target.buffer.scope == "shared":
                return copy
            raise _WholeNeeded(f"it writes {copy.target.buffer.name} from elsewhere")
        return dataclasses.replace(copy, source=self.region(copy.source), target=self.region(copy.target))

    def region(self, region: Region) -> Region:
        """The part's columns of a region that meets the accumulator."""
        if self.narrows(region.buffer):
            if region.extents != self.whole or any(as_int(offset) != 0 for offset in region.offsets):
                raise _WholeNeeded(f"a part of {region.buffer.name} is used")
            return Region(self.part(region.buffer), region.offsets, self.shape)
        wide = [axis for axis, extent in enumerate(region.extents) if extent != 1]
        if region.tile_extents != self.whole or region.buffer.scope != "global":
            raise _WholeNeeded(f"{region.buffer.name} is not a tensor")
        offsets, extents = list(region.offsets), list(region.extents)
        offsets[wide[-1]] = offsets[wide[-1]] + self.first
        extents[wide[-1]] = self.shape[1]
        return Region(region.buffer, tuple(offsets), tuple(extents))

    def nest(self, nest: Parallel) -> Parallel:
        if tuple(nest.extents) != self.whole or nest.stages:
            raise _WholeNeeded("a nest goes over something else")
        row, column = nest.variables
        moved = [(column, column + self.first)]

        def own(indices: Any) -> bool:
            pairs = zip(indices, (row, column), strict=True)
            return all(as_int(simplify(index(item) - variable)) == 0 for item, variable in pairs)

        def value(expression: Any) -> Any:
            for load in loads(expression):
                buffer = self.program.buffer_of(load.source)
                if buffer.scope in ("fragment", "local") and not (self.narrows(buffer) and own(load.indices)):
                    raise _WholeNeeded(f"{buffer.name} is not used element by element")

            def narrow(load: Any) -> Any:
                buffer = self.program.buffer_of(load.source)
                return self.part(buffer).var[row, column] if self.narrows(buffer) else load

            return replace_loads(substitute(expression, moved), narrow)

        body: list[Assign] = []
        for assign in nest.body:
            if assign.atomic or assign.buffer.scope in ("shared", "local"):
                raise _WholeNeeded(f"it writes {assign.buffer.name}")
            if self.narrows(assign.buffer):
                if not own(assign.indices):
                    raise _WholeNeeded(f"{assign.buffer.name} is not used element by element")
                body.append(
                    dataclasses.replace(
                        assign, buffer=self.part(assign.buffer), indices=(row, column), value=value(assign.value)
                    )
                )
                continue
            if assign.buffer.scope == "fragment":
                raise _WholeNeeded(f"{assign.buffer.name} has another shape")
            indices = tuple(value(item) for item in assign.indices)
            body.append(dataclasses.replace(assign, indices=indices, value=value(assign.value)))
        return dataclasses.replace(nest, extents=self.shape, body=tuple(body))


__all__ = ["split_loops"]
