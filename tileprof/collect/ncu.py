"""Running NVIDIA Nsight Compute: is it here and allowed, its command line, and what its log says went wrong.

Reading its reports is in ``ncu_file.py``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tileprof.collect.tool import Availability, find_tool, identified, no_older_than, refused_option, with_nvidia_driver
from tileprof.errors import CaseFailed, MeasurementInvalid, ProfilerUnavailable, TileprofError
from tileprof.metrics.ncu_names import SECTIONS, requested

TOOL = "ncu"
INSTALL = "install NVIDIA Nsight Compute and put ncu on PATH, or name it in TILEPROF_NCU"
PERMISSION = (
    "run as root (in a container: --cap-add=SYS_ADMIN), or let every user profile: "
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiler.conf, "
    "then reload the nvidia module or restart"
)
OLDEST = (2022, 3)
"""The oldest whose reports were read; ``docs/import.md`` has the releases of the files that tests read."""
NEWER = "install Nsight Compute 2022.3 or later (CUDA 11.8), or name another in TILEPROF_NCU"
WITHOUT_COLLECTIVES = "regex:^(?!nccl)"
"""The filter that leaves NCCL's kernels out."""
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_PLACES = ("opt/nvidia/nsight-compute/*/ncu", "usr/local/cuda*/bin/ncu")


def find(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of ncu: TILEPROF_NCU, then PATH, then the newest of the usual installation folders under ``root``."""
    return find_tool(TOOL, "TILEPROF_NCU", _PLACES, environment, root)


def parse_version(text: str) -> str:
    """``2025.3.1`` from what ``ncu --version`` prints; "" if it says none."""
    found = re.search(r"Version (\d{4}\.\d+(?:\.\d+)?)", text)
    return found[1] if found else ""


def located(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether there is an ncu that says which version it is, and that is new enough."""
    found = identified(TOOL, find(environment, root), parse_version, INSTALL)
    return no_older_than(found, OLDEST, "reports of releases before 2022.3 are not known", NEWER)


def available(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether ncu can read counters here, found out without running a kernel.

    Looks at the driver, the driver's restriction of profiling to administrators and this process's capabilities.  A
    machine may still refuse when it is tried (virtual machines, a second profiler): ``ncu_probe.py`` tries it.
    """
    found = located(environment, root)
    if found.usable:
        found = with_nvidia_driver(found, root)
    if found.usable and _restricted(root) and not privileged(root):
        return found.denied("the driver lets only administrators read counters", PERMISSION)
    return found


def _restricted(root: Path) -> bool:
    """Whether the driver restricts counters to administrators; where it does not say, it does not count as restricted."""
    try:
        parameters = (root / "proc/driver/nvidia/params").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"^RmProfilingAdminOnly:\s*1\b", parameters, re.MULTILINE) is not None


def privileged(root: Path) -> bool:
    """Whether this process has CAP_SYS_ADMIN or CAP_PERFMON: root in a container often has neither."""
    try:
        status = (root / "proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return os.geteuid() == 0
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", status, re.MULTILINE)
    if found is None:
        return os.geteuid() == 0
    return bool(int(found[1], 16) >> _CAP_SYS_ADMIN & 1 or int(found[1], 16) >> _CAP_PERFMON & 1)


def command(
    ncu: str,
    child: Sequence[str],
    *,
    symbol: str | None,
    report: Path,
    log: Path,
    major: int | None = None,
    launch_skip: int = 0,
    launch_count: int = 1,
    raw: Sequence[str] = (),
    when_told: bool = False,
) -> list[str]:
    """Command line that profiles ``launch_count`` launches of the kernel ``symbol`` in ``child``, after ``launch_skip`` ones.

    ``symbol`` is the mangled name, None for every kernel but those of NCCL, whose replay would wait for other processes for ever;
    ``when_told``: only between the program's own calls of
    ``cuProfilerStart`` and ``cuProfilerStop``; ``major`` the compute capability's, which decides some counter names; ``raw``
    are further raw counters.  Clocks are left alone, so that times compare with unprofiled runs; caches are flushed before
    each pass, so that passes compare with each other.  ``report`` gets the suffix ``.ncu-rep`` if it has none.
    """
    if report.suffix != ".ncu-rep":
        report = report.with_name(report.name + ".ncu-rep")
    arguments = [ncu, "--target-processes", "all", "--replay-mode", "kernel"]
    arguments += ["--clock-control", "none", "--cache-control", "all"]
    for section in SECTIONS:
        arguments += ["--section", section]
    arguments += ["--metrics", ",".join(dict.fromkeys([*requested(major), *raw]))]
    arguments += ["--kernel-name-base", "function" if symbol is None else "mangled"]
    arguments += ["--kernel-name", symbol or WITHOUT_COLLECTIVES]
    if when_told:
        arguments += ["--profile-from-start", "off"]
    arguments += ["--launch-skip", str(launch_skip), "--launch-count", str(launch_count)]
    return [*arguments, "--log-file", str(log), "-f", "-o", str(report), *child]


@dataclass(frozen=True, slots=True)
class Log:
    """What a log of ncu says: lines of errors and warnings, kernels profiled, and kernels it saw when none matched."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    profiled: int
    seen: tuple[str, ...]


def parse_log(text: str) -> Log:
    """The parts of a log that matter; lines of the profiled program in between are passed over."""
    errors: list[str] = []
    warnings: list[str] = []
    seen: list[str] = []
    profiled = 0
    listing = False
    for line in text.splitlines():
        if found := re.match(r"==(ERROR|WARNING|PROF)== ?(.*)", line):
            kind, message = found[1], found[2].strip()
            listing = message.endswith("Available Kernels:")
            if kind == "ERROR":
                errors.append(message)
            elif kind == "WARNING":
                warnings.append(message)
            elif re.match(r'Profiling ".*"', message):
                profiled += 1
        elif line.strip() == "Available Kernels:":
            listing = True
        elif listing and (entry := re.match(r"\s*\d+\.\s+(\S.*)", line)):
            seen.append(entry[1].strip())
    return Log(tuple(errors), tuple(warnings), profiled, tuple(seen))


DENIED, HIDDEN, BUSY, LOCKED, DRIVER, NO_COUNTER, PROGRAM = (
    "denied", "hidden", "another profiler", "lock", "driver", "no counter", "program",
)  # fmt: skip
"""What an error or warning of ncu can mean."""

_MEANINGS = (
    (r"ERR_NVGPUCTRPERM|does not have permission|INSUFFICIENT_PRIVILEGES|permission to access NVIDIA GPU", DENIED),
    (r"LibraryNotLoaded|LibraryNotFound|not supported (?:in|by|on) (?:this|the) (?:virtual|sandbox)", HIDDEN),
    (r"driver resource was unavailable|MULTIPLE_SUBSCRIBERS|[Aa]nother (?:tool|profiler|CUPTI)", BUSY),
    (r"lock file|InterprocessLock|nsight-compute-lock", LOCKED),
    (r"driver is not compatible|stub libcuda|failed to connect to the CUDA driver|driver version is insufficient", DRIVER),
    (r"Failed to find metric|Could not find metric|unknown metric|is not available for", NO_COUNTER),
    (r"The application returned an error code|The application terminated|received signal", PROGRAM),
)  # fmt: skip

HIDDEN_TEXT = "this machine hides the GPU's counters, as sandboxed virtual machines do"
BUSY_TEXT = "another profiler or monitor holds the GPU's counters"
LOCKED_TEXT = "its lock belongs to another user"
DRIVER_TEXT = "this ncu does not fit the driver"
REMEDIES = {
    HIDDEN: "use a machine with direct access to the GPU; times, static and simulated figures need no counters",
    BUSY: (
        "stop the other one (dcgmi profile --pause pauses DCGM; torch.profiler, Proton, nsys and ncu hold counters while "
        "they run) and try again"
    ),
    LOCKED: "delete /tmp/nsight-compute-lock as its owner or root, or set TMPDIR to a folder of yours",
    DRIVER: "install the ncu of the driver's CUDA release (TILEPROF_NCU names one of several), or a newer driver",
}
"""What to do, where that does not depend on the machine."""

_KNOWN: dict[str, tuple[type[TileprofError], str, str]] = {
    DENIED: (ProfilerUnavailable, "no permission to read the GPU's counters", PERMISSION),
    HIDDEN: (ProfilerUnavailable, HIDDEN_TEXT, REMEDIES[HIDDEN]),
    BUSY: (MeasurementInvalid, BUSY_TEXT, REMEDIES[BUSY]),
    LOCKED: (ProfilerUnavailable, LOCKED_TEXT, REMEDIES[LOCKED]),
    DRIVER: (ProfilerUnavailable, DRIVER_TEXT, REMEDIES[DRIVER]),
    NO_COUNTER: (
        ProfilerUnavailable,
        "ncu does not know a counter on this GPU",
        "leave it out of the workload's raw metrics; ncu --query-metrics lists what there is",
    ),
    PROGRAM: (
        CaseFailed,
        "the profiled program failed",
        "run it without the profiler first: its own output says why",
    ),
}


def meaning_of(messages: Sequence[str]) -> tuple[str, str]:
    """(what it means, the message) of the first that is known, in the order of causes; ("", "") where none is."""
    for pattern, meaning in _MEANINGS:
        for message in messages:
            if re.search(pattern, message):
                return meaning, message
    return "", ""


def check_log(text: str, returncode: int = 0, *, symbol: str = "") -> Log:
    """The log if it reports a good run; else raises the error it means.

    ncu ends with status 0 when no kernel matched and nothing was measured, so the log decides and not the status.
    Raises :class:`ProfilerUnavailable`, :class:`MeasurementInvalid` or :class:`CaseFailed`.
    """
    log = parse_log(text)
    if (refused := refused_option(log.errors)) is not None:
        raise ProfilerUnavailable(f"{TOOL}: this release does not know an option: {refused}", remedy=NEWER)
    meaning, message = meaning_of((*log.errors, *(log.warnings if not log.profiled else ())))
    if meaning:
        error, wrong, remedy = _KNOWN[meaning]
        raise error(f"{TOOL}: {wrong}: {message}", remedy=remedy)
    if any("No kernels were profiled" in message for message in (*log.warnings, *log.errors)):
        seen = f"; kernels it saw: {', '.join(log.seen)}" if log.seen else ""
        raise MeasurementInvalid(
            f"{TOOL}: no launch of kernel {symbol or '?'} was recorded{seen}",
            remedy="check that the program launches it, and often enough for the launches that are skipped",
        )
    if log.errors or returncode != 0:
        reason = "; ".join(log.errors) or f"it ended with status {returncode} and no message"
        raise MeasurementInvalid(f"{TOOL}: {reason}", remedy="try again; if it stays, run the same command by hand")
    return log
