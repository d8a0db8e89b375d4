"""Ten small kernels whose generated text is kept in tests/golden.

They stand in a file of their own because line numbers are part of that text: append to it, and leave the lines as they are.
All are ragged: no extent is a multiple of its tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilelang_min.language as T

SIZE = 44


def naive() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((SIZE, 40), "float32"), B: T.Tensor((40, SIZE), "float32"), C: T.Tensor((SIZE, SIZE), "float32")
    ):
        with T.Kernel(T.ceildiv(SIZE, 16), T.ceildiv(SIZE, 16), threads=256) as (bx, by):
            total = T.alloc_fragment((16, 16), "float32")
            T.clear(total)
            for k in T.serial(40):
                for i, j in T.Parallel(16, 16):
                    total[i, j] += A[by * 16 + i, k] * B[k, bx * 16 + j]
            T.copy(total, C[by * 16, bx * 16])

    return main


def _product(dtype: str, accumulator: str, stages: int = 2) -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE, 64), dtype), B: T.Tensor((64, SIZE), dtype), C: T.Tensor((SIZE, SIZE), accumulator)):
        with T.Kernel(T.ceildiv(SIZE, 32), T.ceildiv(SIZE, 32), threads=64) as (bx, by):
            A_shared = T.alloc_shared((32, 32), dtype)
            B_shared = T.alloc_shared((32, 32), dtype)
            C_local = T.alloc_fragment((32, 32), accumulator)
            T.clear(C_local)
            for ko in T.Pipelined(2, num_stages=stages):
                T.copy(A[by * 32, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 32, bx * 32])

    return main


def product_float16() -> Any:
    return _product("float16", "float32")


def product_float32() -> Any:
    return _product("float32", "float32")


def product_int8() -> Any:
    return _product("int8", "int32", stages=1)


def bias_relu() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((SIZE, 32), "bfloat16"),
        B: T.Tensor((SIZE, 32), "bfloat16"),
        bias: T.Tensor((SIZE,), "float32"),
        C: T.Tensor((SIZE, SIZE), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(SIZE, 32), T.ceildiv(SIZE, 32), threads=64) as (bx, by):
            A_shared = T.alloc_shared((32, 32), "bfloat16")
            B_shared = T.alloc_shared((32, 32), "bfloat16")
            acc = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, 0], A_shared)
            T.copy(B[bx * 32, 0], B_shared)
            T.clear(acc)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
            for i, j in T.Parallel(32, 32):
                acc[i, j] = T.max(acc[i, j] + bias[bx * 32 + j], 0.0)
            T.copy(acc, C[by * 32, bx * 32])

    return main


def scale_add() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((SIZE, SIZE), "float16"), B: T.Tensor((SIZE, SIZE), "float16"), C: T.Tensor((SIZE, SIZE), "float16")
    ):
        with T.Kernel(1, T.ceildiv(SIZE, 4), threads=64) as (bx, by):
            for i, j in T.Parallel(4, 64):
                C[by * 4 + i, bx * 64 + j] = T.max(A[by * 4 + i, bx * 64 + j] * 0.5 + B[by * 4 + i, bx * 64 + j], 0.0)

    return main


def softmax() -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE, 128), "float32"), B: T.Tensor((SIZE, 128), "float32")):
        with T.Kernel(T.ceildiv(SIZE, 8), threads=64) as bx:
            x = T.alloc_fragment((8, 128), "float32")
            high = T.alloc_fragment((8,), "float32")
            total = T.alloc_fragment((8,), "float32")
            T.copy(A[bx * 8, 0], x)
            T.reduce_max(x, high, dim=1)
            for i, j in T.Parallel(8, 128):
                x[i, j] = T.exp(x[i, j] - high[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(8, 128):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[bx * 8, 0])

    return main


def column_sums() -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE, SIZE), "float32"), B: T.Tensor((SIZE,), "float32")):
        with T.Kernel(T.ceildiv(SIZE, 32), threads=64) as bx:
            tile = T.alloc_shared((16, 32), "float32")
            total = T.alloc_fragment((32,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(SIZE, 16), num_stages=2):
                T.copy(A[k * 16, bx * 32], tile)
                T.reduce_sum(tile, total, dim=0, clear=False)
            T.copy(total, B[bx * 32])

    return main


def transpose() -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE, SIZE), "float32"), B: T.Tensor((SIZE, SIZE), "float32")):
        with T.Kernel(T.ceildiv(SIZE, 32), T.ceildiv(SIZE, 32), threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], tile)
            for j, i in T.Parallel(32, 32):
                B[bx * 32 + j, by * 32 + i] = tile[i, j]

    return main


def prefix() -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE, 64), "int32"), B: T.Tensor((SIZE, 64), "int32")):
        with T.Kernel(SIZE, threads=64) as bx:
            line = T.alloc_shared((64,), "int32")
            T.copy(A[bx, 0], line)
            count = T.alloc_var("int32")
            count = 0
            for k in T.serial(64):
                count = count + line[k]
                if k % 2 == 1:
                    line[k] = count
            T.copy(line, B[bx, 0])

    return main


KERNELS: dict[str, Callable[[], Any]] = {
    made.__name__: made
    for made in (
        naive,
        product_float16,
        product_float32,
        product_int8,
        bias_relu,
        scale_add,
        softmax,
        column_sums,
        transpose,
        prefix,
    )
}
