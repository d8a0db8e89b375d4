"""Each diagnosis applied to its kernel on an H200: what the finding promises beside what its advice brings.

    python benchmarks/h200_diagnosis.py compile BUNDLES                    here: needs no GPU
    python benchmarks/h200_diagnosis.py run BUNDLES OUT                    on the GPU: needs torch and ncu, no compiler
    python benchmarks/h200_diagnosis.py join BUNDLES OUT STORE RESULT.json here: reads the report, needs ncu_report
    python benchmarks/h200_diagnosis.py table STORE RESULT.json            the table, by today's rules

Method: inputs from a normal distribution; both sides of a pair are compared with a reference in float32, their outputs filled
with NaN before; then they run in turns, the order reversed from round to round, the L2 flushed before each, timed by CUDA
events. The real gain is 1 less the ratio of the medians. One launch of every kernel is recorded by Nsight Compute, joined with
the tile operations, and stored with the unprofiled times as a run; the promise is the gain of the finding that
``tileprof.analyse.diagnosis`` makes of that case.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "workloads" / "kernels")]

import measured_on  # noqa: E402
from h200_diagnosis_pairs import FLOOR, PAIRS, Pair, Step, steps  # noqa: E402

PAIR = {pair.name: pair for pair in PAIRS}
TARGET = "cuda:sm_90a"
ROUNDS, WARMUP, FLUSH_BYTES = 60, 5, 256 << 20
PARTS = 2
"""Reports: each must stay small enough to be carried about."""
TOLERANCE = 3e-3
"""Largest ||result - reference|| / ||reference||: results in float16, and tf32."""


def compile_all(out: Path, only: str) -> int:
    """Bundles of the kernels of pairs whose names match, the names, and a run without measurements."""
    from tileprof.store.writer import RunStore

    out.mkdir(parents=True, exist_ok=True)
    chosen = [pair.name for pair in PAIRS if re.fullmatch(only, pair.name)]
    cases = []
    for number, (name, step) in enumerate(steps(chosen).items()):
        start = time.perf_counter()
        case, kernel = compiled(step)
        kernel.save(out / f"{number}.tlk")
        cases.append(case)
        print(f"{number} {name}: {time.perf_counter() - start:.1f} s", flush=True)
    (out / "order.json").write_text(json.dumps(chosen))
    (out / "run.sqlite").unlink(missing_ok=True)
    with RunStore.create(out / "run.sqlite") as store:
        store.write_header(header([]))
        for number, case in enumerate(cases):
            store.add_case(case, number)
    return 0


def compiled(step: Step) -> tuple[Any, Any]:
    """A kernel, and its case with static and, where wanted, simulated figures; paths relative to the repository."""
    import tilelang_min as tilelang
    from tileprof.execute.results import Paths
    from tileprof.metrics import metadata_metrics
    from tileprof.store.records import CaseResult

    module, factory = step.factory.split(".")
    function = getattr(importlib.import_module(module), factory).prim_func(**step.shape, **step.values)
    kernel = tilelang.compile(function, TARGET, options={"hopper": False} if step.ampere else {})
    clean = Paths(ROOT / "workloads").clean
    if step.simulate:
        case = tilelang.profile(kernel).run.cases[0]
    else:
        record, metadata = kernel.bundle_record(), kernel.metadata.to_json()
        case = CaseResult(
            "", record["hash"], kernel.name, "h200", TARGET, {}, {}, {}, "not_run", metadata=metadata,
            operations=tuple(record["operations"]), sources=record["sources"], assembly=kernel.assembly(),
            metrics=tuple(metadata_metrics(metadata, tilelang.__version__)), notes=tuple(record["notes"]),
        )  # fmt: skip
    operations = tuple(
        {**operation, "location": {**operation["location"], "file": clean(operation["location"]["file"])}}
        for operation in case.operations
    )
    case = replace(
        case, id=step.case, target_name="h200", target=TARGET, shape=dict(step.shape), tiles=dict(step.values),
        operations=operations, sources={clean(name): text for name, text in case.sources.items()},
        generated="", assembly=clean(case.assembly), notes=tuple(map(clean, case.notes)),
    )  # fmt: skip
    return case, kernel


def header(cases: Iterable[Any]) -> Any:
    """The run of these cases."""
    from tileprof import __version__
    from tileprof.store.records import Run

    text = "Each rule's kernel and the same with the advice applied, on an NVIDIA H200"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Run("h200-diagnosis", text, "benchmarks/h200_diagnosis_pairs.py", __version__, now, now, {}, tuple(cases))


def _silu_gated(t: dict[str, Any]) -> Any:
    import torch

    return torch.nn.functional.silu(t["A"].float() @ t["W"].float()) * (t["A"].float() @ t["V"].float())


def _attention(t: dict[str, Any]) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (t[name].float().transpose(1, 2) for name in "QKV")
    return scaled_dot_product_attention(q, k, v).transpose(1, 2)


def _smoothed(t: dict[str, Any]) -> Any:
    taps = len(t["W"])
    height = len(t["X"]) - taps
    return sum(float(t["W"][k]) * t["X"][k : k + height].float() for k in range(taps))


REFERENCES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "product": lambda t: t["A"].float() @ t["B"].float(),
    "transposed": lambda t: t["A"].t(),
    "gated": _silu_gated,
    "softmax": lambda t: t["A"].float().softmax(1),
    "attention": _attention,
    "scale_add_relu": lambda t: (0.5 * t["A"].float() + t["B"].float()).relu(),
    "smoothed": _smoothed,
}


class Side:
    """One side of a pair with its tensors: called, it launches its kernels one after another."""

    def __init__(self, folder: Path, order: list[str], parts: Iterable[Step], masters: dict[Any, Any]) -> None:
        import torch

        import tilelang_min as tilelang

        self.tensors: dict[str, Any] = {}
        self.calls = []
        for step in parts:
            kernel = tilelang.load(folder / f"{order.index(step.case)}.tlk")
            arguments = []
            for parameter in kernel.parameters:
                name, dtype = step.wires.get(parameter.name, parameter.name), getattr(torch, parameter.dtype)
                if name not in self.tensors and parameter.access == "out":
                    self.tensors[name] = torch.full(parameter.shape, float("nan"), dtype=dtype, device="cuda")
                elif name not in self.tensors and parameter.access == "inout":  # what is added up
                    self.tensors[name] = torch.zeros(parameter.shape, dtype=dtype, device="cuda")
                elif name not in self.tensors:
                    key = name, tuple(parameter.shape)
                    if key not in masters:
                        masters[key] = torch.randn(parameter.shape, device="cuda").half()
                    self.tensors[name] = masters[key].to(dtype)
                arguments.append(self.tensors[name])
            self.calls.append((kernel, arguments))

    def __call__(self) -> None:
        for kernel, arguments in self.calls:
            kernel(*arguments)


def run(bundles: Path, out: Path) -> int:
    """Checks and times every pair, then records every kernel; 1 where a result is wrong or the report is missing."""
    import torch

    out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    chosen = json.loads((bundles / "order.json").read_text())
    order = list(steps(chosen))
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    wrong, rows = 0, []
    for pair in (pair for pair in PAIRS if pair.name in chosen):
        torch.manual_seed(0)
        masters: dict[Any, Any] = {}
        sides = {name: Side(bundles, order, getattr(pair, name), masters) for name in ("before", "after")}
        sides["floor"] = Side(bundles, order, (FLOOR,), {})
        for kernel in sides["before"].calls[:1] if len(pair.before) > 1 else ():
            sides["first"] = lambda kernel=kernel: kernel[0](*kernel[1])  # type: ignore[assignment]
        errors = {name: error(pair, sides[name]) for name in ("before", "after")}
        wrong += sum(not value <= TOLERANCE for value in errors.values())
        times = in_turns(sides, flush)
        medians = {name: statistics.median(values) for name, values in times.items()}
        rows.append({"pair": pair.name, "errors": errors, "times_us": times})
        print(
            f"{pair.name:20} {medians['before']:9.1f} us, then {medians['after']:9.1f} us: "
            f"{1 - medians['after'] / medians['before']:+.1%} (a launch {medians['floor']:.1f} us; errors {errors})", flush=True,
        )  # fmt: skip
        del sides, masters
        torch.cuda.empty_cache()
    facts = {
        **measured_on.facts(), "rounds": ROUNDS, "pairs": rows,
    }  # fmt: skip
    (out / "times.json").write_text(json.dumps(facts))
    return int(wrong > 0 or not recorded(bundles, out))


def error(pair: Pair, side: Side) -> float:
    """Of the first launch's result: the norm of its difference from the reference over the reference's."""
    side()
    made, reference = side.tensors[pair.output].float(), REFERENCES[pair.reference](side.tensors)
    return float((made - reference).norm() / reference.norm())


def in_turns(sides: dict[str, Any], flush: Any) -> dict[str, list[float]]:
    """Microseconds of each side, in turns, on a cold L2."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(WARMUP + ROUNDS):
        for name in sides if number % 2 == 0 else reversed(sides):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            sides[name]()
            end.record()
            torch.cuda.synchronize()
            if number >= WARMUP:
                times[name].append(round(float(start.elapsed_time(end)) * 1e3, 3))
    return times


def recorded(bundles: Path, out: Path) -> bool:
    """One launch of every kernel under Nsight Compute."""
    from tileprof.collect import ncu

    path = ncu.find()
    if path is None:
        print("ncu not found")
        return False
    complete = True
    for part in range(PARTS):
        report, log = out / f"kernels{part}.ncu-rep", out / f"ncu{part}.log"
        child = [sys.executable, __file__, "launch", str(bundles), str(part)]
        command = ncu.command(path, child, symbol="regex:_kernel$", report=report, log=log, major=9, launch_count=1000)
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        print(f"ncu rc {done.returncode}, {time.perf_counter() - start:.0f} s; {done.stderr[-600:]}", flush=True)
        complete &= done.returncode == 0 and report.exists()
    return complete


def launch(bundles: Path, part: Path) -> int:
    """The child under the profiler: its share of the kernels, once each, in order."""
    import torch

    found = steps(json.loads((bundles / "order.json").read_text()))
    order = list(found)
    for step in list(found.values())[int(str(part)) :: PARTS]:
        Side(bundles, order, (step,), {})()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    return 0


def join_all(bundles: Path, out: Path, store: Path, result: Path, ceilings: Path | None, append: bool) -> int:
    """The measured run, and the times as JSON, or more of both; prints the table."""
    from tileprof.analyse.join import join
    from tileprof.collect.ceilings import ceilings as known_ceilings
    from tileprof.collect.ncu_file import read
    from tileprof.collect.timer import timing_metrics
    from tileprof.store.reader import read_run
    from tileprof.store.records import Timing
    from tileprof.store.writer import RunStore

    facts = json.loads((out / "times.json").read_text())
    samples = times_of_cases(facts)
    before = read_run(bundles / "run.sqlite").cases
    profiles: list[Any] = [None] * len(before)
    for part in range(PARTS):
        profiles[part::PARTS] = read(out / f"kernels{part}.ncu-rep").kernels
    cases = []
    for number, (case, profile) in enumerate(zip(before, profiles, strict=True)):
        kernel, listing = (member(bundles / f"{number}.tlk", name) for name in ("kernel.json", "listing.json"))
        if kernel["symbol"] != profile.symbol:
            raise SystemExit(f"launch {number} is of {profile.symbol}, not of {kernel['symbol']}")
        joined = join(profile, kernel, listing)
        timing = None
        if case.id in samples:
            timing = Timing(tuple(1e3 * value for value in samples[case.id]), "events", WARMUP, True)
        metrics = (*case.metrics, *joined.metrics, *(timing_metrics(timing) if timing else ()))
        notes = (*case.notes, *joined.notes)
        told = any(case.id == pair.before[0].case for pair in PAIRS) or "HGMMA" in case.assembly
        assembly = case.assembly if told else ""  # rules ask for it; what has no findings to read needs none
        cases.append(
            replace(case, status="ok", reason="", metrics=metrics, timing=timing, notes=notes, assembly=assembly)
        )
    limits = list(known_ceilings(TARGET, facts["device"]))
    if ceilings is not None:
        limits = [replace(ceiling, target=TARGET) for ceiling in read_run(ceilings).ceilings]
    if append:
        kept = read_run(store, None)
        new = {case.id for case in cases}
        cases = [case for case in kept.cases if case.id not in new] + cases
        earlier = json.loads(result.read_text())
        facts["pairs"] = [
            row for row in earlier["pairs"] if row["pair"] not in {r["pair"] for r in facts["pairs"]}
        ] + facts["pairs"]
    store.parent.mkdir(parents=True, exist_ok=True)
    store.unlink(missing_ok=True)
    with RunStore.create(store) as written:
        written.write_header(header([]))
        written.add_ceilings(limits)
        for number, case in enumerate(cases):
            written.add_case(case, number)
    result.write_text(json.dumps(facts, indent=None))
    return table(store, result)


def times_of_cases(facts: dict[str, Any]) -> dict[str, list[float]]:
    """Microseconds of every kernel that was timed by itself."""
    found: dict[str, list[float]] = {FLOOR.case: facts["pairs"][0]["times_us"]["floor"]}
    for row in facts["pairs"]:
        pair, times = PAIR[row["pair"]], row["times_us"]
        for name, parts in (("before", pair.before), ("after", pair.after)):
            if len(parts) == 1:
                found.setdefault(parts[0].case, times[name])
        if "first" in times:
            found.setdefault(pair.before[0].case, times["first"])
    return found


def member(bundle: Path, name: str) -> Any:
    """A JSON file of a bundle."""
    import zipfile

    with zipfile.ZipFile(bundle) as archive:
        return json.loads(archive.read(name))


def outcome(pair: Pair, run: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Promised and real gain of a pair: ``promised`` None where the finding has none, ``fires`` whether the rule speaks at all.

    Findings of the rule on several lines are one promise, where the change mends them all: their gains add up.
    """
    from tileprof.analyse.diagnosis import diagnose_case

    case = next(case for case in run.cases if case.id == pair.before[0].case)
    found = [finding for finding in diagnose_case(case, run.ceilings) if finding.rule in (pair.rule, pair.also)]
    gains = [finding.gain for finding in found if finding.gain is not None]
    medians = {name: statistics.median(values) for name, values in row["times_us"].items()}
    real = 1 - medians["after"] / medians["before"]
    promised = sum(gains) if gains else None
    return {
        "pair": pair.name, "rule": pair.rule, "change": pair.change, "kernel": pair.before[0].factory, "fires": bool(found),
        "promised": promised, "real": real, "before_us": medians["before"], "after_us": medians["after"],
        "confidence": found[0].confidence if found else None, "advised": pair.advised,
    }  # fmt: skip


def percent(part: float) -> str:
    """A share in words."""
    return f"{round(100 * part)} %"


def promise(one: dict[str, Any]) -> str:
    """A promised gain in words; of a change that the finding does not name, that it does not."""
    if not one["fires"]:
        return "silent"
    if not one["advised"]:
        return "not advised"
    return "nothing" if one["promised"] is None else percent(one["promised"])


def table(store: Path, result: Path) -> int:
    """Promised and real gains, by today's rules, as the docs have them."""
    from tileprof.store.reader import read_run

    run, facts = read_run(store), json.loads(result.read_text())
    print("| rule | pair, kernel | change | µs | promised | real | points | |\n|---|---|---|---|---|---|---|---|")
    for row in facts["pairs"]:
        pair = PAIR[row["pair"]]
        one = outcome(pair, run, row)
        known = pair.advised and one["promised"] is not None
        points = f"{round(100 * (one['promised'] - one['real'])):+d}" if known else ""
        times = f"{one['before_us']:.1f} → {one['after_us']:.1f}"
        sure = (one["confidence"] or "") if pair.advised else ""
        print(
            f"| {pair.rule} | `{pair.name}`, {one['kernel'].split('.')[1]} | {pair.change} | {times} | {promise(one)} | "
            f"{percent(one['real'])} | {points} | {sure} |"
        )
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("compile", "run", "launch", "join", "table"))
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--only", default=".*", metavar="RE", help="compile: pairs whose names match")
    parser.add_argument("--append", action="store_true", help="join: to what STORE and RESULT.json have")
    parser.add_argument("--ceilings", type=Path, metavar="STORE", help="join: a run that has measured ones")
    chosen = parser.parse_args()
    if chosen.verb == "join":
        return join_all(*chosen.places, chosen.ceilings, chosen.append)
    if chosen.verb == "compile":
        return compile_all(*chosen.places, chosen.only)
    return {"run": run, "launch": launch, "table": table}[chosen.verb](*chosen.places)


if __name__ == "__main__":
    sys.exit(main())
