"""Layer normalisation of every row of a matrix, with weight and bias: a row in registers, mean and variance in float32."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def layernorm(M, N, block_M=4, threads=128, eps=1e-5, dtype="float32"):
    """``Y[i, :] = (X[i, :] - mean) / sqrt(variance + eps) * W + B``; the variance from the differences, not from squares."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            square = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] - mean[i] / N
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                weighted = x[i, j] * scale[i] * T.cast(W[j], "float32") + T.cast(B[j], "float32")
                Y[bx * block_M + i, j] = T.cast(weighted, dtype)

    return main


def reference(X, W, B):
    """The same in float64."""
    x = X.astype(np.float64)
    x = x - x.mean(axis=1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * W.astype(np.float64) + B.astype(np.float64)
