"""Layouts: every element of a fragment belongs to exactly one register of one thread; disagreements name both users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transform_kernels import GFX942, SM80, transformed

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LayoutError
from tilelang_min.ir.layout import BlockedLayout, FragmentLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.nodes import Buffer, Gemm, Region
from tilelang_min.program import SourceLocation
from tilelang_min.transform.gemm_plans import plan_gemm
from tilelang_min.transform.layouts import choose_layouts

PLACE = SourceLocation("kernel.py", 1, 0)


def places(layout: FragmentLayout) -> Any:
    """Row-major numbers of the elements, (threads, registers); -1 where a register holds none."""
    threads = np.arange(layout.threads)
    columns = []
    for register in range(layout.registers):
        position = layout.position(threads, register)
        number = np.zeros(layout.threads, np.int64)
        exists = np.ones(layout.threads, bool)
        for index, extent in zip(position, layout.shape, strict=True):
            number = number * extent + index
        for place, extent in layout.limits(threads, register):
            exists &= np.asarray(place) < extent
        columns.append(np.where(exists, number, -1))
    return np.stack(columns, axis=1)


def assert_bijective(layout: FragmentLayout) -> None:
    """Each element once, and registers of a group side by side in the last dimension."""
    numbers = places(layout)
    held = numbers[numbers >= 0]
    assert np.array_equal(np.sort(held), np.arange(np.prod(layout.shape)))
    assert sorted(register for group in layout.groups for register in group) == list(range(layout.registers))
    for group in layout.groups:
        first = numbers[:, group[0]]
        for step, register in enumerate(group):
            assert np.array_equal(numbers[:, register] >= 0, first >= 0)  # a group exists as a whole or not at all
            assert np.array_equal(numbers[first >= 0, register], first[first >= 0] + step)


@given(
    st.lists(st.integers(1, 12), min_size=0, max_size=2),
    st.integers(1, 40),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([32, 64, 96, 128]),
)
@settings(max_examples=200, deadline=None)
def test_blocked_layouts(outer: list[int], chunks: int, vector: int, threads: int) -> None:
    assert_bijective(BlockedLayout((*outer, chunks * vector), threads, vector))


@pytest.mark.parametrize("shape", [(64, 1), (1, 64), (1,), (1, 1), (4, 1, 16), (4, 16, 1, 1), (1, 3, 1, 8)])
def test_blocked_layouts_with_dimensions_of_one(shape: tuple[int, ...]) -> None:
    innermost = [extent for extent in shape if extent != 1][-1:] or [1]
    for vector in (1, 2, 4):
        if innermost[0] % vector == 0:
            assert_bijective(BlockedLayout(shape, 32, vector))


def gemm(m: int, n: int, k: int, dtype: str, transpose_a: bool, transpose_b: bool, pad: int) -> Gemm:
    """A product of whole tiles, padded by ``pad`` elements a row."""

    def region(name: str, rows: int, columns: int, scope: str, kind: str, extra: int = 0) -> Region:
        return Region(Buffer(name, (rows, columns + extra), kind, scope, PLACE, None), (0, 0), (rows, columns))

    a = region("A", *((k, m) if transpose_a else (m, k)), "shared", dtype, pad)
    b = region("B", *((n, k) if transpose_b else (k, n)), "shared", dtype, pad)
    return Gemm(1, a, b, region("C", m, n, "fragment", "float32"), transpose_a, transpose_b, False, m, n, k)


@given(
    st.integers(1, 20).map(lambda x: 8 * x) | st.integers(1, 70),
    st.integers(1, 20).map(lambda x: 8 * x) | st.integers(1, 70),
    st.sampled_from([1, 3, 4, 8, 16, 32, 48, 64]),
    st.sampled_from(["float16", "float32"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 4, 8, 3]),
    st.sampled_from([64, 128, 192, 256, 512]),
    st.sampled_from(["cuda:sm_80", "cuda:sm_90a", "cuda:sm_75", "hip:gfx90a", "hip:gfx942", "hip:gfx950"]),
)
@settings(max_examples=300, deadline=None)
def test_accumulators_of_every_plan(
    m: int, n: int, k: int, dtype: str, ta: bool, tb: bool, pad: int, threads: int, target: str
) -> None:
    plan = plan_gemm(gemm(m, n, k, dtype, ta, tb, pad), threads, tilelang.targets.resolve(target))
    assert plan.layout.shape == (m, n)
    assert plan.layout.threads == threads
    assert_bijective(plan.layout)


PLANS = {
    # m, n, k, dtype, transposes, pad, threads, target -> kind, layout class, warps, word of the note
    (64, 64, 32, "float16", (0, 0), 0, 128, "cuda:sm_80"): ("mma", (2, 2), ""),
    (64, 64, 32, "float16", (1, 1), 8, 128, "cuda:sm_80"): ("mma", (2, 2), ""),
    (128, 64, 32, "float16", (0, 0), 0, 256, "cuda:sm_80"): ("mma", (4, 2), ""),
    (64, 64, 24, "float16", (0, 0), 0, 128, "cuda:sm_80"): ("mma", (2, 2), ""),
    (64, 64, 20, "float16", (0, 0), 0, 128, "cuda:sm_80"): ("outer", (1, 4), "K = 20 of a tile is not a multiple of 16"),
    (64, 64, 32, "float16", (0, 0), 0, 128, "cuda:sm_75"): ("mma", (2, 2), ""),
    (64, 64, 32, "float16", (0, 0), 1, 128, "cuda:sm_80"): ("outer", (1, 4), "not 16-byte aligned"),
    (16, 16, 16, "float16", (0, 0), 0, 128, "cuda:sm_80"): ("outer", (2, 2), "does not divide into 4 warps of 16x16"),
    (64, 64, 32, "float32", (0, 0), 0, 128, "cuda:sm_80"): ("outer", (1, 4), ""),
    (17, 13, 7, "float32", (0, 0), 0, 128, "cuda:sm_80"): ("plain", None, "does not divide into register blocks"),
    (64, 64, 64, "float16", (0, 0), 0, 128, "hip:gfx942"): ("mfma", (2, 1), ""),
    (128, 128, 32, "float32", (0, 0), 0, 256, "hip:gfx942"): ("mfma", (2, 2), ""),
    (16, 16, 16, "float16", (0, 0), 0, 64, "hip:gfx942"): ("mfma", (1, 1), ""),
    (24, 20, 12, "float16", (0, 0), 0, 64, "hip:gfx942"): ("plain", None, "wavefronts of 16x16"),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANS)
def test_which_plan_is_taken(case: Any) -> None:
    m, n, k, dtype, (ta, tb), pad, threads, target = case
    kind, warps, note = PLANS[case]
    plan = plan_gemm(gemm(m, n, k, dtype, bool(ta), bool(tb), pad), threads, tilelang.targets.resolve(target))
    expected = {"mma": MatrixLayout, "mfma": MatrixLayout, "outer": OuterProductLayout, "plain": BlockedLayout}[kind]
    assert (plan.kind, type(plan.layout)) == (kind, expected)
    assert getattr(plan.layout, "warps", None) == warps
    assert note in plan.note
    assert bool(plan.note) == bool(note)


@pytest.mark.parametrize("target", [SM80, GFX942], ids=["sm_80", "gfx942"])
def test_two_products_that_need_different_layouts(target: Any) -> None:
    """One accumulator in two products whose instructions hold it differently: both lines are named."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            W = T.alloc_shared((64, 20), "float32")
            R = T.alloc_shared((20, 65), "float32")  # rows too odd to read two columns at once
            F = T.alloc_fragment((64, 64), "float32")
            T.copy(A, S)
            T.clear(F)
            T.gemm(S, S, F)
            T.gemm(W, R[:, 0:64], F)
            T.copy(F, C)

    program = transformed(main, target)
    with pytest.raises(LayoutError) as caught:
        choose_layouts(program, target)
    first, second = (o.location.line for o in program.operations if o.kind == "gemm")
    message = caught.value.message
    assert f"line {first} (T.gemm(S, S, F)) needs [matrix: " in message
    assert f"line {second} (T.gemm(W, R[:, 0:64], F)) needs [" in message
    assert caught.value.location is not None
    assert caught.value.location.line == second
    assert "T.copy(fragment, shared)" in (caught.value.remedy or "")


def test_fragments_that_meet_must_agree() -> None:
    """Two accumulators of different products are added."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            W = T.alloc_shared((64, 20), "float32")
            R = T.alloc_shared((20, 64), "float32")
            F = T.alloc_fragment((64, 64), "float32")
            G = T.alloc_fragment((64, 64), "float32")
            T.copy(A, S)
            T.gemm(S, S, F, clear_accum=True)
            T.gemm(W, R, G, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                F[i, j] = F[i, j] + G[i, j]
            T.copy(F, C)

    program = transformed(main, SM80)
    with pytest.raises(
        LayoutError, match=r"two uses of fragment G need different layouts: .*T\.gemm\(W, R, G, clear_accum=True\)"
    ):
        choose_layouts(program, SM80)


def test_fragments_used_out_of_order() -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((16, 16), "float32")
            T.copy(A, F)
            for i, j in T.Parallel(16, 16):
                C[i, j] = F[j, i]

    program = transformed(main, SM80)
    with pytest.raises(LayoutError) as caught:
        choose_layouts(program, SM80)
    assert "fragment F of shape (16, 16) is not used element by element here" in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.text.strip() == "for i, j in T.Parallel(16, 16):"


def test_vectors_are_as_wide_as_every_access_allows() -> None:
    """16 bytes of the widest type; less where a row, an offset or a tile is not aligned; never so wide that threads idle."""

    def widths(shape: tuple[int, int], tile: tuple[int, int], shift: int, dtype: str, threads: int = 64) -> int:
        @T.prim_func
        def main(A: T.Tensor(shape, dtype), B: T.Tensor((64, 64), "float32")):
            with T.Kernel(2, threads=threads) as bx:
                S = T.alloc_shared(tile, dtype)
                T.copy(A[0, bx * tile[1] + shift], S)

        program = transformed(main, SM80)
        layout = choose_layouts(program, SM80).nests[id(program.body[0])]
        assert isinstance(layout, BlockedLayout)
        return layout.vector

    assert widths((64, 128), (64, 64), 0, "float32") == 4
    assert widths((64, 128), (64, 64), 0, "float16") == 8
    assert widths((64, 126), (64, 64), 0, "float32") == 2  # rows of 126 elements
    assert widths((64, 127), (64, 64), 0, "float32") == 1
    assert widths((64, 128), (64, 64), 2, "float16") == 2  # the region starts two elements in
    assert widths((64, 128), (64, 36), 0, "float16") == 4  # tiles of 36
    assert widths((64, 128), (1, 64), 0, "float32") == 1  # 64 elements for 64 threads
