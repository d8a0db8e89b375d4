"""How a fragment is spread over the registers of a block's threads.

A layout is a function from (thread, register) to the element's indices, written with ``+ * // %`` only, so that it works on
integers, NumPy arrays and TVM expressions alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class FragmentLayout(Protocol):
    """What lowering asks of a layout."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the fragment."""
        ...

    @property
    def threads(self) -> int:
        """Threads the fragment is spread over."""
        ...

    @property
    def registers(self) -> int:
        """Registers of each thread."""
        ...

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Registers in groups whose elements lie side by side in the last dimension."""
        ...

    def position(self, thread: Any, register: int) -> tuple[Any, ...]:
        """Indices of the element that ``register`` of ``thread`` holds."""
        ...

    def linear(self, thread: Any, register: int) -> Any | None:
        """Position in row-major order where a thread may hold an element beyond the end (to be guarded), else None."""
        ...

    def describe(self) -> str:
        """One line for people."""
        ...


@dataclass(frozen=True)
class BlockedLayout:
    """Row-major elements dealt to the threads in chunks of ``vector``: thread t holds chunks t, t + threads, ...

    >>> BlockedLayout((4, 8), threads=4, vector=4).position(1, 5)
    (2, 5)
    """

    shape: tuple[int, ...]
    threads: int
    vector: int

    @property
    def elements(self) -> int:
        """Elements of the fragment."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def registers(self) -> int:
        """Registers of each thread; the last ones may lie beyond the end."""
        chunks = self.elements // self.vector
        return -(-chunks // self.threads) * self.vector

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Consecutive registers, ``vector`` at a time."""
        return tuple(tuple(range(start, start + self.vector)) for start in range(0, self.registers, self.vector))

    def _linear(self, thread: Any, register: int) -> Any:
        return (thread + register // self.vector * self.threads) * self.vector + register % self.vector

    def position(self, thread: Any, register: int) -> tuple[Any, ...]:
        """Row-major unravelling of the element's number; dimensions of extent 1 have index 0."""
        wide = [axis for axis, extent in enumerate(self.shape) if extent != 1]
        indices: list[Any] = [0] * len(self.shape)
        if len(wide) < 2:
            indices[wide[0] if wide else -1] = self._linear(thread, register)
            return tuple(indices)
        chunk = thread + register // self.vector * self.threads
        per_row = self.shape[wide[-1]] // self.vector
        indices[wide[-1]] = chunk % per_row * self.vector + register % self.vector
        rest = chunk // per_row
        for axis in reversed(wide[1:-1]):
            indices[axis] = rest % self.shape[axis]
            rest = rest // self.shape[axis]
        indices[wide[0]] = rest
        return tuple(indices)

    def linear(self, thread: Any, register: int) -> Any | None:
        """The element's number when chunks do not divide evenly by the threads."""
        return None if self.elements % (self.vector * self.threads) == 0 else self._linear(thread, register)

    def describe(self) -> str:
        """One line for people."""
        return f"blocked: {self.vector} consecutive elements a thread, {self.threads} threads, row-major"


@dataclass(frozen=True)
class MatrixLayout:
    """Accumulator of a matrix product: warps in a grid, each with a grid of instruction tiles.

    ``warps`` (rows, columns), ``tiles`` (rows, columns) of instruction tiles a warp; ``instruction_map`` gives (row, column) of
    register ``item`` of ``lane`` inside one ``tile_m`` x ``tile_n`` instruction tile.  ``column_pack`` neighbouring columns come
    from as many column tiles: tile j of a pack holds columns j, j + pack, ... (the operand is then read ``pack`` columns at a
    time).
    """

    shape: tuple[int, int]
    warp_size: int
    warps: tuple[int, int]
    tiles: tuple[int, int]
    tile_m: int
    tile_n: int
    items: int
    instruction_map: Any
    column_pack: int = 1

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.warp_size * self.warps[0] * self.warps[1]

    @property
    def registers(self) -> int:
        """Accumulator registers of each thread."""
        return self.tiles[0] * self.tiles[1] * self.items

    def register(self, tile_row: int, tile_column: int, item: int) -> int:
        """Number of a register: instruction tiles in row-major order, each with its items in order."""
        return (tile_row * self.tiles[1] + tile_column) * self.items + item

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Registers of neighbouring columns: within an instruction tile, or across a pack of tiles."""
        run = 1
        while run < self.items and self._neighbours(run):
            run *= 2
        out = []
        for row in range(self.tiles[0]):
            for column in range(0, self.tiles[1], self.column_pack):
                for item in range(0, self.items, run):
                    if self.column_pack > 1:
                        out.append(tuple(self.register(row, column + part, item) for part in range(self.column_pack)))
                    else:
                        out.append(tuple(self.register(row, column, item + part) for part in range(run)))
        return tuple(out)

    def _neighbours(self, run: int) -> bool:
        if self.column_pack > 1:
            return False
        row, column = self.instruction_map(0, 0)
        return all(tuple(self.instruction_map(0, part)) == (row, column + part) for part in range(run, 2 * run))

    def position(self, thread: Any, register: int) -> tuple[Any, Any]:
        """(row, column) in the fragment."""
        lane, warp = thread % self.warp_size, thread // self.warp_size
        warp_row, warp_column = warp // self.warps[1], warp % self.warps[1]
        item = register % self.items
        tile_row, tile_column = register // self.items // self.tiles[1], register // self.items % self.tiles[1]
        row, column = self.instruction_map(lane, item)
        pack, part = tile_column // self.column_pack, tile_column % self.column_pack
        wide = self.tile_n * self.column_pack
        return (
            warp_row * (self.tiles[0] * self.tile_m) + tile_row * self.tile_m + row,
            warp_column * (self.tiles[1] * self.tile_n) + pack * wide + column * self.column_pack + part,
        )

    def linear(self, thread: Any, register: int) -> Any | None:
        """Every register holds an element."""
        return None

    def describe(self) -> str:
        """One line for people."""
        return (
            f"matrix: {self.warps[0]}x{self.warps[1]} warps of {self.tiles[0]}x{self.tiles[1]} tiles "
            f"{self.tile_m}x{self.tile_n}"
            + (f", columns in packs of {self.column_pack}" if self.column_pack > 1 else "")
        )


@dataclass(frozen=True)
class OuterProductLayout:
    """Accumulator of a matrix product without matrix instructions: each thread holds a small block.

    A warp is ``lanes_m`` x ``lanes_n`` lanes, rows fastest; a thread holds ``rows`` rows, ``lanes_m`` apart, and ``columns``
    columns in runs of ``vector``, ``lanes_n * vector`` apart.
    """

    shape: tuple[int, int]
    warps: tuple[int, int]
    lanes_m: int
    lanes_n: int
    rows: int
    columns: int
    vector: int

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.lanes_m * self.lanes_n * self.warps[0] * self.warps[1]

    @property
    def registers(self) -> int:
        """Accumulator registers of each thread."""
        return self.rows * self.columns

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Runs of ``vector`` columns."""
        return tuple(tuple(range(start, start + self.vector)) for start in range(0, self.registers, self.vector))

    def row(self, thread: Any, row: Any) -> Any:
        """Fragment row of the thread's row number ``row``."""
        warp, lane = thread // (self.lanes_m * self.lanes_n), thread % (self.lanes_m * self.lanes_n)
        return warp // self.warps[1] * (self.lanes_m * self.rows) + lane % self.lanes_m + row * self.lanes_m

    def column(self, thread: Any, column: int) -> Any:
        """Fragment column of the thread's column number ``column``."""
        warp, lane = thread // (self.lanes_m * self.lanes_n), thread % (self.lanes_m * self.lanes_n)
        run, part = column // self.vector, column % self.vector
        start = warp % self.warps[1] * (self.lanes_n * self.columns)
        return start + lane // self.lanes_m * self.vector + run * (self.lanes_n * self.vector) + part

    def position(self, thread: Any, register: int) -> tuple[Any, Any]:
        """(row, column) in the fragment."""
        return self.row(thread, register // self.columns), self.column(thread, register % self.columns)

    def linear(self, thread: Any, register: int) -> Any | None:
        """Every register holds an element."""
        return None

    def describe(self) -> str:
        """One line for people."""
        return (
            f"outer product: {self.warps[0]}x{self.warps[1]} warps of {self.lanes_m}x{self.lanes_n} lanes, "
            f"{self.rows}x{self.columns} elements a thread"
        )
