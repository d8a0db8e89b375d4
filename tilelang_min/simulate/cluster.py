"""The blocks of a cluster that run together: their shared memory, their strands, and what these wait for.

Strands run one at a time, each until it has to wait.  Copies of the async units arrive as late as possible: when nobody can run.
If nobody waits for something that can still happen, the program hangs, and the error says who waits for what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.program import ThreadProgram
from tilelang_min.simulate.clocks import Clock, Clocks
from tilelang_min.simulate.layout import Place
from tilelang_min.simulate.machine import poison
from tilelang_min.simulate.mbarriers import Mbarriers
from tilelang_min.simulate.messages import Messages
from tilelang_min.simulate.strand import RANK_BITS, Strand
from tilelang_min.simulate.waits import Wait

if TYPE_CHECKING:
    from tilelang_min.simulate.statements import Translation

MOST_GRANULE = 16
UNPLACED = ("tma_load", "tma_store", "wgmma", "remote_store")
"""Kinds of sites that move 16 bytes at once, and whose buffer says nothing."""


@dataclass(eq=False)
class Meeting:
    """A barrier of threads of a block or cluster; ``round`` counts how often it was passed."""

    round: int = 0
    came: int = 0
    threads: int = 0
    by: dict[int, int] = field(default_factory=dict)
    clock: Clock | None = None
    passed: Clock | None = None


class Cluster(Messages):
    """Runs the blocks of one cluster; arguments as of :class:`~tilelang_min.simulate.machine.Machine`."""

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
        self.program, self.translation, self.blocks = program, translation, list(blocks)
        self.threads = program.threads
        self.warp_size = program.target.warp_size
        self.warps = -(-program.threads // self.warp_size)
        self.block_bytes = translation.layout.block_bytes
        self.shared = np.empty(self.block_bytes * len(self.blocks), np.uint8)
        poison(self.shared, translation.layout)
        self.registers: dict[int, int] = {}
        sizes = [s.place.itemsize for s in translation.sites if s.place.space == "shared" and s.kind not in UNPLACED]
        self.clocks = Clocks(self, min([*sizes, MOST_GRANULE])) if check else None
        self.mbarriers = Mbarriers(self)
        self.pending: deque[Callable[[], None]] = deque()
        self.named: dict[tuple[int, int], Meeting] = {}
        self.meeting = Meeting()
        self.ended = [0] * len(self.blocks)
        self.strands = [
            Strand(self, number, threads, arrays, count=count, exact=exact)
            for number in range(len(self.blocks))
            for threads in translation.strands
        ]

    # ---- running --------------------------------------------------------------------------------------------------------

    def run(self) -> list[list[int]]:
        """Executes all strands; the results count the regions of the translation, in warps, for each."""
        with np.errstate(all="ignore"):
            return self._run()

    def _run(self) -> list[list[int]]:
        running: list[tuple[Strand, Generator[Wait, None, list[int]]]] = [(s, s.start()) for s in self.strands]
        results: dict[Strand, list[int]] = {}
        waits: dict[Strand, Wait] = {}
        while running:
            moved = False
            for strand, steps in list(running):
                wait = waits.get(strand)
                if wait is not None and not wait.ready():
                    continue
                moved = True
                try:
                    waits[strand] = next(steps)
                except StopIteration as end:
                    results[strand] = end.value
                    strand.finish()
                    self.ended[strand.block] += len(strand.thread_of)
                    waits.pop(strand, None)
                    running.remove((strand, steps))
            if not moved:
                if not self.pending:
                    self._hang([(strand, waits[strand]) for strand, _ in running])
                self.deliver()
        self.deliver()
        self._whole_products()
        left = self.mbarriers.unfinished()
        if left is not None:
            operation = next(iter({**left.expected, **left.brought}), left.operation)
            raise self.error(
                f"the kernel ends while {self.mbarriers.mismatch(left)}",
                operation,
                "expect_tx must name the bytes that the copies bring",
            )
        return [results[strand] for strand in self.strands]

    def _whole_products(self) -> None:
        """All warps of a warp group must have issued the same number of products."""
        groups: dict[tuple[int, int], Strand] = {}
        for strand in self.strands:
            other = groups.setdefault((strand.block, strand.products.group), strand)
            if other.products.issued != strand.products.issued:
                more, fewer = sorted((other, strand), key=lambda each: -each.products.issued)
                raise self.error(
                    f"{self.label(more.products.last)}: {more.name} issue {more.products.issued} wgmma, and {fewer.name}, of the "
                    f"same warp group, {fewer.products.issued}",
                    more.products.last,
                    "all four warps of a warp group must execute each wgmma",
                )

    def deliver(self) -> None:
        """Lets all copies arrive."""
        while self.pending:
            self.pending.popleft()()

    def _hang(self, waiting: list[tuple[Strand, Wait]]) -> None:
        lines: dict[str, list[str]] = {}
        for strand, wait in waiting:
            text = f"{self.label(wait.operation)} waits: {wait.describe()}"
            lines.setdefault(text, []).append(strand.name)
        parts = "; ".join(f"{', '.join(names)}: {text}" for text, names in lines.items())
        done = [strand.name for strand in self.strands if all(strand is not other for other, _ in waiting)]
        rest = f"; ended: {', '.join(done)}" if done else ""
        raise self.error(
            f"deadlock: nothing that is waited for can happen any more. {parts}{rest}",
            waiting[0][1].operation,
            "see which arrival, bytes or barrier are missing",
        )

    # ---- barriers of threads --------------------------------------------------------------------------------------------

    def named_barrier(self, block: int, number: int, threads: int, operation: int, lanes: int) -> Meeting:
        """Takes note of ``lanes`` threads that have come to a barrier of a block for ``threads``."""
        meeting = self.named.setdefault((block, number), Meeting())
        name = f"barrier {number} of block {self.blocks[block]}"
        if meeting.came and meeting.threads != threads:
            others = ", ".join(self.label(op) for op in meeting.by)
            raise self.error(
                f"{self.label(operation)} comes to {name} for {threads} threads, and {others} for {meeting.threads}",
                operation,
                "all who meet at a barrier must name the same number of threads",
            )
        if threads % self.warp_size or threads <= 0 or threads > self.warps * self.warp_size:
            raise self.error(
                f"{name} cannot wait for {threads} threads: the block has {self.threads}, in warps of 32", operation
            )
        meeting.threads = threads
        meeting.came += lanes
        meeting.by[operation] = meeting.by.get(operation, 0) + lanes
        if meeting.came > threads:
            came = ", ".join(f"{n} of {self.label(op)}" for op, n in meeting.by.items())
            raise self.error(
                f"more threads come to {name} than the {threads} it waits for: {came}",
                operation,
                "the count of the barrier must be that of all threads that synchronise or arrive",
            )
        return meeting

    def join(self, meeting: Meeting, warps: Any) -> None:
        """Adds what these warps have done to what the barrier's passing makes known."""
        if self.clocks is not None:
            meeting.clock = self.clocks.release(warps, meeting.clock or self.clocks.clock())

    def pass_if_full(self, meeting: Meeting, threads: int) -> None:
        """Opens a barrier at which all have met."""
        if meeting.came >= threads:
            meeting.round += 1
            meeting.came, meeting.by = 0, {}
            meeting.passed, meeting.clock = meeting.clock, None

    @property
    def running_threads(self) -> int:
        """Threads of the cluster that have not ended."""
        return self.warps * self.warp_size * len(self.blocks) - sum(
            -(-n // self.warp_size) * self.warp_size for n in self.ended
        )

    # ---- addresses ------------------------------------------------------------------------------------------------------

    def locate(self, block: int, address: int, operation: int) -> tuple[int, int]:
        """Block of the cluster and byte offset that an address means in ``block``."""
        rank = address >> RANK_BITS
        owner = block if rank == 0 else rank - 1
        offset = address & ((1 << RANK_BITS) - 1)
        if not 0 <= owner < len(self.blocks) or address < 0 or offset >= self.block_bytes:
            raise self.error(f"{self.label(operation)}: no shared memory at address {address:#x}", operation)
        return owner, offset

    def alive(self, block: int, operation: int) -> None:
        """Raises where a block that has ended is reached from another."""
        if self.ended[block] >= self.threads:
            raise self.error(
                f"{self.label(operation)} reaches the shared memory of block {self.blocks[block]}, which has ended",
                operation,
                "a barrier of the cluster must come before the end of its blocks",
            )

    # ---- messages -------------------------------------------------------------------------------------------------------

    def place_name(self, byte: int) -> str:
        """A byte of the cluster's shared memory as shown in messages."""
        block, offset = divmod(byte, self.block_bytes)
        of = f" of block {self.blocks[block]}" if len(self.blocks) > 1 else ""
        place = self._place(offset)
        if place is None:
            return f"byte {offset} of shared memory{of}"
        return f"byte {offset - place.offset} of {place.buffer.name}{of}"

    def buffer_at(self, offset: int) -> str:
        """The smallest buffer that holds a byte of a block's shared memory."""
        place = self._place(offset)
        return "shared memory" if place is None else place.buffer.name

    def _place(self, offset: int) -> Place | None:
        around = [
            place
            for place in self.translation.layout.places.values()
            if place.space == "shared"
            and place.offset <= offset < place.offset + place.buffer.elements * place.itemsize
        ]
        return min(around, key=lambda p: p.buffer.elements * p.itemsize, default=None)

    def thread(self, number: int) -> str:
        """A thread (32 times its warp in the cluster, and its lane) as shown in messages."""
        block, rest = divmod(number, self.warps * self.warp_size)
        return f"thread {rest} of block {self.blocks[block]}"
