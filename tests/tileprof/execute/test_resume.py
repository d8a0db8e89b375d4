"""--resume keeps what is finished, whatever part of the workload is asked for, and refuses a run of another workload."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tileprof.cli.main import main
from tileprof.store.reader import read_run
from tileprof.store.records import Run

WORKLOAD = """\
version: 1
name: small
defaults: {timing: {warmup: 0, samples: 1}}
targets: {one: {target: cpu, profiler: none}, two: {target: cpu, profiler: none}, a100: {target: "cuda:sm_80"}}
kernels:
  - {name: echo, command: ["sh", "-c", "echo {N} >> log.txt"], shapes: [{N: 1}, {N: 2}]}
"""
ALL = [f"echo[N={n}]@{target}" for n in (1, 2) for target in ("one", "two", "a100")]

Resumes = Callable[..., tuple[int, str, Run]]


def drop(path: Path, *ids: str) -> None:
    """Make the run in ``path`` one that was killed before these cases."""
    with sqlite3.connect(path / "run.sqlite") as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executemany("DELETE FROM cases WHERE id = ?", [(case,) for case in ids])
        connection.execute("UPDATE run SET value = 'null' WHERE key = 'finished'")
    connection.close()


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Resumes:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str = WORKLOAD, file: str = "w.yaml") -> tuple[int, str, Run]:
        (tmp_path / file).write_text(text)
        status = main(["run", file, "-o", "run", *arguments])
        return status, capsys.readouterr().err, read_run(tmp_path / "run/run.sqlite")

    assert run()[0] == 0
    (tmp_path / "log.txt").unlink()
    return run


def ids(run: Run) -> list[str]:
    return [case.id for case in run.cases]


def test_cases_of_targets_that_are_not_asked_for_stay(call: Resumes, tmp_path: Path) -> None:
    before = read_run(tmp_path / "run/run.sqlite").unavailable
    drop(tmp_path / "run", ALL[0])
    status, err, run = call("--resume", "--target", "one")
    assert (status, ids(run), run.finished is not None) == (0, ALL, True)
    assert "1 of 2 cases are kept from before" in err
    assert (tmp_path / "log.txt").read_text().split() == ["1"]
    assert sorted(run.unavailable, key=str) == sorted(before, key=str)


def test_a_run_is_finished_when_all_its_targets_are(call: Resumes, tmp_path: Path) -> None:
    drop(tmp_path / "run", ALL[0], ALL[1])
    status, err, run = call("--resume", "--target", "two")
    assert (status, ids(run), run.finished) == (0, ALL[1:], None)
    assert "unfinished: 1 case is left, on one; continue with --resume" in err
    status, err, run = call("--resume")
    assert (status, ids(run), run.finished is not None) == (0, ALL, True)
    assert (tmp_path / "log.txt").read_text().split() == ["1", "1"]


def test_a_run_of_one_target_is_finished_with_it(call: Resumes, tmp_path: Path) -> None:
    call("--force", "--target", "one")
    drop(tmp_path / "run", ALL[0])
    _, _, run = call("--resume", "--target", "one")
    assert (ids(run), run.finished is not None) == ([ALL[0], ALL[3]], True)
    drop(tmp_path / "run")
    _, _, run = call("--resume", "--target", "two")  # a target more
    assert (ids(run), run.finished is not None) == ([ALL[0], ALL[1], ALL[3], ALL[4]], True)


def test_what_is_not_kept_is_said_and_its_files_go(call: Resumes, tmp_path: Path) -> None:
    drop(tmp_path / "run", ALL[0])
    kernels, raw = tmp_path / "run/kernels", tmp_path / "run/raw"
    for name in ("old", "old-operations", "other"):
        (kernels / name).mkdir(parents=True)
    raw.mkdir()
    (raw / "0123.ncu-rep").write_text("x")
    (raw / "0123.rocprofv3/pass_1").mkdir(parents=True)
    with sqlite3.connect(tmp_path / "run/run.sqlite") as connection:
        connection.execute("UPDATE cases SET hash = '0123', bundle = 'kernels/old' WHERE id = ?", (ALL[1],))
    connection.close()
    text = WORKLOAD.replace("{N: 1}, {N: 2}", "{N: 1}")
    status, err, run = call("--resume", "--target", "one", text=text)
    assert status == 0
    assert ids(run) == [ALL[0], ALL[2]]
    assert f"1 finished case is not kept: the kernel, its inputs, the timing or the toolchain changed: {ALL[1]}" in err
    assert "3 finished cases are not kept: no longer in the workload: echo[N=2]@one, " in err
    assert "unfinished: 1 case is left, on two" in err
    assert [path.name for path in kernels.iterdir()] == ["other"]
    assert not raw.exists()  # empty again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            WORKLOAD.replace("small", "large"),
            "run holds an unfinished run of the workload small (w.yaml), and v.yaml is",
        ),
        (
            WORKLOAD.replace("echo, c", "other, c"),
            "none of the 5 finished cases in run is one of v.yaml: echo[N=1]@two",
        ),
    ],
)
def test_a_run_of_another_workload_is_refused_and_left_alone(
    call: Resumes, tmp_path: Path, text: str, message: str
) -> None:
    drop(tmp_path / "run", ALL[0])
    before = (tmp_path / "run/run.sqlite").read_bytes()
    status, err, run = call("--resume", text=text, file="v.yaml")
    assert status == 2
    assert message in err
    assert "help: resume it with its own workload, overwrite it with --force, or " in err
    assert (tmp_path / "run/run.sqlite").read_bytes() == before
    assert ids(run) == ALL[1:]


def test_times_of_another_machine_are_not_mixed_in(call: Resumes, tmp_path: Path) -> None:
    text = WORKLOAD.replace("two: {target: cpu, profiler: none}", "two: {target: cpu, profiler: timer}")
    call("--force", text=text)
    with sqlite3.connect(tmp_path / "run/run.sqlite") as connection:
        (machine,) = connection.execute("SELECT value FROM run WHERE key = 'machine'").fetchone()
        other = {**json.loads(machine), "cpu": "Abacus 9000", "gpus": []}
        connection.execute("UPDATE run SET value = ? WHERE key = 'machine'", (json.dumps(other),))
    connection.close()
    drop(tmp_path / "run", ALL[0])
    status, err, run = call("--resume", text=text)
    assert (status, ids(run)) == (2, ALL[1:])
    assert "run holds times of another machine: Abacus 9000; this one is " in err
    drop(tmp_path / "run", *[case for case in ALL if case.endswith("two")])  # without times there is nothing to mix
    status, _, run = call("--resume", text=text)
    assert (status, ids(run)) == (0, ALL)
