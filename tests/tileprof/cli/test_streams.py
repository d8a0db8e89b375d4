"""Where the output leads is no reason to end: a reader that goes away, a poor encoding; and a full disk is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tileprof.execute.child import environment
from tileprof.report.files import RENDERERS
from tileprof.store.reader import read_run

WORKLOAD = """\
version: 1
name: small
targets: {here: {target: cpu, profiler: none}}
kernels:
  - {name: ends, command: ["sh", "-c", "exit {N}"], args: {N: [0, 3, 5]}}
"""


def shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a bash command leaves in which ``$tileprof`` and ``$cache`` are programs of ours; the status is the first program's."""
    python = f"{sys.executable} -m"
    programs = {"tileprof": f"{python} tileprof", "cache": f"{python} tilelang_min.cache"}
    return subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], cwd=folder, capture_output=True, check=False, timeout=120,
        env={**environment(), **programs, **variables}, encoding="utf-8", errors="replace",
    )  # fmt: skip


# `true` has ended before Python has begun: whatever is written finds the pipe closed
@pytest.mark.parametrize("command", ["$tileprof schema workload", "$tileprof --help", "$cache list", "$cache --help"])
def test_a_reader_that_goes_away_is_no_error(command: str, tmp_path: Path) -> None:
    done = shell(f"{command} | true", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_sweep_goes_on_without_a_reader_and_ends_with_its_own_status(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    done = shell("$tileprof run w.yaml -o run 2>&1 | true", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")
    run = read_run(tmp_path / "run/run.sqlite")
    assert (run.finished is not None, len(run.cases)) == (True, 3)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"run.sqlite", *RENDERERS}


@pytest.mark.parametrize("command", ["$tileprof schema workload", "$tileprof --help", "$cache path"])
def test_output_that_is_lost_is_told(command: str, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = shell(f"{command} > /dev/full", tmp_path)
    assert done.returncode == 2
    assert "standard output cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_our_characters(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    done = shell("$tileprof run w.yaml", tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 4
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("ends[N=0]@here ")]
    assert row.split()[-5:] == ["-"] * 5  # em dashes in better encodings
    assert "Traceback" not in done.stderr


def test_a_folder_whose_name_is_not_in_the_encoding(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xc3\xa9\xe9"))
    folder.mkdir()
    kernels = Path(__file__).parents[1] / "execute/sweep_kernels.py"
    (folder / "kernels.py").write_text(kernels.read_text())
    text = WORKLOAD.replace('command: ["sh", "-c", "exit {N}"]', 'source: "kernels.py:scale"')
    (folder / "w.yaml").write_text(text.replace("[0, 3, 5]", "100"))
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    done = shell("$tileprof run w.yaml -o run", folder, TILELANG_CACHE_DIR=str(tmp_path / "cache"), **ascii_alone)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
    (case,) = read_run(folder / "run/run.sqlite").cases
    assert case.status == "ok"
    assert {operation["location"]["file"] for operation in case.operations} == {"kernels.py"}
    assert list(case.sources) == ["kernels.py"]
    assert "def scale" in case.sources["kernels.py"]
