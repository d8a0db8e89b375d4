"""A matrix product whose epilogue adds a bias and applies an activation, before anything leaves the registers."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def bias_gelu(M, N, K, block_M=128, block_N=128, block_K=32, num_stages=3, threads=128, dtype="float16"):
    """``C = gelu(A @ B + bias)`` with the tanh form of GELU, as of transformers."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, acc)
            for i, j in T.Parallel(block_M, block_N):
                x = acc[i, j] + T.cast(bias[bx * block_N + j], "float32")
                acc[i, j] = 0.5 * x * (1.0 + T.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
            T.copy(acc, C[by * block_M, bx * block_N])

    return main


def reference(A, B, bias):
    """The same in float64."""
    x = A.astype(np.float64) @ B.astype(np.float64) + bias.astype(np.float64)
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
