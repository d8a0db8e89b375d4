"""Shared-memory conflicts by operation, buffer and access: simulated and measured side by side, and their difference.

Simulation knows buffers; a profiler's counters know only lines and opcodes.  So a measured figure is joined to the finest
simulated row that it can be joined to without guessing: the same buffer and access, or the only row of that access in the
operation; otherwise a row ``buffer = None`` is added that holds the sum of the simulated rows beside the measured one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.figures import UNATTRIBUTED, CaseFigures, Figure, case_figures, total
from tileprof.store.records import CaseResult

METRICS = {
    "requests": "shared.requests",
    "transactions": "shared.transactions",
    "ideal": "shared.transactions_ideal",
    "conflicts": "shared.conflicts",
    "ways": "shared.ways",
}

Place = tuple[str | None, str | None]
"""Buffer and access of a row."""


@dataclass(frozen=True, slots=True)
class Counts:
    """One side of a row.  Figures a launch; ``ways`` is the worst number of passes of one phase."""

    requests: Figure | None = None
    transactions: Figure | None = None
    ideal: Figure | None = None
    conflicts: Figure | None = None
    ways: Figure | None = None

    @property
    def exists(self) -> bool:
        """Whether anything is known on this side."""
        return any(figure is not None for figure in (self.requests, self.transactions, self.ideal, self.conflicts))


@dataclass(frozen=True, slots=True)
class ConflictRow:
    """One access of one operation.  ``buffer`` None: all buffers of the operation together (only measured so).

    ``operation`` None: what was measured and belongs to no operation.
    """

    operation: int | None
    label: str
    kind: str
    file: str
    line: int | None
    text: str
    buffer: str | None
    access: str | None
    simulated: Counts
    measured: Counts
    rule: str
    subtotal: bool = False

    @property
    def difference(self) -> float | None:
        """Measured minus simulated transactions, None where one side is missing."""
        simulated, measured = self.simulated.transactions, self.measured.transactions
        return None if simulated is None or measured is None else measured.value - simulated.value

    @property
    def source(self) -> str:
        """``simulated``, ``measured`` or ``both``."""
        if self.simulated.exists:
            return "both" if self.measured.exists else "simulated"
        return "measured"


def conflict_rows(case: CaseResult) -> list[ConflictRow]:
    """All shared-memory accesses of a case, by operation in source order."""
    figures = case_figures(case)
    known = {operation["id"]: operation for operation in case.operations}
    touched = sorted(
        {
            operation
            for metric in METRICS.values()
            for kind in ("simulated", "measured")
            for operation in figures.operations_with(metric, kind)
        }
    )
    rows: list[ConflictRow] = []
    for number in touched:
        record = known.get(number)
        location: dict[str, Any] = record["location"] if record else {"file": "", "line": None, "text": ""}
        for place, simulated, measured, subtotal in _joined(
            _counts(figures, "simulated", number), _counts(figures, "measured", number)
        ):
            rows.append(
                ConflictRow(
                    operation=number,
                    label=record["label"] if record else f"operation {number}",
                    kind=record["kind"] if record else "",
                    file=location["file"],
                    line=location["line"],
                    text=str(location.get("text", "")).strip(),
                    buffer=place[0],
                    access=place[1],
                    simulated=simulated,
                    measured=measured,
                    rule=_rule(simulated),
                    subtotal=subtotal,
                )
            )
    return rows + _unattributed(figures)


def _unattributed(figures: CaseFigures) -> list[ConflictRow]:
    """A row for what the profiler counted on instructions that no operation owns; none where there is no such thing."""
    found = {field: figures.unattributed(metric, "measured") for field, metric in METRICS.items()}
    counts = _with_conflicts(Counts(**found))
    if not counts.exists:
        return []
    return [ConflictRow(None, UNATTRIBUTED, UNATTRIBUTED, "", None, "", None, None, Counts(), counts, "known")]


def _counts(figures: CaseFigures, kind: str, operation: int) -> dict[Place, Counts]:
    """Counts of an operation by buffer and access."""
    found: dict[Place, dict[str, Figure]] = {}
    for field, metric in METRICS.items():
        for place, figure in figures.accesses(metric, kind, operation).items():
            found.setdefault(place, {})[field] = figure
    return {place: _with_conflicts(Counts(**fields)) for place, fields in found.items()}


def _with_conflicts(counts: Counts) -> Counts:
    """Fills ``conflicts`` in from transactions and ideal ones where only these are stored."""
    if counts.conflicts is not None or counts.transactions is None or counts.ideal is None:
        return counts
    taken, ideal = counts.transactions, counts.ideal
    conflicts = Figure(taken.value - ideal.value, taken.unit, taken.provenance, taken.flag)
    return Counts(counts.requests, taken, ideal, conflicts, counts.ways)


def _joined(simulated: dict[Place, Counts], measured: dict[Place, Counts]) -> list[tuple[Place, Counts, Counts, bool]]:
    """Rows (place, simulated, measured, is a subtotal) of one operation."""
    rows: list[tuple[Place, Counts, Counts, bool]] = []
    rest = dict(measured)
    grouped: dict[str | None, list[Place]] = {}
    for place in simulated:
        grouped.setdefault(_family(place[1]), []).append(place)
    for family, places in grouped.items():
        for place in places:
            rows.append((place, simulated[place], _take(rest, place, places), False))
        loose = [place for place in rest if place[0] is None and _family(place[1]) == family]
        if loose:
            together = _sum(rest.pop(place) for place in loose)
            if len(places) == 1 and not rows[-1][2].exists:
                rows[-1] = (places[0], simulated[places[0]], together, False)
            else:
                rows.append(((None, family), _sum(simulated[place] for place in places), together, True))
    rows.extend((place, Counts(), counts, False) for place, counts in rest.items())
    return rows


def _take(measured: dict[Place, Counts], place: Place, places: list[Place]) -> Counts:
    """Removes and returns what was measured at a place: the same buffer and access, else the same buffer and family of access.

    The latter only where one simulated row of that family has the buffer.
    """
    if place in measured:
        return measured.pop(place)
    alone = sum(other[0] == place[0] for other in places) == 1
    for other in measured:
        if alone and place[0] is not None and other[0] == place[0] and _family(other[1]) == _family(place[1]):
            return measured.pop(other)
    return Counts()


def _family(access: str | None) -> str | None:
    """Both kinds of asynchronous copy are one opcode family to a profiler that is read by line."""
    return "cp_async" if access and access.startswith("cp_async") else access


def _sum(counts: Iterable[Counts]) -> Counts:
    """Sum of several counts; ``ways`` is the largest."""
    parts = list(counts)
    ways = [part.ways for part in parts if part.ways is not None]
    return Counts(
        total(part.requests for part in parts),
        total(part.transactions for part in parts),
        total(part.ideal for part in parts),
        total(part.conflicts for part in parts),
        max(ways, key=lambda figure: figure.value) if ways else None,
    )


def _rule(simulated: Counts) -> str:
    """How sure the simulated side is: ``known``, ``open`` (the hardware's rule is not understood) or ``unknown``."""
    for figure in (simulated.transactions, simulated.requests):
        if figure is not None and figure.flag in ("open", "unknown"):
            return figure.flag
    return "known" if simulated.transactions is not None else "unknown"
