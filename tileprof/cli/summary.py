"""The table at the end of a run, on standard output."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tileprof.analyse.diagnosis import diagnose
from tileprof.analyse.figures import CaseFigures, Figure, case_figures
from tileprof.analyse.findings import grouped
from tileprof.collect.cycles import TOO_NOISY
from tileprof.collect.noise import NOISE
from tileprof.report import numbers
from tileprof.report.words import STATUS_WORDS
from tileprof.store.records import FAILED_STATUSES, CaseResult, Run

_STYLES = {"ok": "green", "not_run": "dim", "invalid_measurement": "yellow"}
MOST_FINDINGS = 3
"""Findings that are told in the terminal; the report has them all."""

MOST_NOISY = 3
"""Cases with noisy times that are told in the terminal."""

_WIDE = 160  # columns of a console that is no terminal, where nothing should be cut


def print_summary(run: Run, directory: Path, console: Console | None = None) -> None:
    """Print one row a case, the failures with their reasons, and where the report is."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    console.print(_table(run))
    for case in run.cases:
        if case.status in FAILED_STATUSES or case.status == "invalid_measurement":
            console.print(Text(f"{case.id}: {STATUS_WORDS.get(case.status, case.status)}", style="bold red"))
            console.print(Text(f"  {case.reason}".replace("\n", "\n  ")))
    noisy = [note for case in run.cases for note in _noise(case)]
    for text in noisy[:MOST_NOISY]:
        console.print(Text(text, style="yellow"))
    if len(noisy) > MOST_NOISY:
        console.print(Text(f"noisy times of {len(noisy) - MOST_NOISY} more cases; the report has them", style="yellow"))
    for line in _findings(run):
        console.print(line)
    for entry in run.unavailable:
        remedy = f"; {entry.remedy}" if entry.remedy else ""
        console.print(Text(f"not measured on {entry.target}: {entry.what}: {entry.why}{remedy}", style="dim"))
    console.print(Text(str(directory / "index.html")))


def _noise(case: CaseResult) -> list[str]:
    """Notes on times of the case that are not to be trusted: of several the one that knows the cause."""
    found = [note for note in case.notes if note.startswith(NOISE)] or [
        n for n in case.notes if n.startswith(TOO_NOISY)
    ]
    return [f"{case.id}: {note}" for note in found[-1:]]


def _findings(run: Run) -> list[Text]:
    """The most valuable findings with an estimate, one a rule, target and line, with the case that would gain most."""
    lines = []
    for found, count in grouped(found for found in diagnose(run) if found.gain is not None)[:MOST_FINDINGS]:
        place = f"{found.file}:{found.line}, " if found.line is not None else ""
        more = f" and {count - 1} more" if count > 1 else ""
        text = Text(f"{(found.gain or 0) * 100:.0f} % to gain: ", style="yellow")
        text.append(f"{found.title} ({place}{found.case}{more}, {found.confidence}): {found.advice}", style="default")
        lines.append(text)
    return lines


def _table(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for title in ("result", "time", "registers", "shared", "spills", "conflicts", "error"):
        table.add_column(title, justify="left" if title == "result" else "right", no_wrap=True)
    for case in run.cases:
        table.add_row(*_row(case))
    return table


def _row(case: CaseResult) -> list[Text]:
    figures = case_figures(case)
    status = Text(STATUS_WORDS.get(case.status, case.status), style=_STYLES.get(case.status, "red"))
    time = case.timing.median_ns if case.timing is not None and case.timing.samples_ns else None
    shared = _sum(figures, "shared.static_bytes", "shared.dynamic_bytes")
    spills = _sum(figures, "spill.store_bytes", "spill.load_bytes")
    error = numbers.ABSENT if case.check is None else f"{case.check.max_rel_error:.1e}"
    cells = [
        numbers.duration(time),
        numbers.count(_value(_known(figures, "registers.per_thread") or _known(figures, "registers.vgpr"))),
        numbers.byte_count(shared),
        numbers.byte_count(spills),
        _conflicts(figures),
        error,
    ]
    return [Text(case.id), status, *(Text(cell) for cell in cells)]


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _known(figures: CaseFigures, name: str) -> Figure | None:
    """A fact of the binary, or what a profiler shows of it where there is no binary."""
    return figures.of_case(name, "static") or figures.of_case(name, "measured")


def _sum(figures: CaseFigures, *names: str) -> float | None:
    values = [figure.value for name in names if (figure := _known(figures, name)) is not None]
    return sum(values) if values else None


def _conflicts(figures: CaseFigures) -> str:
    """Shared-memory conflicts: measured where they were, else simulated, which is marked."""
    measured = figures.of_case("shared.conflicts", "measured")
    if measured is not None:
        return numbers.count(measured.value)
    simulated = figures.of_case("shared.conflicts", "simulated")
    return numbers.ABSENT if simulated is None else f"~{numbers.count(simulated.value)}"
