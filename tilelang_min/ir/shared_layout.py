"""Where the elements of a shared tile lie: rows one after another, padded, or swizzled.

A tile of rank n counts as a matrix: its last dimension runs along the columns, all others together along the rows.  The matrix is
cut into panels of ``panel`` columns that lie one behind another; within a panel rows are ``row_stride`` elements apart.  With a
swizzle the units of 16 bytes of a row change places: unit ``u`` of row ``r`` lies where unit ``u ^ ((r >> shift) & mask)`` would
(``r << -shift`` where ``shift`` is negative: pairs or larger groups of units then stay together).

======================  ================================================================
plain rows              ``panel`` = columns = ``row_stride``, ``mask`` 0
padding by p elements   ``row_stride`` = columns + p
swizzle of whole rows   ``panel`` = columns, ``mask`` + 1 a power of two that divides the units of a row
TMA, wgmma              ``panel`` = 128 bytes, ``shift`` 0, ``mask`` 7; 64 bytes, 1, 3; 32 bytes, 2, 1
======================  ================================================================

The last line is the pattern of the tensor memory accelerator (CUDA Driver API, ``CU_TENSOR_MAP_SWIZZLE_*``): it exchanges bits 4-6
of an address with bits 7-9, so a stage of such a tile must lie on 1,024 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import Any

Expr = Any

UNIT_BYTES = 16
"""Bytes that always stay together."""

TILE_ALIGNMENT = 128
"""Alignment of every shared tile in bytes: a whole row of banks, so that bank numbers start at zero in each tile."""

ARENA_ALIGNMENT = 1024
"""Alignment in bytes of tiles in which swizzles repeat after eight rows of 128 bytes, and of the memory that such tiles lie in."""

TMA_SHIFTS = {128: 0, 64: 1, 32: 2}
"""Widths of the tensor memory accelerator's swizzles in bytes, the widest first, and the ``shift`` of each."""


@dataclass(frozen=True)
class SharedLayout:
    """Places of the elements of a shared tile of ``rows`` x ``columns`` elements of ``itemsize`` bytes; see the module."""

    rows: int
    columns: int
    itemsize: int
    panel: int
    row_stride: int
    shift: int = 0
    mask: int = 0

    @classmethod
    def plain(cls, shape: tuple[int, ...], itemsize: int, padding: int = 0) -> SharedLayout:
        """Rows one after another, each followed by ``padding`` unused elements."""
        rows, columns = _matrix(shape)
        return cls(rows, columns, itemsize, columns, columns + padding)

    @classmethod
    def swizzled(cls, shape: tuple[int, ...], itemsize: int, shift: int, mask: int) -> SharedLayout:
        """Whole rows with their 16-byte units exchanged.

        Raises ValueError where a row does not hold whole groups of ``mask + 1`` units.
        """
        rows, columns = _matrix(shape)
        units, rest = divmod(columns * itemsize, UNIT_BYTES)
        if rest or mask & (mask + 1) or units % (mask + 1):
            raise ValueError(
                f"a row of {columns * itemsize} bytes has no groups of {mask + 1} units of {UNIT_BYTES} bytes"
            )
        return cls(rows, columns, itemsize, columns, columns, shift, mask)

    @classmethod
    def panels(cls, shape: tuple[int, ...], itemsize: int, swizzle_bytes: int) -> SharedLayout:
        """Panels of ``swizzle_bytes`` (128, 64 or 32) with the swizzle of the tensor memory accelerator."""
        rows, columns = _matrix(shape)
        panel = swizzle_bytes // itemsize
        if swizzle_bytes not in TMA_SHIFTS or columns % panel:
            raise ValueError(f"{columns} columns of {itemsize} bytes are not whole panels of {swizzle_bytes} bytes")
        return cls(rows, columns, itemsize, panel, panel, TMA_SHIFTS[swizzle_bytes], swizzle_bytes // UNIT_BYTES - 1)

    @classmethod
    def widest_panels(cls, shape: tuple[int, ...], itemsize: int) -> SharedLayout:
        """The widest :meth:`panels` that the rows divide into; rows are whole multiples of 32 bytes."""
        width = next((each for each in TMA_SHIFTS if shape[-1] * itemsize % each == 0), 32)
        return cls.panels(shape, itemsize, width)

    @property
    def elements(self) -> int:
        """Elements of one stage, padding included."""
        return self.columns // self.panel * self.rows * self.row_stride

    @property
    def pitch(self) -> int:
        """Elements from one stage to the next: :attr:`elements`, rounded up to whole ``alignment``s."""
        unit = self.alignment // gcd(self.alignment, self.itemsize)
        return -(-self.elements // unit) * unit

    def bytes(self, stages: int) -> int:
        """Size of a tile of so many stages."""
        return (self.pitch * (stages - 1) + self.elements) * self.itemsize

    @property
    def alignment(self) -> int:
        """Bytes on which a stage must lie, so that the swizzle depends on the address alone."""
        return ARENA_ALIGNMENT if (self.mask and self.panel < self.columns) or self._tma else TILE_ALIGNMENT

    @property
    def _tma(self) -> bool:
        width = self.panel * self.itemsize
        pattern = (self.shift, self.mask) == (TMA_SHIFTS.get(width), width // UNIT_BYTES - 1)
        return self.row_stride == self.panel and pattern

    @property
    def swizzle_bytes(self) -> int:
        """Width of the tensor memory accelerator's swizzle that this is (128, 64, 32), or 0."""
        return self.panel * self.itemsize if self._tma else 0

    @property
    def contiguous(self) -> int:
        """Elements that stay together when they start at a multiple of their number: the widest vector of an access."""
        return UNIT_BYTES // self.itemsize if self.mask else self.panel

    def whole(self, width: int) -> bool:
        """Whether ``width`` elements from a column that is a multiple of ``width`` lie side by side, aligned to all of them."""
        unit = UNIT_BYTES // self.itemsize if self.mask else width
        return not any(size % width for size in (self.panel, self.row_stride, self.pitch, unit))

    @property
    def is_plain(self) -> bool:
        """Whether element ``(r, c)`` lies at ``r * columns + c``."""
        return self.mask == 0 and self.panel == self.row_stride == self.columns

    def element(self, row: Expr, column: Expr) -> Expr:
        """Place of an element in one stage, in elements; works on integers, NumPy arrays and TVM expressions alike."""
        inside = column if self.panel == self.columns else column % self.panel
        if self.mask:
            unit = UNIT_BYTES // self.itemsize
            turned = row // (1 << self.shift) if self.shift > 0 else row * (1 << -self.shift)
            inside = (inside // unit ^ turned % (self.mask + 1)) * unit + inside % unit
        place = row * self.row_stride + inside
        return place if self.panel == self.columns else place + column // self.panel * (self.rows * self.row_stride)

    def describe(self) -> str:
        """One line for people."""
        if self.is_plain:
            return "plain rows"
        if self.mask == 0:
            unused = self.row_stride - self.panel
            return f"rows padded by {unused} elements ({unused * self.itemsize} bytes)"
        kind = f"panels of {self.panel * self.itemsize} bytes, " if self.panel < self.columns else ""
        by = "r" if self.shift == 0 else f"r >> {self.shift}" if self.shift > 0 else f"r << {-self.shift}"
        return f"{kind}swizzled: unit u of row r lies at u ^ ({by} & {self.mask})"


def placed(tiles: Iterable[tuple[SharedLayout, int]]) -> tuple[list[int], int]:
    """Where in a block's shared memory tiles lie that are given with their stages, one behind another; and the bytes of all."""
    offsets, end = [], 0
    for layout, stages in tiles:
        offsets.append(-(-end // layout.alignment) * layout.alignment)
        end = offsets[-1] + -(-layout.bytes(stages) // TILE_ALIGNMENT) * TILE_ALIGNMENT
    return offsets, end


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows, shape[-1]
