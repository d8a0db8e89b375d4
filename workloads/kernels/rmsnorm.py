"""Root-mean-square normalisation of every row, with a weight for each column."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T

EPSILON = 1e-5


@tilelang.jit
def rmsnorm(M, N, block_M=4, threads=128, dtype="float32"):
    """``B[i, j] = A[i, j] / sqrt(mean(A[i, :] ** 2) + EPSILON) * W[j]``, in float32; a block holds whole rows."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            weight = T.alloc_fragment((N,), "float32")
            T.copy(A[bx * block_M, 0], x)
            T.copy(W, weight)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = T.rsqrt(total[i] / N + EPSILON)
            for i, j in T.Parallel(block_M, N):
                B[bx * block_M + i, j] = x[i, j] * total[i] * weight[j]

    return main


def reference(A, W):
    """The same in float64."""
    x = A.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * W.astype(np.float64)
