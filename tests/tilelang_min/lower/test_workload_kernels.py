"""The row-wise kernels of ``workloads/``, at small ragged shapes, against their own references."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"workload_{name}", KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = {
    "rows": ("softmax", "rows", "reference", {}),
    "online": ("softmax", "online", "reference", {"block_N": 128}),
    "online-one-row": ("softmax", "online", "reference", {"block_M": 1}),
    "rmsnorm": ("rmsnorm", "rmsnorm", "reference", {}),
    "layernorm": ("layernorm", "layernorm", "reference", {}),
    "transpose": ("transpose", "transpose", "reference", {"dtype": "float32"}),
    "row_absmax": ("reductions", "row_absmax", "row_absmax_reference", {"block_N": 64}),
    "column_sums": ("reductions", "column_sums", "column_sums_reference", {"block_M": 8, "block_N": 64}),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx90a"])
@pytest.mark.parametrize("case", CASES)
def test_kernel(case: str, target: str) -> None:
    module, factory, reference, options = CASES[case]
    loaded = load(module)
    kernel = getattr(loaded, factory).for_target(target)(10, 300, **options)
    generator = np.random.default_rng(3)
    arrays = [
        generator.standard_normal(p.shape).astype(p.dtype) if p.access == "in" else np.full(p.shape, np.nan, p.dtype)
        for p in kernel.parameters
    ]
    inputs = [array for array, p in zip(arrays, kernel.parameters, strict=True) if p.access == "in"]
    if target == "cpu":
        kernel(*arrays)
        made = arrays[-1]
    else:
        made = kernel.simulate(*arrays).outputs[kernel.parameters[-1].name]
    np.testing.assert_allclose(made, getattr(loaded, reference)(*inputs), rtol=1e-5, atol=1e-6)
    if target != "cpu":
        assert kernel.listing.attributed_fraction >= 0.95


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
def test_a_product_with_bias_and_gelu(target: str) -> None:
    loaded = load("fused")
    kernel = loaded.bias_gelu.for_target(target)(70, 72, 40, block_M=64, block_N=64, threads=128)
    chance = np.random.default_rng(0)
    a, b, bias = ((chance.standard_normal(s) / 2).astype(np.float16) for s in ((70, 40), (40, 72), (72,)))
    c = np.full((70, 72), np.nan, np.float16)
    if target == "cpu":
        kernel(a, b, bias, c)
    else:
        c = kernel.simulate(a, b, bias, c).outputs["C"]
    np.testing.assert_allclose(c, loaded.reference(a, b, bias), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_transposition_moves_whole_vectors_without_conflicts(target: str) -> None:
    """The tile is read across, one element at a time, and left in rows of 16 bytes; its swizzle serves both ways."""
    kernel = load("transpose").transpose.for_target(target)(128, 128, block_M=64, block_N=64, threads=256)
    counts = kernel.analyse().counts
    assert {(count.access, count.width_bits) for count in counts if count.space == "global"} == {
        ("load", 128),
        ("store", 128),
    }
    assert all(count.sectors == count.sectors_ideal for count in counts if count.space == "global")
    shared = [count for count in counts if count.space == "shared"]
    assert {count.width_bits for count in shared if count.access == "store"} == {128}
    assert all(count.transactions == count.transactions_ideal for count in shared)
