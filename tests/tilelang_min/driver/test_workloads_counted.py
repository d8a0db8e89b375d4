"""Every kernel of ``workloads/kernels`` on every target: no race, nothing out of range, and no access without a known rule.

The counts are those of small launches.  On AMD the listing is looked at as well, where accesses are of the kinds that LLVM has
joined: products and sums of columns.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import random_arguments
from tilelang_min.simulate import merge_counts, simulate
from tilelang_min.targets import resolve

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"
AMD = ("hip:gfx90a", "hip:gfx942", "hip:gfx950")
TARGETS = ("cpu", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", *AMD)

SMALL: dict[str, tuple[Any, ...]] = {
    "matmul.naive": (33, 20, 18),
    "matmul.tiled": (72, 64, 100),
    "matmul.padded": (72, 64, 100),
    "elementwise.scale_add_relu": (33, 70),
    "softmax.rows": (9, 300),
    "softmax.online": (9, 520),
    "rmsnorm.rmsnorm": (9, 300),
    "reductions.row_absmax": (9, 300),
    "reductions.column_sums": (70, 140),
    "atomics.split_k": (70, 66, 200),
    "layernorm.layernorm": (9, 300),
    "transpose.transpose": (70, 90),
    "fused.bias_gelu": (130, 140, 70),
}
"""Factories that take a type, with ragged extents."""
OPTIONS: dict[str, dict[str, int]] = {"fused.bias_gelu": {"num_stages": 1}}
NO_RULE = {("transpose.transpose", "shared", "load")}
"""On AMD: single elements of 16 bits, of whose cost nothing is published; nor is of atomics."""
WARP_GROUPS = ("wgmma", "tma_load", "tma_store")
"""On Hopper: operands of products and bulk copies, which pass none of the counters that rules are about."""


def factory(name: str) -> Any:
    file, function = name.split(".")
    spec = importlib.util.spec_from_file_location(f"counted_{file}", KERNELS / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)


def unknown(name: str, counts: Any, target: str) -> list[Any]:
    """Accesses without a known rule, atomics of AMD aside."""
    return [
        (count.operation, count.buffer, count.access, count.width_bits, count.rule)
        for count in counts
        if count.rule != "known"
        and count.access not in WARP_GROUPS
        and not (target in AMD and (count.access == "atomic" or (name, count.space, count.access) in NO_RULE))
    ]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SMALL)
def test_no_race_and_no_unknown_rule(name: str, target: str) -> None:
    dtype = "float32" if target in ("cpu", "cuda:sm_80", "hip:gfx942") else "float16"
    program = thread_program(
        factory(name).prim_func(*SMALL[name], dtype=dtype, **OPTIONS.get(name, {})), resolve(target)
    )[2]
    arrays = (np.asarray(array) for array in random_arguments(program.parameters))
    values = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    result = simulate(program, values)  # raises for races and for places out of range
    if target != "cpu":
        assert unknown(name, merge_counts(result.counts), target) == []


@pytest.mark.parametrize("target", TARGETS)
def test_the_histogram_too(target: str) -> None:
    program = thread_program(factory("atomics.histogram").prim_func(9000), resolve(target))[2]
    x = np.random.default_rng(0).integers(-2, 260, 9000, dtype=np.int32)
    result = simulate(program, {"X": x, "H": np.zeros(256, np.int32)})
    if target != "cpu":
        assert unknown("atomics.histogram", result.counts, target) == []


@pytest.mark.parametrize("target", AMD)
@pytest.mark.parametrize("name", ["matmul.tiled", "matmul.padded", "reductions.column_sums"])
def test_llvm_emits_what_is_counted(name: str, target: str) -> None:
    shape = (128, 128, 256) if name.startswith("matmul") else (256, 256)
    for dtype in ("float16", "float32"):
        kernel = tilelang.compile(factory(name).prim_func(*shape, dtype=dtype), target)
        analysis = kernel.analyse()
        assert unknown(name, analysis.counts, target) == []
        assert not any("LLVM emitted" in note for note in analysis.notes)
