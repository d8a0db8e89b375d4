"""Tuning a matrix product on this machine: seconds taken, and the chosen configuration beside all others.

    python benchmarks/tuning.py [SIZE...] [--target cpu|cuda] [--json FILE]

For each size ``tilelang.autotune`` searches all configurations, caches empty.  Then all are measured to the end, in turns (no
pruning, no early stop), which says what the best would have been.  At last chosen, best and the factory's default run in turns, one
launch each, the order reversed from round to round: the ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

CONFIGS: dict[str, dict[str, list[int]]] = {
    "cpu": {"block_M": [64, 128, 256], "block_N": [64, 128, 256, 512], "block_K": [64, 128]},
    "cuda": {
        "block_M": [64, 128, 256],
        "block_N": [64, 128, 256],
        "block_K": [32, 64],
        "num_stages": [3, 6],
        "threads": [128, 256],
    },
}
DEFAULT = {
    "cpu": {"block_M": 128, "block_N": 256, "block_K": 64},
    "cuda": {"block_M": 128, "block_N": 256, "block_K": 64, "num_stages": 3, "threads": 256},
}
DTYPE = {"cpu": "float32", "cuda": "float16"}
REP, ROUNDS, TURNS = 20, 60, 300


def search(size: int, target: str, configs: Any = None, **settings: Any) -> Any:
    """The kernel that a search over all configurations gives."""
    import gemm

    import tilelang_min as tilelang

    factory = gemm.gemm.for_target(target)
    kind = target.partition(":")[0]
    fixed = {"num_stages": 1} if kind == "cpu" else {}
    tuned = tilelang.autotune(configs=configs or CONFIGS[kind], warmup=1, cache=False, **settings)(factory)
    return tuned(size, size, size, dtype=DTYPE[kind], **fixed)


def beside(kernels: dict[str, Any]) -> dict[str, float]:
    """Medians of each kernel's time over that of the first, launched in turns."""
    from tilelang_min.driver.fills import random_arguments

    first = next(iter(kernels.values()))
    arrays = random_arguments(first.parameters)
    times: dict[str, list[float]] = {name: [] for name in kernels}
    with ExitStack() as stack:
        launches = {
            name: stack.enter_context(kernel.get_profiler().launching(*arrays)) for name, kernel in kernels.items()
        }
        for number in range(TURNS):
            for name in list(kernels) if number % 2 == 0 else list(kernels)[::-1]:
                if first.target.kind == "cpu":
                    times[name].append(_once(launches[name]))
                else:
                    times[name] += kernels[name].get_profiler().samples(*arrays, warmup=0, rep=1)
    head = times[next(iter(kernels))]
    return {
        name: round(statistics.median(mine / theirs for mine, theirs in zip(each, head, strict=True)), 3)
        for name, each in times.items()
    }


def _once(launch: Any) -> float:
    start = time.perf_counter_ns()
    launch()
    return float(time.perf_counter_ns() - start)


def main() -> int:
    """Every size; a table, and the records as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[512, 1024])
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    rows = []
    for size in chosen.sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TILELANG_CACHE_DIR"] = folder
            start = time.perf_counter()
            found = search(size, chosen.target, rep=REP).tuned
            seconds = time.perf_counter() - start
            # Compiled before: from the cache.
            every = search(size, chosen.target, rep=ROUNDS, prune=False, early_stop=False).tuned
            kernels = {
                name: search(size, chosen.target, configs=[config], rep=1)
                for name, config in (
                    ("best", every.config),
                    ("chosen", found.config),
                    ("default", DEFAULT[chosen.target.partition(":")[0]]),
                )
            }
            ratios = beside(kernels)
        times = {json.dumps(each.config): each.quick_ms for each in every.results if each.quick_ms is not None}
        best = min(times.values())
        samples = sum(each.samples for each in found.results)
        row = {
            "size": size,
            "device": found.device,
            "load": round(os.getloadavg()[0], 1),
            "seconds": {**found.seconds, "wall": round(seconds, 1)},
            "launches": samples,
            "outcomes": dict(Counter(each.outcome for each in found.results)),
            "chosen": found.config,
            "exhaustive best": every.config,
            "chosen over best": ratios["chosen"],
            "default over best": ratios["default"],
            "slowest over best": round(max(times.values()) / best, 3),
            "GFLOP/s of the best": round(2 * size**3 / best / 1e6, 1),
            "times_ms": times,
        }
        rows.append(row)
        print(json.dumps({name: value for name, value in row.items() if name != "times_ms"}), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"script": "benchmarks/tuning.py", "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
