"""First section of the page: what ran where, how each case ended, its times; and what could not be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tileprof.analyse.best import problem
from tileprof.analyse.conflicts import conflict_rows
from tileprof.analyse.figures import noisy_time, timing_provenance, total
from tileprof.analyse.labels import targets
from tileprof.analyse.roofline import Point
from tileprof.report import numbers
from tileprof.report.cells import ABSENT, Cell, ProvenanceTable
from tileprof.report.words import STATUS_WORDS, limiter_words, words
from tileprof.store.records import FAILED_STATUSES, CaseResult, Provenance, Run


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How many cases ended so; ``tone`` is a CSS class (good, plain, warn, bad), ``share`` per mille of the bar."""

    status: str
    word: str
    tone: str
    count: int
    share: int
    offset: int


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One variant on one target.  ``figure`` is the time where it was run; ``lines`` are short facts under it."""

    id: str
    status: str
    word: str
    tone: str
    figure: Cell
    lines: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A row of the table of all cases."""

    id: str
    label: str
    target_name: str
    word: str
    tone: str
    reason: str
    cells: tuple[Cell, ...]
    check: tuple[str, str, str]
    check_ok: bool | None


@dataclass(frozen=True, slots=True)
class Note:
    """A note and the cases that carry it."""

    text: str
    cases: tuple[str, ...]


def tone(status: str) -> str:
    """CSS class of a status."""
    if status in FAILED_STATUSES:
        return "bad"
    return {"ok": "good", "not_run": "plain", "invalid_measurement": "warn"}.get(status, "warn")


def status_word(status: str) -> str:
    """A status as the reader sees it; unknown ones as they are."""
    return STATUS_WORDS.get(status, status)


def status_counts(run: Run) -> list[StatusCount]:
    """Statuses that occur, best first, with their share of a bar 1000 wide."""
    counts = Counter(case.status for case in run.cases)
    order = {"good": 0, "plain": 1, "warn": 2, "bad": 3}
    found, offset = [], 0
    for status in sorted(counts, key=lambda s: (order[tone(s)], -counts[s], s)):
        share = round(1000 * counts[status] / len(run.cases))
        found.append(StatusCount(status, status_word(status), tone(status), counts[status], share, offset))
        offset += share
    return found


def time_cell(case: CaseResult, provenances: ProvenanceTable) -> Cell:
    """Median unprofiled time."""
    if case.timing is None or not case.timing.samples_ns:
        return ABSENT
    median = case.timing.median_ns
    return provenances.cell(numbers.duration(median), timing_provenance(case.timing), f"{numbers.count(median)} ns")


def matrix(
    run: Run, labels: dict[str, str], points: dict[str, Point], provenances: ProvenanceTable
) -> tuple[list[str], list[tuple[str, list[MatrixCell | None]]]]:
    """Target names, and for each variant its cell on each target (None where there is no such case)."""
    names = list(targets(run.cases))
    rows: dict[str, dict[str, MatrixCell]] = {}
    slowdowns = relative_times(run.cases)
    for case in run.cases:
        cell = MatrixCell(
            case.id,
            case.status,
            status_word(case.status),
            tone(case.status),
            time_cell(case, provenances),
            tuple(_facts(case, points.get(case.id), slowdowns.get(case.id), provenances)),
        )
        label = labels[case.id] if labels[case.id] != case.id else case.id.rpartition("@")[0] or case.id
        rows.setdefault(label, {})[case.target_name] = cell
    return names, [(label, [cells.get(name) for name in names]) for label, cells in rows.items()]


def relative_times(cases: Sequence[CaseResult]) -> dict[str, tuple[float, int]]:
    """Time over that of the fastest case which solves the same problem on the same target, and how many there are.

    The same problem: equal shape and arguments, whatever the kernel and its tiles.
    """
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        if case.timing is not None and case.timing.samples_ns:
            groups.setdefault(problem(case), []).append(case)
    found: dict[str, tuple[float, int]] = {}
    for group in groups.values():
        times = {case.id: case.timing.median_ns for case in group if case.timing is not None}
        fastest = min(times.values())
        if len(times) > 1 and fastest > 0:
            found |= {id: (time / fastest, len(times)) for id, time in times.items()}
    return found


def attained(share: float) -> str:
    """A share of what the roofline allows, in words."""
    text = f"{numbers.percent(share)} of attainable"
    return text if share <= 1 else f"{text}: above the roof, so its data stays in a cache or the ceiling is too low"


def _facts(
    case: CaseResult, point: Point | None, slowdown: tuple[float, int] | None, provenances: ProvenanceTable
) -> list[Cell]:
    """Two short facts: for a timed case its rate and rank, for another one its conflicts and occupancy."""
    facts: list[Cell] = []
    if case.status in FAILED_STATUSES:
        line = case.reason.strip().splitlines()[0] if case.reason.strip() else "no reason was recorded"
        return [Cell(line, mark="why")]
    if point is not None and point.achieved is not None:
        rate = Provenance("derived", "tileprof", "", "useful FLOPs / measured time")
        share = f", {attained(point.share)}" if point.share is not None else ""
        facts.append(provenances.cell(numbers.si(point.achieved, "FLOP/s") + share, rate))
    if slowdown is not None:
        formula = Provenance(
            "derived", "tileprof", "", "median time / that of the fastest with equal shape and arguments"
        )
        text = f"fastest of {slowdown[1]}" if slowdown[0] == 1 else f"{numbers.ratio(slowdown[0])} the fastest"
        best = slowdown[0] == 1 and not noisy_time(case)
        facts.append(provenances.cell(text, formula, mark="best" if best else ""))
    if noisy_time(case):
        facts.append(Cell("noisy: do not rank by it", mark="why"))
    if case.timing is None:
        facts.extend(_simulated_facts(case, provenances))
    return facts


def _simulated_facts(case: CaseResult, provenances: ProvenanceTable) -> list[Cell]:
    facts = []
    rows = [row for row in conflict_rows(case) if not row.subtotal]
    conflicts = total(row.simulated.conflicts for row in rows if row.rule == "known")
    unsure = total(row.simulated.conflicts for row in rows if row.rule == "open")
    if conflicts is not None:
        noun = words(case.target).shared
        number = "no" if conflicts.value == 0 else numbers.si(conflicts.value)
        mark = "best" if conflicts.value == 0 else ""
        exact = numbers.count(conflicts.value)
        facts.append(provenances.cell(f"{number} {noun} conflicts", conflicts.provenance, exact, mark))
    if unsure is not None and unsure.value > 0:
        text = f"perhaps {numbers.si(unsure.value)} more: rule open"
        facts.append(provenances.cell(text, unsure.provenance, numbers.count(unsure.value)))
    metadata = case.metadata or {}
    occupancy, registers = metadata.get("occupancy"), metadata.get("registers_per_thread")
    if occupancy is not None:
        limiters = " and ".join(limiter_words(metadata, case.target)) or "nothing"
        source = Provenance("derived", "occupancy model", "", f"limited by {limiters}")
        text = "" if registers is None else f"{numbers.count(registers)} registers, "
        facts.append(provenances.cell(f"{text}occupancy {numbers.percent(occupancy)}", source))
    return facts


def case_rows(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[CaseRow]:
    """The table of all cases: median, spread, samples, wall time, check."""
    rows = []
    for case in run.cases:
        timing = case.timing
        spread = samples = ABSENT
        if timing is not None and timing.samples_ns:
            source = timing_provenance(timing)
            low, high = min(timing.samples_ns), max(timing.samples_ns)
            spread = provenances.cell(f"{numbers.duration(low)} – {numbers.duration(high)}", source)
            samples = provenances.cell(numbers.count(len(timing.samples_ns)), source)
        rows.append(
            CaseRow(
                case.id,
                labels[case.id],
                case.target_name,
                status_word(case.status),
                tone(case.status),
                case.reason,
                (time_cell(case, provenances), spread, samples, Cell(numbers.seconds(case.seconds))),
                check_text(case),
                None if case.check is None else case.check.ok,
            )
        )
    return rows


def check_text(case: CaseResult) -> tuple[str, str, str]:
    """The comparison with the reference: verdict with the largest errors, what was allowed, what was compared."""
    check = case.check
    if check is None:
        return numbers.ABSENT, "", numbers.ABSENT
    verdict = "right" if check.ok else "wrong"
    scope = "all elements" if check.scope == "all" else check.scope
    errors = f"{verdict}: absolute {check.max_abs_error:.1e}, relative {check.max_rel_error:.1e}"
    return errors, f"allowed: absolute {check.atol:g}, relative {check.rtol:g}", scope


def failures(run: Run, labels: dict[str, str]) -> list[tuple[str, str, str, str]]:
    """(label, target, status in words, whole reason) of cases that failed or are invalid."""
    return [
        (labels[case.id], case.target_name, status_word(case.status), case.reason.strip() or "no reason was recorded")
        for case in run.cases
        if case.status in FAILED_STATUSES or case.status == "invalid_measurement"
    ]


def notes(run: Run, labels: dict[str, str]) -> list[Note]:
    """Notes of cases, equal ones together, in order of appearance."""
    found: dict[str, list[str]] = {}
    for case in run.cases:
        for text in case.notes:
            found.setdefault(text, []).append(f"{labels[case.id]} @ {case.target_name}")
    return [Note(text, tuple(cases)) for text, cases in found.items()]


def wall_time(run: Run) -> str:
    """How long the run took; says so when it never finished."""
    if run.finished is None:
        return "interrupted: finished cases are kept"
    try:
        taken = datetime.fromisoformat(run.finished) - datetime.fromisoformat(run.started)
    except (TypeError, ValueError):
        return numbers.ABSENT
    return numbers.seconds(taken.total_seconds())
