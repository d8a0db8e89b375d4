"""Look-ups in the metrics of one case: the one place where rows of :class:`Metric` become single figures.

What it is for: every other module of this room asks here for "metric M of operation O, simulated".  What it is not for:
formulas; a figure is a stored value, a median over launches, or a sum over buffers and kinds of access.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tileprof.collect.noise import NOISY
from tileprof.store.records import CaseResult, Metric, Provenance, Timing

UNATTRIBUTED = "unattributed"
"""Access of rows that hold what belongs to no operation."""

_KEPT = "_figures"

Key = tuple[str, str, int | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its unit, where it comes from, and the flag of its metric (``open`` or ``unknown`` rule, ...)."""

    value: float
    unit: str
    provenance: Provenance
    flag: str | None = None


def total(figures: Iterable[Figure | None]) -> Figure | None:
    """Sum of the figures that exist; None when there is none.  Unit and provenance are those of the first.

    Flags are kept when all agree, else the first that is set: a sum with an open part is open.
    """
    present = [figure for figure in figures if figure is not None]
    if not present:
        return None
    flag = next((figure.flag for figure in present if figure.flag), None)
    return Figure(sum(f.value for f in present), present[0].unit, present[0].provenance, flag)


class CaseFigures:
    """The metrics of one case by name, kind of provenance, operation, buffer and access."""

    def __init__(self, case: CaseResult) -> None:
        self.case = case
        rows: dict[Key, list[Metric]] = defaultdict(list)
        for row in case.metrics:
            rows[(row.metric, row.provenance.kind, row.operation, row.buffer, row.access)].append(row)
        self._figures = {key: _over_launches(found) for key, found in rows.items()}
        self._by_operation: dict[tuple[str, str, int | None], list[Key]] = defaultdict(list)
        for key in self._figures:
            self._by_operation[key[:3]].append(key)

    def names(self) -> set[tuple[str, str]]:
        """All (metric, kind of provenance) pairs that have a value."""
        return {(key[0], key[1]) for key in self._figures}

    def exact(
        self, metric: str, kind: str, operation: int | None = None, buffer: str | None = None, access: str | None = None
    ) -> Figure | None:
        """The figure stored under exactly this key."""
        return self._figures.get((metric, kind, operation, buffer, access))

    def of_operation(self, metric: str, kind: str, operation: int | None) -> Figure | None:
        """The figure of an operation (None: the whole kernel): its own row, else the sum over buffers and accesses."""
        own = self.exact(metric, kind, operation)
        if own is not None:
            return own
        keys = self._by_operation.get((metric, kind, operation), ())
        return total(self._figures[key] for key in keys if operation is not None or key[4] != UNATTRIBUTED)

    def unattributed(self, metric: str, kind: str) -> Figure | None:
        """What was counted and belongs to no operation."""
        return self.exact(metric, kind, None, None, UNATTRIBUTED)

    def of_case(self, metric: str, kind: str) -> Figure | None:
        """The figure of the whole kernel, or else the sum over its operations."""
        whole = self.of_operation(metric, kind, None)
        if whole is not None:
            return whole
        parts = [self.of_operation(metric, kind, operation) for operation in self.operations_with(metric, kind)]
        return total([*parts, self.unattributed(metric, kind)])

    def best_of_case(self, metric: str) -> tuple[Figure, str] | None:
        """The most trusted figure of the whole kernel and its kind: measured, else static, derived or simulated."""
        for kind in ("measured", "static", "derived", "simulated"):
            found = self.of_case(metric, kind)
            if found is not None:
                return found, kind
        return None

    def operations_with(self, metric: str, kind: str) -> list[int]:
        """Ids of the operations that have this metric, ascending."""
        return sorted(
            operation
            for name, provenance, operation in self._by_operation
            if name == metric and provenance == kind and operation is not None
        )

    def accesses(self, metric: str, kind: str, operation: int) -> dict[tuple[str | None, str | None], Figure]:
        """Figures of an operation by (buffer, access)."""
        keys = self._by_operation.get((metric, kind, operation), ())
        return {(key[3], key[4]): self._figures[key] for key in keys}


def case_figures(case: CaseResult) -> CaseFigures:
    """The figures of a case, made once and kept with it: every view of a report asks for them."""
    found: CaseFigures | None = case.__dict__.get(_KEPT)
    if found is None:
        found = CaseFigures(case)
        object.__setattr__(case, _KEPT, found)  # no field: it is not compared, copied or stored
    return found


def _over_launches(rows: list[Metric]) -> Figure:
    """One figure out of the rows of several launches: their median."""
    first = rows[0]
    flag = next((row.flag for row in rows if row.flag), None)
    value = first.value if len(rows) == 1 else median(row.value for row in rows)
    return Figure(value, first.unit, first.provenance, flag)


def static_instructions(case: CaseResult) -> dict[int | None, dict[str, int]]:
    """Static instruction counts by operation id (None: unattributed) and class; empty where the case has no listing.

    Accepts ids as integers or, after a trip through JSON, as strings.
    """
    by_operation: dict[Any, dict[str, int]] = ((case.metadata or {}).get("instructions") or {}).get(
        "by_operation"
    ) or {}
    counts: dict[int | None, dict[str, int]] = {}
    for key, classes in by_operation.items():
        counts[None if str(key) in ("none", "None") else int(key)] = dict(classes)
    return counts


def listing_provenance(case: CaseResult) -> Provenance:
    """Provenance of what the binary's listing says, with the toolchain that made it."""
    toolchain = (case.metadata or {}).get("toolchain") or {}
    return Provenance(
        "static", "machine listing", "", ", ".join(f"{tool} {version}" for tool, version in toolchain.items())
    )


def noisy_time(case: CaseResult) -> bool:
    """Whether the time of a case varies too much to be taken for its speed."""
    return any(metric.metric == "time.ns" and metric.flag == NOISY for metric in case.metrics)


def timing_provenance(timing: Timing) -> Provenance:
    """Provenance of a median time."""
    flush = "L2 flushed before each" if timing.flush_l2 else "caches warm"
    detail = f"median of {len(timing.samples_ns)} launches after {timing.warmup} for warm-up, {flush}"
    return Provenance("measured", timing.method, "", detail)
