"""Copies between windows of tensors at random places, through random tiles, against NumPy on all elements."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_runs import run

import tilelang_min.language as T

EXAMPLES = int(os.environ.get("TILELANG_TEST_EXAMPLES", "24"))


def window(
    shape: tuple[int, int],
    tile: tuple[int, int],
    start: tuple[int, int],
    step: tuple[int, int],
    through: str,
    dtype: str,
) -> Any:
    """Block (x, y) copies the tile at ``start + step * (y, x)`` of A to the tile at ``tile * (y, x)`` of B."""
    rows, columns = 2, 3

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((rows * tile[0], columns * tile[1]), dtype)):
        with T.Kernel(columns, rows, threads=64) as (bx, by):
            S = T.alloc_shared((tile[0], tile[1] + 4), dtype)
            F = T.alloc_fragment(tile, dtype)
            if through == "shared":
                T.copy(A[start[0] + by * step[0], start[1] + bx * step[1]], S[:, 0 : tile[1]])
                T.copy(S[:, 0 : tile[1]], B[by * tile[0], bx * tile[1]])
            elif through == "fragment":
                T.copy(A[start[0] + by * step[0], start[1] + bx * step[1]], F)
                T.copy(F, B[by * tile[0], bx * tile[1]])
            else:
                T.copy(A[start[0] + by * step[0], start[1] + bx * step[1]], S[:, 0 : tile[1]])
                T.copy(S[:, 0 : tile[1]], F)
                T.copy(F, B[by * tile[0], bx * tile[1]])

    return main


def expected(a: Any, tile: tuple[int, int], start: tuple[int, int], step: tuple[int, int]) -> Any:
    """The same with zeros around A."""
    wide = np.pad(a, 200)
    made = np.zeros((2 * tile[0], 3 * tile[1]), a.dtype)
    for y in range(2):
        for x in range(3):
            i, j = 200 + start[0] + y * step[0], 200 + start[1] + x * step[1]
            made[y * tile[0] : (y + 1) * tile[0], x * tile[1] : (x + 1) * tile[1]] = wide[
                i : i + tile[0], j : j + tile[1]
            ]
    return made


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40) | st.sampled_from([32, 64, 128])),
    st.tuples(st.integers(1, 20), st.integers(1, 40) | st.sampled_from([16, 32, 64])),
    st.tuples(st.integers(-8, 30), st.integers(-40, 40) | st.sampled_from([0, 8, 16])),
    st.tuples(st.integers(-5, 25), st.integers(-40, 64) | st.sampled_from([16, 32])),
    st.sampled_from(["shared", "fragment", "both"]),
    st.sampled_from(["float32", "float16", "int32"]),
)
def test_windows(
    target: str,
    shape: tuple[int, int],
    tile: tuple[int, int],
    start: tuple[int, int],
    step: tuple[int, int],
    through: str,
    dtype: str,
) -> None:
    a = np.random.default_rng(0).integers(1, 1000, shape).astype(dtype)
    b = np.full((2 * tile[0], 3 * tile[1]), 77, dtype)
    made = run(window(shape, tile, start, step, through, dtype), target, [a, b])["B"]
    assert np.array_equal(made, expected(a, tile, start, step))
