"""Blocks of a cluster that share the iterations of a tile's loop, and persistent blocks whose number is known at launch alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from kernel_matmul import matmul

import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import SimulationError
from tilelang_min.ir.plans import HopperPlan
from tilelang_min.ir.sizes import with_sizes
from tilelang_min.lower import cluster_sum
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate
from tilelang_min.targets import Target, resolve
from tilelang_min.transform.hopper import HopperOptions

HOPPER = resolve("cuda:sm_90a")


def units(count: int) -> Target:
    """A Hopper of few units."""
    return dataclasses.replace(HOPPER, devices=(dataclasses.replace(HOPPER.devices[0], units=count),))


def lowered(kernel: Any, target: Target = HOPPER, **options: bool | int) -> tuple[HopperPlan, ThreadProgram]:
    """The plan and the thread program."""
    _, layouts, program = thread_program(kernel, target, hopper=HopperOptions(**options))
    assert layouts is not None
    return layouts.hopper, program


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A, B as (n, k), and the product."""
    generator = np.random.default_rng(seed)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return a, b, a.astype(np.float64) @ b.T.astype(np.float64)


def near(actual: Any, expected: Any, tolerance: float = 1e-3) -> bool:
    assert np.isfinite(actual).all()
    return bool(np.abs(actual.astype(np.float64) - expected).max() <= tolerance * np.abs(expected).max())


@pytest.mark.parametrize(
    ("shape", "tile", "threads", "split", "parts"),
    [
        ((128, 128, 256), (128, 64), 256, 4, 4),
        ((100, 136, 344), (64, 64), 128, 3, 2),  # 11 iterations: 4, 4 and 3; the third block keeps nothing
        ((130, 24, 200), (64, 24), 128, 3, 3),
        ((64, 8, 256), (64, 8), 128, 2, 1),  # 8 columns are no two parts
        ((128, 64, 128), (64, 64), 256, 2, 1),  # warp groups side by side
    ],
)
def test_products(shape: Any, tile: Any, threads: int, split: int, parts: int) -> None:
    kernel = matmul(*shape, *tile, 32, 2, threads, transpose_b=True, out="float16")
    plan, program = lowered(kernel, split=split)
    assert plan.split is not None
    assert (plan.split.count, plan.split.parts, program.cluster) == (split, parts, (split, 1, 1))
    assert f"between the {split} blocks of a cluster" in plan.describe()
    a, b, expected = operands(*shape)
    inputs = dict(zip((item.name for item in program.parameters), (a, b), strict=False))
    result = simulate(program, inputs).outputs["C"]
    assert near(result, expected)
    assert (result == simulate(program, inputs).outputs["C"]).all()


def with_epilogue(rows: bool) -> Any:
    """A product, and behind it a bias, a second fragment, a condition; or (``rows``) the greatest of each row."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"),
        B: T.Tensor((64, 256), "float16"),
        bias: T.Tensor((64,), "float16"),
        D: T.Tensor((128, 64), "float32"),
        C: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, 2, threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((64, 32), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            twice = T.alloc_fragment((64, 64), "float32")
            most = T.alloc_fragment((64,), "float32")
            T.clear(acc)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[by * 64, k * 32], A_shared)
                T.copy(B[bx * 64, k * 32], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            T.copy(D[by * 64, bx * 64], twice)
            if rows:
                T.reduce_max(acc, most, dim=1)
                for i, j in T.Parallel(64, 64):
                    acc[i, j] = acc[i, j] - most[i]
            for i, j in T.Parallel(64, 64):
                acc[i, j] = acc[i, j] + 2.0 * twice[i, j] + T.cast(bias[bx * 64 + j], "float32")
            if by == 1:
                for i, j in T.Parallel(64, 64):
                    acc[i, j] = -acc[i, j]
            T.copy(acc, C[by * 64, bx * 64])

    return main


@pytest.mark.parametrize(("rows", "parts"), [(False, 2), (True, 1)])
def test_what_follows_the_loop(rows: bool, parts: int) -> None:
    plan, program = lowered(with_epilogue(rows), split=2)
    assert plan.split is not None
    assert plan.split.parts == parts
    assert any("needs whole rows" in note for note in plan.notes) == rows
    a, b, expected = operands(128, 64, 256)
    generator = np.random.default_rng(5)
    bias, d = generator.standard_normal(64).astype(np.float16), generator.standard_normal((128, 64)).astype(np.float32)
    if rows:
        expected = expected - expected.max(axis=1, keepdims=True)
    expected = expected + 2.0 * d + bias.astype(np.float64)
    expected[64:] *= -1
    assert near(simulate(program, {"A": a, "B": b, "bias": bias, "D": d}).outputs["C"], expected, 1e-5)


@pytest.mark.parametrize(("again", "parts"), [("mirrored", 1), ("in place", 2), ("in a nest", 2)])
def test_a_tensor_that_is_used_twice_behind_the_loop(again: str, parts: int) -> None:
    """One block has written what the next statement reads of it; not so several, unless each uses what it writes itself."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((64, 256), "float16"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((64, 32), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            before = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 32], A_shared)
                T.copy(B[0, k * 32], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            if again == "mirrored":
                T.copy(acc, C)
                for i, j in T.Parallel(64, 64):
                    D[i, j] = acc[i, j] + C[i, 63 - j]
            elif again == "in a nest":
                for i, j in T.Parallel(64, 64):
                    D[i, j] = D[i, j] + acc[i, j]
            else:
                T.copy(D, before)
                for i, j in T.Parallel(64, 64):
                    acc[i, j] = acc[i, j] + before[i, j]
                T.copy(acc, D)

    plan, program = lowered(main, split=2)
    assert plan.split is not None
    assert plan.split.parts == parts
    assert any("C is used by several statements" in note for note in plan.notes) == (parts == 1)
    a, b, expected = operands(64, 64, 256)
    d = np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32)
    found = simulate(program, {"A": a, "B": b, "C": np.zeros_like(d), "D": d}).outputs["D"]
    assert near(found, expected + (expected[:, ::-1] if again == "mirrored" else d), 1e-5)


def test_how_many_blocks() -> None:
    """As many as the units are for, and the iterations, and a cluster."""
    kernel = matmul(128, 256, 1024, 64, 64, 32, 2, 128, out="float16")  # 8 tiles of 32 iterations

    def count(target: Target = HOPPER, **options: bool | int) -> int:
        plan, program = lowered(kernel, target, **options)
        split = 1 if plan.split is None else plan.split.count
        assert program.grid[0] * program.grid[1] == 8 * split
        return split

    assert [count(units(number)) for number in (8, 15, 16, 33, 132)] == [1, 1, 2, 4, 8]
    assert [count(split=number) for number in (False, 1, 3)] == [1, 1, 3]
    few = dataclasses.replace(units(64).devices[0], clusters=(64, 32, 20, 9, 5, 5, 5, 5))  # units come in groups
    assert count(dataclasses.replace(HOPPER, devices=(few,))) == 4
    deep = matmul(128, 256, 1024, 64, 64, 32, 9, 128, out="float16")  # a share fills the ring of 9 stages
    assert lowered(deep)[1].grid == (24, 1, 1)


def test_what_cannot_be_shared_out() -> None:
    def note(clear: bool, other_work: bool, stages: int = 2, blocks: int = 4, left: bool = False) -> str:
        @T.prim_func
        def main(
            A: T.Tensor((64, 256), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((64, 64), "float32")
        ):
            with T.Kernel(1, threads=128):
                A_shared = T.alloc_shared((64, 32), "float16")
                B_shared = T.alloc_shared((32, 64), "float16")
                acc = T.alloc_fragment((64, 64), "float32")
                if clear:
                    T.clear(acc)
                else:
                    T.fill(acc, 1.0)
                for k in T.Pipelined(8, num_stages=stages):
                    T.copy(A[0, k * 32], A_shared)
                    T.copy(B[k * 32, 0], B_shared)
                    T.gemm(A_shared, B_shared, acc)
                    if other_work:
                        for i, j in T.Parallel(64, 64):
                            acc[i, j] *= 0.5
                if left:  # the tile of the last iteration
                    for i, j in T.Parallel(64, 64):
                        acc[i, j] += T.cast(A_shared[i, j // 2], "float32")
                T.copy(acc, C)

        plan, _ = lowered(main, split=blocks if stages > 2 else True)
        assert plan.split is None
        return " ".join(plan.notes)

    assert "does not begin at zero" in note(False, False)
    assert "other work than products" in note(True, True)
    assert "A_shared is used outside the loop" in note(True, False, left=True)
    assert "8 iterations are no 4 shares of at least 3" in note(True, False, 3)
    assert "cuda:sm_90a runs 8 blocks together, not 16" in note(True, False, 3, blocks=16)


def test_a_missing_barrier_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator sees that what other blocks send may come too late: here at a block that has ended."""
    monkeypatch.setattr(cluster_sum, "_all_meet", lambda context: None)
    _, program = lowered(matmul(64, 64, 256, 64, 64, 32, 2, 128, transpose_b=True, out="float16"), split=2)
    a, b, _ = operands(64, 64, 256)
    with pytest.raises(SimulationError, match=r"race on shared memory|has ended"):
        simulate(program, {"A": a, "B": b})


def test_persistent_blocks_of_a_grid_known_at_launch() -> None:
    kernel = matmul(T.dynamic("m"), 144, 72, 128, 64, 32, 3, 256, transpose_b=True, out="float16")
    plan, program = lowered(kernel, units(4))
    assert plan.persistent
    assert program.extents is not None
    assert str(program.extents[0]).startswith("min(")
    assert lowered(kernel, units(4), persistent=False)[1].extents == (3, "(m + 127) // 128", 1)
    for m in (1, 128, 200, 500):
        a, b, expected = operands(m, 144, 72, seed=m)
        fixed = with_sizes(program, {"m": m})
        assert fixed.grid == (min(4, -(-m // 128) * 3), 1, 1)
        assert near(simulate(fixed, {"A": a, "B": b}).outputs["C"], expected)


def test_what_the_cache_fetches_beside_a_box() -> None:
    """Of tiles that bring one box of a row at a time the next; not where they bring it at once."""

    def promotions(deep: int) -> list[tuple[str, int]]:
        _, program = lowered(matmul(64, 64, 256, 64, 64, deep, 2, 128, transpose_b=True, out="float16"), split=False)
        return [(item.parameter, item.promotion) for item in program.tensor_maps]

    assert promotions(64) == [("A", 256), ("B", 256), ("C", 256)]
    assert promotions(128) == [("A", 128), ("B", 128), ("C", 256)]
