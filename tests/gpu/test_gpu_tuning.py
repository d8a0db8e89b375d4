"""A search on a GPU: compiled here, run and timed by a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T

pytestmark = pytest.mark.gpu


def product(M: int, N: int, K: int, block: int = 64, num_stages: int = 2, factor: float = 1.0) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, 32), "float16")
            B_shared = T.alloc_shared((32, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=num_stages):
                T.copy(A[by * block, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block, block):
                C_local[i, j] *= factor
            T.copy(C_local, C[by * block, bx * block])

    return main


@pytest.mark.filterwarnings("ignore:kernel .*NumPy arrays are copied")
def test_the_best_is_measured_checked_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    configs = [{"block": 64}, {"block": 128, "num_stages": 3}, {"block": 32}, {"block": 64, "factor": 2.0}]
    factory = tilelang.jit(target="cuda")(product)
    settings: dict[str, Any] = {"configs": configs, "warmup": 2, "rep": 8, "prune": False}

    def reference(a: Any, b: Any) -> Any:
        if hasattr(a, "float"):  # torch's, where another test has imported it
            return a.float() @ b.float()
        return np.asarray(a, np.float32) @ np.asarray(b, np.float32)

    kernel = tilelang.autotune(ref_prog=reference, **settings)(factory)(512, 512, 512)
    assert kernel.tuned.measured
    assert kernel.tuned.device == tilelang.device_info().name
    assert [each.outcome for each in kernel.tuned.results].count("wrong") == 1
    assert kernel.tuned.results[3].outcome == "wrong"
    assert kernel.tuned.best.samples == 8
    assert 0 < kernel.tuned.best.bound_ms < kernel.latency
    again = tilelang.autotune(ref_prog=reference, **settings)(factory)(512, 512, 512)
    assert again.tuned.stored
    a = np.ones((512, 512), np.float16)
    c = np.zeros((512, 512), np.float32)
    again(a, a, c)
    assert (c == 512).all()
