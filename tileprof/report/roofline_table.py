"""The numbers of a roofline as the rows of the table under it."""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.analyse.figures import timing_provenance
from tileprof.analyse.roofline import LEVELS, Point, Roofline, ceiling_provenance
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, Cell, ProvenanceTable
from tileprof.report.roofline_axes import LEVEL_WORDS
from tileprof.store.records import Provenance

MOST_ROWS = 60
"""Rows of a table, the cases that take the most time; the others are in the table of variants."""


@dataclass(frozen=True, slots=True)
class RoofRow:
    """A row of the table: the case's number on the plot, its label and cells."""

    number: int
    label: str
    id: str
    cells: tuple[Cell, ...]
    held_to: str
    predicted: bool


def roof_rows(roofline: Roofline, labels: dict[str, str], provenances: ProvenanceTable) -> list[RoofRow]:
    """The numbers of the plot: intensity by level, time, achieved, attainable, share, bound; of many cases the slowest."""
    rows = []
    chosen = sorted(range(len(roofline.points)), key=lambda index: -(roofline.points[index].time_ns or 0.0))
    for index in sorted(chosen[:MOST_ROWS]):
        point = roofline.points[index]
        work = Provenance("derived", "tileprof", "", "useful FLOPs / least bytes, every operand moved once")
        timing = point.case.timing
        achieved = time = share = ABSENT
        if point.achieved is not None and timing is not None:
            rate = Provenance("derived", "tileprof", "", "useful FLOPs / measured time")
            time = provenances.cell(
                numbers.duration(point.time_ns), timing_provenance(timing), f"{numbers.count(point.time_ns)} ns"
            )
            achieved = provenances.cell(numbers.si(point.achieved, "FLOP/s"), rate, numbers.count(point.achieved))
            mark = "over" if point.share is not None and point.share > 1 else ""
            share = provenances.cell(numbers.percent(point.share), rate, mark=mark)
        roof = provenances.cell(numbers.si(point.attainable, "FLOP/s"), ceiling_provenance(point))
        levels = tuple(_level_cell(point, level, provenances) for level in LEVELS)
        cells = (
            provenances.cell(numbers.si(point.flops, "FLOP"), work, numbers.count(point.flops)),
            provenances.cell(numbers.si(point.bytes_min, "B"), work, numbers.count(point.bytes_min)),
            provenances.cell(numbers.intensity(point.intensity), work),
            *levels,
            time,
            achieved,
            roof,
            share,
        )
        held_to = (
            f"{point.bound} ({point.compute.unit_class})"
            if point.compute is not None and point.bound
            else numbers.ABSENT
        )
        rows.append(RoofRow(index + 1, labels[point.case.id], point.case.id, cells, held_to, point.achieved is None))
    return rows


def known_levels(roofline: Roofline) -> list[str]:
    """Levels at which at least one case has a point."""
    return [
        level for level in LEVELS if any(found.level == level for point in roofline.points for found in point.levels)
    ]


def _level_cell(point: Point, level: str, provenances: ProvenanceTable) -> Cell:
    found = next((one for one in point.levels if one.level == level), None)
    if found is None:
        return ABSENT
    formula = f"useful FLOPs / {numbers.count(found.moved)} bytes moved by {LEVEL_WORDS[level]} ({found.kind})"
    if found.share is not None:
        formula += f"; {numbers.percent(found.share)} of its bandwidth"
    return provenances.cell(numbers.intensity(found.intensity), Provenance("derived", "tileprof", "", formula))
