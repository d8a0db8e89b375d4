"""The timeline of one block: when each operation ran, by warp group, as clock reads of an instrumented build say.

The figures are metrics of a launch: ``cycles.begin`` and ``cycles.end`` of an operation, with the warp group as ``access``
(``group 0``) and the iteration as ``launch``.  A case without them has no timeline; nothing is laid out from totals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tileprof.store.records import CaseResult

BEGIN, END = "cycles.begin", "cycles.end"
_GROUP = re.compile(r"group (\d+)")


@dataclass(frozen=True, slots=True)
class Span:
    """One execution of an operation by a warp group, in cycles from the block's start."""

    operation: int
    label: str
    kind: str
    line: int | None
    group: int
    iteration: int
    start: float
    end: float


def timelines(case: CaseResult) -> list[Span]:
    """All spans of a case, by group and start."""
    known = {operation["id"]: operation for operation in case.operations}
    starts: dict[tuple[int, int, int], float] = {}
    ends: dict[tuple[int, int, int], float] = {}
    for metric in case.metrics:
        if metric.metric not in (BEGIN, END) or metric.operation is None:
            continue
        group = _GROUP.fullmatch(metric.access or "group 0")
        key = (metric.operation, int(group[1]) if group else 0, metric.launch or 0)
        (starts if metric.metric == BEGIN else ends)[key] = metric.value
    spans = []
    for key, start in starts.items():
        end, record = ends.get(key), known.get(key[0])
        if end is None or not end >= start:
            continue
        location = (record or {}).get("location") or {}
        label = record["label"] if record else f"operation {key[0]}"
        kind = record["kind"] if record else "other"
        spans.append(Span(key[0], label, kind, location.get("line"), key[1], key[2], start, end))
    return sorted(spans, key=lambda span: (span.group, span.start))
