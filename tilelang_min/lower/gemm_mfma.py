"""Matrix products by MFMA.

A lane's elements of A along K are contiguous in a row-major tile, so ``k_pack`` instructions share one wide read; B is read at
the same K, ``column_pack`` neighbouring columns at a time, and spread over as many column tiles.  The order of K inside a pack
differs from row-major, which a sum does not mind as long as A and B agree.
"""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.layout import MatrixLayout
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.ir.operand_reads import run_width, warp_start
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.lower.context import Context


def lower_mfma(context: Context, gemm: Gemm, plan: GemmPlan) -> None:
    """One T.gemm on matrix cores."""
    layout, instruction = plan.layout, plan.instruction
    assert isinstance(layout, MatrixLayout)
    rows, columns = layout.tiles
    items = instruction.a_map.items
    run = items * plan.k_pack
    lane = context.thread % layout.warp_size
    row_start, column_start = warp_start(plan, context.thread)
    a = context.registers("a_frag", gemm.a.buffer.tvm_dtype, run * rows)
    b = context.registers("b_frag", gemm.b.buffer.tvm_dtype, run * columns)
    pair = context.registers("b_pair", gemm.b.buffer.tvm_dtype, layout.column_pack) if layout.column_pack > 1 else None
    c = context.storage[gemm.c.buffer.name]
    a_row, a_k = instruction.a_map(lane, 0)
    b_k, b_column = instruction.b_map(lane, 0)
    # Lanes that differ in K hold runs of `items`; with a pack they hold runs of `items * k_pack`.
    for k in range(0, gemm.k, instruction.k * plan.k_pack):
        for row in range(rows):
            start = row_start + row * instruction.m + a_row
            at = k + a_k * plan.k_pack
            if plan.a_registers is not None:
                _take(context, a, row * run, context.storage[gemm.a.buffer.name], plan.held("a", gemm, row, k))
                continue
            _read_run(context, gemm.a, gemm.a_stage, a, row * run, run, start, at, along_k=not gemm.transpose_a)
        for column in range(0, columns, layout.column_pack):
            start = column_start + column * instruction.n + b_column * layout.column_pack
            at = k + b_k * plan.k_pack
            if plan.b_registers is not None:
                _take(context, b, column * run, context.storage[gemm.b.buffer.name], plan.held("b", gemm, column, k))
                continue
            if pair is None:
                _read_run(context, gemm.b, gemm.b_stage, b, column * run, run, start, at, along_k=gemm.transpose_b)
                continue
            for item in range(run):
                _read_columns(context, gemm, pair, layout.column_pack, at + item, start)
                for part in range(layout.column_pack):
                    slot = tirx.IntImm("int32", (column + part) * run + item)
                    context.emit(tirx.BufferStore(b, pair[part], [slot]))
        for step in range(plan.k_pack):
            for row in range(rows):
                for column in range(columns):
                    _multiply(
                        context,
                        plan,
                        c,
                        layout.register(row, column, 0),
                        a,
                        row * run + step * items,
                        b,
                        column * run + step * items,
                    )


def _take(context: Context, target: Any, first: int, fragment: Any, held: tuple[int, ...]) -> None:
    """An operand's items from a fragment's registers."""
    for place, item in enumerate(held):
        context.emit(tirx.BufferStore(target, fragment[index(item)], [index(first + place)]))


def _read_run(
    context: Context,
    region: Region,
    stage: Expr,
    target: Any,
    first: int,
    run: int,
    place: Expr,
    k: Expr,
    *,
    along_k: bool,
) -> None:
    """``run`` successive K at row (of A) or column (of B) ``place``: in vectors where K lies along the tile's aligned rows."""
    if not along_k:
        for item in range(run):
            value = context.read_at(region, stage, k + item, place)
            context.emit(tirx.BufferStore(target, value, [tirx.IntImm("int32", first + item)]))
        return
    width = run_width(region, run, context.whole)
    for item in range(0, run, width):
        if width == 1:
            value = context.read_at(region, stage, place, k + item)
            context.emit(tirx.BufferStore(target, value, [tirx.IntImm("int32", first + item)]))
            continue
        base = context.place(region, stage, place, k + item)
        load = tirx.BufferLoad(context.storage[region.buffer.name], [tirx.Ramp(base, 1, width)])
        context.emit(tirx.BufferStore(target, load, [tirx.Ramp(first + item, 1, width)]))


def _read_columns(context: Context, gemm: Gemm, pair: Any, count: int, k: Expr, column: Expr) -> None:
    """``count`` neighbouring columns of B, as one vector where they lie together."""
    if context.whole(gemm.b.buffer, count):
        ramp = tirx.Ramp(context.place(gemm.b, gemm.b_stage, k, column), 1, count)
        load = tirx.BufferLoad(context.storage[gemm.b.buffer.name], [ramp])
        context.emit(tirx.BufferStore(pair, load, [tirx.Ramp(0, 1, count)]))
        return
    for part in range(count):
        value = context.read_at(gemm.b, gemm.b_stage, k, column + part)
        context.emit(tirx.BufferStore(pair, value, [tirx.IntImm("int32", part)]))


def _multiply(
    context: Context, plan: GemmPlan, c: Any, c_first: int, a: Any, a_first: int, b: Any, b_first: int
) -> None:
    instruction = plan.instruction
    items, results = instruction.a_map.items, instruction.c_map.items

    def operand(buffer: Any, first: int, kind: str) -> Any:
        value = buffer[first] if items == 1 else tirx.BufferLoad(buffer, [tirx.Ramp(first, 1, items)])
        return value if str(value.ty.dtype) == kind else tirx.reinterpret(kind, value)

    accumulator = [tirx.Ramp(c_first, 1, results)]
    product = tirx.call_llvm_pure_intrin(
        ir.PrimType(instruction.c_operand),
        instruction.name,
        operand(a, a_first, instruction.a_operand),
        operand(b, b_first, instruction.b_operand),
        tirx.BufferLoad(c, accumulator),
        *(tirx.IntImm("int32", value) for value in instruction.modifiers),
    )
    context.emit(tirx.BufferStore(c, product, accumulator))
