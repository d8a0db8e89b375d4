"""``kernel.get_profiler()``: comparing with a reference, inputs in the ways that TileLang has, timing a reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from eager_kernels import scale, statistics

import tilelang_min as tilelang
from tilelang_min.driver.fills import WAYS, supplied_arguments
from tilelang_min.errors import LaunchError
from tilelang_min.program import Parameter


def reference(x: Any) -> tuple[Any, Any]:
    return x.max(axis=1), x.sum(axis=1)


@pytest.fixture(scope="module")
def kernel() -> tilelang.Kernel:
    """Two outputs that a call allocates."""
    return statistics.compile(M=20, N=16)


def test_what_is_right_passes(kernel: tilelang.Kernel) -> None:
    kernel.get_profiler().assert_allclose(reference, rtol=1e-5, atol=1e-5)
    kernel.get_profiler(tilelang.TensorSupplyType.Integer).assert_allclose(reference, rtol=0, atol=0)
    kernel.get_profiler("One").assert_allclose(lambda x: (np.ones(20), np.full(20, 16.0)), rtol=0, atol=0)
    x = np.arange(320, dtype=np.float32).reshape(20, 16)
    kernel.get_profiler().assert_allclose(lambda x: (x[:, 15], None), [x], rtol=0, atol=0)  # None is not compared


def test_what_is_wrong_is_named(kernel: tilelang.Kernel) -> None:
    def one_off(x: Any) -> tuple[Any, Any]:
        largest, sums = reference(x)
        sums[3] += 1
        return largest, sums

    profiler = kernel.get_profiler("Zero")
    with pytest.raises(
        AssertionError, match=r"sums differs from the reference in 1 of 20 elements by more than"
    ) as caught:
        profiler.assert_allclose(one_off)
    assert "at most by 1; the first is sums[3]: 0 instead of 1" in str(caught.value)
    profiler.assert_allclose(one_off, max_mismatched_ratio=0.05)
    with pytest.raises(AssertionError, match="elements"):  # NaN is no number
        profiler.assert_allclose(lambda x: (np.full(20, np.nan), reference(x)[1]))
    with pytest.raises(AssertionError, match=r"largest has shape \(20,\), the reference \(20, 1\)"):
        profiler.assert_allclose(lambda x: (np.zeros((20, 1)), reference(x)[1]))
    with pytest.raises(LaunchError, match=r"gives 2 tensors \(largest, sums\), the reference 1"):
        profiler.assert_allclose(lambda x: x.max(axis=1))
    with pytest.raises(LaunchError, match="there is no tensor_supply_type 'Ones'") as unknown:
        kernel.get_profiler("Ones")
    assert "did you mean 'One'" in (unknown.value.remedy or "")


def test_kernels_that_write_what_they_are_given() -> None:
    """A reference returns what should stand there, or writes it too; it sees none of what the kernel writes."""
    profiler = scale.compile(N=50).get_profiler()
    profiler.assert_allclose(lambda x, y: 2 * x)

    def writing(x: Any, y: Any) -> None:
        assert np.isnan(y).all()
        y[:] = 2 * x

    profiler.assert_allclose(writing)
    with pytest.raises(AssertionError, match="Y differs"):
        profiler.assert_allclose(lambda x, y: 3 * x)


def test_a_reference_is_timed_on_the_same_inputs(kernel: tilelang.Kernel) -> None:
    seen = []
    assert kernel.get_profiler().do_bench(lambda x: seen.append(x.shape), warmup=1, rep=3) >= 0
    assert seen == [(20, 16)] * 4


@pytest.mark.parametrize("kind", WAYS)
def test_ways_of_filling(kind: str) -> None:
    parameters = (
        Parameter("A", "float16", (4, 8), "in"),
        Parameter("I", "int8", (40,), "inout"),
        Parameter("O", "float32", (3,), "out"),
    )
    a, i, o = supplied_arguments(parameters, kind)
    assert [array.dtype.name for array in (a, i, o)] == ["float16", "int8", "float32"]
    assert [array.shape for array in (a, i, o)] == [(4, 8), (40,), (3,)]
    assert np.isnan(o).all()
    low, high = {"Zero": (0, 0), "One": (1, 1), "Uniform": (-1, 1), "Integer": (-2, 2)}.get(kind, (-9, 9))
    assert low <= a.min() <= a.max() <= high
    assert np.array_equal(a, supplied_arguments(parameters, kind)[0])
