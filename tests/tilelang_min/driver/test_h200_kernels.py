"""Many whole kernels, counted by the simulator and by an H200: every operation's transactions and sectors are equal.

The kernels are those of ``benchmarks/h200_kernel_zoo.py``; ``benchmarks/h200_kernels.py`` makes the file of measured values.
Where the GPU executes other accesses than the thread program has, and why, is said in ``OTHERS``: there, and only there, the
counts differ.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tilelang_min.driver.build import thread_program
from tilelang_min.targets import resolve
from tilelang_min.transform.hopper import HopperOptions

ROOT = Path(__file__).resolve().parents[3]
RECORD: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "nvidia" / "h200_kernels.json").read_text())
MEASURED: dict[str, dict[str, Any]] = RECORD["kernels"]

EDGE = "what is not stored at an edge is not loaded"
OTHERS = {
    r"copy-through-(ragged|odd)-f16|copy-through-ragged-f32": (("2/load",), EDGE),
    r"transpose-read-ragged-f(16|32)": (("2/load",), EDGE),
    r"shared-broadcast-odd-f(16|32)": (("3/load",), EDGE),
    r"reduce-column_sums-ragged-f16": (("4/load",), EDGE),
    r"stencil-f(16|32)": (("2/load",), "loads of neighbouring points are joined into wider ones"),
    r"histogram-(16|64|1000)-(f32|float64)": (
        ("2/atomic", "2/load"),
        "loops that other warps disturb take more rounds",
    ),
    r"histogram-ragged-(f32|float64)": (
        ("2/atomic", "2/load"),
        "loops that other warps disturb; loads under two predicates",
    ),
    r"histogram-ragged-int32": (("2/load",), "what a predicate guards is loaded under two"),
}
"""Kernels (as patterns) -> accesses of which an H200 executes others than the thread program has, and why."""


def module(name: str) -> ModuleType:
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    before = list(sys.path)
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path[:] = before
    return made


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return module("h200_kernels")


KERNELS: dict[str, Any] = module("h200_kernel_zoo").kernels()


def test_every_kernel_was_measured() -> None:
    assert set(KERNELS) == set(MEASURED)
    assert len(MEASURED) >= 40
    # What the profiler misreads is left out: few places, all copies past L1.
    misread = [place for entry in MEASURED.values() for place in entry.get("misread", ())]
    assert len(misread) < 10
    assert all(place.endswith("cp_async_bypass") for place in misread)


def test_differences_are_few_and_named() -> None:
    named = {name for pattern in OTHERS for name in MEASURED if re.fullmatch(pattern, name)}
    assert len(named) <= 20
    assert len(MEASURED) - len(named) >= 190


@pytest.mark.parametrize("name", MEASURED)
def test_simulated_counts_equal_measured_ones(name: str, script: ModuleType) -> None:
    *_, program = thread_program(KERNELS[name], resolve("cuda:sm_90a"), hopper=HopperOptions.of(False))
    counted = script.simulated(program)
    entry = MEASURED[name]
    measured = {place: dict(zip(RECORD["metrics"], values, strict=True)) for place, values in entry["counts"].items()}
    for pattern, (places, _) in OTHERS.items():
        for place in places if re.fullmatch(pattern, name) else ():
            here, there = counted.pop(place), measured.pop(place)
            assert any(here.get(metric, 0) != value for metric, value in there.items()), "equal: take it off the list"
    assert script.differences(name, measured, counted, entry.get("misread", [])) == []
