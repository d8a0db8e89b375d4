"""Kernels with reductions and fragments of lower rank, for the tests of both."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang_min.language as T

KINDS = ("sum", "max", "min", "abssum", "absmax")


def numpy_reduce(kind: str, array: Any, axis: int) -> Any:
    """The reduction in float64."""
    values = array.astype(np.float64)
    if kind.startswith("abs"):
        values = np.abs(values)
    return {"sum": values.sum, "max": values.max, "min": values.min}[kind.removeprefix("abs")](axis)


def reduce_tile(
    m: int,
    n: int,
    kind: str = "sum",
    dim: int = 1,
    dtype: str = "float32",
    out: str | None = None,
    threads: int = 128,
    source: str = "fragment",
    target: str = "fragment",
    keep: bool = False,
    clear: bool = True,
) -> Any:
    """One tile, reduced along ``dim``; B holds what the result starts from where it is not cleared."""
    out = out or dtype
    length = m if dim % 2 == 1 else n
    shape = ((m, 1) if dim % 2 == 1 else (1, n)) if keep else (length,)
    function = getattr(T, f"reduce_{kind}")
    alloc_source = getattr(T, f"alloc_{source}")
    alloc_target = getattr(T, f"alloc_{target}")

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((length,), out)):
        with T.Kernel(1, threads=threads):
            tile = alloc_source((m, n), dtype)
            result = alloc_target(shape, out)
            T.copy(A, tile)
            if not clear:
                T.copy(B, result)
            function(tile, result, dim=dim, clear=clear)
            T.copy(result, B)

    return main


def row_sums(m: int, n: int, rows: int, dtype: str = "float32", threads: int = 128) -> Any:
    """Some rows a block; the last block may have fewer."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m,), dtype)):
        with T.Kernel(T.ceildiv(m, rows), threads=threads) as bx:
            tile = T.alloc_fragment((rows, n), dtype)
            total = T.alloc_fragment((rows,), dtype)
            T.copy(A[bx * rows, 0], tile)
            T.reduce_sum(tile, total)
            T.copy(total, B[bx * rows])

    return main


def cube(a: int, b: int, c: int, dim: int, threads: int = 128) -> Any:
    """A fragment of three dimensions, one of them reduced."""
    shape = tuple(extent for place, extent in enumerate((a, b, c)) if place != dim)

    @T.prim_func
    def main(A: T.Tensor((a, b, c), "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((a, b, c), "float32")
            total = T.alloc_fragment(shape, "float32")
            T.copy(A, tile)
            T.reduce_sum(tile, total, dim=dim)
            T.copy(total, B)

    return main


def to_scalar(m: int, n: int, threads: int = 128) -> Any:
    """All elements: along rows, then along the sums of rows."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((m, n), "float32")
            rows = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A, tile)
            T.reduce_sum(tile, rows, dim=1)
            T.reduce_sum(rows, total, dim=0)
            for i, j in T.Parallel(m, n):
                B[i, j] = tile[i, j] / total[0] + rows[i]

    return main


def both_directions(m: int, n: int, threads: int = 128) -> Any:
    """Row maxima and column sums of one tile, both used with it."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((m, n), "float32")
            high = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((1, n), "float32")
            T.copy(A, tile)
            T.reduce_max(tile, high, dim=1)
            T.reduce_sum(tile, total, dim=0)
            for i, j in T.Parallel(m, n):
                tile[i, j] = (tile[i, j] - high[i]) * total[0, j]
            for j in T.Parallel(n):
                total[0, j] = total[0, j] * 0.5 + 1.0
            T.copy(tile, B)
            T.copy(total, C)

    return main


def scaled_rows(m: int, n: int, threads: int = 128) -> Any:
    """A row vector from memory and a shared tile; nothing is reduced."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), W: T.Tensor((m,), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_shared((m, n), "float32")
            scale = T.alloc_fragment((m,), "float32")
            T.copy(A, tile)
            T.copy(W, scale)
            for i in T.Parallel(m):
                scale[i] = scale[i] * 2.0
            for i, j in T.Parallel(m, n):
                B[i, j] = tile[i, j] * scale[i]

    return main


def softmax_rows(m: int, n: int, rows: int, width: int, dtype: str = "float32", threads: int = 128) -> Any:
    """Softmax of whole rows; columns from ``n`` to ``width`` do not exist."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(m, rows), threads=threads) as bx:
            x = T.alloc_fragment((rows, width), "float32")
            high = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            for i, j in T.Parallel(rows, width):
                x[i, j] = T.if_then_else(j < n, T.cast(A[bx * rows + i, j], "float32"), -T.infinity("float32"))
            T.reduce_max(x, high, dim=1)
            for i, j in T.Parallel(rows, width):
                x[i, j] = T.exp(x[i, j] - high[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, width):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[bx * rows, 0])

    return main


def product_epilogue(m: int, n: int, k: int, threads: int = 128, dtype: str = "float16") -> Any:
    """Softmax over the rows of a product, with a second tile that meets the row vectors of its accumulator."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((k, n), dtype),
        X: T.Tensor((m, 24), "float32"),
        C: T.Tensor((m, n), "float32"),
        D: T.Tensor((m, 24), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((m, k), dtype)
            b = T.alloc_shared((k, n), dtype)
            c = T.alloc_fragment((m, n), "float32")
            x = T.alloc_fragment((m, 24), "float32")
            high = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((m,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.reduce_max(c, high, dim=1)
            for i, j in T.Parallel(m, n):
                c[i, j] = T.exp(c[i, j] - high[i])
            T.reduce_sum(c, total, dim=1)
            for i, j in T.Parallel(m, n):
                c[i, j] = c[i, j] / total[i]
            T.copy(c, C)
            T.copy(X, x)
            for i, j in T.Parallel(m, 24):
                x[i, j] = x[i, j] * high[i]
            T.copy(x, D)

    return main
