"""Many whole kernels, counted by the simulator and by an H200: every operation's transactions and sectors are equal.

The kernels are those of ``benchmarks/h200_kernel_zoo.py``; ``benchmarks/h200_kernels.py`` makes the file of measured values.
Where the CUDA compiler executes fewer loads than the thread program has, and why, is said in ``FEWER_LOADS``: there, and only
there, less was measured.
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

ROOT = Path(__file__).resolve().parents[3]
RECORD: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "nvidia" / "h200_kernels.json").read_text())
MEASURED: dict[str, dict[str, Any]] = RECORD["kernels"]

FEWER_LOADS = {
    r"gemm-[nt]t-pad[08]-f32": ("5/load", "loads of neighbouring elements are joined into wider ones"),
    r"broadcast(-ragged|-odd)?-f(16|32)": (
        "1/load",
        "an element that several elements of the nest read is loaded once",
    ),
    r"shared-broadcast(-odd)?-f(16|32)": ("3/load", "an element that several elements of the nest read is loaded once"),
    r"shared-stride(2|4|8|32)-f(16|32)": ("2/load", "an element that several elements of the nest read is loaded once"),
    r"softmax-pad[01]-f(16|32)": ("7/load", "an element just stored is not loaded again"),
    r"copy-through-(ragged|odd)-f16|copy-through-ragged-f32": ("2/load", "what is not stored at an edge is not loaded"),
}
"""Kernels (as patterns) -> the access that executes fewer loads than the thread program has, and why."""


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


@pytest.mark.parametrize("name", MEASURED)
def test_simulated_counts_equal_measured_ones(name: str, script: ModuleType) -> None:
    *_, program = thread_program(KERNELS[name], resolve("cuda:sm_90a"))
    counted = script.simulated(program)
    entry = MEASURED[name]
    measured = {place: dict(zip(RECORD["metrics"], values, strict=True)) for place, values in entry["counts"].items()}
    fewer = [place for pattern, (place, _) in FEWER_LOADS.items() if re.fullmatch(pattern, name)]
    for place in fewer:
        here, there = counted.pop(place), measured.pop(place)
        assert all(there[metric] <= here.get(metric, 0) for metric in there)
        assert sum(there.values()) < sum(here.values())
    assert script.differences(name, measured, counted, entry.get("misread", [])) == []
