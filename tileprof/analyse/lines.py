"""Figures by line of the author's source: what the operations that stand on a line add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.analyse.figures import Figure, case_figures, listing_provenance, static_instructions, total
from tileprof.store.records import CaseResult


@dataclass(frozen=True, slots=True)
class LineMetric:
    """A column of the source view: ``metric`` with the kind of provenance it is taken from."""

    id: str
    label: str
    metric: str
    kind: str
    unit: str


LINE_METRICS = (
    LineMetric("static", "instructions", "instructions", "static", "instructions in the binary"),
    LineMetric("executed", "executed", "executed.instructions", "simulated", "warp-level instructions a launch"),
    LineMetric(
        "executed_measured", "executed", "executed.instructions", "measured", "warp-level instructions a launch"
    ),
    LineMetric("transactions", "transactions", "shared.transactions", "simulated", "shared transactions a launch"),
    LineMetric(
        "transactions_measured", "transactions", "shared.transactions", "measured", "shared transactions a launch"
    ),
    LineMetric("conflicts", "conflicts", "shared.conflicts", "simulated", "transactions above the ideal"),
    LineMetric("conflicts_measured", "conflicts", "shared.conflicts", "measured", "transactions above the ideal"),
    LineMetric("sectors", "sectors", "global.sectors", "simulated", "32-byte global sectors a launch"),
    LineMetric("samples", "samples", "stall.samples", "measured", "samples of warps, whatever they waited for"),
)
"""Columns that the source view can have, in order."""


@dataclass(frozen=True, slots=True)
class LineFigures:
    """Figures of one line of one file.  ``figures`` maps :data:`LINE_METRICS` ids to what is known; missing means not known."""

    file: str
    line: int
    operations: tuple[int, ...]
    kinds: tuple[str, ...]
    figures: dict[str, Figure]


def line_figures(case: CaseResult) -> list[LineFigures]:
    """All lines of a case that hold an operation, in the order of file and line."""
    figures, static, provenance = case_figures(case), static_instructions(case), listing_provenance(case)
    places: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for operation in case.operations:
        place = (operation["location"]["file"], operation["location"]["line"])
        places.setdefault(place, []).append((operation["id"], operation["kind"]))

    def figure(column: LineMetric, operations: Iterable[int]) -> Figure | None:
        if column.id == "static":
            classes = [static[number] for number in operations if number in static]
            return Figure(sum(sum(c.values()) for c in classes), "instructions", provenance) if classes else None
        return total(figures.of_operation(column.metric, column.kind, number) for number in operations)

    lines = []
    for (file, line), found in sorted(places.items()):
        numbers = tuple(number for number, _ in found)
        known = {column.id: figure(column, numbers) for column in LINE_METRICS}
        present = {key: value for key, value in known.items() if value is not None}
        lines.append(LineFigures(file, line, numbers, tuple(kind for _, kind in found), present))
    return lines
