"""Hopper's warp group products (``wgmma.mma_async``) at run time, and when their registers may be touched.

A product is computed when it is issued, and its registers are nobody's until a wait covers its group.  Products and sums are taken
in float64 and rounded once to the accumulator's type; the hardware keeps fewer bits of sums of 8-bit floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.errors import SimulationError
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate.result import AccessCount
from tilelang_min.simulate.warpgroup import (
    CORE_BYTES,
    TYPES,
    WARP_ROWS,
    Product,
    as_numbers,
    operand_places,
)
from tilelang_min.targets.wgmma import GROUP_WARPS, OPERAND_BYTES

if TYPE_CHECKING:
    from tilelang_min.simulate.strand import Strand


@dataclass(eq=False)
class Registers:
    """What is known of a register array that products use.

    ``flight`` is, by register, the group of a product that owns it (0: none); ``touched`` whether something other than a product
    has accessed it since the last ``wgmma.fence``.
    """

    flight: Any
    touched: Any
    by: int = 0
    toucher: int = 0


class WarpgroupProducts:
    """The products of one strand, which holds whole warps of one warp group."""

    def __init__(self, strand: Strand) -> None:
        self.strand = strand
        self.known: dict[int, Registers] = {}
        self.fenced = False
        self.committed = 0
        self.group = strand.all_warps[0] % strand.cluster.warps // GROUP_WARPS
        self.issued, self.last = 0, 0
        self.counts: dict[tuple[int, str, int], int] = {}
        self.bytes: dict[tuple[int, str, int], int] = {}

    def product(self, name: str) -> Product:
        """See :meth:`Product.of`."""
        return Product.of(name, self.strand.program.target)

    # ---- registers ------------------------------------------------------------------------------------------------------

    def registers(self, key: int) -> Registers:
        """The state of a register array."""
        found = self.known.get(key)
        if found is None:
            count = len(self.strand.local(key))
            found = self.known[key] = Registers(np.zeros(count, np.int64), np.zeros(count, bool))
        return found

    def touch(self, key: int, start: int, count: int, operation: int) -> None:
        """Something other than a product accesses registers."""
        registers = self.registers(key)
        rows = slice(start, start + count)
        if registers.flight[rows].any():
            strand = self.strand
            name = strand.translation.layout.locals[key].name
            raise strand.error(
                f"{strand.label(operation)} accesses {name} in {strand.name}, while the wgmma of "
                f"{strand.label(registers.by)} may still be using it",
                operation,
                "wgmma.commit_group and a wgmma.wait_group that covers the product must come first",
            )
        registers.touched[rows] = True
        registers.toucher = operation

    def touch_all(self, key: int, operation: int) -> None:
        """:meth:`touch` of a whole array."""
        self.touch(key, 0, len(self.strand.local(key)), operation)

    def fence(self) -> None:
        """``wgmma.fence``."""
        self.fenced = True
        for registers in self.known.values():
            registers.touched.fill(False)

    def commit(self) -> None:
        """``wgmma.commit_group``."""
        self.committed += 1

    def wait(self, left: int) -> None:
        """``wgmma.wait_group``: all but the last ``left`` groups have ended."""
        done = self.committed - left
        for registers in self.known.values():
            registers.flight[registers.flight <= done] = 0
        clocks, strand = self.strand.cluster.clocks, self.strand
        if clocks is not None:
            agent = clocks.group_agent(strand.block, self.group)
            for warp in strand.all_warps:
                clocks.seen[warp, agent] = max(int(clocks.seen[warp, agent]), done)

    def _own(self, key: int, rows: Any, operation: int) -> None:
        registers, strand = self.registers(key), self.strand
        if not self.fenced or registers.touched[rows].any():
            name = strand.translation.layout.locals[key].name
            since = f" since {strand.label(registers.toucher)} accessed {name}" if registers.touched[rows].any() else ""
            raise strand.error(
                f"no wgmma.fence{since}: {strand.label(operation)} issues wgmma on {name} in {strand.name}",
                operation,
                "wgmma.fence must stand between other accesses to those registers and the first product",
            )
        registers.flight[rows] = self.committed + 1
        registers.by = operation

    # ---- products -------------------------------------------------------------------------------------------------------

    def run(
        self,
        product: Product,
        number: int,
        d: tuple[int, Any],
        a: Any,
        a_key: tuple[int, Any] | None,
        descriptors: tuple[Any, ...],
        accumulate: Any,
        signs: tuple[int, int],
        transposed: tuple[int, int],
        operation: int,
        mask: Any,
    ) -> None:
        """One instruction.  ``d`` and ``a_key`` are register arrays and rows in them; ``a`` the words of A, if it is there;
        ``descriptors`` those of A and B, or of B alone."""
        strand = self.strand
        if mask is not None:
            strand.whole_warps(mask, operation)
            if not mask.all():
                raise strand.error(f"{strand.label(operation)}: wgmma in divergent control flow", operation)
        first = self.group * GROUP_WARPS
        if strand.lanes % 32 or first + GROUP_WARPS > strand.cluster.program.threads // 32:
            raise strand.error(
                f"{strand.label(operation)}: wgmma in {strand.name}, which belong to no whole warp group",
                operation,
                "four warps, the first a multiple of four, issue it together",
            )
        self.issued += 1
        self.last = operation
        key, rows = d
        self._own(key, rows, operation)
        if a_key is not None:
            self._own(*a_key, operation)
        warps = [warp % strand.cluster.warps % GROUP_WARPS for warp in strand.all_warps]
        bits = [strand.uniform(value, "a matrix descriptor", operation) for value in descriptors]
        b = self._operand(
            product, number, bits[-1], range(product.n), product.b_type, bool(transposed[1]), "B", operation
        )
        if a is None:
            lines = [WARP_ROWS * warp + row for warp in warps for row in range(WARP_ROWS)]
            first = self._operand(product, number, bits[0], lines, product.a_type, bool(transposed[0]), "A", operation)
        else:
            words = np.ascontiguousarray(np.asarray(a, np.uint32).reshape(-1, strand.lanes).T)
            items = words.view(numpy_dtype(TYPES[product.a_type])).reshape(len(warps), -1)
            first = as_numbers(items[:, product.fragment].reshape(len(warps) * WARP_ROWS, product.k), product.a_type)
        result = np.matmul(first, b.T)
        if signs[0] * signs[1] < 0:
            result = -result
        self._add(product, strand.local(key), rows, result, bool(strand.uniform(accumulate, "scale_d", operation)))

    def _add(self, product: Product, registers: Any, rows: Any, result: Any, accumulate: bool) -> None:
        row, column = product.places
        values = result.reshape(-1, WARP_ROWS, product.n)[:, row, column]  # warps, items, lanes
        items = values.transpose(1, 0, 2).reshape(product.n // 2, -1)
        if product.d_type == "f16":
            words = registers[rows]
            halves = np.ascontiguousarray(words).view(np.float16).reshape(*words.shape, 2)
            before = halves.transpose(0, 2, 1).reshape(product.n // 2, -1)
            after = (items + before if accumulate else items).astype(np.float16)
            packed = np.ascontiguousarray(after.reshape(-1, 2, words.shape[1]).transpose(0, 2, 1))
            registers[rows] = packed.view(words.dtype)[..., 0]
        elif product.d_type == "s32":
            total = items.astype(np.int64)
            if accumulate:
                total += registers[rows].view(np.int32)
            if product.saturates:
                total = np.clip(total, -(1 << 31), (1 << 31) - 1)
            registers[rows] = total.astype(np.int32).view(registers.dtype)
        else:
            registers[rows] = items + registers[rows] if accumulate else items

    def _operand(
        self,
        product: Product,
        number: int,
        bits: int,
        rows: Any,
        word: str,
        transposed: bool,
        which: str,
        operation: int,
    ) -> Any:
        """An operand in shared memory as float64 (rows, k)."""
        strand, cluster = self.strand, self.strand.cluster
        if transposed and not product.transposes:
            raise strand.error(f"{product.name} takes no transposed operands", operation)
        dtype = numpy_dtype(TYPES[word])
        granule = CORE_BYTES if cluster.clocks is None else cluster.clocks.granule
        try:
            at, granules, end = operand_places(bits, tuple(rows), product.k, dtype.itemsize, transposed, granule)
        except SimulationError as error:
            raise strand.error(f"{strand.label(operation)}: {error.message}", operation) from None
        if end > cluster.block_bytes:
            raise strand.error(
                f"{strand.label(operation)}: operand {which} reaches byte {end - 1} of shared memory, and the block has "
                f"{cluster.block_bytes}",
                operation,
            )
        base = strand.block * cluster.block_bytes
        if cluster.clocks is not None:
            granules = granules + base // granule
            site = strand.translation.sites[number]
            agent = cluster.clocks.group_agent(strand.block, self.group)
            cluster.clocks.async_read(site, granules, strand.all_warps, -1, agent, self.committed + 1)
        if strand.counts is not None:
            place = cluster.buffer_at((bits & 0x3FFF) << 4)
            entry = (operation, place, 8 * CORE_BYTES)
            moved = len(rows) * OPERAND_BYTES
            share = len(strand.all_warps) if which == "B" else GROUP_WARPS  # A: each warp has its own rows
            self.counts[entry] = self.counts.get(entry, 0) + len(strand.all_warps)
            self.bytes[entry] = self.bytes.get(entry, 0) + moved * share // GROUP_WARPS
        memory = cluster.shared[base : base + cluster.block_bytes]
        return as_numbers(memory.view(dtype).take(at), word)

    def access_counts(self) -> list[AccessCount]:
        """Reads of operands: an access of a class of its own, whose cost follows no known rule."""
        return [
            AccessCount(
                op,
                name,
                "shared",
                "wgmma",
                width,
                n,
                None,
                None,
                None,
                None,
                None,
                self.bytes[op, name, width],
                "unknown",
            )
            for (op, name, width), n in self.counts.items()
        ]
