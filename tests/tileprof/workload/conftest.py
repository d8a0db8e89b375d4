"""A folder with a kernel file and a function that writes and loads workload files in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tileprof.errors import WorkloadError
from tileprof.workload import Workload, load_workload

KERNELS = """
import tilelang_min as tilelang

@tilelang.jit(target="cpu")
def matmul(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=1, dtype="float16"):
    raise AssertionError("loading a workload runs no kernel file")

@tilelang.jit
def two(M, swap=False):
    @T.prim_func
    def plain(X: T.Tensor((M,)), Y: T.Tensor((M,))):
        def not_returned(): return 0

    @T.prim_func
    def swapped(Y: T.Tensor((M,)), X: T.Tensor((M,)), Z: T.Tensor((M,))):
        pass

    if swap:
        return swapped
    return plain

def branches(M, bias=False):
    if bias:
        @T.prim_func
        def main(X: T.Tensor((M,)), B: T.Tensor((M,))):
            pass
    else:
        @T.prim_func
        def main(X: T.Tensor((M,)), C: T.Tensor((M,))):
            pass
    return main

def wrapped(M):
    @T.prim_func
    def plain(X: T.Tensor((M,))):
        pass

    return decorate(plain)

def reference(A, B):
    return A @ B

def doubled(X, M, swap=True):
    return 2 * X

def mistaken(X, W, K):
    return 2 * X

def fill(shape, dtype, rng):
    return rng.normal(size=shape)
"""

GOOD = """\
version: 1
name: gemm
targets:
  laptop: {target: cpu}
  a100: {target: cuda:sm_80, profiler: ncu}
kernels:
  - name: matmul
    source: kernels/gemm.py:matmul
    args: {dtype: [float16, float32]}
    shapes: [{M: 128, N: 64, K: 32}]
    tiles: {block_M: [32, 64], num_stages: 2}
    reference: kernels/gemm.py:reference
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "gemm.py").write_text(KERNELS)
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Callable[[str], Workload]:
    def write_and_load(text: str) -> Workload:
        path = folder / "w.yaml"
        path.write_text(text)
        return load_workload(path)

    return write_and_load


@pytest.fixture
def problems(folder: Path, load: Callable[[str], Workload]) -> Callable[[str], list[str]]:
    """Lines ``line:column: message`` of every problem of a text, without the file's name."""

    def collect(text: str) -> list[str]:
        with pytest.raises(WorkloadError) as caught:
            load(text)
        prefix = f"{folder / 'w.yaml'}:"
        return [line.removeprefix(prefix) for line in str(caught.value).splitlines() if line.startswith(prefix)]

    return collect


@pytest.fixture
def good() -> str:
    return GOOD
