"""Kernels without a factory, in TileLang's eager style."""

from __future__ import annotations

import math
from typing import Any

import tilelang_min as tilelang
import tilelang_min.language as T

ROWS = T.dynamic("rows")


@tilelang.jit(target="cpu")
def matmul(A, B, block_M: int = 32, block_N: int = 32, block_K: int = 32, dtype="float16", transposed: bool = False):
    """``A @ B``, or ``A @ B.T``."""
    M, N, K = T.const("M, N, K")
    assert K % 8 == 0, "K must be a multiple of 8"
    B_shape = (N, K) if transposed else (K, N)
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor(B_shape, dtype)
    C = T.empty((M, N), "float32")
    blocks = T.ceildiv(N, block_N), T.ceildiv(M, block_M)
    with T.Kernel(blocks[0], blocks[1], threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K) if transposed else (block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            if transposed:
                T.copy(B[bx * block_N, ko * block_K], B_shared)
            else:
                T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=transposed)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit(target="cpu")
def statistics(X, block: int = 8):
    """Sums and largest elements of rows, returned in another order than they are made."""
    M, N = T.const("M N")
    X: T.Tensor((M, N), "float32")
    sums = T.empty(M, dtype="float32")
    largest = T.empty([M])

    @T.macro
    def load(tile, bx):
        T.copy(X[bx * block, 0], tile)

    with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
        tile = T.alloc_fragment((block, N), "float32")
        row = T.alloc_fragment((block,), "float32")
        load(tile, bx)
        T.reduce_sum(tile, row, dim=1)
        T.copy(row, sums[bx * block])
        T.reduce_max(tile, row, dim=1)
        T.copy(row, largest[bx * block])
    return largest, sums


@tilelang.jit(target="cpu")
def scale(X, Y, factor=2.0, *, bias=None, block: int = 128):
    """``X * factor + bias`` into Y: the caller's tensor, so nothing is returned; bias may be left out."""
    N = T.const("N")
    X: T.Tensor[N, T.float32]
    Y: T.Tensor[N, T.float32]
    if bias is not None:
        bias: T.Tensor[[N], T.float32]
    width = math.gcd(block, 64) if block > N else block

    with T.Kernel(T.ceildiv(N, width), threads=64) as bx:
        for i in T.Parallel(width):
            if bias is not None:
                Y[bx * width + i] = X[bx * width + i] * factor + bias[bx * width + i]
            else:
                Y[bx * width + i] = X[bx * width + i] * factor


@tilelang.jit(target="cpu")
def rows_of_any_number(A, B, block: int = 16):
    """``A + B[row 0]``: one kernel for every number of rows."""
    M = T.dynamic("m")
    N = T.const("N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((1, N), "float32")
    C = T.empty((M, N), "float32")
    blocks = T.ceildiv(M, block)
    with T.Kernel(T.ceildiv(N, block), blocks, threads=64) as (bx, by):
        for i, j in T.Parallel(block, block):
            C[by * block + i, bx * block + j] = A[by * block + i, bx * block + j] + B[0, bx * block + j]
    return C


@T.macro
def scaled_rows(X, Y, factor, block):
    """A whole kernel, for functions that differ in their annotations alone."""
    M, N = X.shape
    with T.Kernel(M, T.ceildiv(N, block), threads=32) as (row, bx):
        for j in T.Parallel(block):
            Y[row, bx * block + j] = X[row, bx * block + j] * factor


@tilelang.jit(target="cpu")
def by_macro(X, M, N, factor: T.float32 = 2):
    """Dimensions that are arguments."""
    M: T.int32
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), X.dtype)
    scaled_rows(X, Y, factor, block=16)
    return Y


@tilelang.jit(target="cpu")
def by_macro_at_launch(X):
    """Dimensions of the launch."""
    M, N = T.dynamic("M, N")
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), X.dtype)
    scaled_rows(X, Y, 3, block=16)
    return Y


@tilelang.jit(target="cpu")
def numbers(M, start=0):
    """No tensor at all goes in."""
    A = T.empty((M,), T.int32)
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        for i in T.Parallel(32):
            A[bx * 32 + i] = bx * 32 + i + start
    return A


@tilelang.jit(target="cpu")
def annotated_above(A: T.Tensor((ROWS, 32), "float32"), factor: Any = 3):
    """A tensor annotated where the parameters stand, as text here."""
    B = T.empty((ROWS, 32), "float32")
    with T.Kernel(ROWS, threads=32) as bx:
        for j in T.Parallel(32):
            B[bx, j] = A[bx, j] * factor
    return B
