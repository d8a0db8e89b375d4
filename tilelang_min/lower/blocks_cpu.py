"""Register blocks of a matrix product on a CPU: their shapes, and the code of one panel of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Gemm
from tilelang_min.lower.context import Context
from tilelang_min.lower.forward_cpu import Matrix
from tilelang_min.lower.prefetch_cpu import Ahead, portions

_MOST_VECTORS = 4
"""Most column vectors of a block: more need more loads of B than they save loads of A."""


@dataclass(frozen=True)
class Columns:
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


def columns(gemm: Gemm, registers: int, lanes: int) -> list[Columns]:
    """The columns of C in panels: wide ones first, what is left in narrower ones; ``registers`` hold a vector each."""
    groups: list[Columns] = []
    done = 0
    while done < gemm.n:
        left = (gemm.n - done) // lanes
        if not left:
            lanes //= 2
            continue
        vectors, rows = block_shape(gemm.m, left, registers)
        count = left // vectors
        groups.append(Columns(done, count, lanes, vectors, rows))
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


@dataclass(frozen=True)
class Product:
    """``C[:, columns] += A[:, k0 : k0 + depth] @ panel``, register block by register block."""

    context: Context
    gemm: Gemm
    a: Matrix
    panel: Matrix
    ahead: Ahead
    k0: Expr
    depth: int
    group: Columns
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
        accumulators = context.array("acc", c.dtype, rows * vectors * lanes)
        for place in range(rows * vectors):
            context.emit(store(accumulators, place * lanes, self.start(place % vectors), lanes))
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
                total = load(c.buffer, place, lanes) + load(accumulators, (r * vectors + vector) * lanes, lanes)
                context.emit(store(c.buffer, place, total, lanes))

    def start(self, vector: int) -> Any:
        """What the accumulators of column vector ``vector`` start with."""
        zero = tirx.const(0, self.gemm.c.buffer.dtype)
        return zero if self.group.lanes == 1 else tirx.Broadcast(zero, self.group.lanes)

    def step(self, accumulators: Any, rows: int, row: Expr, k: Expr) -> None:
        """One value of k: a row of B times an element of A for each row."""
        context, a, panel = self.context, self.a, self.panel
        lanes, vectors = self.group.lanes, self.group.vectors
        loaded = context.array("b_row", panel.dtype, vectors * lanes)
        for vector in range(vectors):
            value = load(panel.buffer, panel.at(k, vector * lanes), lanes)
            context.emit(store(loaded, vector * lanes, value, lanes))
        for r in range(rows):
            factor = a.buffer[a.at(row + r, self.k0 + k)]
            if lanes > 1:
                factor = tirx.Broadcast(factor, lanes)
            for vector in range(vectors):
                place = (r * vectors + vector) * lanes
                total = load(accumulators, place, lanes) + factor * load(loaded, vector * lanes, lanes)
                context.emit(store(accumulators, place, total, lanes))


def vector_type(dtype: str, lanes: int) -> str:
    """A vector type's name."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def load(buffer: Any, place: Any, lanes: int) -> Any:
    """``lanes`` elements from ``place``."""
    return buffer[index(place)] if lanes == 1 else tirx.BufferLoad(buffer, [tirx.Ramp(index(place), 1, lanes)])


def store(buffer: Any, place: Any, value: Any, lanes: int) -> Any:
    """The statement that writes ``lanes`` elements from ``place``."""
    return tirx.BufferStore(buffer, value, [index(place) if lanes == 1 else tirx.Ramp(index(place), 1, lanes)])
