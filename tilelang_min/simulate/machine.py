"""The machine that a translated program runs on: some blocks at once, their memory, barriers and counters.

Lanes are threads of all simulated blocks, block after block: lane ``b * threads + t``.  Registers are arrays
``(registers, lanes)``; shared memory is one array of bytes with ``block_bytes`` for each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate import atomics, matrix, sites, transfers
from tilelang_min.simulate.lane_messages import LaneMessages
from tilelang_min.simulate.layout import Layout, Place
from tilelang_min.simulate.races import RaceDetector
from tilelang_min.simulate.repeating import Repeat, Schedule, scheduled
from tilelang_min.simulate.sites import PATTERN_BYTES, Site, SiteCounts
from tilelang_min.simulate.statements import Translation

if TYPE_CHECKING:
    from tilelang_min.simulate.clocks import StrandRaces

POISON_BYTE = 0x7F


def poison(shared: Any, layout: Layout) -> None:
    """Makes the shared memory of blocks recognisable as unwritten: NaN where floats are declared."""
    shared.fill(POISON_BYTE)
    rows = shared.reshape(-1, layout.block_bytes)
    for place in layout.places.values():
        if place.space == "shared" and "float" in place.buffer.dtype:
            end = place.offset + place.buffer.elements * place.itemsize
            rows[:, place.offset : end].view(numpy_dtype(place.buffer.dtype))[...] = np.nan


class SplitBlocksError(Exception):
    """Blocks that run together took different ways at a cp.async group; they must be run one by one."""


class Machine(LaneMessages):
    """Runs the chosen blocks of a translated program.

    ``arrays`` are the parameters, flat and contiguous, by name; those the kernel writes are changed in place.  With
    ``exact`` the addresses of shared accesses are recorded as they are, not only what decides their cost.
    """

    def __init__(
        self,
        program: ThreadProgram,
        translation: Translation,
        blocks: Sequence[tuple[int, int, int]],
        arrays: Mapping[str, Any],
        *,
        count: bool,
        check: bool,
        exact: bool = False,
    ) -> None:
        threads = 1 if program.target.kind == "cpu" else program.threads
        self.prepare(program, translation, blocks, arrays, threads, count=count, exact=exact)
        layout = translation.layout
        self.index = self._launch_indices()
        self.shared = np.empty(layout.block_bytes * len(self.blocks), np.uint8)
        poison(self.shared, layout)
        self.shared_base = np.repeat(np.arange(len(self.blocks), dtype=np.int64) * layout.block_bytes, self.threads)
        used = [site.place for site in translation.sites if site.place.space == "shared"]
        granule = min((place.itemsize for place in used), default=4)
        self.races: RaceDetector | StrandRaces | None = None
        if check and self.threads > 1 and used:
            self.races = RaceDetector(self, granule)

    def prepare(
        self,
        program: ThreadProgram,
        translation: Translation,
        blocks: Sequence[tuple[int, int, int]],
        arrays: Mapping[str, Any],
        threads: int,
        *,
        count: bool,
        exact: bool,
    ) -> None:
        """Everything but lanes and shared memory: ``threads`` of each block run here."""
        self.program, self.translation = program, translation
        self.blocks = list(blocks)
        self.warp_size = program.target.warp_size
        self.threads = threads
        self.lanes = len(self.blocks) * self.threads
        self.warps_per_block = -(-self.threads // self.warp_size)
        self.warps = self.warps_per_block * len(self.blocks)
        self.strict_alignment = program.target.kind != "cpu"
        pairs = list(zip(translation.layout.parameters, program.parameters, strict=True))
        self.arrays = {buffer.key: arrays[parameter.name] for buffer, parameter in pairs}
        self.read_only = {buffer.key for buffer, parameter in pairs if parameter.access == "in"}
        self.locals: dict[int, Any] = {}
        self.counts: dict[int, SiteCounts] | None = {} if count else None
        self.exact = exact
        self.traced: frozenset[int] = frozenset()
        """Operations of which every access is kept in ``trace``, in order."""
        self.trace: list[sites.TracedAccess] = []
        self.regions: list[int] = []
        self.schedule: Schedule = {}
        self.within: Mapping[int, Repeat] = {}
        """The schedule of loops in the iteration of an outer loop that is under way."""
        self.contended: set[int] = set()
        """Loops of atomics in which several warps update one element."""
        self.open_group: list[Callable[[], None]] = []
        self.groups: list[list[Callable[[], None]]] = []

    def run(self) -> list[int]:
        """Executes the program; the result counts the regions of the translation, in warps."""
        with np.errstate(all="ignore"):
            regions: list[int] = self.translation.run(self)
            return regions

    # ---- lanes and memory ---------------------------------------------------------------------------------------------

    def _launch_indices(self) -> dict[str, Any]:
        coordinates = np.array(self.blocks, np.int64).reshape(-1, 3)
        gx, gy, _ = self.program.grid
        linear = coordinates[:, 0] + gx * (coordinates[:, 1] + gy * coordinates[:, 2])
        index = {f"blockIdx.{axis}": np.repeat(coordinates[:, i], self.threads) for i, axis in enumerate("xyz")}
        index["threadIdx.x"] = np.tile(np.arange(self.threads, dtype=np.int64), len(self.blocks))
        index["block"] = np.repeat(linear, self.threads)
        return index

    def memory(self, place: Place) -> tuple[Any, int]:
        """The flat array of a buffer's elements, and the index in it of the buffer's first element (in the first block)."""
        if place.space == "global":
            return self.arrays[place.buffer.key], 0
        return self.shared.view(numpy_dtype(place.buffer.dtype)), place.offset // place.itemsize

    def block_base(self, place: Place) -> Any:
        """For each lane, what its block adds to element indices."""
        return self.shared_base // place.itemsize if place.space == "shared" else np.int64(0) * self.shared_base

    def local(self, key: int) -> Any:
        """The registers of a local buffer, ``(elements, lanes)``, poisoned when first asked for."""
        if key not in self.locals:
            buffer = self.translation.layout.locals[key]
            self.locals[key] = np.empty((buffer.elements, self.lanes), numpy_dtype(buffer.dtype))
            self.poison_local(key)
        return self.locals[key]

    def poison_local(self, key: int) -> None:
        """Makes the contents of a local buffer recognisable as unwritten."""
        array = self.local(key) if key not in self.locals else self.locals[key]
        if "float" in array.dtype.name:
            array.fill(np.nan)
        elif array.dtype.kind == "b":
            array.fill(True)
        else:
            array.view(np.uint8).fill(POISON_BYTE)

    def gather_local(self, registers: Any, index: Any, lanes: int, mask: Any = None) -> Any:
        """Registers whose index differs by lane; what lanes outside of ``mask`` get means nothing."""
        at = self.spread(np.asarray(index, np.int64))
        if mask is not None:
            at = np.where(mask, at, 0)
        self._local_bounds(registers, at, lanes)
        every = np.arange(self.lanes)
        return registers[at, every] if lanes == 1 else registers[at + np.arange(lanes)[:, None], every]

    def scatter_local(self, registers: Any, index: Any, lanes: int, value: Any, mask: Any) -> None:
        """Writes registers whose index differs by lane."""
        at = self.spread(np.asarray(index, np.int64))
        active = np.arange(self.lanes) if mask is None else np.flatnonzero(mask)
        self._local_bounds(registers, at[active], lanes)
        if lanes == 1:
            registers[at[active], active] = np.broadcast_to(value, (self.lanes,))[active]
        else:
            steps = np.arange(lanes)[:, None]
            registers[at[active] + steps, active] = np.broadcast_to(value, (lanes, self.lanes))[:, active]

    def _local_bounds(self, registers: Any, at: Any, lanes: int) -> None:
        if at.size and (at.min() < 0 or at.max() > len(registers) - lanes):
            raise SimulationError(f"local array of {len(registers)} elements indexed with {at.min()} to {at.max()}")

    def spread(self, value: Any) -> Any:
        """A value with its full lane axis."""
        array = np.asarray(value)
        return array if array.shape[-1:] == (self.lanes,) else np.broadcast_to(array, (*array.shape[:-1], self.lanes))

    def rows(self, value: Any, count: int) -> Any:
        """A vector value as an array ``(count, lanes)``."""
        return np.broadcast_to(value, (count, self.lanes))

    # ---- sites --------------------------------------------------------------------------------------------------------

    def site(self, number: int, base: Any) -> Callable[..., Any]:
        """See :func:`sites.make_site`."""
        return sites.make_site(self, self._writable(number), base)

    def masked_site(self, number: int, base: Any) -> Callable[..., Any]:
        """See :func:`sites.make_masked_site`."""
        return sites.make_masked_site(self, self._writable(number), base)

    def general_site(self, number: int) -> Callable[..., Any]:
        """See :func:`sites.make_general_site`."""
        return sites.make_general_site(self, self._writable(number))

    def ldmatrix(self, number: int, transposed: bool, base: Any) -> Callable[..., Any]:
        """See :func:`transfers.make_ldmatrix`."""
        return transfers.make_ldmatrix(self, self.translation.sites[number], transposed, base)

    def masked_ldmatrix(self, number: int, transposed: bool) -> Callable[..., Any]:
        """See :func:`transfers.make_masked_ldmatrix`."""
        return transfers.make_masked_ldmatrix(self, self.translation.sites[number], transposed)

    def cp_async(self, target: int, origin: int, target_base: Any, origin_base: Any) -> Callable[..., None]:
        """See :func:`transfers.make_cp_async`."""
        all_sites = self.translation.sites
        return transfers.make_cp_async(self, all_sites[target], all_sites[origin], (target_base, origin_base))

    def masked_cp_async(self, target: int, origin: int) -> Callable[..., None]:
        """See :func:`transfers.make_masked_cp_async`."""
        return transfers.make_masked_cp_async(self, self.translation.sites[target], self.translation.sites[origin])

    def atomic(self, number: int, loads: int | None, name: str) -> Callable[..., None]:
        """See :func:`atomics.make_atomic`."""
        all_sites = self.translation.sites
        return atomics.make_atomic(self, self._writable(number), None if loads is None else all_sites[loads], name)

    def matrix(self, name: str, modifiers: tuple[int, ...]) -> Callable[..., Any]:
        """A matrix instruction; further arguments are ignored (checks made while evaluating them)."""
        instruction = matrix.find_instruction(self.program.target, name, modifiers)
        if self.threads % self.warp_size:
            raise SimulationError(f"{name} needs whole warps, but a block has {self.threads} threads")
        operation = matrix.matrix_operation(instruction, self.warps)
        return lambda a, b, c, _checked=None: operation(a, b, c)

    # ---- exchanges between lanes --------------------------------------------------------------------------------------

    def lanes_xor(self, distance: int, width: int) -> Any:
        """For every lane the lane whose number differs by ``distance`` in its bits, in sections of ``width`` lanes (shfl.bfly)."""
        lanes = np.arange(self.lanes)
        thread = lanes % self.threads % self.warp_size
        other = thread ^ distance
        other = np.where(other // width == thread // width, other, thread)
        return lanes - thread + other

    def lanes_swizzle(self, offset: int) -> Any:
        """For every lane the lane that ds_swizzle reads: masks of the 5 low bits, or a permutation of each four lanes."""
        lanes = np.arange(self.lanes)
        thread = lanes % self.threads % self.warp_size
        if offset & 0x8000:
            other = thread // 4 * 4 + (offset >> thread % 4 * 2 & 3)
        else:
            low = (thread & offset & 0x1F | offset >> 5 & 0x1F) ^ (offset >> 10 & 0x1F)
            other = thread // 32 * 32 + low
        return lanes - thread + other

    def lanes_at(self, address: Any) -> Any:
        """For every lane the lane of its warp that ds_bpermute reads: a quarter of the address in bytes, modulo the warp."""
        lanes = np.arange(self.lanes)
        thread = lanes % self.threads % self.warp_size
        return lanes - thread + np.asarray(self.spread(address), np.int64) // 4 % self.warp_size

    def shuffle(self, value: Any, lanes: Any, mask: Any, operation: int) -> Any:
        """The value of lane ``lanes[i]`` in lane i; every lane that is read must take part."""
        if mask is not None and (mask & ~mask[lanes]).any():
            raise self.error("a lane reads the register of a lane that does not take part", operation)
        if self.threads % self.warp_size and lanes.max() >= self.lanes:
            raise self.error("a lane reads the register of a lane that the block does not have", operation)
        return self.spread(value)[..., lanes]

    def _writable(self, number: int) -> Site:
        site = self.translation.sites[number]
        if site.kind in ("store", "atomic") and site.place.buffer.key in self.read_only:
            raise self.error(f"the kernel writes its input parameter {site.place.buffer.name}", site.operation)
        return site

    def counts_of(self, site: Site) -> SiteCounts | None:
        """Where accesses of a site are counted, or None."""
        if self.counts is None:
            return None
        exact = self.exact and site.place.space == "shared"
        return self.counts.setdefault(site.number, SiteCounts(exact))

    def table(
        self, site: Site, base: Any, unit: int, origin: Any = None, lanes: Any = None
    ) -> tuple[list[int] | dict[int, int] | None, int]:
        """A table of counts over offsets (see :class:`sites.Pattern`) and the mask that reduces an offset to its index."""
        counts = self.counts_of(site)
        times, period = (None, PATTERN_BYTES // unit) if counts is None else counts.table(base, unit, origin, lanes)
        return times, period - 1

    def race_hook(self, site: Site, base: Any, unit: int, lanes: Any = None) -> Callable[[int], None] | None:
        """What to call with the offset (in ``unit`` bytes) of each access to shared memory, or None.

        ``base`` has an entry for each of ``lanes`` (None: all).
        """
        if self.races is None or site.place.space != "shared":
            return None
        every = np.arange(self.lanes) if lanes is None else lanes
        return self.races.hook(site, np.asarray(base) * unit, every, unit)

    # ---- loops ------------------------------------------------------------------------------------------------------

    def count_regions(self, number: int) -> list[int]:
        """The counters of regions, all zero."""
        self.regions = [0] * number
        return self.regions

    def iterations(self, key: int, start: int, end: int) -> Iterable[int]:
        """The iterations of a loop that run: all, or some of which stand for others (:func:`repeating.scheduled`)."""
        return scheduled(self, key, start, end) if self.schedule else range(start, end)

    def tallies(self) -> list[dict[Any, int]]:
        """What is counted besides regions and sites: numbers by anything."""
        return []

    def fixed_tiles(self) -> frozenset[str]:
        """Shared tiles whose layout something other than the program's own accesses prescribes."""
        return frozenset()

    # ---- control ------------------------------------------------------------------------------------------------------

    def lanes_warp(self) -> Any:
        """For every lane the number of its warp, counted over all blocks."""
        lanes = np.arange(self.lanes)
        return lanes // self.threads * self.warps_per_block + lanes % self.threads // self.warp_size

    def active_warps(self, mask: Any) -> int:
        """Warps with at least one active lane."""
        rows = mask.reshape(len(self.blocks), self.threads)
        rest = -self.threads % self.warp_size
        if rest:
            rows = np.pad(rows, ((0, 0), (0, rest)))
        return int(rows.reshape(-1, self.warp_size).any(axis=1).sum())

    def whole_warps(self, mask: Any, operation: int) -> Any:
        """The mask, after checking that no warp is split."""
        rows = mask.reshape(-1, self.warp_size) if not self.threads % self.warp_size else mask.reshape(-1, self.threads)
        if (rows.any(axis=1) != rows.all(axis=1)).any():
            raise self.error("a warp-wide instruction inside control flow that splits a warp", operation)
        return mask

    def barrier(self, operation: int, mask: Any) -> None:
        """A block-wide barrier; all threads of a block must reach it."""
        if mask is not None:
            rows = mask.reshape(len(self.blocks), self.threads)
            split = rows.any(axis=1) & ~rows.all(axis=1)
            if split.any():
                b = int(np.flatnonzero(split)[0])
                here, there = int(np.argmax(rows[b])), int(np.argmin(rows[b]))
                raise self.error(
                    f"barrier in divergent control flow: of block {self.blocks[b]}, thread {here} reaches it "
                    f"and thread {there} does not",
                    operation,
                    "move the barrier out of the condition, or make the condition the same for all threads of a block",
                )
        if self.races is not None:
            self.races.barrier()

    def issue(self, arrive: Callable[[], None]) -> None:
        """Takes note of a cp.async whose data ``arrive()`` will write."""
        self.open_group.append(arrive)

    def commit_group(self, operation: int, mask: Any) -> None:
        """Closes the group of copies issued since the last commit."""
        self._together(operation, mask)
        self.groups.append(self.open_group)
        self.open_group = []

    def wait_group(self, left: int, operation: int, mask: Any) -> None:
        """Lets all but the last ``left`` groups arrive."""
        self._together(operation, mask)
        while len(self.groups) > left:
            for arrive in self.groups.pop(0):
                arrive()

    def _together(self, operation: int, mask: Any) -> None:
        if mask is None or mask.all():
            return
        if len(self.blocks) > 1:
            raise SplitBlocksError
        raise self.error("cp.async groups are committed or awaited in divergent control flow", operation)
