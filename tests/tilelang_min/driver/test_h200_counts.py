"""What the simulator counts for the quickstart's kernels is what an H200 counted, operation by operation, to the last unit.

The file holds per-instruction counters of Nsight Compute (see its head for device, tool and date); the same kernels are
lowered and simulated here.  Shared transactions, ideal ones and global sectors of loads, stores, ldmatrix and
both sides of cp.async must be equal.
"""

from __future__ import annotations

import json
import sys
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
    (ROOT / "tests" / "data" / "nvidia" / "h200_quickstart.json").read_text()
)["kernels"]


def simulated(name: str) -> dict[str, Counter[str]]:
    """Counts by "operation/access", buffers together, as the per-instruction counters give them."""
    sys.path.insert(0, str(ROOT / "workloads" / "kernels"))
    try:
        import elementwise
        import matmul
    finally:
        sys.path.pop(0)
    kind, short, *rest = name.split("-")
    dtype = {"f32": "float32", "f16": "float16"}[short]
    factories: dict[str, Any] = {
        "naive": matmul.naive,
        "tiled": matmul.tiled,
        "padded": matmul.padded,
        "scale_add_relu": elementwise.scale_add_relu,
    }
    options: dict[str, Any] = {"dtype": dtype}
    if rest:
        options |= {"block_K": 128 // np.dtype(dtype).itemsize, "num_stages": int(rest[0].removeprefix("s"))}
    shape = (1024,) * (2 if kind == "scale_add_relu" else 3)
    _, _, program = thread_program(factories[kind].prim_func(*shape, **options), resolve("cuda:sm_90a"))
    counts: dict[str, Counter[str]] = {}
    analysis = analyse_program(program)
    asynchronous = {count.operation: count.access for count in analysis.counts if count.access.startswith("cp_async")}
    for count in analysis.counts:
        # The profiler counts the global side of a cp.async on the same instruction.
        access = asynchronous.get(count.operation, count.access)
        entry = counts.setdefault(f"{count.operation}/{access}", Counter())
        if count.space == "shared":
            entry["shared.transactions"] += count.transactions
            entry["shared.transactions_ideal"] += count.transactions_ideal
        else:
            entry["global.sectors"] += count.sectors
            entry["global.sectors_ideal"] += count.sectors_ideal
    return counts


@pytest.mark.parametrize("name", MEASURED)
def test_simulated_counts_equal_measured_ones(name: str) -> None:
    counted = simulated(name)
    assert set(counted) == set(MEASURED[name])
    for place, measured in MEASURED[name].items():
        assert dict(counted[place]) == measured, place
