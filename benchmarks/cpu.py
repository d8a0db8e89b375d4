"""CPU kernels against torch, side by side in one process on the same threads: median of per-round ratios.

    python benchmarks/cpu.py [--threads 1 2] [--only WORD] [--rounds N] [--json FILE]

A round times both in random order on the same inputs; the figure is the median over rounds of torch's time divided by ours
(1.0: as fast as torch; above: faster), with the 10th and 90th percentile beside it.  Each side runs once untimed before it is
timed, behind a pause in which the other side's threads stop waiting for work (torch's spin for 5 ms).  One thread is timed by
the processor time of the process, several by the clock on the wall.  Needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

PAUSE_S = 0.012
SLICE_S = 0.02
"""A side runs for about this long in a round."""


@dataclass(frozen=True)
class Case:
    """One comparison.  ``work`` is in operations (``unit`` GFLOP/s) or bytes (GB/s); ``goal`` the ratio to reach."""

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    check: Callable[[], None]
    work: float
    unit: str
    goal: float | None = None


@dataclass(frozen=True)
class Row:
    """What was measured for a case."""

    case: str
    threads: int
    ratio: float
    p10: float
    p90: float
    ours: float
    torch: float
    unit: str
    goal: float | None


def gemm_cases() -> Iterator[Case]:
    """Matrix products: float32 with goals, the other types for the record."""
    import matmul
    import numpy as np
    import torch

    from tilelang_min.program.dtypes import numpy_dtype

    generator = np.random.default_rng(0)
    sizes = [("float32", size) for size in (512, 1024, 2048)]
    sizes += [(dtype, 1024) for dtype in ("bfloat16", "float16", "int8", "float8_e4m3", "float64")]
    for dtype, size in sizes:
        if dtype == "int8":
            a, b = (generator.integers(-128, 128, (size, size)).astype(np.int8) for _ in range(2))
        else:
            a, b = (generator.standard_normal((size, size)).astype(numpy_dtype(dtype)) for _ in range(2))
        result = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
        c = np.empty((size, size), result)
        block = (128, 256, 128) if size == 512 else (256, 256, 128)
        kernel = matmul.tiled.for_target("cpu")(
            size, size, size, dtype=dtype, block_M=block[0], block_N=block[1], block_K=block[2], out_dtype=result
        )
        narrow = {"bfloat16": torch.int16, "float8_e4m3": torch.uint8}.get(dtype)
        views = [torch.from_numpy(x if narrow is None else x.view(str(narrow).removeprefix("torch."))) for x in (a, b)]
        if narrow is not None:
            views = [x.view(torch.bfloat16 if dtype == "bfloat16" else torch.float8_e4m3fn) for x in views]
        out = torch.empty((size, size), dtype=views[0].dtype)
        reference = (a.astype(np.float64) @ b.astype(np.float64)) if dtype != "float32" else None

        def theirs(dtype: str = dtype, x: Any = views[0], y: Any = views[1], z: Any = out) -> Any:
            if dtype == "int8":
                return torch._int_mm(x, y)
            if dtype.startswith("float8"):  # torch multiplies these by way of float32
                return torch.matmul(x.to(torch.float32), y.to(torch.float32))
            return torch.matmul(x, y, out=z)

        def check(dtype: str = dtype, c: Any = c, z: Any = out, right: Any = reference, run: Any = theirs) -> None:
            if right is None:
                run()
                right = z.numpy()
            exact = dtype == "int8"
            np.testing.assert_allclose(c, right, rtol=0 if exact else 1e-3, atol=0 if exact else 1e-3)

        yield Case(
            f"GEMM {dtype} {size}",
            lambda k=kernel, x=(a, b, c): k(*x),
            theirs,
            check,
            2.0 * size**3,
            "GFLOP/s",
            0.8 if dtype == "float32" else None,
        )


def row_cases() -> Iterator[Case]:
    """Element-wise, softmax, reductions and a normalisation of a 4096 x 4096 float32 matrix."""
    import elementwise
    import numpy as np
    import reductions
    import rmsnorm
    import softmax
    import torch

    size = 4096
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    c, d = np.empty_like(a), torch.empty((size, size))
    line, torch_line = np.empty(size, np.float32), torch.empty(size)
    ta, tb, weight, tw = torch.from_numpy(a), torch.from_numpy(b), b[0].copy(), torch.from_numpy(b[0].copy())
    bytes_ = 4.0 * size * size

    def same(x: Any, y: Any, tolerance: float = 1e-5) -> Callable[[], None]:
        return lambda: np.testing.assert_allclose(x, y.numpy(), rtol=tolerance, atol=tolerance)

    def chain() -> None:
        torch.add(tb, ta, alpha=0.5, out=d)
        torch.relu_(d)

    def normalised() -> None:
        d.copy_(torch.nn.functional.rms_norm(ta, (size,), tw, 1e-5))

    cpu = "cpu"
    scale = elementwise.scale_add_relu.for_target(cpu)(size, size, block_M=8, block_N=1024)
    yield Case("element-wise", lambda: scale(a, b, c), chain, same(c, d), 3 * bytes_, "GB/s", 0.9)
    rows = softmax.rows.for_target(cpu)(size, size, block_M=1)
    yield Case(
        "softmax", lambda: rows(a, c), lambda: torch.softmax(ta, 1, out=d), same(c, d, 1e-6), 2 * bytes_, "GB/s", 0.9
    )
    online = softmax.online.for_target(cpu)(size, size)
    yield Case(
        "softmax, online",
        lambda: online(a, c),
        lambda: torch.softmax(ta, 1, out=d),
        same(c, d, 1e-6),
        2 * bytes_,
        "GB/s",
    )
    high = reductions.row_absmax.for_target(cpu)(size, size)
    yield Case(
        "row maxima",
        lambda: high(a, line),
        lambda: torch.linalg.vector_norm(ta, float("inf"), dim=1, out=torch_line),
        same(line, torch_line),
        bytes_,
        "GB/s",
    )
    total = reductions.column_sums.for_target(cpu)(size, size)
    yield Case(
        "column sums",
        lambda: total(a, line),
        lambda: torch.sum(ta, 0, out=torch_line),
        same(line, torch_line, 1e-3),
        bytes_,
        "GB/s",
    )
    norm = rmsnorm.rmsnorm.for_target(cpu)(size, size)
    yield Case("RMSNorm", lambda: norm(a, weight, c), normalised, same(c, d, 1e-4), 2 * bytes_, "GB/s")


def measure(case: Case, threads: int, rounds: int) -> Row:
    """Median ratio of ``rounds`` rounds, and the best rate of each side."""
    clock = time.process_time if threads == 1 else time.perf_counter
    order = random.Random(0)
    case.ours(), case.theirs()
    case.check()
    lengths = {}
    for side in (case.ours, case.theirs):
        start = time.perf_counter()
        side()
        lengths[side] = max(1, round(SLICE_S / (time.perf_counter() - start)))
    times: dict[Any, list[float]] = {case.ours: [], case.theirs: []}
    for _ in range(rounds):
        for side in order.sample([case.ours, case.theirs], 2):
            if threads > 1:
                time.sleep(PAUSE_S)
            side()
            start = clock()
            for _ in range(lengths[side]):
                side()
            times[side].append((clock() - start) / lengths[side])
    found = sorted(theirs / ours for ours, theirs in zip(times[case.ours], times[case.theirs], strict=True))
    best, their_best = (case.work / min(times[side]) / 1e9 for side in (case.ours, case.theirs))
    low, high = found[rounds // 10], found[rounds * 9 // 10]
    return Row(case.name, threads, found[rounds // 2], low, high, best, their_best, case.unit, case.goal)


def child(threads: int, only: str, rounds: int) -> None:
    """Measures in this process, whose environment has set the kernels' threads; one line of JSON for each row."""
    import torch

    torch.set_num_threads(threads)
    for cases in (gemm_cases(), row_cases()):
        for case in cases:
            if only in case.name:
                print(json.dumps(asdict(measure(case, threads, rounds))), flush=True)


def main() -> int:
    """One table for each number of threads, each measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.threads[0], arguments.only, arguments.rounds)
        return 0
    print(
        f"{platform.machine()}, {os.cpu_count()} cores; ratio: torch's time over ours, "
        f"median of {arguments.rounds} rounds [10th, 90th percentile]"
    )
    rows: list[dict[str, Any]] = []
    for threads in arguments.threads:
        environment = {**os.environ, "TILELANG_NUM_THREADS": str(threads)}
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(name, None)
        command = [sys.executable, __file__, "--child", "--threads", str(threads)]
        command += ["--only", arguments.only, "--rounds", str(arguments.rounds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            for line in process.stdout:
                row = json.loads(line)
                rows.append(row)
                reached = "" if row["goal"] is None else "reached" if row["ratio"] >= row["goal"] else "NOT reached"
                goal = "" if row["goal"] is None else f"goal {row['goal']} {reached}"
                print(
                    f"{row['case']:22} {row['threads']} threads  ratio {row['ratio']:5.2f} "
                    f"[{row['p10']:.2f}, {row['p90']:.2f}]  {row['ours']:7.1f} {row['unit']:7} "
                    f"(torch {row['torch']:7.1f})  {goal}",
                    flush=True,
                )
        if process.returncode:
            return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
