"""Global accesses by operation and buffer: the sectors they touch, and how much of each sector is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.analyse.figures import CaseFigures, Figure, case_figures
from tileprof.analyse.labels import targets
from tileprof.report import numbers
from tileprof.report.cells import Cell, ProvenanceTable
from tileprof.report.words import ACCESSES
from tileprof.store.records import CaseResult, Provenance, Run

MOST_CASES = 24
SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class GlobalLine:
    """One access.  ``used`` is the share of the sectors' bytes that is asked for, in per cent of a bar."""

    line: int | None
    label: str
    buffer: str
    access: str
    bytes: Cell
    sectors: Cell
    ideal: Cell
    measured: Cell
    share: Cell
    used: int


@dataclass(frozen=True, slots=True)
class GlobalCase:
    """All global accesses of a case."""

    id: str
    label: str
    lines: tuple[GlobalLine, ...]

    @property
    def clean(self) -> bool:
        """Whether every byte of every sector is asked for, and a profiler, where it counted, counted no more sectors."""
        return all(
            line.used == 100 and (line.measured.absent or line.measured.text == line.sectors.text)
            for line in self.lines
        )


@dataclass(frozen=True, slots=True)
class GlobalTarget:
    """The cases of a target that are shown, those with most sectors above the ideal, ``clean`` ones apart; how many are not."""

    name: str
    target: str
    cases: tuple[GlobalCase, ...]
    clean: tuple[GlobalCase, ...]
    measured: bool
    hidden: int


def global_targets(run: Run, labels: dict[str, str], provenances: ProvenanceTable) -> list[GlobalTarget]:
    """The table of each target that has counted accesses."""
    found = []
    for name, target in targets(run.cases).items():
        cases = [case for case in run.cases if case.target_name == name and _places(case_figures(case))]
        shown = {case.id for case in sorted(cases, key=lambda case: -_excess(case_figures(case)))[:MOST_CASES]}
        views = tuple(
            GlobalCase(case.id, labels[case.id], tuple(_lines(case, provenances))) for case in cases if case.id in shown
        )
        if views:
            measured = any(not line.measured.absent for view in views for line in view.lines)
            wasteful = tuple(view for view in views if not view.clean)
            clean = tuple(view for view in views if view.clean)
            found.append(GlobalTarget(name, target, wasteful, clean, measured, len(cases) - len(views)))
    return found


def _places(figures: CaseFigures) -> list[int]:
    return figures.operations_with("global.sectors", "simulated")


def _excess(figures: CaseFigures) -> float:
    taken, ideal = (figures.of_case(metric, "simulated") for metric in ("global.sectors", "global.sectors_ideal"))
    return 0.0 if taken is None or ideal is None else taken.value - ideal.value


def _lines(case: CaseResult, provenances: ProvenanceTable) -> list[GlobalLine]:
    figures, lines = case_figures(case), []
    known = {operation["id"]: operation for operation in case.operations}
    for operation in _places(figures):
        record = known.get(operation)
        sectors = figures.accesses("global.sectors", "simulated", operation)
        ideals = figures.accesses("global.sectors_ideal", "simulated", operation)
        asked = figures.accesses("global.bytes", "simulated", operation)
        measured = figures.accesses("global.sectors", "measured", operation)
        for (buffer, access), taken in sectors.items():
            share = _share(asked.get((buffer, access)), taken)
            # A profiler tells accesses apart, and buffers only where there is one of that kind.
            theirs = measured.get((buffer, access)) or measured.get((None, access))
            alone = sum(other[1] == access for other in sectors) == 1
            formula = Provenance("derived", "tileprof", "", "bytes asked for / (sectors x 32)")
            lines.append(
                GlobalLine(
                    line=((record or {}).get("location") or {}).get("line"),
                    label=record["label"] if record else f"operation {operation}",
                    buffer=buffer or numbers.ABSENT,
                    access=ACCESSES.get(access or "", access or numbers.ABSENT),
                    bytes=provenances.count(asked.get((buffer, access))),
                    sectors=provenances.count(taken, "hot" if share is not None and share < 0.5 else ""),
                    ideal=provenances.count(ideals.get((buffer, access))),
                    measured=provenances.count(theirs if alone else None),
                    share=provenances.cell(numbers.percent(share), formula),
                    used=0 if share is None else round(100 * min(1.0, share)),
                )
            )
    return lines


def _share(asked: Figure | None, sectors: Figure) -> float | None:
    if asked is None or not sectors.value > 0:
        return None
    return asked.value / (SECTOR_BYTES * sectors.value)
