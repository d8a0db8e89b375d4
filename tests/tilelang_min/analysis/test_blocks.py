"""One block of each class counts for all: against simulating every block."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.analysis import blocks
from tilelang_min.analysis.blocks import BlockClass, block_classes, classify
from tilelang_min.analysis.intervals import Interval, Unknown, interval, truth
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import random_arguments
from tilelang_min.simulate import simulate

KERNELS: dict[str, tuple[Any, list[tuple[tuple[int, int, int], int]]]] = {}
"""Kernel, and its classes: representative and number of blocks."""


def classes(*expected: tuple[tuple[int, int, int], int]) -> Any:
    def enter(function: Any) -> Any:
        KERNELS[function.__name__] = (function(), list(expected))
        return function

    return enter


def copy(m: int, n: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=64) as (bx, by):
            S = T.alloc_shared((8, 33), "float32")
            T.copy(A[by * 8, bx * 32], S[:, 0:32])
            for i, j in T.Parallel(8, 32):
                B[by * 8 + i, bx * 32 + j] = S[7 - i, j]

    return main


@classes(((0, 0, 0), 12))
def even() -> Any:
    return copy(32, 96)


@classes(((0, 0, 0), 9), ((3, 0, 0), 3), ((0, 3, 0), 3), ((3, 3, 0), 1))
def ragged_in_both() -> Any:
    return copy(30, 100)


@classes(((0, 0, 0), 12), ((0, 3, 0), 4))
def ragged_in_one() -> Any:
    return copy(30, 128)


@classes(((0, 0, 0), 2), ((2, 0, 0), 2))
def read_by_some() -> Any:
    """The only condition is inside an expression: half of the blocks read A."""

    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((8, 128), "float32")):
        with T.Kernel(4, threads=64) as bx:
            for i, j in T.Parallel(8, 32):
                B[i, bx * 32 + j] = T.if_then_else(bx < 2, A[i, bx * 32 + j], 1.0)

    return main


@classes(((0, 0, 0), 1), ((1, 0, 0), 2), ((3, 0, 0), 1))
def halo() -> Any:
    """A window that looks before the first and behind the last element."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((66,), "float32")
            T.copy(A[bx * 64 - 1], S)
            for i in T.Parallel(64):
                B[bx * 64 + i] = S[i] + S[i + 2]

    return main


@classes(((0, 0, 0), 1), ((1, 0, 0), 5), ((0, 1, 0), 2), ((1, 1, 0), 1))
def branches() -> Any:
    """The first column, told apart by the condition behind it too; a triangle; the rest."""

    @T.prim_func
    def main(A: T.Tensor((3, 96), "float32")):
        with T.Kernel(3, 3, threads=64) as (bx, by):
            S = T.alloc_shared((32,), "float32")
            if bx == 0:
                T.clear(S)
            elif bx + by > 2 or by == 0:
                T.copy(A[by, bx * 32 : bx * 32 + 32], S)
                T.copy(S, A[by, bx * 32 : bx * 32 + 32])

    return main


@classes(((0, 0, 0), 2), ((1, 0, 0), 2), ((2, 0, 0), 2))
def loops_of_different_lengths() -> Any:
    @T.prim_func
    def main(A: T.Tensor((3, 64), "float32"), B: T.Tensor((2, 64), "float32")):
        with T.Kernel(3, 2, threads=64) as (bx, by):
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(bx + 1):
                T.copy(A[k, 0:64], S)
                for i in T.Parallel(64):
                    B[by, i] = S[63 - i]

    return main


@classes(((0, 0, 0), 4))
def places_from_a_tensor() -> Any:
    """Guards depend on data, which tells no blocks apart."""

    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), rows: T.Tensor((4,), "int32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(4, threads=64) as bx:
            for i in T.Parallel(32):
                B[bx, i] = A[rows[bx], i]

    return main


def product(m: int, n: int, k: int, dtype: str, stages: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=64) as (bx, by):
            A_shared = T.alloc_shared((32, 40), dtype)
            B_shared = T.alloc_shared((32, 40), dtype)
            C_local = T.alloc_fragment((32, 32), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                T.copy(A[by * 32, ko * 32], A_shared[:, 0:32])
                T.copy(B[ko * 32, bx * 32], B_shared[:, 0:32])
                T.gemm(A_shared[:, 0:32], B_shared[:, 0:32], C_local)
            T.copy(C_local, C[by * 32, bx * 32])

    return main


def rows(m: int, n: int, dtype: str, shift: int = 0) -> Any:
    """A row a block, with a window that starts early."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(m, threads=64) as bx:
            for i in T.Parallel(n):
                B[bx, i] = A[bx, i - shift] + A[bx, i]

    return main


def turned(m: int, n: int) -> Any:
    """Shared memory is read at places that depend on the block, and not in a straight line."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), m, threads=64) as (bx, by):
            S = T.alloc_shared((64,), "float32")
            T.copy(A[by, bx * 64], S)
            for i in T.Parallel(64):
                B[by, bx * 64 + i] = S[(i * (bx % 3 + 1) + by) % 64]

    return main


ODD: dict[str, Any] = {
    "copy_odd": copy(29, 101),
    "product_odd_f32": product(45, 67, 35, "float32", 2),
    "product_odd_f16": product(70, 33, 45, "float16", 2),
    "product_rows_of_16_bytes": product(70, 72, 40, "float16", 3),
    "product_rows_of_4_bytes": product(35, 42, 38, "float16", 3),
    "rows_f32": rows(37, 99, "float32", 1),
    "rows_f16": rows(70, 67, "float16"),
    "rows_of_8_bytes": rows(20, 66, "float16", 2),
    "turned": turned(5, 200),
}
"""Kernels of which blocks differ by alignment."""


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", KERNELS)
def test_classes(name: str, target: str) -> None:
    kernel, expected = KERNELS[name]
    program = thread_program(kernel, tilelang.targets.resolve(target))[2]
    found = block_classes(program)
    assert found == tuple(BlockClass(*item) for item in expected)
    assert sum(item.count for item in found) == program.grid[0] * program.grid[1] * program.grid[2]


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", [*(name for name in KERNELS if name != "places_from_a_tensor"), *ODD])
def test_counts_of_a_launch_are_those_of_all_its_blocks(name: str, target: str) -> None:
    """Requests, shared transactions, sectors, bytes and executed instructions."""
    kernel = KERNELS[name][0] if name in KERNELS else ODD[name]
    program = thread_program(kernel, tilelang.targets.resolve(target))[2]
    analysis = analyse_program(program)
    arguments = dict(zip((p.name for p in program.parameters), random_arguments(program.parameters), strict=True))
    whole = simulate(program, arguments)
    counted = {count.key: count for count in analysis.counts}
    assert set(counted) == {count.key for count in whole.counts}
    for count in whole.counts:
        scaled = counted[count.key]
        assert scaled == count
    assert analysis.sampled == ()
    assert {
        op: {k: n for k, n in work.items() if n} for op, work in analysis.executed.items() if any(work.values())
    } == {op: {k: n for k, n in work.items() if n} for op, work in whole.executed.items() if any(work.values())}


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_what_depends_on_data_is_said_to_be_sampled(target: str) -> None:
    program = thread_program(KERNELS["places_from_a_tensor"][0], tilelang.targets.resolve(target))[2]
    analysis = analyse_program(program)
    assert analysis.sampled == (program.operations[-1].id,)
    (note,) = analysis.notes
    assert program.operations[-1].label in note
    assert "sampled" in note


@pytest.mark.parametrize("name", ["rows_f32", "rows_f16"])
def test_too_many_alignments_are_sampled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = thread_program(ODD[name], tilelang.targets.resolve("cuda:sm_80"))[2]
    exact = classify(program)
    monkeypatch.setattr(blocks, "MOST", len(exact.classes) - 1)
    coarse = classify(program)
    assert exact.sampled == frozenset()
    assert len(coarse.classes) < len(exact.classes)
    assert coarse.sampled
    assert sum(item.count for item in coarse.classes) == program.grid[0] * program.grid[1]


def test_the_grid_costs_nothing() -> None:
    """Classes of very many blocks are found axis by axis."""
    program = thread_program(copy(80_001, 3_201), tilelang.targets.resolve("cuda:sm_80"))[2]
    found = block_classes(program)
    assert program.grid == (101, 10_001, 1)
    assert sum(item.count for item in found) == 101 * 10_001
    assert len(found) <= 4


def test_classes_of_a_cpu_program() -> None:
    program = thread_program(copy(30, 100), tilelang.targets.resolve("cpu"))[2]
    assert sum(item.count for item in block_classes(program)) == 16
    assert {item.representative for item in block_classes(program)} >= {(0, 0, 0), (3, 0, 0), (0, 3, 0), (3, 3, 0)}


def test_intervals_hold_every_value() -> None:
    """Against all values of the variables, for each operator."""
    x, y = (tirx.Var(name, "int32") for name in "xy")
    ranges = {int(x.__chandle__()): range(-3, 6), int(y.__chandle__()): range(1, 5)}
    values = {handle: Interval(min(span), max(span)) for handle, span in ranges.items()}
    expressions = [x + y, x - y, x * y, x // 3, x % 4, tirx.Min(x, y), tirx.Max(x, y), (x * 2 - y) % 3, x * x]
    conditions = [x < y, x <= y, x > y * 3, x >= y, tirx.EQ(x, y + 9), tirx.NE(x, y), tirx.And(x < 9, y > 0)]
    conditions += [tirx.Or(x > 5, y > 4), tirx.Not(x < y), tirx.LT(x % 2, 2)]
    from tilelang_min.analysis.points import evaluate

    for expression in expressions:
        bounds = interval(expression, values)
        seen = {
            int(evaluate(expression, dict(zip(ranges, pair, strict=True))))
            for pair in [(a, b) for a in range(-3, 6) for b in range(1, 5)]
        }
        assert bounds.low <= min(seen)
        assert max(seen) <= bounds.high
    for condition in conditions:
        seen_truths = {
            bool(evaluate(condition, dict(zip(ranges, pair, strict=True))))
            for pair in [(a, b) for a in range(-3, 6) for b in range(1, 5)]
        }
        assert int(truth(condition, values)) in ({-1} if len(seen_truths) == 2 else {-1, int(seen_truths.pop())})
    assert int(truth(tirx.LT(x % 2, 2), values)) == 1
    assert int(truth(x > y + 9, values)) == 0
    with pytest.raises(Unknown):
        interval(tirx.Var("z", "int32"), values)
    with pytest.raises(Unknown):
        interval(x // y, values)
