"""Numerics of the Hopper path on the GPU: products in every layout, type and size, persistent blocks, clusters, attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_min.runtime import cuda

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).parents[2] / "workloads" / "kernels"


@pytest.fixture(autouse=True)
def hopper() -> None:
    """Skips other GPUs, and machines without the compiler."""
    if cuda.device_info().compute_capability != (9, 0):
        pytest.skip("needs a GPU of compute capability 9.0")
    pytest.importorskip("tvm", reason="compiling needs TVM")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(KERNELS))


def check(kernel: Any, inputs: list[Any], expected: Any, tolerance: float, dtype: str = "float16") -> None:
    """Twice, into poisoned outputs: the same result, and the right one."""
    from tilelang_min.program.dtypes import numpy_dtype

    results = []
    for _ in range(2):
        out = np.full(expected.shape, np.nan).astype(numpy_dtype(dtype))
        kernel(*inputs, out)
        results.append(out.astype(np.float64))
    np.testing.assert_array_equal(results[0], results[1])
    assert np.abs(results[0] - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("shape", "tile", "stages", "threads"),
    [
        ((512, 768, 512), (128, 256, 64), 4, 256),
        ((136, 1000, 200), (128, 128, 32), 6, 256),
        ((1, 8, 8), (64, 64, 64), 2, 128),
        ((1000, 136, 72), (192, 64, 32), 3, 384),
        ((129, 129, 129), (64, 64, 32), 3, 128),
        ((1000, 7, 1000), (64, 64, 64), 2, 128),
        ((3000, 4104, 200), (128, 128, 64), 3, 256),
    ],
)
@pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")
def test_products(kernels: None, shape: Any, tile: Any, stages: int, threads: int, ta: bool, tb: bool) -> None:
    product(shape, tile, stages, threads, ta, tb, {})


@pytest.mark.parametrize("options", [False, {"cluster": True}, {"tma": False}, {"persistent": False}, {"wgmma": False}])
@pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")
def test_choices(kernels: None, options: Any) -> None:
    product((3072, 4104, 200), (128, 128, 64), 3, 256, False, True, {"hopper": options})


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, True)])
@pytest.mark.parametrize(
    ("shape", "tile", "stages", "threads"),
    [
        ((1000, 776, 200), (128, 128, 32), 4, 128),
        ((136, 1000, 512), (128, 256, 64), 3, 256),
        ((129, 129, 129), (64, 64, 32), 3, 128),
        ((512, 512, 1024), (64, 128, 32), 2, 64),
        ((64, 64, 32), (64, 64, 32), 3, 64),
    ],
)
@pytest.mark.parametrize("mode", ["off", "tile", "always"])
@pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")
def test_operands_a_step_ahead(
    kernels: None, shape: Any, tile: Any, stages: int, threads: int, ta: bool, tb: bool, mode: str
) -> None:
    """``mma.sync``, with operands read ahead or not, and its results exchanged in quads."""
    product(shape, tile, stages, threads, ta, tb, {"hopper": False, "double_buffer": mode})


def product(shape: Any, tile: Any, stages: int, threads: int, ta: bool, tb: bool, options: dict[str, Any]) -> None:
    import gemm

    import tilelang_min as tilelang

    m, n, k = shape
    names = dict(zip(("block_M", "block_N", "block_K"), tile, strict=True))
    function = gemm.gemm.prim_func(m, n, k, ta, tb, num_stages=stages, threads=threads, **names)
    kernel = tilelang.compile(function, "cuda:sm_90a", cache=False, options=options)
    generator = np.random.default_rng(sum(shape))
    a = generator.standard_normal((k, m) if ta else (m, k)).astype(np.float16)
    b = generator.standard_normal((n, k) if tb else (k, n)).astype(np.float16)
    check(kernel, [a, b], gemm.reference(a, b, ta, tb), 1e-3)


@pytest.mark.parametrize(
    ("causal", "dim", "block"), [(False, 128, (128, 128)), (True, 128, (128, 64)), (True, 64, (64, 64))]
)
@pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")
def test_attention(kernels: None, causal: bool, dim: int, block: tuple[int, int]) -> None:
    import attention

    import tilelang_min as tilelang

    function = attention.attention.prim_func(
        2, 3, 1000, dim, causal=causal, block_M=block[0], block_N=block[1], threads=2 * block[0]
    )
    kernel = tilelang.compile(function, "cuda:sm_90a", cache=False)
    generator = np.random.default_rng(dim)
    inputs = [generator.standard_normal((2, 1000, 3, dim)).astype(np.float16) for _ in "QKV"]
    check(kernel, inputs, attention.reference(*inputs, causal=causal), 5e-3)
