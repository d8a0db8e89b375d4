"""Compile time by step and target, import time, and the time to take a kernel from the cache.

    python benchmarks/compile.py [--json FILE]

Every figure is from a fresh process with the disk cache off (except the last) and imports done; the machine stands in the head.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")
KERNELS = {
    "naive float32": ("naive", {"dtype": "float32"}),
    "padded float32": ("padded", {"dtype": "float32", "block_K": 32}),
    "padded float16": ("padded", {"dtype": "float16", "block_K": 64}),
}


def child(target: str, name: str) -> dict[str, float]:
    """Compile one kernel in this process; a small one first, so that imports and tables are paid."""
    import elementwise
    import matmul

    elementwise.scale_add_relu.for_target(target)(64, 128)
    factory, options = KERNELS[name]
    start = time.perf_counter()
    kernel = getattr(matmul, factory).for_target(target)(1024, 1024, 1024, **options)
    total = time.perf_counter() - start
    return {**kernel.metadata.compile_seconds, "total": total}


def cached(target: str) -> dict[str, float]:
    """Time to take a kernel from the cache, best and median of 20, in a process without TVM."""
    import matmul

    times = []
    for _ in range(20):
        start = time.perf_counter()
        kernel = matmul.padded.for_target(target)(1024, 1024, 1024)
        times.append(time.perf_counter() - start)
    if "tvm" in sys.modules or kernel.metadata is None:
        raise SystemExit("the cache was not used")
    return {"first": times[0], "best": min(times), "median": sorted(times)[10]}


def run(*arguments: str, cache: str | None = None) -> Any:
    """Run this script in a fresh process and return what it prints."""
    environment = {**os.environ, "TILELANG_CACHE_DIR": cache or tempfile.mkdtemp()}
    done = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, env=environment, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def import_seconds() -> float:
    """`import tilelang_min` in a fresh process, best of 5."""
    code = "import time; t = time.perf_counter(); import tilelang_min; print(time.perf_counter() - t)"
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
        times.append(float(done.stdout))
    return min(times)


def main() -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    }
    print(results["machine"])
    results["import"] = import_seconds()
    print(f"import tilelang_min: {results['import'] * 1e3:.0f} ms")
    for target in TARGETS:
        for name in KERNELS:
            steps = run("--child", target, name)
            results[f"{target} {name}"] = steps
            shown = "  ".join(f"{step} {seconds * 1e3:.0f}" for step, seconds in steps.items() if step != "total")
            print(f"{target:11} {name:15} {steps['total'] * 1e3:6.0f} ms   {shown}", flush=True)
        folder = tempfile.mkdtemp()
        run("--cached-fill", target, cache=folder)
        hit = run("--cached", target, cache=folder)
        results[f"{target} cached"] = hit
        print(
            f"{target:11} from the cache: first {hit['first'] * 1e3:.1f} ms, median {hit['median'] * 1e3:.1f} ms",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(sys.argv[2], sys.argv[3])))
    elif sys.argv[1:2] == ["--cached-fill"]:
        import matmul

        matmul.padded.for_target(sys.argv[2])(1024, 1024, 1024)
        print("{}")
    elif sys.argv[1:2] == ["--cached"]:
        print(json.dumps(cached(sys.argv[2])))
    else:
        sys.exit(main())
