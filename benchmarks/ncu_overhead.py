"""What ``tileprof run`` adds to Nsight Compute: the profiled phase of a run beside ncu alone, on the same kernels and metrics.

    python benchmarks/ncu_overhead.py [OUT] [--cases N] [--rounds 3] [--workers N] [--keep FOLDER]

Needs an NVIDIA GPU, ncu, ncu-report and the compiler.  Method: a workload of N matrix products (types, sizes, layouts, tiles and
stages of ``workloads/gemm.yaml``), each timed shortly and then profiled.  A first round, which fills caches and (in a virtual
machine) makes the host hand out memory, is recorded and not counted.  In turns, the order reversed from round to round:

* ``tileprof run`` with ncu.  Its profiled phase is what the run itself keeps in ``raw/ncu-phases.json``: from the start of each ncu
  process until its report is read and joined with the tile operations.  Compiling, simulating and timing are over when the phase
  begins: N is at most the number of cases that share a process.
* bare ncu: one process with the same options, sections and metrics around a minimal launcher (``--launch`` of this file, which
  knows NumPy and how to load a bundle) that makes one array of each shape and type, launches each of the same bundles as often, and
  records the last.

A ratio is the phase over the bare time.  ``OUT/<date>-ncu-overhead.json`` holds every figure.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LEAST_BARE_S = 15.0
"""A shorter bare run says little: the start of ncu is then most of it."""
LIMIT_S = 550.0

WORKLOAD = """\
version: 1
name: ncu_overhead
defaults: {{timing: {{warmup: 1, samples: 2, rounds: 1, flush_l2: false, graph: false}}, timeout: 120s}}
targets: {{gpu: {{target: "{target}", profiler: ncu}}}}
kernels:
{kernels}"""
KERNEL = """\
  - name: {name}
    source: {root}/workloads/kernels/gemm.py:gemm
    args: {{dtype: {dtype}, transpose_B: {transposed}}}
    shapes: [{{M: {m}, N: {n}, K: {k}}}]
    tiles: {{block_M: 128, block_N: {width}, block_K: 64, num_stages: {stages}}}
"""


def workload(count: int, target: str) -> str:
    """A workload file of ``count`` products, no two alike."""
    sizes = ((2048, 2048, 2048), (4096, 4096, 4096), (2048, 4096, 2048), (4096, 2048, 4096))
    axes = itertools.product((4, 3, 2), sizes, (128, 256), ("false", "true"), ("float16", "bfloat16"))
    kernels = [
        KERNEL.format(
            name=f"gemm_{number}",
            root=ROOT,
            dtype=dtype,
            transposed=transposed,
            m=m,
            n=n,
            k=k,
            width=width,
            stages=stages,
        )
        for number, (stages, (m, n, k), width, transposed, dtype) in enumerate(itertools.islice(axes, count))
    ]
    return WORKLOAD.format(target=target, kernels="".join(kernels))


def run_tileprof(file: Path, out: Path, workers: int) -> dict[str, Any]:
    """One run; the seconds of its profiled phase from its own records, and of everything."""
    command = [
        sys.executable,
        "-m",
        "tileprof",
        "run",
        str(file),
        "-o",
        str(out),
        "--force",
        "--executor",
        f"local:{workers}",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    total = time.monotonic() - began
    if done.returncode not in (0, 3):  # 3: a time is invalid, which does not matter here
        raise SystemExit(
            f"tileprof run ended with status {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    record = out / "raw" / "ncu-phases.json"
    phases = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    return {
        "phase_s": round(sum(phase["wall_s"] for phase in phases), 2),
        "ncu_processes_s": round(sum(phase["process_s"] for phase in phases), 2),
        "processes": len(phases),
        "cases": sum(len(phase["cases"]) for phase in phases),
        "run_s": round(total, 2),
        "status": done.returncode,
    }


def with_counters(out: Path) -> int:
    """How many cases of a run have measured values of their tile operations."""
    from tileprof.store.directory import STORE
    from tileprof.store.reader import read_run

    run = read_run(out / STORE)
    return sum(any(m.provenance.tool == "ncu" and m.operation is not None for m in case.metrics) for case in run.cases)


def run_bare(bundles: Sequence[Path], out: Path) -> dict[str, Any]:
    """Seconds of one ncu around the minimal launcher, from before its start to its end."""
    from tileprof.collect import ncu
    from tileprof.execute.profiled import symbols_pattern

    path = ncu.find()
    if path is None:
        raise SystemExit("there is no ncu")
    names = [json.loads((bundle / "kernel.json").read_text(encoding="utf-8"))["symbol"] for bundle in bundles]
    (out / "list.json").write_text(json.dumps([str(bundle) for bundle in bundles]), encoding="utf-8")
    child = [sys.executable, __file__, "--launch", str(out / "list.json")]
    log = out / "bare.log"
    command = ncu.command(
        path, child, symbol=symbols_pattern(names), report=out / "bare.ncu-rep", log=log, major=capability(),
        launch_count=len(bundles), when_told=True,
    )  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    seconds = time.monotonic() - began
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else done.stderr
    profiled = ncu.check_log(text, done.returncode).profiled
    if profiled != len(bundles):
        raise SystemExit(f"bare ncu profiled {profiled} of {len(bundles)} kernels")
    return {"bare_s": round(seconds, 2), "kernels": profiled}


def launch(place: Path) -> int:
    """The minimal launcher: each bundle three times, of which ncu records the last."""
    import numpy as np

    import tilelang_min as tilelang
    from tileprof.launcher.recorded import WARM_LAUNCHES

    generator = np.random.default_rng(0)
    known: dict[Any, Any] = {}

    def made(shape: tuple[int, ...], dtype: str) -> Any:
        """One array for each shape and type: a launcher that spends no more than it must."""
        if (shape, dtype) not in known:
            known[shape, dtype] = generator.standard_normal(shape, dtype=np.float32).astype(numpy_type(dtype))
        return known[shape, dtype]

    driver = ctypes.CDLL("libcuda.so.1") if "--dry" not in sys.argv else None
    for path in json.loads(place.read_text(encoding="utf-8")):
        kernel = tilelang.load(path)
        arrays = [made(tuple(item.shape), item.dtype) for item in kernel.parameters]
        with kernel.get_profiler().launching(*arrays) as call:
            for _ in range(WARM_LAUNCHES):
                call()
            if driver is not None:
                driver.cuCtxSynchronize()
                driver.cuProfilerStart()
            call()
            if driver is not None:
                driver.cuCtxSynchronize()
                driver.cuProfilerStop()
    return 0


def numpy_type(name: str) -> Any:
    """NumPy's type of a parameter."""
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)


def capability() -> int | None:
    """Major compute capability of the first GPU."""
    from tileprof.plan.machine import nvidia_gpus

    gpus = nvidia_gpus()
    return int(gpus[0].arch.partition(".")[0]) if gpus else None


def facts() -> dict[str, Any]:
    """What this was measured on."""
    from tileprof import __version__
    from tileprof.collect import ncu
    from tileprof.plan.machine import probe

    machine = probe()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "tileprof": __version__,
        "ncu": ncu.located().version,
        "gpu": [f"{gpu.name}, driver {gpu.driver}" for gpu in machine.gpus],
        "processor": f"{machine.cpu}, {machine.cores} cores",
        "python": machine.python,
        "method": (__doc__ or "").split("Method: ", 1)[1].split("\n``OUT", 1)[0],
    }


def main() -> int:
    """Fill the cache, then take turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "benchmarks" / "results")
    parser.add_argument("--launch", type=Path, help="be the minimal launcher of these bundles")
    parser.add_argument("--dry", action="store_true", help="with --launch: without telling a profiler")
    parser.add_argument("--cases", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--keep", type=Path, help="folder of the runs; a temporary one by default")
    chosen = parser.parse_args()
    if chosen.launch is not None:
        return launch(chosen.launch)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "ncu_overhead.yaml"
        file.write_text(workload(chosen.cases, chosen.target), encoding="utf-8")
        rounds: list[dict[str, Any]] = []
        bundles: list[Path] = []
        for number in range(1 + chosen.rounds):
            row: dict[str, Any] = {}
            for step in ("run", "bare") if number % 2 == 0 else ("bare", "run"):
                if step == "run":
                    row |= run_tileprof(file, folder / "run", chosen.workers)
                    bundles = sorted(path.parent for path in (folder / "run" / "kernels").glob("*/kernel.json"))
                else:
                    row |= run_bare(bundles, folder)
            rounds.append({**row, "ratio": round(row["phase_s"] / row["bare_s"], 3)})
            print(f"round {number}: {rounds[-1]}", flush=True)
        counted = with_counters(folder / "run")
    first, *rounds = rounds
    ratio = statistics.median(row["ratio"] for row in rounds)
    bare_s = min(row["bare_s"] for row in rounds)
    record = {**facts(), "cases_with_counters": counted, "not_counted": first, "rounds": rounds, "ratio": ratio}
    chosen.out.mkdir(parents=True, exist_ok=True)
    place = chosen.out / f"{record['date']}-ncu-overhead.json"
    place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"profiled phase over bare ncu: {ratio:.3f} ({counted} of {chosen.cases} cases with counters); {place.name}")
    if bare_s < LEAST_BARE_S:
        print(f"bare ncu took only {bare_s:.1f} s: take more --cases")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
