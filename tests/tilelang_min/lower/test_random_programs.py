"""Random programs over shapes, tiles, stages, transposes, types, layouts and targets, against float64 on all elements.

``TILELANG_TEST_EXAMPLES=500`` for a long run of each test; ``TILELANG_TEST_TARGETS`` names targets to take the place of those here.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kernel_runs import run
from random_programs import Drawn, chains, nests, products

from tilelang_min.errors import ResourceError, TargetError

EXAMPLES = int(os.environ.get("TILELANG_TEST_EXAMPLES", "3"))
TARGETS = os.environ.get(
    "TILELANG_TEST_TARGETS", "cpu cuda:sm_75 cuda:sm_80 cuda:sm_90a hip:gfx90a hip:gfx942 hip:gfx950"
).split()

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12, "int32": 0.0, "int8": 0.0}
ROUNDED = {"float16": 2e-3, "bfloat16": 2e-2}
"""Where values are rounded to a narrow type on the way."""

QUICK = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize="TILELANG_TEST_EXAMPLES" not in os.environ,
)


def check(drawn: Drawn, target: str) -> None:
    """The kernel's output is what it should be; programs that need more than the target has are none of this test's."""
    kernel = drawn.kernel()
    try:
        outputs = run(kernel, target, drawn.arrays)
    except (ResourceError, TargetError):
        assume(False)
    (made,) = outputs.values()
    wide = made.astype(np.float64)
    narrow = {array.dtype.name for array in drawn.arrays} | set(drawn.options.get("dtype", "").split())
    limit = max([TOLERANCE[made.dtype.name], *(ROUNDED.get(name, 0.0) for name in narrow)])
    limit *= max(1.0, float(np.abs(drawn.expected).max(initial=0.0)))
    wrong = ~(np.abs(wide - drawn.expected) <= limit)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} on {target} with {drawn.options}:\n{drawn.source}"


@pytest.mark.parametrize("target", TARGETS)
@QUICK
@given(drawn=st.data())
def test_products(target: str, drawn: st.DataObject) -> None:
    check(drawn.draw(products()), target)


@pytest.mark.parametrize("target", TARGETS)
@QUICK
@given(drawn=st.data())
def test_chains(target: str, drawn: st.DataObject) -> None:
    check(drawn.draw(chains()), target)


@pytest.mark.parametrize("target", TARGETS)
@QUICK
@given(drawn=st.data())
def test_nests(target: str, drawn: st.DataObject) -> None:
    check(drawn.draw(nests()), target)
