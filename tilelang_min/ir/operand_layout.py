"""How an operand of a matrix product lies in registers, where an instruction takes it from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang_min.ir.layout import FragmentLayout, MatrixLayout
from tilelang_min.ir.nodes import Gemm
from tilelang_min.ir.plans import GemmPlan
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout


@dataclass(frozen=True)
class OperandLayout:
    """An operand as its instruction wants it: side ``a`` (M x K) or ``b`` (K x N), stored as (K, M) or (N, K) where ``transposed``.

    ``tiles`` and ``extents`` are (across, along K): a warp's instruction tiles and their size; registers go by tile across, tile
    along K, item.  Warps that need the same rows of A (columns of B) hold them each.
    """

    shape: tuple[int, int]
    side: str
    warp_size: int
    warps: tuple[int, int]
    tiles: tuple[int, int]
    extents: tuple[int, int]
    items: int
    instruction_map: Any
    transposed: bool

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.warp_size * self.warps[0] * self.warps[1]

    @property
    def registers(self) -> int:
        """Registers of each thread."""
        return self.tiles[0] * self.tiles[1] * self.items

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Registers of an instruction tile that lie side by side in the last dimension."""
        run = 1
        start = self.position(0, 0)
        while run < self.items and self.items % (2 * run) == 0:
            neighbours = range(2 * run)
            if any(tuple(self.position(0, part)) != (start[0], start[1] + part) for part in neighbours):
                break
            run *= 2
        return tuple(tuple(range(first, first + run)) for first in range(0, self.registers, run))

    def position(self, thread: Any, register: int) -> tuple[Any, Any]:
        """Indices of the element, as the operand is stored."""
        lane, warp = thread % self.warp_size, thread // self.warp_size
        item, tile = register % self.items, register // self.items
        first, second = self.instruction_map(lane, item)
        inside, along = (first, second) if self.side == "a" else (second, first)
        mine = warp // self.warps[1] if self.side == "a" else warp % self.warps[1]
        across = (mine * self.tiles[0] + tile // self.tiles[1]) * self.extents[0] + inside
        along = tile % self.tiles[1] * self.extents[1] + along
        return (across, along) if (self.side == "a") != self.transposed else (along, across)

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Lane bits, warp column, warp row."""
        bits = tuple((1 << bit, 2) for bit in range(self.warp_size.bit_length() - 1))
        return (*bits, *self._warp_coordinates)

    @property
    def _warp_coordinates(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.warp_size, self.warps[1]), (self.warp_size * self.warps[1], self.warps[0])

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """The warps of a row (of a column, for B)."""
        one = self._warp_coordinates[0 if self.side == "a" else 1]
        return (one,) if one[1] > 1 else ()

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Every register holds an element."""
        return ()

    def describe(self) -> str:
        """One line for people."""
        return (
            f"operand {self.side.upper()} of {self.warps[0]}x{self.warps[1]} warps, "
            f"{self.tiles[0]}x{self.tiles[1]} tiles {self.extents[0]}x{self.extents[1]} (across, along K)"
        )


def operand_layout(gemm: Gemm, plan: GemmPlan, side: str) -> FragmentLayout | None:
    """How ``plan`` takes operand ``side`` from registers; None where it does not.

    Warp groups take 16-bit elements of A as accumulators of as many columns lie: pairs of neighbours of two rows, 8 columns on.
    """
    layout, instruction = plan.layout, plan.instruction
    if isinstance(layout, WarpgroupLayout):
        rows, columns = layout.groups_of_warps
        if side == "b" or columns > 1:
            return None
        return WarpgroupLayout((gemm.m, gemm.k), (rows, 1), (layout.tiles[0], 1), gemm.k)
    if plan.kind not in ("mma", "mfma") or not isinstance(layout, MatrixLayout) or plan.k_pack != 1:
        return None
    if side == "b" and layout.column_pack != 1:
        return None
    lanes = instruction.a_map if side == "a" else instruction.b_map
    return OperandLayout(
        (gemm.a if side == "a" else gemm.b).buffer.shape[-2:],
        side,
        layout.warp_size,
        layout.warps,
        (layout.tiles[0] if side == "a" else layout.tiles[1], gemm.k // instruction.k),
        (instruction.m if side == "a" else instruction.n, instruction.k),
        lanes.items,
        lanes,
        gemm.transpose_a if side == "a" else gemm.transpose_b,
    )


__all__ = ["OperandLayout", "operand_layout"]
