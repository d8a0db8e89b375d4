"""What is shown while a run goes on and at its end."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tileprof.cli.progress import BarProgress, LineProgress
from tileprof.cli.summary import MOST_FINDINGS, print_summary
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Run, Timing


@pytest.fixture
def case(run: Run) -> CaseResult:
    """A case of the synthetic run."""
    return next(case for case in run.cases if case.status == "ok")


def test_lines_where_there_is_no_terminal(case: CaseResult, capsys: pytest.CaptureFixture[str]) -> None:
    progress = LineProgress()
    progress.begin(3, 1)
    progress.stage(case.id, "compiling")
    timed = replace(case, id="a@cpu", timing=Timing((2.5e6,), "clock", 0, True), seconds=1.25)
    progress.finished(timed)
    progress.finished(replace(timed, id="b@cpu", status="timeout", reason="too slow\nmore", timing=None))
    progress.end()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "1 of 3 cases are kept from before",
        "[2/3] a@cpu: ran: 2.500 ms (1.2 s)",
        "[3/3] b@cpu: time limit: too slow (1.2 s)",
    ]


def test_a_bar_on_a_terminal(case: CaseResult) -> None:
    stream = io.StringIO()
    progress = BarProgress(Console(file=stream, force_terminal=True, width=120))
    progress.begin(2, 0)
    progress.stage(case.id, "simulating")
    progress._progress.refresh()
    progress.finished(case)
    progress.finished(replace(case, id="[red]b@cpu", status="crashed", reason="[bold]SIGSEGV"))
    progress.end()
    text = stream.getvalue()
    assert "simulating" in text
    assert "2/2" in text
    assert "[red]b@cpu" in text  # names are shown, not interpreted
    assert "[bold]SIGSEGV" in text


def test_the_table_shows_every_case_and_each_failure(run: Run, case: CaseResult) -> None:
    failed = replace(case, id="[x]bad@cpu", status="incorrect", reason="off by one\nhere", timing=None)
    shown = replace(run, cases=(*run.cases, failed))
    stream = io.StringIO()
    print_summary(shown, Path("runs/x"), Console(file=stream, width=200))
    lines = stream.getvalue().splitlines()
    for each in shown.cases:
        assert any(each.id in line for line in lines)
    row = next(line for line in lines if line.startswith("[x]bad@cpu"))
    assert "wrong result" in row
    assert "[x]bad@cpu: wrong result" in lines
    assert lines[lines.index("[x]bad@cpu: wrong result") + 1 :][:2] == ["  off by one", "  here"]
    assert lines[-1] == "runs/x/index.html"
    for entry in run.unavailable:
        assert any(f"not measured on {entry.target}: {entry.what}" in line for line in lines)
    simulated = next(line for line in lines if "~" in line)
    assert "@" in simulated  # conflicts that were only simulated are marked


def test_findings_name_the_case_that_would_gain_most_and_how_many_more(tmp_path: Path) -> None:
    recorded = read_run(Path(__file__).resolve().parents[3] / "reports/h200-quickstart/run.sqlite")
    stream = io.StringIO()
    print_summary(recorded, tmp_path, Console(file=stream, width=2000))
    told = [line for line in stream.getvalue().splitlines() if " % to gain: " in line]
    assert len(told) == MOST_FINDINGS
    ids = [case.id for case in recorded.cases]
    for line in told:
        assert any(case_id in line for case_id in ids), line
    assert re.search(r"@h200 and \d+ more, (sure|likely)\)", told[0])
