"""A linear layer for any number of rows: ``C = max(A @ B + bias, 0)``, compiled once.

The number of rows, the tokens of a batch, is known at launch alone; a workload says with which sizes it is launched.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def linear(N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16"):
    """``m`` rows of K features become m rows of N."""
    M = T.dynamic("m")

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), Bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j] + T.cast(Bias[bx * block_N + j], "float32"), 0.0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def reference(A, B, Bias):
    """The layer in float64."""
    return np.maximum(A.astype(np.float64) @ B.astype(np.float64) + Bias, 0.0)
