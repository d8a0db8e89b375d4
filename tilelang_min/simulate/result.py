"""What a simulation tells: outputs, access counts and executed instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_min.simulate.recording import Recording
    from tilelang_min.simulate.sites import TracedAccess

RULES = ("known", "open", "unknown")


@dataclass(frozen=True, slots=True)
class AccessCount:
    """Accesses of one tile operation to one buffer, of one kind and width, summed over the simulated blocks.

    ``space`` is ``shared`` or ``global``; ``access`` ``load``, ``store``, ``atomic``, ``ldmatrix``, ``stmatrix``,
    ``tma_load`` and ``tma_store`` (either side of a bulk copy, a request a box), ``wgmma`` (reads of operands),
    ``remote_store`` (to another block of the cluster), ``cp_async`` or ``cp_async_bypass`` (the shared side of a cp.async; its
    global side is a ``load``); ``width_bits`` what one lane moves (ldmatrix: 128, the row it addresses).
    ``requests`` are warp instructions with an active lane, ``bytes`` what the active lanes moved.  ``transactions``,
    ``transactions_ideal`` and ``ways`` (the most passes of any phase) are for shared
    memory, ``sectors`` and ``sectors_ideal`` for global memory; None where not applicable or where ``rule`` is ``unknown``.
    """

    operation: int
    buffer: str
    space: str
    access: str
    width_bits: int
    requests: int
    transactions: int | None
    transactions_ideal: int | None
    ways: int | None
    sectors: int | None
    sectors_ideal: int | None
    bytes: int
    rule: str

    @property
    def conflicts(self) -> int | None:
        """Transactions beyond the ideal."""
        if self.transactions is None or self.transactions_ideal is None:
            return None
        return self.transactions - self.transactions_ideal

    @property
    def key(self) -> tuple[int, str, str, str, int]:
        """What is counted apart."""
        return (self.operation, self.buffer, self.space, self.access, self.width_bits)

    def scaled(self, factor: int) -> AccessCount:
        """The counts of ``factor`` times as many blocks that behave alike."""
        return replace(
            self,
            requests=self.requests * factor,
            transactions=_times(self.transactions, factor),
            transactions_ideal=_times(self.transactions_ideal, factor),
            sectors=_times(self.sectors, factor),
            sectors_ideal=_times(self.sectors_ideal, factor),
            bytes=self.bytes * factor,
        )

    def plus(self, other: AccessCount) -> AccessCount:
        """The sum of two counts with the same key; unknown wherever one of them is."""
        return replace(
            self,
            requests=self.requests + other.requests,
            transactions=_sum(self.transactions, other.transactions),
            transactions_ideal=_sum(self.transactions_ideal, other.transactions_ideal),
            ways=None if self.ways is None or other.ways is None else max(self.ways, other.ways),
            sectors=_sum(self.sectors, other.sectors),
            sectors_ideal=_sum(self.sectors_ideal, other.sectors_ideal),
            bytes=self.bytes + other.bytes,
            rule=max(self.rule, other.rule, key=RULES.index),
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary; :meth:`from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> AccessCount:
        """The count that :meth:`to_json` wrote."""
        return cls(**record)


@dataclass(frozen=True)
class SimulationResult:
    """Outcome of :func:`tilelang_min.simulate.simulate`.

    ``outputs`` holds the parameters the kernel may write, as new arrays of their shape; elements that no simulated block
    wrote keep what was passed in.  ``counts`` and ``executed`` (operation id -> class -> warp-level instructions of the
    thread program) sum over ``blocks``.  ``recording`` holds the accesses to shared tiles, where that was asked for;
    ``trace`` single accesses, likewise.
    """

    outputs: dict[str, Any]
    counts: list[AccessCount]
    executed: dict[int, dict[str, int]]
    blocks: tuple[tuple[int, int, int], ...]
    notes: tuple[str, ...] = ()
    recording: Recording | None = None
    trace: tuple[TracedAccess, ...] = ()

    def scaled(self, factor: int) -> SimulationResult:
        """The same with all counts times ``factor``: for blocks that stand for others like them."""
        executed = {op: {klass: n * factor for klass, n in work.items()} for op, work in self.executed.items()}
        recording = None if self.recording is None else self.recording.scaled(factor)
        counts = [count.scaled(factor) for count in self.counts]
        return replace(self, counts=counts, executed=executed, recording=recording)


def merge_counts(counts: Iterable[AccessCount]) -> list[AccessCount]:
    """One count for each key, in order of the keys."""
    merged: dict[tuple[int, str, str, str, int], AccessCount] = {}
    for count in counts:
        known = merged.get(count.key)
        merged[count.key] = count if known is None else known.plus(count)
    return [merged[key] for key in sorted(merged)]


def merge_executed(parts: Iterable[dict[int, dict[str, int]]]) -> dict[int, dict[str, int]]:
    """The sum of instruction counts by operation and class."""
    merged: dict[int, Counter[str]] = {}
    for part in parts:
        for operation, work in part.items():
            merged.setdefault(operation, Counter()).update(work)
    return {operation: dict(sorted(work.items())) for operation, work in sorted(merged.items())}


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
