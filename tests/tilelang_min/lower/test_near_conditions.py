"""Programs close to what the passes ask for, found by random search: values are small integers, so that results are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min.language as T


def whole(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_part_of_a_tile_that_an_outer_loop_chose_stays(target: str) -> None:
    """The copy of the second round writes the other part; what is multiplied is what the first round left."""

    @T.prim_func
    def main(A: T.Tensor((128, 96), "float16"), B: T.Tensor((64, 96), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            parts = T.alloc_shared((2, 64, 32), "float16")
            tile = T.alloc_shared((64, 32), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for g in T.serial(2):
                for k in T.Pipelined(3, num_stages=2):
                    T.copy(A[g * 64, k * 32], parts[g, 0:64, 0:32])
                    T.copy(B[0, k * 32], tile)
                    T.gemm(parts[0, 0:64, 0:32], tile, total, transpose_B=True)
            T.copy(total, C)

    a, b = whole(128, 96), whole(64, 96, seed=1)
    left, right = a[:64].astype(np.float64), b.astype(np.float64)
    last = sum(left[:, 64:] @ right[:, k * 32 : k * 32 + 32].T for k in range(3))
    (made,) = run(main, target, [a, b, np.zeros((64, 64), np.float32)]).values()
    assert np.array_equal(made, left @ right.T + last)


@pytest.mark.parametrize("stages", [1, 3])
def test_narrow_panels_and_loops_that_never_run(stages: int) -> None:
    """Panels of 32 bytes set the highest bit of a descriptor; a length of zero in all blocks is a number."""

    @T.prim_func
    def main(A: T.Tensor((128, 32), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(1, 2, threads=256) as (bx, by):
            left = T.alloc_shared((128, 16), "float16")
            right = T.alloc_shared((64, 16), "float16")
            total = T.alloc_fragment((128, 64), "float32")
            T.clear(total)
            for k in T.serial(2):
                T.copy(A[0, k * 16], left)
                T.copy(B[0, k * 16], right)
                T.gemm(left, right, total, transpose_B=True)
            other = T.alloc_shared((128, 16), "float16")
            second = T.alloc_shared((64, 16), "float16")
            for k in T.Pipelined((by * 2 + bx) % 2, num_stages=stages):
                T.copy(A[0, k * 16], other)
                T.copy(B[0, k * 16], second)
                T.gemm(other, second, total, transpose_B=True)
            T.copy(total, C[by * 128, 0])

    a, b = whole(128, 32), whole(64, 32, seed=1)
    (made,) = run(main, "cuda:sm_90a", [a, b, np.zeros((256, 64), np.float32)]).values()
    product = a.astype(np.float64) @ b.T.astype(np.float64)
    assert np.array_equal(made, np.concatenate([product, product]))
