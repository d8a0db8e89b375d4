"""Matrix products for comparison: one element a thread, tiles with plain shared rows, tiles with padded rows.

All compute ``C[M, N] = A[M, K] @ B[K, N]`` with a float32 result.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def naive(M, N, K, block=16, dtype="float32"):
    """No tiles in shared memory: every thread reads a row of A and a column of B for its one element of C."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=block * block) as (bx, by):
            total = T.alloc_fragment((block, block), "float32")
            T.clear(total)
            for k in T.serial(K):
                for i, j in T.Parallel(block, block):
                    total[i, j] += T.cast(A[by * block + i, k], "float32") * T.cast(B[k, bx * block + j], "float32")
            T.copy(total, C[by * block, bx * block])

    return main


@tilelang.jit
def tiled(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16", out_dtype="float32"):
    """Tiles in shared memory with rows one after another, as ``T.rows()`` says: left alone, the compiler would lay them out without
    conflicts.  Rows of 128 bytes start in the same bank, so that reading a column conflicts."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), out_dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            T.annotate_layout({A_shared: T.rows(), B_shared: T.rows()})
            C_local = T.alloc_fragment((block_M, block_N), out_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def padded(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16"):
    """The same with rows shifted by 16 bytes of padding: reads are free of conflicts; asynchronous copies pay for the shift."""
    pad = 16 // np.dtype(dtype).itemsize

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K + pad), dtype)
            B_shared = T.alloc_shared((block_K, block_N + pad), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared[:, 0:block_K])
                T.copy(B[ko * block_K, bx * block_N], B_shared[:, 0:block_N])
                T.gemm(A_shared[:, 0:block_K], B_shared[:, 0:block_N], C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def reference(A, B):
    """The product in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)
