"""Division that cuts towards zero, as persistent blocks count their turns with it; names bx, by of a GPU's thread program."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import tirx

from tilelang_min.analysis.blocks import classify
from tilelang_min.analysis.intervals import Interval, Unknown, interval
from tilelang_min.analysis.points import evaluate
from tilelang_min.driver.build import thread_program
from tilelang_min.targets import resolve

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"


def test_bounds_and_values() -> None:
    x = tirx.Var("x", "int32")
    handle = int(x.__chandle__())
    quotient, rest = tirx.truncdiv(x, tirx.IntImm("int32", 5)), tirx.truncmod(x, tirx.IntImm("int32", 5))
    numbers = np.arange(23)
    assert (evaluate(quotient, {handle: numbers}) == numbers // 5).all()
    assert (evaluate(rest, {handle: numbers}) == numbers % 5).all()
    negative = np.arange(-7, 0)
    assert (evaluate(quotient, {handle: negative}) == -(-negative // 5)).all()
    assert (evaluate(rest, {handle: negative}) == -(-negative % 5)).all()
    found = interval(quotient, {handle: Interval(np.int64(3), np.int64(12))})
    assert (int(found.low), int(found.high)) == (0, 2)
    with pytest.raises(Unknown):
        interval(quotient, {handle: Interval(np.int64(-3), np.int64(12))})


def test_persistent_blocks_that_take_as_many_turns_are_alike() -> None:
    """256 tiles over 132 blocks: those of two turns, and those of one; the tiles' own numbers are names in the thread program."""
    spec: Any = importlib.util.spec_from_file_location("workload_gemm", KERNELS / "gemm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program = thread_program(module.gemm.prim_func(2048, 4096, 128), resolve("cuda:sm_90a"))[2]
    assert program.grid == (132, 1, 1)
    found = classify(program)
    assert sum(one.count for one in found.classes) == 132
    assert len(found.classes) <= 9
    assert max(one.count for one in found.classes) == 124
    assert not found.sampled
