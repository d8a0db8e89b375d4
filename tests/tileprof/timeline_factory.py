"""Clock reads of a block as an instrumented build sends them, for tests of the timeline."""

from __future__ import annotations

import dataclasses
from typing import Any

from run_factory import make_case, make_run

from tileprof.collect.cycles import timeline_metrics
from tileprof.store.records import CaseResult, Run

COPY, GEMM, STORE = 3, 5, 6


def event(operation: int, phase: str, worker: int, begin: float, length: float) -> dict[str, Any]:
    return {"operation": operation, "phase": phase, "worker": worker, "begin": begin, "end": begin + length}


def ring() -> list[dict[str, Any]]:
    """A producer of four warps and eight that consume, as a ring on Hopper has them, with a long loop between."""
    events = []
    for k in range(8):
        for worker in range(4):
            events += [event(COPY, "wait", worker, 1000 * k, 900), event(COPY, "issue", worker, 1000 * k + 900, 30)]
        for worker in range(4, 12):
            events += [
                event(GEMM, "wait", worker, 1000 * k + 200, 100),
                event(GEMM, "run", worker, 1000 * k + 300, 850),
            ]
    return events + [event(STORE, "run", worker, 70_000, 2_500) for worker in range(4, 12)]


def clocked(events: list[dict[str, Any]], worker: str = "warp") -> CaseResult:
    case = make_case("matmul_tiled", "float16", "sm80")
    metrics = (*case.metrics, *timeline_metrics({"events": events, "cycles": {"worker": worker}}))
    return dataclasses.replace(case, metrics=metrics)


def run_of(*cases: CaseResult) -> Run:
    return make_run(cases=cases)
