"""Matrix products by mma.sync: operands through ldmatrix where it can bring them, two column tiles of B at a time.

ldmatrix moves rows of 16 bytes, whatever they hold: matrices of 8x8 elements of 16 bits or 8x16 of 8 bits.  Its transposing
form exchanges 16-bit elements only, so 8-bit operands whose rows do not run along K, and float64, are gathered element by
element.  For float16 and each step of 16 in K: one ldmatrix.x4 for each row tile of A (16x16), one for each pair of column tiles
of B (16x16), then all mma.sync of the warp's tile.

Accumulators that the instruction takes in 32-bit registers of another type (int32, pairs of float16) are copied there in front
of the product and back behind it.  They are the same bits: compilers keep both in the same registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.layout import MatrixLayout
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.ir.operand_reads import ldmatrix_a, ldmatrix_b, warp_start
from tilelang_min.ir.plans import GemmPlan, ldmatrix_brings
from tilelang_min.lower.context import Context
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import MatrixInstruction


def lower_mma(context: Context, gemm: Gemm, plan: GemmPlan, buffers: int = 1) -> None:
    """One T.gemm on tensor cores; with two ``buffers`` the operands of a step are read before the instructions of the step
    in front of it."""
    product = MatrixProduct(context, gemm, plan, buffers)
    product.begin()
    for step in range(product.steps):
        if buffers == 1 or step == 0:
            product.read(step)
        if buffers > 1 and step + 1 < product.steps:
            product.read(step + 1)
        product.multiply(step)
    product.end()


class MatrixProduct:
    """One T.gemm in steps along K, each of which reads its operands into registers and multiplies them.

    Steps take ``buffers`` sets of registers in turns.  :meth:`begin` and :meth:`end` stand around all of them.
    """

    def __init__(self, context: Context, gemm: Gemm, plan: GemmPlan, buffers: int = 1) -> None:
        layout = plan.layout
        assert isinstance(layout, MatrixLayout)
        self.context, self.gemm, self.plan, self.layout, self.buffers = context, gemm, plan, layout, buffers
        self.instruction: MatrixInstruction = plan.instruction
        self.a_words, self.b_words = self.instruction.registers("a"), self.instruction.registers("b")
        rows, columns = layout.tiles
        self.a = context.registers("a_frag", self.instruction.a_operand, self.a_words * rows * buffers)
        self.b = context.registers("b_frag", self.instruction.b_operand, self.b_words * columns * buffers)
        self.steps = gemm.k // self.instruction.k
        self._accumulators: Callable[[int, int], list[Any]] | None = None
        self._put_back: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Accumulators in the registers that the instruction takes."""
        self._accumulators, self._put_back = _accumulators(self.context, self.gemm, self.layout, self.instruction)

    def end(self) -> None:
        """Accumulators back where they belong."""
        self._put_back()

    def read(self, step: int, gemm: Gemm | None = None) -> None:
        """The operands of a step; ``gemm``: those of another iteration, whose regions and stages it has."""
        gemm = gemm or self.gemm
        self._read_a(gemm, step)
        self._read_b(gemm, step)

    def _read_a(self, gemm: Gemm, step: int) -> None:
        context, instruction, plan, words = self.context, self.instruction, self.plan, self.a_words
        lane, start_row = context.thread % 32, warp_start(self.plan, context.thread)[0]
        k, size = step * instruction.k, dtype_bytes(gemm.a.buffer.dtype)
        rows = self.layout.tiles[0]
        matrices = ldmatrix_brings(gemm.a.buffer.dtype, not gemm.transpose_a)
        for tile in range(rows):
            start, first = start_row + tile * instruction.m, words * (step % self.buffers * rows + tile)
            if plan.a_registers is not None:
                held = plan.held("a", gemm, tile, k)
                _from_fragment(context, self.a, first, words, context.storage[gemm.a.buffer.name], held)
                continue
            if matrices:
                address = ldmatrix_a(lane, start, k, gemm.transpose_a, instruction, 16 // size)
                _ldmatrix(context, self.a, first, words, gemm.a, gemm.a_stage, gemm.transpose_a, *address)
                continue

            def place(item: int, start: Expr = start) -> tuple[Expr, Expr]:
                row, along = instruction.a_map(lane, item)
                return (k + along, start + row) if gemm.transpose_a else (start + row, k + along)

            _gather(context, self.a, first, words, instruction.a_map.items, gemm.a, gemm.a_stage, place)

    def _read_b(self, gemm: Gemm, step: int) -> None:
        context, instruction, plan, words = self.context, self.instruction, self.plan, self.b_words
        lane, start_column = context.thread % 32, warp_start(self.plan, context.thread)[1]
        k, size = step * instruction.k, dtype_bytes(gemm.b.buffer.dtype)
        columns = self.layout.tiles[1]
        matrices = ldmatrix_brings(gemm.b.buffer.dtype, gemm.transpose_b)
        for tile in range(0, columns, 2):
            start, first = start_column + tile * instruction.n, words * (step % self.buffers * columns + tile)
            if plan.b_registers is not None:
                for part in range(2):
                    held = plan.held("b", gemm, tile + part, k)
                    source = context.storage[gemm.b.buffer.name]
                    _from_fragment(context, self.b, first + part * words, words, source, held)
                continue
            if matrices:
                transposed = not gemm.transpose_b  # rows of a K x N tile are K: mma wants them as columns
                address = ldmatrix_b(lane, start, k, gemm.transpose_b, words, 16 // size)
                _ldmatrix(context, self.b, first, 2 * words, gemm.b, gemm.b_stage, transposed, *address)
                continue
            for part in range(2):

                def place(item: int, start: Expr = start + part * instruction.n) -> tuple[Expr, Expr]:
                    along, column = instruction.b_map(lane, item)
                    return (start + column, k + along) if gemm.transpose_b else (k + along, start + column)

                _gather(
                    context, self.b, first + part * words, words, instruction.b_map.items, gemm.b, gemm.b_stage, place
                )

    def multiply(self, step: int) -> None:
        """All instructions of a step."""
        rows, columns = self.layout.tiles
        buffer = step % self.buffers
        assert self._accumulators is not None
        for row in range(rows):
            # There and back: the first instruction of a row takes the column of B that the last one has just read.
            for column in reversed(range(columns)) if row % 2 else range(columns):
                results = self._accumulators(row, column)
                a, b = self.a_words * (buffer * rows + row), self.b_words * (buffer * columns + column)
                operands = [self.a[a + item] for item in range(self.a_words)]
                operands += [self.b[b + item] for item in range(self.b_words)]
                self.context.emit(tirx.Evaluate(ptx[self.instruction.name](*results, *operands, *results)))


def _accumulators(
    context: Context, gemm: Gemm, layout: MatrixLayout, instruction: MatrixInstruction
) -> tuple[Callable[[int, int], list[Any]], Callable[[], None]]:
    """The registers that an instruction at (row, column) takes as accumulators, and what brings them back into the fragment."""
    c, words = context.storage[gemm.c.buffer.name], instruction.registers("c")
    packed = instruction.c_map.items // words
    natural = gemm.c.buffer.dtype if packed == 1 else f"{gemm.c.buffer.dtype}x{packed}"
    rows, columns = layout.tiles

    def in_fragment(row: int, column: int) -> list[Any]:
        first = layout.register(row, column, 0)
        return [c[first + item] for item in range(words)]

    if instruction.c_operand == natural:
        return in_fragment, lambda: None
    held = context.registers("c_frag", instruction.c_operand, words * rows * columns)

    def in_words(row: int, column: int) -> list[Any]:
        first = (row * columns + column) * words
        return [held[first + item] for item in range(words)]

    def places() -> list[tuple[int, Any]]:
        found = []
        for row in range(rows):
            for column in range(columns):
                for word in range(words):
                    first = layout.register(row, column, 0) + word * packed
                    place = tirx.IntImm("int32", first) if packed == 1 else tirx.Ramp(index(first), 1, packed)
                    found.append(((row * columns + column) * words + word, place))
        return found

    for word, place in places():
        value = tirx.reinterpret(instruction.c_operand, tirx.BufferLoad(c, [place]))
        context.emit(tirx.BufferStore(held, value, [tirx.IntImm("int32", word)]))

    def put_back() -> None:
        for word, place in places():
            context.emit(tirx.BufferStore(c, tirx.reinterpret(natural, held[word]), [place]))

    return in_words, put_back


def _from_fragment(
    context: Context, registers: Any, first: int, words: int, fragment: Any, held: tuple[int, ...]
) -> None:
    """An operand's items from a fragment's registers, packed into those that the instruction takes."""
    packed = len(held) // words
    word_type = str(registers.ty.dtype)
    for word in range(words):
        items = held[word * packed : (word + 1) * packed]
        slot = tirx.IntImm("int32", first + word)
        if packed == 1:
            value = fragment[index(items[0])]
            same = str(value.ty.dtype) == word_type
            context.emit(tirx.BufferStore(registers, value if same else tirx.reinterpret(word_type, value), [slot]))
            continue
        source, start = fragment, items[0]
        if items != tuple(range(start, start + packed)) or start % packed:
            source, start = context.registers("packed", str(fragment.ty.dtype), packed), 0
            for place, item in enumerate(items):
                context.emit(tirx.BufferStore(source, fragment[index(item)], [index(place)]))
        whole = tirx.reinterpret(word_type, tirx.BufferLoad(source, [tirx.Ramp(index(start), 1, packed)]))
        context.emit(tirx.BufferStore(registers, whole, [slot]))


def _gather(
    context: Context,
    registers: Any,
    first: int,
    words: int,
    items: int,
    region: Region,
    stage: Expr,
    place: Callable[[int], tuple[Expr, Expr]],
) -> None:
    """The lane's items of an operand, one read each, packed into its registers; ``place`` of an item in the region."""
    packed = items // words
    dtype = region.buffer.tvm_dtype
    held = context.registers("packed", dtype, packed) if packed > 1 else None
    for word in range(words):
        for part in range(packed):
            row, column = place(word * packed + part)
            value = context.read_at(region, stage, row, column)
            if held is None and str(value.ty.dtype) != str(registers.ty.dtype):
                value = tirx.reinterpret(str(registers.ty.dtype), value)
            target, slot = (registers, first + word) if held is None else (held, part)
            context.emit(tirx.BufferStore(target, value, [tirx.IntImm("int32", slot)]))
        if held is not None:
            whole = tirx.reinterpret(str(registers.ty.dtype), tirx.BufferLoad(held, [tirx.Ramp(index(0), 1, packed)]))
            context.emit(tirx.BufferStore(registers, whole, [tirx.IntImm("int32", first + word)]))


def _ldmatrix(
    context: Context,
    registers: Any,
    first: int,
    count: int,
    region: Region,
    stage: Expr,
    transposed: bool,
    row: Expr,
    column: Expr,
) -> None:
    address = context.storage[region.buffer.name].ptr_to([context.place(region, stage, row, column)])
    name = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared::cta.b16"
    targets = [registers[first + item] for item in range(count)]
    context.emit(tirx.Evaluate(ptx[name](*targets, address)))
