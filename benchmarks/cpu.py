"""CPU kernels against torch, side by side in one process on the same threads: median of per-round ratios.

    python benchmarks/cpu.py [--threads 1 2] [--json FILE]

A round times both, one after the other, on the same inputs; the figure is the median over rounds of torch's time divided by
ours (1.0: as fast as torch; above: faster), with the 10th and 90th percentile beside it.  Needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

ROUNDS = 15
GOALS = {"gemm float32": 0.8, "element-wise": 0.9}


def ratios(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[list[float], float, float]:
    """Per-round ratios, and the best time of each in seconds."""
    ours(), theirs()
    clock = time.perf_counter
    found, best_ours, best_theirs = [], float("inf"), float("inf")
    for _ in range(ROUNDS):
        start = clock()
        ours()
        middle = clock()
        theirs()
        end = clock()
        found.append((end - middle) / (middle - start))
        best_ours, best_theirs = min(best_ours, middle - start), min(best_theirs, end - middle)
    return sorted(found), best_ours, best_theirs


def measure(threads: int) -> list[dict[str, Any]]:
    """All rows for one number of threads; the kernels' threads are set by the environment before they load."""
    import elementwise
    import matmul
    import torch

    torch.set_num_threads(threads)
    rows: list[dict[str, Any]] = []
    generator = np.random.default_rng(0)

    def row(work: str, goal: str, ours: Callable[[], Any], theirs: Callable[[], Any], flops: float) -> None:
        found, best, their_best = ratios(ours, theirs)
        rows.append(
            {
                "work": work,
                "threads": threads,
                "ratio": found[len(found) // 2],
                "p10": found[len(found) // 10],
                "p90": found[len(found) * 9 // 10],
                "gflops": flops / best / 1e9,
                "torch_gflops": flops / their_best / 1e9,
                "goal": GOALS.get(goal),
            }
        )

    for size in (512, 1024, 2048):
        a, b = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
        c = np.empty((size, size), np.float32)
        kernel = matmul.tiled.for_target("cpu")(size, size, size, dtype="float32", block_M=128, block_N=128, block_K=64)
        ta, tb, tc = (torch.from_numpy(x) for x in (a, b, np.empty_like(c)))
        row(
            f"gemm float32 {size}",
            "gemm float32",
            lambda k=kernel, x=(a, b, c): k(*x),
            lambda x=ta, y=tb, z=tc: torch.matmul(x, y, out=z),
            2.0 * size**3,
        )
        np.testing.assert_allclose(c, tc.numpy(), rtol=1e-3, atol=1e-3)
    size = 4096
    a, b = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    c = np.empty((size, size), np.float32)
    kernel = elementwise.scale_add_relu.for_target("cpu")(size, size)
    ta, tb, tc = (torch.from_numpy(x) for x in (a, b, np.empty_like(c)))

    def chain() -> None:
        torch.add(tb, ta, alpha=0.5, out=tc)
        torch.relu_(tc)

    row(f"element-wise {size}", "element-wise", lambda: kernel(a, b, c), chain, 3.0 * size**2)
    np.testing.assert_allclose(c, tc.numpy(), rtol=1e-5, atol=1e-5)
    return rows


def main() -> int:
    """One table for each number of threads, each measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true")
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.threads[0])))
        return 0
    import subprocess

    rows: list[dict[str, Any]] = []
    for threads in arguments.threads:
        environment = {**os.environ, "TILELANG_NUM_THREADS": str(threads)}
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        command = [sys.executable, __file__, "--child", "--threads", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        rows += json.loads(done.stdout.splitlines()[-1])
    print(f"{platform.machine()}, {os.cpu_count()} cores; ratio: torch's time over ours, median of {ROUNDS} rounds")
    for row in rows:
        reached = "" if row["goal"] is None else ("reached" if row["ratio"] >= row["goal"] else "NOT reached")
        print(
            f"{row['work']:20} {row['threads']} threads  ratio {row['ratio']:.2f} [{row['p10']:.2f}, {row['p90']:.2f}]  "
            f"{row['gflops']:7.1f} GFLOP/s (torch {row['torch_gflops']:.1f})  goal {row['goal']} {reached}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
