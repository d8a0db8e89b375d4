"""Matrix products on a CPU: a register block of C is summed over all of K, then added to the tile.

``rows`` x ``vectors`` accumulators, each an array of one vector register, start at zero; for every k one vector of B is loaded
for each column vector and multiplied with broadcast elements of A.  The accumulators are separate small arrays because those,
and only those, are kept in registers by LLVM.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Gemm
from tilelang_min.lower.context import Context


def lower_gemm(context: Context, gemm: Gemm) -> None:
    """One T.gemm."""
    c = context.storage[gemm.c.buffer.name]
    if gemm.clear:
        item, close = context.loop("zero", gemm.m * gemm.n)
        close([tirx.BufferStore(c, tirx.const(0.0, gemm.c.buffer.dtype), [item])])
    lanes = (context.target.vector_bits or 256) // 32
    registers = 16 if context.target.vector_bits == 512 else 8
    if gemm.transpose_b or gemm.n < lanes:
        _dot(context, gemm, 0, gemm.n)
        return
    done = 0
    vectors = next(count for count in (4, 2, 1) if gemm.n >= count * lanes)
    rows = max(1, registers // vectors)
    while vectors:
        columns = (gemm.n - done) // (vectors * lanes)
        if columns:
            _columns(context, gemm, rows, vectors, lanes, done, columns)
            done += columns * vectors * lanes
        vectors //= 2
    if done < gemm.n:
        _dot(context, gemm, done, gemm.n - done)


def _columns(context: Context, gemm: Gemm, rows: int, vectors: int, lanes: int, start: int, count: int) -> None:
    """``count`` column blocks from ``start``, for all rows: whole row blocks, then the remaining rows one by one."""
    column, close_column = context.loop("cj", count)
    at = start + column * (vectors * lanes)
    with context.nested() as body:
        context.mark(gemm.operation)
        whole, rest = divmod(gemm.m, rows)
        for number, height, first in ((whole, rows, 0), (rest, 1, whole * rows)):
            if number:
                row, close_row = context.loop("ci", number)
                with context.nested() as inner:
                    context.mark(gemm.operation)
                    _micro(context, gemm, height, vectors, lanes, first + row * height, at)
                close_row(inner)
    close_column(body)
    context.mark(gemm.operation)


def _micro(context: Context, gemm: Gemm, rows: int, vectors: int, lanes: int, row: Expr, column: Expr) -> None:
    wide = gemm.c.buffer.dtype
    c = context.storage[gemm.c.buffer.name]
    whole = tirx.Ramp(0, 1, lanes)
    names = [[f"acc_{r}_{v}" for v in range(vectors)] for r in range(rows)]
    accumulators = [[_register(context, name, wide, lanes) for name in line] for line in names]
    for line in accumulators:
        for accumulator in line:
            context.emit(tirx.BufferStore(accumulator, tirx.Broadcast(tirx.const(0.0, wide), lanes), [whole]))
    k, close = context.loop("ck", gemm.k)
    with context.nested() as body:
        context.mark(gemm.operation)
        b = []
        for vector in range(vectors):
            place = context.element(gemm.b.buffer, (gemm.b.offsets[0] + k, gemm.b.offsets[1] + column + vector * lanes))
            load = tirx.BufferLoad(context.storage[gemm.b.buffer.name], [tirx.Ramp(index(place), 1, lanes)])
            value = load if gemm.b.buffer.dtype == wide else tirx.Cast(f"{wide}x{lanes}", load)
            register = _register(context, f"b_{vector}", wide, lanes)
            context.emit(tirx.BufferStore(register, value, [whole]))
            b.append(tirx.BufferLoad(register, [whole]))
        for r in range(rows):
            a = _a(context, gemm, row + r, k)
            factor = tirx.Broadcast(a if gemm.a.buffer.dtype == wide else tirx.Cast(wide, a), lanes)
            for vector in range(vectors):
                total = tirx.BufferLoad(accumulators[r][vector], [whole]) + factor * b[vector]
                context.emit(tirx.BufferStore(accumulators[r][vector], total, [whole]))
    close(body)
    context.mark(gemm.operation)
    for r in range(rows):
        for vector in range(vectors):
            place = context.element(gemm.c.buffer, (row + r, column + vector * lanes))
            target = tirx.Ramp(index(place), 1, lanes)
            total = tirx.BufferLoad(c, [target]) + tirx.BufferLoad(accumulators[r][vector], [whole])
            context.emit(tirx.BufferStore(c, total, [target]))


def _register(context: Context, name: str, dtype: str, lanes: int) -> Any:
    """A one-vector array, shared by all register blocks of the kernel."""
    key = f"{name}@{dtype}x{lanes}"
    if key not in context.storage:
        context.storage[key] = context.registers(name, dtype, lanes)
    return context.storage[key]


def _a(context: Context, gemm: Gemm, row: Expr, k: Expr) -> Any:
    first, second = (k, row) if gemm.transpose_a else (row, k)
    place = context.element(gemm.a.buffer, (gemm.a.offsets[0] + first, gemm.a.offsets[1] + second))
    return context.storage[gemm.a.buffer.name][index(place)]


def _dot(context: Context, gemm: Gemm, start: int, count: int) -> None:
    """Columns that do not fill a vector, and transposed B: one element of C at a time."""
    wide = gemm.c.buffer.dtype
    c = context.storage[gemm.c.buffer.name]
    row, close_row = context.loop("di", gemm.m)
    column, close_column = context.loop("dj", count)
    k, close_k = context.loop("dk", gemm.k)
    at = start + column
    first, second = (at, k) if gemm.transpose_b else (k, at)
    place = context.element(gemm.b.buffer, (gemm.b.offsets[0] + first, gemm.b.offsets[1] + second))
    a, b = _a(context, gemm, row, k), context.storage[gemm.b.buffer.name][index(place)]
    slot = index(context.element(gemm.c.buffer, (row, at)))
    left = a if gemm.a.buffer.dtype == wide else tirx.Cast(wide, a)
    right = b if gemm.b.buffer.dtype == wide else tirx.Cast(wide, b)
    with context.nested() as middle:
        with context.nested() as inner:
            close_k([tirx.BufferStore(c, c[slot] + left * right, [slot])])
        close_column(inner)
    close_row(middle)
    context.mark(gemm.operation)
