"""Thread programs as JSON and back: the same function, node by node."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import tirx

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import BundleError
from tilelang_min.ir.thread_json import function_from_json, function_to_json


@T.prim_func
def product(A: T.Tensor((100, 60), "float16"), B: T.Tensor((60, 80), "float16"), C: T.Tensor((100, 80), "float32")):
    with T.Kernel(3, 4, threads=64) as (bx, by):
        S = T.alloc_shared((32, 24), "float16")
        R = T.alloc_shared((16, 40), "float16")
        F = T.alloc_fragment((32, 32), "float32")
        T.fill(F, -T.infinity("float32"))
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[by * 32, k * 16], S[:, 0:16])
            T.copy(B[k * 16, bx * 32], R[:, 0:32])
            T.gemm(S[:, 0:16], R[:, 0:32], F, clear_accum=True)
        if bx > 0:
            for i, j in T.Parallel(32, 32):
                F[i, j] = T.if_then_else(F[i, j] > 0, T.exp(F[i, j]), T.abs(F[i, j]))
        T.copy(F, C[by * 32, bx * 32])


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942", "cpu:x86-64-v3"])
def test_round_trip(target: str) -> None:
    function = thread_program(product, tilelang.targets.resolve(target))[2].function
    text = function_to_json(function)
    again = function_from_json(text)
    assert tvm_ffi.structural_equal(function, again, map_free_vars=True)
    assert again.script() == function.script()
    assert function_to_json(again) == text
    # Variables keep their identity: what is written and read under one name is one variable.
    assert len(variables(again)) == len(variables(function))


def variables(function: Any) -> set[int]:
    found: set[int] = set()
    tvm_ffi.structural_walk(function.body, (tirx.Var, lambda variable: found.add(int(variable.__chandle__()))))
    return found


def test_text_of_another_tvm() -> None:
    text = function_to_json(thread_program(product, tilelang.targets.resolve("cuda:sm_80"))[2].function)
    record = json.loads(text)
    assert record["tvm"] == tvm.__version__
    record["tvm"] = "0.1"
    with pytest.raises(BundleError, match=r"written by TVM 0\.1, this is"):
        function_from_json(json.dumps(record))


def test_what_cannot_be_written() -> None:
    with pytest.raises(BundleError, match="a thread program cannot hold a set"):
        function_to_json({1, 2})
