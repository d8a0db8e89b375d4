"""A strand: threads of one block that run in step, and stop where they have to wait for others.

It is a machine of these threads alone, whose program is a generator: a wait yields what it waits for (``waits.Wait``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.bulk import BulkCopies
from tilelang_min.simulate.clocks import StrandRaces
from tilelang_min.simulate.machine import Machine
from tilelang_min.simulate.mbarriers import Mbarrier
from tilelang_min.simulate.result import AccessCount
from tilelang_min.simulate.sites import make_site
from tilelang_min.simulate.stmatrix import make_stmatrix
from tilelang_min.simulate.waits import Wait
from tilelang_min.simulate.wgmma import WarpgroupProducts

if TYPE_CHECKING:
    from tilelang_min.simulate.cluster import Cluster

RANK_BITS = 24
"""Addresses in the shared memory of block r of a cluster are ``(r + 1 << RANK_BITS) + offset``; without a rank, one's own."""

Steps = Generator[Wait, None, None]


class Strand(Machine):
    """Threads ``threads`` of block number ``block`` of a cluster.

    ``thread_of`` numbers its lanes in the cluster: 32 times the warp, the block's warps behind those of the blocks before.
    """

    def __init__(
        self, cluster: Cluster, block: int, threads: Any, arrays: Mapping[str, Any], *, count: bool, exact: bool
    ) -> None:
        self.prepare(
            cluster.program,
            cluster.translation,
            [cluster.blocks[block]],
            arrays,
            len(threads),
            count=count,
            exact=exact,
        )
        self.cluster, self.block = cluster, block
        self.first_threads = threads
        self.thread_of = threads + block * cluster.warps * self.warp_size
        self.shared = cluster.shared
        self.shared_base = np.full(self.lanes, block * cluster.block_bytes, np.int64)
        self.index = self._launch_indices()
        self.index["threadIdx.x"] = threads.astype(np.int64)
        self.races = None if cluster.clocks is None else StrandRaces(cluster.clocks, self)
        self.every = np.arange(self.lanes)
        self.all_warps = sorted({int(w) for w in self.thread_of // self.warp_size})
        self.copies = BulkCopies(self)
        self.products = WarpgroupProducts(self)
        self.cluster_round: int | None = None

    @property
    def name(self) -> str:
        """The strand as shown in messages."""
        first, last = int(self.first_threads[0]), int(self.first_threads[-1])
        return f"threads {first} to {last} of block {self.blocks[0]}"

    def start(self) -> Generator[Wait, None, list[int]]:
        """The program, ready to run."""
        run: Any = self.translation.run
        steps: Generator[Wait, None, list[int]] = run(self)
        return steps

    def finish(self) -> None:
        """Checks what must not be left undone at the end."""
        self.copies.finish()

    def async_counts(self) -> list[AccessCount]:
        """Accesses of bulk copies and warp group products."""
        return [*self.copies.access_counts(), *self.products.access_counts()]

    def tallies(self) -> list[dict[Any, int]]:
        """Those."""
        return [self.copies.counts, self.products.counts, self.products.bytes]

    def fixed_tiles(self) -> frozenset[str]:
        """Tiles that those access."""
        return frozenset(count.buffer for count in self.async_counts() if count.space == "shared")

    def thread(self, lane: int) -> str:
        """A lane as shown in messages."""
        return self.cluster.thread(int(self.thread_of[lane]))

    # ---- lanes ----------------------------------------------------------------------------------------------------------

    def active(self, mask: Any) -> Any:
        """Lanes of a mask."""
        return self.every if mask is None else np.flatnonzero(mask)

    def warps_of(self, mask: Any) -> list[int]:
        """Warps (of the cluster) with an active lane."""
        if mask is None:
            return self.all_warps
        return [int(w) for w in np.unique(self.thread_of[mask] // self.warp_size)]

    def each(self, mask: Any, *values: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        """The distinct values among active lanes, and the lanes that have them."""
        lanes = self.active(mask)
        if all(np.ndim(value) == 0 for value in values):
            yield tuple(int(value) for value in values), lanes
            return
        table = np.stack(
            [np.broadcast_to(np.asarray(value), (self.lanes,))[lanes].astype(np.int64) for value in values]
        )
        distinct, which = np.unique(table, axis=1, return_inverse=True)
        for i in range(distinct.shape[1]):
            yield tuple(int(v) for v in distinct[:, i]), lanes[which.reshape(-1) == i]

    def uniform(self, value: Any, what: str, operation: int, mask: Any = None) -> int:
        """A value that must be the same for all active lanes."""
        if np.ndim(value) == 0:
            return int(value)
        values = np.broadcast_to(np.asarray(value), (self.lanes,))[self.active(mask)]
        if (values != values[0]).any():
            raise self.error(f"{self.label(operation)}: {what} differs between the threads of a warp group", operation)
        return int(values[0])

    def elect(self, mask: Any) -> Any:
        """True for the first active lane of each warp."""
        lanes = self.active(mask)
        _, first = np.unique(self.thread_of[lanes] // self.warp_size, return_index=True)
        chosen = np.zeros(self.lanes, bool)
        chosen[lanes[first]] = True
        return chosen

    def rank(self) -> int:
        """%cluster_ctarank."""
        return self.block

    # ---- mbarriers ------------------------------------------------------------------------------------------------------

    def _barrier(self, address: int, operation: int, lanes: Any) -> Mbarrier:
        block, offset = self.cluster.locate(self.block, address, operation)
        if block != self.block:
            self.cluster.alive(block, operation)
        return self.cluster.mbarriers.find(block, offset, operation, self.thread_of[lanes])

    def mbarrier_init(self, address: Any, count: Any, operation: int, mask: Any) -> None:
        """``mbarrier.init``."""
        for (at, arrivals), lanes in self.each(mask, address, count):
            block, offset = self.cluster.locate(self.block, at, operation)
            self.cluster.mbarriers.init(block, offset, arrivals, operation, self.thread_of[lanes])

    def mbarrier_inval(self, address: Any, operation: int, mask: Any) -> None:
        """``mbarrier.inval``."""
        for (at,), lanes in self.each(mask, address):
            barrier = self._barrier(at, operation, lanes)
            del self.cluster.mbarriers.known[barrier.block, barrier.offset]

    def mbarrier_arrive(self, address: Any, count: Any, amount: Any, arrives: bool, operation: int, mask: Any) -> None:
        """``mbarrier.arrive``, ``mbarrier.arrive.expect_tx`` or (without ``arrives``) ``mbarrier.expect_tx``."""
        for (at, times, expected), lanes in self.each(mask, address, count, amount):
            barrier = self._barrier(at, operation, lanes)
            if expected:
                self.cluster.mbarriers.expect(barrier, expected * len(lanes), operation)
            if not arrives:
                continue
            clocks = self.cluster.clocks
            if clocks is not None and barrier.clock is not None:
                barrier.clock = clocks.release(np.unique(self.thread_of[lanes] // self.warp_size), barrier.clock)
            self.cluster.mbarriers.arrive(barrier, times * len(lanes), operation)

    def mbarrier_wait(self, address: Any, parity: Any, operation: int, mask: Any) -> Steps:
        """``mbarrier.try_wait.parity`` until it succeeds."""
        for (at, which), lanes in self.each(mask, address, parity):
            barrier = self._barrier(at, operation, lanes)
            if barrier.block != self.block:
                raise self.error(f"{self.label(operation)} waits for an mbarrier of another block", operation)
            if which not in (0, 1):
                raise self.error(f"{self.label(operation)}: a phase has parity 0 or 1, not {which}", operation)
            begun = barrier.phase
            if begun % 2 == which:
                yield Wait(
                    lambda barrier=barrier, begun=begun: barrier.phase != begun,  # type: ignore[misc]
                    lambda barrier=barrier, which=which: (  # type: ignore[misc]
                        f"for parity {which}, and {self.cluster.mbarriers.state(barrier)}"
                    ),
                    operation,
                )
                if barrier.phase - begun > 1:
                    raise self.error(
                        f"{self.label(operation)} waits for parity {which} of {self.cluster.mbarriers.name(barrier)}, and "
                        f"phases {begun} and {begun + 1} end while it waits",
                        operation,
                        "nobody may finish a phase before all who wait for the one before have seen it",
                    )
            if self.cluster.clocks is not None and barrier.clock is not None:
                self.cluster.clocks.acquire(np.unique(self.thread_of[lanes] // self.warp_size), barrier.clock)

    # ---- barriers of threads --------------------------------------------------------------------------------------------

    def block_barrier(self, operation: int, mask: Any) -> Steps:
        """``__syncthreads``."""
        yield from self.named_barrier(0, self.cluster.warps * self.warp_size, True, operation, mask)

    def named_barrier(self, number: Any, threads: Any, waits: bool, operation: int, mask: Any) -> Steps:
        """``bar.sync`` or (without ``waits``) ``bar.arrive``; counts whole warps."""
        if mask is not None:
            self.whole_warps(mask, operation)
        cluster = self.cluster
        meetings = []
        for (name, count), lanes in self.each(mask, number, threads):
            warps = np.unique(self.thread_of[lanes] // self.warp_size)
            if not 0 <= name <= 15:
                raise self.error(f"there is no barrier {name}: they are 0 to 15", operation)
            meeting = cluster.named_barrier(self.block, name, count, operation, 32 * len(warps))
            cluster.join(meeting, warps)
            begun = meeting.round
            cluster.pass_if_full(meeting, count)
            meetings.append((meeting, begun, name, count, warps))
        if not waits:
            return
        for meeting, begun, name, count, warps in meetings:
            if meeting.round == begun:
                yield Wait(
                    lambda meeting=meeting, begun=begun: meeting.round != begun,  # type: ignore[misc]
                    lambda meeting=meeting, name=name, count=count: (  # type: ignore[misc]
                        f"at barrier {name}, to which {meeting.came} of {count} threads have come"
                    ),
                    operation,
                )
            if cluster.clocks is not None and meeting.passed is not None:
                cluster.clocks.acquire(warps, meeting.passed)

    def cluster_arrive(self, operation: int, mask: Any) -> None:
        """``barrier.cluster.arrive``."""
        cluster, meeting = self.cluster, self.cluster.meeting
        if mask is not None and not mask.all():
            raise self.error("barrier.cluster.arrive in divergent control flow", operation)
        if self.cluster_round is not None:
            raise self.error(
                f"{self.label(operation)} arrives at the cluster's barrier twice",
                operation,
                "barrier.cluster.wait must follow",
            )
        self.cluster_round = meeting.round
        meeting.came += 32 * len(self.all_warps)
        cluster.join(meeting, self.all_warps)
        cluster.pass_if_full(meeting, cluster.running_threads)

    def cluster_wait(self, operation: int, mask: Any) -> Steps:
        """``barrier.cluster.wait``."""
        cluster, meeting, begun = self.cluster, self.cluster.meeting, self.cluster_round
        if begun is None:
            raise self.error(
                f"{self.label(operation)} waits for the cluster's barrier without having arrived",
                operation,
                "barrier.cluster.arrive must come first",
            )

        def ready() -> bool:
            if meeting.round == begun:
                cluster.pass_if_full(meeting, cluster.running_threads)
            return meeting.round != begun

        if not ready():
            yield Wait(
                ready,
                lambda: (
                    f"at the cluster's barrier, to which {meeting.came} of {cluster.running_threads} threads have come"
                ),
                operation,
            )
        self.cluster_round = None
        if cluster.clocks is not None and meeting.passed is not None:
            cluster.clocks.acquire(self.all_warps, meeting.passed)

    def warp_sync(self, mask: Any) -> None:
        """``bar.warp.sync``: the threads of each warp know what the others did."""
        clocks = self.cluster.clocks
        if clocks is not None:
            for warp in self.warps_of(mask):
                clocks.acquire([warp], clocks.release([warp], clocks.clock()))

    # ---- fences and registers -------------------------------------------------------------------------------------------

    def fence_proxy(self, mask: Any) -> None:
        """``fence.proxy.async``."""
        threads = self.thread_of[self.active(mask)]
        self.cluster.mbarriers.fence(threads)
        clocks = self.cluster.clocks
        if clocks is not None:
            for warp in np.unique(threads // self.warp_size):
                mine = threads[threads // self.warp_size == warp]
                whole = len(mine) == int((self.thread_of // self.warp_size == warp).sum())
                clocks.fence(int(warp), [int(thread) for thread in mine], whole)

    def fence_mbarrier_init(self, mask: Any) -> None:
        """``fence.mbarrier_init``."""
        self.cluster.mbarriers.fence(self.thread_of[self.active(mask)])

    def map_address(self, address: Any, rank: Any) -> Any:
        """``mapa``: an address in the shared memory of another block of the cluster."""
        at, of = np.asarray(address, np.int64), np.asarray(rank, np.int64)
        return (((of + 1) << RANK_BITS) | at & ((1 << RANK_BITS) - 1)).astype(np.uint32)

    def remote_store(self, number: int, address: Any, values: Any, count: int, operation: int, mask: Any) -> None:
        """``st.shared::cluster``: each active lane stores ``count`` words of 4 bytes, rows of ``values``."""
        cluster, lanes = self.cluster, self.active(mask)
        at = np.broadcast_to(np.asarray(address, np.int64), (self.lanes,))[lanes]
        width = 4 * count
        if (at % width).any():
            raise self.error(
                f"{self.label(operation)}: a store of {width} bytes to an address that is no multiple of them",
                operation,
            )
        words = np.broadcast_to(np.asarray(values), (count, self.lanes))[:, lanes].view(np.uint32)
        memory = cluster.shared.view(np.uint32)
        for rank in np.unique(at >> RANK_BITS):
            chosen = at >> RANK_BITS == rank
            owner, _ = cluster.locate(self.block, int(at[chosen].max()) + width - 1, operation)
            if owner != self.block:
                cluster.alive(owner, operation)
            places = (at[chosen] & (1 << RANK_BITS) - 1) + owner * cluster.block_bytes
            if cluster.clocks is not None:
                steps = np.arange(max(1, width // cluster.clocks.granule))
                threads = self.thread_of[lanes[chosen]]
                site = self.translation.sites[number]
                for warp in np.unique(threads // self.warp_size):
                    mine = threads // self.warp_size == warp
                    granules = (places[mine, None] // cluster.clocks.granule + steps).reshape(-1)
                    owners = np.repeat(threads[mine] % self.warp_size, len(steps))
                    cluster.clocks.write(site, granules, owners, int(warp))
            memory[places[None] // 4 + np.arange(count)[:, None]] = words[:, chosen]
        if self.counts is not None:
            place = cluster.buffer_at(int(at[0]) & (1 << RANK_BITS) - 1) if len(at) else "shared memory"
            self.copies.note_remote(
                operation, place, width, len(np.unique(self.thread_of[lanes] // self.warp_size)), len(lanes) * width
            )

    def set_registers(self, count: int, operation: int, mask: Any) -> None:
        """``setmaxnreg``: nothing but a check that all warps of the block fit into the register file."""
        if mask is not None:
            self.whole_warps(mask, operation)
        if not 24 <= count <= 256 or count % 8:
            raise self.error(f"setmaxnreg takes 24 to 256 registers in steps of 8, not {count}", operation)
        known = self.cluster.registers
        known.update(dict.fromkeys(self.warps_of(mask), count))
        mine = [known[w] for w in known if w // self.cluster.warps == self.block]
        there = self.program.target.registers.per_unit
        if len(mine) == self.cluster.warps and there is not None and sum(mine) * self.warp_size > there:
            raise self.error(
                f"setmaxnreg gives the block {sum(mine) * self.warp_size} registers, and there are {there}",
                operation,
                "the counts of all warps together must fit",
            )

    def site(self, number: int, base: Any) -> Callable[..., Any]:
        """See :func:`sites.make_site`; made when it is first used, which of most sites only some strands do."""
        made: Callable[..., Any] | None = None

        def access(*arguments: Any) -> Any:
            nonlocal made
            if made is None:
                made = make_site(self, self._writable(number), base)
            return made(*arguments)

        return access

    # ---- stmatrix -------------------------------------------------------------------------------------------------------

    def stmatrix(self, number: int, transposed: bool) -> Callable[..., None]:
        """See :func:`stmatrix.make_stmatrix`."""
        return make_stmatrix(self, self.translation.sites[number], transposed)
