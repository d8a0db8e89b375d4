"""Whatever a case does, it is told, costs that case alone, and the sweep goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tileprof.report.files import RENDERERS


def test_the_run_is_complete_and_says_that_cases_failed(failures: Any) -> None:
    assert failures.status == 4
    assert failures.run.finished is not None
    assert len(failures.run.cases) == 25
    assert "Traceback" not in failures.err + failures.out


@pytest.mark.parametrize("name", ["first[N=1000]@cpu", "last[N=1001]@cpu"])
def test_cases_before_and_after_the_failures_are_fine(failures: Any, name: str) -> None:
    case = failures.case(name)
    assert (case.status, case.reason) == ("ok", "")
    assert case.check.ok
    assert case.check.scope == "all"
    assert len(case.timing.samples_ns) == 3


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("wrong[N=100]@cpu", "incorrect", "the simulation differs from the reference by up to"),
        ("wrong[N=100]@a100", "incorrect", "(allowed 0.0001 + 0.0001 |reference|): B[0] is "),
        ("bad_reference[N=100]@cpu", "crashed", "reference kernels.py:broken_reference failed: kernels.py:"),
        ("short_reference[N=100]@cpu", "crashed", "kernels.py:wrong_shape returned shape (3,) for B, which has (100,)"),
        ("bad_input[N=100]@cpu", "compile_error", "inputs names 'Q', and the kernel's parameters are A, B"),
        ("bad_file[M=1]@cpu", "compile_error", "importing raises.py fails: raises.py:1: ZeroDivisionError"),
        ("misfit[M=64]@cpu", "compile_error", "A is 64x32, B is 48x64, C is 64x64"),
        ("rank[M=64]@cpu", "compile_error", "A has 2 dimensions (64, 64), but 3 indices are given"),
        ("hungry[M=64,block=256]@a100", "compile_error", "the block needs 262,144 bytes of shared memory"),
        ("raising[M=1]@cpu", "compile_error", "ValueError: this factory does not like you"),
        ("exiting[M=1]@cpu", "compile_error", "SystemExit: 3"),
        ("aborting[M=1]@cpu", "crashed", "while compiling, the compile worker was ended by SIGABRT"),
        ("hanging[M=1]@cpu", "timeout", "compiling did not end within 6 s"),
        ("crash@cpu", "crashed", "while launching, the launcher was ended by SIGSEGV: an access outside its memory"),
        ("hang@cpu", "timeout", "launching did not end within 6 s"),
        ("misplaced@a100", "compile_error", "the bundle is for cpu:x86-64-v"),
        ("foreign@cpu", "crashed", "while launching: kernels.py:"),
        ("dying@cpu", "crashed", "the command ended with status 7: python3 -c"),
        ("absent@cpu", "unsupported", "./no-such-program cannot be run: No such file"),
        ("endless@cpu", "timeout", "running the command did not end within 6 s"),
    ],
)
def test_a_failure_is_a_result_of_its_case(failures: Any, name: str, status: str, reason: str) -> None:
    case = failures.case(name)
    assert case.status == status
    assert reason in case.reason
    assert f"{name}: " in failures.err
    assert name in failures.out


@pytest.mark.parametrize("name", ["bad_reference[N=100]@cpu", "misfit[M=64]@cpu", "rank[M=64]@cpu", "raising[M=1]@cpu"])
def test_the_authors_line_is_shown(failures: Any, name: str) -> None:
    reason = failures.case(name).reason
    line = int(reason.split("kernels.py:")[-1].split(":")[0])
    text = Path(failures.directory.parent / "kernels.py").read_text().splitlines()[line - 1].strip()
    assert text in reason
    assert str(failures.directory.parent) not in reason  # relative, so that no user's folder is named


def test_nothing_stays_behind(failures: Any) -> None:
    names = {path.name for path in failures.directory.iterdir()}
    assert names == {"run.sqlite", "kernels", *RENDERERS}
    mine = str(failures.directory.parent)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            assert not (str((process / "cwd").resolve()).startswith(mine))
        except OSError:
            continue
