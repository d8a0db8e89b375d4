"""Grouped matrix product: one launch multiplies groups of rows of different sizes, each by a matrix of its own."""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def grouped(M, N, K, groups, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16"):
    """``C[r] = A[r] @ B[g]`` for the rows r of group g, ``Offsets[g] <= r < Offsets[g + 1]``.

    How many rows a group has is known at launch alone.  Each has whole tiles of its own, so that there are at most
    ``M // block_M + groups`` of them; a block counts through the groups to find its tile, and the blocks left over do nothing.
    Rows of other groups at the end of a tile are multiplied but not written.  Offsets rise from 0 to at most M.
    """

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), M // block_M + groups, threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            group = T.alloc_var("int32", 0)
            row = T.alloc_var("int32", 0)
            stop = T.alloc_var("int32", 0)
            seen = T.alloc_var("int32", 0)
            for g in T.serial(groups):
                tiles = T.ceildiv(Offsets[g + 1] - Offsets[g], block_M)
                if seen <= by and by < seen + tiles:
                    group = g
                    row = Offsets[g] + (by - seen) * block_M
                    stop = Offsets[g + 1]
                seen += tiles
            if row < stop:
                T.clear(C_local)
                for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[row, ko * block_K], A_shared)
                    T.copy(B[group, ko * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                for i, j in T.Parallel(block_M, block_N):
                    C[T.if_then_else(row + i < stop, row + i, M), bx * block_N + j] = C_local[i, j]

    return main


def reference(A, B, Offsets):
    """The same in float64; rows that no group has are zero."""
    made = np.zeros((A.shape[0], B.shape[2]))
    for group, matrix in enumerate(B.astype(np.float64)):
        rows = slice(Offsets[group], Offsets[group + 1])
        made[rows] = A[rows].astype(np.float64) @ matrix
    return made


def offsets(shape, M, rng):
    """Random places at which groups begin: some groups are empty, some are large."""
    cuts = np.sort(rng.integers(0, M + 1, shape[0] - 2))
    return np.array([0, *cuts, M], np.int32)
