"""What conditions inside of nests keep from happening, and in which order the rest does: run on the CPU, simulated for GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_branches import (
    again_reference,
    divisions_reference,
    guarded_divisions,
    lengths_in_memory,
    lengths_reference,
    sizes_in_conditions,
    sizes_reference,
    written_again,
)
from kernel_runs import LAUNCHED, check

import tilelang_min as tilelang

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


@pytest.mark.parametrize("target", TARGETS)
def test_divisions_under_conditions(target: str) -> None:
    random = np.random.default_rng(7)
    a, d = (random.integers(-9, 10, 192).astype("int32") for _ in range(2))
    a[a == 0] = 1
    d[::64] = (0, 3, -2)
    check(guarded_divisions(192), target, [a, d, np.zeros(192, "int32")], divisions_reference)


@pytest.mark.parametrize("target", TARGETS)
def test_elements_written_again(target: str) -> None:
    a = np.random.default_rng(8).standard_normal((16, 32)).astype("float32")
    check(written_again(32), target, [a, a * 0, a * 0], again_reference)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bounds", [(1, 4, 4), (0, 1, 3)])
def test_pipelines_between_bounds_in_memory(bounds: tuple[int, ...], target: str) -> None:
    random = np.random.default_rng(9)
    a, b = (random.integers(-2, 3, shape).astype("float16") for shape in ((128, 256), (256, 64)))
    arrays = [a, b, np.array(bounds, "int32"), np.zeros((128, 64), "float32")]
    check(lengths_in_memory(4), target, arrays, lengths_reference)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_in_conditions(target: str) -> None:
    kernel = tilelang.compile(sizes_in_conditions(), target, cache=False)
    for m in (5, 37, 64):
        a = np.random.default_rng(m).integers(-3, 4, (m, 40)).astype("float32")
        b = np.full((m, 40), -7, "float32")
        made = b.copy()
        if target in LAUNCHED:
            kernel(a, made)
        else:
            made = kernel.simulate(a, b).outputs["B"]
        assert np.array_equal(made, sizes_reference(a, b))
