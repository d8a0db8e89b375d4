"""Tile program -> thread program for CPUs.

A block is one sequential task: tiles of every scope are arrays of the calling thread, nests are loops whose last dimension is
vectorised, and the symbol runs the blocks ``block_begin`` to ``block_end`` (x fastest), which the launcher spreads over cores.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import as_int, index, loads, replace_loads, substitute
from tilelang_min.ir.nodes import (
    Assign,
    Barrier,
    Buffer,
    Conditional,
    Copy,
    Expr,
    Fill,
    Gemm,
    Loop,
    Parallel,
    Statement,
    TileProgram,
)
from tilelang_min.ir.vectors import Nest, nest_of
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_cpu import lower_gemm
from tilelang_min.program import ThreadProgram
from tilelang_min.targets import Target


def lower_cpu(program: TileProgram, target: Target) -> ThreadProgram:
    """The thread program of ``program`` for a CPU."""
    context = Context(program, target)
    pointers, declarations = context.parameters()
    for buffer in program.buffers:
        flat = tirx.decl_buffer(
            (buffer.elements,), buffer.dtype, context.fresh(buffer.name), scope="local", data_alignment=64
        )
        context.allocations.append(tirx.AllocBuffer(flat))
        context.storage[buffer.name] = flat
    begin, end, block = (tirx.Var(name, "int32") for name in ("block_begin", "block_end", "block"))
    context.mark(0)
    _block(context, program.body)
    gx, gy, _ = program.grid
    places = (block % gx, block // gx % gy, block // (gx * gy))
    indices = [
        tirx.Bind(variable, index(place)) for variable, place in zip(program.block_variables, places, strict=True)
    ]
    body = tirx.For(block, begin, end - begin, tirx.ForKind.SERIAL, sequence([*indices, *context.take()]))
    function = tirx.PrimFunc([*pointers, begin, end], sequence([*declarations, *context.allocations, body]))
    function = function.with_attr({"global_symbol": program.name, "tirx.noalias": True})
    return ThreadProgram(
        name=program.name,
        target=target,
        function=function,
        parameters=context.kernel_parameters(),
        grid=program.grid,
        threads=1,
        shared=(),
        shared_bytes_dynamic=0,
        operations=program.operations,
    )


def _block(context: Context, statements: tuple[Statement, ...]) -> None:
    for statement in statements:
        _statement(context, statement)


def _statement(context: Context, statement: Statement) -> None:
    context.mark(statement.operation)
    if isinstance(statement, (Copy, Fill, Parallel)):
        _nest(context, statement)
    elif isinstance(statement, Gemm):
        lower_gemm(context, statement)
    elif isinstance(statement, Assign):
        value = replace_loads(statement.value, lambda load: _load(context, load))
        indices = tuple(replace_loads(item, lambda load: _load(context, load)) for item in statement.indices)
        element = index(context.element(statement.buffer, indices))
        context.emit(tirx.BufferStore(context.storage[statement.buffer.name], value, [element]))
    elif isinstance(statement, Loop):
        extent = as_int(context.simplify(statement.extent))
        unroll = statement.kind == "unroll" and extent is not None and extent <= 64
        with context.nested() as body:
            context.mark(statement.operation)
            _block(context, statement.body)
        kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL
        context.emit(
            tirx.For(statement.variable, index(statement.start), index(statement.extent), kind, sequence(body))
        )
        context.mark(statement.operation)
    elif isinstance(statement, Conditional):
        with context.assuming(statement.condition), context.nested() as then:
            _block(context, statement.then)
        with context.nested() as otherwise:
            _block(context, statement.otherwise)
        context.emit(tirx.IfThenElse(statement.condition, sequence(then), sequence(otherwise) if otherwise else None))
        context.mark(statement.operation)
    elif not isinstance(statement, Barrier):  # one thread runs the block: nothing to wait for
        raise TypeError(f"no lowering for {type(statement).__name__}")


def _load(context: Context, load: Any) -> Any:
    buffer = context.program.buffer_of(load.source)
    return context.storage[buffer.name][index(context.element(buffer, tuple(load.indices)))]


# -- nests ---------------------------------------------------------------------------------------------------------


def _nest(context: Context, statement: Statement) -> None:
    """Loops over the nest; the last dimension in vectors, with a scalar, guarded version where a vector would be ragged."""
    nest = nest_of(context.program, statement)
    lanes = (context.target.vector_bits or 256) // 32
    while lanes > nest.extents[-1]:
        lanes //= 2
    opened = []
    for variable, extent in zip(nest.variables[:-1], nest.extents[:-1], strict=True):
        new, close = context.loop(variable.name, extent)
        opened.append((variable, new, close))
    values = [(variable, new) for variable, new, _ in opened]
    with context.nested() as body:
        context.mark(statement.operation)
        extent = nest.extents[-1]
        chunks, rest = divmod(extent, lanes) if lanes > 1 else (0, extent)
        if chunks:
            chunk, close = context.loop("chunk", chunks)
            with context.nested() as inner:
                context.mark(statement.operation)
                _vector(context, nest, values, chunk * lanes, lanes)
            close(inner)
        if rest:
            start = chunks * lanes
            item, close = context.loop("rest", rest)
            with context.nested() as inner:
                context.mark(statement.operation)
                _scalar(context, nest, [*values, (nest.variables[-1], start + item)])
            close(inner)
    for _, _, close in reversed(opened):
        with context.nested() as outer:
            close(body)
        body = outer
    for item in body:
        context.emit(item)
    context.mark(statement.operation)


def _vector(context: Context, nest: Nest, values: list[tuple[Any, Expr]], start: Expr, lanes: int) -> None:
    """``lanes`` points from ``start``: one vector where all are in range, else point by point."""
    last = nest.variables[-1]
    conditions: list[Any] = []
    for access in nest.accesses:
        if access.buffer.scope != "local" and not any(loads(item) for item in access.indices):
            for edge in (start, start + (lanes - 1)):
                at = tuple(substitute(index(item), [*values, (last, edge)]) for item in access.indices)
                conditions += _bounds(context, access.buffer, at)
    lane = tirx.Var(context.fresh("lane"), "int32")
    points = [*values, (last, start + lane)]
    with context.nested() as vector:
        inner: list[Any] = []
        for assign in nest.body:
            inner.append(_assign(context, assign, points, lanes, lane, guarded=False))
        context.emit(tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, sequence(inner)))
    ragged = any(any(loads(item) for item in access.indices) for access in nest.accesses)
    if not conditions and not ragged:
        for item in vector:
            context.emit(item)
        return
    step, close = context.loop("point", lanes)
    with context.nested() as body:
        _scalar(context, nest, [*values, (last, start + step)])
    with context.nested() as scalar:
        close(body)
    if ragged:
        for item in scalar:
            context.emit(item)
        return
    condition = conditions[0]
    for other in conditions[1:]:
        condition = tirx.And(condition, other)
    context.emit(tirx.IfThenElse(condition, sequence(vector), sequence(scalar)))


def _scalar(context: Context, nest: Nest, values: list[tuple[Any, Expr]]) -> None:
    for assign in nest.body:
        context.emit(_assign(context, assign, values, 1, None, guarded=True))


def _assign(
    context: Context, assign: Assign, values: list[tuple[Any, Expr]], lanes: int, lane: Any, *, guarded: bool
) -> Any:
    def read(load: Any) -> Any:
        buffer = context.program.buffer_of(load.source)
        indices = tuple(load.indices)
        value = _place(context, buffer, lanes)[index(_number(context, buffer, indices, lanes, lane))]
        bounds = _bounds(context, buffer, indices) if guarded and buffer.scope != "local" else []
        return tirx.if_then_else(_all(bounds), value, tirx.const(0, buffer.dtype)) if bounds else value

    value = replace_loads(substitute(assign.value, values), read)
    indices = tuple(replace_loads(substitute(index(item), values), read) for item in assign.indices)
    element = index(_number(context, assign.buffer, indices, lanes, lane))
    store = tirx.BufferStore(_place(context, assign.buffer, lanes), value, [element])
    bounds = _bounds(context, assign.buffer, indices) if guarded and assign.buffer.scope != "local" else []
    return tirx.IfThenElse(_all(bounds), store, None) if bounds else store


def _place(context: Context, buffer: Buffer, lanes: int) -> Any:
    """Storage of a tile; a local tile in a vectorised nest has one copy for each lane."""
    if buffer.scope != "local" or lanes == 1:
        return context.storage[buffer.name]
    key = f"{buffer.name}@{lanes}"
    if key not in context.storage:
        context.storage[key] = context.registers(f"{buffer.name}_lanes", buffer.dtype, buffer.elements * lanes)
    return context.storage[key]


def _number(context: Context, buffer: Buffer, indices: tuple[Expr, ...], lanes: int, lane: Any) -> Expr:
    number = context.element(buffer, indices)
    return number * lanes + lane if buffer.scope == "local" and lanes > 1 else number


def _bounds(context: Context, buffer: Buffer, indices: tuple[Expr, ...]) -> list[Any]:
    """Conditions that ``indices`` are inside ``buffer``, without those that can be proved."""
    conditions = []
    for item, extent in zip(indices, buffer.shape, strict=True):
        value = index(context.simplify(item))
        conditions += [condition for condition in (value >= 0, value < extent) if not context.proves(condition)]
    return conditions


def _all(conditions: list[Any]) -> Any:
    result = conditions[0]
    for other in conditions[1:]:
        result = tirx.And(result, other)
    return result


__all__ = ["lower_cpu"]
