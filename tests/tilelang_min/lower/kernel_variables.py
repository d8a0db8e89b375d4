"""Kernels with variables, vectorised loops, panels of blocks and the functions of mathematics that came with them."""

from __future__ import annotations

from typing import Any

import tilelang_min.language as T


def functions(n: int, dtype: str = "float32") -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                x = A[bx * 64 + i]
                y = T.abs(x) + 0.5
                B[bx * 64 + i] = T.tanh(x) + T.sigmoid(x) * 2.0 + T.floor(x) - T.ceil(x) + T.log2(y)
                C[bx * 64 + i] = T.pow(y, x) + y**1.5

    return main


def variables(n: int) -> Any:
    """A sum that is halved whenever it grows too large; branches on variables, one with barriers in it."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            total = T.alloc_var("float32", 1.0)
            count = T.alloc_var("int32", init=0)
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(8):
                total += A[k]
                if total > 1.5:
                    count += 1
                    total = total * 0.5
                    for i in T.Parallel(64):
                        S[63 - i] = total
            kept = total
            total = 0.0
            if count == 0:
                T.fill(S, -1.0)
            for i in T.Parallel(64):
                scaled = A[bx * 64 + i] * kept
                B[bx * 64 + i] = scaled + count + total + S[i]

    return main


def variables_reference(A: Any) -> tuple[float, int, float]:
    """The kept sum, the count and the value of S."""
    total, count, tile = 1.0, 0, -1.0
    for k in range(8):
        total += float(A[k])
        if total > 1.5:
            count += 1
            total *= 0.5
            tile = total
    return total, count, tile


def vectorized(n: int) -> Any:
    """T.vectorized as the innermost dimension of a nest, and outside of one."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 256), threads=64) as bx:
            first = T.alloc_local((4,), "float32")
            for v in T.vectorized(4):
                first[v] = A[v]
            for i in T.Parallel(64):
                for v in T.vectorized(4):
                    B[bx * 256 + i * 4 + v] = A[bx * 256 + i * 4 + v] * 2.0 + first[3]

    return main


def panels(m: int, n: int, panel: int, order: str = "row") -> Any:
    """Blocks above the diagonal double their tile: what a block does depends on which one it is."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=64) as (bx, by):
            T.use_swizzle(panel, order=order)
            S = T.alloc_shared((8, 32), "float32")
            T.copy(A[by * 8, bx * 32], S)
            if bx < by:
                for i, j in T.Parallel(8, 32):
                    S[i, j] = S[i, j] * 2.0
            T.copy(S, B[by * 8, bx * 32])

    return main


def guarded_division(n: int) -> Any:
    """A division that a condition keeps from dividing by zero; conditions that are known and that are not."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), D: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                at = bx * 64 + i
                quotient = T.if_then_else(D[at] != 0, A[at] // D[at], -1)
                B[at] = T.if_then_else(i < 64, quotient, 1000) + T.if_then_else(at < 100, 10, 20)

    return main


def counted_bools(n: int) -> Any:
    """Sums of bools are int32, as in Python."""

    @T.prim_func
    def main(A: T.Tensor((n,), "bool"), B: T.Tensor((n,), "int32"), C: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                B[i] = A[i] + 2
            for i in T.Parallel(n):
                C[i] = A[i] + A[i] - 3 * A[i]

    return main


def long_loop(n: int, times: int) -> Any:
    """A loop whose iterations nobody wants written out."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for _i in range(times):
                B[0] = A[0]

    return main
