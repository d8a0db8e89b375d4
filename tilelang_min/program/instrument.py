"""What an instrumented build measures, and where in memory: records shared by ``lower/``, the bundle and the launcher."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tilelang_min.program.thread_program import Parameter

OPERATIONS = "operations"
"""The clock is read around tile operations, and how long each took is added up."""

TIMELINE = "timeline"
"""The same, and of one block when each of the first executions began and ended."""

KINDS = (OPERATIONS, TIMELINE)

EVENTS = 8
"""Executions of a slot that a timeline records."""

MOST_BLOCKS = 4096
"""Blocks whose figures are written; of a larger grid every n-th block is."""


def stride_of(blocks: int) -> int:
    """Of a launch of so many blocks every how manieth is recorded."""
    return max(1, -(-blocks // MOST_BLOCKS))


PHASES = ("run", "issue", "wait")
"""``run``: the operation's own work, with what it waits for on the way.  ``issue``: starting what goes on by itself (copies and
products that run asynchronously).  ``wait``: for such work, for a barrier, or for another role of the block."""

CLOCK = "__tl_clock"
"""Extern name of a statement that reads the 64-bit clock of an NVIDIA multiprocessor into a register, its argument."""

CLOCK_AMD = "llvm.amdgcn.s.memtime"
CLOCK_CPU = "llvm.readcyclecounter"

CLOCK_READS = frozenset({CLOCK, CLOCK_AMD, CLOCK_CPU})
"""All of them; the simulator, which has no clock, reads 0."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One sum: cycles that a warp spent in a phase of an operation, and how often."""

    operation: int
    phase: str


@dataclass(frozen=True, slots=True)
class Instrument:
    """The figures of an instrumented kernel and the hidden parameter that they are written to.

    ``parameter`` is int64 ``[rows, workers, 1 + 2 * slots]``, behind the author's parameters: a row for each block whose linear
    number (x fastest) is a multiple of ``stride``; a column for each ``worker`` of a block: ``warp``, ``wavefront``, or on a
    CPU the whole ``block``.  First come its cycles from start to end, then sum and count of each slot.

    Of a kernel with runtime dimensions ``blocks`` and ``stride`` are None: each launch has its own, by :func:`stride_of`, and
    writes as many of the rows, :data:`MOST_BLOCKS`, as blocks are recorded.

    ``events`` (of a timeline) is int64 ``[workers, slots, EVENTS, 2]``: of the first block, the clock at begin and end.
    """

    kind: str
    parameter: Parameter
    slots: tuple[Slot, ...]
    worker: str
    blocks: int | None
    stride: int | None
    events: Parameter | None = None

    @property
    def hidden(self) -> tuple[Parameter, ...]:
        """The parameters behind the author's."""
        return (self.parameter,) if self.events is None else (self.parameter, self.events)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; :meth:`from_json` is its inverse."""
        record = asdict(self)
        record["parameter"]["shape"] = list(self.parameter.shape)
        if self.events is not None:
            record["events"]["shape"] = list(self.events.shape)
        record["slots"] = [asdict(slot) for slot in self.slots]
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Instrument:
        """What :meth:`to_json` wrote."""
        parameter, events = (
            None if item is None else Parameter(**{**item, "shape": tuple(item["shape"])})
            for item in (record["parameter"], record.get("events"))
        )
        return cls(
            **{
                **record,
                "parameter": parameter,
                "events": events,
                "slots": tuple(Slot(**slot) for slot in record["slots"]),
            }
        )
