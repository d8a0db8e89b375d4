"""Small kernels, each with one fault, and sound ones beside them; compiled for an A100, launched nowhere."""

from __future__ import annotations

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit(target="cuda:sm_80")
def transpose(N=1024, block=32):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(N // block, N // block, threads=256) as (bx, by):
            for i, j in T.Parallel(block, block):
                B[bx * block + j, by * block + i] = A[by * block + i, bx * block + j]

    return main


@tilelang.jit(target="cuda:sm_80")
def scale(N=4096, block=64):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(N // block, N // block, threads=256) as (bx, by):
            for i, j in T.Parallel(block, block):
                B[by * block + i, bx * block + j] = A[by * block + i, bx * block + j] * 2.0

    return main


@tilelang.jit(target="cuda:sm_80")
def product(M=2048, N=2048, K=256, block=128, block_K=32, num_stages=2, threads=128, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(K // block_K, num_stages=num_stages):
                T.copy(A[by * block, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return main


@tilelang.jit(target="cuda:sm_80")
def two_products(M=1024, N=1024, K=128, block=96, threads=64):
    """Two accumulators of 144 registers a thread each."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block, 32), "float16")
            B_shared = T.alloc_shared((32, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            D_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            T.clear(D_local)
            for ko in T.serial(K // 32):
                T.copy(A[by * block, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
                T.copy(B[ko * 32, by * block], B_shared)
                T.gemm(A_shared, B_shared, D_local)
            T.copy(C_local, C[by * block, bx * block])
            T.copy(D_local, D[by * block, bx * block])

    return main
