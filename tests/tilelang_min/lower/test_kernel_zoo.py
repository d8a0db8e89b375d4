"""One feature of the language at a time, on all elements: the CPU by running, GPUs by simulation, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import check
from kernel_zoo import ZOO

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ZOO)
def test_kernel(name: str, target: str) -> None:
    kernel, inputs, reference = ZOO[name]
    check(kernel, target, inputs(np.random.default_rng(1)), reference, name)
