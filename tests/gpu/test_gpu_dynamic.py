"""On the GPU: kernels whose sizes are known at launch, and products that share their work out in other ways than by tiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_min.runtime import cuda

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")]

KERNELS = Path(__file__).parents[2] / "workloads" / "kernels"


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips old GPUs and machines without the compiler."""
    if cuda.device_info().compute_capability < (8, 0):
        pytest.skip("needs a GPU of compute capability 8.0")
    pytest.importorskip("tvm", reason="compiling needs TVM")
    monkeypatch.syspath_prepend(str(KERNELS))


def halves(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / 2).astype(np.float16)


def assert_near(actual: Any, expected: Any, tolerance: float = 2e-3) -> None:
    assert np.abs(actual.astype(np.float64) - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("options", [{}, {"hopper": False}])
def test_one_product_for_every_number_of_rows(options: dict[str, Any]) -> None:
    import gemm

    import tilelang_min as tilelang
    import tilelang_min.language as T

    written = gemm.gemm.prim_func(T.dynamic("m"), 1032, 200, block_N=128, block_K=32)
    kernel = tilelang.compile(written, "cuda", options=options)
    b = halves(200, 1032, seed=1)
    for m in (1, 7, 128, 1000, 3, 0, 4099):  # also smaller ones again: maps are kept for each size
        a, c = halves(m, 200, seed=m), np.full((m, 1032), np.nan, np.float16)
        kernel(a, b, c)
        if m:
            assert_near(c, a.astype(np.float64) @ b)


@pytest.mark.parametrize("blocks", [7, 132, 500])
def test_stream_k(blocks: int) -> None:
    import splitk

    a, b, c = halves(520, 1000), halves(1000, 264, seed=1), np.zeros((520, 264), np.float32)
    splitk.stream_k.for_target("cuda")(520, 264, 1000, blocks=blocks)(a, b, c)
    assert_near(c, splitk.reference(a, b))


def test_split_k_through_a_workspace() -> None:
    import splitk

    a, b = halves(130, 4000), halves(4000, 264, seed=1)
    parts, c = np.full((8, 130, 264), np.nan, np.float32), np.full((130, 264), np.nan, np.float16)
    splitk.split_k_parts.for_target("cuda")(130, 264, 4000, split=8)(a, b, parts)
    splitk.sum_parts.for_target("cuda")(130, 264, split=8)(parts, c)
    assert_near(c, splitk.reference(a, b))


def test_groups_of_rows() -> None:
    import grouped

    offsets = np.array([0, 0, 37, 500, 500, 1201, 1300], np.int32)
    a, b, c = halves(1400, 200), halves(6, 200, 264, seed=1), np.full((1400, 264), -7, np.float32)
    grouped.grouped.for_target("cuda")(1400, 264, 200, 6)(a, b, offsets, c)
    assert_near(c[:1300], grouped.reference(a, b, offsets)[:1300])
    assert (c[1300:] == -7).all()


@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_attention_with_grouped_queries(kv_heads: int) -> None:
    import attention

    q, k, v = (halves(2, 300, heads, 64, seed=heads) for heads in (8, kv_heads, kv_heads))
    out = np.full_like(q, np.nan)
    attention.attention.for_target("cuda")(2, 8, 300, 64, causal=True, kv_heads=kv_heads)(q, k, v, out)
    assert_near(out, attention.causal_reference(q, k, v), 4e-3)
