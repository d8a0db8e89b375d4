"""Kernels and functions that the end-to-end tests of sweeps name in their workload files.  The tests copy this file."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def scale(N, block=64, factor=2.0, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * factor

    return main


@tilelang.jit
def misfit(M):
    @T.prim_func
    def main(A: T.Tensor((M, M), "float16"), B: T.Tensor((M, M), "float16"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((48, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A[0, 0], a)
            T.copy(B[0, 0], b)
            T.gemm(a, b, c)
            T.copy(c, C[0, 0])

    return main


@tilelang.jit
def rank(M):
    @T.prim_func
    def main(A: T.Tensor((M, M), "float16"), B: T.Tensor((M, M), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            T.copy(A[0, 0, 0], a)
            T.copy(a, B[0, 0])

    return main


@tilelang.jit
def hungry(M, block):
    @T.prim_func
    def main(A: T.Tensor((M, M), "float32"), B: T.Tensor((M, M), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((block, block), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, B[0, 0])

    return main


def noted(N, block=64):
    """``B = 2 A`` for any number of rows; each call of the factory is written down."""
    M = T.dynamic("m")
    with open("compiled.txt", "a") as file:
        file.write(f"{N} {block}\n")

    @T.prim_func
    def noted_rows(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, 4), threads=64) as (bx, by):
            for i, j in T.Parallel(4, block):
                B[by * 4 + i, bx * block + j] = A[by * 4 + i, bx * block + j] * 2.0

    return noted_rows


def floored():
    """Rows of a last block that is not full are forgotten."""
    M = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M // 64, threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * 2.0

    return main


def imported(N):
    """Whoever reads this file does not see how the runtime dimensions are called."""
    made = noted(N)
    return made


@tilelang.jit
def product(M, N, K, block=32):
    """Its extents may be numbers or runtime dimensions."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
            A_shared = T.alloc_shared((block, 32), "float16")
            B_shared = T.alloc_shared((32, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * block, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return main


def opaque(N):
    """Whoever reads this file does not see the kernel's tensors."""
    return scale.for_target("cpu")(N)


def raising(M):
    raise ValueError("this factory does not like you")


def exiting(M):
    sys.exit(3)


def aborting(M):
    os.abort()


def hanging(M):
    time.sleep(3600)


def double(A):
    return A.astype(np.float64) * 2.0


def double_rows(A, m, N):
    assert A.shape == (m, N), A.shape
    return A.astype(np.float64) * 2.0


def multiplied(A, B, M):
    assert len(A) == M
    return A.astype(np.float64) @ B


def triple(A):
    return A.astype(np.float64) * 3.0


def broken_reference(A):
    return A.missing


def wrong_shape(A):
    return A[:3]


def ramp(shape, dtype, N):
    return np.linspace(0, N, int(np.prod(shape))).reshape(shape)


def foreign_raising(N):
    def work():
        raise RuntimeError(f"out of luck after {N}")

    return work


def foreign_work(N, log="calls.txt"):
    values = np.arange(N, dtype=np.float64)

    def work():
        with open(log, "a") as file:
            file.write(f"{values.sum():g}\n")

    return work


def foreign_direct(N):
    """Not a factory: the call itself is the work."""
    np.sort(np.arange(N)[::-1])
