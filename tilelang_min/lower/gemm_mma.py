"""Matrix products by mma.sync: operands through ldmatrix, two column tiles of B at a time.

For each step of 16 in K: one ldmatrix.x4 for each row tile of A (16x16), one for each pair of column tiles of B (16x16), then all
mma.sync of the warp's tile.
"""

from __future__ import annotations

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.layout import MatrixLayout
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.lower.context import Context


def lower_mma(context: Context, gemm: Gemm, plan: GemmPlan) -> None:
    """One T.gemm on tensor cores, float16 operands and float32 accumulator."""
    layout = plan.layout
    assert isinstance(layout, MatrixLayout)
    instruction = plan.instruction
    rows, columns = layout.tiles
    lane, warp = context.thread % 32, context.thread // 32
    row_start = warp // layout.warps[1] * (rows * instruction.m)
    column_start = warp % layout.warps[1] * (columns * instruction.n)
    a = context.registers("a_frag", "uint32", 4 * rows)
    b = context.registers("b_frag", "uint32", 2 * columns)
    c = context.storage[gemm.c.buffer.name]
    for k in range(0, gemm.k, instruction.k):
        for tile in range(rows):
            start = row_start + tile * instruction.m
            _ldmatrix(
                context,
                a,
                4 * tile,
                gemm.a,
                gemm.a_stage,
                gemm.transpose_a,
                *_a_address(lane, start, k, gemm.transpose_a),
            )
        for tile in range(0, columns, 2):
            start = column_start + tile * instruction.n
            transposed = not gemm.transpose_b  # rows of a K x N tile are K: mma wants them as columns
            _ldmatrix(
                context, b, 2 * tile, gemm.b, gemm.b_stage, transposed, *_b_address(lane, start, k, gemm.transpose_b)
            )
        for row in range(rows):
            for column in range(columns):
                first = layout.register(row, column, 0)
                accumulator = [c[first + item] for item in range(4)]
                operands = [a[4 * row + item] for item in range(4)] + [b[2 * column + item] for item in range(2)]
                context.emit(tirx.Evaluate(ptx[instruction.name](*accumulator, *operands, *accumulator)))


def _a_address(lane: Expr, row: Expr, k: int, transposed: bool) -> tuple[Expr, Expr]:
    """Row and column in the shared tile of A that ``lane`` hands to ldmatrix.x4.

    The four matrices are (rows 0-7, K 0-7), (rows 8-15, K 0-7), (rows 0-7, K 8-15), (rows 8-15, K 8-15), in the order of the
    operand registers; lanes 8i to 8i + 7 give the rows of matrix i.
    """
    if not transposed:
        return row + lane % 16, k + lane // 16 * 8
    return k + lane // 16 * 8 + lane % 8, row + lane // 8 % 2 * 8


def _b_address(lane: Expr, column: Expr, k: int, transposed: bool) -> tuple[Expr, Expr]:
    """Row and column in the shared tile of B: matrices (K 0-7, columns 0-7), (K 8-15, columns 0-7), then columns 8-15."""
    if not transposed:
        return k + lane % 16, column + lane // 16 * 8
    return column + lane // 16 * 8 + lane % 8, k + lane // 8 % 2 * 8


def _ldmatrix(
    context: Context,
    registers: object,
    first: int,
    region: Region,
    stage: Expr,
    transposed: bool,
    row: Expr,
    column: Expr,
) -> None:
    indices = (region.offsets[0] + row, region.offsets[1] + column)
    address = context.storage[region.buffer.name].ptr_to([index(context.element(region.buffer, indices, stage))])
    name = f"ldmatrix.sync.aligned.m8n8.x4{'.trans' if transposed else ''}.shared::cta.b16"
    targets = [registers[first + item] for item in range(4)]  # type: ignore[index]
    context.emit(tirx.Evaluate(ptx[name](*targets, address)))
