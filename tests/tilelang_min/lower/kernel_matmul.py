"""Matrix products of every shape for the tests, and the quickstart's own kernels."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tilelang_min.language as T

KERNELS = Path(__file__).resolve().parents[3] / "workloads" / "kernels"


@lru_cache
def quickstart(name: str) -> ModuleType:
    """A module of ``workloads/kernels``."""
    path = KERNELS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"quickstart_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def matmul(
    M: int,
    N: int,
    K: int,
    bm: int = 32,
    bn: int = 32,
    bk: int = 16,
    stages: int = 2,
    threads: int = 64,
    dtype: str = "float16",
    transpose_a: bool = False,
    transpose_b: bool = False,
    pad: int = 0,
    out: str = "float32",
) -> Any:
    """``C = op(A) @ op(B)``; with ``out`` float16 the accumulator is converted on the way out.  ``pad`` widens shared rows."""
    a_shape = (K, M) if transpose_a else (M, K)
    b_shape = (N, K) if transpose_b else (K, N)
    a_tile = (bk, bm) if transpose_a else (bm, bk)
    b_tile = (bn, bk) if transpose_b else (bk, bn)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((a_tile[0], a_tile[1] + pad), dtype)
            B_shared = T.alloc_shared((b_tile[0], b_tile[1] + pad), dtype)
            C_local = T.alloc_fragment((bm, bn), out if out in ("float64", "int32") else "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if transpose_a:
                    T.copy(A[ko * bk, by * bm], A_shared[:, 0:bm])
                else:
                    T.copy(A[by * bm, ko * bk], A_shared[:, 0:bk])
                if transpose_b:
                    T.copy(B[bx * bn, ko * bk], B_shared[:, 0:bk])
                else:
                    T.copy(B[ko * bk, bx * bn], B_shared[:, 0:bn])
                T.gemm(
                    A_shared[:, 0 : a_tile[1]],
                    B_shared[:, 0 : b_tile[1]],
                    C_local,
                    transpose_A=transpose_a,
                    transpose_B=transpose_b,
                )
            if out == "float16":
                C_half = T.alloc_fragment((bm, bn), "float16")
                T.copy(C_local, C_half)
                T.copy(C_half, C[by * bm, bx * bn])
            else:
                T.copy(C_local, C[by * bm, bx * bn])

    return main


def operands(
    M: int, N: int, K: int, dtype: str, transpose_a: bool = False, transpose_b: bool = False
) -> tuple[Any, Any]:
    """Normal A and B as they are stored."""
    generator = np.random.default_rng(M * 1000003 + N * 1009 + K)
    a = generator.standard_normal((K, M) if transpose_a else (M, K)).astype(dtype)
    b = generator.standard_normal((N, K) if transpose_b else (K, N)).astype(dtype)
    return a, b


def product(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """The product in float64."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    return (left.T if transpose_a else left) @ (right.T if transpose_b else right)
