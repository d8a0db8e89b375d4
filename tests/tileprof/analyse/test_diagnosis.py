"""Each rule has a kernel on which it fires and one on which it must not; recorded gains beside promised ones."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run

sys.path.insert(0, str(Path(__file__).parent))

import diagnosis_kernels as kernels

import tilelang_min as tilelang
from tileprof.analyse.bounds import facts_of
from tileprof.analyse.diagnosis import RULES, TITLES, diagnose, diagnose_case
from tileprof.analyse.findings import Finding, grouped
from tileprof.store.reader import read_run
from tileprof.store.records import FAILED_STATUSES, CaseResult, Run

ROOT = Path(__file__).resolve().parents[3]


@cache
def recorded() -> Run:
    """The quickstart's kernels on an H200: times, counters and stalls of hardware."""
    return read_run(ROOT / "reports/h200-quickstart/run.sqlite")


def measured(name: str) -> tuple[CaseResult, Any]:
    (case,) = [c for c in recorded().cases if c.id.startswith(name)]
    return case, recorded().ceilings


def wrong(name: str) -> tuple[CaseResult, Any]:
    """A measured kernel whose profiler counted twice the shared transactions."""
    case, ceilings = measured(name)
    rows = [
        dataclasses.replace(m, value=2 * m.value)
        if m.metric == "shared.transactions" and m.provenance.kind == "measured"
        else m
        for m in case.metrics
    ]
    return dataclasses.replace(case, metrics=tuple(rows)), ceilings


@cache
def compiled(name: str, **values: Any) -> tuple[CaseResult, Any]:
    """A kernel compiled and simulated for an A100."""
    run = tilelang.profile(getattr(kernels, name)(**values)).run
    return dataclasses.replace(run.cases[0], tiles=values), run.ceilings


def findings(case: CaseResult, ceilings: Any) -> dict[str, Finding]:
    return {finding.rule: finding for finding in reversed(diagnose_case(case, ceilings))}


TILED = "tiled[float16,M=1024,N=1024,K=1024,block_K=64,num_stages="
SINGLE = "M=1024,N=1024,K=1024,block_K=32,num_stages="
PADDED = "padded[float16,M=1024,N=1024,K=1024,block_K=64,num_stages="

CASES: dict[str, tuple[Any, Any]] = {
    "bank-conflicts": (lambda: measured(f"{TILED}1"), lambda: measured(f"{PADDED}1")),
    "uncoalesced": (lambda: compiled("transpose"), lambda: compiled("scale")),
    "spills": (lambda: compiled("two_products"), lambda: compiled("product")),
    "memory-bound": (lambda: compiled("scale"), lambda: compiled("product", K=2048)),
    "low-occupancy": (lambda: compiled("product", num_stages=5, block_K=64), lambda: compiled("scale")),
    "few-blocks": (lambda: compiled("product", M=256, N=256), lambda: compiled("scale")),
    "exposed-latency": (lambda: measured("naive[float32"), lambda: measured(f"{TILED}2")),
    "matrix-unused": (
        lambda: compiled("product", dtype="float32", num_stages=1, block=64),
        lambda: compiled("product"),
    ),
    "conversions": (lambda: measured("naive[float16"), lambda: measured("naive[float32")),
    "pipeline-shallow": (lambda: measured(f"{PADDED}1"), lambda: measured(f"{PADDED}2")),
    "disagreement": (lambda: wrong(f"{TILED}1"), lambda: measured(f"{TILED}1")),
    "pipeline-deep": (lambda: compiled("product", num_stages=5, block_K=64), lambda: compiled("product")),
}
"""By rule: a kernel with the fault, and one without."""


def test_every_rule_is_tested_titled_and_documented() -> None:
    text = (ROOT / "docs/diagnosis.md").read_text()
    assert set(CASES) == set(RULES) == set(TITLES)
    assert all(f"## {rule}\n" in text for rule in RULES)


@pytest.mark.parametrize("rule", CASES)
def test_fires_on_its_fault(rule: str) -> None:
    found = findings(*CASES[rule][0]())
    assert rule in found, f"found {list(found)}"
    finding = found[rule]
    assert finding.predicted == (CASES[rule][0]()[0].timing is None)
    assert finding.evidence
    assert all(finding.evidence)
    assert finding.advice
    assert finding.gain is None or 0 <= finding.gain < 1
    assert finding.file.endswith(".py")
    assert finding.line is not None


@pytest.mark.parametrize("rule", CASES)
def test_is_silent_on_a_sound_kernel(rule: str) -> None:
    assert rule not in findings(*CASES[rule][1]())


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("bank-conflicts", f"tiled[float32,{SINGLE}1", f"padded[float32,{SINGLE}1"),
        ("bank-conflicts", f"{TILED}1", f"{PADDED}1"),
        ("bank-conflicts", f"{TILED}2", f"{PADDED}2"),
        ("pipeline-shallow", f"{TILED}1", f"{TILED}2"),
        ("pipeline-shallow", f"{PADDED}1", f"{PADDED}2"),
    ],
)  # fmt: skip
def test_promised_gains_are_near_what_an_h200_gained(rule: str, before: str, after: str) -> None:
    (slow, ceilings), (fast, _) = measured(before), measured(after)
    assert slow.timing is not None
    assert fast.timing is not None
    real = 1 - fast.timing.median_ns / slow.timing.median_ns
    promised = findings(slow, ceilings)[rule].gain
    assert promised == pytest.approx(real, abs=0.13)


def test_the_worst_comes_first_and_names_the_compilers_own_suggestion() -> None:
    case, ceilings = measured(f"{TILED}1")
    first = diagnose_case(case, ceilings)[0]
    assert first.rule == "bank-conflicts"
    assert first.line == 43
    assert first.evidence[0] == "8.39 M transactions where 1.05 M would do, 8.0× the ideal (measured)"
    assert any(suggestion.text in first.advice for suggestion in case.suggestions)
    gains = [finding.gain for finding in diagnose(recorded()) if finding.gain is not None]
    assert gains == sorted(gains, reverse=True)


def test_bounds_are_below_the_measured_time() -> None:
    """A bound that a measurement beats would be no bound."""
    for case in recorded().cases:
        facts = facts_of(case, recorded().ceilings)
        assert facts.measured
        assert facts.bound is not None
        assert facts.time_ns is not None
        assert facts.bound < facts.time_ns


@pytest.mark.parametrize("change", [{"target": "cuda:sm_1"}, {"metadata": None}, {"metadata": {}}])
def test_cases_without_facts_have_no_findings(change: dict[str, Any]) -> None:
    assert diagnose_case(make_case("matmul_tiled", "float16", "sm80", **change), make_run().ceilings) == []


def test_a_case_that_failed_is_not_advised_on_but_one_that_was_too_slow_is() -> None:
    case, ceilings = measured(f"{TILED}1")
    assert diagnose_case(case, ceilings)
    for status in FAILED_STATUSES:
        failed = dataclasses.replace(case, status=status)
        assert bool(diagnose_case(failed, ceilings)) is (status == "timeout"), status


def test_findings_of_a_rule_target_and_line_are_one_group_that_counts_cases() -> None:
    first = Finding("spills", "a@x", "x", "title", ("e",), "advice", "sure", 0.3, "basis", file="k.py", line=3)
    same = [dataclasses.replace(first, case=case) for case in ("b@x", "b@x", "c@x")]
    others = [dataclasses.replace(first, target_name="y"), dataclasses.replace(first, line=4)]
    assert grouped([first, *others, *same]) == [(first, 3), (others[0], 1), (others[1], 1)]


@pytest.mark.parametrize("change", [{"operations": ()}, {"target": "cpu"}])
def test_odd_cases_are_no_errors(change: dict[str, Any]) -> None:
    for finding in diagnose_case(make_case("matmul_tiled", "float16", "sm80", **change), make_run().ceilings):
        assert finding.rule in RULES


def test_at_the_roof_without_waste_no_gain_is_promised() -> None:
    """A scaled copy moves what it must: how much a fusion would spare is not known."""
    case, ceilings = measured("scale_add_relu[float32")
    bound = [finding for finding in diagnose_case(case, ceilings) if finding.rule == "memory-bound"]
    assert all(finding.gain is None or "more than once" in finding.basis for finding in bound)
    case, ceilings = compiled("scale")
    assert findings(case, ceilings)["memory-bound"].gain is None


@cache
def quickstart() -> Any:
    """The quickstart's matrix products."""
    spec: Any = importlib.util.spec_from_file_location("workload_matmul", ROOT / "workloads" / "kernels" / "matmul.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_matrix_units_that_are_no_faster_are_no_finding() -> None:
    """CDNA 3 does as much float32 on vectors as on matrix units (AMD's data sheet of the MI300X)."""
    run = tilelang.profile(quickstart().naive.for_target("hip:gfx942")(256, 256, 256)).run
    case, rates = run.cases[0], tilelang.targets.resolve("hip:gfx942").devices[0].flops_per_clock_per_unit
    assert rates["matrix.float32"] == rates["vector.float32"]
    assert (case.metadata or {})["flops"]["float32"] / (case.metadata or {})["bytes_min"] >= 32
    assert "matrix-unused" not in findings(case, run.ceilings)


def test_copies_into_padded_rows_get_their_own_advice() -> None:
    """Measured on an H200 too: cp.async asks for more sectors where rows begin within a line."""
    case, ceilings = measured(f"{PADDED}2")
    found = [f for f in diagnose_case(case, ceilings) if f.rule == "uncoalesced"]
    assert all("asynchronous copies" in finding.advice for finding in found)
    assert "go through a shared tile" in findings(*compiled("transpose"))["uncoalesced"].advice
    kernel = quickstart().padded.for_target("cuda:sm_80")(256, 256, 256, dtype="float32")
    padded = tilelang.profile(kernel).run
    (advice,) = {f.advice for f in diagnose_case(padded.cases[0], padded.ceilings) if f.rule == "uncoalesced"}
    assert "leave the padding away" in advice
