"""The plan of a run: for each target, whether it is launched and what measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import tilelang_min as tilelang
from tileprof.errors import ProfilerUnavailable, UsageError
from tileprof.metrics.ncu_chips import problems
from tileprof.plan.amd_counters import CounterPlan, counter_plan
from tileprof.plan.machine import Gpu, Machine
from tileprof.store.records import Unavailable
from tileprof.workload.problems import unknown
from tileprof.workload.records import PROFILERS, TargetEntry, Workload

_KINDS = {"ncu": "cuda", "nsys": "cuda", "rocprofv3": "hip", "rocprof": "hip", "perf": "cpu"}
_AUTOMATIC = {"cuda": "ncu", "hip": "rocprofv3", "cpu": "perf"}
"""The counter tool that ``auto`` stands for."""
_VENDORS = {"cuda": "NVIDIA GPU", "hip": "AMD GPU", "cpu": "processor"}


class ToolState(Protocol):
    """Whether a tool can be used here, and if not, why and what to do."""

    @property
    def usable(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def remedy(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """What happens to the cases of one target.

    Where ``launches`` is false, cases are compiled and simulated and end as ``not_run`` because of ``reason``.  ``timed`` says
    whether launches are timed, ``counters`` names the counter tools.  ``unsupported`` is a reason for which all cases of the
    target end as ``unsupported``.  ``gpu`` is the device that launches (None on a processor).  ``passes``
    are those of rocprofv3 on an AMD GPU, also where there is none here.
    """

    target: TargetEntry
    launches: bool
    timed: bool = False
    counters: tuple[str, ...] = ()
    reason: str = ""
    unsupported: str | None = None
    gpu: Gpu | None = None
    passes: CounterPlan | None = None


@dataclass(frozen=True)
class Plan:
    """Plans by target name, and what cannot be measured."""

    targets: dict[str, TargetPlan]
    unavailable: tuple[Unavailable, ...]


def make_plan(
    workload: Workload,
    names: tuple[str, ...],
    machine: Machine,
    profilers: tuple[str, ...] = (),
    tools: Mapping[str, Callable[[], ToolState]] | None = None,
) -> Plan:
    """The plan for the targets ``names``; ``profilers`` are those of the command line and replace the workload's.

    ``tools`` answers for each counter tool whether it can be used here; one that is missing from it cannot.

    Raises UsageError for a profiler that fits no target, ProfilerUnavailable for one that was asked for by name
    and is missing or denied on a target that is here.
    """
    _check_asked(workload, names, profilers)
    _check_counters(workload, names, machine)
    asker = _Tools(tools or {})
    plans: dict[str, TargetPlan] = {}
    unavailable: list[Unavailable] = []
    for name in names:
        planner = _TargetPlanner(workload.targets[name], machine, profilers, asker)
        plans[name] = replace(planner.plan(), passes=_amd_passes(workload, name, profilers))
        unavailable += planner.unavailable
    return Plan(plans, tuple(unavailable))


def _amd_passes(workload: Workload, name: str, profilers: tuple[str, ...]) -> CounterPlan | None:
    """Passes for the metrics that the workload's kernels ask for on an AMD target, unless counters are not wanted there."""
    target = workload.targets[name]
    asked = set(profilers or target.profilers)
    if target.kind != "hip" or target.unsupported is not None or not asked & {"auto", "rocprofv3", "rocprof"}:
        return None
    metrics = dict.fromkeys(metric for kernel in workload.kernels for metric in kernel.metrics)
    raw = [counter for tool in ("rocprofv3", "rocprof") for counter in workload.raw_metrics.get(tool, ())]
    arch = target.target.partition(":")[2]
    known = [metric for metric in metrics if not counter_plan(arch, [metric]).without]
    return counter_plan(arch, known, raw)


def _check_asked(workload: Workload, names: tuple[str, ...], profilers: tuple[str, ...]) -> None:
    """Raise UsageError for profilers of the command line that cannot be meant."""
    for profiler in profilers:
        if profiler not in PROFILERS:
            raise UsageError(unknown("profiler", profiler, PROFILERS))
        kind = _KINDS.get(profiler)
        if kind is not None and not any(workload.targets[name].kind == kind for name in names):
            shown = ", ".join(f"{name} ({workload.targets[name].target})" for name in names)
            raise UsageError(f"--profiler {profiler} measures the {_VENDORS[kind]}, and the targets are {shown}")
    if "none" in profilers and len(profilers) > 1:
        raise UsageError("--profiler none excludes the others")


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The state of a tool that nobody answers for."""

    usable: bool = False
    why: str = "not used by this version"
    remedy: str = ""


def _check_counters(workload: Workload, names: tuple[str, ...], machine: Machine) -> None:
    """Raise UsageError for raw counters of Nsight Compute that a GPU at hand does not have: ncu would only show ``n/a``."""
    wrong: list[str] = []
    for name in names:
        target = workload.targets[name]
        gpu = machine.gpu_for(target.kind, target.target.partition(":")[2])
        if target.kind == "cuda" and gpu is not None:
            wrong += problems(workload.raw_metrics.get("ncu", ()), gpu.binary_arch)
    if wrong:
        raise UsageError("; ".join(dict.fromkeys(wrong)), remedy="correct metrics: raw: ncu: in the workload file")


def _or_without(remedy: str) -> str:
    """What to do about a profiler that cannot measure, and how to go on without it."""
    without = "go on without it: --profiler auto takes what there is, and says what is missing"
    return f"{remedy}; or {without}" if remedy else without


class _Tools:
    """Asks each tool once whether it can be used; one that nobody answers for cannot."""

    def __init__(self, tools: Mapping[str, Callable[[], ToolState]]) -> None:
        self._tools = tools
        self._answers: dict[str, ToolState] = {}

    def __getitem__(self, name: str) -> ToolState:
        if name not in self._answers:
            self._answers[name] = self._tools[name]() if name in self._tools else _Unknown()
        return self._answers[name]


class _TargetPlanner:
    """Plans one target and collects what it cannot have."""

    def __init__(self, target: TargetEntry, machine: Machine, profilers: tuple[str, ...], tools: _Tools) -> None:
        self.target = target
        self.machine = machine
        self.from_command_line = bool(profilers)
        self.profilers = profilers or target.profilers
        self.tools = tools
        self.unavailable: list[Unavailable] = []

    def plan(self) -> TargetPlan:
        target = self.target
        if target.unsupported is not None:
            return TargetPlan(target, launches=False, unsupported=target.unsupported)
        reason, remedy = self.absence()
        named = [
            p for p in self.profilers if p not in ("auto", "none", "timer") and _KINDS.get(p) in (None, target.kind)
        ]
        if reason:
            if self.from_command_line and named:
                raise ProfilerUnavailable(f"{named[0]} cannot measure {target.name}: {reason}", remedy=remedy)
            self.unavailable.append(
                Unavailable("launches: time, numerics of whole outputs, counters", target.name, reason, remedy)
            )
            return TargetPlan(target, launches=False, reason=reason)
        for profiler in named:
            state = self.tools[profiler]
            if not state.usable:
                raise ProfilerUnavailable(f"{profiler}: {state.why}", remedy=_or_without(state.remedy))
        counters = tuple(dict.fromkeys([*named, *self.automatic()]))
        timed = "none" not in self.profilers
        gpu = self.machine.gpu_for(target.kind, target.target.partition(":")[2])
        return TargetPlan(target, launches=True, timed=timed, counters=counters, gpu=gpu)

    def absence(self) -> tuple[str, str]:
        """Why the target cannot be launched here, and the remedy; empty where it can."""
        target = self.target
        arch = target.target.partition(":")[2]
        if target.kind == "cpu":
            return ("", "")
        vendor = _VENDORS[target.kind]
        if target.kind == "hip":
            return self.amd_absence(vendor, arch)
        if self.machine.gpu_for(target.kind, arch) is not None:
            if "cuda-bindings" not in self.machine.packages:
                return "the Python package cuda-bindings is missing", "python -m pip install 'tileprof[cuda]'"
            return ("", "")
        others = ", ".join(
            f"{gpu.name} (compute capability {gpu.arch})" for gpu in self.machine.gpus if gpu.vendor == "nvidia"
        )
        if others:
            return f"{arch} binaries do not run on {others}", "add a target of that GPU's own architecture"
        return f"no {vendor} on this machine", f"run on a machine with an {arch} GPU and its driver"

    def amd_absence(self, vendor: str, arch: str) -> tuple[str, str]:
        """The same for an AMD GPU."""
        if self.machine.gpu_for("hip", arch) is not None:
            if tilelang.hip_library() is None:
                return "the HIP runtime, libamdhip64, is missing", "install ROCm, or name its folder in ROCM_PATH"
            return ("", "")
        others = ", ".join(f"{gpu.name} ({gpu.arch})" for gpu in self.machine.gpus if gpu.vendor == "amd")
        if others:
            return f"{arch} binaries do not run on {others}", "add a target of that GPU's own architecture"
        return f"no {vendor} on this machine", f"run the bundles on a machine with a {arch} GPU and its driver"

    def automatic(self) -> list[str]:
        """Counter tools that `auto` finds for a target that is here."""
        if "auto" not in self.profilers:
            return []
        tool = _AUTOMATIC.get(self.target.kind)
        if tool is None:
            return []
        state = self.tools[tool]
        if state.usable:
            return [tool]
        self.unavailable.append(Unavailable("counters", self.target.name, f"{tool}: {state.why}", state.remedy))
        return []
