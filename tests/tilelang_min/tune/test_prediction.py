"""The prediction beside times measured on an H200 (benchmarks/tuning_prediction.py), and the rule that leaves out by it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilelang_min.tune import candidates
from tilelang_min.tune.records import Outcome

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


@pytest.fixture(scope="module")
def groups() -> dict[str, dict[str, dict[str, Any]]]:
    record: dict[str, Any] = json.loads((RESULTS / "2026-11-30-tuning-prediction.json").read_text())
    found: dict[str, dict[str, dict[str, Any]]] = record["groups"]
    return found


def chosen(kernels: dict[str, dict[str, Any]]) -> list[str]:
    """Names of the kernels that the rule would measure, the best predicted first."""
    made: list[Any] = []
    for number, (name, known) in enumerate(kernels.items()):
        outcome = Outcome(
            number, {"name": name}, spill_bytes=known["spilled"], predicted_ms=known["predicted_us"] / 1e3
        )
        made.append(SimpleNamespace(outcome=outcome))
    return [each.outcome.config["name"] for each in candidates.choose(made, least=1)]


def test_the_rule_keeps_the_best_of_every_record(groups: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Whatever else is left out: 56 problems, 221 kernels."""
    assert len(groups) == 56
    kept = total = 0
    for name, kernels in groups.items():
        best = min(kernels, key=lambda kernel: kernels[kernel]["measured_us"])
        names = chosen(kernels)
        assert best in names, name
        kept, total = kept + len(names), total + len(kernels)
    assert (kept, total) == (205, 221)


def test_by_prediction_alone_little_is_lost(groups: dict[str, dict[str, dict[str, Any]]]) -> None:
    behind = []
    for kernels in groups.values():
        first = chosen(kernels)[0]
        behind.append(kernels[first]["measured_us"] / min(each["measured_us"] for each in kernels.values()))
    assert max(behind) < 1.25
    assert sum(each < 1.05 for each in behind) >= 48


def test_no_bound_is_above_a_measured_time(groups: dict[str, dict[str, dict[str, Any]]]) -> None:
    """A bound rules out for good: it must hold."""
    known = [each for kernels in groups.values() for each in kernels.values()]
    assert all(each["bound_us"] is None or each["bound_us"] <= each["measured_us"] for each in known)
    assert sum(each["bound_us"] is not None for each in known) > 200
