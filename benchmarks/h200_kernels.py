"""Whole kernels on an H200 against the simulator: every operation's transactions and sectors.

    python benchmarks/h200_kernels.py compile BUNDLES [--only RE] here, no GPU needed
    python benchmarks/h200_kernels.py profile BUNDLES OUT         on a GPU with Nsight Compute, no compiler needed
    python benchmarks/h200_kernels.py join BUNDLES OUT JSON       here: measured values as JSON, and each difference

The kernels are those of ``h200_kernel_zoo.py``.  What the profiler is known to misread is left out of the JSON by the flag
of the join (``tileprof/analyse/join.py``) and listed under ``misread``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

PARTS = 4
"""Reports: each must stay small enough to be carried about."""
OPTIONS = {"hopper": False}
"""Loads, stores, copies and ldmatrix are compared; products of warp groups and bulk copies pass none of these counters."""
METRICS = ("shared.transactions", "shared.transactions_ideal", "global.sectors", "global.sectors_ideal")

Counts = dict[str, dict[str, int]]
"""Metric -> value by "operation/access"."""


def compile_all(out: Path, target: str, only: str) -> int:
    """Bundles of all kernels whose names match, and their order."""
    import h200_kernel_zoo

    import tilelang_min as tilelang

    out.mkdir(parents=True, exist_ok=True)
    kernels = {name: kernel for name, kernel in h200_kernel_zoo.kernels().items() if re.fullmatch(only, name)}
    for name, kernel in kernels.items():
        tilelang.compile(kernel, target, cache=False, options=OPTIONS).save(out / f"{name}.tlk")
        print(name, flush=True)
    (out / "order.json").write_text(json.dumps(list(kernels)))
    return 0


def profile(bundles: Path, out: Path) -> int:
    """One launch of every kernel under ncu, in a few reports."""
    from tileprof.collect import ncu

    path = ncu.find()
    if path is None:
        print("ncu not found")
        return 1
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in range(PARTS):
        child = [sys.executable, __file__, "launch", str(bundles), str(part)]
        report, log = out / f"kernels{part}.ncu-rep", out / f"ncu{part}.log"
        command = ncu.command(path, child, symbol="regex:_kernel$", report=report, log=log, major=9, launch_count=1000)
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        failed |= done.returncode
        print(
            f"part {part}: rc {done.returncode}, {time.perf_counter() - start:.0f} s; {done.stderr[-400:]}", flush=True
        )
    return failed


def launch(bundles: Path, part: int) -> int:
    """The child under the profiler: its share of the kernels, once each, on the inputs that the simulator uses."""
    import tilelang_min as tilelang
    from tilelang_min.driver.fills import random_arguments

    for name in json.loads((bundles / "order.json").read_text())[part::PARTS]:
        kernel = tilelang.load(bundles / f"{name}.tlk")
        kernel(*random_arguments(kernel.parameters))
    return 0


def measured(joined: Any) -> tuple[Counts, list[str]]:
    """Counters by operation and access of a joined launch, and the places that the profiler misreads."""
    from tileprof.analyse.join import MISREAD

    counts: Counts = {}
    misread = set()
    for metric in joined.metrics:
        if metric.metric not in METRICS or metric.operation is None:
            continue
        place = f"{metric.operation}/{metric.access}"
        counts.setdefault(place, {})[metric.metric] = int(metric.value)
        if metric.flag == MISREAD:
            misread.add(place)
    return {place: counts[place] for place in counts if place not in misread}, sorted(misread)


def simulated(program: Any) -> Counts:
    """The same from the simulator."""
    from tilelang_min.driver.analysis import analyse_program
    from tilelang_min.driver.fills import random_arguments
    from tilelang_min.simulate import simulate

    counts: dict[str, Counter[str]] = {}
    analysis = analyse_program(program)
    found: Any = analysis.counts
    if analysis.sampled:  # by data: every block
        arguments = random_arguments(program.parameters)
        values = {parameter.name: value for parameter, value in zip(program.parameters, arguments, strict=True)}
        found = simulate(program, values).counts
    asynchronous = {count.operation: count.access for count in found if count.access.startswith("cp_async")}
    for count in found:
        # The profiler counts the global side of a cp.async on the same instruction.
        entry = counts.setdefault(f"{count.operation}/{asynchronous.get(count.operation, count.access)}", Counter())
        names = METRICS[:2] if count.space == "shared" else METRICS[2:]
        values = (
            (count.transactions, count.transactions_ideal)
            if count.space == "shared"
            else (count.sectors, count.sectors_ideal)
        )
        entry.update(dict(zip(names, values, strict=True)))
    return {place: dict(entry) for place, entry in counts.items()}


def differences(name: str, there: Counts, here: Counts, misread: list[str]) -> list[str]:
    """A line for each counter that differs."""
    lines = []
    for place in sorted({*there, *here} - set(misread)):
        for metric in METRICS:
            pair = there.get(place, {}).get(metric, 0), here.get(place, {}).get(metric, 0)
            if pair[0] != pair[1]:
                lines.append(f"{name} {place} {metric}: measured {pair[0]}, simulated {pair[1]}")
    return lines


def join_all(bundles: Path, out: Path, result: Path) -> int:
    """Measured values as JSON; says what differs from the simulation."""
    import tilelang_min as tilelang
    from tileprof.analyse.join import join_bundle
    from tileprof.collect.ncu_file import read

    order = json.loads((bundles / "order.json").read_text())
    reports = [read(out / f"kernels{part}.ncu-rep") for part in range(PARTS)]
    # Kernels that were not measured this time keep what is known.
    record: dict[str, Any] = json.loads(result.read_text())["kernels"] if result.exists() else {}
    unequal: dict[str, list[str]] = {}
    for number, name in enumerate(order):
        bundle = bundles / f"{name}.tlk"
        (joined,) = join_bundle(reports[number % PARTS], bundle)
        if joined.key != "offset":
            raise SystemExit(f"{name}: the report is of another binary")
        there, misread = measured(joined)
        here = simulated(tilelang.load(bundle).thread_program())
        record[name] = {"counts": there} | ({"misread": misread} if misread else {})
        if lines := differences(name, there, here, misread):
            unequal[name] = lines
            print("\n".join(lines), flush=True)
    about = {
        "about": "Counters per tile operation and access of whole kernels, one launch each: benchmarks/h200_kernels.py.",
        "device": "NVIDIA H200",
        "tool": f"Nsight Compute {reports[0].version}",
        "date": time.strftime("%Y-%m-%d", time.localtime((out / "kernels0.ncu-rep").stat().st_mtime)),
        "metrics": list(METRICS),
    }
    for entry in (record[name] for name in order):
        entry["counts"] = {
            place: [values.get(metric, 0) for metric in METRICS] for place, values in sorted(entry["counts"].items())
        }
    lines = [f'  "{name}": {json.dumps(entry)}' for name, entry in record.items()]
    head = json.dumps(about, indent=1)[:-2]
    result.write_text(head + ',\n "kernels": {\n' + ",\n".join(lines) + "\n }\n}\n")
    operations = sum(len(entry["counts"]) for entry in record.values())
    print(f"{len(record)} kernels, {operations} operations and accesses; {len(unequal)} kernels differ")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("compile")
    verb.add_argument("bundles", type=Path)
    verb.add_argument("--target", default="cuda:sm_90a")
    verb.add_argument("--only", default=".*", help="regular expression")
    verb = verbs.add_parser("profile")
    verb.add_argument("bundles", type=Path)
    verb.add_argument("out", type=Path)
    verb = verbs.add_parser("launch")
    verb.add_argument("bundles", type=Path)
    verb.add_argument("part", type=int)
    verb = verbs.add_parser("join")
    verb.add_argument("bundles", type=Path)
    verb.add_argument("out", type=Path)
    verb.add_argument("json", type=Path)
    arguments = parser.parse_args()
    match arguments.verb:
        case "compile":
            return compile_all(arguments.bundles, arguments.target, arguments.only)
        case "profile":
            return profile(arguments.bundles, arguments.out)
        case "launch":
            return launch(arguments.bundles, arguments.part)
        case _:
            return join_all(arguments.bundles, arguments.out, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
