"""Foreign work: the kernels of a profile become operations of one case, and what adds up is summed."""

from __future__ import annotations

from typing import Any

import pytest

from tileprof.analyse.foreign_work import work_of
from tileprof.collect import ncu_foreign
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

HOW = Provenance("measured", "ncu", "2026.3", "kernel replay")


def row(name: str, value: float, **place: Any) -> Metric:
    made = make(name, value, HOW, **place)
    assert made is not None
    return made


def launch(index: int, kernel: str, time_ns: float, lines: tuple[SourceValue, ...] = ()) -> ForeignLaunch:
    metrics = (row("time.profiled_ns", time_ns, launch=index), row("registers.per_thread", 32.0, launch=index))
    return ForeignLaunch(index, kernel, "cuda:sm_90", metrics=metrics, grid=(4, 1, 1), block=(128, 1, 1), lines=lines)


def test_one_kernel_is_the_case_and_its_lines_are_operations() -> None:
    lines = (SourceValue("k.py", 7, "LDS R1", {"shared.transactions": 8.0}),)
    work = work_of(
        ForeignProfile("ncu report", "ncu", "1", (launch(0, "mm", 500.0, lines),), sources={"k.py": "x\n" * 9}),
        "triton",
    )
    assert [(o["id"], o["kind"], o["parent"]) for o in work.operations] == [
        (0, "kernel", None),
        (1, "kernel", 0),
        (2, "line", 1),
    ]
    assert work.operations[0]["label"] == "triton"
    assert work.operations[2]["location"]["line"] == 7
    figures = {(m.metric, m.operation): m.value for m in work.metrics}
    assert figures["time.profiled_ns", None] == 500.0
    assert figures["shared.transactions", 2] == 8.0
    assert work.sources == {"k.py": "x\n" * 9}


def test_several_kernels_are_operations_and_times_add_up() -> None:
    profile = ForeignProfile(
        "ncu report", "ncu", "1", (launch(0, "a", 500.0), launch(1, "b", 300.0), launch(2, "a", 200.0))
    )
    work = work_of(profile, "op")
    assert [o["label"] for o in work.operations[1:]] == [
        "a (grid 4x1x1, block 128x1x1)",
        "b (grid 4x1x1, block 128x1x1)",
    ]
    (total,) = [m for m in work.metrics if m.metric == "time.profiled_ns" and m.operation is None]
    assert total.value == 1000.0
    assert total.provenance.detail == "sum over kernels; kernel replay"
    assert not [
        m for m in work.metrics if m.metric == "registers.per_thread" and m.operation is None
    ]  # means nothing in sum
    assert "2 different kernels, 3 launches; figures of the case are their sums" in work.notes


def test_a_real_report(ncu_sample: Any) -> None:
    profile = ncu_foreign.read(ncu_sample("h200_bank_conflicts_2025.3"))
    work = work_of(profile, "conflicts")
    whole = sum(m.value for launch in profile.launches for m in launch.metrics if m.metric == "shared.transactions")
    (total,) = [m for m in work.metrics if m.metric == "shared.transactions" and m.operation is None]
    assert total.value == pytest.approx(whole)
    ids = {operation["id"] for operation in work.operations}
    assert len(ids) == len(work.operations)
    assert {m.operation for m in work.metrics} - {None} <= ids
