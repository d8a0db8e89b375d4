"""``if`` and loops inside nests, loops with steps, branches on memory: the CPU by running, GPUs by simulation, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_forms import (
    bits,
    bits_reference,
    branches,
    branches_reference,
    groups,
    groups_reference,
    loops_in_nests,
    loops_reference,
    masked_reference,
    masked_sum,
    unpacked,
    unpacked_reference,
)
from kernel_runs import check

import tilelang_min as tilelang

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(32, 32), (21, 19)])
def test_branches_of_points(m: int, n: int, target: str) -> None:
    random = np.random.default_rng(m)
    a = random.standard_normal((m, n)).astype("float32")
    b = np.full((m, n), -1.0, "float32")
    check(branches(m, n), target, [a, b, np.zeros(m, "int32")], branches_reference)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_inside_nests(target: str) -> None:
    a = np.random.default_rng(3).integers(0, 256, 70).astype("uint8")
    check(loops_in_nests(70), target, [a, np.zeros(140, "int32"), np.zeros(70, "int32")], loops_reference)


@pytest.mark.parametrize("target", TARGETS)
def test_branches_on_memory(target: str) -> None:
    random = np.random.default_rng(5)
    a = random.standard_normal((24, 128)).astype("float32")
    mask = np.array([0, 1, 1, 1, 0, 0, 0, 7], "int32")
    check(masked_sum(24, 128), target, [a, mask, np.zeros((24, 16), "float32")], masked_reference)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [1, 3])
def test_loops_as_long_as_memory_says(stages: int, target: str) -> None:
    random = np.random.default_rng(stages)
    a, b = (random.standard_normal(shape).astype("float16") for shape in ((100, 96), (96, 64)))
    for starts, lengths in (((0, 41, 100), (96, 64)), ((0, 0, 32), (32, 0))):
        arrays = [a, b, np.array(starts, "int32"), np.array(lengths, "int64"), np.zeros((100, 64), "float32")]
        check(groups(100, 64, 96, stages), target, arrays, groups_reference)


def test_work_that_memory_decides_is_not_known() -> None:
    kernel = tilelang.compile(groups(100, 64, 96, 3), "cuda:sm_80", cache=False)
    assert kernel.metadata.flops is None
    assert kernel.metadata.bytes_min is None


@pytest.mark.parametrize("target", TARGETS)
def test_functions_that_compute(target: str) -> None:
    a = np.random.default_rng(9).integers(0, 256, 96).astype("uint8")
    scales = np.array([0.25, -1.5, 2.0], "float32")
    check(unpacked(96), target, [a, scales, np.zeros((96, 2), "float32")], unpacked_reference)


@pytest.mark.parametrize("target", TARGETS)
def test_bits_and_hints(target: str) -> None:
    a = np.random.default_rng(8).integers(-(2**20), 2**20, 70).astype("int32")
    check(bits(70), target, [a, np.zeros(70, "int32")], bits_reference)
