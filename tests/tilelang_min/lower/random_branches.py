"""Random programs with ``if`` and loops everywhere: in nests, around them, on memory, registers, fragments and indices.

Values are small whole numbers, exact in every type, so that conditions go the same way everywhere.  What a program should leave
``python_meaning.py`` says, which runs the very text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from python_meaning import meaning
from random_programs import Drawn

from tilelang_min.program.dtypes import numpy_dtype

Pick = Callable[..., Any]
LARGEST = 40
"""No element that a nest writes is larger, either way."""


class Program:
    """One program that is being written; ``pick`` chooses one of its arguments."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.dtype = pick("float16", "float32", "int32", "bfloat16")
        self.product = pick(True, False, False)
        self.bm, self.bn = pick(16, 32, 64), pick(16, 32, 64)
        if not self.product and pick(True, False, False):
            self.bm, self.bn = pick(8, 12, 20), pick(8, 12, 20, 24)
        self.m, self.n = (pick(*range(1, 67)) for _ in range(2))
        self.m, self.n = pick(self.m, self.bm * 2), pick(self.n, self.bn * 2)
        self.threads = pick(64, 128, 128, 256)
        self.bk = pick(16, 32, 64)
        self.lines: list[str] = []
        self.indent = 8
        self.count = 0
        self.loops: list[str] = []  # loop variables around
        self.stage = False  # whether tile P is there to be read
        self.written: set[str] = set()  # by the nest that is being written
        self.names: list[list[str]] = []  # registers and variables of the nest, by block
        self.variables: list[str] = []

    # -- text ------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def fresh(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    def block(self, write: Callable[[], None]) -> None:
        """What ``write`` writes, one level deeper."""
        self.indent += 4
        self.names.append([])
        write()
        self.names.pop()
        self.indent -= 4

    # -- values of a point -----------------------------------------------------------------------------------------

    def leaf(self) -> str:
        """A value of the point (i, j) in the tiles' type."""
        pick, kind = self.pick, self.dtype
        row, column = f"by * {self.bm} + i", f"bx * {self.bn} + j"
        found = [
            "F[i, j]",
            "S[i, j]",
            "F[i, j]",
            "S[i, j]",
            f"A[{row}, {column}]",
            f"Out[{row}, {column}]",
            str(pick(-3, 1, 5)),
        ]
        if pick(True, False):
            found += [f"T.cast({item}, '{kind}')" for item in ("i % 7", "j % 5", f"Row[{row}]", "x", "V[i]")]
            found += [f"A[{row} - 1, {column} + 2]", f"A[Index[i % 16] + by, {column}]"]
            found += [f"T.cast({loop}, '{kind}')" for loop in self.loops]
        if "S" not in self.written:
            found += [f"S[i, (j + 3) % {self.bn}]", "S[Index[i % 16], j]", f"S[(i + 1) % {self.bm}, j]"]
        if self.stage:
            found += ["P[i, j]", "P[i, j]", f"P[{self.bm - 1} - i, j]"] if "P" not in self.written else ["P[i, j]"]
        if self.product:
            found.append(f"T.cast(T.min(T.max(acc[i, j], -{LARGEST}), {LARGEST}), '{kind}')")
        found += [name for names in self.names for name in names] * 2
        return pick(*found)

    def value(self) -> str:
        a, b = self.leaf(), self.leaf()
        return self.pick(
            a,
            f"{a} + {b}",
            f"{a} - {b}",
            f"T.max({a}, {b})",
            f"T.if_then_else({self.test()}, {a}, {b})",
            f"({a} if {self.test()} else {b} * 2)",
        )

    def test(self) -> str:
        """A condition of the point."""
        pick, row = self.pick, f"by * {self.bm} + i"
        compare = pick("<", ">", "==", "!=", ">=")
        return pick(
            f"{self.leaf()} {compare} {pick(0, 1, 3)}",
            f"{self.leaf()} {compare} {self.leaf()}",
            f"{pick('i', 'j')} % {pick(2, 3, 8)} == 1",
            f"{pick('i >= j', 'j >= 8', 'i < 5', 'i + j == 9', 'j // 8 % 2 == 0', 'bx == 0', 'i // 4 > by')}",
            f"Row[{row}] {compare} 2",
            f"Mask[i % 8] {compare} 0",
            f"x {compare} 2",
        )

    def condition(self) -> str:
        one, two = self.test(), self.test()
        return self.pick(one, one, f"{one} and {two}", f"{one} or {two}", f"not ({one})")

    def uniform(self) -> str:
        """A condition of the block."""
        compare = self.pick("<", ">", "==", "!=")
        items = [
            f"Mask[bx] {compare} 0",
            "bx == by",
            f"x {compare} {self.pick(0, 2, 4)}",
            f"S[1, 2] {compare} 3",
            "flags[by % 2] > 0",
        ]
        if self.stage:
            items += [f"P[1, 2] {compare} 0", "P[2, 1] > S[0, 0]", "P[0, 1] > 0 and x < 3"]
        items += [f"{loop} % 2 == {self.pick(0, 1)}" for loop in self.loops]
        items += [f"Mask[{loop}] {compare} x" for loop in self.loops]
        return self.pick(*items, f"{self.pick(*items)} {self.pick('and', 'or')} {self.pick(*items)}")

    # -- nests -----------------------------------------------------------------------------------------------------

    def points(self, depth: int) -> None:
        """Statements of a point; at least one."""
        for _ in range(self.pick(1, 1, 2, 3)):
            kind = self.pick("store", "store", "if", "if", "name", "variable", "for", "atomic", "add")
            if depth == 0 and kind in ("if", "for", "variable"):
                kind = "store"
            getattr(self, f"_point_{kind}")(depth)

    def target(self) -> str:
        name = self.pick(*sorted(self.written))
        return f"Out[by * {self.bm} + i, bx * {self.bn} + j]" if name == "Out" else f"{name}[i, j]"

    def _point_store(self, depth: int) -> None:
        self.line(f"{self.target()} = T.min(T.max({self.value()}, -{LARGEST}), {LARGEST})")

    def _point_add(self, depth: int) -> None:
        target = self.target()
        self.line(f"{target} = T.min(T.max({target} + {self.leaf()}, -{LARGEST}), {LARGEST})")

    def _point_if(self, depth: int) -> None:
        self.line(f"if {self.condition()}:")
        self.block(lambda: self.points(depth - 1))
        if self.pick(True, False, False):
            self.line(f"elif {self.condition()}:")
            self.block(lambda: self.points(depth - 1))
        if self.pick(True, False):
            self.line("else:")
            self.block(lambda: self.points(depth - 1))

    def _point_for(self, depth: int) -> None:
        name = self.fresh("v")
        start, stop, step = self.pick(0, 1), self.pick(0, 2, 4), self.pick(1, 2)
        self.line(f"for {name} in {self.pick('range', 'T.serial', 'T.unroll')}({start}, {stop}, {step}):")
        self.loops.append(name)
        self.block(lambda: self.points(depth - 1))
        self.loops.pop()

    def _point_name(self, depth: int) -> None:
        name, value = self.fresh("y"), f"T.min(T.max({self.value()}, -{LARGEST}), {LARGEST})"
        self.line(f"{name} = {value}")
        self.names[-1].append(name)

    def _point_variable(self, depth: int) -> None:
        name = self.fresh("z")
        self.line(f"{name} = T.alloc_var('{self.dtype}', init={self.leaf()})")
        self.line(f"if {self.condition()}:")
        self.block(lambda: self.line(f"{name} = T.min(T.max({self.value()}, -{LARGEST}), {LARGEST})"))
        self.names[-1].append(name)

    def _point_atomic(self, depth: int) -> None:
        self.line(
            f"T.atomic_add(Count[{self.pick('i % 4', '(i + j) % 4', '0', 'by')}], {self.pick('1', 'i', '2 - j')})"
        )

    def nest(self) -> None:
        choices = ["F", "S", "Out", *(["P"] if self.stage and self.pick(True, False) else [])]
        self.written = {self.pick(*choices), self.pick(*choices)}
        self.line(f"for i, j in T.Parallel({self.bm}, {self.bn}):")
        self.block(lambda: self.points(2))
        self.written = set()

    # -- statements of the block -----------------------------------------------------------------------------------

    def statements(self, depth: int, most: int = 3) -> None:
        for _ in range(self.pick(*range(1, most + 1))):
            kind = self.pick(
                "nest", "nest", "nest", "copy", "reduce", "if", "if", "loop", "pipeline", "variable", "rows", "part"
            )
            if depth == 0 and kind in ("if", "loop", "pipeline"):
                kind = "nest"
            if kind == "nest":
                self.nest()
            else:
                getattr(self, f"_{kind}")(depth)

    def _copy(self, depth: int) -> None:
        place = self.pick(
            f"by * {self.bm}, bx * {self.bn}", f"Index[by] * 2, bx * {self.bn}", "x, by", "flags[bx % 2], 1"
        )
        self.line(self.pick("T.copy(F, S)", "T.copy(S, F)", f"T.copy(A[{place}], S)", f"T.copy(A[{place}], F)"))

    def _reduce(self, depth: int) -> None:
        self.line(f"T.reduce_{self.pick('sum', 'max', 'min')}({self.pick('F', 'S')}, V, dim=1)")
        self.line(f"for i in T.Parallel({self.bm}):")
        self.line(f"    V[i] = T.min(T.max(V[i], -{LARGEST}), {LARGEST})")

    def _rows(self, depth: int) -> None:
        test = self.pick("V[i] > 2", "i % 3 == 0", f"Row[by * {self.bm} + i] > 0", "x > i")
        self.line(f"for i in T.Parallel({self.bm}):")
        self.line(f"    if {test}:")
        if "V" in test or self.pick(True, False):
            self.line(f"        V[i] = {self.pick('V[i] - 1', '3', 'T.cast(S[i, 1], ' + repr(self.wide) + ')')}")
        else:
            self.line(f"        S[i, {self.pick(0, 3, 7)}] = {self.pick('2', 'S[i, 4]', 'A[i, by]')}")

    def _part(self, depth: int) -> None:
        """A nest over a part of the tiles, by a step of the author's."""
        self.line(f"for i, j in T.Parallel({self.bm // 2}, {self.bn // 2}):")
        self.line(f"    if {self.pick('Mask[j % 8] != 0', 'S[i * 2, j * 2 + 1] > 0', 'i > j', 'Index[i % 16] == j')}:")
        self.line(f"        S[i * 2, j * 2] = {self.pick('A[i, j]', '4', 'S[i * 2 + 1, j]')}")

    def _variable(self, depth: int) -> None:
        self.line(f"x = {self.pick('x + 1', 'x - 2', 'Mask[by] % 3', 'T.if_then_else(Mask[bx] > 0, 3, x)')}")

    def _if(self, depth: int) -> None:
        self.line(f"if {self.uniform()}:")
        self.block(lambda: self.statements(depth - 1, 2))
        if self.pick(True, False):
            self.line("else:")
            self.block(lambda: self.statements(depth - 1, 2))

    def _loop(self, depth: int) -> None:
        name = self.fresh("k")
        bounds = self.pick(
            "2", "1, 4, 2", "0, 5, 3", "3, 3", "0, bx + 1", "bx, 3, 2", "Mask[by] + 1", "x, 3", "flags[bx % 2], 5, 3"
        )
        self.line(f"for {name} in {self.pick('range', 'T.serial', 'T.unroll')}({bounds}):")
        self.loops.append(name)
        self.block(lambda: self.statements(depth - 1, 2))
        self.loops.pop()

    def _pipeline(self, depth: int) -> None:
        if self.stage:
            return self.nest()
        name = self.fresh("k")
        bounds = self.pick(
            "3", "4", "1, 4", "0, 7, 2", "by + 1", "Mask[bx] + 2", "x", "Mask[by], flags[bx % 2] + 2", "x, 5, 2"
        )
        self.line(f"for {name} in T.Pipelined({bounds}, num_stages={self.pick(2, 3, 4)}):")
        self.loops.append(name)
        self.stage = True
        place = self.pick(
            f"by * {self.bm}, {name} * {self.bn}", f"{name} * 3, bx * {self.bn}", f"Index[{name}] * 2, bx * {self.bn}"
        )
        tile = f"T.copy(A[{place}], P)"
        self.lines.append(" " * (self.indent + 4) + tile)
        if self.product:
            self.lines.append(" " * (self.indent + 4) + f"T.copy(L[by * {self.bm}, {name} * {self.bk}], L_s)")
            self.lines.append(" " * (self.indent + 4) + f"T.copy(M[{name} * {self.bk}, bx * {self.bn}], M_s)")
            self.block(self._multiply)
        self.block(lambda: self.statements(depth - 1, 2))
        self.stage = False
        self.loops.pop()
        return None

    def _multiply(self) -> None:
        """A product, of operands that a nest may have changed where a condition holds."""
        if self.pick(True, False):
            test = self.pick("i > j", "Mask[j % 8] > 0", "L_s[i, j] > 1", "x > 1")
            self.line(f"for i, j in T.Parallel({self.bm}, {self.bk}):")
            self.line(f"    if {test}:")
            self.line(f"        L_s[i, j] = {self.pick('0', '1', 'T.max(L_s[i, j], 0)')}")
        guarded = self.pick(True, False)
        if guarded:
            self.line(f"if {self.uniform()}:")
        self.line("    " * guarded + f"T.gemm({'L_s'}, M_s, acc)")

    @property
    def wide(self) -> str:
        """The type of reductions."""
        return "int32" if self.dtype == "int32" else "float32"

    def text(self) -> str:
        m, n, bm, bn, dtype = self.m, self.n, self.bm, self.bn, self.dtype
        gx, gy = -(-n // bn), -(-m // bm)
        tensors = [
            f"A: T.Tensor(({m}, {n}), '{dtype}')",
            "Mask: T.Tensor((8,), 'int32')",
            "Index: T.Tensor((16,), 'int32')",
        ]
        tensors += [f"Row: T.Tensor(({m},), 'int32')"]
        if self.product:
            tensors += [
                f"L: T.Tensor(({m}, {3 * self.bk}), 'float16')",
                f"M: T.Tensor(({3 * self.bk}, {n}), 'float16')",
            ]
        tensors += ["Count: T.Tensor((4,), 'int32')", f"Out: T.Tensor(({m}, {n}), '{dtype}')"]
        self.line(f"S = T.alloc_shared(({bm}, {bn}), '{dtype}')")
        self.line(f"P = T.alloc_shared(({bm}, {bn}), '{dtype}')")
        self.line("flags = T.alloc_shared((2,), 'int32')")
        self.line(f"F = T.alloc_fragment(({bm}, {bn}), '{dtype}')")
        self.line(f"V = T.alloc_fragment(({bm},), '{self.wide}')")
        if self.product:
            self.line(f"L_s = T.alloc_shared(({bm}, {self.bk}), 'float16')")
            self.line(f"M_s = T.alloc_shared(({self.bk}, {bn}), 'float16')")
            self.line(f"acc = T.alloc_fragment(({bm}, {bn}), 'float32')")
            self.line("T.clear(acc)")
        self.line("x = T.alloc_var('int32', init=1)")
        self.line("T.fill(V, 1)")
        self.line("T.fill(F, 2)")
        self.line("flags[0] = Mask[3]")
        self.line("flags[1] = 1")
        self.line(f"T.copy(A[by * {bm}, bx * {bn}], S)")
        self.statements(2, 4)
        self.line(f"for i, j in T.Parallel({bm}, {bn}):")
        last = f"T.cast(T.min(T.max(acc[i, j], -{LARGEST}), {LARGEST}), '{dtype}')" if self.product else "0"
        place = f"Out[by * {bm} + i, bx * {bn} + j]"
        self.line(f"    {place} = {place} + F[i, j] + S[i, j] + T.cast(V[i], '{dtype}') + {last}")
        return (
            "import tilelang_min.language as T\n\n\n@T.prim_func\n"
            f"def main({', '.join(tensors)}):\n    with T.Kernel({gx}, {gy}, threads={self.threads}) as (bx, by):\n"
            + "\n".join(self.lines)
            + "\n"
        )

    def arrays(self) -> list[Any]:
        """Arguments of the program."""
        random = np.random.default_rng(self.m * 100 + self.n)

        def whole(low: int, high: int, shape: tuple[int, ...], dtype: str) -> Any:
            return random.integers(low, high, shape).astype(numpy_dtype(dtype))

        made = [
            whole(-9, 10, (self.m, self.n), self.dtype),
            whole(-1, 2, (8,), "int32"),
            whole(-1, 18, (16,), "int32"),
            whole(-3, 9, (self.m,), "int32"),
        ]
        if self.product:
            made += [whole(-2, 3, (self.m, 3 * self.bk), "float16"), whole(-2, 3, (3 * self.bk, self.n), "float16")]
        return [*made, whole(0, 3, (4,), "int32"), whole(-5, 6, (self.m, self.n), self.dtype)]


@st.composite
def branches(draw: Any) -> Drawn:
    """A program with branches; what it leaves in its last two tensors, one behind the other."""
    return drawn_by(lambda *items: draw(st.sampled_from(items)))


def drawn_by(pick: Pick) -> Drawn:
    """The program that the choices of ``pick`` make."""
    program = Program(pick)
    source = program.text()
    arrays = program.arrays()
    return Drawn(source, arrays, meaning(source, arrays)[-2:], {"dtype": program.dtype})
