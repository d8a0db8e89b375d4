"""Which copies a CPU makes, what it fetches ahead and stores past the caches, and products of 8-bit integers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cpu import changed, doubled, overwritten, plain, product

import tilelang_min as tilelang
from tilelang_min.lower.gemm_cpu import segments
from tilelang_min.targets import cpu

HERE = cpu.ARCHITECTURES.index(cpu.detect())
LEVELS = [level for level in cpu.ARCHITECTURES[: HERE + 1] if level != "x86-64-v2"]


def build(kernel: Any, level: str | None = None) -> Any:
    return tilelang.compile(kernel, "cpu" if level is None else f"cpu:{level}", cache=False)


def texts(kernel: Any, word: str) -> list[str]:
    return [item.text for item in kernel.listing.instructions if word in item.text]


def copied(kernel: Any) -> set[str]:
    """Labels of the copies into tiles that the kernel has instructions for, prefetches aside."""
    made = {item.operation for item in kernel.listing.instructions if "vmov" in item.text and "[" in item.text}
    return {
        item.label for item in kernel.operations if item.kind == "copy" and item.id in made and "C" not in item.writes
    }


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@given(st.integers(1, 3000), st.sampled_from([1, 2, 4]), st.sampled_from([4, 64, 256, 1024]))
def test_segments_cover_the_sum_once(k: int, group: int, step_bytes: int) -> None:
    parts = segments(SimpleNamespace(k=k), group, step_bytes)  # type: ignore[arg-type]
    place = 0
    for part in parts:
        assert part.first == place
        assert part.count >= 1
        assert part.depth * step_bytes <= max(cpu.PANEL_BYTES, 8 * step_bytes)
        place += part.count * part.depth
    assert place == -(-k // group)
    assert k % group == 0 or parts[-1].count == 1  # what does not fill a word is written out once


@pytest.mark.parametrize("level", LEVELS)
def test_a_product_reads_tensors_in_place(level: str) -> None:
    """A is read where it lies; B is packed; the next tiles are fetched; the figures are right."""
    kernel = build(plain(96, 128, 256, 48, 64, 64), level)
    a, b, c = floats(96, 256), floats(256, 128), np.empty((96, 128), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    copies = [item for item in kernel.operations if item.kind == "copy"]
    assert copied(kernel) == {copies[1].label}
    fetched = {item.operation for item in kernel.listing.instructions if item.text.startswith("prefetcht1")}
    assert fetched == {copies[0].id, copies[1].id}
    assert kernel.listing.attributed_fraction >= 0.95


def test_a_ragged_product_copies() -> None:
    """Beyond the edges a tile holds zeros, which no tensor does."""
    kernel = build(plain(90, 120, 250, 48, 64, 64))
    a, b, c = floats(90, 250), floats(250, 120), np.empty((90, 120), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    assert len(copied(kernel)) == 2


def test_a_tile_that_changes_is_copied() -> None:
    a, b, c = floats(64, 64), floats(64, 64), np.empty((64, 64), np.float32)
    before = a.copy()
    build(changed(64))(a, b, c)
    np.testing.assert_allclose(c, 2.0 * before.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    assert np.array_equal(a, before)


def test_a_tensor_that_changes_is_copied() -> None:
    a, c = floats(64, 64), np.empty((64, 64), np.float32)
    before = a.astype(np.float64)
    build(overwritten(64))(a, c)
    np.testing.assert_allclose(c, before @ before, rtol=1e-4, atol=1e-4)
    assert (a == 7.0).all()


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_large_results_go_past_the_caches(offset: int) -> None:
    """At any address: 64-byte, 16-byte or merely 4-byte aligned."""
    rows, columns = 64, cpu.STREAM_BYTES // 4 // 64
    kernel = build(doubled(rows, columns, 4, 2048))
    assert texts(kernel, "vmovntps")
    assert texts(kernel, "sfence")
    room = np.empty(rows * columns + 32, np.float32)
    first = -room.ctypes.data // 4 % 16 + offset
    b = room[first : first + rows * columns].reshape(rows, columns)
    a = floats(rows, columns)
    kernel(a, b)
    assert np.array_equal(b, a * 2)


def test_other_results_do_not() -> None:
    columns = cpu.STREAM_BYTES // 4 // 64
    assert not texts(build(doubled(64, columns, 32, 128)), "vmovnt")  # runs of 512 bytes
    assert not texts(build(doubled(32, columns, 4, 2048)), "vmovnt")  # half as large
    assert not texts(build(plain(64, 64, 64, 64, 64, 32)), "sfence")


@settings(max_examples=12, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.sampled_from([4, 12, 36, 64]), st.integers(1, 70)),
    st.sampled_from(["int8", "uint8"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(LEVELS),
)
def test_products_of_bytes_are_exact(
    shape: tuple[int, int, int], dtype: str, transpose_a: bool, transpose_b: bool, level: str
) -> None:
    """Any shape, order and level; the extremes among the values."""
    m, n, k = shape
    tile = (max(2, m // 2), max(4, n // 2 // 4 * 4), max(2, k // 2))
    bounds = np.iinfo(dtype)
    rng = np.random.default_rng(m * n * k)
    a, b = (rng.choice([bounds.min, bounds.max, -1 % 256 if dtype == "uint8" else -1, 3], s) for s in ((m, k), (k, n)))
    right = a.astype(np.int64) @ b.astype(np.int64)
    c = np.empty((m, n), np.int32)
    kernel = build(product(m, n, k, *tile, dtype, "int32", transpose_a, transpose_b), level)
    given_a, given_b = (a.T if transpose_a else a), (b.T if transpose_b else b)
    kernel(np.ascontiguousarray(given_a.astype(dtype)), np.ascontiguousarray(given_b.astype(dtype)), c)
    assert np.array_equal(c, right)


@pytest.mark.parametrize("level", ["x86-64-v4+vnni", "x86-64-v4", "x86-64-v3"])
def test_products_of_bytes_use_the_instruction_for_them(level: str) -> None:
    """Compiled only, and simulated: this processor need not have the instruction."""
    kernel = build(plain(24, 64, 70, 24, 64, 70, "int8", "int32"), level)
    assert texts(kernel, "vpdpbusd" if "vnni" in level else "vpmaddwd")
    assert not texts(kernel, "vpmulld")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 70), (70, 64)))
    result = kernel.simulate(a, b, np.zeros((24, 64), np.int32))
    assert np.array_equal(result.outputs["C"], a.astype(np.int32) @ b.astype(np.int32))
