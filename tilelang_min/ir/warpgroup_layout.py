"""The accumulator of a matrix product that warp groups carry out: which thread holds which element.

The registers of one instruction come in the order in which it takes them: per 8 columns two of row ``lane // 4`` and two of the
row 8 further down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_GROUP, _WARP = 128, 32
_ROWS = 64
_EIGHT = 8
"""Columns that take turns in an instruction's registers: parts of it are whole eights."""


@dataclass(frozen=True)
class WarpgroupLayout:
    """Warp groups in a grid (rows, columns), the columns fastest, each with a grid ``tiles`` (rows, columns) of instructions of
    64 x ``columns``.

    >>> WarpgroupLayout((128, 16), (2, 1), (1, 1), 16).position(128 + 32 + 5, 6)
    (89, 10)
    """

    shape: tuple[int, int]
    groups_of_warps: tuple[int, int]
    tiles: tuple[int, int]
    columns: int

    @property
    def threads(self) -> int:
        """Threads that hold the product."""
        return _GROUP * self.groups_of_warps[0] * self.groups_of_warps[1]

    @property
    def items(self) -> int:
        """Accumulator registers of one instruction."""
        return _ROWS * self.columns // _GROUP

    @property
    def registers(self) -> int:
        """Accumulator registers of each thread."""
        return self.tiles[0] * self.tiles[1] * self.items

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Pairs of neighbouring columns."""
        return tuple((register, register + 1) for register in range(0, self.registers, 2))

    def register(self, tile_row: int, tile_column: int, item: int) -> int:
        """Number of a register: instructions in row-major order, each with its items in order."""
        return (tile_row * self.tiles[1] + tile_column) * self.items + item

    def parts(self, parts: int) -> bool:
        """Whether the columns divide into so many equal parts, each with neighbouring registers of every instruction."""
        alone = self.groups_of_warps[1] == 1 and self.tiles[1] == 1
        return parts == 1 or (alone and self.columns % (parts * _EIGHT) == 0)

    def part(self, parts: int) -> WarpgroupLayout:
        """The layout of one of ``parts`` equal parts of the columns, where there are such."""
        columns = self.columns // parts
        return WarpgroupLayout((self.shape[0], columns), self.groups_of_warps, self.tiles, columns)

    def start(self, group: Any) -> tuple[Any, Any]:
        """First row and column of a warp group."""
        rows, columns = self.groups_of_warps
        return (
            group // columns * (self.tiles[0] * _ROWS) if rows > 1 else 0,
            group % columns * (self.tiles[1] * self.columns) if columns > 1 else 0,
        )

    def position(self, thread: Any, register: int) -> tuple[Any, Any]:
        """(row, column) in the fragment."""
        group, warp, lane = thread // _GROUP, thread // _WARP % 4, thread % _WARP
        tile, item = divmod(register, self.items)
        tile_row, tile_column = divmod(tile, self.tiles[1])
        row, column = self.start(group)
        return (
            row + warp * 16 + lane // 4 + (tile_row * _ROWS + item // 2 % 2 * 8),
            column + lane % 4 * 2 + (tile_column * self.columns + item // 4 * 8 + item % 2),
        )

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Lane bits, warp of the group, group column, group row."""
        rows, columns = self.groups_of_warps
        return (*((1 << bit, 2) for bit in range(5)), (_WARP, 4), (_GROUP, columns), (_GROUP * columns, rows))

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """None: each element is held once."""
        return ()

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Every register holds an element."""
        return ()

    def describe(self) -> str:
        """One line for people."""
        rows, columns = self.groups_of_warps
        return f"matrix: {rows}x{columns} warp groups of {self.tiles[0]}x{self.tiles[1]} tiles {_ROWS}x{self.columns}"
