"""A case once more under rocprofv3: counters in as many passes as they need, a trace, and PC samples of its tile operations.

The program runs once for each.  What goes wrong with one costs what that one would have told.  No AMD GPU was at hand: tested with
stand-ins of the tool and of the runtime, against the tool's documentation.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tilelang_min import targets
from tileprof.analyse.join_samples import join_samples
from tileprof.collect import rocprofv3, rocprofv3_json
from tileprof.collect.pc_samples import Sample
from tileprof.collect.profile import ForeignLaunch, ForeignProfile
from tileprof.collect.rocprofv3 import TOOL, Listed, Sampling, Selection
from tileprof.collect.rocprofv3_log import trouble_in
from tileprof.execute.child import run_command
from tileprof.execute.measuring import measuring
from tileprof.execute.results import CaseBuilder
from tileprof.metrics import make
from tileprof.metrics.amd_blocks import CYCLES
from tileprof.metrics.plausible import flag_implausible
from tileprof.plan.passes import PassPlan
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory
from tileprof.store.records import Metric, Provenance

WARM_LAUNCHES = 2
COUNTED_LAUNCHES = 2
"""Behind the warm ones: whether a version counts the calls of a kernel from 1 or from 0, the one asked for is warm."""
TRACED_LAUNCHES = 20
LEAST_SAMPLED, MOST_SAMPLED = 10, 100
"""Launches that are sampled."""
SAMPLED_NS = 5e6
"""Time of the kernel that is sampled, if that many launches take so long."""
WANTED_SAMPLES = 200_000
"""About so many samples are taken: enough for shares of operations, and a file that is read in seconds."""
_ASK_SECONDS = 60.0


class Rocprofv3:
    """Runs a case's program under rocprofv3; ``child`` makes its command line for a number of launches."""

    def __init__(
        self,
        builder: CaseBuilder,
        plan: TargetPlan,
        directory: RunDirectory,
        limit_s: float,
        stop: threading.Event,
        child: Callable[[int], Sequence[str]],
        cwd: Path | None = None,
    ) -> None:
        self.builder = builder
        self.plan = plan
        self.limit_s = limit_s
        self.stop = stop
        self.child = child
        self.cwd = cwd
        self.raw = directory.raw / f"{builder.case.hash}.rocprofv3"
        self.temporary = directory.temporary / f"{builder.case.hash}.rocprofv3"
        self.tool = rocprofv3.find()
        self.version = version_of(self.tool) if self.tool is not None else ""

    @property
    def arch(self) -> str:
        """``gfx942``."""
        return self.builder.case.target.target.partition(":")[2]

    def counters(self, launches: int, selection: Selection | None) -> ForeignProfile | None:
        """The planned counters of the selected launches, all passes joined; None where the builder was told why not, or on stop."""
        if self.tool is None or self.plan.passes is None:
            self.builder.note(f"no counters: {TOOL} is gone")
            return None
        with measuring(self.builder, TOOL, "counters", self.limit_s):
            listed = listing(self.tool)
            plan, lacking = known_counters(self.plan.passes.passes, self.arch, listed)
            if lacking:
                self.builder.note(f"counters that this GPU does not have: {', '.join(lacking)}")
            shutil.rmtree(self.raw, ignore_errors=True)
            self.raw.mkdir(parents=True)
            commands = rocprofv3.counter_commands(
                self.tool,
                self.child(launches),
                plan,
                self.raw,
                selection=selection,
                extra=self._extra(plan),
                traced=True,
            )
            log, worst = "", 0
            for number, command in enumerate(commands, 1):
                said, status = self._run(command, f"pass_{number}")
                if status is None:
                    return None
                log += said
                worst = worst or status
                if not any((self.raw / f"pass_{number}").rglob("*.csv")) and len(commands) > 1:
                    self.builder.note(f"pass {number} of {len(commands)} wrote nothing (status {status})")
            profile = rocprofv3.collected(self.raw, log, worst)
            for note in profile.notes:
                self.builder.note(note)
            return profile
        return None

    def trace(self, launches: int) -> ForeignProfile | None:
        """A trace of kernels and ROCTX ranges without counters."""
        if self.tool is None:
            return None
        with measuring(self.builder, TOOL, "trace", self.limit_s):
            output = self._fresh("trace")
            command = rocprofv3.trace_command(self.tool, self.child(launches), output, calls=False)
            log, status = self._run(command, "trace")
            return None if status is None else rocprofv3.collected(output, log, status)
        return None

    def samples(self, launches: int, way: Sampling, interval: int, symbol: str) -> list[Sample] | None:
        """PC samples of a kernel; None where the builder was told why not, or on stop."""
        if self.tool is None:
            return None
        with measuring(self.builder, TOOL, "PC samples", self.limit_s):
            output = self._fresh("samples")
            command = rocprofv3.sampling_command(self.tool, self.child(launches), output, way, interval)
            log, status = self._run(command, "samples")
            if status is None:
                return None
            error = trouble_in(log)
            if error is not None:
                raise error
            files = sorted(output.rglob("*_results.json"))
            found = [sample for file in files for sample in rocprofv3_json.samples_of(file, symbol)]
            if not found:
                self.builder.note(f"no PC samples: {TOOL} took none of kernel {symbol} (status {status})")
            return found
        return None

    def _fresh(self, name: str) -> Path:
        """An empty folder for what is not kept."""
        place = self.temporary / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def _run(self, command: Sequence[str], name: str) -> tuple[str, int | None]:
        """What a command printed, and its exit status; None once the sweep is stopped."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        log = self.temporary / f"{name}.log"
        log.unlink(missing_ok=True)
        status = run_command(command, self.limit_s, log, self.stop, cwd=self.cwd)
        return (log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""), status

    def _extra(self, plan: PassPlan) -> Path | None:
        """The file that defines accumulations, where the plan has some."""
        counters = [name for one in plan.passes for name in one]
        if not any(name.endswith("_ACCUM") for name in counters):
            return None
        path = self.raw / "counters.yaml"
        path.write_text(rocprofv3.extra_counters(counters, self.version, [self.arch]), encoding="utf-8")
        return path


@cache
def version_of(tool: str) -> str:
    """The version that a rocprofv3 says it has, which its files do not tell; "" where it says none."""
    try:
        answer = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return rocprofv3.parse_version(answer.stdout)


@cache
def listing(tool: str) -> tuple[Listed, ...]:
    """What ``rocprofv3 -L`` says of this machine's GPUs; nothing where it fails: then nothing is left out beforehand."""
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return rocprofv3.parse_listing(answer.stdout)


def known_counters(plan: PassPlan, arch: str, listed: Sequence[Listed]) -> tuple[PassPlan, tuple[str, ...]]:
    """The plan without counters that the GPU does not list, and these; the same plan where it lists none.

    Accumulations are defined by us, and bracketed instances and sums stand for the counter that is listed.
    """
    known = {name for gpu in listed if gpu.arch == arch for name in gpu.counters}
    if not known:
        return plan, ()

    def has(name: str) -> bool:
        base = re.sub(r"(_ACCUM|\[\d+\])$", "", name)
        return bool({name, base, base.removesuffix("_sum")} & known)

    lacking = {name for one in plan.passes for name in one if not has(name)}
    kept = [tuple(name for name in one if name not in lacking) for one in plan.passes]
    passes = tuple(one for one in kept if set(one) - {CYCLES} or len(kept) == 1)
    return dataclasses.replace(plan, passes=passes), tuple(sorted(lacking))


def profile_with_rocprofv3(
    builder: CaseBuilder,
    request: dict[str, Any],
    directory: RunDirectory,
    limit_s: float,
    raw: Sequence[str],
    plan: TargetPlan,
    stop: threading.Event,
) -> None:
    """Run the launcher under rocprofv3 and add what it measures to ``builder``.

    ``request`` is what the launcher was asked, ``raw`` names further counters.  Setting ``stop`` ends it early.
    """
    symbol = (builder.compiled or {})["symbol"]
    job = directory.temporary / f"{builder.case.hash}.rocprofv3.json"

    def child(launches: int) -> list[str]:
        job.write_text(json.dumps({**request, "launches": launches, "name": builder.case.id}), encoding="utf-8")
        return [sys.executable, "-m", "tileprof.launcher", str(job)]

    tool = Rocprofv3(builder, plan, directory, limit_s, stop, child)
    selection = Selection(symbol, WARM_LAUNCHES + 1)
    counted = tool.counters(WARM_LAUNCHES + COUNTED_LAUNCHES, selection)
    if counted is not None and not builder.failed:
        own = own_launches(counted, symbol, builder, counted=True)
        if own:
            builder.metrics += counted_metrics(own[-1], raw, tool.version)
    if tool.tool is None or builder.failed or stop.is_set():
        return
    traced = tool.trace(WARM_LAUNCHES + TRACED_LAUNCHES)
    if traced is not None and not builder.failed:
        _add_trace(builder, own_launches(traced, symbol, builder), tool.version)
    if not builder.failed and not stop.is_set():
        _add_samples(tool, builder, Path(request["bundle"]), symbol)


def own_launches(
    profile: ForeignProfile, symbol: str, builder: CaseBuilder, *, counted: bool = False
) -> list[ForeignLaunch]:
    """Launches of the case's kernel behind the warm ones, in order; with ``counted`` those that have counters.

    Without any the measurement is invalid.

    Where ROCTX ranges were recorded, they say which launches are the case's, and the how-manieth; else their order does.
    """
    named = [launch for launch in profile.launches if symbol in (launch.symbol, launch.kernel)]
    if not named:
        seen = ", ".join(sorted({launch.kernel for launch in profile.launches})) or "none"
        builder.fail("invalid_measurement", f"{TOOL} recorded no launch of kernel {symbol}; kernels it saw: {seen}")
        return []
    if counted:
        named = [launch for launch in named if launch.raw]
        if not named:
            builder.fail("invalid_measurement", f"{TOOL} saw kernel {symbol} and counted nothing of it")
            return []
    named.sort(key=lambda launch: launch.start_ns or 0.0)
    numbers = [_repetition(launch, builder.case.id) for launch in named]
    ranged = [
        launch for launch, number in zip(named, numbers, strict=True) if number is not None and number >= WARM_LAUNCHES
    ]
    if ranged:
        return ranged
    return named[WARM_LAUNCHES:] or named


def _repetition(launch: ForeignLaunch, case: str) -> int | None:
    """The number in the range ``<case> #<number>`` around a launch, or None."""
    for name in launch.ranges:
        head, mark, number = name.rpartition(" #")
        if mark and head == case and number.isdigit():
            return int(number)
    return None


def counted_metrics(launch: ForeignLaunch, raw: Sequence[str], version: str, tool: str = TOOL) -> list[Metric]:
    """Canonical metrics of a launch, doubtful ones flagged, and the ``raw`` counters as the profiler calls them."""
    rows = [
        dataclasses.replace(metric, launch=0, provenance=dataclasses.replace(metric.provenance, version=version))
        for metric in launch.metrics
    ]
    source = Provenance("measured", tool, version, "counters")
    rows += [Metric(f"raw.{name}", launch.raw[name], "", source, launch=0) for name in raw if name in launch.raw]
    return flag_implausible(rows, launch.max_clock_hz)


def _add_trace(builder: CaseBuilder, launches: Sequence[ForeignLaunch], version: str) -> None:
    """The median time of a trace takes the place of the time of the counted launch."""
    times = [launch.duration_ns for launch in launches if launch.duration_ns is not None]
    if not times:
        return
    detail = f"median of {len(times)} launches in a trace, {min(times):.0f} to {max(times):.0f} ns, warm cache"
    record = make("time.profiled_ns", statistics.median(times), Provenance("measured", TOOL, version, detail))
    if record is not None:
        builder.metrics = [row for row in builder.metrics if row.metric != "time.profiled_ns"] + [record]


def _add_samples(tool: Rocprofv3, builder: CaseBuilder, bundle: Path, symbol: str) -> None:
    """PC samples by tile operation, where the GPU can take them."""
    ways = [way for gpu in listing(tool.tool or "") if gpu.arch == tool.arch for way in gpu.sampling]
    if not ways:
        builder.note("no PC samples: this GPU lists no way of taking them")
        return
    way = next((one for one in ways if one.method == "stochastic"), ways[0])  # it knows why wavefronts wait
    time_ns = builder.timing.median_ns if builder.timing is not None and builder.timing.samples_ns else SAMPLED_NS
    launches = min(MOST_SAMPLED, max(LEAST_SAMPLED, math.ceil(SAMPLED_NS / max(time_ns, 1.0))))
    samples = tool.samples(launches, way, interval_for(way, time_ns * launches, tool.arch), symbol)
    if not samples:
        return
    source = Provenance("measured", TOOL, tool.version, f"PC samples ({way.method}) of {launches} launches")
    with measuring(builder, TOOL, "PC samples by operation", tool.limit_s):
        joined = join_samples(samples, bundle, source)
        builder.metrics += joined.metrics
        for note in joined.notes:
            builder.note(note)


def interval_for(way: Sampling, total_ns: float, arch: str) -> int:
    """The interval in the way's unit at which about WANTED_SAMPLES are taken: each compute unit gives one an interval."""
    devices = targets.resolve(f"hip:{arch}").devices
    units, clock = devices[0].units, devices[0].clock_hz
    each_ns = total_ns * units / WANTED_SAMPLES
    wanted = each_ns * clock / 1e9 if way.unit == "cycles" else each_ns / 1e3
    return way.interval(max(1, round(wanted)))
