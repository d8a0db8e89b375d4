"""Which elements of its operands in shared memory every lane reads in a matrix product.

One description for lowering, which emits these reads, and for the choice of layouts, which counts what they cost.  Places are
functions of the thread's number, written with ``+ * // %`` only, so that it may be an integer, a NumPy array or a TVM expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilelang_min.ir.layout import BlockedLayout, GridLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.nodes import Buffer, Expr, Gemm, Region
from tilelang_min.ir.plans import GemmPlan, ldmatrix_brings
from tilelang_min.program.dtypes import dtype_bytes

Whole = Callable[[Buffer, int], bool]
"""Whether so many elements of a tile's row lie together and aligned, in the layout that the tile has."""


@dataclass(frozen=True, eq=False)
class OperandRead:
    """One instruction that reads operand ``operand`` (``a`` or ``b``).

    Every lane reads ``elements`` in a row from ``place``, (row, column) of the operand's region, or with ``matrices`` gives
    ldmatrix the address of 16 bytes there.
    """

    operand: str
    place: tuple[Expr, Expr]
    elements: int
    matrices: int | None = None


def operand_reads(gemm: Gemm, plan: GemmPlan, thread: Any, whole: Whole) -> Iterator[OperandRead]:
    """All reads of a product's shared operands, in the order in which they are emitted; nothing for a plan of another family."""
    if plan.kind == "mma":
        yield from _mma_reads(gemm, plan, thread)
    elif plan.kind == "mfma":
        yield from _mfma_reads(gemm, plan, thread, whole)
    elif plan.kind == "outer":
        yield from _outer_reads(gemm, plan, thread, whole)
    elif plan.kind == "plain":
        yield from _plain_reads(gemm, plan, thread)


def aligned_columns(region: Region, width: int) -> bool:
    """Whether the rows of a tile as written, and the first column of the region, are whole multiples of ``width`` elements."""
    offset = region.offsets[-1]
    return region.buffer.shape[-1] % width == 0 and isinstance(offset, int) and offset % width == 0


# -- mma.sync ------------------------------------------------------------------------------------------------------


def ldmatrix_a(lane: Expr, row: Expr, k: int, transposed: bool, instruction: Any, chunk: int) -> tuple[Expr, Expr]:
    """Row and column in the shared tile of A that ``lane`` hands to ldmatrix; ``chunk`` elements are 16 bytes.

    The four matrices of x4 are (rows 0-7, first chunk of K), (rows 8-15, first), (rows 0-7, second), (rows 8-15, second), in the
    order of the operand registers; lanes 8i to 8i + 7 give the rows of matrix i.  x2 has the first chunk alone, x1 8 rows.
    """
    tall, deep = instruction.m == 16, instruction.k == 2 * chunk
    if not transposed:
        return row + lane % (16 if tall else 8), k + lane // 16 * chunk if deep else k + lane * 0
    along = k + lane // 16 * 8 + lane % 8 if deep else k + lane % 8
    return along, row + lane // 8 % 2 * 8


def ldmatrix_b(lane: Expr, column: Expr, k: int, transposed: bool, words: int, chunk: int) -> tuple[Expr, Expr]:
    """Row and column in the shared tile of B: matrices (first chunk of K, columns 0-7), (second, columns 0-7), then columns 8-15;
    without the second where an operand is one register."""
    if words == 1:
        return (column + lane % 16, k + lane * 0) if transposed else (k + lane % 8, column + lane // 8 % 2 * 8)
    if not transposed:
        return k + lane % 16, column + lane // 16 * 8
    return column + lane // 16 * 8 + lane % 8, k + lane // 8 % 2 * chunk


def warp_start(plan: GemmPlan, thread: Expr) -> tuple[Expr, Expr]:
    """First row and column of C of the thread's warp."""
    layout, instruction = plan.layout, plan.instruction
    assert isinstance(layout, MatrixLayout)
    warp = thread // layout.warp_size
    return (
        warp // layout.warps[1] * (layout.tiles[0] * instruction.m),
        warp % layout.warps[1] * (layout.tiles[1] * instruction.n),
    )


def _mma_reads(gemm: Gemm, plan: GemmPlan, thread: Any) -> Iterator[OperandRead]:
    layout, instruction = plan.layout, plan.instruction
    assert isinstance(layout, MatrixLayout)
    lane = thread % layout.warp_size
    row_start, column_start = warp_start(plan, thread)
    a_words, b_words = instruction.registers("a"), instruction.registers("b")
    a_size, b_size = dtype_bytes(gemm.a.buffer.dtype), dtype_bytes(gemm.b.buffer.dtype)
    a_matrices = ldmatrix_brings(gemm.a.buffer.dtype, not gemm.transpose_a)
    b_matrices = ldmatrix_brings(gemm.b.buffer.dtype, gemm.transpose_b)
    for k in range(0, gemm.k, instruction.k):
        for tile in range(layout.tiles[0] if gemm.a.buffer.scope == "shared" else 0):
            start = row_start + tile * instruction.m
            if a_matrices:
                place = ldmatrix_a(lane, start, k, gemm.transpose_a, instruction, 16 // a_size)
                yield OperandRead("a", place, 16 // a_size, a_words)
                continue
            for item in range(instruction.a_map.items):
                r, along = instruction.a_map(lane, item)
                place = (k + along, start + r) if gemm.transpose_a else (start + r, k + along)
                yield OperandRead("a", place, 1)
        for tile in range(0, layout.tiles[1] if gemm.b.buffer.scope == "shared" else 0, 2):
            start = column_start + tile * instruction.n
            if b_matrices:
                place = ldmatrix_b(lane, start, k, gemm.transpose_b, b_words, 16 // b_size)
                yield OperandRead("b", place, 16 // b_size, 2 * b_words)
                continue
            for part in range(2):
                for item in range(instruction.b_map.items):
                    along, c = instruction.b_map(lane, item)
                    at = start + part * instruction.n + c
                    yield OperandRead("b", ((at, k + along) if gemm.transpose_b else (k + along, at)), 1)


# -- MFMA ----------------------------------------------------------------------------------------------------------


def run_width(region: Region, run: int, whole: Whole) -> int:
    """How many of ``run`` neighbours of a row are read at once: at most 16 bytes."""
    width, size = run, dtype_bytes(region.buffer.dtype)
    while width > 1 and (width * size > 16 or not aligned_columns(region, width) or not whole(region.buffer, width)):
        width //= 2
    return width


def _mfma_reads(gemm: Gemm, plan: GemmPlan, thread: Any, whole: Whole) -> Iterator[OperandRead]:
    layout, instruction = plan.layout, plan.instruction
    assert isinstance(layout, MatrixLayout)
    lane = thread % layout.warp_size
    row_start, column_start = warp_start(plan, thread)
    run, pack = instruction.a_map.items * plan.k_pack, layout.column_pack
    a_row, a_k = instruction.a_map(lane, 0)
    b_k, b_column = instruction.b_map(lane, 0)
    for k in range(0, gemm.k, instruction.k * plan.k_pack):
        for tile in range(layout.tiles[0] if gemm.a.buffer.scope == "shared" else 0):
            place = row_start + tile * instruction.m + a_row
            yield from _run("a", gemm.a, place, k + a_k * plan.k_pack, run, not gemm.transpose_a, whole)
        for tile in range(0, layout.tiles[1] if gemm.b.buffer.scope == "shared" else 0, pack):
            place, at = column_start + tile * instruction.n + b_column * pack, k + b_k * plan.k_pack
            if pack == 1:
                yield from _run("b", gemm.b, place, at, run, gemm.transpose_b, whole)
                continue
            width = pack if whole(gemm.b.buffer, pack) else 1
            for item in range(run):
                for part in range(0, pack, width):
                    yield OperandRead("b", (at + item, place + part), width)


def _run(
    operand: str, region: Region, place: Expr, k: Expr, run: int, along_k: bool, whole: Whole
) -> Iterator[OperandRead]:
    if not along_k:
        for item in range(run):
            yield OperandRead(operand, (k + item, place), 1)
        return
    width = run_width(region, run, whole)
    for item in range(0, run, width):
        yield OperandRead(operand, (place, k + item), width)


# -- FMA -----------------------------------------------------------------------------------------------------------


def outer_widths(gemm: Gemm, layout: OuterProductLayout, whole: Whole) -> tuple[int, int]:
    """Elements of K that are read at once of a row of A, or of B where only its rows run along K (16 bytes, at most 8); and
    columns of a row of B."""
    step, width = 1, 1
    if not gemm.transpose_a or gemm.transpose_b:
        region = gemm.b if gemm.transpose_a else gemm.a
        most = min(8, 16 // dtype_bytes(region.buffer.dtype))
        fitting = (size for size in (8, 4, 2) if size <= most and gemm.k % size == 0)
        step = next((size for size in fitting if aligned_columns(region, size) and whole(region.buffer, size)), 1)
    if not gemm.transpose_b:
        width = min(layout.vector, 16 // dtype_bytes(gemm.b.buffer.dtype))
        while width > 1 and not (aligned_columns(gemm.b, width) and whole(gemm.b.buffer, width)):
            width //= 2
    return step, width


def outer_along_k(gemm: Gemm, step: int, whole: Whole) -> int:
    """How many of ``step`` elements along K of a column of a transposed B are read at once."""
    return step if aligned_columns(gemm.b, step) and whole(gemm.b.buffer, step) else 1


def _outer_reads(gemm: Gemm, plan: GemmPlan, thread: Any, whole: Whole) -> Iterator[OperandRead]:
    layout = plan.layout
    assert isinstance(layout, OuterProductLayout)
    step, width = outer_widths(gemm, layout, whole)
    for k in range(0, gemm.k, step):
        for row in range(layout.rows):
            at = layout.row(thread, row)
            if gemm.transpose_a:
                yield from (OperandRead("a", (k + part, at), 1) for part in range(step))
            else:
                yield OperandRead("a", (at, k), step)
        if gemm.transpose_b:
            along = outer_along_k(gemm, step, whole)
            for column in range(layout.columns):
                at = layout.column(thread, column)
                yield from (OperandRead("b", (at, k + part), along) for part in range(0, step, along))
            continue
        for part in range(step):
            for column in range(0, layout.columns, width):
                yield OperandRead("b", (k + part, layout.column(thread, column)), width)


def _plain_reads(gemm: Gemm, plan: GemmPlan, thread: Any) -> Iterator[OperandRead]:
    assert isinstance(plan.layout, (BlockedLayout, GridLayout))
    for k in range(gemm.k):
        for register in range(plan.layout.registers):
            row, column = plan.layout.position(thread, register)
            yield OperandRead("a", ((k, row) if gemm.transpose_a else (row, k)), 1)
            yield OperandRead("b", ((column, k) if gemm.transpose_b else (k, column)), 1)


__all__ = [
    "OperandRead",
    "Whole",
    "aligned_columns",
    "ldmatrix_a",
    "ldmatrix_b",
    "operand_reads",
    "outer_along_k",
    "outer_widths",
    "run_width",
    "warp_start",
]
