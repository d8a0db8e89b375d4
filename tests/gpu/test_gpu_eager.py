"""On the GPU: functions that are kernels, called with torch tensors and with arrays."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tilelang_min.runtime import cuda

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).parents[1] / "tilelang_min" / "driver"


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    """The functions of the other tests.  Skips old GPUs and machines without the compiler or torch."""
    if cuda.device_info().compute_capability < (8, 0):
        pytest.skip("needs a GPU of compute capability 8.0")
    pytest.importorskip("tvm", reason="compiling needs TVM")
    pytest.importorskip("torch")
    sys.path.insert(0, str(KERNELS))
    import eager_kernels

    sys.path.remove(str(KERNELS))
    return eager_kernels


def test_outputs_are_tensors_where_the_inputs_are(kernels: ModuleType) -> None:
    import torch

    matmul = kernels.matmul.for_target("cuda")
    for m, n, k in ((256, 128, 64), (100, 72, 40)):
        a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            c = matmul(a, b)
        stream.synchronize()
        assert (c.device, c.dtype) == (a.device, torch.float32)
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)
    x = torch.randn(20, 16, device="cuda")
    largest, sums = kernels.statistics.for_target("cuda")(x)
    torch.testing.assert_close(sums, x.sum(1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(largest, x.amax(1))


def test_runtime_dimensions_and_no_inputs(kernels: ModuleType) -> None:
    import torch

    rows = kernels.rows_of_any_number.for_target("cuda")
    for m in (1, 17, 300):
        a, b = torch.randn(m, 24, device="cuda"), torch.randn(1, 24, device="cuda")
        torch.testing.assert_close(rows(a, b), a + b)
    made = kernels.numbers.for_target("cuda")(50)
    assert made.is_cuda
    assert made.tolist() == list(range(50))


def test_arrays_give_arrays(kernels: ModuleType) -> None:
    a, b = (np.random.default_rng(1).standard_normal(shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "kernel .* NumPy arrays are copied")
        c = kernels.matmul.for_target("cuda")(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-2, atol=1e-2)


def test_a_second_call_costs_little_more_than_a_call_of_the_kernel(kernels: ModuleType) -> None:
    import torch

    a, b = torch.randn(64, 32, device="cuda").half(), torch.randn(32, 64, device="cuda").half()
    matmul = kernels.matmul.for_target("cuda")
    kernel = matmul.compile(a, b)
    best = [1.0, 1.0]
    for _ in range(40):
        for number, call in enumerate((lambda: matmul(a, b), lambda: kernel(a, b))):
            start = time.perf_counter()
            for _ in range(50):
                call()
            best[number] = min(best[number], (time.perf_counter() - start) / 50)
        torch.cuda.synchronize()
    assert best[0] - best[1] < 15e-6
