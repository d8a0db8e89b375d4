"""``tileprof doctor``: what this machine can do, what is missing, and the exact remedy."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tilelang_min as tilelang
from tilelang_min import targets
from tileprof.collect import nsys, perf
from tileprof.collect.ncu_probe import CounterRead
from tileprof.collect.tool import Availability
from tileprof.execute.preflight import read_amd_counter, read_counter
from tileprof.plan.machine import Gpu, Machine, installed, probe

OK, MISSING, LIMITED = "ok", "missing", "limited"
_STYLES = {OK: "green", MISSING: "red", LIMITED: "yellow"}
_INSTALL = "python -m pip install"
_BUSY_SECONDS = 10.0  # how long to wait for a run that measures
_AMD_PROFILERS = re.compile(r"(rocprofv?[23]?|rocprof-compute|rocprof-sys-\w+|omniperf|omnitrace)(\.py)?")
_PINNED = {"apache-tvm": "0.27.0.post1"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    ``state`` is ok, missing or limited; ``required`` says that tileprof is broken without it; ``remedy`` is what to type or do.
    """

    area: str
    name: str
    state: str
    detail: str
    remedy: str = ""
    required: bool = False


def examine(machine: Machine) -> list[Finding]:
    """Everything that is looked for, in the order in which it is shown."""
    return [*_host(machine), *_compilers(), *_nvidia(machine), *_amd(machine), *_counters(), *_extras()]


def _host(machine: Machine) -> Iterator[Finding]:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 12)
    remedy = "" if supported else "use Python 3.11 or 3.12: others are not tested"
    yield Finding("host", "Python", OK if supported else LIMITED, machine.python, remedy)
    yield Finding("host", "processor", OK, f"{machine.cpu}, {machine.cores} cores, {machine.cpu_level}")
    if machine.memory_bytes is not None:
        yield Finding("host", "memory", OK, f"{machine.memory_bytes / 2**30:.1f} GiB")
    linux = machine.system.startswith("Linux") and os.uname().machine == "x86_64"
    remedy = "" if linux else "use Linux on x86-64"
    yield Finding("host", "system", OK if linux else MISSING, machine.system, remedy, required=True)


def _package(area: str, name: str, purpose: str, *, required: bool = False, extra: str = "") -> Finding:
    """Whether a package is installed, in the version that is needed."""
    command = f"{_INSTALL} 'tileprof[{extra}]'" if extra else f"{_INSTALL} --force-reinstall tileprof"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(area, name, MISSING, purpose, command, required)
    wanted = _PINNED.get(name)
    if wanted is not None and version != wanted:
        detail = f"{version}, and {wanted} is needed: {purpose}"
        return Finding(area, name, LIMITED, detail, f"{_INSTALL} {name}=={wanted}", required)
    return Finding(area, name, OK, f"{version}: {purpose}")


def _compilers() -> Iterator[Finding]:
    yield _package("compiling", "apache-tvm", "thread programs, for every target", required=True)
    yield _package("compiling", "nvidia-cuda-nvrtc", "CUDA C++ to cubins", required=True)
    yield _package("compiling", "nvidia-cuda-runtime", "the headers that NVRTC reads", required=True)
    yield _package("compiling", "nvidia-cuda-nvdisasm", "cubins to SASS with lines", required=True)
    yield _package("compiling", "ziglang", "objects for CPUs and AMD GPUs", required=True)
    yield _package("compiling", "capstone", "listings of CPU kernels", required=True)


def _nvidia(machine: Machine) -> Iterator[Finding]:
    gpus = [gpu for gpu in machine.gpus if gpu.vendor == "nvidia"]
    for gpu in gpus:
        detail = f"{gpu.name}, compute capability {gpu.arch}, driver {gpu.driver}"
        yield Finding("NVIDIA", "GPU", OK, detail)
    if not gpus:
        driver = Path("/proc/driver/nvidia/version")
        if driver.exists():
            version = re.search(r"\d+\.\d+(\.\d+)?", driver.read_text(errors="replace"))
            detail = f"driver {version[0] if version else ''} is here, and nvidia-smi lists no GPU"
            yield Finding("NVIDIA", "GPU", LIMITED, detail, "give this container the GPU (docker run --gpus all)")
        else:
            detail = "no driver: kernels are compiled and simulated, not run"
            yield Finding("NVIDIA", "GPU", MISSING, detail, "use a machine with an NVIDIA GPU and its driver")
    yield _package("NVIDIA", "cuda-bindings", "launching on NVIDIA GPUs", extra="cuda")
    yield counters("counters per tile operation")
    yield profiler("NVIDIA", "nsys", nsys.available(), "times of launches on the device's own timeline, ranges")
    yield _package("NVIDIA", "ncu-report", "reading .ncu-rep files", extra="ncu")


def _amd(machine: Machine, root: Path = Path("/")) -> Iterator[Finding]:
    gpus = [gpu for gpu in machine.gpus if gpu.vendor == "amd"]
    for gpu in gpus:
        yield _amd_gpu(gpu, root)
    if not gpus:
        detail = "no amdgpu driver: kernels are compiled and simulated, not run"
        yield Finding("AMD", "GPU", MISSING, detail, targets.kfd.REMEDY_DRIVER)
    rocm = root / "opt/rocm/.info/version"
    if rocm.is_file():
        yield Finding("AMD", "ROCm", OK, rocm.read_text(errors="replace").strip())
    library, purpose = tilelang.hip_library(), "launching on AMD GPUs"
    if library is not None:
        yield Finding("AMD", "HIP runtime", OK, f"{library}: {purpose}")
    else:
        remedy = "install ROCm's HIP runtime, or name the folder of ROCm in ROCM_PATH"
        yield Finding("AMD", "HIP runtime", MISSING, f"libamdhip64: {purpose}", remedy)
    tool, read = read_amd_counter(longest_s=_BUSY_SECONDS, root=root)
    yield _counting("AMD", "rocprofv3", tool, read, "counters, traces and PC samples of AMD GPUs")
    if gpus:
        yield from _amd_settings(root)
        yield _package("AMD", "amdsmi", "clocks, power and throttling of AMD GPUs", extra="rocm")


def _amd_gpu(gpu: Gpu, root: Path) -> Finding:
    """A GPU, whether this process may use it, and whether the compiler knows it."""
    detail = f"{gpu.name}, {gpu.arch}" + (f", driver {gpu.driver}" if gpu.driver else "")
    trouble = targets.kfd.trouble(root)
    if trouble is not None:
        return Finding("AMD", "GPU", LIMITED, f"{detail}: {trouble[0]}", trouble[1])
    known = [name for name in targets.names() if name.startswith("hip:")]
    if f"hip:{gpu.arch}" not in known:
        remedy = f"use a GPU of one of {', '.join(known)}"
        return Finding("AMD", "GPU", LIMITED, f"{detail}: the compiler has no target for it", remedy)
    return Finding("AMD", "GPU", OK, detail)


def _amd_settings(root: Path) -> Iterator[Finding]:
    """What falsifies counters of AMD GPUs, or makes the runtime take the GPU for another, as far as files tell.

    Counting needs no privilege there: with CAP_PERFMON the profiler can keep others from the GPU (ROCm/rocm-systems, rocprofv3's
    own doctor).
    """
    others = _amd_profilers(root)
    if others:
        detail = f"other profilers are running ({', '.join(others)}): counters may be theirs, or refused"
        yield Finding("AMD", "counters", LIMITED, detail, "end them before counting")
    if overridden := os.environ.get("HSA_OVERRIDE_GFX_VERSION"):
        detail = f"HSA_OVERRIDE_GFX_VERSION={overridden}: the runtime takes the GPU for another one"
        yield Finding("AMD", "override", LIMITED, detail, "unset HSA_OVERRIDE_GFX_VERSION")


def _amd_profilers(root: Path) -> list[str]:
    """``rocprofv3 (4711)`` of each program of AMD's profilers that runs, whatever interpreter runs it."""
    found = []
    for place in sorted((root / "proc").glob("[0-9]*/cmdline")):
        with suppress(OSError):
            words = [Path(word).name for word in place.read_bytes().decode(errors="replace").split("\0") if word]
            named = [word for word in words[:2] if _AMD_PROFILERS.fullmatch(word)]
            if named:
                found.append(f"{named[0]} ({place.parent.name})")
    return found


def profiler(area: str, name: str, tool: Availability, purpose: str) -> Finding:
    """What a profiler's own check found; one that is here and cannot count is limited, not missing."""
    if tool.usable:
        return Finding(area, name, OK, ", ".join(filter(None, (tool.version, tool.path))) + f": {purpose}")
    return Finding(area, name, LIMITED if tool.path else MISSING, f"{purpose}: {tool.why}", tool.remedy)


def counters(purpose: str, root: Path = Path("/")) -> Finding:
    """What ncu can do here, found out by reading a counter; where there is no ncu or no driver, nothing is tried."""
    tool, read = read_counter(longest_s=_BUSY_SECONDS, root=root)
    return _counting("NVIDIA", "ncu", tool, read, purpose)


def _counting(area: str, name: str, tool: Availability, read: CounterRead | None, purpose: str) -> Finding:
    """What a profiler can do, with what came of reading a counter."""
    found = profiler(area, name, tool, purpose)
    if read is None or not tool.usable:
        return found
    return replace(found, detail=f"{found.detail}; {read.text}, in {read.seconds:.1f} s")


def _counters() -> Iterator[Finding]:
    yield profiler("processor", "perf", perf.available(), "counters of processors")


def _extras() -> Iterator[Finding]:
    for name, purpose, extra in (("torch", "torch tensors as arguments and references", "torch"),):
        version = installed((name,)).get(name)
        command = f"{_INSTALL} 'tileprof[{extra}]'"
        state, detail = (OK, f"{version}: {purpose}") if version else (MISSING, purpose)
        yield Finding("optional", name, state, detail, "" if version else command)


def abilities(findings: list[Finding]) -> list[str]:
    """What follows for the user, one line each."""
    found = {finding.name: finding.state == OK for finding in findings if finding.name != "GPU"}
    gpu = {f.area: f.state == OK for f in findings if f.name == "GPU"}
    compiling = all(finding.state == OK for finding in findings if finding.area == "compiling")
    lines = [
        "compile and simulate for CPUs, NVIDIA and AMD GPUs"
        if compiling
        else "compile: something is missing, see above"
    ]
    lines.append("run and time on this processor" if compiling else "run on this processor: once compiling works")
    if gpu.get("NVIDIA") and found.get("cuda-bindings"):
        counters = ", with counters" if found.get("ncu") and found.get("ncu-report") else ", without counters"
        lines.append(f"run and time on the NVIDIA GPU{counters}")
    if gpu.get("AMD") and found.get("HIP runtime"):
        lines.append(f"run and time on the AMD GPU, {'with' if found.get('rocprofv3') else 'without'} counters")
    return lines


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def doctor(as_json: bool) -> int:
    """Say what this machine can do, what is missing, and the exact remedy.

    On a GPU a counter is read, with Nsight Compute or rocprofv3, which takes seconds.  Exit status 2 where something that every run
    needs is missing.
    """
    findings = examine(probe())
    broken = [finding for finding in findings if finding.required and finding.state == MISSING]
    if as_json:
        record = {"findings": [asdict(finding) for finding in findings], "can": abilities(findings)}
        click.echo(json.dumps(record, indent=2))
        return 2 if broken else 0
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("area", "what", "state", "detail and remedy"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        detail = finding.detail + (f"\n-> {finding.remedy}" if finding.remedy else "")
        table.add_row(finding.area, finding.name, Text(finding.state, style=_STYLES[finding.state]), Text(detail))
    console.print(table)
    console.print(Text("\nThis machine can:", style="bold"))
    for line in abilities(findings):
        console.print(Text(f"  {line}"))
    return 2 if broken else 0


COMMAND = doctor
