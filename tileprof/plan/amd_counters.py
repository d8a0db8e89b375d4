"""Which counters give the asked metrics on an AMD GPU, and in how many passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.metrics import amd
from tileprof.metrics.formula import needed
from tileprof.plan.passes import PassPlan, plan_passes

BASE = (
    "launch.warps",
    "clock.hz",
    "shared.requests",
    "shared.transactions",
    "shared.conflicts",
    "executed.flop_vector",
    "executed.flop_matrix",
    "fabric.read_bytes",
    "fabric.write_bytes",
    "l2.hit_rate",
    "l2.read_bytes",
    "l2.write_bytes",
    "busy.vector",
    "busy.matrix",
    "wave.cycles",
    "wave.dependency_cycles",
    "wave.issue_cycles",
)
"""Metrics that are collected where the workload names none: enough for a roofline, LDS conflicts and why waves wait."""


@dataclass(frozen=True, slots=True)
class CounterPlan:
    """Passes that collect the metrics, and the metrics for which the architecture has no formula."""

    passes: PassPlan
    without: tuple[str, ...]

    def describe(self) -> str:
        """``4 passes, 31 counters``."""
        counters = {name for one in self.passes.passes for name in one}
        count = len(self.passes.passes)
        return f"{count} pass{'es' if count != 1 else ''}, {len(counters)} counters"


def counter_plan(arch: str, metrics: Iterable[str] = (), raw: Iterable[str] = ()) -> CounterPlan:
    """The plan for an architecture (``gfx942``): ``metrics`` by canonical name, :data:`BASE` if none; ``raw`` counters besides.

    Counters of one formula stay in one pass where they fit.  Metrics that no counter of this tool gives, static ones for
    example, are named in ``without``.
    """
    wanted = tuple(dict.fromkeys(metrics)) or BASE
    groups: list[tuple[str, ...]] = []
    without: list[str] = []
    for metric in wanted:
        counters, lacking = needed(amd.FORMULAS, [metric], arch)
        without += lacking
        if counters:
            groups.append(counters)
    groups += [(name,) for name in raw]
    return CounterPlan(plan_passes(groups), tuple(without))
