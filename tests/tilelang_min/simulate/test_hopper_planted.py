"""Every instruction that orders things, taken out of a product as lowering makes it for Hopper, one at a time, is missed."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from test_planted_bugs import workload
from tvm import tirx

from tilelang_min.driver.build import thread_program
from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate
from tilelang_min.targets import resolve
from tilelang_min.transform.hopper import HopperOptions

M, N = 64, 64
HARMLESS = {"setmaxnreg"}
"""Take up registers, order nothing."""
PRODUCTS = ("tirx.ptx.wgmma_f16", "tirx.ptx.mbarrier_try_wait")


@cache
def lowered(k: int, split: int) -> ThreadProgram:
    kernel = workload("gemm").gemm.prim_func(M, N, k, block_M=64, block_N=64, block_K=64, num_stages=2, threads=128)
    program = thread_program(kernel, resolve("cuda:sm_90a"), hopper=HopperOptions(split=split))[2]
    assert program.tensor_maps
    return program


def name(node: Any) -> str:
    return str(getattr(getattr(node.value, "op", None), "name", ""))


def orders(node: Any) -> bool:
    return name(node) == "tirx.tvm_storage_sync" or (
        name(node).startswith("tirx.ptx.") and not name(node).startswith(PRODUCTS)
    )


def without(whole: ThreadProgram, kind: Any, number: int) -> tuple[ThreadProgram, str]:
    """The program without the ``number``-th such statement, and what that was."""
    seen, gone = -1, ""

    def drop(node: Any) -> Any:
        nonlocal seen, gone
        if kind is tirx.Evaluate and not orders(node):
            return node
        seen += 1
        if seen != number:
            return node
        gone = name(node).removeprefix("tirx.ptx.") if kind is tirx.Evaluate else "wait"
        return tirx.Evaluate(tirx.IntImm("int32", 0))

    body = tvm_ffi.structural_map(whole.function.body, (kind, drop))
    return dataclasses.replace(whole, function=whole.function.with_body(body)), gone


def count(whole: ThreadProgram, kind: Any) -> int:
    found: list[Any] = []
    tvm_ffi.structural_walk(whole.function.body, (kind, found.append))
    return sum(1 for node in found if kind is tirx.While or orders(node))


@pytest.mark.parametrize(("k", "split"), [(320, 1), (640, 2)])
def test_each_is_needed(k: int, split: int) -> None:
    """One block for the tile, or two that share its iterations."""
    rng = np.random.default_rng(3)
    whole = lowered(k, split)
    assert whole.cluster == (split, 1, 1)
    arrays = {"A": rng.standard_normal((M, k)), "B": rng.standard_normal((k, N)), "C": np.full((M, N), np.nan)}
    arrays = {key: array.astype(np.float16) for key, array in arrays.items()}
    expected = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)

    def wrong(program: ThreadProgram) -> bool:
        try:
            found = simulate(program, arrays, count=False).outputs["C"]
        except SimulationError:
            return True
        return not np.allclose(found.astype(np.float64), expected, rtol=1e-2, atol=1e-1)

    assert not wrong(whole)
    unnoticed: dict[str, int] = {}
    tried = 0
    for kind in (tirx.While, tirx.Evaluate):
        for number in range(count(whole, kind)):
            program, gone = without(whole, kind, number)
            tried += 1
            if gone not in HARMLESS and not wrong(program):
                unnoticed[gone] = unnoticed.get(gone, 0) + 1
    assert tried > 20
    # With one tile a block: the last stage need not be given back, and before the first store nothing waits to be read.
    assert unnoticed == {"mbarrier_arrive_nocount": 1, "cp_async_bulk_wait_group": 1, "bar_sync_count": 1}


@pytest.mark.parametrize("shape", [(64, 64, 320), (200, 104, 136), (192, 128, 64)])
def test_as_they_are_they_raise_no_alarm(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    kernel = workload("gemm").gemm.prim_func(m, n, k, block_M=128, block_N=64, block_K=64, num_stages=3, threads=256)
    program = thread_program(kernel, resolve("cuda:sm_90a"), hopper=HopperOptions())[2]
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    found = simulate(program, {"A": a, "B": b, "C": np.zeros((m, n), np.float16)}).outputs["C"]
    np.testing.assert_allclose(
        found.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-2, atol=0.1
    )
