"""Random programs with branches and loops everywhere: run on the CPU, simulated for GPUs, against their text run as Python.

``TILELANG_TEST_EXAMPLES=500`` for a long run.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from kernel_runs import run
from python_meaning import meaning
from random_branches import branches
from random_programs import Drawn

from tilelang_min.errors import LayoutError, ResourceError

TARGETS = "cpu cuda:sm_75 cuda:sm_80 cuda:sm_90a hip:gfx942".split()


@pytest.mark.parametrize("target", TARGETS)
@settings(
    max_examples=int(os.environ.get("TILELANG_TEST_EXAMPLES", "2")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    derandomize="TILELANG_TEST_EXAMPLES" not in os.environ,
)
@given(drawn=branches())
def test_branches(target: str, drawn: Drawn) -> None:
    try:
        outputs = run(drawn.kernel(), target, drawn.arrays)
    except (ResourceError, LayoutError):  # what threads cannot hold together is said, and is none of this test's
        assume(False)
    for name, wanted in zip(("Count", "Out"), drawn.expected, strict=True):
        made = outputs.get(name)
        assert made is None or np.array_equal(made.astype(np.float64), wanted), f"{name} on {target}:\n{drawn.source}"


def test_what_text_means() -> None:
    """The reference itself, on what can be told by hand: places out of range, order, conditions, copies, reductions."""
    source = """
@T.prim_func
def main(A: T.Tensor((3, 4), "int32"), B: T.Tensor((3, 4), "int32")):
    with T.Kernel(2, threads=64) as bx:
        S = T.alloc_shared((2, 4), "int32")
        R = T.alloc_fragment((2,), "int32")
        T.copy(A[bx * 2, 1], S)
        T.reduce_sum(S, R, dim=1)
        for i, j in T.Parallel(2, 4):
            x = T.alloc_var("int32", init=S[i, j])
            if x > 2 and i == 0:
                x += 100
            elif T.if_then_else(i == 1, 7 // i, 0) == 7:
                x = R[i]
            B[bx * 2 + i, j - 1] = x
        T.atomic_add(B[0, 3], 5)
"""
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    (_, b) = meaning(source, [a, np.full((3, 4), -1, np.int32)])
    assert b.tolist() == [[2, 103, 0, 9], [18, 18, 18, -1], [110, 111, 0, -1]]
