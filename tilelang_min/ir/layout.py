"""How a fragment is spread over the registers of a block's threads.

A layout is a function from (thread, register) to the element's indices, written with ``+ * // %`` only, so that it works on
integers, NumPy arrays and TVM expressions alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Protocol


class FragmentLayout(Protocol):
    """What lowering asks of a layout."""

    def __hash__(self) -> int:
        """Layouts are values."""
        ...

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

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """The thread's number as independent coordinates (stride, count): coordinate c is ``thread // stride % count``."""
        ...

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """Coordinates over which the fragment is repeated: threads that differ in these alone hold the same elements."""
        ...

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Pairs (number, extent) with number < extent where the element exists, for registers that may lie beyond the end."""
        ...

    def describe(self) -> str:
        """One line for people."""
        ...


def _lane_bits(warp_size: int) -> tuple[tuple[int, int], ...]:
    return tuple((1 << bit, 2) for bit in range(warp_size.bit_length() - 1))


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

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """All threads in one row."""
        return ((1, self.threads),)

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """None: each element is held once."""
        return ()

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """The element's number, when chunks do not divide evenly by the threads."""
        if self.elements % (self.vector * self.threads) == 0:
            return ()
        return ((self._linear(thread, register), self.elements),)

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

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Lane bits, warp column, warp row."""
        warp = self.warp_size
        return (*_lane_bits(warp), (warp, self.warps[1]), (warp * self.warps[1], self.warps[0]))

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """None: each element is held once."""
        return ()

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Every register holds an element."""
        return ()

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

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Lane bits, warp column, warp row."""
        warp = self.lanes_m * self.lanes_n
        return (*_lane_bits(warp), (warp, self.warps[1]), (warp * self.warps[1], self.warps[0]))

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """None: each element is held once."""
        return ()

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Every register holds an element."""
        return ()

    def describe(self) -> str:
        """One line for people."""
        return (
            f"outer product: {self.warps[0]}x{self.warps[1]} warps of {self.lanes_m}x{self.lanes_n} lanes, "
            f"{self.rows}x{self.columns} elements a thread"
        )


@dataclass(frozen=True)
class GridLayout:
    """A grid of threads over the dimensions, as reductions need it: threads that share a row are known by their coordinates.

    ``slots`` are the thread's coordinates (stride, count), which together number all threads.  ``lanes`` gives for each dimension
    the slots that run along it (the first fastest), ``vectors`` its elements side by side in a thread.  Slots that no dimension
    has hold replicas.  Along a dimension thread lane l holds chunks l, l + lanes, ...; the last may lie beyond the end.

    >>> GridLayout((4, 32), ((1, 8), (8, 4)), (((8, 4),), ((1, 8),)), (1, 2)).position(9, 3)
    (1, 19)
    """

    shape: tuple[int, ...]
    slots: tuple[tuple[int, int], ...]
    lanes: tuple[tuple[tuple[int, int], ...], ...]
    vectors: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return prod(count for _, count in self.slots)

    @property
    def counts(self) -> tuple[int, ...]:
        """Registers along each dimension."""
        return tuple(
            -(-extent // (prod(count for _, count in lanes) * vector)) * vector
            for extent, lanes, vector in zip(self.shape, self.lanes, self.vectors, strict=True)
        )

    @property
    def registers(self) -> int:
        """Registers of each thread."""
        return prod(self.counts)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Runs of the last dimension's vector."""
        last = max((axis for axis, extent in enumerate(self.shape) if extent != 1), default=0)
        run = self.vectors[last]
        return tuple(tuple(range(start, start + run)) for start in range(0, self.registers, run))

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """The slots."""
        return self.slots

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """Slots along no dimension."""
        used = {slot for lanes in self.lanes for slot in lanes}
        return tuple(slot for slot in self.slots if slot not in used and slot[1] > 1)

    def position(self, thread: Any, register: int) -> tuple[Any, ...]:
        """Indices of the element."""
        indices: list[Any] = []
        for axis in reversed(range(len(self.shape))):
            count, vector = self.counts[axis], self.vectors[axis]
            register, own = register // count, register % count
            lane: Any = 0
            lanes = 1
            for stride, number in self.lanes[axis]:
                lane = lane + thread // stride % number * lanes
                lanes *= number
            indices.append((lane + own // vector * lanes) * vector + own % vector)
        return tuple(reversed(indices))

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Indices in dimensions whose last chunk is ragged, for registers in that chunk."""
        found: list[tuple[Any, int]] = []
        position = self.position(thread, register)
        for axis in reversed(range(len(self.shape))):
            count, vector = self.counts[axis], self.vectors[axis]
            register, own = register // count, register % count
            lanes = prod(number for _, number in self.lanes[axis])
            if (own // vector + 1) * lanes * vector > self.shape[axis]:
                found.append((position[axis], self.shape[axis]))
        return tuple(found)

    def describe(self) -> str:
        """One line for people."""
        lanes = "x".join(str(prod(count for _, count in lanes)) for lanes in self.lanes)
        replicas = prod(count for _, count in self.replicas)
        return f"grid: {lanes} threads, {'x'.join(map(str, self.vectors))} consecutive elements" + (
            f", {replicas} replicas" if replicas > 1 else ""
        )
