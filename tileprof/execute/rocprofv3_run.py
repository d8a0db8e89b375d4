"""Runs of a program under rocprofv3: counters in as many passes as they need, a trace, PC samples.

What they mean for a case is told in ``profiled_amd.py``.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tileprof.collect import rocprofv3, rocprofv3_json
from tileprof.collect.pc_samples import Sample
from tileprof.collect.profile import ForeignProfile
from tileprof.collect.rocprofv3 import TOOL, Listed, Sampling, Selection
from tileprof.collect.rocprofv3_log import trouble_in
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable, TileprofError
from tileprof.execute.child import run_command
from tileprof.launcher.jobs import SEQUENCE_FAILED
from tileprof.metrics.amd_blocks import CYCLES
from tileprof.plan.passes import PassPlan
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory

_ASK_SECONDS = 60.0


class Rocprofv3:
    """Runs a program under rocprofv3; ``child`` makes its command line for a number of launches.

    ``name`` is that of its files, ``notes`` what is to be said of the measurement.  ``limit_s`` is for one run, or, where the
    program writes its progress to the file ``journal``, for the time after each line of it.  Methods raise what
    :func:`tileprof.collect.rocprofv3.collected` and :func:`tileprof.execute.child.run_command` raise, and give None once ``stop``
    is set.
    """

    def __init__(
        self,
        name: str,
        plan: TargetPlan,
        directory: RunDirectory,
        limit_s: float,
        stop: threading.Event,
        child: Callable[[int], Sequence[str]],
        cwd: Path | None = None,
        journal: Path | None = None,
    ) -> None:
        found = rocprofv3.find()
        if found is None:
            raise ProfilerUnavailable(f"{TOOL} is gone")
        self.tool = found
        self.plan = plan
        self.arch = plan.target.target.partition(":")[2]
        self.limit_s = limit_s
        self.stop = stop
        self.child = child
        self.cwd = cwd
        self.journal = journal
        self.raw = directory.raw / f"{name}.rocprofv3"
        self.temporary = directory.temporary / f"{name}.rocprofv3"
        self.version = version_of(found)
        self.notes: list[str] = []

    def counters(self, launches: int, selection: Selection | None) -> ForeignProfile | None:
        """The planned counters of the selected launches, all passes joined."""
        if self.plan.passes is None:
            raise ProfilerUnavailable(f"{TOOL} has no passes to make")
        plan, lacking = known_counters(self.plan.passes.passes, self.arch, listing(self.tool))
        if lacking:
            self.notes.append(f"counters that this GPU does not have: {', '.join(lacking)}")
        if not any(set(one) - {CYCLES} for one in plan.passes) and lacking:
            raise TileprofError(f"{TOOL} lists none of the planned counters for this GPU", remedy=f"see {TOOL} -L")
        shutil.rmtree(self.raw, ignore_errors=True)
        self.raw.mkdir(parents=True)
        child, extra = self.child(launches), self._extra(plan)
        commands = rocprofv3.counter_commands(
            self.tool, child, plan, self.raw, selection=selection, extra=extra, traced=True
        )
        log, worst = "", 0
        for number, command in enumerate(commands, 1):
            said, status = self._run(command, f"pass_{number}")
            if status is None:
                return None
            log += said
            worst = worst or status
            if not any((self.raw / f"pass_{number}").rglob("*.csv")) and len(commands) > 1:
                self.notes.append(f"pass {number} of {len(commands)} wrote nothing (status {status})")
        profile = rocprofv3.collected(self.raw, log, worst)
        self.notes += profile.notes
        return profile

    def trace(self, launches: int) -> ForeignProfile | None:
        """A trace of kernels and ROCTX ranges without counters."""
        output = self._fresh("trace")
        command = rocprofv3.trace_command(self.tool, self.child(launches), output, calls=False)
        log, status = self._run(command, "trace")
        return None if status is None else rocprofv3.collected(output, log, status)

    def samples(self, launches: int, way: Sampling, interval: int, symbol: str) -> list[Sample] | None:
        """PC samples of a kernel; none are a note.  Their files, which name the host, are deleted."""
        output = self._fresh("samples")
        command = rocprofv3.sampling_command(self.tool, self.child(launches), output, way, interval)
        try:
            log, status = self._run(command, "samples")
            if status is None:
                return None
            error = trouble_in(log)
            if error is not None:
                raise error
            files = sorted(output.rglob("*_results.json"))
            found = [sample for file in files for sample in rocprofv3_json.samples_of(file, symbol)]
        finally:
            shutil.rmtree(output, ignore_errors=True)
        if not found:
            self.notes.append(f"no PC samples: {TOOL} took none of kernel {symbol} (status {status})")
        return found

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
        if self.journal is not None:
            self.journal.unlink(missing_ok=True)
        status = run_command(command, self.limit_s, log, self.stop, cwd=self.cwd, journal=self.journal)
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if SEQUENCE_FAILED in said:  # passes with other launches than the rest cannot be joined
            raise MeasurementInvalid(f"{TOOL}: a case that shares the process failed")
        return said, status

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
