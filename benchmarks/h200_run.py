"""Run the bundles of ``h200_bundles.py`` on a GPU: correctness against float64, times, and counters per instruction.

    python benchmarks/h200_run.py BUNDLES OUTDIR

Needs torch, cuda-bindings and, for the counters, Nsight Compute; no compiler.  Writes ``results.json`` (figures with versions and
method) and ``kernels.ncu-rep`` (one launch of every 1024^3 kernel, in the order of ``results.json``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

WARMUP, LAUNCHES = 5, 50


def inputs(kernel: Any, seed: int) -> list[Any]:
    """Normal inputs and NaN-filled outputs on the GPU."""
    import torch

    torch.manual_seed(seed)
    made = []
    for parameter in kernel.parameters:
        dtype = getattr(torch, parameter.dtype)
        if parameter.access == "out":
            made.append(torch.full(parameter.shape, float("nan"), dtype=dtype, device="cuda"))
        else:
            made.append(torch.randn(parameter.shape, device="cuda").to(dtype))
    return made


def error(name: str, tensors: list[Any]) -> float:
    """Largest difference from the float64 result, relative to the largest element."""
    import torch

    a, b, c = tensors
    reference = torch.relu(0.5 * a.double() + b.double()) if name.startswith("scale") else a.double() @ b.double()
    if not bool(torch.isfinite(c).all()):
        return float("inf")
    return float((c.double() - reference).abs().max() / reference.abs().max().clamp_min(1e-30))


def run(bundles: Path, out: Path) -> int:
    """Correctness and times of everything, then counters of the large kernels in a child under ncu."""
    import torch

    import tilelang_min as tilelang
    from tilelang_min.runtime.cuda_timing import time_launches

    order = json.loads((bundles / "order.json").read_text())
    rows: list[dict[str, Any]] = []
    for name in order:
        kernel = tilelang.load(bundles / f"{name}.tlk")
        worst = 0.0
        for seed in range(3):
            tensors = inputs(kernel, seed)
            kernel(*tensors)
            torch.cuda.synchronize()
            worst = max(worst, error(name, tensors))
        row: dict[str, Any] = {"kernel": name, "relative_error": worst}
        if "-n" not in name:
            times = sorted(time_launches(lambda k=kernel, t=tensors: k(*t), launches=LAUNCHES, warmup=WARMUP))
            row["median_us"] = times[len(times) // 2] / 1e3
            row["p10_us"], row["p90_us"] = times[len(times) // 10] / 1e3, times[len(times) * 9 // 10] / 1e3
        rows.append(row)
    for dtype in (torch.float32, torch.float16):
        a, b = (torch.randn(1024, 1024, device="cuda").to(dtype) for _ in range(2))
        times = sorted(time_launches(lambda a=a, b=b: a @ b, launches=LAUNCHES, warmup=WARMUP))
        rows.append(
            {"kernel": f"torch.matmul {str(dtype).removeprefix('torch.')}", "median_us": times[len(times) // 2] / 1e3}
        )
    profile = profile_under_ncu(bundles, out)
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "method": f"CUDA events, {WARMUP} warm-up and {LAUNCHES} timed launches, L2 flushed before each, median",
        "ncu": profile,
        "rows": rows,
    }
    (out / "results.json").write_text(json.dumps(facts, indent=1))
    for row in rows:
        wrong = row.get("relative_error", 0.0) > 2e-3
        median = f"{row['median_us']:10.1f} us" if "median_us" in row else " " * 13
        shown = f"{row['relative_error']:.2e}" if "relative_error" in row else ""
        print(f"{row['kernel']:28} {median}  {shown} {'WRONG' if wrong else ''}")
    return int(any(row.get("relative_error", 0.0) > 2e-3 for row in rows))


def profile_under_ncu(bundles: Path, out: Path) -> str:
    """One launch of every large kernel under ncu; returns what happened."""
    from tileprof.collect import ncu

    path = ncu.find()
    if path is None:
        return "ncu not found"
    child = [sys.executable, __file__, "--launch", str(bundles)]
    report, log = out / "kernels.ncu-rep", out / "ncu.log"
    command = ncu.command(path, child, symbol="regex:_kernel$", report=report, log=log, major=9, launch_count=1000)
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    return f"rc {done.returncode}; {done.stderr[-300:]}"


def launch(bundles: Path) -> int:
    """The child under the profiler: each large kernel once, nothing else on the GPU."""
    import numpy as np

    import tilelang_min as tilelang

    for name in json.loads((bundles / "order.json").read_text()):
        if "-n" in name:
            continue
        kernel = tilelang.load(bundles / f"{name}.tlk")
        generator = np.random.default_rng(0)
        kernel(*(generator.standard_normal(p.shape).astype(p.dtype) for p in kernel.parameters))
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--profile":
        print(profile_under_ncu(Path(sys.argv[2]), Path(sys.argv[3])))
        sys.exit(0)
    if sys.argv[1] == "--launch":
        sys.exit(launch(Path(sys.argv[2])))
    target = Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    sys.exit(run(Path(sys.argv[1]), target))
