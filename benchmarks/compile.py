"""Compile time by step and target, import time, and the time to take a kernel from the cache.

    python benchmarks/compile.py [--json FILE]

Every figure is the least of several compilations in a fresh process without the disk cache (except the last), imports done; the
machine stands in the head, with its load: other work makes every figure worse.  "launchable" is when the kernel can be called,
"whole" when its listing and all metadata are there too, which on NVIDIA takes the disassembler.  Both by the clock and in
processor time (of all threads and of the disassembler), which suffers less from other work.  Each step is the least of its own,
by the clock.
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

TARGETS = (
    "cpu",
    *(f"cuda:{arch}" for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")),
    *(f"hip:{arch}" for arch in ("gfx90a", "gfx942", "gfx950")),
)
EVERY_KERNEL = ("cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
"""On the others one kernel says enough."""

REPEATS = 5
SUMS = ("launchable", "launchable processor", "whole", "whole processor")
PRODUCTS = {
    "cuda:sm_80": {"block_M": 128, "block_N": 128, "block_K": 32, "num_stages": 4, "threads": 128},
    "cuda:sm_90a": {"block_M": 128, "block_N": 256, "block_K": 64, "num_stages": 4, "threads": 256},
}
"""The product of ``workloads/kernels/gemm.py``, 4096 x 4096 x 4096, with the tiles that were fastest."""
KERNELS = {
    "naive float32": ("naive", {"dtype": "float32"}),
    "padded float32": ("padded", {"dtype": "float32", "block_K": 32}),
    "padded float16": ("padded", {"dtype": "float16", "block_K": 64}),
}


def child(target: str, name: str) -> dict[str, float]:
    """Compile one kernel in this process several times; a small one first, so that imports and tables are paid."""
    import elementwise
    import gemm
    import matmul

    import tilelang_min as tilelang

    elementwise.scale_add_relu.for_target(target)(64, 128)
    best: dict[str, float] = {}
    for _ in range(REPEATS):
        if name == "product":
            written = gemm.gemm.prim_func(4096, 4096, 4096, **PRODUCTS[target])
        else:
            factory, options = KERNELS[name]
            written = getattr(matmul, factory).prim_func(1024, 1024, 1024, **options)
        start, before = time.perf_counter(), processor_seconds()
        kernel = tilelang.compile(written, target, cache=False)
        launchable, processor = time.perf_counter() - start, processor_seconds() - before
        steps = kernel.metadata.compile_seconds
        sums = (launchable, processor, time.perf_counter() - start, processor_seconds() - before)
        for step, seconds in {**steps, **dict(zip(SUMS, sums, strict=True))}.items():
            best[step] = min(seconds, best.get(step, seconds))
    return best


def processor_seconds() -> float:
    """Of this process, to the nanosecond, and of the children that have ended."""
    return time.process_time() + sum(os.times()[2:4])


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
    load = os.getloadavg()[0]
    results: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    }
    print(results["machine"])
    results["import"] = import_seconds()
    print(f"import tilelang_min: {results['import'] * 1e3:.0f} ms")
    for target in TARGETS:
        names = [*KERNELS] if target in EVERY_KERNEL else ["padded float16"]
        for name in [*names, *(["product"] if target in PRODUCTS else [])]:
            steps = run("--child", target, name)
            results[f"{target} {name}"] = steps
            shown = "  ".join(f"{step} {steps[step] * 1e3:.0f}" for step in steps if step not in SUMS)
            launchable, of_it, whole, of_all = (f"{steps[name] * 1e3:.0f}" for name in SUMS)
            print(
                f"{target:12} {name:15} launchable {launchable:>5} ms (processor {of_it:>5}), whole {whole:>5} ms "
                f"(processor {of_all:>5})   {shown}",
                flush=True,
            )
        if target not in EVERY_KERNEL:
            continue
        folder = tempfile.mkdtemp()
        run("--cached-fill", target, cache=folder)
        hit = run("--cached", target, cache=folder)
        results[f"{target} cached"] = hit
        print(
            f"{target:12} from the cache: first {hit['first'] * 1e3:.1f} ms, median {hit['median'] * 1e3:.1f} ms",
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
