"""Cases wait for a profiler until there are several or none is to come, and each is stored once, whatever became of it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tileprof.execute.sweep as sweep_module
from tileprof.execute.profiled import MOST_CASES
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.execute.sweep import Executor, Sweep
from tileprof.plan.machine import Gpu
from tileprof.plan.plan import Plan, TargetPlan
from tileprof.workload.records import Case, KernelEntry, TargetEntry

TARGET = TargetEntry("h200", "cuda:sm_90a", "cuda", ("ncu",))
GPU = Gpu("nvidia", "NVIDIA H200", "9.0", "580.1")


class Launching:
    """A sweep whose launches and profiler only note what they are asked."""

    def __init__(self, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[list[str]] = []
        phase = SimpleNamespace(profile=lambda cases: self.batches.append([c.builder.case.id for c in cases]))
        monkeypatch.setattr(sweep_module, "NcuPhase", lambda *_: phase)
        monkeypatch.setattr(Sweep, "_ask_quietly", lambda *_: [])
        monkeypatch.setattr(Sweep, "_gpu", lambda self, plan: nullcontext(True))
        cases = [(n, Case(f"k{n}", f"{n:016}", KernelEntry("k"), TARGET, {}, {}, {})) for n in range(count)]
        plan = Plan({"h200": TargetPlan(TARGET, launches=True, timed=True, counters=("ncu",), gpu=GPU)}, ())
        timing = SimpleNamespace(graph="auto")
        workload: Any = SimpleNamespace(timing=timing, seed=0, timeout_s=9.0, raw_metrics={})
        monkeypatch.setattr(sweep_module, "asdict", lambda policy: {})
        directory: Any = SimpleNamespace(path=folder, temporary=folder)
        progress: Any = SimpleNamespace(stage=lambda *_: None, say=lambda _: None)
        store: Any = None
        self.sweep = Sweep(workload, cases, plan, directory, store, progress, Executor(), Paths())

    def launch(self, builders: list[CaseBuilder]) -> list[str]:
        """Launch these in order; the cases that are then finished."""
        lane: Any = None
        for builder in builders:
            self.sweep._launch(lane, builder)
        finished = []
        while not self.sweep._outcomes.empty():
            outcome = self.sweep._outcomes.get()
            assert isinstance(outcome, CaseBuilder)
            finished.append(outcome.case.id)
        return finished


def test_cases_are_profiled_in_batches_and_the_rest_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launching = Launching(MOST_CASES + 3, tmp_path, monkeypatch)
    builders = launching.sweep.builders
    assert launching.launch(builders[: MOST_CASES - 1]) == []
    assert len(launching.launch(builders[MOST_CASES - 1 : MOST_CASES])) == MOST_CASES
    finished = launching.launch(builders[MOST_CASES:])
    assert [len(batch) for batch in launching.batches] == [MOST_CASES, 3]
    assert finished == [builder.case.id for builder in builders[MOST_CASES:]]


def test_a_last_case_that_fails_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launching = Launching(3, tmp_path, monkeypatch)
    builders = launching.sweep.builders
    builders[2].fail("compile_error", "no")
    assert launching.launch(builders[:2]) == []
    assert sorted(launching.launch(builders[2:])) == ["k0", "k1", "k2"]
    assert launching.batches == [["k0", "k1"]]


def test_where_all_fail_nothing_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launching = Launching(2, tmp_path, monkeypatch)
    for builder in launching.sweep.builders:
        builder.fail("compile_error", "no")
    assert len(launching.launch(launching.sweep.builders)) == 2
    assert launching.batches == []


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launching = Launching(4, tmp_path, monkeypatch)
    builders = launching.sweep.builders
    launching.launch(builders[:1])
    monkeypatch.setattr(sweep_module, "LONGEST_WAIT_S", -1.0)
    assert launching.launch(builders[1:2]) == ["k0", "k1"]
    assert launching.batches == [["k0", "k1"]]
