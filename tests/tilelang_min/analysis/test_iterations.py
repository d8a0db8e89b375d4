"""Iterations that stand for others: counts are those of the whole loop, and the work does not grow with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import tilelang_min.language as T
from tilelang_min.analysis.iterations import Iterations
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import random_arguments
from tilelang_min.targets import resolve

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"


def workload(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"iterations_{name}", KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def product(stages: int, k: int, **options: Any) -> Any:
    return workload("matmul").tiled.prim_func(72, 64, k, num_stages=stages, **options)


CASES: dict[str, Any] = {
    "one stage": lambda: product(1, 512),
    "two stages, ragged": lambda: product(2, 1000, dtype="float32"),
    "three stages, ragged": lambda: product(3, 808),
    "column sums": lambda: workload("reductions").column_sums.prim_func(600, 140),
    "online softmax": lambda: workload("softmax").online.prim_func(9, 4000),
    "naive": lambda: workload("matmul").naive.prim_func(24, 20, 300),
}


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_of_all_iterations(case: str, target: str) -> None:
    program = thread_program(CASES[case](), resolve(target))[2]
    skipping = analyse_program(program)
    whole = analyse_program(program, random_arguments(program.parameters))
    assert skipping.counts == whole.counts
    assert skipping.executed == whole.executed
    assert skipping.outputs == {}


@pytest.mark.parametrize(("stages", "period"), [(1, 1), (2, 2), (3, 6)])
def test_what_runs_does_not_grow_with_the_loop(stages: int, period: int) -> None:
    def run(k: int) -> int:
        program = thread_program(product(stages, k), resolve("cuda:sm_80"))[2]
        (repeat,) = Iterations(program).repeats((0, 0, 0)).values()
        _, found, times = repeat
        assert found == period
        return k // 32 - found * (times - 1)

    assert run(32 * 1200) == run(32 * 12000) <= 4 * period + 2


def test_loops_that_walk_along_a_tile_or_depend_on_data_run_whole() -> None:
    @T.prim_func
    def walk(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((64, 65), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(A, S[:, 0:64])
            T.clear(total)
            for k in T.serial(64):
                for i in T.Parallel(64):
                    total[i] += S[i, k]
            T.copy(total, B[bx * 64])

    @T.prim_func
    def gather(X: T.Tensor((4096,), "int32"), A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            total = T.alloc_fragment((64,), "int32")
            T.clear(total)
            for k in T.serial(64):
                for i in T.Parallel(64):
                    total[i] += A[X[k * 64 + i] % 64]
            T.copy(total, B[bx * 64])

    for kernel in (walk, gather):
        assert Iterations(thread_program(kernel, resolve("cuda:sm_80"))[2]).repeats((0, 0, 0)) == {}


def test_an_edge_inside_of_the_loop_is_not_skipped() -> None:
    """Rows end in the middle of the loop: the iterations on both sides differ, and one is cut."""

    @T.prim_func
    def main(A: T.Tensor((1000,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            total = T.alloc_fragment((64,), "float32")
            T.clear(total)
            for k in T.serial(40):
                for i in T.Parallel(64):
                    total[i] += A[k * 64 + i]
            T.copy(total, B[bx * 64])

    program = thread_program(main, resolve("cuda:sm_80"))[2]
    ((first, period, times),) = Iterations(program).repeats((0, 0, 0)).values()
    assert first > 15 or first + period * times <= 15
    (load,) = (c for c in analyse_program(program).counts if c.access == "load")
    assert load.bytes == 4000
    assert load.sectors == 125
