"""Runs the cases that are not our kernels: a Python callable that launches GPU kernels, or a command.

Each runs in a process of its own, a callable in the interpreter that the workload names.  Under a profiler the callable says itself
when to record; of a command everything is recorded.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tilelang_min import targets
from tileprof.analyse.foreign_work import work_of
from tileprof.collect import ncu, ncu_foreign, rocprofv3
from tileprof.collect.profile import ForeignProfile
from tileprof.execute.child import ChildTimeout, run_command, tail_of, timed_command
from tileprof.execute.measuring import measuring, run_ncu
from tileprof.execute.results import CaseBuilder
from tileprof.execute.rocprofv3_run import Rocprofv3
from tileprof.execute.traced import trace
from tileprof.launcher import foreign as runner
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory
from tileprof.workload.records import Case, Workload

WARM_LAUNCHES = 2
MOST_KERNELS = 200
"""Kernel launches of one case that are profiled; what is meant as one kernel and launches thousands is cut there."""


def is_foreign(case: Case) -> bool:
    """Whether the case is a callable or a command."""
    return case.kernel.callable is not None or case.kernel.command is not None


def recorded(profile: ForeignProfile, builder: CaseBuilder) -> ForeignProfile:
    """The launches that a callable said are to be recorded, all of a command; at most MOST_KERNELS."""
    told = [launch for launch in profile.launches if runner.RECORDED in launch.ranges]
    kept = told or list(profile.launches)
    if len(kept) > MOST_KERNELS:
        builder.note(f"it launches more than {MOST_KERNELS} kernels: counters are of the first {MOST_KERNELS}")
    return replace(profile, launches=tuple(kept[:MOST_KERNELS]))


class ForeignCase:
    """One case on its way: its processes, their logs, and what they answered."""

    def __init__(
        self, builder: CaseBuilder, plan: TargetPlan, workload: Workload, directory: RunDirectory, stop: threading.Event
    ) -> None:
        self.builder = builder
        self.case = builder.case
        self.plan = plan
        self.workload = workload
        self.directory = directory
        self.stop = stop

    def run(self) -> None:
        """Run and time the case; what happens is noted in the builder."""
        builder = self.builder
        builder.note(
            "not a kernel of ours: there are no static and no simulated figures, and its results were not checked"
        )
        builder.begin()
        try:
            if self.case.kernel.command is not None:
                self._time_command()
            else:
                self._time_callable()
        except ChildTimeout:
            builder.fail("timeout", f"{builder.stage} did not end within {self.workload.timeout_s:g} s")
        except OSError as error:
            builder.fail("unsupported", f"{error.filename or 'the command'} cannot be run: {error.strerror}")
        finally:
            builder.end()

    def profile_with_ncu(self) -> None:
        """The case once more under Nsight Compute; its figures, or why there are none, go to the builder."""
        builder, limit_s = self.builder, self.workload.timeout_s
        with measuring(builder, ncu.TOOL, "counters", limit_s):
            found = run_ncu(
                self.case.hash,
                self._profiled_command(),
                self.directory,
                limit_s,
                self.plan.gpu,
                self.stop,
                self.workload.directory,
                launch_count=MOST_KERNELS,
                raw=self.workload.raw_metrics.get(ncu.TOOL, ()),
                when_told=self.case.kernel.command is None,
            )
            if found is None:
                return
            report, log = found
            if log.profiled >= MOST_KERNELS:
                builder.note(f"it launches more than {MOST_KERNELS} kernels: counters are of the first {MOST_KERNELS}")
            builder.take_foreign(work_of(ncu_foreign.read(report), self.case.kernel.name))

    def profile_with_rocprofv3(self) -> None:
        """The same under rocprofv3, whose passes run the program once each."""
        builder, limit_s = self.builder, self.workload.timeout_s
        child, cwd = self._profiled_command(), self.workload.directory
        with measuring(builder, rocprofv3.TOOL, "counters", limit_s):
            tool = Rocprofv3(self.case.hash, self.plan, self.directory, limit_s, self.stop, lambda _: child, cwd)
            profile = tool.counters(1, None)
            if profile is not None:
                builder.take_foreign(work_of(recorded(profile, builder), self.case.kernel.name))
            for note in tool.notes:
                builder.note(note)

    def trace_with_nsys(self) -> None:
        """The case once more under Nsight Systems: times of its kernels on the device's timeline."""
        child, limit_s, cwd = self._profiled_command(), self.workload.timeout_s, self.workload.directory
        profile = trace(self.builder, child, self.directory, limit_s, self.stop, cwd)
        if profile is not None and self.builder.foreign is None:
            self.builder.take_foreign(work_of(profile, self.case.kernel.name))

    def _profiled_command(self) -> list[str]:
        """What a profiler runs: the command, or the callable with a few launches."""
        if self.case.kernel.command is not None:
            return list(self.case.command)
        return self._callable_command(self._job(timing=None, launches=WARM_LAUNCHES + 1))

    # -- a callable ------------------------------------------------------------------------------------------------

    def _job(self, timing: dict[str, Any] | None, launches: int) -> Path:
        """The file that tells the runner what to do."""
        reference = self.case.kernel.callable
        if reference is None:
            raise ValueError("the case is no callable")
        path = self.directory.temporary / f"{self.case.hash}.foreign.json"
        job = {
            "file": reference.file,
            "module": reference.module,
            "function": reference.function,
            "directory": str(self.workload.directory),
            "values": self.case.values,
            "kind": self.case.target.kind,
            "cache_bytes": max((device.cache_bytes or 0 for device in self._devices()), default=0),
            "timing": timing,
            "launches": launches,
            "answer": str(path.with_suffix(".answer")),
        }
        path.with_suffix(".answer").unlink(missing_ok=True)
        path.write_text(json.dumps(job), encoding="utf-8")
        return path

    def _devices(self) -> tuple[Any, ...]:
        """Devices of the case's architecture, whose caches are to be flushed."""
        target = self.case.target
        return targets.resolve(target.target).devices if target.unsupported is None and target.kind != "cpu" else ()

    def _callable_command(self, job: Path) -> list[str]:
        """The interpreter with the runner.  OSError where there is no such interpreter."""
        named = self.case.kernel.python
        python = sys.executable
        if named is not None:
            beside = self.workload.directory / Path(named).expanduser()
            found = shutil.which(str(beside)) or shutil.which(named)
            if found is None:
                raise FileNotFoundError(2, "there is no such interpreter", named)
            python = found
        return [python, str(Path(runner.__file__).resolve()), str(job)]

    def _time_callable(self) -> None:
        builder = self.builder
        builder.stage = "running the callable"
        timing = asdict(self.workload.timing) if self.plan.timed else None
        job = self._job(timing, 0)
        log = self._log("foreign")
        status = run_command(
            self._callable_command(job), self.workload.timeout_s, log, self.stop, cwd=self.workload.directory
        )
        if status is None:
            return
        try:
            answer = json.loads(job.with_suffix(".answer").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            builder.fail("crashed", f"the interpreter ended with status {status} and no answer")
            builder.note(f"last output:\n{tail_of(log)}")
            return
        if "error" in answer:
            builder.fail("crashed", f"while {answer['stage']}: {answer['error']}")
            return
        shown = ", ".join(f"{name} {version}" for name, version in answer["versions"].items())
        builder.note(f"ran with {shown}")
        if "samples_ns" in answer:
            builder.take({"type": "timed", **answer})
            if len(answer["samples_ns"]) < answer["wanted"]:
                taken = len(answer["samples_ns"])
                builder.note(f"{taken} of {answer['wanted']} samples were taken in the time that timing may take")

    # -- a command -------------------------------------------------------------------------------------------------

    def _time_command(self) -> None:
        """Wall-clock times of the whole command: its start and everything that it does."""
        builder, policy = self.builder, self.workload.timing
        builder.stage = "running the command"
        command, log = self.case.command, self._log("foreign")
        samples: list[float] = []
        end = time.monotonic() + policy.budget_s
        wanted = policy.rounds * policy.samples if self.plan.timed else 0
        for number in range(1 + wanted):
            ended = timed_command(command, self.workload.timeout_s, log, self.stop, cwd=self.workload.directory)
            if ended is None:
                return
            if ended.status:
                how = f"status {ended.status}" if ended.status > 0 else f"signal {-ended.status}"
                builder.fail("crashed", f"the command ended with {how}: {' '.join(command)}")
                builder.note(f"last output:\n{tail_of(log)}")
                return
            if number:
                samples.append(float(ended.wall_ns))
            if len(samples) >= runner.LEAST_SAMPLES and time.monotonic() > end:
                break
        if wanted:
            method = "wall clock around the whole command, its start included"
            builder.take({"type": "timed", "samples_ns": samples, "method": method, "warmup": 1, "flushed": False})
            if len(samples) < wanted:
                builder.note(f"{len(samples)} of {wanted} samples were taken in the time that timing may take")

    def _log(self, kind: str) -> Path:
        return self.directory.temporary / f"{self.case.hash}.{kind}.log"
