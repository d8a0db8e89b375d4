"""mbarriers: arrivals, expected bytes, phases, and everything that can be done wrong with them.

The rules are those of the PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".  A phase ends when all
arrivals that ``mbarrier.init`` asked for have come and the bytes that copies brought are as many as were expected.  Waiting for a
parity means waiting until the phase with that parity, the current one or the one before it, has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_min.simulate.clocks import Clock
    from tilelang_min.simulate.cluster import Cluster

MOST_ARRIVALS = (1 << 20) - 1
MOST_BYTES = (1 << 20) - 1


@dataclass(eq=False)
class Mbarrier:
    """One mbarrier in the shared memory of a block.

    ``operation`` and ``thread`` made it, at ``time`` of that thread's warp.  ``pending`` arrivals and ``bytes`` are what the phase
    still waits for; ``expected`` and ``arrived`` say by operation what came in this phase.  ``fenced``: whether the
    initialisation is known to the async proxy.  ``agent`` are the bulk copies that announce themselves here.
    """

    block: int
    offset: int
    count: int
    operation: int
    thread: int
    time: int = 0
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    fenced: bool = False
    agent: int = 0
    clock: Clock | None = None
    expected: dict[int, int] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)
    brought: dict[int, int] = field(default_factory=dict)


class Mbarriers:
    """All mbarriers of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.known: dict[tuple[int, int], Mbarrier] = {}

    def name(self, barrier: Mbarrier) -> str:
        """A barrier as shown in messages."""
        where = self.cluster.place_name(barrier.block * self.cluster.block_bytes + barrier.offset)
        return f"the mbarrier at {where} (initialised by {self.cluster.label(barrier.operation)})"

    def init(self, block: int, offset: int, count: int, operation: int, threads: Any) -> None:
        """``mbarrier.init`` by these threads, which must be one."""
        cluster = self.cluster
        where = cluster.place_name(block * cluster.block_bytes + offset)
        if offset % 8:
            raise cluster.error(f"the mbarrier at {where} does not lie on 8 bytes", operation)
        if len(threads) > 1:
            raise cluster.error(
                f"{cluster.label(operation)}: {len(threads)} threads initialise the mbarrier at {where}",
                operation,
                "let one thread do it",
            )
        if not 1 <= count <= MOST_ARRIVALS:
            raise cluster.error(f"an mbarrier cannot wait for {count} arrivals", operation)
        known = self.known.get((block, offset))
        if known is not None:
            raise cluster.error(
                f"{cluster.label(operation)} initialises {self.name(known)} again",
                operation,
                "mbarrier.inval must come first",
            )
        thread = int(threads[0])
        barrier = Mbarrier(block, offset, count, operation, thread, pending=count)
        if cluster.clocks is not None:
            barrier.time = int(cluster.clocks.time[thread // 32])
            barrier.agent = cluster.clocks.new_agent()
            barrier.clock = cluster.clocks.clock()
        self.known[block, offset] = barrier

    def find(self, block: int, offset: int, operation: int, threads: Any = ()) -> Mbarrier:
        """The barrier there; threads that use it must know that it has been initialised."""
        cluster = self.cluster
        barrier = self.known.get((block, offset))
        if barrier is None:
            raise cluster.error(
                f"{cluster.label(operation)} uses {cluster.place_name(block * cluster.block_bytes + offset)} as an mbarrier, "
                "which is not initialised",
                operation,
                "one thread must run mbarrier.init on it first",
            )
        clocks = cluster.clocks
        if clocks is not None:
            for thread in threads:
                if thread != barrier.thread and clocks.seen[thread // 32, barrier.thread // 32] < barrier.time:
                    raise cluster.error(
                        f"{cluster.label(operation)} uses {self.name(barrier)} in {cluster.thread(int(thread))}, which need "
                        "not know yet that it is initialised",
                        operation,
                        "a barrier is missing between the initialisation and the first use",
                    )
        return barrier

    def fence(self, threads: Any) -> None:
        """A fence by threads that makes their initialisations known to the async proxy."""
        chosen = {int(thread) for thread in threads}
        for barrier in self.known.values():
            barrier.fenced = barrier.fenced or barrier.thread in chosen

    def expect(self, barrier: Mbarrier, amount: int, operation: int) -> None:
        """``expect_tx``."""
        barrier.bytes += amount
        barrier.expected[operation] = barrier.expected.get(operation, 0) + amount
        self._check_bytes(barrier, operation)

    def arrive(self, barrier: Mbarrier, times: int, operation: int) -> None:
        """``times`` arrivals."""
        if times > barrier.pending:
            others = self._list(barrier.arrived)
            raise self.cluster.error(
                f"{self.cluster.label(operation)} arrives at {self.name(barrier)}, which waits for no more than "
                f"{barrier.count} arrivals in phase {barrier.phase}; there came already: {others}",
                operation,
                "the count of mbarrier.init must be the number of threads that arrive in a phase",
            )
        barrier.pending -= times
        barrier.arrived[operation] = barrier.arrived.get(operation, 0) + times
        self._advance(barrier, operation)

    def complete(self, barrier: Mbarrier, amount: int, phase: int, operation: int) -> None:
        """A copy that was asked for in ``phase`` has brought its bytes."""
        if phase != barrier.phase:
            raise self.cluster.error(
                f"phase {phase} of {self.name(barrier)} ended before the {amount} bytes of {self.cluster.label(operation)} came",
                operation,
                "arrive.expect_tx must count the bytes of every copy of the phase before the last arrival",
            )
        barrier.bytes -= amount
        barrier.brought[operation] = barrier.brought.get(operation, 0) + amount
        self._check_bytes(barrier, operation)
        if barrier.bytes < 0 and barrier.pending == 0:
            raise self.cluster.error(
                self.mismatch(barrier), operation, "expect_tx must name the bytes that the copies bring"
            )
        self._advance(barrier, operation)

    def mismatch(self, barrier: Mbarrier) -> str:
        """What a phase expected, and what came."""
        expected, brought = sum(barrier.expected.values()), sum(barrier.brought.values())
        return (
            f"phase {barrier.phase} of {self.name(barrier)} expects {expected} bytes ({self._list(barrier.expected)}), and copies "
            f"brought {brought} ({self._list(barrier.brought)})"
        )

    def state(self, barrier: Mbarrier) -> str:
        """What a barrier still waits for."""
        if barrier.pending:
            return (
                f"phase {barrier.phase} of {self.name(barrier)} has {barrier.count - barrier.pending} of {barrier.count} arrivals"
                f" ({self._list(barrier.arrived)})"
            )
        return self.mismatch(barrier)

    def unfinished(self) -> Mbarrier | None:
        """A barrier whose current phase was left with bytes that were expected or brought in vain."""
        return next((barrier for barrier in self.known.values() if barrier.bytes), None)

    def _list(self, by_operation: dict[int, int]) -> str:
        return ", ".join(f"{n} by {self.cluster.label(op)}" for op, n in by_operation.items()) or "nothing"

    def _check_bytes(self, barrier: Mbarrier, operation: int) -> None:
        if abs(barrier.bytes) > MOST_BYTES:
            raise self.cluster.error(
                f"{self.name(barrier)} counts {barrier.bytes} bytes, and can count {MOST_BYTES}", operation
            )

    def _advance(self, barrier: Mbarrier, operation: int) -> None:
        if barrier.pending or barrier.bytes:
            return
        barrier.phase += 1
        barrier.pending = barrier.count
        barrier.expected, barrier.arrived, barrier.brought = {}, {}, {}
        if self.cluster.clocks is not None and barrier.clock is not None:
            seen, visible = self.cluster.clocks.release((), barrier.clock)
            seen[barrier.agent] = barrier.phase
            barrier.clock = seen, visible
