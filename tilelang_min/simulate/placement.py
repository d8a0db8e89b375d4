"""Another place for the elements of a shared tile: rows with padding behind them, or their 16-byte chunks swizzled.

Only counting uses it: a placement is one-to-one, so what a kernel computes does not depend on it, and one simulation
serves any number of placements (``recording.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelang_min.errors import PlacementError
from tilelang_min.program import SharedBuffer

CHUNK_BYTES = 16
"""What a swizzle moves as a whole: the widest access of a lane."""

SWIZZLES = (128, 64, 32)
"""Widths in bytes of the segments of a row in which a swizzle moves chunks."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One stage of a shared tile as rows of bytes; a row is the last dimension of its shape."""

    name: str
    itemsize: int
    rows: int
    row_bytes: int
    stages: int

    @classmethod
    def of(cls, buffer: SharedBuffer) -> Tile:
        """The rows of a tile.  Raises PlacementError where it is not stored as its shape says."""
        if buffer.row_stride:
            raise PlacementError(f"{buffer.name} is not stored row after row: {buffer.layout}")
        elements = math.prod(buffer.shape)
        itemsize = buffer.bytes // max(1, elements * buffer.stages)
        if elements * buffer.stages * itemsize != buffer.bytes or not itemsize:
            raise PlacementError(f"{buffer.name} is not stored row after row as its shape {buffer.shape} says")
        row = buffer.shape[-1] if buffer.shape else 1
        return cls(buffer.name, itemsize, elements // row, row * itemsize, buffer.stages)


@dataclass(frozen=True, slots=True)
class Placement:
    """``padding`` elements behind each row, or a swizzle in segments of ``swizzle_bytes`` (0: none; 32, 64, 128).

    A swizzle moves chunk c of the n = swizzle_bytes / 16 chunks of a segment of row r to chunk ``c ^ (r % 8 // (8 / n))``:
    For rows as long as a segment that is ``address ^= (address >> 7 & n - 1) << 4`` on byte addresses in the tile.
    ``strip_bytes`` at the end of each row, which nobody may access, are left out first.
    """

    padding: int = 0
    swizzle_bytes: int = 0
    strip_bytes: int = 0

    def __post_init__(self) -> None:
        if self.padding < 0 or self.swizzle_bytes not in (0, *SWIZZLES) or (self.padding and self.swizzle_bytes):
            raise PlacementError(
                f"no such placement: {self.padding=}, {self.swizzle_bytes=}".replace("self.", ""),
                remedy="give a padding of 0 or more elements, or a swizzle of 32, 64 or 128 bytes",
            )

    def row_bytes(self, tile: Tile) -> int:
        """Bytes from one row to the next.  Raises PlacementError for rows that the swizzle does not divide."""
        row = tile.row_bytes - self.strip_bytes
        if self.swizzle_bytes and row % self.swizzle_bytes:
            raise PlacementError(f"rows of {row} bytes are no multiple of {self.swizzle_bytes}")
        return row + self.padding * tile.itemsize

    def size(self, tile: Tile) -> int:
        """Bytes of the whole tile, all stages."""
        return self.row_bytes(tile) * tile.rows * tile.stages

    def place(self, tile: Tile, offsets: Any) -> Any:
        """Byte offsets in the tile as placed, for byte offsets in the tile as it is (arrays of any shape)."""
        pitch = self.row_bytes(tile)
        row, column = np.divmod(offsets, tile.row_bytes)
        if self.swizzle_bytes:
            chunks = self.swizzle_bytes // CHUNK_BYTES
            column = column ^ (row % tile.rows % 8 // (8 // chunks) * CHUNK_BYTES)
        return row * pitch + column
