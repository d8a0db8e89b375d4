"""The page of a comparison: verdict, cases, differences and a differential flame graph, one offline file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.compare import Comparison, Difference, PairResult
from tileprof.analyse.flame import MODES, FlameTree
from tileprof.report import flame_view, html, numbers
from tileprof.report.cells import ProvenanceTable
from tileprof.report.text import shorten
from tileprof.store.records import PROVENANCES

SCRIPTS = ("core.js", "flame.js")
MOST_PAIRS = 200
MOST_DIFFERENCES = 60
"""Differences of one case on the page; the largest, worse ones first."""


@dataclass(frozen=True, slots=True)
class Row:
    """A difference as text; ``sense`` is a CSS class."""

    name: str
    kind: str
    base: str
    head: str
    change: str
    sense: str


@dataclass(frozen=True, slots=True)
class PairView:
    """A pair as shown."""

    label: str
    base_id: str
    head_id: str
    time: Row
    outcome: str
    basis: str
    rows: tuple[Row, ...]
    equal: int
    hidden: int


def render(comparison: Comparison, trees: Sequence[FlameTree], version: str) -> str:
    """The whole page."""
    provenances, strings = ProvenanceTable(), flame_view.Strings()
    flames = [flame_view.flame_data(tree, strings, provenances, with_base=True) for tree in trees]
    modes = [mode for mode in MODES if any(mode in tree.modes for tree in trees)]
    data = {
        "provenances": [
            [shorten(text, 200) for text in (p.kind, p.tool, p.version, p.detail)] for _, p in provenances.rows()
        ],
        "kinds": list(PROVENANCES),
        "modes": [mode.id for mode in modes],
        "flame": flames,
        "sources": [],
        "strings": strings.all(),
    }
    results = sorted(comparison.results, key=lambda result: -(abs((result.ratio or 1) - 1)))
    values: dict[str, Any] = {
        "comparison": comparison,
        "pairs": [_pair(result) for result in results[:MOST_PAIRS]],
        "hidden": max(0, len(results) - MOST_PAIRS),
        "flame_modes": modes,
        "flames": [],
        "comparing": True,
        "version": version,
        "numbers": numbers,
    }
    return html.page("compare.html.j2", values, data, SCRIPTS)


def _pair(result: PairResult) -> PairView:
    pair = result.pair
    time = next((d for d in result.differences if d.metric == "time.ns"), None)
    shown = [d for d in result.differences if d.sense != "equal" and d.metric != "time.ns"]
    shown.sort(key=lambda d: ({"worse": 0, "better": 1}.get(d.sense, 2), -abs(d.change or 0), d.metric))
    rows = tuple(row(d) for d in shown[:MOST_DIFFERENCES])
    empty = Row("time", "time", numbers.ABSENT, numbers.ABSENT, numbers.ABSENT, "")
    return PairView(
        pair.label,
        pair.base.id if pair.base else "",
        pair.head.id if pair.head else "",
        row(time) if time is not None else empty,
        result.outcome,
        result.basis,
        rows,
        sum(d.sense == "equal" for d in result.differences),
        max(0, len(shown) - MOST_DIFFERENCES),
    )


def row(difference: Difference) -> Row:
    """A difference in words."""
    kind, _, name = difference.metric.rpartition(":")
    words = {"exact": "simulated" if kind == "simulated" else "static"}
    return Row(
        name,
        words.get(difference.kind, "measured"),
        _value(difference.base, difference.unit),
        _value(difference.head, difference.unit),
        _change(difference.change),
        difference.sense,
    )


def _change(change: float | None) -> str:
    if change is None:
        return numbers.ABSENT
    sign = "+" if change > 0 else numbers.MINUS if change < 0 else "±"
    return f"{sign}{abs(change) * 100:.3g}{numbers.NO_BREAK}%"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return numbers.ABSENT
    if unit == "ns":
        return numbers.duration(value)
    return numbers.count(value) if float(value).is_integer() else numbers.significant(value, 4)
