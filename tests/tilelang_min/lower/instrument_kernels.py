"""Kernels of the tests of instrumented builds."""

from __future__ import annotations

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def product(M, N, K, bm=64, bn=64, bk=32, threads=128, stages=2):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N // bn, M // bm, threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bk, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(K // bk, num_stages=stages):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * bm, bx * bn])

    return main


@tilelang.jit
def scale(N):
    @T.prim_func
    def main(tl_cycles: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N, threads=32) as bx:
            for i in T.Parallel(1):
                B[bx + i] = tl_cycles[bx + i] * 2.0

    return main
