"""The timeline of one block for the page: who ran what when, in cycles, and the sums of the same as a table.

The picture is drawn by ``timeline.js``, since only the reader's screen says which bars are wide enough for a name.  Of a long loop
only the first executions are stamped: stretches in which nothing was recorded are cut out of the axis, and say how long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.timeline import Span, timelines
from tileprof.report import numbers
from tileprof.report.text import shorten
from tileprof.store.records import Run

MOST_CASES, MOST_SPANS = 8, 2000
"""Cases and executions of each that a page draws, the earliest ones; trace.json has all."""

LONG_GAP = 0.5
"""A stretch without a record is cut out of the axis where it is longer than this share of all that is recorded."""

PHASES = ("run", "issue", "wait")


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """What one worker spent on one operation, over the executions that are recorded; a phase without any is a dash."""

    who: str
    label: str
    line: int | None
    executions: str
    phases: tuple[str, ...]
    mean: str


@dataclass(frozen=True, slots=True)
class TimelineFigure:
    """One case.  ``data`` is for the script: names, spans as [operation, worker, phase, execution, start, length], gaps."""

    label: str
    rows: tuple[TimelineRow, ...]
    data: dict[str, Any]
    hidden: int


def timeline_figures(run: Run, labels: dict[str, str]) -> list[TimelineFigure]:
    """A figure for each case that an instrumented build has measured."""
    found: list[TimelineFigure] = []
    for case in run.cases:
        spans = timelines(case)
        if spans and len(found) < MOST_CASES:
            shown = sorted(spans, key=lambda span: (span.start, span.end))[:MOST_SPANS]
            label = f"{labels[case.id]} @ {case.target_name}"
            found.append(TimelineFigure(label, _rows(spans), _data(shown), len(spans) - len(shown)))
    return found


def gaps(spans: Sequence[Span]) -> list[tuple[float, float]]:
    """(start, length) of the stretches in which no worker has a record and that are long beside all that is recorded."""
    found, covered, end = [], 0.0, min(span.start for span in spans)
    for span in sorted(spans, key=lambda span: span.start):
        if span.start > end:
            found.append((end, span.start - end))
        covered += max(0.0, span.end - max(end, span.start))
        end = max(end, span.end)
    return [gap for gap in found if gap[1] > LONG_GAP * covered]


def _data(spans: Sequence[Span]) -> dict[str, Any]:
    operations = {span.operation: [shorten(span.label), span.kind, span.line] for span in spans}
    workers = {span.group: span.who for span in sorted(spans, key=lambda span: span.group)}
    numbers_of, rows_of = list(operations), list(workers)
    first = min(span.start for span in spans)
    return {
        "operations": list(operations.values()),
        "who": list(workers.values()),
        "spans": [
            [
                numbers_of.index(span.operation), rows_of.index(span.group), PHASES.index(span.phase or "run"), span.iteration,
                _whole(span.start - first), _whole(span.end - span.start),
            ]
            for span in spans
        ],
        "gaps": [[_whole(start - first), _whole(length)] for start, length in gaps(spans)],
    }  # fmt: skip


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _rows(spans: Sequence[Span]) -> tuple[TimelineRow, ...]:
    groups: dict[tuple[int, int], list[Span]] = {}
    for span in spans:
        groups.setdefault((span.group, span.operation), []).append(span)
    rows = []
    for (_, _), own in groups.items():
        cycles = [sum(s.end - s.start for s in own if (s.phase or "run") == phase) for phase in PHASES]
        there = [any((s.phase or "run") == phase for s in own) for phase in PHASES]
        executions = 1 + max(span.iteration for span in own)
        rows.append(
            TimelineRow(
                own[0].who,
                own[0].label,
                own[0].line,
                numbers.count(executions),
                tuple(
                    numbers.count(round(c)) if known else numbers.ABSENT for c, known in zip(cycles, there, strict=True)
                ),
                numbers.count(round(sum(cycles) / executions)),
            )
        )
    return tuple(rows)
