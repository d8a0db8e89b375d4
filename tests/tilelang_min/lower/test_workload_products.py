"""Matrix products whose work is shared out in other ways than a block for each tile, and attention with grouped queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import assert_close, run
from test_workload_kernels import load

TARGETS = ["cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]


def halves(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / 2).astype(np.float16)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blocks", [3, 8])
def test_stream_k(blocks: int, target: str) -> None:
    """Shares that begin and end inside of tiles, more blocks than tiles (8) and fewer (3), and rows that TMA takes."""
    loaded = load("splitk")
    m, n, k = 70, 72, 200  # four tiles of seven steps
    a, b, c = halves(m, k), halves(k, n, seed=1), np.zeros((m, n), np.float32)
    made = run(loaded.stream_k.prim_func(m, n, k, blocks=blocks), target, [a, b, c])["C"]
    assert_close(made, loaded.reference(a, b), f"{blocks} blocks")


@pytest.mark.parametrize("target", TARGETS)
def test_split_k_through_a_workspace(target: str) -> None:
    loaded = load("splitk")
    m, n, k, split = 70, 66, 168, 3
    a, b = halves(m, k), halves(k, n, seed=1)
    nothing = np.full((split, m, n), np.nan, np.float32)
    parts = run(loaded.split_k_parts.prim_func(m, n, k, split=split), target, [a, b, nothing])["P"]
    assert_close(parts, loaded.parts_reference(a, b, split), "parts")
    kernel = loaded.sum_parts.prim_func(m, n, split=split, dtype="float32")
    made = run(kernel, target, [parts, np.full((m, n), np.nan, np.float32)])["C"]
    assert_close(made, loaded.reference(a, b), "their sum")


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_few_rows(target: str) -> None:
    """The transposed product, with a width that no tile divides; of one row dot products, K no multiple of their length."""
    loaded = load("gemm")
    for m, kernel in (
        (5, loaded.gemm_few_rows.prim_func(5, 72, 136, block_M=8, block_K=32, num_stages=2)),
        (1, loaded.gemm_one_row.prim_func(72, 600, block_N=4, block_K=256)),
    ):
        n, k = 72, {5: 136, 1: 600}[m]
        a, b, c = halves(m, k), halves(n, k, seed=1), np.full((m, n), np.nan, np.float16)
        made = run(kernel, target, [a, b, c])["C"]
        assert_close(made, loaded.reference(a, b, transpose_B=True), f"{m} rows")


@pytest.mark.parametrize("target", TARGETS)
def test_groups_of_rows(target: str) -> None:
    """Empty groups, groups of less and of more than a tile, none of them aligned; rows that no group has stay as they were."""
    loaded = load("grouped")
    offsets = np.array([0, 0, 37, 110, 110, 140], np.int32)
    a, b, c = halves(150, 72), halves(5, 72, 66, seed=1), np.full((150, 66), -7, np.float32)
    made = run(loaded.grouped.prim_func(150, 66, 72, 5), target, [a, b, offsets, c])["C"]
    assert_close(made[:140], loaded.reference(a, b, offsets)[:140])
    assert (made[140:] == -7).all()
    random = loaded.offsets((6,), 150, np.random.default_rng(0))
    assert random[0] == 0
    assert random[-1] == 150
    assert (np.diff(random) >= 0).all()


@pytest.mark.parametrize("target", TARGETS)
def test_attention_with_grouped_queries(target: str) -> None:
    loaded = load("attention")
    q, k, v = halves(1, 70, 4, 64), halves(1, 70, 2, 64, seed=1), halves(1, 70, 2, 64, seed=2)
    kernel = loaded.attention.prim_func(1, 4, 70, 64, causal=True, kv_heads=2)
    made = run(kernel, target, [q, k, v, np.full_like(q, np.nan)])["Output"]
    assert_close(made, loaded.causal_reference(q, k, v))
    one = np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2)
    np.testing.assert_array_equal(loaded.causal_reference(q, k, v), loaded.causal_reference(q, *one))


def test_heads_that_no_number_of_queries_shares_are_refused() -> None:
    with pytest.raises(ValueError, match="6 heads are no multiple of kv_heads=4"):
        load("attention").attention.prim_func(1, 6, 64, 64, kv_heads=4)
