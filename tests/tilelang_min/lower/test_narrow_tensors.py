"""Tensors of one column, or of few, under tiles that are wider: what lies beside a row's end is the next row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min.language as T

TARGETS = ("cpu", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942")
COLUMNS = (1, 2, 3, 4, 12)


def halves(*shape: int) -> Any:
    return (np.random.default_rng(len(shape)).integers(-2, 3, shape) / 2).astype(np.float16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_products_are_added_to_few_columns(columns: int, target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 64), "float16"), Out: T.Tensor((16, columns), "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 64), "float16")
            acc = T.alloc_fragment((16, 64), "float32")
            ones = T.alloc_fragment((16,), "int32")
            T.fill(ones, 1)
            T.clear(acc)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, acc)
            for i, j in T.Parallel(16, 64):
                Out[i, j] = Out[i, j] + ones[i] + T.cast(acc[i, j] * 4, "int32")

    a, b = halves(16, 16), halves(16, 64)
    before = np.arange(16 * columns, dtype=np.int32).reshape(16, columns)
    exact = (a.astype(np.float64) @ b.astype(np.float64) * 4).astype(np.int32)
    found = run(main, target, [a, b, before])["Out"]
    np.testing.assert_array_equal(found, before + 1 + exact[:, :columns])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(16, 1), (16, 2), (1, 16), (1, 1), (8, 3)])
def test_tiles_are_copied_into_few_columns(shape: tuple[int, int], target: str) -> None:
    """A tensor in, through a tile and a fragment, and out to one of the same shape."""
    tile = (shape[0], 16)

    @T.prim_func
    def main(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=64):
            shared = T.alloc_shared(tile, "float32")
            own = T.alloc_fragment(tile, "float32")
            T.copy(A[0, 0], shared)
            T.copy(shared, own)
            T.copy(own, B[0, 0])

    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    found = run(main, target, [a, np.full(shape, np.nan, np.float32)])["B"]
    np.testing.assert_array_equal(found, a)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_nests_over_few_columns(columns: int, target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float32"), B: T.Tensor((32, columns), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tile = T.alloc_fragment((16, 8), "float32")
            for i, j in T.Parallel(16, 8):
                tile[i, j] = A[bx * 16 + i, j] * 2
            for i, j in T.Parallel(16, 8):
                B[bx * 16 + i, j] = B[bx * 16 + i, j] + tile[i, j]

    a = np.arange(32 * columns, dtype=np.float32).reshape(32, columns)
    found = run(main, target, [a, a + 1])["B"]
    expected = a + 1
    expected[:, :8] += 2 * a[:, :8]
    np.testing.assert_array_equal(found, expected)
