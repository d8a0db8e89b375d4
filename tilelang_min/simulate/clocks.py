"""Races on the shared memory of a cluster, between threads and asynchronous units that wait for one another.

Whoever accesses memory is an *agent*: a warp; a warp group's matrix unit; a thread's bulk stores; the bulk copies that announce
themselves on one mbarrier.  An agent's accesses carry its time; ``seen[w, a]`` is up to which time the accesses of agent ``a`` have
ended before what warp ``w`` does now (a vector clock), and ``visible[w, a]`` up to which time those of warp ``a`` are besides
ordered before the async proxy (``fence.proxy.async``).  Barriers join the clocks of those who meet.  An access that is not seen
by the next one to the same place, one of them a write, is a race.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.sites import Site
from tilelang_min.targets.wgmma import GROUP_WARPS

if TYPE_CHECKING:
    from tilelang_min.simulate.cluster import Cluster
    from tilelang_min.simulate.strand import Strand

SITE_BITS, LANE_BITS, AGENT_BITS = 20, 6, 14
LANE_AT, AGENT_AT, TIME_AT = SITE_BITS, SITE_BITS + LANE_BITS, SITE_BITS + LANE_BITS + AGENT_BITS
SEVERAL = (1 << LANE_BITS) - 1
"""Stands for several lanes of a warp."""
READS = ("load", "ldmatrix")

Clock = tuple[Any, Any]
"""Rows of ``seen`` and ``visible``."""


class Clocks:
    """The clocks of one cluster and the last accesses to each granule of its shared memory."""

    def __init__(self, cluster: Cluster, granule: int) -> None:
        self.cluster, self.granule = cluster, granule
        blocks = len(cluster.blocks)
        self.warps = blocks * cluster.warps
        self.groups = self.warps
        self.groups_per_block = -(-cluster.warps // GROUP_WARPS)
        self.flight = self.groups + blocks * self.groups_per_block
        self.agents = self.flight + 1
        self.seen = np.zeros((self.warps, self.agents + 64), np.int64)
        self.visible = np.zeros_like(self.seen)
        self.time = np.ones(self.warps, np.int64)
        self.thread_fence: dict[int, int] = {}
        size = cluster.shared.size // granule
        self.writers = np.zeros(size, np.int64)
        self.readers: dict[int, Any] = {}

    def new_agent(self) -> int:
        """The number of a further agent."""
        number = self.agents
        self.agents += 1
        if self.agents > self.seen.shape[1]:
            wider = ((0, 0), (0, self.seen.shape[1]))
            self.seen, self.visible = np.pad(self.seen, wider), np.pad(self.visible, wider)
        return number

    def group_agent(self, block: int, group: int) -> int:
        """The matrix unit of a warp group."""
        return self.groups + block * self.groups_per_block + group

    # ---- order ----------------------------------------------------------------------------------------------------------

    def clock(self) -> Clock:
        """A clock that has seen nothing."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def release(self, warps: Any, into: Clock) -> Clock:
        """``into`` with all that these warps have done and seen."""
        seen, visible = (self._wide(row) for row in into)
        for w in warps:
            np.maximum(seen, self.seen[w], out=seen)
            np.maximum(visible, self.visible[w], out=visible)
            seen[w] = self.time[w]
            self.time[w] += 1
        return seen, visible

    def acquire(self, warps: Any, clock: Clock) -> None:
        """These warps have waited for all that ``clock`` has seen."""
        seen, visible = (self._wide(row) for row in clock)
        for w in warps:
            np.maximum(self.seen[w], seen, out=self.seen[w])
            np.maximum(self.visible[w], visible, out=self.visible[w])

    def _wide(self, row: Any) -> Any:
        wide = np.zeros(self.seen.shape[1], np.int64)
        wide[: len(row)] = row
        return wide

    def fence(self, warp: int, threads: Any, whole: bool) -> None:
        """``fence.proxy.async`` by threads of a warp: what they did or saw comes before later accesses of the async proxy."""
        np.maximum(self.visible[warp], self.seen[warp], out=self.visible[warp])
        if whole:
            self.visible[warp, warp] = self.time[warp]
        for thread in threads:
            self.thread_fence[thread] = int(self.time[warp])
        self.time[warp] += 1

    # ---- accesses of the async proxy -----------------------------------------------------------------------------------

    def async_read(self, site: Site, granules: Any, warps: Any, thread: int, agent: int, time: int) -> None:
        """The async proxy begins to read, asked by these warps (by one thread, unless ``thread`` is -1)."""
        self._written(site, granules, warps, thread, "reads", proxy=True)
        row = self.readers.get(agent)
        if row is None:
            row = self.readers[agent] = np.zeros(len(self.writers), np.int64)
        row[granules] = (time << TIME_AT) + (SEVERAL << LANE_AT) + site.number

    def async_write(self, site: Site, granules: Any, warp: int, thread: int, agent: int, time: int) -> None:
        """The async proxy begins to write, asked by a thread."""
        self._written(site, granules, [warp], thread, "writes", proxy=True)
        self._read_before(site, granules, warp, thread)
        self.writers[granules] = (time << TIME_AT) + (agent << AGENT_AT) + (SEVERAL << LANE_AT) + site.number

    # ---- accesses of threads --------------------------------------------------------------------------------------------

    def read(self, site: Site, granules: Any, lanes: Any, warp: int) -> None:
        """Threads of a warp read: ``lanes`` of the warp by granule, :data:`SEVERAL` where several do."""
        self._written(site, granules, [warp], lanes + warp * 32, "reads", proxy=False)
        row = self.readers.get(warp)
        if row is None:
            row = self.readers[warp] = np.zeros(len(self.writers), np.int64)
        before = row[granules]
        same = (before >> TIME_AT == self.time[warp]) & ((before >> LANE_AT & SEVERAL) != lanes)
        row[granules] = (int(self.time[warp]) << TIME_AT) + (np.where(same, SEVERAL, lanes) << LANE_AT) + site.number

    def write(self, site: Site, granules: Any, lanes: Any, warp: int) -> None:
        """Threads of a warp write, each granule one of them."""
        threads = lanes + warp * 32
        self._written(site, granules, [warp], threads, "writes", proxy=False)
        self._read_before(site, granules, warp, threads)
        self.writers[granules] = self.stamps(site, lanes, warp)

    def stamps(self, site: Site, lanes: Any, warp: int) -> Any:
        """Stamps of accesses by threads of a warp now."""
        return (int(self.time[warp]) << TIME_AT) + (warp << AGENT_AT) + (lanes << LANE_AT) + site.number

    def _written(self, site: Site, granules: Any, warps: Any, threads: Any, now: str, *, proxy: bool) -> None:
        stamps = self.writers[granules]
        if not stamps.any():
            return
        agents, times = stamps >> AGENT_AT & (1 << AGENT_BITS) - 1, stamps >> TIME_AT
        seen = self.seen[warps[0]] if len(warps) == 1 else self.seen[list(warps)].min(axis=0)
        own = self._own(stamps, agents, threads)
        bad = (times > seen[agents]) & ~own
        if bad.any():
            self._report(site, granules, threads, stamps, bad, now, "wrote")
        if not proxy:
            return
        visible = self.visible[warps[0]] if len(warps) == 1 else self.visible[list(warps)].min(axis=0)
        bad = (agents < self.warps) & (times > visible[agents])
        if bad.any() and isinstance(threads, int) and threads >= 0:
            bad &= ~(own & (times <= self.thread_fence.get(threads, 0)))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            cluster = self.cluster
            writer = self._site(stamps[i])
            raise cluster.error(
                f"no fence.proxy.async: {cluster.label(site.operation)} {now} {self._where(granules[i])} through the async "
                f"proxy, and {cluster.label(writer.operation)} wrote it with an ordinary store",
                site.operation,
                "the threads that wrote need a fence.proxy.async before the barrier that makes their writes known",
            )

    def _read_before(self, site: Site, granules: Any, warp: int, threads: Any) -> None:
        seen = self.seen[warp]
        for agent, row in self.readers.items():
            stamps = row[granules]
            if not stamps.any():
                continue
            bad = stamps >> TIME_AT > seen[agent]
            if bad.any() and agent < self.warps:
                stamps = stamps + (np.int64(agent) << AGENT_AT)
                bad &= ~self._own(stamps, np.full(len(stamps), agent), threads)
            elif bad.any():
                stamps = stamps + (np.int64(agent) << AGENT_AT)
            if bad.any():
                self._report(site, granules, threads, stamps, bad, "writes", "reads" if agent >= self.warps else "read")

    def _own(self, stamps: Any, agents: Any, threads: Any) -> Any:
        """Which stamps are those of the very thread that accesses now."""
        lane = stamps >> LANE_AT & SEVERAL
        return (agents < self.warps) & (lane != SEVERAL) & (agents * 32 + lane == threads)

    # ---- messages -------------------------------------------------------------------------------------------------------

    def _site(self, stamp: Any) -> Site:
        return self.cluster.translation.sites[int(stamp) & ((1 << SITE_BITS) - 1)]

    def _where(self, granule: Any) -> str:
        return self.cluster.place_name(int(granule) * self.granule)

    def _report(self, site: Site, granules: Any, threads: Any, stamps: Any, bad: Any, now: str, before: str) -> None:
        i = int(np.flatnonzero(bad)[0])
        cluster, other = self.cluster, self._site(stamps[i])
        agent = int(stamps[i]) >> AGENT_AT & (1 << AGENT_BITS) - 1
        access = f"{cluster.label(site.operation)} {now} {self._where(granules[i])}"
        who = np.broadcast_to(threads, granules.shape)[i]
        if who >= 0 and who % 32 != SEVERAL:
            access += f" in {cluster.thread(int(who))}"
        there = cluster.label(other.operation)
        if agent == self.flight:
            message = f"{access}, while the cp.async of {there} may still be writing it"
            remedy = "the wait before it must cover that copy's group (and a barrier must follow the wait)"
        elif other.kind == "tma_load":
            message = f"{access}, while the bulk copy of {there} may still be writing it"
            remedy = "wait for that copy's mbarrier (the phase that counts its bytes) first"
        elif other.kind == "tma_store":
            message = f"{access}, while the bulk store of {there} may still be reading it"
            remedy = "the thread that issued the store must wait with cp.async.bulk.wait_group.read, and a barrier must follow"
        elif other.kind == "wgmma":
            message = f"{access}, while the wgmma of {there} may still be reading it"
            remedy = "wgmma.wait_group must cover that product, and an arrival at a barrier must follow the wait"
        else:
            lane = int(stamps[i]) >> LANE_AT & SEVERAL
            whom = f" in {cluster.thread(agent * 32 + lane)}" if lane != SEVERAL else ""
            message = f"{access}, and {there} {before} it{whom}, with no barrier between"
            remedy = "a barrier is missing between the two operations"
        raise cluster.error(f"race on shared memory: {message}", site.operation, remedy)


class StrandRaces:
    """What the sites of one strand tell the clocks; takes the place of ``races.RaceDetector``."""

    def __init__(self, clocks: Clocks, strand: Strand) -> None:
        self.clocks, self.strand, self.granule = clocks, strand, clocks.granule

    def barrier(self) -> None:
        """Barriers of strands go by the cluster."""

    def hook(self, site: Site, addresses: Any, lanes: Any, unit: int) -> Callable[[int], None]:
        """A function of an offset in ``unit`` bytes, for accesses at ``addresses + offset * unit`` by ``lanes``."""
        parts, twice = self._parts(site, addresses, lanes)
        act = self.clocks.read if site.kind in READS else self.clocks.write

        def touch(offset: int) -> None:  # ldmatrix counts in 2 bytes, also where each element has 4
            first = offset * unit // self.granule
            if twice is not None:
                self._clash(site, twice + first)
            for warp, granules, owners in parts:
                act(site, granules + first, owners, warp)

        return touch

    def flight(self, site: Site, addresses: Any, lanes: Any, unit: int) -> tuple[Callable[[int], None], ...]:
        """Two functions of an offset for a cp.async: one for its issue, one for its arrival."""
        parts, twice = self._parts(site, addresses, lanes)
        scale, clocks = unit // self.granule, self.clocks
        stamp = (1 << TIME_AT) + (clocks.flight << AGENT_AT) + (SEVERAL << LANE_AT) + site.number

        def issue(offset: int) -> None:
            if twice is not None:
                self._clash(site, twice + offset * scale)
            for warp, granules, owners in parts:
                clocks.write(site, granules + offset * scale, owners, warp)
                clocks.writers[granules + offset * scale] = stamp

        def arrive(offset: int) -> None:
            for warp, granules, owners in parts:
                clocks.writers[granules + offset * scale] = clocks.stamps(site, owners, warp)

        return issue, arrive

    def note(self, site: Site, addresses: Any, lanes: Any) -> None:
        """One access at byte addresses."""
        if len(lanes):
            self.hook(site, addresses, lanes, self.granule)(0)

    def update(self, site: Site, addresses: Any, lanes: Any) -> None:
        """One atomic at byte addresses: in programs of several strands no plain access is held against it."""

    def _parts(self, site: Site, addresses: Any, lanes: Any) -> tuple[list[tuple[int, Any, Any]], int | None]:
        """Of each warp its number, the distinct granules, and for each its lane or SEVERAL; and a granule that several threads
        write, if any."""
        steps = np.arange(max(1, site.width_bytes // self.granule))
        granules = (addresses[:, None] // self.granule + steps).reshape(-1)
        threads = np.repeat(self.strand.thread_of[lanes], len(steps))
        order = np.lexsort((granules, threads // 32))
        granules, threads = granules[order], threads[order]
        warps = threads // 32
        fresh = np.concatenate([[True], (granules[1:] != granules[:-1]) | (warps[1:] != warps[:-1])])
        starts = np.flatnonzero(fresh)
        low, high = np.minimum.reduceat(threads, starts), np.maximum.reduceat(threads, starts)
        owner = np.where(low == high, low % 32, SEVERAL)
        granules, warps = granules[starts], warps[starts]
        twice = None
        if site.kind not in READS:
            ordered = np.sort(granules)
            again = ordered[1:][ordered[1:] == ordered[:-1]]
            several = granules[owner == SEVERAL]
            twice = int(several[0]) if len(several) else int(again[0]) if len(again) else None
        return [(int(w), granules[warps == w], owner[warps == w]) for w in np.unique(warps)], twice

    def _clash(self, site: Site, granule: int) -> None:
        cluster = self.strand.cluster
        raise cluster.error(
            f"race on shared memory: several threads write {cluster.place_name(granule * self.granule)} at once in "
            f"{cluster.label(site.operation)}",
            site.operation,
            "one thread alone must write each element",
        )
