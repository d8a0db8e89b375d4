"""Matrix products by warp groups (wgmma): operands straight from swizzled panels in shared memory.

For each step along K (32 bytes) every warp group issues its instructions; the products run by themselves until a wait.  An operand
is named by a descriptor: its address, and how far apart its cores of 8 rows by 16 bytes lie.  With K along the rows (A as written,
B transposed)::

    next 8 rows         8 rows of a panel further           (stride offset)
    next step along K   32 bytes further in the panel, or in the next panel

With M or N along the rows (B as written)::

    next columns        in the next panel                   (leading offset)
    next 8 along K      8 rows of a panel further           (stride offset)
    next step along K   two of these

A may come from registers instead: a fragment whose pairs of neighbours are the words that the instruction takes.

The layouts are those of the tensor memory accelerator; PTX ISA, "Matrix descriptor"; both forms were confirmed on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.tirx import cuda, ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Gemm, Region
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.lower.context import Context
from tilelang_min.targets.wgmma import GROUP_THREADS, OPERAND_BYTES, ROWS, WarpgroupProduct

_ADDRESS_BITS = 0x3FFFF
_UNIT = 16
"""Descriptors count addresses and offsets in these bytes."""

_WORDS = 4
"""Registers of A of one instruction."""

_SWIZZLE_CODE = {128: 1, 64: 2, 32: 3}


def lower_wgmma(context: Context, gemm: Gemm, plan: GemmPlan, *, wait: bool = True) -> None:
    """One T.gemm, as one group of products.  ``wait``: until it has ended, with all before it."""
    layout, product = plan.layout, plan.instruction
    assert isinstance(layout, WarpgroupLayout)
    assert isinstance(product, WarpgroupProduct)
    row, column = layout.start(context.thread // GROUP_THREADS)
    words = _words(context, gemm, plan) if plan.a_registers is not None else None
    a = None if words is not None else _Operand(context, gemm.a, gemm.a_stage, not gemm.transpose_a, row)
    b = _Operand(context, gemm.b, gemm.b_stage, gemm.transpose_b, column)
    name = product.name(layout.columns)
    held, put_back = _accumulators(context, gemm, layout, product)
    context.emit(tirx.Evaluate(ptx["wgmma.fence.sync.aligned"]()))
    for k in range(0, gemm.k, product.k):
        for tile_row in range(layout.tiles[0]):
            for tile_column in range(layout.tiles[1]):
                first = layout.register(tile_row, tile_column, 0)
                accumulators = [held[first + item] for item in range(layout.items)]
                operands: list[Any] = [b.at(k, tile_column * layout.columns)]
                if words is None:
                    assert a is not None
                    operands.insert(0, a.at(k, tile_row * ROWS))
                else:
                    step = tile_row * (gemm.k // product.k) + k // product.k
                    operands[:0] = [words[step * _WORDS + word] for word in range(_WORDS)]
                operands.append(tirx.const(True, "bool"))
                if product.signs:
                    operands += [1, 1]
                if product.transposes:
                    operands += [int(gemm.transpose_a)] if words is None else []
                    operands.append(int(not gemm.transpose_b))
                context.emit(tirx.Evaluate(ptx[name](*accumulators, *operands)))
    context.emit(tirx.Evaluate(ptx["wgmma.commit_group.sync.aligned"]()))
    if wait:
        wait_products(context, 0)
    put_back()


def _words(context: Context, gemm: Gemm, plan: GemmPlan) -> Any:
    """Operand A from registers: pairs of its elements in 32-bit words, four for each 64 rows and step along K."""
    fragment, registers = context.storage[gemm.a.buffer.name], plan.a_registers
    assert registers is not None
    words = context.registers("a_words", "uint32", len(registers) // 2)
    for word in range(len(registers) // 2):
        first, second = registers[2 * word : 2 * word + 2]
        if second == first + 1 and first % 2 == 0:
            pair = tirx.BufferLoad(fragment, [tirx.Ramp(index(first), 1, 2)])
        else:
            held = context.registers("a_pair", gemm.a.buffer.tvm_dtype, 2)
            for side, register in enumerate((first, second)):
                context.emit(tirx.BufferStore(held, fragment[register], [index(side)]))
            pair = tirx.BufferLoad(held, [tirx.Ramp(index(0), 1, 2)])
        context.emit(tirx.BufferStore(words, tirx.reinterpret("uint32", pair), [index(word)]))
    return words


def _accumulators(
    context: Context, gemm: Gemm, layout: WarpgroupLayout, product: WarpgroupProduct
) -> tuple[Any, Callable[[], None]]:
    """The registers that the instruction takes, and what brings them back into the fragment where they are others."""
    c, natural = context.storage[gemm.c.buffer.name], gemm.c.buffer.tvm_dtype
    if product.c_operand == natural:
        return c, lambda: None
    held = context.array("accumulators", product.c_operand, layout.registers)

    def copied(target: Any, dtype: str, source: Any) -> None:
        for item in range(layout.registers):
            context.emit(tirx.BufferStore(target, tirx.reinterpret(dtype, source[item]), [index(item)]))

    copied(held, product.c_operand, c)
    return held, lambda: copied(c, natural, held)


def wait_products(context: Context, pending: int) -> None:
    """Wait until at most ``pending`` groups of products are unfinished."""
    context.emit(tirx.Evaluate(ptx["wgmma.wait_group.sync.aligned"](pending)))


class _Operand:
    """A tile as operand, its first row (or column of the product) at ``start``."""

    def __init__(self, context: Context, region: Region, stage: Expr, along_k: bool, start: Expr) -> None:
        self.layout = context.layout_of(region.buffer)
        self.along_k = along_k
        stages = context.program.stages.get(region.buffer.name, 1)
        base = context.bound(stage) % stages * self.layout.pitch if stages > 1 and stage is not None else index(0)
        element = base + self._element(start)
        address = cuda.cvta_generic_to_shared(
            context.storage[region.buffer.name].ptr_to([index(context.simplify(element))])
        )
        masked = tirx.bitwise_and(address, tirx.IntImm("uint32", _ADDRESS_BITS))
        low = tirx.shift_right(masked, tirx.IntImm("uint32", 4))
        self.high, leading = self._constants()
        self.base = tirx.Var(context.fresh(f"{region.buffer.name}_descriptor"), "uint32")
        context.emit(tirx.Bind(self.base, tirx.bitwise_or(low, tirx.IntImm("uint32", leading))))

    def _element(self, start: Expr) -> Expr:
        """Elements from the tile's first to the one at row (column) ``start``, a multiple of 8 rows (of whole panels)."""
        layout = self.layout
        if self.along_k:
            return start * layout.row_stride
        if isinstance(start, int):
            return start // layout.panel * (layout.rows * layout.row_stride)
        return tirx.floordiv(start, layout.panel) * (layout.rows * layout.row_stride)

    def _constants(self) -> tuple[int, int]:
        """The descriptor without its address: its upper and its lower word."""
        layout = self.layout
        stride = 8 * layout.row_stride * layout.itemsize
        leading = _UNIT if self.along_k else layout.rows * layout.row_stride * layout.itemsize
        return stride // _UNIT | _SWIZZLE_CODE[layout.swizzle_bytes] << 30, leading // _UNIT << 16

    def at(self, k: int, start: int) -> Any:
        """The descriptor at ``k`` along K and ``start`` further rows (columns)."""
        offset = _bytes_along_k(self.layout, k) if self.along_k else k * self.layout.row_stride * self.layout.itemsize
        offset += int(self._element(start)) * self.layout.itemsize
        # The lower word alone changes, and never carries: half of the registers that whole descriptors would take.
        low = self.base + tirx.IntImm("uint32", offset // _UNIT) if offset else self.base
        return tirx.bitwise_or(tirx.Cast("uint64", low), tirx.IntImm("uint64", self.high << 32))


def _bytes_along_k(layout: SharedLayout, k: int) -> int:
    """Bytes from column 0 to column ``k``, a multiple of the instruction's K, as the descriptor's address counts them."""
    panel, inside = divmod(k, layout.panel)
    if inside * layout.itemsize % OPERAND_BYTES:
        raise ValueError(f"column {k} is no start of an operand")
    return (panel * layout.rows * layout.row_stride + inside) * layout.itemsize
