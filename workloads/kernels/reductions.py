"""Reductions of a matrix along its rows and along its columns."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def row_absmax(M, N, block_M=8, block_N=256, threads=128, dtype="float32"):
    """``B[i] = max(abs(A[i, :]))``, as scales of a quantisation are found; a tile of columns at a time."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            tile = T.alloc_fragment((block_M, block_N), dtype)
            high = T.alloc_fragment((block_M,), dtype)
            T.clear(high)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(A[bx * block_M, k * block_N], tile)
                T.reduce_absmax(tile, high, dim=1, clear=False)
            T.copy(high, B[bx * block_M])

    return main


@tilelang.jit
def column_sums(M, N, block_M=32, block_N=128, threads=128, num_stages=2, dtype="float32"):
    """``B[j] = sum(A[:, j])`` in float32; a tile of rows at a time through shared memory."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            tile = T.alloc_shared((block_M, block_N), dtype)
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(M, block_M), num_stages=num_stages):
                T.copy(A[k * block_M, bx * block_N], tile)
                T.reduce_sum(tile, total, dim=0, clear=False)
            T.copy(total, B[bx * block_N])

    return main


def row_absmax_reference(A):
    """The same in float64."""
    return np.abs(A.astype(np.float64)).max(axis=1)


def column_sums_reference(A):
    """The same in float64."""
    return A.astype(np.float64).sum(axis=0)
