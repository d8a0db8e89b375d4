from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tileprof.analyse.agreement import (
    AGREE,
    DISAGREE,
    QUANTITIES,
    UNJUDGED,
    Comparison,
    comparisons,
    rounded_up,
    within,
)
from tileprof.analyse.diagnosis import diagnose_case
from tileprof.analyse.join import MISREAD
from tileprof.metrics import lookup
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Metric, Provenance, Run

RUN = Path(__file__).parents[3] / "reports" / "h200-quickstart" / "run.sqlite"
SIMULATED = Provenance("simulated", "tilelang_min", "")
STATIC = Provenance("static", "tilelang_min", "")
MEASURED = Provenance("measured", "ncu", "")


@pytest.fixture(scope="module")
def recorded() -> Run:
    return read_run(RUN)


def case(target: str, *metrics: Metric) -> CaseResult:
    location = {"file": "k.py", "line": 4, "column": 0, "text": "T.copy(a, b)"}
    operations = tuple(
        {"id": i, "kind": "copy", "label": f"copy {i}", "location": location, "parent": None, "reads": [], "writes": []}
        for i in range(3)
    )
    return CaseResult("k@t", "h", "k", "t", target, {}, {}, {}, "ok", operations=operations, metrics=metrics,
                      metadata={"target": target})  # fmt: skip


def row(metric: str, value: float, source: Provenance, **more: object) -> Metric:
    return Metric(metric, value, lookup(metric).unit, source, **more)  # type: ignore[arg-type]


def only(result: CaseResult) -> Comparison:
    (found,) = comparisons(result)
    return found


def test_an_h200_agrees_with_simulator_and_compiler(recorded: Run) -> None:
    found = [one for each in recorded.cases for one in comparisons(each)]
    assert len(found) == 180
    assert {one.verdict for one in found} == {AGREE}
    compared = {one.metric for one in found}
    assert compared >= {
        "shared.transactions",
        "global.sectors",
        "registers.per_thread",
        "shared.static_bytes",
        "launch.blocks",
    }


def test_the_three_stand_side_by_side() -> None:
    one = only(
        case(
            "cuda:sm_90a",
            row("shared.transactions", 60, SIMULATED, operation=1, buffer="A", access="load"),
            row("shared.transactions", 40, SIMULATED, operation=1, buffer="B", access="load"),
            row("shared.transactions", 130, MEASURED, operation=1, access="load", launch=0),
            row("shared.transactions", 130, MEASURED, operation=1, access="load", launch=1),
        )
    )
    assert (one.operation, one.label, one.source) == (1, "copy 1", "simulated")
    assert (one.expected.value, one.measured.value) == (100, 130), "all buffers together; the median of launches"
    assert (one.difference, one.relative, one.verdict) == (30, pytest.approx(0.3), DISAGREE)


@pytest.mark.parametrize(("measured", "verdict"), [(1000, AGREE), (1005, AGREE), (1006, DISAGREE), (900, DISAGREE)])
def test_the_tolerance_of_counts(measured: float, verdict: str) -> None:
    one = only(
        case(
            "cuda:sm_90a",
            row("global.sectors", 1000, SIMULATED, operation=2, access="load"),
            row("global.sectors", measured, MEASURED, operation=2, access="load"),
        )
    )
    assert one.verdict == verdict


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("open", None), "rule of this access is open"),
        ((None, MISREAD), "known to misread"),
        ((None, "sum differs"), "flagged"),
    ],
)
def test_what_is_only_a_hypothesis_is_not_judged(flags: tuple[str | None, str | None], reason: str) -> None:
    result = case(
        "cuda:sm_90a",
        row("shared.transactions", 1000, SIMULATED, operation=2, access="cp_async", flag=flags[0]),
        row("shared.transactions", 400, MEASURED, operation=2, access="cp_async", flag=flags[1]),
    )
    one = only(result)
    assert (one.verdict, one.difference) == (UNJUDGED, -600)
    assert reason in one.reason
    assert not [f for f in diagnose_case(result, ()) if f.rule == "disagreement"]


def test_operations_that_one_side_does_not_know_are_not_compared() -> None:
    assert comparisons(case("cuda:sm_90a", row("global.sectors", 5, SIMULATED, operation=1))) == []
    assert comparisons(case("cuda:sm_90a", row("global.sectors", 5, MEASURED, operation=1))) == []


def test_another_binary_is_a_finding_of_its_own() -> None:
    result = case(
        "cuda:sm_90a",
        row("registers.per_thread", 32, STATIC),
        row("registers.per_thread", 40, MEASURED),
        row("launch.blocks", 64, STATIC),
        row("launch.blocks", 128, MEASURED),
    )
    (finding,) = [f for f in diagnose_case(result, ()) if f.rule == "disagreement"]
    assert finding.title == "What was profiled is not what was compiled"
    assert finding.evidence == (
        "registers.per_thread: 32 static, 40 measured (+25.0%)",
        "launch.blocks: 64 static, 128 measured (+100.0%)",
    )
    assert (finding.gain, finding.operation) == (None, None)


def test_a_wrong_rule_names_its_operation() -> None:
    result = case(
        "cuda:sm_90a",
        row("shared.transactions", 0, SIMULATED, operation=1, access="load"),
        row("shared.transactions", 8, MEASURED, operation=1, access="load"),
    )
    (finding,) = [f for f in diagnose_case(result, ()) if f.rule == "disagreement"]
    assert (finding.operation, finding.line) == (1, 4)
    assert finding.title == "Simulated and measured counts of copy 1 differ"
    assert finding.evidence == ("shared.transactions: 0 simulated, 8 measured",), "no share of zero"


def test_amds_profilers_show_what_is_allocated() -> None:
    """A thread trace's kernel on an MI300X: 12 VGPRs in the code object, 16 shown; 41 SGPRs there, 112 shown."""
    result = case(
        "hip:gfx942",
        row("registers.vgpr", 12, STATIC), row("registers.vgpr", 16, MEASURED),
        row("registers.sgpr", 41, STATIC), row("registers.sgpr", 112, MEASURED),
        row("shared.static_bytes", 600, STATIC), row("shared.static_bytes", 1024, MEASURED),
    )  # fmt: skip
    assert {one.metric: one.verdict for one in comparisons(result)} == {
        "registers.vgpr": AGREE,
        "shared.static_bytes": AGREE,
    }
    other = dataclasses.replace(
        result, metrics=(row("registers.vgpr", 12, STATIC), row("registers.vgpr", 24, MEASURED))
    )
    assert only(other).verdict == DISAGREE


def test_lds_conflicts_of_a_whole_kernel_on_amd() -> None:
    result = case(
        "hip:gfx950",
        row("shared.conflicts", 60, SIMULATED, operation=1, buffer="A", access="store"),
        row("shared.conflicts", 60, MEASURED),
    )
    assert only(result).verdict == AGREE


def test_tolerances() -> None:
    assert within(0.1)(100, 110)
    assert not within(0.1)(100, 111)
    assert within(0.0, 5)(0, 5)
    assert rounded_up(8)(12, 16)
    assert rounded_up(8)(12, 12)
    assert not rounded_up(8)(12, 24)


def test_every_quantity_is_a_metric_and_says_why() -> None:
    for quantity in QUANTITIES:
        assert lookup(quantity.metric)
        assert quantity.why
