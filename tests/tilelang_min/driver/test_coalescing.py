"""Suggestions for uncoalesced access: proved by counting, and true when a kernel is written as they say."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.coalescing import coalescing
from tilelang_min.driver.suggestion_records import Suggestion
from tilelang_min.driver.suggestions import suggest_for
from tilelang_min.targets import resolve


def transpose(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, 256), dtype), B: T.Tensor((256, 128), dtype)):
        with T.Kernel(4, 8, threads=128) as (bx, by):
            for i, j in T.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = A[bx * 32 + j, by * 32 + i]

    return main


def staged(dtype: str, padding: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, 256), dtype), B: T.Tensor((256, 128), dtype)):
        with T.Kernel(4, 8, threads=128) as (bx, by):
            S = T.alloc_shared((32, 32 + padding), dtype)
            for i, j in T.Parallel(32, 32):
                S[i, j] = A[bx * 32 + i, by * 32 + j]
            for i, j in T.Parallel(32, 32):
                B[by * 32 + i, bx * 32 + j] = S[j, i]

    return main


def columns() -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, 256), "float32"), B: T.Tensor((128, 256), "float32")):
        with T.Kernel(8, 4, threads=128) as (bx, by):
            for i, j in T.Parallel(32, 32):
                B[by * 32 + j, bx * 32 + i] = A[by * 32 + j, bx * 32 + i] * 2.0

    return main


def rows() -> Any:
    @T.prim_func
    def main(A: T.Tensor((128, 256), "float32"), B: T.Tensor((128, 256), "float32")):
        with T.Kernel(8, 4, threads=128) as (bx, by):
            for j, i in T.Parallel(32, 32):
                B[by * 32 + j, bx * 32 + i] = A[by * 32 + j, bx * 32 + i] * 2.0

    return main


def suggested(kernel: Any, target: str) -> list[Suggestion]:
    program = thread_program(kernel, resolve(target))[2]
    return coalescing(program, analyse_program(program).counts)


def wasted(kernel: Any, target: str) -> int:
    counts = analyse_program(thread_program(kernel, resolve(target))[2]).counts
    return sum(c.sectors - c.sectors_ideal for c in counts if c.sectors is not None and c.sectors_ideal is not None)


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_transposition_goes_through_a_shared_tile(target: str) -> None:
    (found,) = suggested(transpose("float32"), target)
    assert (found.kind, found.buffer, found.padding, found.extra_bytes) == ("staging", "A", 1, 32 * 33 * 4)
    assert found.conflicts_before > 10_000 > found.conflicts_after == 0
    # Written so, a kernel wastes nothing and has no conflicts.
    assert wasted(staged("float32", found.padding), target) == 0
    counts = analyse_program(thread_program(staged("float32", found.padding), resolve(target))[2]).counts
    assert sum(c.conflicts or 0 for c in counts if c.space == "shared") == 0
    assert Suggestion.from_json(found.to_json()) == found


def test_loops_in_the_wrong_order_are_exchanged() -> None:
    (found,) = suggested(columns(), "cuda:sm_80")
    assert (found.kind, found.extra_bytes, found.conflicts_after) == ("order", 0, 0)
    assert "order the loops" in found.text
    assert found.conflicts_before == wasted(columns(), "cuda:sm_80") > 0 == wasted(rows(), "cuda:sm_80")
    assert suggested(rows(), "cuda:sm_80") == []


def test_every_n_th_element_has_no_better_order() -> None:
    @T.prim_func
    def main(A: T.Tensor((48, 2048), "float32"), B: T.Tensor((48, 256), "float32")):
        with T.Kernel(4, 3, threads=128) as (bx, by):
            for i, j in T.Parallel(16, 64):
                B[by * 16 + i, bx * 64 + j] = A[by * 16 + i, (bx * 64 + j) * 8]

    assert suggested(main, "cuda:sm_80") == []


def test_a_kernel_and_its_report_tell() -> None:
    kernel = tilelang.compile(transpose("float32"), "cuda:sm_80")
    assert [one.kind for one in kernel.suggestions()] == ["staging"]
    text = str(tilelang.profile(kernel).memory_conflicts())
    assert "go through a shared tile, T.alloc_shared((32, 32 + 1), ...)" in text
    assert "A load 1,024 -> 128 sectors" in text


def padded_copies(pad: int, swizzled: bool) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"), C: T.Tensor((256, 256), "float32")
    ):
        with T.Kernel(4, 4, threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64 + pad), "float16")
            B_shared = T.alloc_shared((64, 64 + pad), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            if swizzled:
                T.annotate_layout(
                    {
                        A_shared: tilelang.layout.make_swizzled_layout(A_shared),
                        B_shared: tilelang.layout.make_swizzled_layout(B_shared),
                    }
                )
            T.clear(total)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 64, k * 64], A_shared[:, 0:64])
                T.copy(B[k * 64, bx * 64], B_shared[:, 0:64])
                T.gemm(A_shared[:, 0:64], B_shared[:, 0:64], total)
            T.copy(total, C[by * 64, bx * 64])

    return main


def test_copies_that_conflict_because_of_padding_get_a_swizzle_and_no_more_padding() -> None:
    program = thread_program(padded_copies(8, swizzled=False), resolve("cuda:sm_80"))[2]
    found = suggest_for(program)
    assert {(one.buffer, one.kind) for one in found} == {("A_shared", "swizzle"), ("B_shared", "swizzle")}
    for one in found:
        assert one.conflicts_before > 0 == one.conflicts_after
        assert one.extra_bytes == -64 * 8 * 2 * 2
        assert "leave the padding away" in one.text
        assert "2,048 bytes fewer a block" in one.text
    better = thread_program(padded_copies(0, swizzled=True), resolve("cuda:sm_80"))[2]
    assert not any(count.conflicts for count in analyse_program(better).counts)
