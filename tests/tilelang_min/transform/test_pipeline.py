"""Pipelines: what runs ahead, how far, through what, and what must stay where it is."""

from __future__ import annotations

from typing import Any

import pytest
from transform_kernels import CPU, GFX942, SM80, body_text, product

import tilelang_min.language as T
from tilelang_min.frontend import parse
from tilelang_min.transform.pipeline import pipeline


def expanded(kernel: Any, target: Any = SM80) -> list[str]:
    return body_text(pipeline(parse(kernel), target))


def test_two_stages_with_asynchronous_copies() -> None:
    assert expanded(product(4, 2)) == [
        "fill F[0:+64, 0:+64] = T.float32(0.0)",
        "copy async A[0:+64, 0:+16] -> S[0:+64, 0:+16]@(0)",
        "copy async B[0:+16, 0:+64] -> R[0:+16, 0:+64]@(0)",
        "commit",
        "for k in 0 .. 4 (serial)",
        "  wait until 0 groups pending",
        "  barrier",
        "  if k + 1 < 4",
        "    copy async A[0:+64, k * 16 + 16:+16] -> S[0:+64, 0:+16]@(k + 1)",
        "    copy async B[k * 16 + 16:+16, 0:+64] -> R[0:+16, 0:+64]@(k + 1)",
        "  commit",
        "  gemm F[0:+64, 0:+64] += S[0:+64, 0:+16]@(k) @ R[0:+16, 0:+64]@(k)",
        "copy F[0:+64, 0:+64] -> C[0:+64, 0:+64]",
    ]


def test_three_stages_with_asynchronous_copies() -> None:
    text = expanded(product(5, 3))
    assert text[1:7] == [
        "copy async A[0:+64, 0:+16] -> S[0:+64, 0:+16]@(0)",
        "copy async B[0:+16, 0:+64] -> R[0:+16, 0:+64]@(0)",
        "commit",
        "copy async A[0:+64, 16:+16] -> S[0:+64, 0:+16]@(1)",
        "copy async B[16:+16, 0:+64] -> R[0:+16, 0:+64]@(1)",
        "commit",
    ]
    assert text[7:11] == [
        "for k in 0 .. 5 (serial)",
        "  wait until 1 groups pending",
        "  barrier",
        "  if k + 2 < 5",
    ]
    assert "    copy async A[0:+64, k * 16 + 32:+16] -> S[0:+64, 0:+16]@(k + 2)" in text


def test_two_stages_through_registers() -> None:
    """Loads before the work, stores behind it, each side of a fence; one barrier an iteration."""
    assert expanded(product(4, 2), GFX942) == [
        "fill F[0:+64, 0:+64] = T.float32(0.0)",
        "copy A[0:+64, 0:+16] -> S_ahead[0:+64, 0:+16]",
        "copy B[0:+16, 0:+64] -> R_ahead[0:+16, 0:+64]",
        "copy S_ahead[0:+64, 0:+16] -> S[0:+64, 0:+16]@(0)",
        "copy R_ahead[0:+16, 0:+64] -> R[0:+16, 0:+64]@(0)",
        "for k in 0 .. 4 (serial)",
        "  barrier",
        "  if k + 1 < 4",
        "    copy A[0:+64, k * 16 + 16:+16] -> S_ahead[0:+64, 0:+16]",
        "    copy B[k * 16 + 16:+16, 0:+64] -> R_ahead[0:+16, 0:+64]",
        "  scheduling fence",
        "  gemm F[0:+64, 0:+64] += S[0:+64, 0:+16]@(k) @ R[0:+16, 0:+64]@(k)",
        "  scheduling fence",
        "  if k + 1 < 4",
        "    copy S_ahead[0:+64, 0:+16] -> S[0:+64, 0:+16]@(k + 1)",
        "    copy R_ahead[0:+16, 0:+64] -> R[0:+16, 0:+64]@(k + 1)",
        "copy F[0:+64, 0:+64] -> C[0:+64, 0:+64]",
    ]


@pytest.mark.parametrize(
    ("steps", "stages", "expected"), [(1, 3, 1), (2, 3, 2), (3, 3, 3), (9, 3, 3), (9, 1, 1), (9, 0, 1)]
)
@pytest.mark.parametrize("target", [SM80, GFX942], ids=["sm_80", "gfx942"])
def test_never_more_stages_than_iterations(steps: int, stages: int, expected: int, target: Any) -> None:
    program = pipeline(parse(product(steps, stages)), target)
    assert program.stages == ({} if expected == 1 else {"S": expected, "R": expected})
    text = body_text(program)
    if expected == 1:  # an ordinary loop, nothing before it
        assert text[1] == f"for k in 0 .. {steps} (serial)"
        assert text[2] == "  copy A[0:+64, k * 16:+16] -> S[0:+64, 0:+16]"


def test_the_cpu_needs_no_pipeline() -> None:
    program = pipeline(parse(product(9, 3)), CPU)
    assert program.stages == {}
    assert body_text(program)[1:3] == ["for k in 0 .. 9 (serial)", "  copy A[0:+64, k * 16:+16] -> S[0:+64, 0:+16]"]


def test_a_loop_of_unknown_length_asks_before_every_copy() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_shared((16, 16), "float32")
            F = T.alloc_fragment((16, 16), "float32")
            T.clear(F)
            for k in T.Pipelined(bx, 4, num_stages=3):
                T.copy(A[0, k * 16], S)
                for i, j in T.Parallel(16, 16):
                    F[i, j] += S[i, j]
            T.copy(F, B[0, bx * 16])

    text = expanded(main)
    assert text[1:7] == [
        "if 4 - bx > 0",
        "  copy async A[0:+16, bx * 16:+16] -> S[0:+16, 0:+16]@(0)",
        "commit",
        "if 4 - bx > 1",
        "  copy async A[0:+16, bx * 16 + 16:+16] -> S[0:+16, 0:+16]@(1)",
        "commit",
    ]
    assert "for k in bx .. bx + (4 - bx) (serial)" in text
    assert text[-3:-1] == ["  parallel i < 16, j < 16", "    F[i, j] = F[i, j] + S[i, j]"]


KEEP: dict[str, Any] = {}


def keep(function: Any) -> Any:
    KEEP[function.__name__] = function
    return function


@keep
def tile_initialised_before():
    """What the copy does not bring comes from before the loop."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 32), "float32")
            T.clear(S)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], S[:, 0:16])
                T.copy(S, B[0:16, 0:32])

    return main


@keep
def tile_read_behind_the_loop():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], S)
            T.copy(S, B[0, 0])

    return main


@keep
def tile_read_before_it_is_filled():
    """The copy's own tile from the iteration before."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(S, B[0, k * 16])
                T.copy(A[0, k * 16], S)

    return main


@keep
def source_written_in_the_loop():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * 16], S)
                T.copy(S, A[0, k * 16 + 16])

    return main


@keep
def tile_changed_in_the_loop():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], S)
                for i, j in T.Parallel(16, 16):
                    S[i, j] = S[i, j] * 2.0
                T.copy(S, B[0, k * 16])

    return main


@keep
def type_converted():
    """A copy that converts goes element by element."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], S)
                T.copy(S, B[0, k * 16])

    return main


@keep
def place_from_a_tensor():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), J: T.Tensor((4,), "int32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, J[k]], S)
                T.copy(S, B[0, k * 16])

    return main


@keep
def copy_under_a_condition():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                if bx + k > 1:
                    T.copy(A[0, k * 16], S)
                    T.copy(S, B[0, k * 16])

    return main


@keep
def place_in_the_tile_moves():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 16], S[k * 16 : k * 16 + 16, :])
                T.copy(S[k * 16 : k * 16 + 16, :], B[0, k * 16])

    return main


@keep
def tile_as_a_place():
    """A shared tile of indices read as the offset of another copy cannot name a stage."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), J: T.Tensor((64,), "int32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            L = T.alloc_shared((16,), "int32")
            F = T.alloc_fragment((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(J[k * 16], L)
                T.copy(A[0:16, L[0] : L[0] + 16], F)
                T.copy(F, B[0, k * 16])

    return main


@pytest.mark.parametrize("name", KEEP)
def test_copies_that_must_not_run_ahead(name: str) -> None:
    """The loop stays as it was written, whatever the target."""
    kernel = KEEP[name]()
    for target in (SM80, GFX942):
        program = pipeline(parse(kernel), target)
        assert program.stages == {}
        as_written = [line.replace("(pipelined)", "(serial)") for line in body_text(parse(kernel))]
        assert body_text(program) == as_written


def test_some_copies_run_ahead_and_others_stay() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), D: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 16), "float32")
            W = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(1, 4, num_stages=2):
                T.copy(A[0, k * 16], S)
                T.copy(D[0, k * 16], W)
                for j in T.serial(2):
                    if k > j:
                        for i in T.Parallel(16):
                            B[j, k * 16 + i] = S[j, i] + W[j, i]

    program = pipeline(parse(main), SM80)
    assert program.stages == {"S": 2}
    text = body_text(program)
    assert text == [
        "copy async A[0:+16, 16:+16] -> S[0:+16, 0:+16]@(0)",
        "commit",
        "for k in 1 .. 4 (serial)",
        "  wait until 0 groups pending",
        "  barrier",
        "  if k + 1 < 4",
        "    copy async A[0:+16, k * 16 + 16:+16] -> S[0:+16, 0:+16]@(k)",
        "  commit",
        "  copy D[0:+16, k * 16:+16] -> W[0:+16, 0:+16]",
        "  for j in 0 .. 2 (serial)",
        "    if k > j",
        "      parallel i < 16",
        "        B[j, k * 16 + i] = S[j, i] + W[j, i]",
    ]
    nest = program.body[-1].body[-1].body[0].then[0]
    assert {name: str(stage) for name, stage in nest.stages.items()} == {"S": "k - 1"}
