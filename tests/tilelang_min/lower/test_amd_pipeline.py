"""AMD: pipelines hide the latency of global memory behind matrix instructions, in the machine code too."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from kernel_matmul import matmul, operands, product, quickstart
from kernel_runs import assert_close, run

import tilelang_min as tilelang


def loop_classes(kernel: Any) -> str:
    """The hot loop as one letter an instruction: g global load, r LDS read, M matrix, w LDS write; from barrier to branch."""
    letters = {
        "global_load": "g",
        "shared_load": "r",
        "matrix": "M",
        "shared_store": "w",
        "branch": "|",
        "barrier": "B",
    }
    text = "".join(letters.get(item.klass, "") for item in kernel.listing.instructions)
    bodies = re.findall(r"B([grMw]*)\|", text)
    return max(bodies, key=lambda body: body.count("g"))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_loads_come_before_the_work_and_stores_behind_it(dtype: str, arch: str) -> None:
    """Left alone, LLVM moves the loads down to the stores, behind the work, and nothing is hidden."""
    kernel = tilelang.compile(
        quickstart("matmul").padded.prim_func(1024, 1024, 1024, dtype=dtype, num_stages=2), f"hip:{arch}", cache=False
    )
    body = loop_classes(kernel)
    assert body.count("g") > 0
    assert body.count("M") > 0
    assert body.count("w") == body.count("g")
    assert body.rindex("g") < body.index("M")
    assert body.rindex("M") < body.index("w")
    assert kernel.metadata.spilled_vgprs == 0


def test_one_stage_stores_before_the_work() -> None:
    kernel = tilelang.compile(
        quickstart("matmul").padded.prim_func(1024, 1024, 1024, num_stages=1), "hip:gfx942", cache=False
    )
    classes = [item.klass for item in kernel.listing.instructions]
    first_store = classes.index("shared_store")
    assert classes.index("global_load") < first_store < classes.index("matrix")


@pytest.mark.parametrize("stages", [2, 3, 4, 5])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_every_depth_and_length(steps: int, stages: int) -> None:
    """All elements, with the simulator looking for races; ragged in K as well."""
    k = steps * 16 - 3
    a, b = operands(40, 48, k, "float16")
    made = run(matmul(40, 48, k, stages=stages, pad=8), "hip:gfx942", [a, b, np.full((40, 48), np.nan, np.float32)])
    assert_close(made["C"], product(a, b), f"{steps} steps in {stages} stages")
