"""The rule on times: what it says of rounds, and its error rates on recorded H200 samples with slowdowns injected."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tileprof.analyse.gate import FASTER, SAME, SLOWER, UNCLEAR, judge

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def trials() -> Any:
    """``benchmarks/gate.py``, which draws rounds from the recordings."""
    specification = importlib.util.spec_from_file_location("gate_trials", ROOT / "benchmarks/gate.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["gate_trials"] = module
    specification.loader.exec_module(module)
    return module


def rounds(*medians: float) -> list[list[float]]:
    return [[median * 0.99, median, median * 1.02] for median in medians]


BASE = rounds(100, 101, 99, 100, 100)


@pytest.mark.parametrize(
    ("head", "outcome"),
    [
        ((100, 101, 99, 100, 100), SAME),
        ((102, 103, 101, 102, 102), SAME),  # all slower, below the floor
        ((104, 105, 103, 104, 104), SLOWER),
        ((104, 105, 98, 104, 104), UNCLEAR),  # beyond the floor, one round disagrees
        ((95, 96, 94, 95, 95), FASTER),
        ((95, 96, 104, 95, 95), UNCLEAR),
    ],
)
def test_outcomes(head: tuple[float, ...], outcome: str) -> None:
    change = judge(rounds(*head), BASE)
    assert change is not None
    assert change.outcome == outcome


def test_a_drift_that_both_sides_share_is_no_slowdown() -> None:
    drifting = (100, 120, 140, 160, 180)
    change = judge(rounds(*drifting), rounds(*drifting))
    assert change is not None
    assert (change.outcome, change.ratio) == (SAME, 1.0)


@pytest.mark.parametrize("head", [rounds(100, 100, 100, 100), [[], [], [], [], []], rounds(0, 0, 0, 0, 0)])
def test_too_little_decides_nothing(head: list[list[float]]) -> None:
    assert judge(head, BASE) is None


def test_a_larger_floor_lets_more_pass() -> None:
    change = judge(rounds(104, 105, 103, 104, 104), BASE, floor=0.05)
    assert change is not None
    assert change.outcome == SAME


def test_error_rates_on_recorded_samples(trials: Any) -> None:
    """Fewer than 1 % false alarms and more than 99 % of slowdowns of 5 % found, over twelve kernels of an H200."""
    alarms = trials.rate(trials.in_turns, 0.0, 60, seed=1)
    found = trials.rate(trials.in_turns, 0.05, 60, seed=2)
    assert len(alarms) == 12
    assert sum(alarms.values()) / 12 < 0.01
    assert sum(found.values()) / 12 > 0.99


def test_a_rank_test_alone_alarms_where_nothing_changed(trials: Any) -> None:
    """Why the rule is what it is: between two runs of one kernel the rank test sees drift."""
    alarms = trials.rate(trials.rank_test, 0.0, 30, seed=3)
    assert max(alarms.values()) > 0.1
