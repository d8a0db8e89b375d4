"""One run from a workload file to a finished store: load, expand, plan, claim the directory, sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tileprof
from tileprof import __version__
from tileprof.collect import cycles, ncu, nsys, perf, rocprof, rocprofv3
from tileprof.collect.calibrate import kept, machine_key
from tileprof.collect.ceilings import ceilings
from tileprof.collect.tool import Availability
from tileprof.errors import UsageError
from tileprof.execute.preflight import ncu_preflight, rocprofv3_preflight
from tileprof.execute.progress import Progress
from tileprof.execute.results import Paths
from tileprof.execute.resume import Earlier, keep, missing, still_unavailable
from tileprof.execute.sweep import Executor, Sweep
from tileprof.plan.machine import Machine, probe
from tileprof.plan.plan import Plan, make_plan
from tileprof.store.baselines import BaselineStore, case_key, run_bundles
from tileprof.store.codec import now
from tileprof.store.directory import STORE, RunDirectory
from tileprof.store.reader import read_run
from tileprof.store.records import FAILED_STATUSES, CaseResult, Ceiling, Run
from tileprof.store.writer import RunStore
from tileprof.workload import Case, Workload, expand_cases, load_workload
from tileprof.workload.problems import unknown

TOOLS: dict[str, Callable[[], Availability]] = {
    "cycles": cycles.available,
    "ncu": ncu.available,
    "nsys": nsys.available,
    "rocprofv3": rocprofv3.available,
    "rocprof": rocprof.available,
    "perf": perf.available,
}
"""Counter tools and what tells whether they can be used here."""

MOST_CASES = 10_000
"""Cases that run without being confirmed."""


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for."""

    workload: Path
    output: Path | None = None
    targets: tuple[str, ...] = ()
    profilers: tuple[str, ...] = ()
    executor: str = "local:1"
    yes: bool = False
    resume: bool = False
    force: bool = False
    against: Path | None = None


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to start: nothing has been written yet."""

    options: RunOptions
    workload: Workload
    cases: tuple[Case, ...]
    plan: Plan
    machine: Machine
    executor: Executor

    @property
    def directory(self) -> Path:
        """Where the run goes."""
        return self.options.output or Path("runs") / self.workload.name


def parse_executor(text: str) -> Executor:
    """``inline``, ``local:N``; raises UsageError for anything else."""
    kind, _, detail = text.partition(":")
    if kind == "inline" and not detail:
        return Executor(compilers=1, overlapping=False)
    if kind == "local" and detail.isdigit() and 1 <= int(detail) <= 256:
        return Executor(compilers=int(detail))
    raise UsageError(
        f"--executor takes inline, local:N with N from 1 to 256, not {text!r}", remedy="for example local:2"
    )


def prepare(
    options: RunOptions,
    machine: Machine | None = None,
    *,
    preflight: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Prepared:
    """Load and check everything that can be checked without running a case.

    With ``preflight`` a counter is read where Nsight Compute or rocprofv3 is to measure on a GPU that is here, so that a profiler
    which is denied costs seconds; ``say`` hears why that takes longer.  Raises WorkloadError, UsageError, ProfilerUnavailable.
    """
    if options.resume and options.force:
        raise UsageError("--resume and --force exclude each other")
    executor = parse_executor(options.executor)
    workload = load_workload(options.workload)
    for name in options.targets:
        if name not in workload.targets:
            raise UsageError(
                unknown("target", name, workload.targets), remedy=f"targets are named in {options.workload}"
            )
    cases = expand_cases(workload, options.targets or None)
    if not cases:
        raise UsageError(f"no kernel of {options.workload} runs on {', '.join(options.targets)}")
    used = {case.target.name for case in cases}
    names = tuple(name for name in workload.targets if name in used)
    machine = machine or probe()
    read = {"ncu": lambda: ncu_preflight(say), "rocprofv3": lambda: rocprofv3_preflight(say)}
    tools = {**TOOLS, **read} if preflight else TOOLS
    plan = make_plan(workload, names, machine, options.profilers, tools)
    return Prepared(options, workload, tuple(cases), plan, machine, executor)


def check_count(prepared: Prepared) -> None:
    """Raise UsageError for more than MOST_CASES cases that were not confirmed."""
    count = len(prepared.cases)
    if count > MOST_CASES and not prepared.options.yes:
        raise UsageError(
            f"the workload has {count:,} cases, more than {MOST_CASES:,}",
            remedy="confirm with --yes, or shorten its axes; --dry-run lists the cases",
        )


def run_prepared(prepared: Prepared, progress: Progress) -> None:
    """Run all cases that are not finished yet, storing each as it ends.

    Raises StoreError where the directory cannot be used, and lets KeyboardInterrupt through; finished cases are kept.
    """
    check_count(prepared)
    workload, options = prepared.workload, prepared.options
    against = bundles_against(prepared)
    asked = options.targets or tuple(workload.targets)
    everything = expand_cases(workload) if options.targets else prepared.cases
    places = {(case.id, case.hash): place for place, case in enumerate(everything)}
    chosen = {(case.id, case.hash) for case in prepared.cases}
    with RunDirectory(prepared.directory, force=options.force, resume=options.resume) as directory:
        earlier = Earlier()
        if directory.resumed:
            earlier = Earlier.read(directory.store, workload, everything, prepared.machine)
        targets = tuple(name for name in workload.targets if name in asked or name in earlier.targets)
        store = RunStore.open(directory.store) if directory.resumed else RunStore.create(directory.store)
        with store:
            store.write_header(_header(prepared, earlier.started or now()), targets)
            stored = set()
            if directory.resumed:
                stored = keep(earlier, everything, prepared.cases, store, directory, progress.say)
            waiting = [(places[key], case) for case in prepared.cases if (key := (case.id, case.hash)) not in stored]
            store.set_unavailable(still_unavailable(earlier.unavailable, prepared.cases, prepared.plan.unavailable))
            store.add_ceilings(_datasheet_ceilings(prepared.cases, prepared.machine))
            progress.begin(len(prepared.cases), len(prepared.cases) - len(waiting))
            paths = Paths(workload.directory, Path.cwd(), Path(tileprof.__file__).resolve().parent.parent)
            sweep = Sweep(
                workload, waiting, prepared.plan, directory, store, progress, prepared.executor, paths, against
            )
            try:
                sweep.run()
            finally:
                progress.end()
            if sweep.unavailable:
                found = [*prepared.plan.unavailable, *sweep.unavailable]
                store.set_unavailable(still_unavailable(earlier.unavailable, prepared.cases, found))
            left = missing(everything, targets, stored | chosen)
            if left:
                names = ", ".join(dict.fromkeys(case.target.name for case in left))
                count = "1 case is" if len(left) == 1 else f"{len(left):,} cases are"
                progress.say(f"unfinished: {count} left, on {names}; continue with --resume")
            else:
                store.finish(now())


def bundles_against(prepared: Prepared) -> dict[str, dict[str, str]]:
    """Bundles of ``--against`` by the id of the case that they are timed beside.  Raises UsageError where there is none."""
    place, workload = prepared.options.against, prepared.workload
    if place is None:
        return {}
    if (place / STORE).is_file():
        if place.resolve() == prepared.directory.resolve():
            raise UsageError(
                f"--against names the directory that is written, {place}", remedy="write to another with -o"
            )
        known = run_bundles(read_run(place / STORE), place)
    elif place.is_dir():
        known = BaselineStore(place).bundles(workload.name)
    else:
        raise UsageError(f"--against: there is no {place}", remedy="name a run directory or a folder of baselines")
    found = {
        case.id: known[key]
        for case in prepared.cases
        if (key := case_key(case.kernel.name, case.args, case.shape, case.tiles, case.target.target, case.sizes))
        in known
    }
    if not found:
        message = f"--against: {place} has bundles of none of these {len(prepared.cases)} cases"
        raise UsageError(
            message, remedy="it must hold the same workload; `tileprof check --update-baseline` keeps bundles"
        )
    return found


def _header(prepared: Prepared, started: str) -> Run:
    """The run without its cases."""
    workload = prepared.workload
    return Run(
        name=workload.name,
        description=workload.description,
        workload_file=workload.file,
        version=__version__,
        started=started,
        finished=None,
        machine=prepared.machine.to_json(),
        cases=(),
    )


def _datasheet_ceilings(cases: Sequence[Case], machine: Machine) -> list[Ceiling]:
    """Ceilings of the GPUs that the cases are for: measured by ``tileprof calibrate`` where the GPU is here, else a datasheet's."""
    found = {c.target.target: c.target for c in cases if c.target.kind != "cpu" and c.target.unsupported is None}
    rows: list[Ceiling] = []
    for name, target in found.items():
        gpu = machine.gpu_for(target.kind, name.partition(":")[2])
        arch = name.partition(":")[2]
        measured = kept(machine_key(gpu.name, arch), name) if gpu else []
        known = {(row.quantity, row.unit_class) for row in measured}
        rows += measured
        rows += [row for row in ceilings(name, gpu.name if gpu else "") if (row.quantity, row.unit_class) not in known]
    return rows


def exit_status(results: Sequence[CaseResult]) -> int:
    """4 where a case failed, else 3 where a measurement is invalid, else 0."""
    statuses = {result.status for result in results}
    if statuses & set(FAILED_STATUSES):
        return 4
    return 3 if "invalid_measurement" in statuses else 0
