"""The timeline of one block as an SVG: a row a warp group, a bar an execution of an operation, in cycles."""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.analyse.timeline import timelines
from tileprof.report import numbers
from tileprof.store.records import Run

WIDTH, ROW, LEFT = 1000.0, 26, 86.0
MOST_SPANS = 600
MOST_CASES = 8


@dataclass(frozen=True, slots=True)
class Bar:
    """A span in pixels; ``kind`` is a CSS class."""

    x: float
    y: int
    width: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class TimelineFigure:
    """One case.  ``groups`` are (label, y); ``ticks`` (x, text)."""

    label: str
    height: int
    groups: tuple[tuple[str, int], ...]
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    hidden: int


def timeline_figures(run: Run, labels: dict[str, str]) -> list[TimelineFigure]:
    """A figure for each case that an instrumented build has measured."""
    found: list[TimelineFigure] = []
    for case in run.cases:
        spans = timelines(case)
        if not spans or len(found) >= MOST_CASES:
            continue
        end = max(span.end for span in spans) or 1.0
        start = min(span.start for span in spans)
        scale = (WIDTH - LEFT) / max(end - start, 1.0)
        rows = {group: 4 + index * ROW for index, group in enumerate(sorted({span.group for span in spans}))}
        bars = tuple(
            Bar(
                LEFT + (span.start - start) * scale,
                rows[span.group],
                max(0.5, (span.end - span.start) * scale),
                f"k-{span.kind}",
                f"{span.label}\nwarp group {span.group}, iteration {span.iteration}\n"
                f"{numbers.count(span.end - span.start)} cycles from {numbers.count(span.start - start)}",
            )
            for span in spans[:MOST_SPANS]
        )
        ticks = tuple(
            (LEFT + part / 5 * (WIDTH - LEFT), numbers.count(round(part / 5 * (end - start)))) for part in range(6)
        )
        groups = tuple((f"group {group}", y) for group, y in rows.items())
        height = 4 + ROW * len(rows) + 22
        found.append(
            TimelineFigure(
                f"{labels[case.id]} @ {case.target_name}", height, groups, bars, ticks, max(0, len(spans) - MOST_SPANS)
            )
        )
    return found
