"""Operations and least bytes of kernels, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx

import tilelang_min.language as T
from tilelang_min.analysis.points import NotCountable, count_points, evaluate
from tilelang_min.analysis.work import bytes_min, flops
from tilelang_min.frontend import parse


def product(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int] = (32, 32, 16),
    stages: int = 2,
    ta: bool = False,
    tb: bool = False,
) -> Any:
    bm, bn, bk = tile

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if ta else (m, k), "float16"),
        B: T.Tensor((n, k) if tb else (k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=64) as (bx, by):
            S = T.alloc_shared((bk, bm + 8) if ta else (bm, bk + 8), "float16")
            R = T.alloc_shared((bn, bk) if tb else (bk, bn), "float16")
            F = T.alloc_fragment((bm, bn), "float32")
            T.clear(F)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if ta:
                    T.copy(A[ko * bk, by * bm], S[:, 0:bm])
                else:
                    T.copy(A[by * bm, ko * bk], S[:, 8 : bk + 8])
                if tb:
                    T.copy(B[bx * bn, ko * bk], R)
                else:
                    T.copy(B[ko * bk, bx * bn], R)
                if ta:
                    T.gemm(S[:, 0:bm], R, F, transpose_A=True, transpose_B=tb)
                else:
                    T.gemm(S[:, 8 : bk + 8], R, F, transpose_B=tb)
            T.copy(F, C[by * bm, bx * bn])

    return parse(main)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (1024, 1024, 1024), (1, 1, 1), (100, 70, 33), (1000, 7, 129)])
def test_matrix_products(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    """2 m n k, whatever the tiles leave over; the operands' type; each tensor crosses the interface once."""
    program = product(m, n, k, ta=ta, tb=tb)
    assert flops(program) == {"float16": 2 * m * n * k}
    assert bytes_min(program) == 2 * (m * k + k * n) + 4 * m * n


def test_products_without_tiles() -> None:
    @T.prim_func
    def main(A: T.Tensor((50, 20), "float16"), B: T.Tensor((20, 30), "float16"), C: T.Tensor((50, 30), "float32")):
        with T.Kernel(2, 4, threads=256) as (bx, by):
            F = T.alloc_fragment((16, 16), "float32")
            T.clear(F)
            for k in T.serial(24):
                for i, j in T.Parallel(16, 16):
                    F[i, j] += T.cast(A[by * 16 + i, k], "float32") * T.cast(B[k, bx * 16 + j], "float32")
            T.copy(F, C[by * 16, bx * 16])

    program = parse(main)
    assert flops(program) == {"float32": 2 * 50 * 30 * 20}
    assert bytes_min(program) == 2 * (50 * 20 + 20 * 30) + 4 * 50 * 30


@pytest.mark.parametrize(("m", "n"), [(32, 128), (33, 129), (1, 7), (1000, 1024)])
def test_element_wise(m: int, n: int) -> None:
    """max(s * a + b, 0): a product, a sum and a maximum for each element that exists; two reads and a write."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float16"), B: T.Tensor((m, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 32), threads=128) as (bx, by):
            for i, j in T.Parallel(32, 128):
                row = by * 32 + i
                column = bx * 128 + j
                scaled = A[row, column] * 0.5
                C[row, column] = T.max(scaled + B[row, column], 0.0)

    program = parse(main)
    assert flops(program) == {"float16": 3 * m * n}
    assert bytes_min(program) == 3 * 2 * m * n


def test_functions_count_once_and_conversions_not_at_all() -> None:
    @T.prim_func
    def main(A: T.Tensor((10,), "float16"), B: T.Tensor((10,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(16):
                B[i] = T.exp(T.cast(A[i], "float32")) / 2.0 - T.cast(i * 3 + 1, "float32")
            B[0] = B[1] + T.sqrt(B[2])

    assert flops(parse(main)) == {"float32": 3 * 10 + 2}


def test_only_what_runs_counts() -> None:
    """Branches on block and loop indices, loops whose length depends on others."""

    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, 3, threads=64) as (bx, by):
            if bx == 1 and by > 0:  # 2 of 12 blocks
                for i in T.Parallel(64):
                    A[bx, i] = A[bx, i] + 1.0
            else:
                for _ in T.serial(5):
                    for i in T.Parallel(64):
                        A[bx, i] = A[bx, i] * 2.0
            for k in T.serial(bx + 1):  # 1 + 2 + 3 + 4 for each of 3
                for j in range(k, bx + 1):  # triangles: 1, 3, 6, 10
                    for i in T.Parallel(64):
                        A[j, i] = A[j, i] - 1.0
            for _ in range(3, 3):
                for i in T.Parallel(64):
                    A[bx, i] = A[bx, i] - 1.0

    assert flops(parse(main)) == {"float32": 64 * (2 * 1 + 10 * 5 + 3 * (1 + 3 + 6 + 10))}


def test_branches_inside_of_nests() -> None:
    """An if on indices is evaluated, of what a tensor holds nothing is known; names are computed anyhow."""

    @T.prim_func
    def main(A: T.Tensor((30, 40), "float32"), B: T.Tensor((30, 40), "float32")):
        with T.Kernel(2, threads=64) as bx:
            kept = T.alloc_fragment((16, 40), "float32")
            T.clear(kept)
            for i, j in T.Parallel(16, 40):
                if j > i and bx == 0:
                    B[bx * 16 + i, j] = A[bx * 16 + i, j] * 2.0
                else:
                    kept[i, j] = A[bx * 16 + i, j] + 1.0
            for i, j in T.Parallel(16, 40):
                x = A[bx * 16 + i, j] + 1.0
                if A[bx * 16 + i, j] > 0.0:
                    kept[i, j] = x
                    if j < 8:
                        B[bx * 16 + i, j] = x + kept[i, j]

    upper = sum(39 - i for i in range(16))
    everywhere = 30 * 40
    assert flops(parse(main)) == {"float32": upper + (everywhere - upper) + everywhere + 30 * 8}


def test_products_under_a_condition_and_of_tiles_made_otherwise() -> None:
    @T.prim_func
    def main(A: T.Tensor((40, 40), "float32"), C: T.Tensor((40, 40), "float32")):
        with T.Kernel(2, 2, threads=64) as (bx, by):
            S = T.alloc_shared((32, 32), "float32")
            R = T.alloc_shared((32, 32), "float32")
            F = T.alloc_fragment((32, 32), "float32")
            T.clear(F)
            T.copy(A[by * 32, 0], S)
            for i, j in T.Parallel(32, 32):
                R[i, j] = S[j, i]
            if bx <= by:  # 3 of 4 blocks: (0, 0), (0, 1), (1, 1)
                T.gemm(S, R, F)
            T.copy(F, C[by * 32, bx * 32])

    # Rows of A that exist: 32 for by = 0, 8 for by = 1.  Columns of R are not known to come from a tensor.
    assert flops(parse(main)) == {"float32": 2 * 32 * 32 * (32 + 8 + 8)}


def test_tensors_that_are_read_and_written_count_twice_unused_ones_not_at_all() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), rows: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[rows[i]] = A[rows[i]] + 1.0

    assert bytes_min(parse(main)) == 2 * 256 + 256


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-3, 12), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_counting_is_counting(nx: int, ny: int, bound: int, divisor: int, rest: int) -> None:
    """Against a loop over all points; a variable that no condition names only multiplies."""
    x, y, z = (tirx.Var(name, "int32") for name in "xyz")
    conditions = [tirx.And(x + y * 2 < bound, tirx.floormod(x, divisor) <= rest), tirx.Or(y > 1, tirx.EQ(x, 0))]
    expected = sum(
        a + b * 2 < bound and a % divisor <= rest and (b > 1 or a == 0) for a in range(2, 2 + nx) for b in range(ny)
    )
    assert count_points({x: (2, nx), y: (0, ny), z: (5, 3)}, conditions) == expected * 3


def test_what_cannot_be_counted_holds() -> None:
    x = tirx.Var("x", "int32")
    tensor = tirx.decl_buffer((8,), "int32", "rows")
    assert count_points({x: (0, 8)}, [tensor[x] < 3, x < 5]) == 5
    with pytest.raises(NotCountable):
        evaluate(tensor[x], {int(x.__chandle__()): np.arange(3)})
    with pytest.raises(NotCountable):
        evaluate(x, {})
    wide = tirx.Var("wide", "int32")
    assert count_points({wide: (0, 1 << 23)}, [wide < 5]) == 1 << 23  # too many to look at one by one


@pytest.mark.parametrize(("m", "n"), [(32, 64), (33, 70)])
def test_reductions(m: int, n: int) -> None:
    """An operation for each element of the matrix, in the type of the sum; exponentials are one each."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float16"), B: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 16), threads=64) as bx:
            S = T.alloc_shared((16, 32), "float16")
            total = T.alloc_fragment((16,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(n, 32)):
                T.copy(A[bx * 16, k * 32], S)
                T.reduce_sum(S, total, dim=1, clear=False)
            for i in T.Parallel(16):
                B[bx * 16 + i] = T.exp(total[i])

    assert flops(parse(main)) == {"float32": m * n + m}
