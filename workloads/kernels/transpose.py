"""Transposition of a matrix through a shared tile: both sides of global memory see whole rows."""

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def transpose(M, N, block_M=64, block_N=64, threads=256, dtype="float16"):
    """``B = A.T``; a tile comes in by rows of A and leaves by rows of B."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            tile = T.alloc_shared((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], tile)
            for j, i in T.Parallel(block_N, block_M):
                B[bx * block_N + j, by * block_M + i] = tile[i, j]

    return main


def reference(A):
    """The same elements, moved."""
    return A.T.copy()
