"""Products of 8-bit integers on a CPU: several values of k at a time, exact.

An instruction multiplies neighbouring 8- or 16-bit values and adds the products up in each 32-bit lane:

=============  =========================================  ==================================================================
level          instruction                                operands
=============  =========================================  ==================================================================
with VNNI      ``vpdpbusd``: four unsigned times four     int8 A plus 128 and int8 B; the accumulators start with
               signed bytes, added to the lane            ``-128 * sum over k of B[k, column]`` to make up for it
any other,     ``pmaddwd``: two pairs of 16-bit values    A and B widened to 16 bits: two products of 8-bit values fit 32 bits
or uint8
=============  =========================================  ==================================================================

So a word of 32 bits holds ``group`` (4 or 2) values of k: A is packed once for each product into rows of words, which are broadcast
one at a time, B by panels into ``[word of k][column]``.  Values of k beyond the last are zeros of B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Gemm
from tilelang_min.lower.blocks_cpu import Columns, Product, load, store, vector_type
from tilelang_min.lower.context import Context
from tilelang_min.lower.forward_cpu import Matrix
from tilelang_min.targets import Target

_PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""LLVM's names of ``pmaddwd`` by 32-bit lanes."""


@dataclass(frozen=True)
class Words:
    """How values of k share 32-bit words: ``group`` of them, ``biased`` where 128 is added to those of A."""

    group: int
    biased: bool

    @property
    def element(self) -> str:
        """Type of one value of A in a word."""
        return "int16" if self.group == 2 else "uint8" if self.biased else "int8"

    def count(self, k: int) -> int:
        """Words that ``k`` values take."""
        return -(-k // self.group)

    def dot(self, total: Any, a: Any, b: Any, lanes: int) -> Any:
        """``total`` plus the products of the words ``a`` and ``b``, all vectors of int32."""
        kind = ir.PrimType(vector_type("int32", lanes))
        if self.group == 4:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
            left, right = (tirx.reinterpret(f"{of}x{4 * lanes}", x) for of, x in (("uint8", a), ("int8", b)))
            return tirx.call_llvm_pure_intrin(kind, name, total, left, right)
        left, right = (tirx.reinterpret(f"int16x{2 * lanes}", x) for x in (a, b))
        return total + tirx.call_llvm_pure_intrin(kind, _PAIRS[lanes], left, right)


def dots(target: Target, gemm: Gemm, a: str, b: str) -> Words | None:
    """The words for a product of operands of types ``a`` and ``b``; None where it has no such instruction."""
    if a != b or a not in ("int8", "uint8") or gemm.c.buffer.dtype != "int32" or gemm.n % 4:
        return None
    return Words(4, True) if a == "int8" and "vnni" in target.features else Words(2, False)


def packed_rows(context: Context, gemm: Gemm, a: Matrix, words: Words) -> Matrix:
    """A, (m, k), as rows of words; elements of ``words.element``."""
    pitch = words.count(gemm.k) * words.group
    packed = context.array("a_words", words.element, gemm.m * pitch)
    made = Matrix(packed, words.element, 0, pitch, 1)
    if a.operation is not None:
        context.mark(a.operation)
    lanes = (context.target.vector_bits or 256) // 16 if a.column == 1 else 1
    whole, rest = divmod(gemm.k, lanes)
    row, close_row = context.loop("pi", gemm.m)
    with context.nested() as outer:
        for first, count, width in ((0, whole, lanes), (whole * lanes, rest, 1)):
            if count:
                k, close = context.loop("pk", count)
                place = first + k * width
                value = load(a.buffer, a.at(row, place), width)
                value = tirx.Cast(vector_type(words.element, width), value)
                if words.biased:
                    bias = tirx.const(128, "uint8")
                    value = value + (bias if width == 1 else tirx.Broadcast(bias, width))
                close([store(packed, made.at(row, place), value, width)])
        for place in range(gemm.k, pitch):
            context.emit(store(packed, made.at(row, place), tirx.const(0, words.element), 1))
    close_row(outer)
    context.mark(gemm.operation)
    return made


def packed_words(
    context: Context,
    gemm: Gemm,
    b: Matrix,
    words: Words,
    word: Expr,
    depth: int,
    last: bool,
    group: Columns,
    column: Expr,
) -> Matrix:
    """Words ``word`` to ``word + depth`` of a panel of B, (word, column); ``last``: with the end of k among them.

    With a bias the panel is followed by a row of what the accumulators start with.
    """
    lanes, vectors, width = group.lanes, group.vectors, group.width
    packed = context.array("b_words", "int32", (depth + 1) * width)
    made = Matrix(packed, "int32", 0, width, 1)
    if b.operation is not None:
        context.mark(b.operation)
    short = gemm.k % words.group if last else 0
    full = depth - 1 if short else depth

    def write(place: Expr, count: int) -> None:
        if b.column == 1:
            for vector in range(vectors):
                value = _word(b, words, (word + place) * words.group, column + vector * lanes, count, lanes)
                context.emit(store(packed, made.at(place, vector * lanes), value, lanes))
            return
        j, close_j = context.loop("pj", width)
        close_j(
            [store(packed, made.at(place, j), _word(b, words, (word + place) * words.group, column + j, count, 1), 1)]
        )

    if full:
        k, close = context.loop("pk", full)
        with context.nested() as body:
            write(k, words.group)
        close(body)
    if short:
        write(full, short)
    if words.biased:
        _starts(context, words, made, depth, lanes, vectors)
    context.mark(gemm.operation)
    return made


def _word(b: Matrix, words: Words, k: Expr, column: Expr, count: int, lanes: int) -> Any:
    """The first ``count`` values of k of a word of ``lanes`` neighbouring columns."""
    kind = vector_type("int32", lanes)
    bits = 32 // words.group
    total: Any = None
    for number in range(count):
        value = tirx.Cast(kind, load(b.buffer, b.at(k + number, column), lanes))
        if number < words.group - 1 and (bits == 8 or b.dtype == "int8"):
            value = value & _all(2**bits - 1, lanes)
        if number:
            value = value * _all(-(2**31) if bits * number == 31 else 2 ** (bits * number), lanes)
        total = value if total is None else total + value
    return total


def _starts(context: Context, words: Words, panel: Matrix, depth: int, lanes: int, vectors: int) -> None:
    """Behind the panel: -128 times the sum of each column."""
    sums = context.array("b_sums", "int32", vectors * lanes)
    for vector in range(vectors):
        context.emit(store(sums, vector * lanes, _all(0, lanes), lanes))
    k, close = context.loop("pk", depth)
    close(
        [
            store(
                sums,
                vector * lanes,
                words.dot(
                    load(sums, vector * lanes, lanes),
                    _all(0x01010101, lanes),
                    load(panel.buffer, panel.at(k, vector * lanes), lanes),
                    lanes,
                ),
                lanes,
            )
            for vector in range(vectors)
        ]
    )
    for vector in range(vectors):
        value = load(sums, vector * lanes, lanes) * _all(-128, lanes)
        context.emit(store(panel.buffer, panel.at(depth, vector * lanes), value, lanes))


def _all(value: int, lanes: int) -> Any:
    """An int32 in all lanes."""
    number = tirx.const(value, "int32")
    return number if lanes == 1 else tirx.Broadcast(number, lanes)


@dataclass(frozen=True)
class DotProduct(Product):
    """A product over words; ``k0`` and ``depth`` count words."""

    words: Words = Words(2, False)

    def start(self, vector: int) -> Any:
        """Zero, or what makes up for the bias."""
        if not self.words.biased:
            return super().start(vector)
        return load(self.panel.buffer, self.panel.at(self.depth, vector * self.group.lanes), self.group.lanes)

    def step(self, accumulators: Any, rows: int, row: Expr, k: Expr) -> None:
        """One word: a row of B times a word of A for each row."""
        context, a, panel, words = self.context, self.a, self.panel, self.words
        lanes, vectors = self.group.lanes, self.group.vectors
        loaded = context.array("b_row", "int32", vectors * lanes)
        for vector in range(vectors):
            value = load(panel.buffer, panel.at(k, vector * lanes), lanes)
            context.emit(store(loaded, vector * lanes, value, lanes))
        for r in range(rows):
            place = index(a.at(row + r, (self.k0 + k) * words.group))
            word = tirx.reinterpret("int32", load(a.buffer, place, words.group))
            factor = tirx.Broadcast(word, lanes)
            for vector in range(vectors):
                at = (r * vectors + vector) * lanes
                total = words.dot(load(accumulators, at, lanes), factor, load(loaded, vector * lanes, lanes), lanes)
                context.emit(store(accumulators, at, total, lanes))


__all__ = ["DotProduct", "Words", "dots", "packed_rows", "packed_words"]
