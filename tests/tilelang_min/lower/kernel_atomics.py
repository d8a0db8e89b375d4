"""Kernels with atomics, for tests: each with what NumPy makes of its inputs."""

from typing import Any

import numpy as np

import tilelang_min.language as T


def counted(n: int, bins: int, dtype: str, threads: int = 128) -> Any:
    """A histogram with weights through shared memory."""

    @T.prim_func
    def main(X: T.Tensor((n,), "int32"), W: T.Tensor((n,), dtype), H: T.Tensor((bins,), dtype)):
        with T.Kernel(T.ceildiv(n, 256), threads=threads) as bx:
            part = T.alloc_shared((bins,), dtype)
            T.clear(part)
            for i in T.Parallel(256):
                value = T.if_then_else(bx * 256 + i < n, X[bx * 256 + i], -1)
                T.atomic_add(part[value], W[bx * 256 + i])
            T.atomic_add(H, part)

    return main


def extremes(m: int, n: int, dtype: str, threads: int = 128) -> Any:
    """Largest and smallest element of each column: through shared memory, and directly."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), high: T.Tensor((n,), dtype), low: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(m, 16), threads=threads) as bx:
            tile = T.alloc_shared((n,), dtype)
            T.copy(A[bx * 16, 0], tile)
            for i, j in T.Parallel(16, n):
                T.atomic_max(tile[j], T.if_then_else(bx * 16 + i < m, A[bx * 16 + i, j], A[bx * 16, j]))
            T.atomic_max(high, tile)
            for i, j in T.Parallel(16, n):
                T.atomic_min(low[j], T.if_then_else(bx * 16 + i < m, A[bx * 16 + i, j], A[bx * 16, j]))

    return main


def halves(m: int, n: int, dtype: str, threads: int = 128) -> Any:
    """Sums of columns of 16-bit floats, two neighbours at a time."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(m, 8), threads=threads) as bx:
            tile = T.alloc_fragment((8, n), dtype)
            T.copy(A[bx * 8, 0], tile)
            for i, j in T.Parallel(8, n):
                T.atomic_add(B[j], tile[i, j])

    return main


def single(n: int, threads: int = 64) -> Any:
    """One thread of each block updates an element; a region is updated with one number."""

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((8, 16), "float32")):
        with T.Kernel(n, threads=threads) as bx:
            T.atomic_add(A[bx % 2], bx)
            T.atomic_max(A[2], bx)
            T.atomic_add(B[0:4, :], 0.5)

    return main


def column_extremes(a: Any) -> tuple[Any, Any]:
    """What ``extremes`` computes from results that start as zeros."""
    return np.maximum(a.max(axis=0), 0), np.minimum(a.min(axis=0), 0)
