"""Matrix products on a CPU: register blocks of C are summed over many steps of K, then added to the tile.

For a panel of ``vectors`` x ``lanes`` columns, and in it for each block of ``rows`` rows::

    panel[..] = B[k0 : k0 + depth, columns]      # where B is not a tile in the accumulator's type
    acc[..] = 0
    for k:                                       # serial; the rest is written out
        b[v] = panel[k, v * lanes : ...]
        acc[r, v] += broadcast(A[row + r, k]) * b[v]
    C[..] += acc[..]

``acc`` is one array that is accessed at constant places only, which LLVM keeps in registers.  A panel is no deeper than the first
cache holds.  An A that is not in the accumulator's type is widened into an array of its own once for each product, because
converting where it is used halves the speed.  Block shapes: see :mod:`tilelang_min.codegen.cpu`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tilelang_min.analysis.limits import require_accumulator
from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Copy, Expr, Gemm
from tilelang_min.lower.blocks_cpu import Columns, Product, columns, load, store, vector_type
from tilelang_min.lower.context import Context
from tilelang_min.lower.dot_cpu import DotProduct, dots, packed_rows, packed_words
from tilelang_min.lower.forward_cpu import Matrix, matrix
from tilelang_min.lower.prefetch_cpu import Ahead, Stream, portions
from tilelang_min.program.dtypes import DATA_TYPES
from tilelang_min.targets.cpu import PANEL_BYTES


def lower_gemm(
    context: Context, gemm: Gemm, copies: dict[str, Copy] | None = None, streams: Sequence[Stream] = ()
) -> None:
    """One T.gemm.  ``copies`` by tile were not made: their tensors are read instead; lines of ``streams`` are fetched meanwhile."""
    require_accumulator(context.target, gemm, context.program.operations[gemm.operation].location)
    bits = context.target.vector_bits or 256
    wide = gemm.c.buffer.dtype
    size = DATA_TYPES[wide].size
    lanes = bits // (8 * size)
    if gemm.clear:
        _clear(context, gemm, lanes)
    a = matrix(context, gemm.a, copies or {})
    b = matrix(context, gemm.b, copies or {})
    if gemm.transpose_b:
        b = b.turned()
    words = dots(context.target, gemm, a.dtype, b.dtype)
    if words is None and a.dtype != wide:
        a = _widened(context, gemm, a, gemm.a.extents[-2:], lanes)
    if gemm.transpose_a:
        a = a.turned()
    if words is not None:
        a = packed_rows(context, gemm, a, words)
    groups = columns(gemm, context.target.registers.per_thread, lanes)
    blocks = sum(group.count * -(-gemm.m // group.rows) for group in groups)
    parts = segments(gemm, 1 if words is None else words.group, max(group.width for group in groups) * size)
    ahead = Ahead(context, streams, sum(part.count * blocks * portions(part.depth) for part in parts))
    for part in parts:
        step, close_step = context.loop("cs", part.count)
        with context.nested() as inside:
            for group in groups:
                column, close = context.loop("cj", group.count)
                with context.nested() as body:
                    context.mark(gemm.operation)
                    k0, start = part.first + step * part.depth, group.first + column * group.width
                    if words is None:
                        panel = _panel(context, gemm, b, k0, part.depth, group, start)
                        Product(context, gemm, a, panel, ahead, k0, part.depth, group, start).rows()
                    else:
                        panel = packed_words(context, gemm, b, words, k0, part.depth, part is parts[-1], group, start)
                        DotProduct(context, gemm, a, panel, ahead, k0, part.depth, group, start, words).rows()
                close(body)
                context.mark(gemm.operation)
        close_step(inside)
        context.mark(gemm.operation)


@dataclass(frozen=True)
class Segment:
    """``count`` parts of ``depth`` steps of the sum over k, from step ``first``."""

    first: int
    count: int
    depth: int


def segments(gemm: Gemm, group: int, step_bytes: int) -> list[Segment]:
    """The sum over k cut so that a panel of B, ``step_bytes`` for each ``group`` values of k, stays in the first cache.

    A step that k does not fill is in a segment of its own count.
    """
    steps = -(-gemm.k // group)
    parts = -(-steps * step_bytes // PANEL_BYTES)
    depth = min(steps, -(-steps // (8 * parts)) * 8)
    whole = (gemm.k // group) // depth
    found = [Segment(0, whole, depth)] if whole else []
    if steps > whole * depth:
        found.append(Segment(whole * depth, 1, steps - whole * depth))
    return found


def _clear(context: Context, gemm: Gemm, lanes: int) -> None:
    """C starts at zero."""
    c, elements = context.storage[gemm.c.buffer.name], gemm.m * gemm.n
    zero = tirx.const(0, gemm.c.buffer.dtype)
    while elements % lanes:
        lanes //= 2
    item, close = context.loop("zero", elements // lanes)
    close([store(c, index(item * lanes), zero if lanes == 1 else tirx.Broadcast(zero, lanes), lanes)])


def _widened(context: Context, gemm: Gemm, source: Matrix, extents: tuple[int, ...], lanes: int) -> Matrix:
    """A copy of the operand in the accumulator's type."""
    wide = gemm.c.buffer.dtype
    rows, columns = extents
    copy = context.array("a_wide", wide, rows * columns)
    made = Matrix(copy, wide, 0, columns, 1)
    while columns % lanes:
        lanes //= 2
    if source.operation is not None:
        context.mark(source.operation)
    row, close_row = context.loop("pi", rows)
    column, close_column = context.loop("pj", columns // lanes)
    with context.nested() as outer:
        value = tirx.Cast(vector_type(wide, lanes), load(source.buffer, source.at(row, column * lanes), lanes))
        close_column([store(copy, made.at(row, column * lanes), value, lanes)])
    close_row(outer)
    context.mark(gemm.operation)
    return made


def _panel(context: Context, gemm: Gemm, b: Matrix, k0: Expr, depth: int, group: Columns, column: Expr) -> Matrix:
    """Rows ``k0`` to ``k0 + depth`` of a panel of B, as (row, column) of the panel: where they lie, or packed."""
    wide = gemm.c.buffer.dtype
    # Rows far apart share few sets of the first cache; with a few blocks of rows a panel is not read often enough to matter.
    together = b.row == group.width or gemm.m <= 2 * group.rows
    if b.dtype == wide and b.column == 1 and b.operation is None and together:
        return Matrix(b.buffer, wide, b.start + k0 * b.row + column, b.row, 1)
    packed = context.array("b_panel", wide, depth * group.width)
    made = Matrix(packed, wide, 0, group.width, 1)
    if b.operation is not None:
        context.mark(b.operation)
    if b.column == 1:
        k, close = context.loop("pk", depth)
        body = []
        for vector in range(group.vectors):
            place = vector * group.lanes
            value = load(b.buffer, b.at(k0 + k, column + place), group.lanes)
            if b.dtype != wide:
                value = tirx.Cast(vector_type(wide, group.lanes), value)
            body.append(store(packed, made.at(k, place), value, group.lanes))
        close(body)
    else:
        lanes = group.lanes
        while depth % lanes:
            lanes //= 2
        j, close_j = context.loop("pj", group.width)
        k, close_k = context.loop("pk", depth // lanes)
        lane = tirx.Var(context.fresh("lane"), "int32")
        with context.nested() as outer:
            place = k * lanes + lane
            value = b.buffer[b.at(k0 + place, column + j)]
            if b.dtype != wide:
                value = tirx.Cast(wide, value)
            element = tirx.BufferStore(packed, value, [made.at(place, j)])
            close_k([tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, element)])
        close_j(outer)
    context.mark(gemm.operation)
    return made
