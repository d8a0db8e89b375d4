"""Kernels with runtime dimensions."""

from __future__ import annotations

from typing import Any

import tilelang_min.language as T
from tilelang_min.language import PrimFunc


def matmul(N: int, K: int, block: int = 64, block_K: int = 32, threads: int = 128, dtype: str = "float16") -> PrimFunc:
    """``C = A @ B`` for any number of rows."""
    M: Any = T.dynamic("m")

    @T.prim_func
    def matmul_of_m(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return matmul_of_m


def matmul_of_all(block: int = 32, dtype: str = "float16") -> PrimFunc:
    """The same with every dimension known at launch alone: a loop of runtime length, rows of any length."""
    M, N, K = T.dynamic("m, n, k")  # type: ignore[misc]

    @T.prim_func
    def matmul_of_mnk(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            A_shared = T.alloc_shared((block, block), dtype)
            B_shared = T.alloc_shared((block, block), dtype)
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, ko * block], A_shared)
                T.copy(B[ko * block, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.use_swizzle(4)
            T.copy(C_local, C[by * block, bx * block])

    return matmul_of_mnk


def scaled(block: int = 256) -> PrimFunc:
    """``B = 2 A`` for vectors of any length, and the length itself, which a nest may use as a value."""
    n: Any = T.symbolic("n")

    @T.prim_func
    def scaled_by_two(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), L: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2.0
                L[bx * block + i] = n - (bx * block + i)

    return scaled_by_two
