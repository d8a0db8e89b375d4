"""Barriers: none missing where hazards are planted, none too many where there is no hazard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transform_kernels import GFX942, SM80, barriers, before_barriers, body_text, product, transformed

import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import SimulationError
from tilelang_min.simulate import simulate
from tilelang_min.transform import barriers as barrier_pass

CASES: dict[str, tuple[Any, list[str]]] = {}
"""Kernel and, for every barrier that it needs, the operation behind it."""


def needs(*labels: str) -> Any:
    def enter(function: Any) -> Any:
        CASES[function.__name__] = (function(), list(labels))
        return function

    return enter


@needs("for i in T.Parallel(64)")
def read_after_write():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for i in T.Parallel(64):
                B[i] = S[63 - i]

    return main


@needs("for i in T.Parallel(64)", "T.fill(S, 1.0)", "for i in T.Parallel(64)")
def write_after_read():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for i in T.Parallel(64):
                B[i] = S[63 - i]
            T.fill(S, 1.0)
            for i in T.Parallel(64):
                C[i] = S[63 - i]

    return main


@needs("for i in T.Parallel(64)", "T.copy(S, B)")
def write_after_write():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.fill(S, 1.0)
            for i in T.Parallel(64):
                S[63 - i] = A[i]
            T.copy(S, B)

    return main


@needs("T.copy(A[k * 64], S)", "for i in T.Parallel(64)")
def carried_by_a_loop():
    """The tile is filled again while slower threads still read it."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(4):
                T.copy(A[k * 64], S)
                for i in T.Parallel(64):
                    B[k * 64 + i] = S[63 - i]

    return main


@needs("T.copy(A[k * 64], S)", "for i in T.Parallel(64)")
def carried_by_the_outer_loop():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(4):
                T.copy(A[k * 64], S)
                for j in T.serial(4):
                    for i in T.Parallel(64):
                        B[(k * 4 + j) * 64 + i] = S[63 - i]

    return main


@needs("for i in T.Parallel(64)")
def behind_a_branch():
    """Only one branch writes the tile; the barrier stands behind both."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((64,), "float32")
            if bx > 0:
                T.copy(A, S)
            else:
                T.fill(S, 2.0)
            for i in T.Parallel(64):
                B[i] = S[63 - i]

    return main


@needs("for i in T.Parallel(64)", "S[0] = A[0]", "for i in T.Parallel(64)")
def element_of_all():
    """One thread writes an element that all read."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for i in T.Parallel(64):
                B[i] = S[63 - i]
            S[0] = A[0]
            for i in T.Parallel(64):
                C[i] = S[63 - i]

    return main


@needs("for i in T.Parallel(64)", "for i in T.Parallel(64)", "for i in T.Parallel(64)")
def neighbours():
    """Two tiles in turns, each read at the neighbour's place."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            R = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for i in T.Parallel(64):
                R[i] = S[(i + 1) % 64]
            for i in T.Parallel(64):
                S[i] = R[(i + 1) % 64]
            for i in T.Parallel(64):
                B[i] = S[(i + 1) % 64]

    return main


@needs("for i in T.Parallel(64)")
def tensor_read_back():
    """A tensor that the block wrote is read by other threads than wrote it."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), W: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                W[i] = A[i]
            for i in T.Parallel(64):
                B[i] = W[63 - i]

    return main


@needs("T.copy(F, B)")
def tensor_written_twice():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((64,), "float32")
            T.copy(A, F)
            T.fill(B[0:64], 5.0)
            T.copy(F, B)

    return main


@needs()
def no_hazard_different_tiles():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            R = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            T.copy(A, R)
            T.fill(B[0:64], 5.0)

    return main


@needs("T.copy(S, B[0:128])")
def no_hazard_different_parts():
    """Halves of one tile are filled by two copies."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((128,), "float32")
            T.copy(A, S[0:64])
            T.copy(A, S[64:128])
            T.copy(S, B[0:128])

    return main


@needs()
def no_hazard_own_elements():
    """Every thread changes what it wrote itself, in a loop."""

    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(8):
                for i in T.Parallel(64):
                    S[i] = A[k, i]
            for k in T.serial(8):
                for i in T.Parallel(64):
                    B[i] = B[i] + A[k, i]

    return main


@needs()
def no_hazard_parts_of_a_tensor():
    """Every iteration writes its own part; the tensor is not touched twice."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((32,), "float32")
            for k in T.serial(8):
                T.copy(A[k * 32], F)
                T.copy(F, B[k * 32])

    return main


@needs("T.copy(F, B[k * 16])")
def overlapping_parts_of_a_tensor():
    """Windows of 32 that move by 16: the later iteration must win."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((32,), "float32")
            for k in T.serial(8):
                T.copy(A[k * 32], F)
                T.copy(F, B[k * 16])

    return main


@needs()
def no_hazard_one_thread():
    """Elements that one thread writes and reads."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((2,), "float32")
            S[0] = A[0]
            S[1] = S[0] * 2.0
            B[0] = S[1]

    return main


@pytest.mark.parametrize("name", CASES)
def test_barriers_stand_where_they_are_needed(name: str) -> None:
    kernel, expected = CASES[name]
    assert before_barriers(transformed(kernel, SM80)) == expected


# The simulator looks for races on shared memory; not on tensors.
RACES = [name for name, (_, labels) in CASES.items() if labels and "tensor" not in name and not name.startswith("no_")]


@pytest.mark.parametrize("name", RACES)
def test_without_barriers_the_simulator_sees_a_race(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernels with the pass switched off: the tests above would notice a barrier that is missing."""
    kernel, _ = CASES[name]
    monkeypatch.setattr(barrier_pass, "need_barrier", lambda *_: False)
    program = thread_program(kernel, SM80)[2]
    arrays = {p.name: np.ones(p.shape, p.dtype) for p in program.parameters}
    with pytest.raises(SimulationError, match="race on shared memory"):
        simulate(program, arrays)


@pytest.mark.parametrize("target", [SM80, GFX942], ids=["sm_80", "gfx942"])
@pytest.mark.parametrize("stages", [2, 3])
def test_a_pipeline_needs_one_barrier_an_iteration(stages: int, target: Any) -> None:
    program = transformed(product(6, stages), target)
    assert barriers(program) == 1
    assert "  barrier" in body_text(program)


@pytest.mark.parametrize("target", [SM80, GFX942], ids=["sm_80", "gfx942"])
def test_without_stages_a_product_needs_two(target: Any) -> None:
    """Behind the copies, and before the tiles are filled again."""
    program = transformed(product(6, 1), target)
    assert before_barriers(program) == ["T.copy(A[0, k * 16], S)", "T.gemm(S, R, F)"]


def test_a_pipeline_inside_a_loop_waits_before_it_begins_again() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 16), "float16")
            R = T.alloc_shared((16, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            for n in T.serial(4):
                T.clear(F)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, k * 16], S)
                    T.copy(A[k * 16, 0], R)
                    T.gemm(S, R, F)
                T.copy(F, C[n * 64, 0])

    for target in (SM80, GFX942):
        program = transformed(main, target)
        # One in the pipeline; one before its prologue, whose stage 0 slower threads may still be reading.
        assert barriers(program) == 2
        generator = np.random.default_rng(0)
        a = generator.standard_normal((64, 64)).astype(np.float16)
        thread = thread_program(main, target)[2]
        made = simulate(thread, {"A": a, "C": np.full((256, 64), np.nan, np.float32)}).outputs["C"]
        wide = a.astype(np.float64)
        assert np.abs(made - np.tile(wide @ wide, (4, 1))).max() < 1e-4
