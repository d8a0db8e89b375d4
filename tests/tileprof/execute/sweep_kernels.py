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
