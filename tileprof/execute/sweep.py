"""Runs the cases of a workload: compile lanes feed a launch lane, and what is finished is stored at once.

While a case is timed, the compile lanes are paused, so that the processors are quiet.  Cases that a profiler is to count wait until
there are several, since they share its process.  The sweep goes on past every
failure of a case; it ends early only when the store cannot be written or the user interrupts it, and then keeps what is
finished.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from tileprof.errors import MeasurementInvalid
from tileprof.execute.builds import Builds
from tileprof.execute.foreign import ForeignCase, is_foreign
from tileprof.execute.gpu_lock import first_device, held
from tileprof.execute.lanes import Lane, Stopped
from tileprof.execute.profiled import LONGEST_WAIT_S, MOST_CASES, NcuPhase, Waiting
from tileprof.execute.profiled_amd import RocprofPhase
from tileprof.execute.profiled_rocprof import profile_with_rocprof
from tileprof.execute.progress import Progress
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.execute.traced import trace_kernel
from tileprof.plan.plan import Plan, TargetPlan
from tileprof.store.codec import ceiling_from_json
from tileprof.store.directory import RunDirectory
from tileprof.store.records import Ceiling, Unavailable
from tileprof.store.writer import RunStore
from tileprof.workload.records import Case, Workload

_POLL_S = 0.2

COMPILER = "tileprof.execute.compile_worker"
LAUNCHER = "tileprof.launcher"
QUIET_STAGES = ("timing", "measuring ceilings")
"""Stages of the launcher during which nothing else may use the processors."""

CEILINGS_LIMIT_S = 120.0
"""Longest measurement of the processor's ceilings: seconds, but a compiler may start cold.  It is no step of a case, whose limit is
the workload's."""

Item = CaseBuilder | None  # None ends a lane
Outcome = CaseBuilder | list[Ceiling] | BaseException


@dataclass(frozen=True, slots=True)
class Executor:
    """How many compile lanes there are, and whether compiling and launching take turns."""

    compilers: int = 1
    overlapping: bool = True


class Sweep:
    """One sweep over ``cases``, each with its place in the workload; ``against`` holds bundles to time beside them, by case id.

    ``unavailable`` holds afterwards what turned out not to be measurable.
    """

    def __init__(
        self,
        workload: Workload,
        cases: Sequence[tuple[int, Case]],
        plan: Plan,
        directory: RunDirectory,
        store: RunStore,
        progress: Progress,
        executor: Executor,
        paths: Paths,
        against: Mapping[str, dict[str, str]] | None = None,
    ) -> None:
        self.workload = workload
        self.plan = plan
        self.directory = directory
        self.store = store
        self.progress = progress
        self.executor = executor
        self.against = against or {}
        builders = [CaseBuilder(case, position, paths, bundle_name(case)) for position, case in cases]
        # cases to be launched go first, so that the launch lane has work early
        self.builders = sorted(builders, key=lambda b: not self.target_plan(b).launches)
        self.stop = threading.Event()
        self.unavailable: list[Unavailable] = []
        self._compile_queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._launch_queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._turn: AbstractContextManager[object] = nullcontext() if executor.overlapping else threading.Lock()
        self.compilers = [self._lane(COMPILER, "compile worker", i) for i in range(executor.compilers)]
        self.launcher = self._lane(LAUNCHER, "launcher", 0)
        self._builds = Builds(self._compile_queue.put)
        # of the launch lane's thread alone
        self._to_come = sum(self.target_plan(builder).launches for builder in self.builders)
        self._waiting: list[Waiting] = []
        self._waiting_since = 0.0

    def _lane(self, module: str, who: str, number: int) -> Lane:
        log = self.directory.temporary / f"{who.replace(' ', '-')}-{number}.log"
        return Lane(module, who, log, self.stop, self.progress.stage)

    def target_plan(self, builder: CaseBuilder) -> TargetPlan:
        """The plan of a case's target."""
        return self.plan.targets[builder.case.target.name]

    def run(self) -> None:
        """Run all cases; results are stored as they come and not kept in memory.

        Raises StoreError when they cannot be stored, and lets KeyboardInterrupt through; no process is left in either case.
        """
        threads: list[threading.Thread] = []
        try:
            waiting = self._settle()
            if waiting:
                threads = self._start(waiting)
                self._collect(len(waiting))
        except BaseException:
            self.stop.set()
            for lane in (*self.compilers, self.launcher):
                lane.kill()
            raise
        finally:
            self.stop.set()
            for _ in threads:
                self._compile_queue.put(None)
                self._launch_queue.put(None)
            for thread in threads:
                thread.join()

    def _settle(self) -> list[CaseBuilder]:
        """Finish what needs no process; returns the rest."""
        waiting = []
        for builder in self.builders:
            reason = self.target_plan(builder).unsupported
            if reason is None:
                waiting.append(builder)
            else:
                builder.fail("unsupported", reason)
                self._store(builder)
        return waiting

    def _start(self, waiting: Sequence[CaseBuilder]) -> list[threading.Thread]:
        for builder in waiting:
            if not is_foreign(builder.case):
                self._compile_queue.put(builder)
            elif self.target_plan(builder).launches:
                self._launch_queue.put(builder)
            else:
                builder.status, builder.reason = "not_run", self.target_plan(builder).reason
                self._outcomes.put(builder)
        launches = [builder for builder in waiting if self.target_plan(builder).launches]
        threads = [
            threading.Thread(target=self._serve, args=(lane, self._compile_queue, self._compile))
            for lane in self.compilers
        ]
        if launches:
            threads.append(threading.Thread(target=self._serve_launches, args=(launches,)))
        for thread in threads:
            thread.start()
        return threads

    def _collect(self, count: int) -> None:
        """Store outcomes until ``count`` cases are done."""
        while count:
            try:
                outcome = self._outcomes.get(timeout=_POLL_S)  # short, so that an interrupt is noticed
            except queue.Empty:
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            if isinstance(outcome, list):
                self.store.add_ceilings(outcome)
                continue
            self._store(outcome)
            count -= 1

    def _store(self, builder: CaseBuilder) -> None:
        result = builder.build()
        self.store.add_case(result, builder.position)
        builder.forget()
        self.progress.finished(result)

    def _serve(self, lane: Lane, items: queue.SimpleQueue[Item], work: Callable[[Lane, CaseBuilder], None]) -> None:
        """Body of a lane's thread: work on items until None comes or the sweep is stopped."""
        try:
            while (builder := items.get()) is not None and not self.stop.is_set():
                work(lane, builder)
        except Stopped:
            pass
        except BaseException as error:
            self._outcomes.put(error)
        finally:
            lane.close()

    def _serve_launches(self, launches: Sequence[CaseBuilder]) -> None:
        """Body of the launch lane's thread: ceilings first, while the compile worker is starting."""
        names = sorted(
            {b.case.target.target for b in launches if b.case.target.kind == "cpu" and self.target_plan(b).timed}
        )
        try:
            if names:
                self._measure_ceilings(names, launches[0])
        except BaseException as error:
            if not isinstance(error, Stopped):
                self._outcomes.put(error)
            self.launcher.close()
            return
        self._serve(self.launcher, self._launch_queue, self._launch)

    def _compile(self, lane: Lane, builder: CaseBuilder) -> None:
        plan = self.target_plan(builder)
        if (made := self._builds.claim(builder)) is None:
            return  # until another lane has compiled it
        request = {
            **builder.case.to_job(),
            "do": "case",
            "bundle_path": str(self.directory.path / builder.bundle),
            "made": made,
            "temporary": str(self.directory.temporary),
            "directory": str(self.workload.directory),
            "seed": self.workload.seed,
            "instrument": plan.launches and "cycles" in plan.counters,
        }
        if not builder.failed:
            with self._turn:
                lane.ask(request, builder, self.workload.timeout_s, lambda message: self._builds.hear(builder, message))
            self._builds.ended(builder)
        if plan.launches:
            builder.forgive_simulation()
            self._launch_queue.put(builder)  # also one that failed: the launch lane knows which are still to come
            return
        if not builder.failed:
            builder.status, builder.reason = "not_run", plan.reason
        self._outcomes.put(builder)

    def _launch(self, lane: Lane, builder: CaseBuilder) -> None:
        """Launch one case, and profile those that wait for it once there are enough or none is to come."""
        self._to_come -= 1
        if builder.failed:
            self._outcomes.put(builder)
        elif is_foreign(builder.case):
            self._launch_foreign(builder)
        else:
            self._launch_ours(lane, builder)
        if self._waiting:
            waited_s = time.monotonic() - self._waiting_since
            if self._to_come == 0 or len(self._waiting) >= MOST_CASES or waited_s > LONGEST_WAIT_S:
                self._profile_waiting()

    def _launch_ours(self, lane: Lane, builder: CaseBuilder) -> None:
        plan, timing = self.target_plan(builder), self.workload.timing
        reference = builder.reference or {}
        request = {
            "do": "case",
            "bundle": str(self.directory.path / builder.bundle),
            "sizes": builder.case.sizes,
            "inputs": reference.get("inputs", {}),
            "reference": reference.get("path"),
            "rtol": reference.get("rtol", 0.0),
            "atol": reference.get("atol", 0.0),
            "seed": self.workload.seed,
            "timing": asdict(timing) if plan.timed else None,
            "count": "perf" in plan.counters,
            "instrumented": builder.instrumented,
            "against": self.against.get(builder.case.id),
        }
        if timing.graph == "on" and (plan.gpu is None or plan.gpu.vendor != "nvidia"):
            builder.note("graphs are for NVIDIA GPUs: launches were timed one by one")
        try:
            with self._turn, self._gpu(plan) as mine:
                if not mine:
                    raise Stopped
                self._ask_quietly(lane, request, builder, self.workload.timeout_s)
        except MeasurementInvalid as error:  # the GPU was never free
            builder.fail("invalid_measurement", str(error))
        if not builder.failed and {"ncu", "nsys", "rocprofv3", "rocprof"} & set(plan.counters):
            if not self._waiting:
                self._waiting_since = time.monotonic()
            self._waiting.append(Waiting(builder, request))
        else:
            self._outcomes.put(builder)

    def _profile_waiting(self) -> None:
        """Count the launches of the waiting cases, and trace them."""
        cases, self._waiting = self._waiting, []
        for target in dict.fromkeys(case.builder.case.target.name for case in cases):
            plan = self.plan.targets[target]
            own = [case for case in cases if case.builder.case.target.name == target]
            try:
                with self._turn, self._gpu(plan) as mine:
                    if not mine:
                        raise Stopped
                    self._profile_target(own, plan)
            except MeasurementInvalid as error:  # the GPU was never free
                for case in own:
                    case.builder.fail("invalid_measurement", str(error))
                    self._outcomes.put(case.builder)

    def _profile_target(self, cases: Sequence[Waiting], plan: TargetPlan) -> None:
        limit_s, raw = self.workload.timeout_s, self.workload.raw_metrics.get("ncu", ())
        if "ncu" in plan.counters:
            for case in cases:
                self.progress.stage(case.builder.case.id, "profiling")
            NcuPhase(self.directory, limit_s, raw, plan.gpu, self.stop).profile(cases)
        if "rocprofv3" in plan.counters and not self.stop.is_set():
            for case in cases:
                self.progress.stage(case.builder.case.id, "profiling")
            counters = self.workload.raw_metrics.get("rocprofv3", ())
            RocprofPhase(self.directory, limit_s, counters, plan, self.stop).profile(cases)
        for case in cases:
            if not case.builder.failed and "rocprof" in plan.counters and not self.stop.is_set():
                self.progress.stage(case.builder.case.id, "profiling")
                raw = self.workload.raw_metrics.get("rocprof", ())
                profile_with_rocprof(case.builder, case.request, self.directory, limit_s, raw, plan, self.stop)
            if not case.builder.failed and "nsys" in plan.counters and not self.stop.is_set():
                self.progress.stage(case.builder.case.id, "tracing")
                trace_kernel(case.builder, case.request, self.directory, limit_s, self.stop)
            if self.stop.is_set():
                raise Stopped
            self._outcomes.put(case.builder)

    def _launch_foreign(self, builder: CaseBuilder) -> None:
        """Run what is not a kernel of ours, with the compile lanes paused meanwhile."""
        plan = self.target_plan(builder)
        if "cycles" in plan.counters:
            builder.note("no cycles: what is not compiled here cannot be built with clock reads")
        case = ForeignCase(builder, plan, self.workload, self.directory, self.stop)
        self.progress.stage(builder.case.id, "running")
        try:
            with self._turn, self._gpu(plan) as mine:
                if not mine:
                    raise Stopped
                for compiler in self.compilers:
                    compiler.pause()
                try:
                    case.run()
                finally:
                    for compiler in self.compilers:
                        compiler.resume()
                if self.stop.is_set():
                    raise Stopped
                if not builder.failed and "ncu" in plan.counters:
                    self.progress.stage(builder.case.id, "profiling")
                    case.profile_with_ncu()
                if not builder.failed and "rocprofv3" in plan.counters:
                    self.progress.stage(builder.case.id, "profiling")
                    case.profile_with_rocprofv3()
                if "rocprof" in plan.counters:
                    builder.note("no counters: rocprof v1 measures kernels of ours only; rocprofv3 measures any")
                if not builder.failed and "nsys" in plan.counters:
                    self.progress.stage(builder.case.id, "tracing")
                    case.trace_with_nsys()
        except MeasurementInvalid as error:
            builder.fail("invalid_measurement", str(error))
        self._outcomes.put(builder)

    def _gpu(self, plan: TargetPlan) -> AbstractContextManager[bool]:
        """The lock of the GPU that launches the case; a processor has none."""
        if plan.gpu is None:
            return nullcontext(True)
        return held(first_device(plan.gpu.vendor), self.stop, self.progress.say)

    def _ask_quietly(self, lane: Lane, request: dict[str, Any], builder: CaseBuilder, limit_s: float) -> list[Ceiling]:
        """Ask the launcher, with the compile lanes paused while it measures; returns ceilings that it sent."""
        found: list[Ceiling] = []

        def heard(message: Mapping[str, Any]) -> None:
            if message["type"] == "stage" and message["stage"] in QUIET_STAGES:
                for compiler in self.compilers:
                    compiler.pause()
            elif message["type"] == "ceilings":
                found.extend(ceiling_from_json(record) for record in message["records"])

        try:
            lane.ask(request, builder, limit_s, heard)
        finally:
            for compiler in self.compilers:
                compiler.resume()
        return found

    def _measure_ceilings(self, targets: list[str], example: CaseBuilder) -> None:
        """Have the launcher measure this machine; a failure costs the ceilings and no case."""
        builder = CaseBuilder(example.case, -1, Paths(), "")
        found = self._ask_quietly(self.launcher, {"do": "ceilings", "targets": targets}, builder, CEILINGS_LIMIT_S)
        if builder.failed:
            self.unavailable.append(Unavailable("ceilings of the processor", ", ".join(targets), builder.reason))
        self._outcomes.put(found)


def bundle_name(case: Case) -> str:
    """Where the bundle of a case goes, relative to the run directory; cases that differ in sizes alone have one."""
    return f"kernels/{case.kernel.name}-{case.target.name}-{case.build if case.sizes else case.hash}"
