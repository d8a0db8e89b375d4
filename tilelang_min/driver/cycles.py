"""What an instrumented launch measured: cycles of each tile operation, and the memory they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.program import TileOperation
from tilelang_min.program.instrument import Instrument, stride_of

_UNTIMED = ("kernel", "loop")
"""Kinds of operations whose own instructions are not timed."""


@dataclass(frozen=True, slots=True)
class OperationCycles:
    """Cycles of one operation, summed over all workers (warps, wavefronts, blocks of a CPU) of the launch.

    ``run`` is its own work, ``issue`` the start of asynchronous work, ``wait`` waiting for that, for a barrier or for another
    role; a phase that the operation does not have is None.  ``count``: executions by all workers; ``workers``: how many ran it.
    """

    operation: int
    label: str
    kind: str
    run: int | None
    issue: int | None
    wait: int | None
    count: int
    workers: int

    @property
    def sum(self) -> int:
        """All phases together."""
        return sum(each or 0 for each in (self.run, self.issue, self.wait))


@dataclass(frozen=True, slots=True)
class Event:
    """One execution of a phase of an operation in the first block by one worker, in cycles from the first event of all."""

    operation: int
    phase: str
    worker: int
    begin: int
    end: int


@dataclass(frozen=True)
class Cycles:
    """Cycles of one launch.  ``elapsed``: summed over workers, from each one's start to its end; ``longest`` the largest.

    Of ``blocks`` in the launch every ``stride``-th was recorded (``recorded`` in all), and figures are scaled up by their ratio.
    ``events``: those that a timeline records (``instrument="timeline"``), by worker and begin.  ``merged``: labels of tile
    operations without figures, because the compiler made them part of others (a copy that the product packs itself, on a CPU).
    """

    operations: tuple[OperationCycles, ...]
    worker: str
    workers: int
    elapsed: int
    longest: int
    blocks: int
    recorded: int
    stride: int
    events: tuple[Event, ...] = ()
    merged: tuple[str, ...] = ()

    def text(self) -> str:
        """A table for people, the longest first; percent are of the elapsed cycles of all workers."""
        head = f"{'operation':<44} {'cycles':>14} {'share':>7} {'issue':>14} {'wait':>14} {'count':>10}"
        lines = [head]
        for item in sorted(self.operations, key=lambda each: -each.sum):
            share = f"{item.sum / self.elapsed:7.1%}" if self.elapsed else f"{'-':>7}"
            phases = " ".join(f"{'-' if each is None else format(each, ',d'):>14}" for each in (item.issue, item.wait))
            label = item.label if len(item.label) <= 44 else f"{item.label[:43]}…"
            lines.append(f"{label:<44} {item.sum:>14,d} {share} {phases} {item.count:>10,d}")
        lines.append(f"{self.workers:,} {self.worker}s, {self.elapsed:,} cycles together, the longest {self.longest:,}")
        if self.merged:
            lines.append(f"no figures of their own, part of other operations: {', '.join(self.merged)}")
        return "\n".join(lines)


def summarise(
    instrument: Instrument, arrays: Sequence[Any], operations: Sequence[TileOperation], blocks: int | None = None
) -> Cycles:
    """The record in ``arrays``, which are as ``instrument`` describes them; ``blocks`` is how many the launch had."""
    rows = arrays[0].reshape(instrument.parameter.shape)
    launched = instrument.blocks if instrument.blocks is not None else blocks or 0
    stride = instrument.stride if instrument.stride is not None else stride_of(launched)
    if instrument.blocks is None:  # the other rows are those of larger launches
        rows = rows[: -(-launched // stride)]
    longest = int(rows[:, :, 0].max(initial=0))
    recorded, workers = rows.shape[:2]
    scale = launched / recorded if recorded else 0.0
    phases: dict[int, dict[str, tuple[int, int, int]]] = {}
    for number, slot in enumerate(instrument.slots):
        sums, counts = rows[:, :, 1 + 2 * number], rows[:, :, 2 + 2 * number]
        total, count, ran = int(sums.sum()), int(counts.sum()), int((counts > 0).sum())
        scaled = round(total * scale), round(count * scale), round(ran * scale)
        phases.setdefault(slot.operation, {})[slot.phase] = scaled
    known = {operation.id: operation for operation in operations}
    found = []
    for operation, by_phase in phases.items():
        if not any(count for _, count, _ in by_phase.values()):
            continue
        run, issue, wait = (by_phase[phase][0] if phase in by_phase else None for phase in ("run", "issue", "wait"))
        item = known[operation]
        count, ran = (max(each[index] for each in by_phase.values()) for index in (1, 2))
        found.append(OperationCycles(operation, item.label, item.kind, run, issue, wait, count, ran))
    # What has a place for figures and none in it has not run, under a condition.
    merged = [item.label for item in operations if item.kind not in _UNTIMED and item.id not in phases]
    return Cycles(
        operations=tuple(found),
        merged=tuple(merged),
        worker=instrument.worker,
        workers=launched * workers,
        elapsed=round(int(rows[:, :, 0].sum()) * scale),
        longest=longest,
        blocks=launched,
        recorded=recorded,
        stride=stride,
        events=_events(instrument, arrays[1]) if instrument.events is not None else (),
    )


def _events(instrument: Instrument, values: Any) -> tuple[Event, ...]:
    found = [
        Event(slot.operation, slot.phase, worker, int(begin), int(end))
        for worker, by_slot in enumerate(values)
        for slot, stamps in zip(instrument.slots, by_slot, strict=True)
        for begin, end in stamps
        if end
    ]
    first = min((event.begin for event in found), default=0)
    shifted = [replace(event, begin=event.begin - first, end=event.end - first) for event in found]
    return tuple(sorted(shifted, key=lambda event: (event.worker, event.begin)))


class InstrumentedLauncher:
    """A launcher that adds the addresses of the figures to those of the arguments, behind the first ``tensors`` of them.

    ``blocks`` is how many the last launch had.  The figures are those of the last launch; launches on several streams at once would
    mix theirs.
    """

    def __init__(self, launcher: Any, instrument: Instrument, kind: str, tensors: int | None = None) -> None:
        self.tensors = tensors
        self.blocks: int | None = None
        self.launcher = launcher
        self.instrument = instrument
        self.kind = kind
        self._arrays: dict[int, list[Any]] = {}  # by context; slots that nobody writes stay zero
        self._last: int | None = None

    def __call__(self, pointers: Sequence[int], *, grid: Sequence[int], **launch: Any) -> None:
        self.blocks = prod(grid)
        self.launcher(self._with(pointers, self._places()), grid=grid, **launch)

    def launch(self, context: int, pointers: Sequence[int], grid: Sequence[int], *rest: Any) -> None:
        """A launch in a context that is known to be current."""
        self.blocks = prod(grid)
        self.launcher.launch(context, self._with(pointers, self._places(context)), grid, *rest)

    def _with(self, pointers: Sequence[int], places: Sequence[int]) -> list[int]:
        """The arguments with the places behind the tensors, and runtime dimensions behind those."""
        end = len(pointers) if self.tensors is None else self.tensors
        return [*pointers[:end], *places, *pointers[end:]]

    def values(self) -> list[Any]:
        """The figures of the last launch, when it has ended, one array a hidden parameter; LaunchError where there was none."""
        if self._last is None:
            raise LaunchError(
                "the instrumented kernel has not been launched", remedy="launch it, then ask for its cycles"
            )
        held = self._arrays[self._last]
        if self.kind == "cpu":
            return [array.copy() for array in held]
        return [
            buffer.to_numpy(parameter.shape, "int64")
            for buffer, parameter in zip(held, self.instrument.hidden, strict=True)
        ]

    def close(self) -> None:
        """Unloads the binary, and frees what it wrote its figures to."""
        if self.kind != "cpu":
            for buffer in (each for held in self._arrays.values() for each in held):
                buffer.close()
        self._arrays.clear()
        self._last = None
        self.launcher.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.launcher, name)

    def _places(self, context: int | None = None) -> list[int]:
        import numpy as np

        from tilelang_min.runtime import gpu

        if self.kind == "cpu":
            context = 0
        elif context is None:
            context = gpu.runtime(self.kind).ensure_context()
        if context not in self._arrays:
            zeros = [np.zeros(parameter.extents, np.int64) for parameter in self.instrument.hidden]
            if self.kind == "cpu":
                self._arrays[context] = zeros
            else:
                self._arrays[context] = [gpu.runtime(self.kind).copy_of(array) for array in zeros]
        self._last = context
        held = self._arrays[context]
        return [int(each.ctypes.data if self.kind == "cpu" else each.pointer) for each in held]
