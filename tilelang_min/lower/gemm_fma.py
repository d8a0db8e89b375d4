"""Matrix products by fused multiply-add, on GPUs: register blocks (``outer``) or one element at a time (``plain``).

Operands are widened where they are multiplied, so all arithmetic is in the accumulator's type.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tilelang_min.ir.layout import FragmentLayout, OuterProductLayout
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.ir.operand_reads import outer_along_k, outer_widths
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.lower.context import Context


def lower_fma(context: Context, gemm: Gemm, plan: GemmPlan) -> None:
    """One T.gemm without matrix instructions."""
    if plan.kind == "outer":
        assert isinstance(plan.layout, OuterProductLayout)
        _outer(context, gemm, plan.layout)
    else:
        _plain(context, gemm, plan.layout)


def _outer(context: Context, gemm: Gemm, layout: OuterProductLayout) -> None:
    """Each thread multiplies its rows of A with its columns of B, a vector of K at a time."""
    wide = gemm.c.buffer.tvm_dtype
    step, width = outer_widths(gemm, layout, context.whole)
    rows, columns = layout.rows, layout.columns
    a = context.registers("a_reg", gemm.a.buffer.tvm_dtype, rows * step)
    b = context.registers("b_reg", gemm.b.buffer.tvm_dtype, step * columns)
    c = context.storage[gemm.c.buffer.name]
    chunk, close_chunk = context.loop("kc", gemm.k // step)
    with context.nested() as body:
        context.mark(gemm.operation)
        for row in range(rows):
            at = layout.row(context.thread, row)
            _read(context, gemm.a, gemm.a_stage, a, row * step, step, at, chunk * step, gemm.transpose_a)
        along_k = outer_along_k(gemm, step, context.whole)
        for column in range(columns if gemm.transpose_b else 0):  # along a row in memory
            at = layout.column(context.thread, column)
            for part in range(0, step, along_k):
                slot, k = column * step + part, chunk * step + part
                _read(context, gemm.b, gemm.b_stage, b, slot, along_k, at, k, False)
        for part in range(0 if gemm.transpose_b else step):
            for column in range(0, columns, width):
                at = layout.column(context.thread, column)
                k = chunk * step + part
                _read(context, gemm.b, gemm.b_stage, b, part * columns + column, width, k, at, False)
        k_var, close_k = context.loop("kk", step, unroll=True)
        with context.nested() as k_body:
            row_var, close_row = context.loop("r", rows, unroll=True)
            with context.nested() as row_body:
                column_var, close_column = context.loop("c", columns, unroll=True)
                slot = row_var * columns + column_var
                left = _widen(a[row_var * step + k_var], wide)
                place = column_var * step + k_var if gemm.transpose_b else k_var * columns + column_var
                right = _widen(b[place], wide)
                close_column([tirx.BufferStore(c, c[slot] + left * right, [slot])])
            close_row(row_body)
        close_k(k_body)
    close_chunk(body)
    context.mark(gemm.operation)


def _plain(context: Context, gemm: Gemm, layout: FragmentLayout) -> None:
    """Each thread sums its own elements of C, whatever their place."""
    c, wide = context.storage[gemm.c.buffer.name], gemm.c.buffer.tvm_dtype
    k, close = context.loop("k", gemm.k)
    with context.nested() as body:
        context.mark(gemm.operation)
        for register in range(layout.registers):
            guard = context.exists(layout, register)
            row, column = layout.position(context.thread, register)
            left = context.read_at(gemm.a, gemm.a_stage, *((k, row) if gemm.transpose_a else (row, k)))
            right = context.read_at(gemm.b, gemm.b_stage, *((column, k) if gemm.transpose_b else (k, column)))
            slot = tirx.IntImm("int32", register)
            store = tirx.BufferStore(c, c[slot] + _widen(left, wide) * _widen(right, wide), [slot])
            context.emit(store if guard is None else tirx.IfThenElse(guard, store, None))
    close(body)
    context.mark(gemm.operation)


def _read(
    context: Context,
    region: Region,
    stage: Expr,
    target: Any,
    slot: int,
    width: int,
    row: Expr,
    column: Expr,
    transposed: bool,
) -> None:
    """``width`` elements of the tile at (row, column), along the row (along the column when ``transposed``)."""
    if transposed:
        for item in range(width):
            value = context.read_at(region, stage, column + item, row)
            context.emit(tirx.BufferStore(target, value, [tirx.IntImm("int32", slot + item)]))
        return
    base = context.place(region, stage, row, column)
    source = context.storage[region.buffer.name]
    if width == 1:
        context.emit(tirx.BufferStore(target, source[base], [tirx.IntImm("int32", slot)]))
    else:
        load = tirx.BufferLoad(source, [tirx.Ramp(base, 1, width)])
        context.emit(tirx.BufferStore(target, load, [tirx.Ramp(slot, 1, width)]))


def _widen(value: Any, dtype: str) -> Any:
    return value if str(value.ty.dtype) == dtype else tirx.Cast(dtype, value)
