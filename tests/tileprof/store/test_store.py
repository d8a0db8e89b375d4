"""The store keeps what it is given, survives a kill and a full disk, and refuses what it should not touch."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tileprof.errors import StoreError
from tileprof.store.directory import RunDirectory
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Ceiling, Check, Metric, Provenance, Run, Suggestion, Timing, Unavailable
from tileprof.store.writer import RunStore

SIMULATED = Provenance("simulated", "tilelang_min", "0.1.0", "4 of 64 blocks")
DERIVED = Provenance("derived", "tilelang_min", "0.1.0", "occupancy model")

CASE = CaseResult(
    id="matmul[float16,M=64]@a100",
    hash="0123456789abcdef",
    kernel="matmul",
    target_name="a100",
    target="cuda:sm_80",
    args={"dtype": "float16", "fast": True, "scale": 0.5},
    shape={"M": 64},
    tiles={"block_M": 32},
    status="ok",
    reason="",
    metadata={"registers_per_thread": 40, "vgprs": None, "grid": [2, 2, 1], "compile_seconds": {"nvrtc": 0.25}},
    operations=(
        {"id": 0, "kind": "kernel", "label": "main", "location": {"file": "k.py", "line": 3}, "parent": None},
        {"id": 1, "kind": "copy", "label": "A -> A_s", "location": {"file": "k.py", "line": 7}, "parent": 0},
    ),
    sources={"k.py": "# kernel\n" * 100},
    generated="__global__ void main() {}",
    assembly="EXIT ;",
    bundle="kernels/0123456789abcdef",
    metrics=(
        Metric("registers.per_thread", 40.0, "registers", Provenance("static", "tilelang_min", "0.1.0")),
        Metric("shared.transactions", 96.0, "transactions", SIMULATED, 1, "A_s", "store", None, "open rule"),
        Metric("occupancy.theoretical", 0.5, "ratio", DERIVED),
        Metric(
            "shared.transactions", 97.0, "transactions", Provenance("measured", "ncu", "2026.3"), 1, "A_s", "store", 2
        ),
    ),
    timing=Timing((10.0, 12.0, 11.0), "wall clock", 3, True),
    check=Check(False, math.inf, 0.25, 1e-2, 1e-3, "all"),
    notes=("one", "two"),
    seconds=1.5,
    suggestions=(Suggestion("A_s", "padding", "pad A_s by 8 elements", "padding 1 to 7: misaligned", 672, 0, 1024),),
)
HEADER = Run(
    name="gemm", description="d", workload_file="w.yaml", version="0.1.0", started="2026-01-02T03:04:05Z",
    finished=None, machine={"cpu": "x", "cores": 2}, cases=(),
)  # fmt: skip
CEILING = Ceiling("cpu", "flops_per_s", "vector.float32", 1e11, Provenance("measured", "numpy", "2", "product"))
MISSING = Unavailable("counters", "a100", "no NVIDIA driver", "install one")


def other(number: int) -> CaseResult:
    return replace(CASE, id=f"case{number}", hash=f"{number:016x}")


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(other(2), 1)
        store.add_case(CASE, 0)
        store.add_ceilings([replace(CEILING, value=1.0)])
        store.add_ceilings([CEILING])
        store.set_unavailable([MISSING, MISSING])
        unfinished = read_run(path)
        assert unfinished.finished is None
        store.finish("2026-01-02T03:05:00Z")
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]
    run = read_run(path)
    assert run.finished == "2026-01-02T03:05:00Z"
    assert replace(run, cases=(), ceilings=(), unavailable=(), finished=None) == HEADER
    assert (run.ceilings, run.unavailable) == ((CEILING,), (MISSING,))
    assert [case.id for case in run.cases] == [CASE.id, "case2"]
    check = run.cases[0].check
    assert check is not None
    assert math.isnan(check.max_abs_error)  # JSON has no infinity: the value is gone, not clamped
    assert replace(run.cases[0], check=None) == replace(CASE, check=None)


def test_a_store_of_the_first_version_is_read_and_continued(tmp_path: Path) -> None:
    path, case = tmp_path / "run.sqlite", replace(CASE, check=None)
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(case, 0)
    make_older(path, 1)
    old, new = replace(case, suggestions=()), replace(case, id="new", hash="2")
    assert read_run(path).cases == (old,)
    with RunStore.open(path) as store:
        store.add_case(new, 1)
    RunStore.open(path).close()
    assert read_run(path).cases == (old, new)


def make_older(path: Path, version: int) -> None:
    """Turn a store into one of version 1 or 2, which had one table of metrics."""
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE all_of_them AS SELECT * FROM metrics ORDER BY number;
            DROP VIEW metrics; DROP TABLE measurements; DROP TABLE series;
            CREATE TABLE metrics (
              case_number INTEGER NOT NULL REFERENCES cases ON DELETE CASCADE, metric TEXT NOT NULL, value REAL,
              unit TEXT NOT NULL, provenance INTEGER NOT NULL REFERENCES provenances, operation INTEGER, buffer TEXT,
              access TEXT, launch INTEGER, flag TEXT);
            CREATE INDEX metrics_by_case ON metrics (case_number, metric);
            INSERT INTO metrics SELECT
              case_number, metric, value, unit, provenance, operation, buffer, access, launch, flag FROM all_of_them;
            DROP TABLE all_of_them;
            ALTER TABLE cases DROP COLUMN checks;
            ALTER TABLE cases DROP COLUMN interleaved;
            ALTER TABLE cases DROP COLUMN sizes;
            """
        )
        if version == 1:
            connection.execute("ALTER TABLE cases DROP COLUMN suggestions")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def test_a_store_of_the_second_version_is_read_and_continued(tmp_path: Path) -> None:
    path, case = tmp_path / "run.sqlite", replace(CASE, check=None)
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(case, 0)
        store.add_case(replace(case, id="gone"), 1)
    make_older(path, 2)
    new = replace(case, id="new", hash="2")
    assert read_run(path).cases == (case, replace(case, id="gone"))
    with RunStore.open(path) as store:
        store.keep_only({(case.id, case.hash): 0})
        store.add_case(new, 1)
    assert read_run(path).cases == (case, new)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM series").fetchone() == (len(case.metrics),)
        assert connection.execute("SELECT COUNT(*) FROM measurements").fetchone() == (2 * len(case.metrics),)
    connection.close()


def test_many_launches_are_read_as_their_means(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    source = Provenance("measured", "ncu", "1", "replay")
    metrics = [Metric("time.ns", float(launch), "ns", source, launch=launch) for launch in range(100)]
    metrics += [Metric("l2.hit_rate", math.nan, "ratio", source, launch=0), CASE.metrics[0]]
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(replace(CASE, metrics=tuple(metrics)), 0)
    assert len(read_run(path, most_launches=None).cases[0].metrics) == len(metrics)
    time, rate, registers = read_run(path).cases[0].metrics
    assert (time.metric, time.value, time.launch) == ("time.ns", 49.5, None)
    assert time.provenance.detail == "replay; mean of 100 launches, 0 to 99"
    assert math.isnan(rate.value)
    assert registers == CASE.metrics[0]


def test_equal_texts_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        for number in range(5):
            store.add_case(other(number), number)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM texts").fetchone() == (3,)
        question = "SELECT COUNT(*), SUM(value) FROM metrics WHERE metric = 'shared.transactions' AND operation = 1"
        assert connection.execute(question).fetchone() == (10, 5 * (96.0 + 97.0))
    connection.close()


def test_a_result_is_replaced_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(replace(CASE, status="lost", metrics=()), 0)
        store.add_case(CASE, 0)
    (case,) = read_run(path).cases
    assert (case.status, len(case.metrics)) == ("ok", 4)


def test_resuming_keeps_what_is_still_wanted(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        for number in range(4):
            store.add_case(replace(other(number), status="lost" if number == 3 else "ok"), number)
    with RunStore.open(path) as store:
        keys = [(other(number).id, other(number).hash) for number in (2, 0, 3)]
        wanted = {**{key: place for place, key in enumerate(keys)}, ("case1", "changed"): 3}
        assert store.keep_only(wanted, again=frozenset({"lost"})) == {keys[0], keys[1]}
    run = read_run(path)
    assert [case.id for case in run.cases] == ["case2", "case0"]
    assert run.cases[0].metrics == CASE.metrics


def test_a_killed_writer_leaves_its_finished_cases(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    code = f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
        import os, signal
        from pathlib import Path
        from test_store import HEADER, other
        from tileprof.store.writer import RunStore
        store = RunStore.create(Path({str(path)!r}))
        store.write_header(HEADER)
        store.add_case(other(0), 0)
        store.add_case(other(1), 1)
        store._connection.execute("BEGIN IMMEDIATE")
        store._connection.execute("DELETE FROM cases")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    run = read_run(path)
    assert [case.id for case in run.cases] == ["case0", "case1"]
    assert run.finished is None


def test_a_full_disk_is_told_and_keeps_finished_cases(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    written: list[int] = []

    def fill(store: RunStore) -> None:
        for number in range(200):
            text = "".join(chr(33 + (number * 7 + i) % 90) for i in range(20_000))
            store.add_case(replace(other(number), generated=text), number)
            written.append(number)

    with RunStore.create(path, most_pages=40) as store:
        store.write_header(HEADER)
        with pytest.raises(StoreError, match="cannot grow") as caught:
            fill(store)
    assert caught.value.remedy == "free some space and continue with --resume, or choose another place with -o"
    assert 0 < len(written) < 200
    assert len(read_run(path).cases) == len(written)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run in"):
        read_run(tmp_path / "run.sqlite")
    (tmp_path / "text").write_text("not a database, but long enough to look like a file of its own" * 20)
    with pytest.raises(StoreError, match="is damaged, or no run of tileprof"):
        read_run(tmp_path / "text")
    other_database = tmp_path / "other.sqlite"
    with sqlite3.connect(other_database) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="is no run of tileprof"):
        read_run(other_database)
    newer = tmp_path / "newer.sqlite"
    RunStore.create(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="version 99 of the store"):
        read_run(newer)


def make_run(path: Path, *, finished: bool) -> None:
    with RunDirectory(path) as directory, RunStore.create(directory.store) as store:
        store.write_header(replace(HEADER, finished="2026-01-02T03:05:00Z" if finished else None))
        (directory.temporary / "array.npy").write_text("x")
        (directory.kernels / "bundle").mkdir()


def test_a_directory_is_left_clean(tmp_path: Path) -> None:
    make_run(tmp_path / "run", finished=True)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["kernels", "run.sqlite"]


def test_a_finished_run_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "run"
    make_run(path, finished=True)
    (path / "mine.txt").write_text("keep")
    for resume in (False, True):
        with pytest.raises(StoreError, match="holds a finished run") as caught:
            RunDirectory(path, resume=resume)
        assert "--force" in str(caught.value)
    with RunDirectory(path, force=True) as directory:
        assert not directory.resumed
        assert not directory.store.exists()
        assert not (path / "kernels" / "bundle").exists()
    assert (path / "mine.txt").read_text() == "keep"


def test_an_unfinished_run_needs_resume_or_force(tmp_path: Path) -> None:
    path = tmp_path / "run"
    make_run(path, finished=False)
    with pytest.raises(StoreError, match=r"holds an unfinished run.*\n.*--resume"):
        RunDirectory(path)
    with RunDirectory(path, resume=True) as directory:
        assert directory.resumed
        assert directory.store.exists()


def test_other_peoples_directories_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    for force in (False, True):
        with pytest.raises(StoreError, match=r"holds other files \(thesis.tex\)"):
            RunDirectory(tmp_path, force=force)
    assert [p.name for p in tmp_path.iterdir() if p.name != ".lock"] == ["thesis.tex"]
    with pytest.raises(StoreError, match="no run to resume"):
        RunDirectory(tmp_path / "new", resume=True)


def test_an_unwritable_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot write to .*file/run.*\n.*-o"):
        RunDirectory(tmp_path / "file" / "run")
    with pytest.raises(StoreError, match="cannot write to /proc"):
        RunDirectory(Path("/proc/tileprof"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot write to"):
        RunDirectory(tmp_path / "run")


def test_two_writers_exclude_each_other(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run"):
        with pytest.raises(StoreError, match="another tileprof is writing"):
            RunDirectory(tmp_path / "run", force=True)


def test_a_large_profile_stays_small(tmp_path: Path) -> None:
    """`benchmarks/store.py` measures ten times as much: 26 MB for 10,000 launches of 100 metrics."""
    path = tmp_path / "run.sqlite"
    source = Provenance("measured", "ncu", "1", "replay")
    metrics = [
        Metric(f"m{i}", 1e9 * math.sin(launch * i + 1), "ns", source, launch=launch)
        for launch in range(1000)
        for i in range(100)
    ]
    with RunStore.create(path) as store:
        store.write_header(HEADER)
        store.add_case(replace(CASE, metrics=tuple(metrics)), 0)
    assert path.stat().st_size < 15e6 / 4
    assert len(read_run(path).cases[0].metrics) == 100
