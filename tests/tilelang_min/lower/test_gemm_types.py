"""Matrix products in every type of operands, on each architecture's own instructions, against float64 (exact for integers)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min.language as T
from tilelang_min.program.dtypes import numpy_dtype

TARGETS = ("cpu", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942", "hip:gfx950")
ACCUMULATOR = {"float64": "float64", "int8": "int32", "uint8": "int32"}
TYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8", "uint8")


def matmul(
    M: int, N: int, K: int, dtype: str, accumulator: str, ta: bool = False, tb: bool = False, bk: int = 32, pad: int = 0
) -> Any:
    """``C = op(A) @ op(B) + 1`` in tiles of 32x32, the one added in the accumulator."""
    block = 32

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), accumulator),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            A_shared = T.alloc_shared((bk, block + pad) if ta else (block, bk + pad), dtype)
            B_shared = T.alloc_shared((block, bk + pad) if tb else (bk, block + pad), dtype)
            C_local = T.alloc_fragment((block, block), accumulator)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                if ta:
                    T.copy(A[ko * bk, by * block], A_shared[:, 0:block])
                else:
                    T.copy(A[by * block, ko * bk], A_shared[:, 0:bk])
                if tb:
                    T.copy(B[bx * block, ko * bk], B_shared[:, 0:bk])
                else:
                    T.copy(B[ko * bk, bx * block], B_shared[:, 0:block])
                T.gemm(
                    A_shared[:, 0 : block if ta else bk],
                    B_shared[:, 0 : bk if tb else block],
                    C_local,
                    transpose_A=ta,
                    transpose_B=tb,
                )
            for i, j in T.Parallel(block, block):
                C_local[i, j] = C_local[i, j] + 1
            T.copy(C_local, C[by * block, bx * block])

    return main


def values(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """All of an integer type; eighths up to 1, which have exact sums in every accumulator, for narrow floats; else normal."""
    generator = np.random.default_rng(seed)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)
    if dtype in ("float32", "float64"):
        return generator.standard_normal(shape).astype(dtype)
    return (generator.integers(-8, 8, shape) / 8).astype(numpy_dtype(dtype))


def check(target: str, dtype: str, size: tuple[int, int, int], accumulator: str | None = None, **options: Any) -> None:
    m, n, k = size
    accumulator = accumulator or ACCUMULATOR.get(dtype, "float32")
    ta, tb = options.get("ta", False), options.get("tb", False)
    a, b = values(dtype, (k, m) if ta else (m, k), 1), values(dtype, (n, k) if tb else (k, n), 2)
    wide = np.int64 if "int" in dtype else np.float64
    left, right = (a.T if ta else a).astype(wide), (b.T if tb else b).astype(wide)
    expected = left @ right + 1
    kernel = matmul(*size, dtype, accumulator, **options)
    found = run(kernel, target, [a, b, np.full((m, n), 77, accumulator)])["C"]
    assert found.dtype == np.dtype(accumulator)
    if dtype in ("float32", "float64"):
        limit = {"float32": 1e-5, "float64": 1e-13}[dtype]
        assert np.abs(found - expected).max() <= limit * np.abs(expected).max()
    else:
        assert np.array_equal(found.astype(wide), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype: str, target: str) -> None:
    """Ragged sizes, every orientation."""
    check(target, dtype, (40, 35, 72), tb=True)
    check(target, dtype, (33, 40, 70))
    check(target, dtype, (37, 33, 40), ta=True, tb=True, pad=16 if dtype != "float64" else 2)
