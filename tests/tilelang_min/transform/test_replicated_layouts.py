"""Layouts with replicas: every element is held, by exactly the threads that differ in replica coordinates alone."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transform_kernels import GFX942, SM80

import tilelang_min.language as T
from tilelang_min.errors import LayoutError
from tilelang_min.frontend import parse
from tilelang_min.ir.layout import FragmentLayout, GridLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.nodes import Barrier, Reduce, walk
from tilelang_min.ir.reducing import combined, lane_parts, warp_parts
from tilelang_min.ir.replicated import ExtendedLayout, ReducedLayout, reduced, register_map
from tilelang_min.targets import resolve
from tilelang_min.transform.barriers import insert_barriers
from tilelang_min.transform.grids import thread_grid
from tilelang_min.transform.layouts import choose_layouts
from tilelang_min.transform.reductions import exchange_reductions, fragment_reductions


def numbers(layout: FragmentLayout) -> Any:
    """Row-major number of the element, (threads, registers); -1 where a register holds none."""
    threads = np.arange(layout.threads)
    columns = []
    for register in range(layout.registers):
        number = np.zeros(layout.threads, np.int64)
        for place, extent in zip(layout.position(threads, register), layout.shape, strict=True):
            number = number * extent + place
        exists = np.ones(layout.threads, bool)
        for place, extent in layout.limits(threads, register):
            exists &= np.asarray(place) < extent
        columns.append(np.where(exists, number, -1))
    return np.stack(columns, axis=1)


def first_replica(layout: FragmentLayout) -> Any:
    """Threads whose replica coordinates are all 0."""
    threads = np.arange(layout.threads)
    first = np.ones(layout.threads, bool)
    for stride, count in layout.replicas:
        first &= threads // stride % count == 0
    return first


def assert_sound(layout: FragmentLayout) -> None:
    """The first replicas hold every element once, and the others the same registers as their first."""
    held = numbers(layout)
    first = first_replica(layout)
    mine = held[first]
    assert np.array_equal(np.sort(mine[mine >= 0]), np.arange(prod(layout.shape)))
    threads = np.arange(layout.threads)
    owner = threads.copy()
    for stride, count in layout.replicas:
        owner = owner - owner // stride % count * stride
    assert np.array_equal(held, held[owner])
    assert sorted(register for group in layout.groups for register in group) == list(range(layout.registers))
    for group in layout.groups:
        for step, register in enumerate(group):
            exists = held[:, group[0]] >= 0
            assert np.array_equal(held[:, register], np.where(exists, held[:, group[0]] + step, -1))


def grid(extents: tuple[int, ...], vector: int, threads: int, warp: int) -> GridLayout:
    slots = thread_grid(extents, vector, threads, warp)
    vectors = (1,) * (len(extents) - 1) + (vector,)
    return GridLayout(extents, slots, tuple((slot,) for slot in slots), vectors)


@given(
    st.lists(st.integers(2, 20), min_size=1, max_size=3),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([(64, 32), (128, 32), (96, 32), (192, 64), (256, 64)]),
)
@settings(max_examples=50, deadline=None)
def test_grids_and_their_parts(extents: list[int], vector: int, block: tuple[int, int]) -> None:
    """A grid, and what is left of it when any one dimension is reduced, down to nothing."""
    extents[-1] *= vector
    layout: FragmentLayout = grid(tuple(extents), vector, *block)
    assert_sound(layout)
    while len(layout.shape) > 1:
        for dim in range(len(layout.shape)):
            left = tuple(place for place in range(len(layout.shape)) if place != dim)
            part = reduced(layout, left, tuple(layout.shape[place] for place in left))
            assert_sound(part)
            assert_reducible(layout, left, part, block[1])
        layout = part


def assert_reducible(layout: FragmentLayout, left: tuple[int, ...], part: FragmentLayout, warp: int) -> None:
    """Registers, then lanes and warps by their coordinates, bring every element to its result exactly once."""
    registers = register_map(layout, left, part)
    assert registers is not None
    coordinates = combined(layout, part)
    lanes, warps = lane_parts(coordinates, warp), warp_parts(coordinates, warp)
    held, results = numbers(layout), numbers(part)
    for thread in range(0, layout.threads, max(1, layout.threads // 7)):
        group = {thread}
        for distance in lanes:
            group |= {other ^ distance for other in group}
        for stride, count in warps:
            group |= {o - o // stride % count * stride + c * stride for o in list(group) for c in range(count)}
        for register in range(part.registers):
            if results[thread, register] < 0:
                continue
            found = [held[other, n] for other in group for n, target in enumerate(registers) if target == register]
            real = [number for number in found if number >= 0]
            assert len(set(real)) == len(real) == prod(layout.shape) // prod(part.shape)


MMA = MatrixLayout((64, 64), 32, (2, 2), (2, 4), 16, 8, 4, SM80.matrix_instructions[0].c_map)


@pytest.mark.parametrize("layout", [MMA, OuterProductLayout((64, 64), (2, 2), 8, 4, 4, 8, 4)])
def test_parts_of_accumulators(layout: Any) -> None:
    for dim in (0, 1):
        part = reduced(layout, (dim,), (layout.shape[dim],))
        assert isinstance(part, ReducedLayout)
        assert_sound(part)
        assert_reducible(layout, (dim,), part, 32)
        scalar = reduced(layout, (), (1,))
        assert_reducible(part, (), scalar, 32)
        for width, vector in ((24, 1), (40, 2), (3, 1)):
            if dim == 0:
                assert_sound(ExtendedLayout((64, width), part, 1, vector))


def test_which_threads_hold_a_row() -> None:
    """Rows within a warp where there are rows for all warps; across warps where there are fewer."""
    assert thread_grid((64, 128), 4, 128, 32) == ((32, 4), (1, 32))
    assert thread_grid((64, 16), 4, 128, 32) == ((4, 32), (1, 4))
    assert thread_grid((2, 1000), 1, 128, 32) == ((64, 2), (1, 64))
    assert thread_grid((1000,), 4, 128, 32) == ((1, 128),)
    assert thread_grid((4, 6, 33), 1, 192, 64) == ((64, 3), (64, 1), (1, 64))


def prepared(kernel: Any, target: Any) -> tuple[Any, Any]:
    program = fragment_reductions(parse(kernel))
    layouts = choose_layouts(program, target)
    return insert_barriers(exchange_reductions(program, layouts, target)), layouts


def row_maximum(rows: int, columns: int, times: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((times, rows, columns), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_fragment((rows, columns), "float32")
            high = T.alloc_fragment((rows,), "float32")
            T.clear(high)
            for k in T.serial(times):
                T.copy(A[k, 0, 0], tile)
                T.reduce_max(tile, high, dim=1, clear=False)
            T.copy(high, B)

    return main


def test_scratch_only_across_warps() -> None:
    """A row in one warp needs no memory and no barrier; a row in four needs both, also from one iteration to the next."""
    program, _ = prepared(row_maximum(4, 256, 5), SM80)
    assert [s.step for s in walk(program.body) if isinstance(s, Reduce)] == ["whole"]
    assert not any(isinstance(s, Barrier) for s in walk(program.body))
    program, _ = prepared(row_maximum(1, 1024, 5), SM80)
    assert [s.step for s in walk(program.body) if isinstance(s, Reduce)] == ["partial", "finish"]
    scratch = next(buffer for buffer in program.buffers if buffer.scope == "shared")
    assert (scratch.name, scratch.shape, scratch.dtype) == ("high_parts", (4, 1), "float32")
    assert sum(isinstance(s, Barrier) for s in walk(program.body)) == 2


@pytest.mark.parametrize("target", [SM80, GFX942, resolve("cuda:sm_75")], ids=["sm_80", "gfx942", "sm_75"])
def test_row_vectors_of_two_products(target: Any) -> None:
    """One row vector with two accumulators that lie differently in the threads: both lines are named."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            W = T.alloc_shared((64, 20), "float32")
            R = T.alloc_shared((20, 16), "float32")
            F = T.alloc_fragment((64, 64), "float32")
            G = T.alloc_fragment((64, 16), "float32")
            high = T.alloc_fragment((64,), "float32")
            T.copy(A, S)
            T.gemm(S, S, F, clear_accum=True)
            T.gemm(W, R, G, clear_accum=True)
            T.reduce_max(F, high, dim=1)
            for i, j in T.Parallel(64, 16):
                G[i, j] = G[i, j] * high[i]
            T.copy(F, C)

    program = fragment_reductions(parse(main))
    with pytest.raises(LayoutError, match="two uses of fragment high need different layouts") as caught:
        choose_layouts(program, target)
    first = next(o.location.line for o in program.operations if o.kind == "reduce")
    second = next(o.location.line for o in program.operations if o.kind == "parallel")
    assert f"line {first} " in caught.value.message
    assert f"line {second} " in caught.value.message
    assert "through a shared tile" in (caught.value.remedy or "")


def test_one_vector_along_two_dimensions() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((32,), "float32")
            t = T.alloc_fragment((32, 32), "float32")
            T.clear(x)
            T.clear(t)
            T.reduce_sum(t, x, dim=1)
            T.reduce_sum(t, x, dim=0, clear=False)

    with pytest.raises(LayoutError, match="along two different dimensions"):
        choose_layouts(parse(main), SM80)


def test_writes_of_a_lower_rank() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((32,), "float32")
            for i, j in T.Parallel(32, 32):
                x[i] = A[i, j]

    with pytest.raises(LayoutError) as caught:
        choose_layouts(parse(main), SM80)
    assert "one element of fragment x is written by every j of this nest" in caught.value.message
    assert "T.reduce_sum" in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert "T.Parallel(32, 32)" in caught.value.location.text
