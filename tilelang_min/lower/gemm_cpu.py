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
from typing import Any

from tvm import tirx

from tilelang_min.analysis.limits import require_accumulator
from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Copy, Expr, Gemm
from tilelang_min.lower.context import Context
from tilelang_min.lower.forward_cpu import Matrix, matrix
from tilelang_min.lower.prefetch_cpu import Ahead, Stream, portions
from tilelang_min.program.dtypes import DATA_TYPES
from tilelang_min.targets.cpu import PANEL_BYTES

_REGISTERS = {512: 32, 256: 16, 128: 16}
"""Vector registers by vector width in bits."""
_MOST_VECTORS = 4
"""Most column vectors of a block: more need more loads of B than they save loads of A."""


@dataclass(frozen=True)
class _Columns:
    """``count`` panels of ``vectors`` x ``lanes`` columns from column ``first``, cut into blocks of ``rows`` rows."""

    first: int
    count: int
    lanes: int
    vectors: int
    rows: int

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.lanes * self.vectors


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
    if a.dtype != wide:
        a = _widened(context, gemm, a, gemm.a.extents, lanes)
    if gemm.transpose_a:
        a = a.turned()
    b = matrix(context, gemm.b, copies or {})
    if gemm.transpose_b:
        b = b.turned()
    groups = _columns(gemm, bits, lanes)
    blocks = sum(group.count * -(-gemm.m // group.rows) for group in groups)
    segments = -(-gemm.k * max(group.width for group in groups) * size // PANEL_BYTES)
    depth = min(gemm.k, -(-gemm.k // (8 * segments)) * 8)
    steps = [(0, gemm.k // depth, depth)]
    if gemm.k % depth:
        steps.append((gemm.k // depth * depth, 1, gemm.k % depth))
    ahead = Ahead(context, streams, sum(count * blocks * portions(length) for _, count, length in steps))
    for first, count, length in steps:
        step, close_step = context.loop("cs", count)
        with context.nested() as inside:
            for group in groups:
                column, close = context.loop("cj", group.count)
                with context.nested() as body:
                    context.mark(gemm.operation)
                    k0, start = first + step * length, group.first + column * group.width
                    panel = _panel(context, gemm, b, k0, length, group, start)
                    _Product(context, gemm, a, panel, ahead, k0, length, group, start).rows()
                close(body)
                context.mark(gemm.operation)
        close_step(inside)
        context.mark(gemm.operation)


def _columns(gemm: Gemm, bits: int, lanes: int) -> list[_Columns]:
    """The columns of C in panels: wide ones first, what is left in narrower ones."""
    groups: list[_Columns] = []
    done = 0
    while done < gemm.n:
        left = (gemm.n - done) // lanes
        if not left:
            lanes //= 2
            continue
        vectors, rows = block_shape(gemm.m, left, _REGISTERS.get(bits, 16))
        count = left // vectors
        groups.append(_Columns(done, count, lanes, vectors, rows))
        done += count * vectors * lanes
    return groups


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


def _widened(context: Context, gemm: Gemm, source: Matrix, extents: tuple[int, ...], lanes: int) -> Matrix:
    """A copy of the operand in the accumulator's type."""
    wide = gemm.c.buffer.dtype
    rows, columns = extents
    copy = _array(context, "a_wide", wide, rows * columns)
    made = Matrix(copy, wide, 0, columns, 1)
    while columns % lanes:
        lanes //= 2
    if source.operation is not None:
        context.mark(source.operation)
    row, close_row = context.loop("pi", rows)
    column, close_column = context.loop("pj", columns // lanes)
    with context.nested() as outer:
        value = tirx.Cast(_vector(wide, lanes), _load(source.buffer, source.at(row, column * lanes), lanes))
        close_column([_store(copy, made.at(row, column * lanes), value, lanes)])
    close_row(outer)
    context.mark(gemm.operation)
    return made


def _panel(context: Context, gemm: Gemm, b: Matrix, k0: Expr, depth: int, group: _Columns, column: Expr) -> Matrix:
    """Rows ``k0`` to ``k0 + depth`` of a panel of B, as (row, column) of the panel: where they lie, or packed."""
    wide = gemm.c.buffer.dtype
    # Rows far apart share few sets of the first cache; with a few blocks of rows a panel is not read often enough to matter.
    together = b.row == group.width or gemm.m <= 2 * group.rows
    if b.dtype == wide and b.column == 1 and b.operation is None and together:
        return Matrix(b.buffer, wide, b.start + k0 * b.row + column, b.row, 1)
    packed = _array(context, "b_panel", wide, depth * group.width)
    made = Matrix(packed, wide, 0, group.width, 1)
    if b.operation is not None:
        context.mark(b.operation)
    if b.column == 1:
        k, close = context.loop("pk", depth)
        body = []
        for vector in range(group.vectors):
            place = vector * group.lanes
            value = _load(b.buffer, b.at(k0 + k, column + place), group.lanes)
            if b.dtype != wide:
                value = tirx.Cast(_vector(wide, group.lanes), value)
            body.append(_store(packed, made.at(k, place), value, group.lanes))
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
            store = tirx.BufferStore(packed, value, [made.at(place, j)])
            close_k([tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, store)])
        close_j(outer)
    context.mark(gemm.operation)
    return made


@dataclass(frozen=True)
class _Product:
    """``C[:, columns] += A[:, k0 : k0 + depth] @ panel``, register block by register block."""

    context: Context
    gemm: Gemm
    a: Matrix
    panel: Matrix
    ahead: Ahead
    k0: Expr
    depth: int
    group: _Columns
    column: Expr

    def rows(self) -> None:
        """Whole blocks in a loop, then one of the remaining rows."""
        context, height = self.context, self.group.rows
        whole, rest = divmod(self.gemm.m, height)
        if whole:
            row, close = context.loop("ci", whole)
            with context.nested() as body:
                context.mark(self.gemm.operation)
                self.block(height, row * height)
            close(body)
            context.mark(self.gemm.operation)
        if rest:
            self.block(rest, whole * height)

    def block(self, rows: int, row: Expr) -> None:
        """One register block: from zero over all steps, then added to C."""
        context, gemm = self.context, self.gemm
        lanes, vectors = self.group.lanes, self.group.vectors
        c = Matrix(context.storage[gemm.c.buffer.name], gemm.c.buffer.dtype, 0, gemm.n, 1)
        accumulators = _array(context, "acc", c.dtype, rows * vectors * lanes)
        zero = tirx.const(0, c.dtype)
        for place in range(rows * vectors):
            value = zero if lanes == 1 else tirx.Broadcast(zero, lanes)
            context.emit(_store(accumulators, place * lanes, value, lanes))
        parts = portions(self.depth) if self.ahead else 1
        length = self.depth // parts
        part, close_part = context.loop("cp", parts)
        with context.nested() as steps:
            context.mark(gemm.operation)
            self.ahead.portion(gemm.operation)
            k, close = context.loop("ck", length)
            with context.nested() as body:
                context.mark(gemm.operation)
                self.step(accumulators, rows, row, part * length + k)
            close(body)
        close_part(steps)
        context.mark(gemm.operation)
        for r in range(rows):
            for vector in range(vectors):
                place = c.at(row + r, self.column + vector * lanes)
                total = _load(c.buffer, place, lanes) + _load(accumulators, (r * vectors + vector) * lanes, lanes)
                context.emit(_store(c.buffer, place, total, lanes))

    def step(self, accumulators: Any, rows: int, row: Expr, k: Expr) -> None:
        """One value of k: a row of B times an element of A for each row."""
        context, a, panel = self.context, self.a, self.panel
        lanes, vectors = self.group.lanes, self.group.vectors
        loaded = _array(context, "b_row", panel.dtype, vectors * lanes)
        for vector in range(vectors):
            value = _load(panel.buffer, panel.at(k, vector * lanes), lanes)
            context.emit(_store(loaded, vector * lanes, value, lanes))
        for r in range(rows):
            factor = a.buffer[a.at(row + r, self.k0 + k)]
            if lanes > 1:
                factor = tirx.Broadcast(factor, lanes)
            for vector in range(vectors):
                place = (r * vectors + vector) * lanes
                total = _load(accumulators, place, lanes) + factor * _load(loaded, vector * lanes, lanes)
                context.emit(_store(accumulators, place, total, lanes))


def _vector(dtype: str, lanes: int) -> str:
    """A vector type's name."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


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
