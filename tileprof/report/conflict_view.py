"""The conflicts table: for each case its shared-memory accesses, simulated and measured side by side."""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.analyse.conflicts import ConflictRow, conflict_rows
from tileprof.analyse.figures import Figure, total
from tileprof.analyse.labels import targets
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, Cell, ProvenanceTable, common
from tileprof.report.memory_map import MemoryMap, memory_maps
from tileprof.report.words import ACCESSES, Words, words
from tileprof.store.records import Provenance, Run, Suggestion

MOST_CASES = 24
"""Cases of a target that are shown, those with most conflicts."""


@dataclass(frozen=True, slots=True)
class ConflictLine:
    """A row as shown.  ``heat`` 0 to 4 says how many times the ideal the access takes; ``p`` is most of its cells' provenance."""

    label: str
    place: str
    text: str
    buffer: str
    access: str
    requests: Cell
    ways: Cell
    ideal: Cell
    simulated: Cell
    simulated_conflicts: Cell
    measured: Cell
    measured_conflicts: Cell
    difference: Cell
    times: str
    heat: int
    source: str
    rule: str
    subtotal: bool
    first: bool

    @property
    def p(self) -> int | None:
        """The provenance number that most cells have: it is written once, on the row."""
        return common(
            [
                self.requests, self.ideal, self.ways, self.simulated, self.simulated_conflicts, self.measured,
                self.measured_conflicts, self.difference,
            ]
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConflictCase:
    """All rows of a case, and what would remove its conflicts."""

    id: str
    label: str
    file: str
    verdict: Cell
    lines: tuple[ConflictLine, ...]
    suggestions: tuple[Suggestion, ...]
    maps: tuple[MemoryMap, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether it is known to have no conflicts; an open rule leaves that open."""
        cells = [cell for line in self.lines for cell in (line.simulated_conflicts, line.measured_conflicts)]
        return self.verdict.mark == "zero" and all(cell.mark in ("", "zero") for cell in cells)


@dataclass(frozen=True, slots=True)
class ConflictTarget:
    """One target: its cases with conflicts, ``clean`` ones that access shared memory without any, labels of those ``without``."""

    name: str
    target: str
    words: Words
    cases: tuple[ConflictCase, ...]
    clean: tuple[ConflictCase, ...]
    without: tuple[str, ...]
    measured: bool
    open_rules: bool
    hidden: int = 0


def conflict_targets(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[ConflictTarget]:
    """The table of each target, in order of appearance."""
    found = []
    for name, target in targets(run.cases).items():
        cases, without = [], []
        own = {case.id: conflict_rows(case) for case in run.cases if case.target_name == name}
        worst = set(sorted(own, key=lambda id: -_weight(own[id]))[:MOST_CASES])
        hidden = sum(bool(rows) for id, rows in own.items() if id not in worst)
        for case in run.cases:
            if case.id not in worst or case.target_name != name:
                continue
            rows = own[case.id]
            if rows:
                lines = tuple(
                    _line(row, provenances, index == 0 or rows[index - 1].operation != row.operation)
                    for index, row in enumerate(rows)
                )
                file = ", ".join(dict.fromkeys(row.file for row in rows if row.file))
                cases.append(
                    ConflictCase(
                        case.id,
                        labels[case.id],
                        file,
                        _verdict(rows, provenances),
                        lines,
                        case.suggestions,
                        tuple(memory_maps(case)[:2]),
                    )
                )
            else:
                without.append(labels[case.id])
        every = [line for case in cases for line in case.lines]
        found.append(
            ConflictTarget(
                name,
                target,
                words(target),
                tuple(case for case in cases if not case.clean),
                tuple(case for case in cases if case.clean),
                tuple(without),
                any(not line.measured.absent for line in every),
                any(line.rule == "open" for line in every),
                hidden,
            )
        )
    return found


def _weight(rows: list[ConflictRow]) -> float:
    """All conflicts of a case; cases without accesses come last."""
    sides = [
        side.conflicts.value for row in rows for side in (row.simulated, row.measured) if side.conflicts is not None
    ]
    return sum(value for value in sides if value == value) + bool(rows)


def _verdict(rows: list[ConflictRow], provenances: ProvenanceTable) -> Cell:
    """All conflicts of a case in a few words: measured ones where there are any, else simulated ones by known rules."""
    measured = [row.measured for row in rows if row.measured.exists]
    known = [row.simulated for row in rows if row.simulated.exists and not row.subtotal and row.rule == "known"]
    unsure = total(row.simulated.conflicts for row in rows if not row.subtotal and row.rule == "open")
    for kind, side in (("measured", measured), ("simulated", known)):
        conflicts, ideal = total(c.conflicts for c in side), total(c.ideal for c in side)
        if conflicts is None:
            continue
        text, mark = f"no conflicts, {kind}", "zero"
        if conflicts.value != 0:
            times = (
                f", {numbers.ratio(1 + conflicts.value / ideal.value)} the ideal" if ideal and ideal.value > 0 else ""
            )
            text, mark = f"{numbers.si(conflicts.value)} conflicts{times}, {kind}", "hot"
        if kind == "simulated" and unsure is not None and unsure.value > 0:
            text += f"; perhaps {numbers.si(unsure.value)} more where the rule is open"
        return provenances.cell(text, conflicts.provenance, mark=mark)
    return ABSENT


def _line(row: ConflictRow, provenances: ProvenanceTable, first: bool) -> ConflictLine:
    simulated, measured = row.simulated, row.measured
    times = _times(measured.transactions, measured.ideal) or _times(simulated.transactions, simulated.ideal)
    difference = ABSENT
    if row.difference is not None:
        mark = "same" if row.difference == 0 else "differs"
        formula = Provenance("derived", "tileprof", "", "measured minus simulated transactions")
        difference = provenances.cell(numbers.difference(row.difference), formula, mark=mark)
    return ConflictLine(
        label=row.label,
        place=str(row.line) if row.line is not None else "",
        text=row.text,
        buffer=row.buffer or "all buffers",
        access=ACCESSES.get(row.access or "", row.access or numbers.ABSENT),
        requests=provenances.count(simulated.requests or measured.requests),
        ways=provenances.count(simulated.ways),
        ideal=provenances.count(simulated.ideal or measured.ideal),
        simulated=provenances.count(simulated.transactions),
        simulated_conflicts=provenances.count(simulated.conflicts, _mark(simulated.conflicts, row.rule)),
        measured=provenances.count(measured.transactions),
        measured_conflicts=provenances.count(measured.conflicts, _mark(measured.conflicts)),
        difference=difference,
        times=numbers.ABSENT if times is None else numbers.ratio(times),
        heat=heat(times) if row.rule == "known" or row.measured.exists else 0,
        source=row.source,
        rule=row.rule,
        subtotal=row.subtotal,
        first=first,
    )


def heat(times: float | None) -> int:
    """0 for no conflict (or not known), then 1 to 4 for up to 2, 4, 8 and more times the ideal."""
    if times is None or times <= 1:
        return 0
    return 1 + sum(times > limit for limit in (2, 4, 8))


def _mark(conflicts: Figure | None, rule: str = "known") -> str:
    """Green for none, red for some; what an open rule says is neither good nor bad news."""
    if conflicts is None:
        return ""
    if rule != "known":
        return "unsure"
    return "zero" if conflicts.value == 0 else "hot"


def _times(transactions: Figure | None, ideal: Figure | None) -> float | None:
    if transactions is None or ideal is None or ideal.value <= 0:
        return None
    return transactions.value / ideal.value
