"""Cases that are not our kernels: a callable, in this or another interpreter, and a command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tileprof.launcher import foreign


def test_a_callable_is_prepared_once_and_then_timed(foreign_run: Any) -> None:
    case = foreign_run.case("prepared[N=100]@cpu")
    assert (case.status, case.timing.method) == ("ok", "wall clock around single calls")
    assert len(case.timing.samples_ns) == 10
    assert min(case.timing.samples_ns) > 0
    assert [metric.metric for metric in case.metrics] == ["time.ns"]
    calls = (foreign_run.directory.parent / "calls.txt").read_text().split()
    assert calls == ["4950"] * (1 + 1 + 2 * (2 + 5))  # the first call, one to see how long it takes, and the rounds
    assert any(note.startswith("ran with python 3.") and "numpy" in note for note in case.notes)
    assert any("its results were not checked" in note for note in case.notes)


def test_a_function_that_returns_nothing_is_the_work(foreign_run: Any) -> None:
    assert len(foreign_run.case("direct[N=1000]@cpu").timing.samples_ns) == 10


def test_another_interpreter_runs_it(foreign_run: Any) -> None:
    assert foreign_run.case("elsewhere[N=5]@cpu").status == "ok"
    absent = foreign_run.case("nowhere[N=5]@cpu")
    assert (absent.status, absent.reason) == (
        "unsupported",
        "no-such-python cannot be run: there is no such interpreter",
    )


def test_a_command_gets_the_cases_values_and_is_timed_as_a_whole(foreign_run: Any) -> None:
    case = foreign_run.case("program[N=41]@cpu")
    assert case.status == "ok"
    assert case.timing.method == "wall clock around the whole command, its start included"
    assert len(case.timing.samples_ns) >= 3


def test_without_the_device_it_is_not_run_and_says_so(foreign_run: Any) -> None:
    case = foreign_run.case("prepared[N=100]@a100")
    assert (case.status, case.timing) == ("not_run", None)
    assert re.search("no NVIDIA GPU|sm_80 binaries do not run on", case.reason)  # none here, or another


def test_the_report_has_the_cases(foreign_run: Any) -> None:
    assert foreign_run.status == 4  # one interpreter is missing
    page = (foreign_run.directory / "index.html").read_text()
    assert "prepared[N=100]@cpu" in page
    record = json.loads((foreign_run.directory / "result.json").read_text())
    assert {case["id"] for case in record["run"]["cases"]} == {case.id for case in foreign_run.run.cases}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("callable: kernels.py:foreign_work, args: {M: 1}", "unknown parameter of foreign_work"),
        ("callable: kernels.py:foreign_work", "no value for N, which foreign_work needs"),
        ("command: [./a.out, '{M}'], args: {N: 1}", "unknown value 'M'"),
        (
            "command: [./a.out], reference: kernels.py:double",
            "'reference' is for kernels whose arguments tileprof makes",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(folder: Any, line: str, message: str) -> None:
    text = f"version: 1\nname: w\ntargets: {{cpu: {{target: cpu}}}}\nkernels:\n  - {{name: k, {line}}}\n"
    outcome = folder.run(text)
    assert outcome.status == 2
    assert message in outcome.err


def test_the_runner_needs_nothing_but_python(tmp_path: Path) -> None:
    """It is run by its path in other interpreters: isolated mode hides our packages from it."""
    (tmp_path / "work.py").write_text("def work(N):\n    return lambda: N\n")
    policy = {"budget_s": 1.0, "rounds": 1, "warmup": 1, "samples": 3, "flush_l2": True}
    job = {
        "file": str(tmp_path / "work.py"), "module": None, "function": "work", "directory": str(tmp_path),
        "values": {"N": 1}, "kind": "cpu", "timing": policy, "launches": 0, "answer": str(tmp_path / "answer"),
    }  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "-I", "-S", str(Path(foreign.__file__)), str(tmp_path / "job.json")]
    subprocess.run(command, check=True, timeout=60)
    answer = json.loads((tmp_path / "answer").read_text())
    assert len(answer["samples_ns"]) == 3
    assert set(answer["versions"]) == {"python"}
