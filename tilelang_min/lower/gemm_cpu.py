"""Matrix products on a CPU: register blocks of C are summed over all of K, then added to the tile.

For a block of ``rows`` x ``vectors`` vector registers::

    acc[..] = 0
    for k:                                   # serial; the rest is written out
        b[v] = B[k, column + v * lanes : ...]
        acc[r, v] += broadcast(A[row + r, k]) * b[v]
    C[..] += acc[..]

``acc`` is one array that is accessed at constant places only, which LLVM keeps in registers.  Operands that are not in the
accumulator's type are widened into arrays of their own once for each product, because converting where they are used halves
the speed; a transposed B is turned on the way.  Block shapes: see :mod:`tilelang_min.codegen.cpu`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tilelang_min.analysis.limits import require_accumulator
from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.lower.context import Context
from tilelang_min.program.dtypes import DATA_TYPES

_REGISTERS = {512: 32, 256: 16, 128: 16}
"""Vector registers by vector width in bits."""
_MOST_VECTORS = 4
"""Most column vectors of a block: more need more loads of B than they save loads of A."""


@dataclass(frozen=True)
class _Matrix:
    """Elements of a flat buffer: (i, j) is at ``start + i * row + j * column``."""

    buffer: Any
    start: Expr
    row: int
    column: int

    def at(self, i: Expr, j: Expr) -> Any:
        """Element number of (i, j)."""
        return index(self.start + i * self.row + j * self.column)


def lower_gemm(context: Context, gemm: Gemm) -> None:
    """One T.gemm."""
    require_accumulator(context.target, gemm, context.program.operations[gemm.operation].location)
    bits = context.target.vector_bits or 256
    lanes = bits // (8 * DATA_TYPES[gemm.c.buffer.dtype].size)
    if gemm.clear:
        _clear(context, gemm, lanes)
    a = _operand(context, gemm, gemm.a, turned=False, lanes=lanes)
    if gemm.transpose_a:
        a = _Matrix(a.buffer, a.start, a.column, a.row)
    b = _operand(context, gemm, gemm.b, turned=gemm.transpose_b, lanes=lanes)
    c = _Matrix(context.storage[gemm.c.buffer.name], 0, gemm.n, 1)
    done = 0
    while done < gemm.n:
        left = (gemm.n - done) // lanes
        if not left:
            lanes //= 2
            continue
        vectors, rows = block_shape(gemm.m, left, _REGISTERS.get(bits, 16))
        count = left // vectors
        column, close = context.loop("cj", count)
        with context.nested() as body:
            context.mark(gemm.operation)
            _rows(context, gemm, (a, b, c), rows, vectors, lanes, done + column * (vectors * lanes))
        close(body)
        context.mark(gemm.operation)
        done += count * vectors * lanes


def block_shape(m: int, vectors: int, registers: int) -> tuple[int, int]:
    """(column vectors, rows) of a register block for ``m`` rows and ``vectors`` column vectors.

    Three quarters of the registers at most hold accumulators; a row of B and one element of A need room too.  Taken is the shape
    with the fewest reads of operands for a multiplication (1 / rows of B, 1 / vectors of A), edges included.
    """
    best: tuple[float, int, int] | None = None
    for width in range(1, min(_MOST_VECTORS, vectors) + 1):
        most = min(m, registers * 3 // 4 // width, (registers - width - 1) // width)
        for height in range(1, most + 1):
            blocks = -(-m // height)
            reads = blocks * height / m * (1 / width) + blocks / m  # broadcasts of A, and loads of B, a multiplication
            waste = vectors % width / vectors
            cost = reads + waste / 4
            if best is None or cost < best[0] - 1e-9:
                best = (cost, width, height)
    if best is None:
        raise ValueError("a product has at least one row and one column")
    return best[1], best[2]


def _clear(context: Context, gemm: Gemm, lanes: int) -> None:
    """C starts at zero."""
    c, elements = context.storage[gemm.c.buffer.name], gemm.m * gemm.n
    zero = tirx.const(0, gemm.c.buffer.dtype)
    while elements % lanes:
        lanes //= 2
    item, close = context.loop("zero", elements // lanes)
    close([_store(c, index(item * lanes), zero if lanes == 1 else tirx.Broadcast(zero, lanes), lanes)])


def _operand(context: Context, gemm: Gemm, region: Region, *, turned: bool, lanes: int) -> _Matrix:
    """The region as a matrix of the accumulator's type: the tile itself, or a copy of its own.

    ``turned`` swaps its dimensions, so that they lie in memory as (second, first).
    """
    tile, wide = region.buffer, gemm.c.buffer.dtype
    rows, columns = region.extents
    start = context.simplify(region.offsets[0] * tile.shape[1] + region.offsets[1])
    source = _Matrix(context.storage[tile.name], start, tile.shape[1], 1)
    if tile.dtype == wide and not turned:
        return source
    copy = _array(context, f"{tile.name}_{'turned' if turned else 'wide'}", wide, rows * columns)
    made = _Matrix(copy, 0, *((1, rows) if turned else (columns, 1)))
    if turned:
        source = _Matrix(source.buffer, source.start, source.column, source.row)
        rows, columns = columns, rows
    while columns % lanes:
        lanes //= 2
    row, close_row = context.loop("pi", rows)
    column, close_column = context.loop("pj", columns // lanes)
    lane = tirx.Var(context.fresh("lane"), "int32")
    with context.nested() as outer:
        context.mark(gemm.operation)
        place = column * lanes + lane
        value: Any = source.buffer[source.at(row, place)]
        target = made.at(place, row) if turned else made.at(row, place)
        store = tirx.BufferStore(copy, value if tile.dtype == wide else tirx.Cast(wide, value), [target])
        close_column([tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, store)])
    close_row(outer)
    context.mark(gemm.operation)
    return _Matrix(copy, 0, columns, 1) if turned else made


def _rows(
    context: Context,
    gemm: Gemm,
    matrices: tuple[_Matrix, _Matrix, _Matrix],
    rows: int,
    vectors: int,
    lanes: int,
    column: Expr,
) -> None:
    """One column of register blocks: whole blocks in a loop, then one of the remaining rows."""
    whole, rest = divmod(gemm.m, rows)
    if whole:
        row, close = context.loop("ci", whole)
        with context.nested() as body:
            context.mark(gemm.operation)
            _block(context, gemm, matrices, rows, vectors, lanes, row * rows, column)
        close(body)
        context.mark(gemm.operation)
    if rest:
        _block(context, gemm, matrices, rest, vectors, lanes, whole * rows, column)


def _block(
    context: Context,
    gemm: Gemm,
    matrices: tuple[_Matrix, _Matrix, _Matrix],
    rows: int,
    vectors: int,
    lanes: int,
    row: Expr,
    column: Expr,
) -> None:
    a, b, c = matrices
    wide = gemm.c.buffer.dtype
    accumulators = _array(context, "acc", wide, rows * vectors * lanes)
    zero = tirx.const(0, wide)
    for place in range(rows * vectors):
        value = zero if lanes == 1 else tirx.Broadcast(zero, lanes)
        context.emit(_store(accumulators, place * lanes, value, lanes))
    k, close = context.loop("ck", gemm.k)
    with context.nested() as body:
        context.mark(gemm.operation)
        loaded = _array(context, "b_row", wide, vectors * lanes)
        for vector in range(vectors):
            value = _load(b.buffer, b.at(k, column + vector * lanes), lanes)
            context.emit(_store(loaded, vector * lanes, value, lanes))
        for r in range(rows):
            factor = a.buffer[a.at(row + r, k)]
            if lanes > 1:
                factor = tirx.Broadcast(factor, lanes)
            for vector in range(vectors):
                place = (r * vectors + vector) * lanes
                total = _load(accumulators, place, lanes) + factor * _load(loaded, vector * lanes, lanes)
                context.emit(_store(accumulators, place, total, lanes))
    close(body)
    context.mark(gemm.operation)
    for r in range(rows):
        for vector in range(vectors):
            place = c.at(row + r, column + vector * lanes)
            total = _load(c.buffer, place, lanes) + _load(accumulators, (r * vectors + vector) * lanes, lanes)
            context.emit(_store(c.buffer, place, total, lanes))


def _array(context: Context, name: str, dtype: str, elements: int) -> Any:
    """An array of the thread, shared by all products that need one of this name and size."""
    key = f"{name}@{dtype}x{elements}"
    if key not in context.storage:
        context.storage[key] = context.registers(name, dtype, elements)
    return context.storage[key]


def _load(buffer: Any, place: Any, lanes: int) -> Any:
    return buffer[index(place)] if lanes == 1 else tirx.BufferLoad(buffer, [tirx.Ramp(index(place), 1, lanes)])


def _store(buffer: Any, place: Any, value: Any, lanes: int) -> Any:
    return tirx.BufferStore(buffer, value, [index(place) if lanes == 1 else tirx.Ramp(index(place), 1, lanes)])
