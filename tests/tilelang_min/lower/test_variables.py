"""Variables, vectorised loops, panels of blocks and functions: the CPU by running, GPUs by simulation, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import check
from kernel_variables import (
    counted_bools,
    functions,
    guarded_division,
    long_loop,
    panels,
    variables,
    variables_reference,
    vectorized,
)

import tilelang_min as tilelang
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def empty(*shape: int, dtype: str = "float32") -> Any:
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_functions(dtype: str, target: str) -> None:
    def reference(A: Any, B: Any, C: Any) -> Any:
        x = A.astype(np.float64)
        y = np.abs(x) + 0.5
        first = np.tanh(x) + 2 / (1 + np.exp(-x)) + np.floor(x) - np.ceil(x) + np.log2(y)
        return first, y**x + y**1.5

    check(
        functions(300, dtype),
        target,
        [normal(300, dtype=dtype), empty(300, dtype=dtype), empty(300, dtype=dtype)],
        reference,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_variables(target: str) -> None:
    for a in (normal(200), -np.abs(normal(200))):
        total, count, tile = variables_reference(a)
        expected = a.astype(np.float64) * total + count + tile
        check(variables(200), target, [a, empty(200)], lambda A, B, expected=expected: (expected,))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [512, 500])
def test_vectorized(n: int, target: str) -> None:
    check(vectorized(n), target, [normal(n), empty(n)], lambda A, B: (A.astype(np.float64) * 2 + A[3],))


@pytest.mark.parametrize("target", TARGETS)
def test_guarded_division(target: str) -> None:
    a = np.arange(192, dtype=np.int32) + 50
    d = (np.arange(192, dtype=np.int32) % 3) * 7

    def reference(A: Any, D: Any, B: Any) -> Any:
        quotient = np.where(D != 0, A // np.maximum(D, 1), -1)
        return (quotient + np.where(np.arange(192) < 100, 10, 20),)

    check(guarded_division(192), target, [a, d, np.zeros(192, np.int32)], reference)


def test_known_conditions_are_decided() -> None:
    text = str(thread_program(guarded_division(192), tilelang.targets.resolve("cuda:sm_80"))[2].function.script())
    assert "1000" not in text
    assert "100" in text


def test_vectorized_moves_vectors() -> None:
    program = thread_program(vectorized(512), tilelang.targets.resolve("cuda:sm_80"))[2]
    text = str(program.function.script())
    assert "A_in[0:4] = A_1[T.Ramp(bx * 256 + threadIdx_x * 4, 1, 4)]" in text


def doubled(A: Any) -> Any:
    result = A.astype(np.float64)
    for y in range(-(-A.shape[0] // 8)):
        result[y * 8 : y * 8 + 8, : y * 32] *= 2
    return result


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_panels(target: str, order: str) -> None:
    """Every block is computed once, whatever the panel, the last one included."""
    for m, n, panel in ((64, 128, 3), (41, 300, 4), (8, 300, 2), (100, 20, 3), (40, 100, 1), (40, 100, 99)):
        check(
            panels(m, n, panel, order),
            target,
            [normal(m, n), empty(m, n)],
            lambda A, B: (doubled(A),),
            f"{m}x{n}/{panel}",
        )


def test_panels_on_the_cpu() -> None:
    check(panels(41, 300, 4), "cpu", [normal(41, 300), empty(41, 300)], lambda A, B: (doubled(A),))


def test_counts_do_not_depend_on_panels() -> None:
    """One block of each class is counted: the classes are those of the blocks, not of their order."""
    target = tilelang.targets.resolve("cuda:sm_80")
    totals = []
    for panel in (1, 3):
        analysis = analyse_program(thread_program(panels(40, 320, panel), target)[2])
        assert sum(count for _, count in analysis.classes) == 50
        totals.append({(c.buffer, c.access): (c.requests, c.bytes) for c in analysis.counts})
    assert totals[0] == totals[1]


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_bools(target: str) -> None:
    a = np.arange(100) % 3 == 0
    number = a.astype(np.int32)
    empty = np.zeros(100, np.int32)
    check(counted_bools(100), target, [a, empty, empty], lambda A, B, C: (number + 2, -number))


@pytest.mark.parametrize("target", TARGETS)
def test_long_loops_are_not_written_out(target: str) -> None:
    """Beyond 2^31 TVM's own count of statements turns negative, and is less than any limit."""
    assert tilelang.compile(long_loop(4, 2**31 - 1), target, cache=False).metadata.code_bytes < 20_000
