"""Softmax of every row of a matrix, two ways: the whole row in registers, and online over column tiles.

Both compute ``B[i, :] = exp(A[i, :] - max) / sum(exp(A[i, :] - max))`` in float32.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T

LOG2_E = 1.4426950408889634


@tilelang.jit
def rows(M, N, block_M=4, threads=128, dtype="float32"):
    """A block holds whole rows: one read and one write of each element, for rows that fit into registers."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            high = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(A[bx * block_M, 0], x)
            T.reduce_max(x, high, dim=1)
            for i in T.Parallel(block_M):
                high[i] = high[i] * LOG2_E
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp2(x[i, j] * LOG2_E - high[i])  # powers of two are one instruction on a GPU
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * total[i]
            T.copy(x, B[bx * block_M, 0])

    return main


@tilelang.jit
def online(M, N, block_M=4, block_N=256, threads=128, dtype="float32"):
    """Rows of any length, a tile of columns at a time: the sum is rescaled whenever the maximum grows, and A is read twice."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, block_N), "float32")
            high = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            T.fill(high, -T.infinity("float32"))
            T.clear(total)
            for k in T.serial(T.ceildiv(N, block_N)):
                for i, j in T.Parallel(block_M, block_N):
                    column = k * block_N + j
                    element = T.cast(A[bx * block_M + i, column], "float32")
                    x[i, j] = T.if_then_else(column < N, element, -T.infinity("float32"))
                T.copy(high, before)
                T.reduce_max(x, high, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp(x[i, j] - high[i])
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp(before[i] - high[i]) + part[i]
            for k in T.serial(T.ceildiv(N, block_N)):
                for i, j in T.Parallel(block_M, block_N):
                    element = T.cast(A[bx * block_M + i, k * block_N + j], "float32")
                    B[bx * block_M + i, k * block_N + j] = T.exp(element - high[i]) / total[i]

    return main


def reference(A):
    """The same in float64."""
    x = A.astype(np.float64)
    x = np.exp(x - x.max(axis=1, keepdims=True))
    return x / x.sum(axis=1, keepdims=True)
