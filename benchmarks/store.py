"""How fast the store takes in a large profile, how large it gets, and how fast a report asks it.

``python benchmarks/store.py``: 10,000 launches of 100 metrics each, in cases of a given number of launches.  Goals: 10 s, 150 MB,
0.3 s a question.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from pathlib import Path

from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Metric, Provenance, Run
from tileprof.store.writer import RunStore

LAUNCHES, METRICS = 10_000, 100
QUESTIONS = {
    "time of every launch": "SELECT launch, value FROM metrics WHERE case_number = 1 AND metric = 'metric.7'",
    "mean of every metric": (
        "SELECT metric, AVG(value), MIN(value), MAX(value) FROM series JOIN (SELECT series, AVG(value) AS value FROM measurements "
        "WHERE case_number = 1 GROUP BY series) USING (series) GROUP BY metric"
    ),
    "slowest ten launches": (
        "SELECT case_number, launch, value FROM metrics WHERE metric = 'metric.7' ORDER BY value DESC LIMIT 10"
    ),
}


def case(number: int, launches: int, chance: random.Random) -> CaseResult:
    """A case with random figures."""
    source = Provenance("measured", "ncu", "2026.3", "kernel replay, 38 passes")
    names = [f"metric.{i}" for i in range(METRICS)]
    metrics = tuple(
        Metric(name, chance.random() * 1e9, "ns", source, launch=launch) for launch in range(launches) for name in names
    )
    return CaseResult(
        id=f"case{number}", hash=f"{number:016x}", kernel="k", target_name="t", target="cuda:sm_90a", args={}, shape={}, tiles={},
        status="ok", metrics=metrics,
    )  # fmt: skip


def measure(per_case: int, folder: Path) -> None:
    """One store with cases of ``per_case`` launches each; prints its figures."""
    path = folder / f"run-{per_case}.sqlite"
    chance = random.Random(0)
    header = Run("b", "", "b.yaml", "0", "2026-01-01T00:00:00Z", None, {}, ())
    spent = 0.0
    with RunStore.create(path) as store:
        store.write_header(header)
        for number in range(LAUNCHES // per_case):
            made = case(number, per_case, chance)
            start = time.perf_counter()
            store.add_case(made, number)
            spent += time.perf_counter() - start
        start = time.perf_counter()
    spent += time.perf_counter() - start
    print(f"{LAUNCHES // per_case} cases of {per_case} launches: {spent:.2f} s, {path.stat().st_size / 1e6:.0f} MB")
    connection = sqlite3.connect(path)
    for name, question in QUESTIONS.items():
        start = time.perf_counter()
        rows = len(connection.execute(question).fetchall())
        print(f"  {name}: {time.perf_counter() - start:.3f} s ({rows} rows)")
    connection.close()
    start = time.perf_counter()
    run = read_run(path)
    print(
        f"  reading the run for a report: {time.perf_counter() - start:.2f} s ({sum(len(c.metrics) for c in run.cases)} metrics)"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-case", type=int, nargs="*", default=[LAUNCHES, 1000, 100])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for per_case in arguments.per_case:
            measure(per_case, Path(folder))


if __name__ == "__main__":
    main()
