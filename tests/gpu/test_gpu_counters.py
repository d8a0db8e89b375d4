"""Counters of a real NVIDIA GPU: one is read; and bfloat16 chains, whose roundings the printer writes in its own way."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.runtime import cuda
from tileprof.collect import ncu_probe

pytestmark = pytest.mark.gpu


def test_a_counter_is_read() -> None:
    tool, read = ncu_probe.read_counter()
    if read is None:
        pytest.skip(f"{tool.tool}: {tool.why}")
    assert read.outcome in ncu_probe.OUTCOMES
    if read.outcome != ncu_probe.READ:
        pytest.skip(f"no counters here, and the remedy is: {read.remedy}")
    assert (tool.usable, read.value) == (True, 256.0)
    assert read.seconds < ncu_probe.LIMIT_S


def chain_inputs() -> np.ndarray:
    """Every bfloat16; ones in place of NaNs."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    return np.where(np.isnan(bits.astype(np.float32)), np.float32(1), bits.astype(np.float32)).astype(
        ml_dtypes.bfloat16
    )


@T.prim_func
def chain(A: T.Tensor((65536,), "bfloat16"), B: T.Tensor((65536,), "bfloat16")):
    with T.Kernel(32, threads=256) as bx:
        for i in T.Parallel(2048):
            B[bx * 2048 + i] = (A[bx * 2048 + i] * 3 + A[bx * 2048 + i]) * 5


def test_a_chain_of_bfloat16_has_the_bits_of_the_simulator() -> None:
    major, minor = cuda.device_info().compute_capability
    kernel = tilelang.compile(chain, f"cuda:sm_{major}{minor}{'a' if major >= 9 else ''}")
    a = chain_inputs()
    got, expected = np.zeros_like(a), np.zeros_like(a)
    kernel(a, got)
    expected = kernel.simulate(a, expected).outputs["B"]
    wide = a.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        product = (wide * np.float32(3)).astype(ml_dtypes.bfloat16).astype(np.float32)
        total = (product + wide).astype(ml_dtypes.bfloat16).astype(np.float32)
        reference = (total * np.float32(5)).astype(ml_dtypes.bfloat16)
    for made in (got, expected):
        np.testing.assert_array_equal(made.astype(np.float32), reference.astype(np.float32))
