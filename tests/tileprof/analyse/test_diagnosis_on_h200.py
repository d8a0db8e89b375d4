"""What the rules promise of kernels that ran on an H200, beside what their advice brought there.

The recorded run has the kernels with their faults and after the change (``benchmarks/h200_diagnosis.py``): a rule that is changed
is held against them anew.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import statistics
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tileprof.analyse.agreement import AGREE, DISAGREE, UNJUDGED, comparisons
from tileprof.analyse.bounds import facts_of
from tileprof.analyse.diagnosis import RULES, diagnose, diagnose_case
from tileprof.store.reader import read_run
from tileprof.store.records import Run

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))
benchmark: Any = importlib.import_module("h200_diagnosis")

TOLERANCE = 0.15
"""Largest difference of a promised gain from the real one, of the time before the change."""

NO_PROMISE = {"fusion"}
"""What a fusion spares, nobody has counted."""

MISSED = {"other-conversions"}
"""bfloat16 becomes float32 by a shift, which no listing calls a conversion."""

NOTHING_TO_GAIN = (
    "conflicts-copies",
    "occupancy-registers",
    "occupancy-tile",
    "occupancy-tail",
    "latency-small",
    "conversions-tile",
)
"""Changes that an earlier version of the rules advised and that brought nothing: today's are silent."""


@cache
def recorded() -> Run:
    return read_run(ROOT / "reports/h200-diagnosis/run.sqlite")


@cache
def outcomes() -> dict[str, dict[str, Any]]:
    rows = json.loads((ROOT / "benchmarks/results/2026-11-30-h200-diagnosis.json").read_text())["pairs"]
    return {row["pair"]: benchmark.outcome(benchmark.PAIR[row["pair"]], recorded(), row) for row in rows}


def test_every_rule_with_a_change_was_measured() -> None:
    assert {one["rule"] for one in outcomes().values() if one["advised"] and one["fires"]} == set(RULES) - {
        "disagreement"
    }
    assert set(outcomes()) == set(benchmark.PAIR)


@pytest.mark.parametrize("name", [name for name, pair in benchmark.PAIR.items() if pair.advised and name not in MISSED])
def test_promised_and_real_gain(name: str) -> None:
    one = outcomes()[name]
    assert one["fires"]
    if name in NO_PROMISE:
        assert one["promised"] is None
        assert one["real"] > 0.3
        return
    assert one["promised"] == pytest.approx(one["real"], abs=TOLERANCE)


@pytest.mark.parametrize("name", NOTHING_TO_GAIN)
def test_advice_that_brought_nothing_is_not_given(name: str) -> None:
    one = outcomes()[name]
    assert not one["fires"]
    assert one["real"] < 0.02


def test_results_were_right_on_the_gpu() -> None:
    rows = json.loads((ROOT / "benchmarks/results/2026-11-30-h200-diagnosis.json").read_text())["pairs"]
    assert all(error <= benchmark.TOLERANCE for row in rows for error in row["errors"].values())


def test_the_change_that_a_finding_names_is_the_one_that_was_measured() -> None:
    """The words of the advice, pair by pair: another text would be another promise."""
    said = {
        "conflicts-float16": "tilelang.layout.make_swizzled_layout(A_shared)",
        "padding": "leave the padding away",
        "uncoalesced": "go through a shared tile",
        "spills-threads": "raise threads above 64",
        "spills-blocks": "lower the block sizes",
        "fusion": "fuse this kernel with its neighbours",
        "read-twice": "read A once",
        "order": "T.use_swizzle",
        "occupancy-threads": "threads=256",
        "deep": "num_stages=3",
        "few-split": "split-K",
        "tail-tiles": "another tile size",
        "tail-alone": "stream-K",
        "latency-stage": "one more stage",
        "latency-pipeline": "T.Pipelined with num_stages of 2",
        "matrix-gemm": "write the product as T.gemm",
        "matrix-tf32": 'precision="tf32"',
        "conversions-tensor": "keep the tile, or the tensor, in the type in which it is used",
        "shallow": "num_stages=2",
        "shallow-ring-4": "num_stages=4",
    }
    for name, words in said.items():
        pair = benchmark.PAIR[name]
        case = next(case for case in recorded().cases if case.id == pair.before[0].case)
        advice = [f.advice for f in diagnose_case(case, recorded().ceilings) if f.rule == pair.rule]
        assert any(words in text for text in advice), (name, advice)


def test_no_bound_is_beaten() -> None:
    """By more than the clock differs between the profiled launch and the timed ones.

    Stream-K's work is counted as if each share touched the most tiles it can, which is too much.
    """
    for case in (case for case in recorded().cases if case.kernel != "stream_k"):
        facts = facts_of(case, recorded().ceilings)
        if facts.measured and facts.bound is not None and facts.time_ns is not None:
            assert facts.bound <= 1.03 * facts.time_ns, case.id


def test_what_the_machine_leaves_out_is_no_disagreement() -> None:
    """The second product of a gated unit reads A again; ptxas keeps what the first one read."""
    (case,) = [c for c in recorded().cases if c.id.startswith("gated[M=2304,N=2304,K=2048,threads=128]")]
    (product,) = [o["id"] for o in case.operations if o["label"] == "T.gemm(A_shared, V_shared, value)"]
    verdicts = {one.metric: one for one in comparisons(case) if one.operation == product}
    assert verdicts["shared.transactions"].verdict == UNJUDGED
    assert "merged" in verdicts["shared.transactions"].reason
    assert not [finding for finding in diagnose(recorded()) if finding.rule == "disagreement"]
    # as many requests, and other transactions: that is one
    rows = [
        dataclasses.replace(m, value=2 * m.value)
        if m.metric == "shared.requests" and m.operation == product and m.provenance.kind == "measured"
        else m
        for m in case.metrics
    ]
    again = {
        one.metric: one.verdict
        for one in comparisons(dataclasses.replace(case, metrics=tuple(rows)))
        if one.operation == product
    }
    assert again["shared.transactions"] == DISAGREE


def test_counts_of_all_kernels_agree_with_the_simulator() -> None:
    found = [one for case in recorded().cases for one in comparisons(case)]
    assert len(found) > 500
    assert {one.verdict for one in found} <= {AGREE, UNJUDGED}


def test_table_of_the_documentation() -> None:
    """What the documentation says of each pair is what the rules say today."""
    text = (ROOT / "docs/diagnosis.md").read_text()
    for name, one in outcomes().items():
        row = next((line for line in text.splitlines() if line.startswith("|") and f"`{name}`" in line), None)
        assert row is not None, name
        assert f"| {benchmark.promise(one)} |" in row, row
        assert f"| {benchmark.percent(one['real'])} |" in row, row


def test_medians_are_those_of_the_record() -> None:
    rows = {
        row["pair"]: row
        for row in json.loads((ROOT / "benchmarks/results/2026-11-30-h200-diagnosis.json").read_text())["pairs"]
    }
    case = next(c for c in recorded().cases if c.id == benchmark.PAIR["uncoalesced"].before[0].case)
    assert case.timing is not None
    assert case.timing.median_ns == pytest.approx(1e3 * statistics.median(rows["uncoalesced"]["times_us"]["before"]))
