"""The matrix product as a library has it: any of the two operands transposed, float32 sums, a result in the operands' type.

One source for every target: on Hopper the compiler makes a producer warp group, products of warp groups and persistent blocks of
it, elsewhere a pipeline of asynchronous copies and ``mma.sync`` (NVIDIA), MFMA (AMD) or packed panels (CPU).
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def gemm(
    M,
    N,
    K,
    transpose_A=False,
    transpose_B=False,
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=4,
    threads=256,
    dtype="float16",
):
    """``C = op(A) @ op(B)``; a transposed operand is stored as (K, M) or (N, K).  ``threads`` count those that compute."""
    a_shape, a_tile = ((K, M), (block_K, block_M)) if transpose_A else ((M, K), (block_M, block_K))
    b_shape, b_tile = ((N, K), (block_N, block_K)) if transpose_B else ((K, N), (block_K, block_N))

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(a_tile, dtype)
            B_shared = T.alloc_shared(b_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if transpose_A:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if transpose_B:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def gemm_few_rows(M, N, K, block_M=16, block_N=64, block_K=128, num_stages=6, threads=128, dtype="float16"):
    """``C = A @ B^T`` of few rows, as ``C^T = B @ A^T``: the rows of B, of which there are many, are those of the instructions."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_N, block_M), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(B_shared, A_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block_N, block_M):
                C[by * block_M + j, bx * block_N + i] = C_local[i, j]

    return main


@tilelang.jit
def gemm_one_row(N, K, block_N=4, block_K=1024, threads=128, dtype="float16"):
    """``C = A @ B^T`` of one row: dot products, without matrix instructions.  Memory alone limits it; every thread has several wide
    loads on their way, and no tile waits for another."""

    @T.prim_func
    def main(A: T.Tensor((1, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((1, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            sums = T.alloc_fragment((block_N, block_K), "float32")
            totals = T.alloc_fragment((block_N,), "float32")
            for i, k in T.Parallel(block_N, block_K):
                sums[i, k] = T.cast(A[0, k], "float32") * T.cast(B[bx * block_N + i, k], "float32")
            for ko in T.serial(T.ceildiv(K, block_K) - 1):
                for i, k in T.Parallel(block_N, block_K):
                    left = T.cast(A[0, (ko + 1) * block_K + k], "float32")
                    sums[i, k] += left * T.cast(B[bx * block_N + i, (ko + 1) * block_K + k], "float32")
            T.reduce_sum(sums, totals, dim=1)
            for i in T.Parallel(block_N):
                C[0, bx * block_N + i] = totals[i]

    return main


def reference(A, B, transpose_A=False, transpose_B=False):
    """The product in float64."""
    left, right = A.astype(np.float64), B.astype(np.float64)
    return (left.T if transpose_A else left) @ (right.T if transpose_B else right)
