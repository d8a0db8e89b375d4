"""The timeline of one block: when each operation ran, by warp or warp group, as clock reads of an instrumented build say.

The figures are metrics of a launch: ``cycles.begin`` and ``cycles.end`` of an operation, with who ran it and the phase as
``access`` (``group 0 wait``; older stores name no phase) and the execution as ``launch``.  A case without them has no timeline;
nothing is laid out from totals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tileprof.store.records import CaseResult

BEGIN, END = "cycles.begin", "cycles.end"
WORKERS = {"group": "warp group", "warp": "warp", "wavefront": "wavefront", "block": "block"}
"""Who runs operations of a block, as a metric names it and in words."""
_ACCESS = re.compile(rf"({'|'.join(WORKERS)}) (\d+)(?: (run|issue|wait))?")


@dataclass(frozen=True, slots=True)
class Span:
    """One execution of an operation, or of a phase of it, by one worker, in cycles from the block's start.

    ``worker``: a key of WORKERS, ``group`` its number in the block; ``phase``: ``run``, ``issue``, ``wait``, or empty where it is
    not known.
    """

    operation: int
    label: str
    kind: str
    line: int | None
    worker: str
    group: int
    phase: str
    iteration: int
    start: float
    end: float

    @property
    def who(self) -> str:
        """The worker in words."""
        return f"{WORKERS[self.worker]} {self.group}"

    @property
    def what(self) -> str:
        """The operation, and what is done of it where that is not its own work."""
        return self.label + {"wait": ": waiting", "issue": ": starting"}.get(self.phase, "")


def timelines(case: CaseResult) -> list[Span]:
    """All spans of a case, by worker and start."""
    known = {operation["id"]: operation for operation in case.operations}
    starts: dict[tuple[int, str, int], float] = {}
    ends: dict[tuple[int, str, int], float] = {}
    for metric in case.metrics:
        if metric.metric not in (BEGIN, END) or metric.operation is None:
            continue
        key = (metric.operation, metric.access or "group 0", metric.launch or 0)
        (starts if metric.metric == BEGIN else ends)[key] = metric.value
    spans = []
    for key, start in starts.items():
        operation, access, iteration = key
        end, record, names = ends.get(key), known.get(operation), _ACCESS.fullmatch(access)
        if end is None or names is None or not end >= start:
            continue
        location = (record or {}).get("location") or {}
        label = record["label"] if record else f"operation {operation}"
        kind = record["kind"] if record else "other"
        worker, group, phase = names[1], int(names[2]), names[3] or ""
        spans.append(Span(operation, label, kind, location.get("line"), worker, group, phase, iteration, start, end))
    return sorted(spans, key=lambda span: (span.group, span.start, span.end))
