"""A case once more under rocprofv3: counters in as many passes as they need, a trace, and PC samples of its tile operations.

The program runs once for each.  What goes wrong with one costs what that one would have told.  No AMD GPU was at hand: tested with
stand-ins of the tool and of the runtime, against the tool's documentation.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tilelang_min import targets
from tileprof.analyse.join_samples import join_samples
from tileprof.collect.profile import ForeignLaunch, ForeignProfile
from tileprof.collect.rocprofv3 import TOOL, Sampling, Selection
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable, TileprofError
from tileprof.execute.measuring import measuring
from tileprof.execute.profiled import Waiting
from tileprof.execute.results import CaseBuilder
from tileprof.execute.rocprofv3_run import Rocprofv3, listing
from tileprof.metrics import make
from tileprof.metrics.plausible import flag_implausible
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


class RocprofPhase:
    """Profiles cases of one target; ``raw`` names further counters.  Setting ``stop`` ends it early.

    ``limit_s`` is the longest that rocprofv3 may take for one case and pass.
    """

    def __init__(
        self, directory: RunDirectory, limit_s: float, raw: Sequence[str], plan: TargetPlan, stop: threading.Event
    ) -> None:
        self.directory = directory
        self.limit_s = limit_s
        self.raw = tuple(raw)
        self.plan = plan
        self.stop = stop

    def profile(self, cases: Sequence[Waiting]) -> None:
        """Add to each case's builder its measured metrics, or why there are none.

        Several cases share the processes of counters and trace, whose start costs seconds, and are told apart by their ROCTX
        ranges.  One for which that does not work, whatever the reason, is measured alone.
        """
        together: set[int] = set()
        if len(cases) > 1:
            began = time.monotonic()
            try:
                together = self._together(cases)
            except ProfilerUnavailable as error:  # for all the same
                for case in cases:
                    case.builder.note(f"no counters: {error}")
                return
            except (TileprofError, OSError):  # whoever is to blame: each is tried alone
                together = set()
            for case in cases:
                case.builder.spent((time.monotonic() - began) / len(cases))
        for number, case in enumerate(cases):
            if not self.stop.is_set():
                self._alone(case, measured=number in together)

    def _together(self, cases: Sequence[Waiting]) -> set[int]:
        """Counters and trace of several cases; the numbers of those that have both."""
        tool = self._tool(cases)
        pattern = "|".join(sorted({re.escape(case.symbol) for case in cases}))
        counted = tool.counters(WARM_LAUNCHES + COUNTED_LAUNCHES, Selection(pattern))
        traced = tool.trace(WARM_LAUNCHES + TRACED_LAUNCHES) if counted is not None else None
        if counted is None or traced is None:
            return set()
        done = set()
        for number, case in enumerate(cases):
            counts = in_ranges(counted, case.symbol, case.builder.case.id, counted=True)
            times = in_ranges(traced, case.symbol, case.builder.case.id)
            if counts and times:
                done.add(number)
                case.builder.metrics += counted_metrics(counts[-1], self.raw, tool.version)
                _add_trace(case.builder, times, tool.version)
                for note in tool.notes:
                    case.builder.note(note)
        return done

    def _alone(self, case: Waiting, *, measured: bool) -> None:
        """One case: counters and trace where they are not ``measured`` yet, and PC samples."""
        builder, symbol = case.builder, case.symbol
        try:
            tool = self._tool([case])
        except ProfilerUnavailable as error:
            builder.note(f"no counters: {error.message}")
            return
        if not measured:
            with self._measuring(builder, tool, "counters"):
                counted = tool.counters(WARM_LAUNCHES + COUNTED_LAUNCHES, Selection(symbol, WARM_LAUNCHES + 1))
                if counted is not None:
                    own = own_launches(counted, symbol, builder.case.id, counted=True)
                    builder.metrics += counted_metrics(own[-1], self.raw, tool.version)
        if not measured and not builder.failed and not self.stop.is_set():
            with self._measuring(builder, tool, "trace"):
                traced = tool.trace(WARM_LAUNCHES + TRACED_LAUNCHES)
                if traced is not None:
                    _add_trace(builder, own_launches(traced, symbol, builder.case.id), tool.version)
        if not builder.failed and not self.stop.is_set():
            with self._measuring(builder, tool, "PC samples"):
                _add_samples(tool, builder, Path(case.request["bundle"]), symbol)

    @contextmanager
    def _measuring(self, builder: CaseBuilder, tool: Rocprofv3, what: str) -> Iterator[None]:
        """Failures inside the block go to the builder, and so does what the tool has to say."""
        with measuring(builder, TOOL, what, self.limit_s):
            yield
        for note in tool.notes:
            builder.note(note)

    def _tool(self, cases: Sequence[Waiting]) -> Rocprofv3:
        """The tool around a launcher of these cases, one after the other."""
        name = cases[0].builder.case.hash
        job, journal = (self.directory.temporary / f"{name}.rocprofv3.{ending}" for ending in ("json", "journal"))

        def child(launches: int) -> list[str]:
            jobs = [{**case.request, "launches": launches, "name": case.builder.case.id} for case in cases]
            text = json.dumps(jobs[0] if len(jobs) == 1 else {"sequence": jobs, "journal": str(journal)})
            job.write_text(text, encoding="utf-8")
            return [sys.executable, "-m", "tileprof.launcher", str(job)]

        return Rocprofv3(name, self.plan, self.directory, self.limit_s, self.stop, child, journal=journal)


def own_launches(profile: ForeignProfile, symbol: str, case: str, *, counted: bool = False) -> list[ForeignLaunch]:
    """Launches of the case's kernel behind the warm ones, in order; with ``counted`` those that have counters.

    Where ROCTX ranges were recorded, they say which launches are the case's, and the how-manieth; else their order does.
    Raises MeasurementInvalid where there is none.
    """
    named = _launches_of(profile, symbol, counted=counted)
    if not named:
        seen = ", ".join(sorted({launch.kernel for launch in profile.launches})) or "none"
        known = bool(_launches_of(profile, symbol, counted=False))
        what = f"saw kernel {symbol} and counted nothing of it" if known else f"recorded no launch of kernel {symbol}"
        raise MeasurementInvalid(f"{TOOL} {what}; kernels it saw: {seen}")
    return in_ranges(profile, symbol, case, counted=counted) or named[WARM_LAUNCHES:] or named


def in_ranges(profile: ForeignProfile, symbol: str, case: str, *, counted: bool = False) -> list[ForeignLaunch]:
    """Those of the launches that lie in a range of the case, behind its warm ones."""
    found = []
    for launch in _launches_of(profile, symbol, counted=counted):
        number = _repetition(launch, case)
        if number is not None and number >= WARM_LAUNCHES:
            found.append(launch)
    return found


def _launches_of(profile: ForeignProfile, symbol: str, *, counted: bool) -> list[ForeignLaunch]:
    """Launches of a kernel in order of time."""
    named = [launch for launch in profile.launches if symbol in (launch.symbol, launch.kernel)]
    return sorted((one for one in named if one.raw or not counted), key=lambda one: one.start_ns or 0.0)


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
    ways = [way for gpu in listing(tool.tool) if gpu.arch == tool.arch for way in gpu.sampling]
    if not ways:
        tool.notes.append("no PC samples: this GPU lists no way of taking them")
        return
    way = next((one for one in ways if one.method == "stochastic"), ways[0])  # it knows why wavefronts wait
    time_ns = builder.timing.median_ns if builder.timing is not None and builder.timing.samples_ns else SAMPLED_NS
    launches = min(MOST_SAMPLED, max(LEAST_SAMPLED, math.ceil(SAMPLED_NS / max(time_ns, 1.0))))
    samples = tool.samples(launches, way, interval_for(way, time_ns * launches, tool.arch), symbol)
    if samples:
        source = Provenance("measured", TOOL, tool.version, f"PC samples ({way.method}) of {launches} launches")
        joined = join_samples(samples, bundle, source)
        builder.metrics += joined.metrics
        tool.notes += joined.notes


def interval_for(way: Sampling, total_ns: float, arch: str) -> int:
    """The interval in the way's unit at which about WANTED_SAMPLES are taken: each compute unit gives one an interval."""
    devices = targets.resolve(f"hip:{arch}").devices
    units, clock = devices[0].units, devices[0].clock_hz
    each_ns = total_ns * units / WANTED_SAMPLES
    wanted = each_ns * clock / 1e9 if way.unit == "cycles" else each_ns / 1e3
    return way.interval(max(1, round(wanted)))
