"""Nests as lowering sees them: every copy, fill and element-wise nest in one form, and which vectors its accesses allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.ir.expressions import as_int, bind_blocks, bind_range, divides, index, loads, substitute
from tilelang_min.ir.nodes import Assign, Buffer, Copy, Expr, Fill, Parallel, Region, Statement, TileProgram, walk
from tilelang_min.ir.nodes import Loop as LoopNode


@dataclass(frozen=True, eq=False)
class Access:
    """One read or write of an element in a nest; ``atomic`` as in :class:`Assign`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    atomic: str = ""


@dataclass(frozen=True, eq=False)
class Nest:
    """``body`` for every point of ``variables`` over ``extents``; ``stages`` by name of the tile, raw (not yet modulo)."""

    variables: tuple[Any, ...]
    extents: tuple[int, ...]
    body: tuple[Assign, ...]
    accesses: tuple[Access, ...]
    stages: dict[str, Expr]


def nest_of(program: TileProgram, statement: Statement) -> Nest:
    """The nest that a copy, fill or parallel statement is."""
    if isinstance(statement, Copy):
        return _copy_nest(program, statement)
    if isinstance(statement, Fill):
        variables = _variables(statement.region.tile_extents)
        target = Assign(
            statement.operation, statement.region.buffer, _indices(statement.region, variables), statement.value
        )
        return _nest(program, variables, statement.region.tile_extents or (1,), (target,), {})
    if isinstance(statement, Parallel):
        return _nest(program, statement.variables, statement.extents, statement.body, statement.stages)
    raise TypeError(f"{type(statement).__name__} is not a nest")


def _copy_nest(program: TileProgram, copy: Copy) -> Nest:
    extents = copy.source.tile_extents
    variables = _variables(extents)
    source = copy.source.buffer
    value = source.var[tuple(index(item) for item in _indices(copy.source, variables))]
    if source.dtype != copy.target.buffer.dtype:
        value = tirx.Cast(copy.target.buffer.tvm_dtype, value)
    stages = {}
    if copy.source_stage is not None:
        stages[source.name] = copy.source_stage
    if copy.target_stage is not None:
        stages[copy.target.buffer.name] = copy.target_stage
    assign = Assign(copy.operation, copy.target.buffer, _indices(copy.target, variables), value)
    return _nest(program, variables, extents or (1,), (assign,), stages)


def _nest(
    program: TileProgram,
    variables: tuple[Any, ...],
    extents: tuple[int, ...],
    body: tuple[Assign, ...],
    stages: dict[str, Expr],
) -> Nest:
    accesses: list[Access] = []
    for assign in body:
        for expression in (assign.value, *assign.indices):
            accesses += [
                Access(program.buffer_of(load.source), tuple(load.indices), False) for load in loads(expression)
            ]
        accesses.append(Access(assign.buffer, assign.indices, True, assign.atomic))
    if not variables:
        variables = (tirx.Var("i0", "int32"),)
    return Nest(variables, extents, body, tuple(accesses), stages)


def _variables(extents: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(tirx.Var(f"i{number}", "int32") for number in range(len(extents)))


def _indices(region: Region, variables: tuple[Any, ...]) -> tuple[Expr, ...]:
    remaining = iter(variables)
    return tuple(
        index(offset) if extent == 1 else index(offset) + next(remaining)
        for offset, extent in zip(region.offsets, region.extents, strict=True)
    )


def ranges(program: TileProgram) -> Any:
    """An analyzer that knows the ranges of block indices and of loops with constant extents."""
    analyzer = Analyzer()
    bind_blocks(analyzer, program.block_variables, program.grid, program.sizes)
    for statement in walk(program.body):
        if isinstance(statement, LoopNode):
            bind_range(analyzer, statement.variable, statement.start, statement.extent)
    return analyzer


def flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """Row-major element number of ``indices`` (one stage)."""
    return row_major(indices, buffer.shape)


def row_major(indices: Sequence[Expr], extents: Sequence[Expr]) -> Expr:
    """Number of the element at ``indices`` of a box; works on integers, NumPy arrays and TVM expressions alike."""
    total: Expr = 0
    for item, extent in zip(indices, extents, strict=True):
        total = total * extent + item
    return total


def vector_of(nest: Nest, program: TileProgram, widest: int) -> int:
    """The largest power of two up to ``widest`` at which every memory access of the nest moves whole, aligned vectors.

    An access qualifies when its element number does not depend on the last variable (one element for all), or grows by one with
    it, starts at a multiple of the width, and lies in or out of range as a whole.  Reads of shared tiles may also gather single
    elements, where that lets an access of a tensor be a vector: a transposition reads its tile across, and writes whole vectors.
    """
    width = widest
    last_extent = nest.extents[-1]
    while width > 1:
        if last_extent % width == 0:
            analyzer = ranges(program)
            for variable, extent in zip(nest.variables[:-1], nest.extents[:-1], strict=True):
                analyzer.bind(variable, ir.Range(0, extent))
            chunk = tirx.Var("chunk", "int32")
            analyzer.bind(chunk, ir.Range(0, last_extent // width))
            memory = [item for item in nest.accesses if item.buffer.scope in ("global", "shared")]
            found = [contiguous(item, nest.variables[-1], chunk * width, width, analyzer) for item in memory]
            gathers = [
                kind is None and item.buffer.scope == "shared" and not item.writes for item, kind in zip(memory, found)
            ]
            whole = any(kind and item.buffer.scope == "global" for item, kind in zip(memory, found))
            if all(kind is not None or (gather and whole) for kind, gather in zip(found, gathers)):
                return width
        width //= 2
    return 1


def contiguous(access: Access, variable: Any, start: Expr, width: int, analyzer: Any) -> bool | None:
    """How ``width`` steps of ``variable`` from ``start`` move through the buffer: True one element a step as an aligned vector
    that is in range as a whole, False not at all, None any other way."""
    step = tirx.Var("step", "int32")
    origin = tuple(substitute(item, [(variable, start)]) for item in access.indices)
    first = flat(access.buffer, origin)
    moved = tuple(substitute(item, [(variable, index(start) + step)]) for item in access.indices)
    # Mostly the difference is the step, or nothing; what is not so plain for any step is looked at step by step.
    difference = analyzer.simplify(index(flat(access.buffer, moved) - first))
    if as_int(difference) == 0:
        return False
    if not (isinstance(difference, tirx.Var) and difference.same_as(step)):
        differences = [
            as_int(analyzer.simplify(substitute(difference, [(step, number)]))) for number in range(1, width)
        ]
        if all(difference == 0 for difference in differences):
            return False
        if differences != list(range(1, width)):
            return None
    elements = access.buffer.elements
    if not divides(width, elements) or not analyzer.can_prove(tirx.EQ(tirx.floormod(index(first), width), 0)):
        return None
    # The innermost dimension is cut only at multiples of the width; those of one element behind it have no other to step to.
    inner = max((axis for axis, extent in enumerate(access.buffer.shape) if as_int(extent) != 1), default=0)
    behind = zip(moved[inner + 1 :], origin[inner + 1 :], strict=True)
    if any(as_int(analyzer.simplify(index(to) - index(item))) != 0 for to, item in behind):
        return None
    last = origin[inner]
    whole = divides(width, access.buffer.shape[inner])
    if not whole or not analyzer.can_prove(tirx.EQ(tirx.floormod(index(last), width), 0)):
        return None
    return True
