"""Names that mean something in generated code are names like any other in a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T


@T.prim_func
def main(bx: T.Tensor((64,), "float32"), block: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64) as b:
        for lane in T.Parallel(32):
            block[b * 32 + lane] = bx[b * 32 + lane] * 2.0


@T.prim_func
def kernel(threadIdx_x: T.Tensor((64,), "float32"), float: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64) as block_begin:
        größe = T.alloc_shared((32,), "float32")
        S_ahead = T.alloc_shared((32,), "float32")
        T.copy(threadIdx_x[block_begin * 32], größe)
        T.copy(größe, S_ahead)
        for int in T.Parallel(32):
            δ = größe[int]
            float[block_begin * 32 + int] = S_ahead[31 - int] + δ


@T.prim_func
def printf(
    acc: T.Tensor((32, 32), "float16"), a_frag: T.Tensor((8,), "float16"), b_frag: T.Tensor((32, 32), "float32")
):
    with T.Kernel(1, threads=64):
        A = T.alloc_shared((32, 32), "float16")
        A_wide = T.alloc_fragment((32, 32), "float32")
        T.clear(A_wide)
        for register in T.Pipelined(2, num_stages=2):
            T.copy(acc[0, register * 0], A)
            T.gemm(A, A, A_wide)
        T.copy(A_wide, b_frag)


CASES = {
    "main": (main, lambda a: a[0] * 2),
    "kernel": (kernel, lambda a: a[0].reshape(2, 32)[:, ::-1].reshape(-1) + a[0]),
    "printf": (printf, lambda a: 2 * (a[0].astype(np.float64) @ a[0].astype(np.float64))),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", CASES)
def test_names(name: str, target: str) -> None:
    prim_func, reference = CASES[name]
    compiled = tilelang.compile(prim_func, target, cache=False)
    assert compiled.name == name
    generator = np.random.default_rng(0)
    arrays: list[Any] = [generator.standard_normal(p.shape).astype(p.dtype) for p in compiled.parameters]
    expected = reference(arrays)
    if target == "cpu":
        compiled(*arrays)
        made = arrays[-1]
    else:
        made = compiled.simulate(*arrays).outputs[compiled.parameters[-1].name]
    assert np.allclose(made, expected, rtol=1e-5, atol=1e-4)
