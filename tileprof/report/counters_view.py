"""What profilers counted: a table a target with its cases side by side, and what compiler and simulator say of the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.analyse.agreement import AGREE, DISAGREE, Comparison, comparisons
from tileprof.analyse.figures import CaseFigures, Figure, case_figures
from tileprof.analyse.labels import targets
from tileprof.metrics.catalogue import METRICS
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, Cell, ProvenanceTable
from tileprof.store.records import CaseResult, Run

MOST_CASES = 12
"""Cases of a target that are shown, the slowest; the rest are in metrics.csv."""

MOST_ROWS = 250
"""Metrics of a target: a profile with all raw counters has thousands, and metrics.csv has them."""

LEAST_STALL = 0.05
"""Reasons to wait that take less of the samples than this in every case are left to flame graph and source."""

OWN_TOOLS = ("tilelang_min", "tileprof", "timer")
"""Sources that are no profiler: what only they say stands in other sections."""


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One metric over the cases of a target."""

    metric: str
    unit: str
    meaning: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One quantity of a kernel or operation that two sources know.  ``doubt`` is "" where they agree."""

    metric: str
    unit: str
    expected: Cell
    measured: Cell
    difference: str
    verdict: str
    doubt: str


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """Rows of the kernel (no title), or of an operation at a line of the source."""

    title: str
    place: str
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """The comparisons of a case; ``agree`` of ``count`` agree, ``disagree`` do not, and of the rest nothing can be said."""

    id: str
    label: str
    groups: tuple[ComparedGroup, ...]
    count: int
    agree: int
    disagree: int


@dataclass(frozen=True, slots=True)
class CounterTarget:
    """One target; ``hidden`` cases and ``dropped`` metrics are not shown."""

    name: str
    target: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[CounterRow, ...]
    compared: tuple[ComparedCase, ...]
    hidden: int
    dropped: int


def counter_targets(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[CounterTarget]:
    """The targets on which a profiler counted, in order of appearance."""
    found = []
    for name, target in targets(run.cases).items():
        counted = {case.id: _counted(case_figures(case)) for case in run.cases if case.target_name == name}
        cases = [case for case in run.cases if counted.get(case.id)]
        if cases:
            kept = {case.id for case in sorted(cases, key=_slowness)[:MOST_CASES]}
            shown = [case for case in cases if case.id in kept]
            figures = [counted[case.id] for case in shown]
            metrics = sorted(name for name in set().union(*figures) if not _is_rare(name, figures))
            rows = tuple(_row(metric, [own.get(metric) for own in figures], provenances)
                         for metric in metrics[:MOST_ROWS])  # fmt: skip
            compared = tuple(_compared(case, labels, provenances) for case in shown)
            found.append(
                CounterTarget(
                    name,
                    target,
                    tuple((labels[case.id], case.id) for case in shown),
                    rows,
                    tuple(case for case in compared if case.count),
                    len(cases) - len(shown),
                    max(0, len(metrics) - MOST_ROWS),
                )
            )
    return found


def _slowness(case: CaseResult) -> float:
    figures = case_figures(case)
    time = figures.of_case("time.ns", "measured") or figures.of_case("time.profiled_ns", "measured")
    return -time.value if time is not None and time.value == time.value else 0.0


def _counted(figures: CaseFigures) -> dict[str, Figure]:
    """What profilers say of the whole kernel, by metric: a value of the hardware before one that was calculated."""
    found: dict[str, Figure] = {}
    for kind in ("measured", "derived"):
        for metric in [name for name, own in figures.names() if own == kind and name not in found]:
            figure = figures.of_case(metric, kind)
            if figure is not None and figure.provenance.tool not in OWN_TOOLS:
                found[metric] = figure
    return found


def _is_rare(metric: str, cases: Iterable[dict[str, Figure]]) -> bool:
    """Whether this is a reason to wait that matters in no case."""
    if not metric.startswith("stall.") or metric == "stall.samples":
        return False
    for figures in cases:
        own, all_samples = figures.get(metric), figures.get("stall.samples")
        if own is not None and (all_samples is None or own.value >= LEAST_STALL * all_samples.value):
            return False
    return True


def _row(metric: str, figures: list[Figure | None], provenances: ProvenanceTable) -> CounterRow:
    info = METRICS.get(metric)
    unit = next((figure.unit for figure in figures if figure is not None), "")
    cells = tuple(ABSENT if figure is None else _cell(figure, provenances) for figure in figures)
    return CounterRow(metric, _unit(metric, unit), info.meaning if info else "", cells)


def _compared(case: CaseResult, labels: dict[str, str], provenances: ProvenanceTable) -> ComparedCase:
    places = {operation["id"]: str(operation["location"].get("line") or "") for operation in case.operations}
    groups: dict[int | None, list[Comparison]] = {}
    found = comparisons(case)
    for one in found:
        groups.setdefault(one.operation, []).append(one)
    verdicts = [one.verdict for one in found]
    return ComparedCase(
        case.id,
        labels[case.id],
        tuple(
            ComparedGroup(
                "" if operation is None else own[0].label,
                "" if operation is None else places.get(operation, ""),
                tuple(_compared_row(one, provenances) for one in own),
            )
            for operation, own in sorted(groups.items(), key=lambda group: -1 if group[0] is None else group[0])
        ),
        len(verdicts),
        verdicts.count(AGREE),
        verdicts.count(DISAGREE),
    )


def _compared_row(one: Comparison, provenances: ProvenanceTable) -> ComparedRow:
    difference = numbers.difference(one.difference)
    if one.difference and one.relative is not None:
        difference += f" ({numbers.percent(one.relative)})"
    return ComparedRow(
        one.metric,
        _unit(one.metric, one.unit),
        _cell(one.expected, provenances),
        _cell(one.measured, provenances),
        difference,
        one.verdict,
        "" if one.verdict == AGREE else one.reason,
    )


_SPELLED = ("ratio", "ns", "Hz", "s")
"""Units that stand in the figure's own text."""


def _unit(metric: str, unit: str) -> str:
    """The unit as it stands behind a name: "" where figure or name have it already."""
    return "" if unit in _SPELLED or metric.endswith(unit) else unit


def _cell(figure: Figure, provenances: ProvenanceTable) -> Cell:
    exact = f"flagged: {figure.flag}" if figure.flag else ""
    mark = "flagged" if figure.flag else "z" if figure.value == 0 else ""
    return provenances.cell(_text(figure), figure.provenance, exact, mark)


def _text(figure: Figure) -> str:
    if figure.unit == "ratio":
        return numbers.percent(figure.value)
    if figure.unit == "ns":
        return numbers.duration(figure.value)
    if figure.unit == "Hz":
        return numbers.si(figure.value, "Hz")
    if figure.unit == "s":
        return numbers.seconds(figure.value)
    return numbers.count(figure.value)
