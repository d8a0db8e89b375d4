"""An element-wise kernel: a scaled sum, cut off at zero."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def scale_add_relu(M, N, block_M=32, block_N=128, threads=256, scale=0.5, dtype="float32"):
    """``C = max(scale * A + B, 0)``; the compiler picks vectors and threads for the nest."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row = by * block_M + i
                column = bx * block_N + j
                C[row, column] = T.max(A[row, column] * scale + B[row, column], 0.0)

    return main


def reference(A, B):
    """The same in float64, for the default scale."""
    return np.maximum(0.5 * A.astype(np.float64) + B.astype(np.float64), 0.0)
