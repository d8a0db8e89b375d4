"""Division that cuts towards zero, as persistent blocks count their turns with it; names bx, by of a GPU's thread program."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import tirx

from tilelang_min.analysis.intervals import Interval, Unknown, interval
from tilelang_min.analysis.points import evaluate

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
    spec: Any = importlib.util.spec_from_file_location("workload_attention", KERNELS / "attention.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.attention.for_target("cuda:sm_90a")(
        1, 16, 2048, 64, block_M=128, block_N=128, num_stages=2, threads=256
    )
    assert kernel.metadata.grid == (132, 1, 1)
    from tilelang_min.analysis.blocks import classify

    found = classify(kernel.thread_program())
    assert sum(one.count for one in found.classes) == 132
    assert len(found.classes) <= 9
    assert max(one.count for one in found.classes) == 124
    assert not found.sampled
