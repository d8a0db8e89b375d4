"""Tile program -> thread program for CPUs.

A block is one sequential task: tiles of every scope are arrays of the calling thread, nests are loops whose last dimension is
vectorised, and the symbol runs the blocks ``block_begin`` to ``block_end`` (x fastest), which the launcher spreads over cores.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tvm import ir, tirx

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
    Reduce,
    Statement,
    TileProgram,
)
from tilelang_min.ir.vectors import Nest, nest_of
from tilelang_min.lower.atomics import atomic_update
from tilelang_min.lower.context import Context, both, sequence
from tilelang_min.lower.forward_cpu import forwarded
from tilelang_min.lower.gemm_cpu import lower_gemm
from tilelang_min.lower.prefetch_cpu import Ahead, Stream, block_streams, product_of, streams_of
from tilelang_min.lower.reduce_cpu import lower_reduce
from tilelang_min.program import ThreadProgram
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.program.thread_program import STREAM_ATTRIBUTE
from tilelang_min.targets import Target
from tilelang_min.targets.cpu import STREAM_BYTES, STREAM_RUN_BYTES


def lower_cpu(program: TileProgram, target: Target) -> ThreadProgram:
    """The thread program of ``program`` for a CPU."""
    context = _CpuContext(program, target)
    pointers, declarations = context.parameters()
    for buffer in program.buffers:
        flat = tirx.decl_buffer(
            (buffer.elements,), buffer.tvm_dtype, context.fresh(buffer.name), scope="local", data_alignment=64
        )
        context.allocations.append(tirx.AllocBuffer(flat))
        context.storage[buffer.name] = flat
    begin, end, block = (tirx.Var(name, "int32") for name in ("block_begin", "block_end", "block"))
    context.mark(0)
    gx, gy, gz = program.grid
    following = tirx.Min(block + 1, index(gx * gy * gz - 1))
    context.next_block = _places(following, gx, gy)
    nest, streams = block_streams(context, program.body, (program.block_variables, context.next_block))
    if nest is not None:
        context.ahead[id(nest)] = streams
    _block(context, program.body)
    indices = [
        tirx.Bind(variable, index(place))
        for variable, place in zip(program.block_variables, _places(block, gx, gy), strict=True)
    ]
    body = tirx.For(block, begin, end - begin, tirx.ForKind.SERIAL, sequence([*indices, *context.take()]))
    function = tirx.PrimFunc(
        [*pointers, *program.sizes, begin, end], sequence([*declarations, *context.allocations, body])
    )
    function = function.with_attr({"global_symbol": program.name, "tirx.noalias": True})
    if streamed := context.streamed():
        function = function.with_attr({STREAM_ATTRIBUTE: streamed})
    return ThreadProgram(
        name=program.name,
        target=target,
        function=function,
        parameters=context.kernel_parameters(),
        grid=context.smallest_grid(),
        threads=1,
        shared=(),
        shared_bytes_dynamic=0,
        operations=program.operations,
        sizes=tuple(size.name for size in program.sizes),
        extents=context.extents(),
    )


class _CpuContext(Context):
    """State of one lowering for a CPU, with what products fetch while they run."""

    def __init__(self, program: TileProgram, target: Target) -> None:
        super().__init__(program, target)
        self.next_block: tuple[Expr, Expr, Expr] = (0, 0, 0)
        self.ahead: dict[int, list[Stream]] = {}
        self.copies: dict[str, Copy] = {}
        self.runs: dict[str, int] = {}

    def streamed(self) -> str:
        """Names of the parameters that are written in long runs, only written, and larger than caches."""
        return " ".join(
            item.name
            for item in self.kernel_parameters()
            if item.access == "out"
            and self.runs.get(item.name, 0) >= STREAM_RUN_BYTES
            and not any(isinstance(extent, str) for extent in item.shape)  # not known to be large
            and item.elements * dtype_bytes(item.dtype) >= STREAM_BYTES
        )


def _places(block: Expr, gx: int, gy: int) -> tuple[Expr, Expr, Expr]:
    """(x, y, z) of a linear block number."""
    return block % gx, block // gx % gy, block // (gx * gy)


def _block(context: _CpuContext, statements: tuple[Statement, ...]) -> None:
    copies = forwarded(context, statements)
    context.copies.update(copies)  # a tile has one copy, or it is not forwarded
    for statement in statements:
        if statement not in copies.values():
            _statement(context, statement)


def _statement(context: _CpuContext, statement: Statement) -> None:
    context.mark(statement.operation)
    if isinstance(statement, (Copy, Fill, Parallel)):
        _nest(context, statement)
    elif isinstance(statement, Gemm):
        lower_gemm(context, statement, context.copies, context.ahead.get(id(statement), ()))
    elif isinstance(statement, Reduce):
        lower_reduce(context, statement)
    elif isinstance(statement, Assign):
        context.emit(context.store_element(statement, atomic_update))
    elif isinstance(statement, Loop):
        extent = as_int(context.simplify(statement.extent))
        unroll = statement.kind == "unroll" and extent is not None and extent <= 64
        with context.nested() as body:
            context.mark(statement.operation)
            product = product_of(statement)
            if product is not None and extent != 1:
                block = (context.program.block_variables, context.next_block)
                context.ahead[id(product)] = streams_of(context, statement, block)
            _block(context, statement.body)
        kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL
        context.emit(
            tirx.For(
                statement.variable,
                context.bound(statement.start),
                context.bound(statement.extent),
                kind,
                sequence(body),
            )
        )
        context.mark(statement.operation)
    elif isinstance(statement, Conditional):
        condition, known = context.condition(statement.condition)
        with context.assuming(known), context.nested() as then:
            _block(context, statement.then)
        with context.nested() as otherwise:
            _block(context, statement.otherwise)
        context.emit(tirx.IfThenElse(condition, sequence(then), sequence(otherwise) if otherwise else None))
        context.mark(statement.operation)
    elif not isinstance(statement, Barrier):  # one thread runs the block: nothing to wait for
        raise TypeError(f"no lowering for {type(statement).__name__}")


# -- nests ---------------------------------------------------------------------------------------------------------


def _nest(context: _CpuContext, statement: Statement) -> None:
    """Loops over the nest; the last dimension in vectors, with a scalar, guarded version where a vector would be ragged."""
    if isinstance(statement, Fill) and statement.region.buffer.scope == "local":
        context.fill_local(statement)
        return
    nest = nest_of(context.program, statement)
    for assign in nest.body:
        if assign.buffer.scope == "global":  # bytes that are written one after another
            run = nest.extents[-1] * dtype_bytes(assign.buffer.dtype)
            context.runs[assign.buffer.name] = min(run, context.runs.get(assign.buffer.name, run))
    lanes = (context.target.vector_bits or 256) // 32
    if any(assign.atomic for assign in nest.body):
        lanes = 1  # two lanes of a vector may update one element
    while lanes > nest.extents[-1]:
        lanes //= 2
    portions = prod(nest.extents[:-1]) * (nest.extents[-1] // lanes if lanes > 1 else 0)
    ahead = Ahead(context, context.ahead.get(id(statement), ()) if portions else (), portions)
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
                ahead.portion(statement.operation)
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
    lane = tirx.Var(context.fresh("lane"), "int32")
    context.analyzer.bind(lane, ir.Range(0, lanes))
    condition = _all_in_range(context, nest, values, start, lane, lanes)
    if condition is not False:
        points = [*values, (nest.variables[-1], start + lane)]
        inner = [_assign(context, nest, assign, points, lanes, lane, guarded=False) for assign in nest.body]
        vector = tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, sequence(inner))
        if condition is None:
            context.emit(vector)
            return
    step, close = context.loop("point", lanes)
    with context.nested() as body:
        _scalar(context, nest, [*values, (nest.variables[-1], start + step)])
    if condition is False:
        close(body)
        return
    with context.nested() as scalar:
        close(body)
    context.emit(tirx.IfThenElse(condition, vector, sequence(scalar)))


def _all_in_range(
    context: Context, nest: Nest, values: list[tuple[Any, Expr]], start: Expr, lane: Any, lanes: int
) -> Any:
    """Condition that every access of ``lanes`` points is in range; None: always, False: no simple condition says so."""
    last = nest.variables[-1]
    result: Any = None
    for access in nest.accesses:
        if any(loads(item) for item in access.indices):
            return False

        def at(value: Expr, indices: tuple[Expr, ...] = access.indices) -> tuple[Any, ...]:
            return tuple(substitute(index(item), [*values, (last, value)]) for item in indices)

        if context.guard(access.buffer, at(start + lane)) is None:
            continue
        steps = zip(at(start + lane + 1), at(start + lane), strict=True)
        if any(as_int(context.simplify(after - before)) is None for after, before in steps):
            return False
        # An index that moves by the same step with every lane is in between what it is at both ends.
        result = both(result, context.guard(access.buffer, at(start), at(start + (lanes - 1))))
    return result


def _scalar(context: Context, nest: Nest, values: list[tuple[Any, Expr]]) -> None:
    for assign in nest.body:
        context.emit(_assign(context, nest, assign, values, 1, None, guarded=True))


def _assign(
    context: Context,
    nest: Nest,
    assign: Assign,
    values: list[tuple[Any, Expr]],
    lanes: int,
    lane: Any,
    *,
    guarded: bool,
) -> Any:
    # A local tile that the nest writes belongs to one point: in a vector it has one copy for each lane.
    own = {item.buffer.name for item in nest.body if item.buffer.scope == "local"} if lanes > 1 else set()

    def place(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Any, Any]:
        number = context.element(buffer, indices)
        if buffer.name not in own:
            return context.storage[buffer.name], index(number)
        return _lane_storage(context, buffer, lanes), index(number * lanes + lane)

    def read(load: Any) -> Any:
        buffer = context.program.buffer_of(load.source)
        indices = tuple(load.indices)
        storage, number = place(buffer, indices)
        guard = context.guard(buffer, indices) if guarded else None
        return (
            storage[number]
            if guard is None
            else tirx.if_then_else(guard, storage[number], tirx.const(0, buffer.tvm_dtype))
        )

    value = context.decide(replace_loads(substitute(assign.value, values), read))
    indices = tuple(replace_loads(substitute(index(item), values), read) for item in assign.indices)
    storage, number = place(assign.buffer, indices)
    store = tirx.BufferStore(storage, value, [number])
    if assign.atomic:
        store = atomic_update(context, assign.buffer, number, [value], assign.atomic, assign.operation)
    guard = context.guard(assign.buffer, indices) if guarded else None
    return store if guard is None else tirx.IfThenElse(guard, store, None)


def _lane_storage(context: Context, buffer: Buffer, lanes: int) -> Any:
    """A local tile with one copy for each lane, lanes side by side."""
    key = f"{buffer.name}@{lanes}"
    if key not in context.storage:
        context.storage[key] = context.registers(f"{buffer.name}_lanes", buffer.tvm_dtype, buffer.elements * lanes)
    return context.storage[key]


__all__ = ["lower_cpu"]
