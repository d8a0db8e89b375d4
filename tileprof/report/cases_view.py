"""All cases as columns for the page's sortable table and small plots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.best import marks
from tileprof.analyse.figures import CaseFigures, case_figures
from tileprof.analyse.roofline import Point
from tileprof.report.flame_view import Strings
from tileprof.report.overview import status_word, tone
from tileprof.store.records import CaseResult, Run


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of figures: how it is written (``ns``, ``count``, ``share``, ``rate``), and whether less is better."""

    id: str
    label: str
    form: str
    lower: bool
    value: Callable[[CaseResult, CaseFigures, Point | None], float | None]


def _time(case: CaseResult, _: CaseFigures, __: Point | None) -> float | None:
    return case.timing.median_ns if case.timing is not None and case.timing.samples_ns else None


def _achieved(_: CaseResult, __: CaseFigures, point: Point | None) -> float | None:
    return None if point is None else point.achieved


def _share(_: CaseResult, __: CaseFigures, point: Point | None) -> float | None:
    return None if point is None else point.share


def _attainable(_: CaseResult, __: CaseFigures, point: Point | None) -> float | None:
    return None if point is None or not point.attainable else point.flops / point.attainable * 1e9


def _field(*names: str) -> Callable[[CaseResult, CaseFigures, Point | None], float | None]:
    def of(case: CaseResult, _: CaseFigures, __: Point | None) -> float | None:
        found = [value for name in names if (value := (case.metadata or {}).get(name)) is not None]
        return sum(found) if found else None

    return of


def _conflicts(_: CaseResult, figures: CaseFigures, __: Point | None) -> float | None:
    for kind in ("measured", "simulated"):
        figure = figures.of_case("shared.conflicts", kind)
        if figure is not None:
            return figure.value
    return None


QUANTITIES = (
    Quantity("time", "time", "ns", True, _time),
    Quantity("attainable", "time at the roof", "ns", True, _attainable),
    Quantity("rate", "achieved", "rate", False, _achieved),
    Quantity("share", "of attainable", "share", False, _share),
    Quantity("registers", "registers", "count", True, _field("registers_per_thread")),
    Quantity(
        "spills",
        "spilled",
        "count",
        True,
        _field("spill_store_bytes", "spill_load_bytes", "spilled_vgprs", "spilled_sgprs"),
    ),
    Quantity("shared", "shared bytes", "count", True, _field("shared_bytes_static", "shared_bytes_dynamic")),
    Quantity("occupancy", "occupancy", "share", False, _field("occupancy")),
    Quantity("conflicts", "conflicts", "count", True, _conflicts),
)
"""The columns, in order; one that no case has is left out."""


def cases_data(run: Run, points: dict[str, Point], strings: Strings) -> dict[str, Any]:
    """Columns: ``axes`` (name, values) of words and parameters, ``quantities`` with figures, status and marks of the best."""
    cases = run.cases
    names = list(dict.fromkeys(key for case in cases for key in case.parameters))
    axes: list[dict[str, Any]] = [
        {"name": "kernel", "values": [strings.number(case.kernel) for case in cases], "words": True},
        {"name": "target", "values": [strings.number(case.target_name) for case in cases], "words": True},
    ]
    for name in names:
        values = [_parameter(case, name) for case in cases]
        if len({repr(value) for value in values}) > 1:
            words = any(isinstance(value, str) for value in values)
            column = [None if value is None else strings.number(str(value)) if words else value for value in values]
            axes.append({"name": name, "values": column, "words": words})
    times: dict[str, float] = {}
    columns: dict[str, list[float | None]] = {quantity.id: [] for quantity in QUANTITIES}
    for case in cases:
        figures, point = case_figures(case), points.get(case.id)
        for quantity in QUANTITIES:
            value = _finite(quantity.value(case, figures, point))
            columns[quantity.id].append(value)
            if quantity.id == "time" and value is not None:
                times[case.id] = value
    found = marks(cases, times)
    return {
        "axes": axes,
        "quantities": [
            {"id": q.id, "label": q.label, "form": q.form, "lower": q.lower, "values": columns[q.id]}
            for q in QUANTITIES
            if any(value is not None for value in columns[q.id])
        ],
        "status": [strings.number(status_word(case.status)) for case in cases],
        "tone": [strings.number(tone(case.status)) for case in cases],
        "id": [strings.number(case.id) for case in cases],
        "best": [found.get(case.id, 0) for case in cases],
    }


def _parameter(case: CaseResult, name: str) -> Any:
    value = case.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None if value is None else str(value)
    return value if math.isfinite(value) else str(value)


def _finite(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")
