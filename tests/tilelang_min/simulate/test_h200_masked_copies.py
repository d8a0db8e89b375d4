"""Copies that fill with zeros at the edges of odd-sized matrices: simulated counts are those of an H200.

What the file holds, and what it leaves out, stands in its head.  The products are those of ``workloads/kernels``.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.targets import resolve

ROOT = Path(__file__).resolve().parents[3]
MEASURED: dict[str, dict[str, dict[str, int]]] = json.loads(
    (ROOT / "tests" / "data" / "nvidia" / "h200_masked_copies.json").read_text()
)["kernels"]


def padded(dtype: str, size: int, stages: int) -> Any:
    spec = importlib.util.spec_from_file_location("masked_copies_matmul", ROOT / "workloads" / "kernels" / "matmul.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    block_k = 128 // np.dtype(dtype).itemsize
    return module.padded.prim_func(size, size, size, dtype=dtype, block_K=block_k, num_stages=stages)


@pytest.mark.parametrize("name", MEASURED)
def test_copies_at_the_edges_are_counted_as_measured(name: str) -> None:
    _, short, stages, size = name.split("-")
    dtype = {"f32": "float32", "f16": "float16"}[short]
    _, _, program = thread_program(padded(dtype, int(size[1:]), int(stages[1:])), resolve("cuda:sm_90a"))
    counts = analyse_program(program).counts
    for place, measured in MEASURED[name].items():
        operation, access = place.split("/")
        counted: Counter[str] = Counter()
        for count in counts:
            if count.operation != int(operation):
                continue
            assert count.rule == "known"
            if count.space == "shared":
                assert count.access == access
                counted["shared.transactions"] += count.transactions or 0
                counted["shared.transactions_ideal"] += count.transactions_ideal or 0
            else:
                counted["global.sectors"] += count.sectors or 0
                counted["global.sectors_ideal"] += count.sectors_ideal or 0
        assert dict(counted) == measured, place
