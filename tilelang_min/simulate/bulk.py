"""Copies of the tensor memory accelerator: boxes of a tensor to shared memory and back.

A load takes its data when it is issued and writes it, with the announcement on its mbarrier, as late as possible; a store reads
shared memory only when a wait covers its group.  Swizzles exchange bits 4-6 of a shared address with bits 7-9, as on hardware,
so they depend on where the box lies.  Elements out of range read as zero and are not written; their bytes are announced all the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.errors import SimulationError
from tilelang_min.program import TensorMap
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.program.tensor_maps import UNIT_BYTES, tensor_map_problem
from tilelang_min.simulate.result import AccessCount

if TYPE_CHECKING:
    from tilelang_min.simulate.strand import Strand

BOX_ALIGNMENT = 128
"""Bytes on which a box must start in shared memory."""
WIDE = np.complex128
"""16 bytes that are moved at once."""
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def swizzled(addresses: Any, swizzle_bytes: int) -> Any:
    """Where the hardware puts what would lie at these byte addresses."""
    mask = max(swizzle_bytes // UNIT_BYTES - 1, 0)
    return addresses ^ ((addresses >> 7 & mask) << 4)


@dataclass(eq=False)
class Boxes:
    """One tensor map over the memory of its parameter."""

    map: TensorMap
    tensor: Any

    @classmethod
    def of(cls, tensor_map: TensorMap, flat: Any) -> Boxes:
        """Raises SimulationError for a map that cannot be."""
        problem = tensor_map_problem(tensor_map)
        dtype = numpy_dtype(tensor_map.dtype)
        inner = tensor_map.box[-1] * dtype.itemsize
        if problem is None and tensor_map.swizzle and inner != tensor_map.swizzle:
            problem = (
                f"tensor map {tensor_map.name}: the simulator knows swizzles of {tensor_map.swizzle} bytes for rows of as "
                f"many, not of {inner}"
            )
        if problem is None and int(np.prod(tensor_map.extents)) * dtype.itemsize > flat.nbytes:
            problem = f"tensor map {tensor_map.name} describes more than the tensor {tensor_map.parameter} holds"
        if problem is not None:
            raise SimulationError(problem)
        count = int(np.prod(tensor_map.extents))
        return cls(tensor_map, flat.view(dtype)[:count].reshape(tensor_map.extents))

    @property
    def bytes(self) -> int:
        """Bytes of a whole box."""
        return math.prod(self.map.box) * int(self.tensor.itemsize)

    def units(self, address: int) -> Any:
        """Addresses of the 16-byte units of a box that starts at an address in shared memory."""
        return swizzled(address + np.arange(0, self.bytes, UNIT_BYTES), self.map.swizzle)

    def inside(self, coordinates: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of a box (innermost coordinate first) that lies in the tensor: in the tensor, and in the box."""
        there, here = [], []
        for start, extent, size in zip(reversed(coordinates), self.map.box, self.map.extents, strict=True):
            low, high = min(max(start, 0), size), max(min(start + extent, size), 0)
            there.append(slice(low, max(low, high)))
            here.append(slice(low - start, max(low, high) - start))
        return tuple(there), tuple(here)

    def load(self, coordinates: tuple[int, ...]) -> Any:
        """A box as 16-byte units."""
        box = np.zeros(self.map.box, self.tensor.dtype)
        there, here = self.inside(coordinates)
        if all(part.stop > part.start for part in there):
            box[here] = self.tensor[there]
        return box.reshape(-1).view(WIDE)

    def store(self, coordinates: tuple[int, ...], units: Any, reduction: str) -> None:
        """Writes, or adds and the like, a box of 16-byte units."""
        box = np.ascontiguousarray(units).view(self.tensor.dtype).reshape(self.map.box)
        there, here = self.inside(coordinates)
        if any(part.stop <= part.start for part in there):
            return
        self.tensor[there] = REDUCTIONS[reduction](self.tensor[there], box[here]) if reduction else box[here]

    def cost(self, coordinates: tuple[int, ...], sector: int) -> tuple[int, int]:
        """Bytes of a box inside the tensor, and the distinct sectors (of so many bytes) they lie in."""
        there, _ = self.inside(coordinates)
        extents = [max(0, part.stop - part.start) for part in there]
        size = int(self.tensor.itemsize)
        if not all(extents):
            return 0, 0
        steps = np.array(self.tensor.strides[:-1], np.int64)
        outer = np.indices(extents[:-1]).reshape(len(steps), -1) if len(steps) else np.zeros((0, 1), np.int64)
        first = sum(part.start * stride for part, stride in zip(there, self.tensor.strides, strict=True))
        starts = first + (steps[:, None] * outer).sum(axis=0)
        low, high = starts // sector, (starts + extents[-1] * size - 1) // sector
        shared = int((low[1:] == high[:-1]).sum())
        return math.prod(extents) * size, int((high - low + 1).sum()) - shared


class BulkCopies:
    """The bulk copies of one strand."""

    def __init__(self, strand: Strand) -> None:
        self.strand = strand
        self.boxes: dict[str, Boxes] = {}
        self.open: dict[int, list[Callable[[], None]]] = {}
        self.groups: dict[int, list[list[Callable[[], None]]]] = {}
        self.committed: dict[int, int] = {}
        self.agents: dict[int, int] = {}
        self.issued: dict[int, int] = {}
        self.counts: dict[AccessCount, int] = {}
        """Accesses of one box, and how many of them there were."""

    def _boxes(self, name: str, operation: int) -> Boxes:
        found = self.boxes.get(name)
        if found is None:
            strand = self.strand
            tensor_map = next((each for each in strand.program.tensor_maps if each.name == name), None)
            if tensor_map is None:
                raise strand.error(f"the program lists no tensor map {name}", operation)
            key = next(
                buffer.key
                for buffer, parameter in zip(
                    strand.translation.layout.parameters, strand.program.parameters, strict=True
                )
                if parameter.name == tensor_map.parameter
            )
            found = self.boxes[name] = Boxes.of(tensor_map, strand.arrays[key])
        return found

    def _check(self, boxes: Boxes, address: int, coordinates: tuple[int, ...], operation: int) -> None:
        strand = self.strand
        if len(coordinates) != len(boxes.map.extents):
            raise strand.error(
                f"{strand.label(operation)}: {len(coordinates)} coordinates for the {len(boxes.map.extents)} dimensions of "
                f"{boxes.map.name}",
                operation,
            )
        if address % BOX_ALIGNMENT:
            raise strand.error(
                f"{strand.label(operation)}: a box of {boxes.map.name} starts at {strand.cluster.place_name(address)} of shared "
                f"memory, which is no multiple of {BOX_ALIGNMENT} bytes",
                operation,
            )
        if address + boxes.bytes > strand.cluster.block_bytes:
            raise strand.error(
                f"{strand.label(operation)}: a box of {boxes.bytes} bytes of {boxes.map.name} ends behind shared memory",
                operation,
            )

    def _granules(self, block: int, units: Any) -> Any:
        clocks = self.strand.cluster.clocks
        assert clocks is not None
        size = clocks.granule
        flat = block * self.strand.cluster.block_bytes + units
        if size == UNIT_BYTES:
            return flat // size
        return (flat[:, None] // size + np.arange(UNIT_BYTES // size)).reshape(-1)

    def load(
        self,
        name: str,
        number: int,
        target: Any,
        coordinates: tuple[Any, ...],
        mbarrier: Any,
        destinations: Any,
        operation: int,
        mask: Any,
    ) -> None:
        """``cp.async.bulk.tensor`` to shared memory; ``destinations`` is the mask of a multicast, or None."""
        strand, boxes = self.strand, self._boxes(name, operation)
        for values, lanes in strand.each(
            mask, target, mbarrier, *coordinates, *([] if destinations is None else [destinations])
        ):
            for lane in lanes:
                where, barrier_at, *at = values
                ranks = None
                if destinations is not None:
                    chosen = at.pop()
                    ranks = [rank for rank in range(16) if chosen >> rank & 1]
                self._load_one(
                    boxes, number, where, tuple(at), barrier_at, ranks, operation, int(strand.thread_of[lane])
                )

    def _load_one(
        self,
        boxes: Boxes,
        number: int,
        target: int,
        at: tuple[int, ...],
        mbarrier: int,
        ranks: list[int] | None,
        operation: int,
        thread: int,
    ) -> None:
        strand, cluster = self.strand, self.strand.cluster
        block, offset = cluster.locate(strand.block, target, operation)
        barrier_block, barrier_offset = cluster.locate(strand.block, mbarrier, operation)
        self._check(boxes, offset, at, operation)
        units = boxes.units(offset)
        data = boxes.load(at)
        owners = [(block, barrier_block)] if ranks is None else [(rank, rank) for rank in ranks]
        self._count("tma_load", boxes, offset, at, len(owners), operation)
        for owner, barrier_owner in owners:
            if owner >= len(cluster.blocks):
                raise strand.error(f"{strand.label(operation)}: the cluster has no block {owner}", operation)
            if owner != strand.block:
                cluster.alive(owner, operation)
            barrier = cluster.mbarriers.find(barrier_owner, barrier_offset, operation, [thread])
            if not barrier.fenced:
                raise strand.error(
                    f"{strand.label(operation)}: {cluster.mbarriers.name(barrier)} need not be known to the async proxy",
                    operation,
                    "the thread that initialises it must run fence.mbarrier_init (or fence.proxy.async) afterwards",
                )
            phase = barrier.phase
            if cluster.clocks is not None:
                site = strand.translation.sites[number]
                granules = self._granules(owner, units)
                cluster.clocks.async_write(
                    site, granules, thread // self.strand.warp_size, thread, barrier.agent, phase + 1
                )

            def arrive(owner: int = owner, barrier: Any = barrier, phase: int = phase) -> None:
                cluster.shared.view(WIDE)[(owner * cluster.block_bytes + units) // UNIT_BYTES] = data
                cluster.mbarriers.complete(barrier, boxes.bytes, phase, operation)

            cluster.pending.append(arrive)

    def store(
        self,
        name: str,
        number: int,
        origin: Any,
        coordinates: tuple[Any, ...],
        reduction: str,
        operation: int,
        mask: Any,
    ) -> None:
        """``cp.async.bulk.tensor`` (or ``cp.reduce``) from shared memory."""
        strand, cluster = self.strand, self.strand.cluster
        boxes = self._boxes(name, operation)
        if any(p.name == boxes.map.parameter and p.access == "in" for p in strand.program.parameters):
            raise strand.error(f"the kernel writes its input parameter {boxes.map.parameter}", operation)
        for (where, *at), lanes in strand.each(mask, origin, *coordinates):
            if min(at) < 0:
                raise strand.error(
                    f"{strand.label(operation)}: a bulk store to {boxes.map.parameter} starts at the negative coordinate "
                    f"{min(at)}, which the hardware refuses",
                    operation,
                    "a box may end outside its tensor, and when it is loaded begin there; a store must begin inside",
                )
            for lane in lanes:
                thread = int(strand.thread_of[lane])
                block, offset = cluster.locate(strand.block, where, operation)
                self._check(boxes, offset, tuple(at), operation)
                units = boxes.units(offset)
                self._count("tma_store", boxes, offset, tuple(at), 1, operation)
                if cluster.clocks is not None:
                    if thread not in self.agents:
                        self.agents[thread] = cluster.clocks.new_agent()
                    site = strand.translation.sites[number]
                    time = self.committed.get(thread, 0) + 1
                    granules = self._granules(block, units)
                    cluster.clocks.async_read(
                        site, granules, [thread // self.strand.warp_size], thread, self.agents[thread], time
                    )

                def finish(block: int = block, units: Any = units, at: tuple[int, ...] = tuple(at)) -> None:
                    memory = cluster.shared.view(WIDE)
                    boxes.store(at, memory[(block * cluster.block_bytes + units) // UNIT_BYTES], reduction)

                self.open.setdefault(thread, []).append(finish)
                self.issued[thread] = operation

    def commit(self, mask: Any) -> None:
        """``cp.async.bulk.commit_group``."""
        for lane in self.strand.active(mask):
            thread = int(self.strand.thread_of[lane])
            if thread in self.open or thread in self.groups:
                self.groups.setdefault(thread, []).append(self.open.pop(thread, []))
                self.committed[thread] = self.committed.get(thread, 0) + 1

    def wait(self, left: int, mask: Any) -> None:
        """``cp.async.bulk.wait_group[.read]``: all but the last ``left`` groups have read (and, here, written)."""
        clocks = self.strand.cluster.clocks
        for lane in self.strand.active(mask):
            thread = int(self.strand.thread_of[lane])
            groups = self.groups.get(thread)
            if groups is None:
                continue
            while len(groups) > left:
                for finish in groups.pop(0):
                    finish()
            if clocks is not None and thread in self.agents:
                agent, warp = self.agents[thread], thread // self.strand.warp_size
                done = self.committed[thread] - len(groups)
                clocks.seen[warp, agent] = max(int(clocks.seen[warp, agent]), done)

    def finish(self) -> None:
        """The threads end: their stores must have read what they send."""
        for thread, operation in self.issued.items():
            if self.open.get(thread) or any(self.groups.get(thread, [])):
                what = "which no commit_group closes" if self.open.get(thread) else "which no wait_group covers"
                raise self.strand.error(
                    f"{self.strand.cluster.thread(thread)} ends with a bulk store of {self.strand.label(operation)} {what}",
                    operation,
                    "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 must come before the end",
                )

    def note_remote(self, operation: int, place: str, width: int, requests: int, size: int) -> None:
        """An ordinary store of warps to another block's shared memory: ``width`` bytes a lane, ``size`` in all."""
        one = AccessCount(
            operation,
            place,
            "shared",
            "remote_store",
            width * 8,
            requests,
            None,
            None,
            None,
            None,
            None,
            size,
            "unknown",
        )
        self.counts[one] = self.counts.get(one, 0) + 1

    def _count(self, kind: str, boxes: Boxes, offset: int, at: tuple[int, ...], targets: int, operation: int) -> None:
        if self.strand.counts is None:
            return
        transfer = self.strand.program.target.global_transfer
        assert transfer is not None  # as of every GPU
        sector = transfer.load_bytes if kind == "tma_load" else transfer.store_bytes
        inside, sectors = boxes.cost(at, sector)
        place = self.strand.cluster.buffer_at(offset)
        width = boxes.bytes * 8
        ideal = -(-inside // sector)
        there = AccessCount(
            operation,
            boxes.map.parameter,
            "global",
            kind,
            width,
            1,
            None,
            None,
            None,
            sectors,
            ideal,
            inside,
            "known",
        )
        here = AccessCount(
            operation,
            place,
            "shared",
            kind,
            width,
            targets,
            None,
            None,
            None,
            None,
            None,
            boxes.bytes * targets,
            "unknown",
        )
        for one in (there, here):
            self.counts[one] = self.counts.get(one, 0) + 1

    def access_counts(self) -> list[AccessCount]:
        """Both sides of all copies."""
        return [one.scaled(times) for one, times in self.counts.items()]
