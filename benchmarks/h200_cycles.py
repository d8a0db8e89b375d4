"""Builds with clock reads on a Hopper GPU: what they cost, and whether they rank operations as Nsight Compute's stall samples do.

    python benchmarks/h200_cycles.py compile BUNDLES                  here: needs no GPU
    python benchmarks/h200_cycles.py run BUNDLES OUT                  on the GPU: needs torch, cuda-bindings and ncu, no compiler
    python benchmarks/h200_cycles.py report BUNDLES OUT RESULT.json   here: reads the reports, needs ncu_report

Method: matrix products and attention, each for warp groups with a ring of stages and (``-sm80``) without; inputs from a normal
distribution.  The results of both builds must have the same bits.  Times: CUDA events, both builds in turns, the order reversed
from round to round, the L2 flushed before each launch; overhead is the ratio of the medians less 1.  Cycles are of the last launch.
Samples: one launch of the plain build under ncu (``--all-builds``: of both), joined with operations by instruction.  Spearman's
rank correlation is taken over the operations that have cycles, between the cycles of all warps and the samples; not over the kernel
itself, of which only barriers are timed and all index arithmetic is sampled.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import measured_on

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "workloads" / "kernels")]

ROUNDS, WARMUP, FLUSH_BYTES = 40, 5, 256 << 20
PRODUCT = {"M": 4096, "N": 4096, "K": 4096}
ATTENTION = {"batch": 4, "heads": 16, "seq_len": 4096, "dim": 128}
BUILDS = ("plain", "clocked")


def compile_all(out: Path, target: str) -> int:
    """Both builds of every kernel, and the list that names them."""
    import attention
    import gemm

    import tilelang_min as tilelang

    rings = {"block_M": 128, "block_N": 256, "block_K": 64, "num_stages": 4, "threads": 256}
    plain = {"block_M": 128, "block_N": 128, "block_K": 32, "num_stages": 3, "threads": 128}
    heads = {"block_M": 128, "block_N": 128, "num_stages": 2, "threads": 256}
    small = {"block_M": 128, "block_N": 64, "num_stages": 2, "threads": 256}
    fast: dict[str, Any] = {"fast_math": True}
    kernels = {
        "gemm": (gemm.gemm.prim_func(**PRODUCT, **rings), {}),
        "gemm-sm80": (gemm.gemm.prim_func(**PRODUCT, **plain), {"hopper": False}),
        "attention": (attention.attention.prim_func(**ATTENTION, **heads), fast),
        "attention-sm80": (attention.attention.prim_func(**ATTENTION, **small), {**fast, "hopper": False}),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, (function, options) in kernels.items():
        for build in BUILDS:
            instrument = "operations" if build == "clocked" else None
            kernel = tilelang.compile(function, target, instrument=instrument, options=options)
            kernel.save(out / f"{name}-{build}.tlk")
            facts = kernel.metadata
            print(f"{name} {build}: {facts.registers_per_thread} registers, {facts.spill_store_bytes} bytes spilled")
    (out / "cycles.json").write_text(json.dumps(list(kernels)))
    return 0


def inputs_of(kernel: Any) -> list[Any]:
    """Inputs on the GPU, and an output full of NaN."""
    import torch

    torch.manual_seed(0)
    made = []
    for parameter in kernel.parameters:
        tensor = torch.randn(parameter.shape, device="cuda").to(getattr(torch, parameter.dtype))
        made.append(tensor if parameter.access == "in" else torch.full_like(tensor, float("nan")))
    return made


def run(bundles: Path, out: Path, profiled: Sequence[str]) -> int:
    """Times and cycles of every kernel, reports of the builds ``profiled``; 1 where results differ or a report is missing."""
    import torch

    import tilelang_min as tilelang

    out.mkdir(parents=True, exist_ok=True)
    failed = False
    results: dict[str, Any] = {**measured_on.facts(), "kernels": {}}
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    for name in json.loads((bundles / "cycles.json").read_text()):
        kernels = {build: tilelang.load(bundles / f"{name}-{build}.tlk") for build in BUILDS}
        arguments = {build: inputs_of(kernel) for build, kernel in kernels.items()}
        times: dict[str, list[float]] = {build: [] for build in BUILDS}
        for number in range(WARMUP + ROUNDS):
            for build in BUILDS if number % 2 == 0 else reversed(BUILDS):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                flush.zero_()
                start.record()
                kernels[build](*arguments[build])
                end.record()
                torch.cuda.synchronize()
                if number >= WARMUP:
                    times[build].append(float(start.elapsed_time(end)) * 1e3)
        outs = [
            argument
            for build in BUILDS
            for parameter, argument in zip(kernels[build].parameters, arguments[build], strict=True)
            if parameter.access == "out"
        ]
        same = bool(torch.equal(outs[0], outs[1]))
        failed |= not same
        cycles = kernels["clocked"].cycles()
        plain, clocked = (statistics.median(times[build]) for build in BUILDS)
        results["kernels"][name] = {"same_bits": same, "times_us": times, "cycles": asdict(cycles)}
        print(
            f"{name}: plain {plain:.1f} us, with clock reads {clocked:.1f} us, overhead {clocked / plain - 1:+.1%}",
            flush=True,
        )
        print(cycles.text() if same else f"WRONG {name}: the builds' results differ", flush=True)
        (out / "cycles.json").write_text(json.dumps(results))
        del arguments, outs
        torch.cuda.empty_cache()
    del flush
    torch.cuda.empty_cache()
    for name in results["kernels"]:
        failed |= any(not profile(bundles, out, name, build) for build in profiled)
    return int(failed)


def profile(bundles: Path, out: Path, name: str, build: str) -> bool:
    """One launch under ncu; says what went wrong."""
    import tilelang_min as tilelang
    from tileprof.collect import ncu

    path = ncu.find()
    if path is None:
        print("ncu not found")
        return False
    report, log = out / f"{name}-{build}.ncu-rep", out / f"{name}-{build}.log"
    child = [sys.executable, __file__, "launch", str(bundles), f"{name}-{build}"]
    symbol = tilelang.load(bundles / f"{name}-{build}.tlk").bundle.record["symbol"]
    command = ncu.command(path, child, symbol=symbol, report=report, log=log, major=9, launch_skip=1)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    print(
        f"{name} {build}: ncu rc {done.returncode}, {time.perf_counter() - start:.0f} s {done.stderr[-300:]}",
        flush=True,
    )
    return done.returncode == 0 and report.exists()


def launch(bundles: Path, name: str) -> int:
    """The child under the profiler."""
    import torch

    import tilelang_min as tilelang

    kernel = tilelang.load(bundles / f"{name}.tlk")
    arguments = inputs_of(kernel)
    for _ in range(2):
        kernel(*arguments)
    torch.cuda.synchronize()
    return 0


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 1, equal ones sharing theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Rank correlation; None for fewer than three pairs, or where one side is all equal."""
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return statistics.correlation(ranks(first), ranks(second))


def samples_of(bundle: Path, report: Path) -> dict[int, float]:
    """Stall samples by operation."""
    from tileprof.analyse.join import join_bundle
    from tileprof.collect.ncu_file import read

    (joined,) = join_bundle(read(report), bundle)
    return {
        metric.operation: metric.value
        for metric in joined.metrics
        if metric.metric == "stall.samples" and metric.operation is not None
    }


def seldom(operations: Sequence[dict[str, Any]], bundle: Path) -> list[str]:
    """Labels of operations of a loop that each worker came to once at most, where others of as many workers ran many times.

    A loop of one iteration may say so rightly; else clock reads are missing in it.
    """
    import tilelang_min as tilelang

    known = {operation.id: operation for operation in tilelang.load(bundle).operations}
    loops = {number for number, operation in known.items() if operation.kind == "loop"}
    most: dict[int, float] = {}
    for item in operations:
        most[item["workers"]] = max(most.get(item["workers"], 0.0), item["count"] / max(item["workers"], 1))
    once = [item for item in operations if item["count"] <= item["workers"] and most[item["workers"]] > 1]
    return [item["label"] for item in once if known[item["operation"]].parent in loops]


def report(bundles: Path, out: Path, result: Path) -> int:
    """Overheads and rank correlations, printed and as JSON."""
    facts = json.loads((out / "cycles.json").read_text())
    for name, kernel in facts["kernels"].items():
        plain, clocked = (statistics.median(kernel["times_us"][build]) for build in BUILDS)
        kernel["overhead"] = clocked / plain - 1
        operations = kernel["cycles"]["operations"]
        cycles = {item["operation"]: sum(item[phase] or 0 for phase in ("run", "issue", "wait")) for item in operations}
        print(f"{name}: {plain:.1f} us, {clocked:.1f} us with clock reads: {kernel['overhead']:+.1%}")
        kernel["samples"], kernel["spearman"] = {}, {}
        for build in BUILDS:
            path = out / f"{name}-{build}.ncu-rep"
            if not path.exists():
                continue
            found = samples_of(bundles / f"{name}-{build}.tlk", path)
            kernel["samples"][build] = found
            timed = [item["operation"] for item in operations if item["kind"] != "kernel"]
            agreement = spearman([cycles[key] for key in timed], [found.get(key, 0.0) for key in timed])
            kernel["spearman"][build] = agreement
            shown = "-" if agreement is None else f"{agreement:.3f}"
            print(f"  Spearman with the samples of the {build} build: {shown} ({len(timed)} operations)")
        rare = seldom(operations, bundles / f"{name}-clocked.tlk")
        if rare:
            print(f"  in a loop, and yet come to only once a worker: {', '.join(rare)}")
        total, samples = sum(cycles.values()), kernel["samples"].get("plain", {})
        of = sum(samples.values()) or 1.0
        for item in sorted(operations, key=lambda each: -cycles[each["operation"]]):
            number = item["operation"]
            shares = f"{cycles[number] / total:7.1%} of cycles {samples.get(number, 0.0) / of:7.1%} of samples"
            print(f"  {shares}  {item['label'][:70]}")
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps(facts, indent=1))
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("compile", "run", "launch", "report"))
    parser.add_argument("bundles", type=Path)
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--all-builds", action="store_true", help="run: profile the builds with clock reads, too")
    chosen = parser.parse_args()
    if chosen.verb == "compile":
        return compile_all(chosen.bundles, chosen.target)
    if chosen.verb == "launch":
        return launch(chosen.bundles, chosen.rest[0])
    if chosen.verb == "run":
        return run(chosen.bundles, Path(chosen.rest[0]), BUILDS if chosen.all_builds else BUILDS[:1])
    return report(chosen.bundles, Path(chosen.rest[0]), Path(chosen.rest[1]))


if __name__ == "__main__":
    sys.exit(main())
