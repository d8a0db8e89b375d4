"""sm_70: compiled by the NVRTC of CUDA 12, an extra; without it the error says so.  Simulating needs no compiler."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.codegen.nvidia import nvrtc, sass
from tilelang_min.codegen.nvidia.wheels import wheel_files
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import CodegenError
from tilelang_min.simulate import simulate
from tilelang_min.targets import resolve


def product(dtype: str) -> Any:
    @T.prim_func
    def gemm(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 32), dtype)
            B_shared = T.alloc_shared((32, 64), dtype)
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], A_shared)
                T.copy(B[k * 32, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C)

    return gemm


def has_old_compiler() -> bool:
    return any(path.name == "libnvrtc.so.12" for path in wheel_files("*/lib/libnvrtc.so.*"))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_numerics(dtype: str) -> None:
    """The thread program, against float64; loads run ahead through registers, as there are no asynchronous copies."""
    _, layouts, program = thread_program(product(dtype), resolve("cuda:sm_70"))
    assert layouts is not None
    assert [plan.kind for plan in layouts.gemms.values()] == ["outer"]
    generator = np.random.default_rng(7)
    a, b = (generator.standard_normal((64, 64)).astype(dtype) for _ in "ab")
    result = simulate(program, {"A": a, "B": b, "C": np.zeros((64, 64), np.float32)})
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(result.outputs["C"], exact, rtol=1e-4, atol=1e-3)


@pytest.mark.skipif(has_old_compiler(), reason="the extra is installed")
def test_without_the_extra() -> None:
    with pytest.raises(CodegenError, match="before sm_75 need the NVRTC of CUDA 12, which is not installed") as caught:
        tilelang.compile(product("float32"), "cuda:sm_70", cache=False)
    assert caught.value.remedy is not None
    assert "python -m pip install 'tileprof[volta]'" in caught.value.remedy


@pytest.mark.skipif(not has_old_compiler(), reason="the extra 'volta' (nvidia-cuda-nvrtc-cu12) is not installed")
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_with_the_extra(dtype: str, tmp_path: Path) -> None:
    kernel = tilelang.compile(product(dtype), "cuda:sm_70", cache=False)
    metadata = kernel.metadata
    assert metadata.toolchain["nvrtc"].startswith("12.")
    assert metadata.registers_per_thread is not None
    assert 16 < metadata.registers_per_thread <= 255
    assert metadata.instructions["total"]["fma"] >= 64
    assert metadata.instructions["attributed"] > 0.95
    assert metadata.code_bytes == 16 * len(kernel.listing.instructions)
    assert nvrtc.version("sm_80").startswith("13.")  # the others keep the newest
    assert tilelang.load(kernel.save(tmp_path / "volta.tlk")).metadata == metadata


def test_only_cubins_of_volta_are_relabelled() -> None:
    header = bytearray(64)
    header[48:51] = bytes((70, 5, 70))
    changed = sass._readable(bytes(header))
    assert changed[48:51] == bytes((75, 5, 75))
    header[48:51] = bytes((75, 5, 75))
    assert sass._readable(bytes(header)) == bytes(header)
    assert importlib.util.find_spec("nvidia") is not None
