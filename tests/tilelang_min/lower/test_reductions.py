"""Reductions and row vectors: the CPU by running, GPUs by simulation, against float64 on all elements."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_reductions import (
    KINDS,
    both_directions,
    cube,
    numpy_reduce,
    product_epilogue,
    reduce_tile,
    row_sums,
    scaled_rows,
    softmax_rows,
    to_scalar,
)
from kernel_runs import assert_close, check, run

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")
OTHERS = ("cuda:sm_90a", "hip:gfx90a")
EXAMPLES = int(os.environ.get("TILELANG_TEST_EXAMPLES", "12"))


def normal(*shape: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def empty(*shape: int, dtype: str = "float32") -> Any:
    return np.full(shape, np.nan, dtype)


def combined(kind: str, array: Any, dim: int, old: Any = None) -> Any:
    """The expected result, with what was there before."""
    result = numpy_reduce(kind, array, dim)
    if old is None:
        return result
    old = old.astype(np.float64)
    function = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind.removeprefix("abs")]
    return function(old, result)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, dim: int, target: str) -> None:
    """From and to fragments and shared tiles, replacing and adding to what was there."""
    a, old = normal(6, 70), normal(6 if dim else 70)
    for source, out, clear in (
        ("fragment", "fragment", True),
        ("shared", "fragment", False),
        ("fragment", "shared", False),
    ):
        kernel = reduce_tile(6, 70, kind, dim, source=source, target=out, clear=clear, keep=out == "shared")
        check(kernel, target, [a, old], lambda A, B, clear=clear: (combined(kind, A, dim, None if clear else B),), kind)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("n", [1, 7, 129, 1000])
@pytest.mark.parametrize("target", TARGETS)
def test_lengths(target: str, n: int, dtype: str) -> None:
    """Rows within a warp and across warps, ragged and whole; columns of as many elements."""
    for dim, shape in ((1, (3, n)), (0, (n, 3)), (-1, (1, n))):
        a = normal(*shape, dtype=dtype)
        length = shape[1 - dim % 2]
        made = run(reduce_tile(*shape, "sum", dim, dtype), target, [a, empty(length, dtype=dtype)])["B"]
        assert_close(made, combined("sum", a, dim), f"{shape} {dim} {dtype} on {target}")


@pytest.mark.parametrize("target", OTHERS)
def test_other_architectures(target: str) -> None:
    for kernel, arrays, reference in (
        (reduce_tile(3, 129, "absmax"), [normal(3, 129), empty(3)], lambda A, B: (np.abs(A).max(1),)),
        (reduce_tile(1, 1000, dtype="float16"), [normal(1, 1000, dtype="float16"), empty(1, dtype="float16")], _rows),
        (softmax_rows(5, 100, 2, 128), [normal(5, 100), empty(5, 100)], lambda A, B: (softmax(A),)),
    ):
        check(kernel, target, arrays, reference)


def _rows(A: Any, B: Any) -> Any:
    return (A.astype(np.float64).sum(1),)


@pytest.mark.parametrize("target", TARGETS)
def test_integers(target: str) -> None:
    a = np.random.default_rng(1).integers(-1000, 1000, (5, 99)).astype(np.int32)
    for kind in KINDS:
        check(
            reduce_tile(5, 99, kind, dtype="int32"),
            target,
            [a, np.zeros(5, np.int32)],
            lambda A, B, kind=kind: (numpy_reduce(kind, A, 1),),
            kind,
        )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_three_dimensions(dim: int, target: str) -> None:
    for shape in ((3, 5, 40), (8, 4, 16), (2, 3, 33)):
        left = [extent for place, extent in enumerate(shape) if place != dim]
        check(cube(*shape, dim), target, [normal(*shape), empty(*left)], lambda A, B: (A.astype(np.float64).sum(dim),))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(4, 33), (64, 64), (1, 100), (100, 1)])
def test_row_vectors_with_tiles(shape: tuple[int, int], target: str) -> None:
    m, n = shape
    wide = np.float64
    a = normal(m, n)
    positive = np.abs(a) + np.float32(0.1)
    check(
        to_scalar(m, n),
        target,
        [positive, empty(m, n)],
        lambda A, B: (A.astype(wide) / A.astype(wide).sum() + A.astype(wide).sum(1, keepdims=True),),
    )
    check(
        both_directions(m, n),
        target,
        [a, empty(m, n), empty(n)],
        lambda A, B, C: (
            (A.astype(wide) - A.astype(wide).max(1, keepdims=True)) * A.astype(wide).sum(0),
            A.astype(wide).sum(0) * 0.5 + 1,
        ),
    )
    check(
        scaled_rows(m, n),
        target,
        [a, normal(m), empty(m, n)],
        lambda A, W, B: (A.astype(wide) * W.astype(wide)[:, None] * 2,),
    )


def softmax(array: Any) -> Any:
    """In float64."""
    values = array.astype(np.float64)
    values = np.exp(values - values.max(1, keepdims=True))
    return values / values.sum(1, keepdims=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax(dtype: str, target: str) -> None:
    for m, n, rows, width in ((10, 300, 4, 384), (9, 129, 4, 129), (2, 1000, 1, 1024)):
        check(
            softmax_rows(m, n, rows, width, dtype),
            target,
            [normal(m, n, dtype=dtype), empty(m, n, dtype=dtype)],
            lambda A, B: (softmax(A),),
        )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_row_vectors_of_an_accumulator(dtype: str, target: str) -> None:
    """Matrix instructions, register blocks and single elements; a free tile takes its rows from the accumulator's."""

    def reference(A: Any, B: Any, X: Any, C: Any, D: Any) -> Any:
        c = A.astype(np.float64) @ B.astype(np.float64)
        return softmax(c), X.astype(np.float64) * c.max(1, keepdims=True)

    for m, n, k in ((64, 64, 32), (17, 13, 7), (16, 64, 16)):
        arrays = [normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), normal(m, 24), empty(m, n), empty(m, 24)]
        check(product_epilogue(m, n, k, dtype=dtype), target, arrays, reference, f"{m}x{n}x{k}")


def test_the_same_bits_in_every_replica_and_run() -> None:
    """Threads that hold one element add in one order: rows that are equal give equal bits, wherever they lie."""
    a = np.repeat(normal(1, 1000) * np.float32(1e3), 8, axis=0)
    for target in TARGETS:
        first, second = (run(row_sums(8, 1000, 2), target, [a, empty(8)])["B"] for _ in range(2))
        assert np.array_equal(first, second)
        assert len(set(first.tolist())) == 1


@st.composite
def tiles(draw: Any) -> dict[str, Any]:
    return {
        "m": draw(st.integers(1, 40)),
        "n": draw(st.integers(1, 300)),
        "kind": draw(st.sampled_from(KINDS)),
        "dim": draw(st.sampled_from([0, 1, -1])),
        "dtype": draw(st.sampled_from(["float32", "float16"])),
        "threads": draw(st.sampled_from([64, 128, 192, 256])),
        "source": draw(st.sampled_from(["fragment", "shared"])),
        "target": draw(st.sampled_from(["fragment", "shared"])),
        "clear": draw(st.booleans()),
        "keep": draw(st.booleans()),
    }


@pytest.mark.parametrize("target", TARGETS)
def test_random_reductions(target: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    @given(tiles())
    def one(case: dict[str, Any]) -> None:
        a = normal(case["m"], case["n"], dtype=case["dtype"])
        old = normal(case["m"] if case["dim"] % 2 else case["n"], dtype=case["dtype"])
        made = run(reduce_tile(**case), target, [a, old])["B"]
        assert_close(
            made, combined(case["kind"], a, case["dim"] % 2, None if case["clear"] else old), f"{case} {target}"
        )

    one()
