"""Kernels whose nests write elements again, and divide, where conditions hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import tilelang_min.language as T


def guarded_divisions(n: int) -> Any:
    """Divisions that a condition keeps from dividing by zero: in names, variables, conditions and registers of a nest."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), D: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            kept = T.alloc_fragment((64,), "int32")
            T.copy(A[bx * 64], kept)
            for i in T.Parallel(64):
                d = D[bx * 64 + i]
                if d != 0:
                    x = A[bx * 64 + i] // d
                    kept[i] = kept[i] % d
                    if x > 0 and 7 % A[bx * 64 + i] == 1:
                        y = T.alloc_var("int32", init=100 // x)
                        y += 1
                        kept[i] = y
                if i == 0 or D[bx * 64] == 0 or i // D[bx * 64] > 9:
                    kept[i] -= 1000
            T.copy(kept, B[bx * 64])

    return main


def divisions_reference(a: Any, d: Any, b: Any) -> tuple[Any]:
    """What :func:`guarded_divisions` leaves."""
    out = a.copy()
    for place, (x, y) in enumerate(zip(a, d, strict=True)):
        first, i = d[place // 64 * 64], place % 64
        if y:
            out[place] = 100 // (x // y) + 1 if x // y > 0 and 7 % x == 1 else x % y
        if i == 0 or first == 0 or i // first > 9:
            out[place] -= 1000
    return (out,)


def written_again(n: int) -> Any:
    """Elements that a nest writes, reads, and writes again where a condition holds, in vectors as long as it can."""

    @T.prim_func
    def main(A: T.Tensor((16, n), "float32"), B: T.Tensor((16, n), "float32"), C: T.Tensor((16, n), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_fragment((16, n), "float32")
            kept = T.alloc_shared((16, n), "float32")
            T.copy(A, tile)
            for i, j in T.Parallel(16, n):
                kept[i, j] = 1.0
                B[i, j] = tile[i, j]
                if tile[i, j] > 0.0:
                    B[i, j] = 2.0
                    kept[i, j] = 3.0
                tile[i, j] += kept[i, j] + B[i, j]
                B[i, j] = B[i, j] * 2.0
            for i, j in T.Parallel(16, n):
                C[i, j] = tile[i, j] + kept[i, j]

    return main


def again_reference(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """What :func:`written_again` leaves."""
    kept, out = np.where(a > 0, 3, 1), np.where(a > 0, 2, a)
    return out * 2, a + out + 2 * kept


def lengths_in_memory(steps: int) -> Any:
    """A pipeline that starts and ends where memory says; its tiles are large enough for all that pipelines of constants get."""

    @T.prim_func
    def main(
        A: T.Tensor((128, steps * 64), "float16"),
        B: T.Tensor((steps * 64, 64), "float16"),
        Bounds: T.Tensor((3,), "int32"),
        C: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, 2, threads=128) as (_, by):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(Bounds[by], Bounds[by + 1], num_stages=3):
                T.copy(A[by * 64, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, 0])

    return main


def lengths_reference(a: Any, b: Any, bounds: Any, c: Any) -> tuple[Any]:
    """Each half of the rows with its own part of K."""
    parts = [slice(64 * low, 64 * high) for low, high in pairwise(bounds)]
    wide = a.astype("float64"), b.astype("float64")
    return (np.concatenate([wide[0][64 * y : 64 * y + 64, part] @ wide[1][part] for y, part in enumerate(parts)]),)


def sizes_in_conditions() -> Any:
    """Runtime dimensions in an if of a nest and in bounds with a step, computed in the kernel's own text."""

    @T.prim_func
    def main(A: T.Tensor((T.dynamic("m"), 40), "float32"), B: T.Tensor((T.dynamic("m"), 40), "float32")):
        with T.Kernel(T.ceildiv(T.dynamic("m"), 16), threads=64) as bx:
            S = T.alloc_shared((16, 40), "float32")
            F = T.alloc_fragment((16, 40), "float32")
            T.clear(F)
            for k in T.Pipelined(0, T.dynamic("m") // 16, 2, num_stages=2):
                T.copy(A[k * 16, 0], S)
                for i, j in T.Parallel(16, 40):
                    if bx * 16 + i < T.dynamic("m") - 3 and j < T.dynamic("m"):
                        F[i, j] += S[i, j]
                    elif k > 0:
                        F[i, j] = S[15 - i, j]
            for i, j in T.Parallel(16, 40):
                if T.dynamic("m") > 20 or bx == 0:
                    B[bx * 16 + i, j] = F[i, j]

    return main


def sizes_reference(a: Any, b: Any) -> Any:
    """What :func:`sizes_in_conditions` leaves."""
    m, out = len(a), b.copy()
    tiles = np.pad(a, ((0, 16), (0, 0)))
    for row, column in np.ndindex(b.shape):
        i, value = row % 16, 0.0
        for k in range(0, m // 16, 2):
            if row < m - 3 and column < m:
                value += tiles[k * 16 + i, column]
            elif k > 0:
                value = tiles[k * 16 + 15 - i, column]
        if m > 20 or row < 16:
            out[row, column] = value
    return out
