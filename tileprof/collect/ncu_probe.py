"""A real counter read with Nsight Compute: launches a tiny kernel under it and says what became of one counter.

Files and versions tell only part of it: virtual machines, containers, a second profiler or a driver of another release refuse when
a counter is read, and ncu ends with status 0 where it profiled nothing.  The counter is that of launched warps, whose value is
known exactly, so a value that is read is also checked.  It takes a few seconds.
"""

from __future__ import annotations

import csv
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tileprof.collect import ncu, probe_kernel
from tileprof.collect.csv_rows import number
from tileprof.collect.tool import Availability, run_in_group, with_nvidia_driver

COUNTER = "smsp__warps_launched.sum"
LIMIT_S = 60.0
"""The longest a read may take; one that works takes about 3 s, and longer while a driver starts up."""

READ = "read"
CONTAINER = "container without the right"
NOTHING, IMPLAUSIBLE = "nothing profiled", "implausible value"
HUNG, NO_LAUNCH, FAILED = "hung", "no launch", "failed"

OUTCOMES = (
    READ, ncu.DENIED, CONTAINER, NOTHING, ncu.NO_COUNTER, IMPLAUSIBLE, ncu.BUSY, ncu.LOCKED, ncu.DRIVER, ncu.HIDDEN,
    HUNG, NO_LAUNCH, FAILED,
)  # fmt: skip
"""Everything that can come of a read."""

_MODPROBE = (
    "let every user profile: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | "
    "sudo tee /etc/modprobe.d/nvidia-profiler.conf, then reload the nvidia module or restart; or run as root"
)
_CAPABILITY = (
    "start the container with the right to read them: docker run --cap-add=SYS_ADMIN, in Kubernetes "
    "securityContext: {capabilities: {add: [SYS_ADMIN]}}; or let every user profile, on the host: "
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d/nvidia-profiler.conf, then restart it"
)
# The CUDA release that an ncu came with needs a driver of this branch (CUDA toolkit release notes, table of component versions).
_DRIVER_BRANCHES = {
    (2022, 3): 520,
    (2022, 4): 525,
    (2023, 1): 530,
    (2023, 2): 535,
    (2023, 3): 545,
    (2024, 1): 550,
    (2024, 2): 555,
    (2024, 3): 560,
    (2025, 1): 570,
    (2025, 2): 575,
    (2025, 3): 580,
    (2025, 4): 590,
}

_OTHERS = re.compile(r"nv-hostengine|dcgm-exporter|dcgmproftester|nsys|nsys-launcher|nsight-sys.*|ncu|nv-nsight-cu.*")


@dataclass(frozen=True, slots=True)
class CounterRead:
    """What became of one read: one of OUTCOMES, a sentence, what to do, and the seconds it took.

    ``value`` is what ncu said of the counter, None where it said nothing.
    """

    outcome: str
    text: str
    remedy: str = ""
    value: float | None = None
    seconds: float = 0.0

    def applied(self, found: Availability) -> Availability:
        """The tool as this read leaves it: usable, or why not."""
        return replace(found, usable=True) if self.outcome == READ else found.denied(self.text, self.remedy)


def candidate(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether there are an ncu and a driver to try it with; nothing is launched."""
    found = ncu.located(environment, root)
    return with_nvidia_driver(found, root) if found.usable else found


def read_counter(
    environment: Mapping[str, str] | None = None, root: Path = Path("/"), limit_s: float = LIMIT_S
) -> tuple[Availability, CounterRead | None]:
    """The tool as a read leaves it, and the read; None where there is no ncu or no driver to try it with.

    ``environment`` and ``root`` are those of this process and machine unless others are given, for tests.
    """
    found = candidate(environment, root)
    return read_with(found, root, limit_s) if found.usable else (found, None)


def read_with(
    found: Availability, root: Path = Path("/"), limit_s: float = LIMIT_S
) -> tuple[Availability, CounterRead]:
    """The same with a :func:`candidate` that is usable."""
    read = _read(found, root, limit_s)
    return read.applied(found), read


def command(path: str, log: Path) -> list[str]:
    """The command line of a read; the table with the value goes to ``log``."""
    return [
        path, "--target-processes", "all", "--clock-control", "none", "--metrics", COUNTER,
        "--kernel-name", probe_kernel.KERNEL, "--csv", "--page", "raw", "--print-units", "base",
        "--log-file", str(log), sys.executable, "-I", str(Path(probe_kernel.__file__).resolve()),
    ]  # fmt: skip


def _read(found: Availability, root: Path, limit_s: float) -> CounterRead:
    """Run the command and judge what it left behind."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tileprof-probe-") as folder:
        log, output = Path(folder) / "ncu.log", Path(folder) / "output"
        line = command(found.path, log)
        try:
            status = run_in_group(line, output, limit_s)
        except OSError as error:
            return CounterRead(FAILED, f"{found.path} cannot be run: {error.strerror}", ncu.INSTALL)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        said = output.read_text(encoding="utf-8", errors="replace")
    read = _judge(found, text, said, status, root, limit_s, line)
    return replace(read, seconds=time.monotonic() - began)


def _judge(
    found: Availability, log: str, said: str, status: int | None, root: Path, limit_s: float, line: Sequence[str]
) -> CounterRead:
    """The outcome of a read that ended with ``status`` (None: it did not end)."""
    by_hand = f"run it by hand to see all that it says: {shlex.join([*line[:-5], *line[-3:]])}"  # without the log file
    messages = [*ncu.parse_log(log).errors, *ncu.parse_log(said).errors]
    warnings = [*ncu.parse_log(log).warnings, *ncu.parse_log(said).warnings]
    if status is None:
        shown = f"; its last words: {messages[-1]}" if messages else ""
        others = _other_profilers(root)
        why = f"ncu did not end within {limit_s:g} s{shown}{_named(others)}"
        remedy = "see whether nvidia-smi answers, and whether another ncu runs: the second one waits for the first"
        return CounterRead(HUNG, why, remedy)
    value = value_in(log)
    if value is None:
        ran = re.search(r"^the probe's kernel .*", said, re.MULTILINE) is None
        meaning, message = ncu.meaning_of((*messages, *warnings))
        if meaning not in ("", ncu.PROGRAM):
            return _explained(meaning, message, found, root, by_hand)
        if not ran:
            why = _last_line(said)
            return CounterRead(NO_LAUNCH, why, "see whether nvidia-smi lists the GPU, and CUDA_VISIBLE_DEVICES")
        if any("No kernels were profiled" in text for text in (*messages, *warnings)):
            why = "no kernels were profiled, though one was launched: ncu did not get into the process"
            return CounterRead(NOTHING, why, f"unset CUDA_INJECTION64_PATH and LD_PRELOAD; {by_hand}")
        if COUNTER in log:
            return _explained(ncu.NO_COUNTER, "n/a", found, root, by_hand)
        reason = "; ".join(messages) or _last_line(said) or "no message"
        return CounterRead(FAILED, f"ncu ended with status {status}: {reason}", by_hand)
    if value != probe_kernel.WARPS:
        why = f"{COUNTER} says {value:g} of a kernel of {probe_kernel.WARPS} warps"
        remedy = "see whether other programs use this GPU, and whether it is divided (MIG, vGPU)"
        return CounterRead(IMPLAUSIBLE, why, remedy, value)
    return CounterRead(READ, f"a counter was read: {value:g} warps launched, as there were", value=value)


def _explained(meaning: str, message: str, found: Availability, root: Path, by_hand: str) -> CounterRead:
    """The words for what a message of ncu means."""
    message = message.rstrip(".")  # more follows
    if meaning == ncu.DENIED:
        if in_container(root) and not ncu.privileged(root):
            return CounterRead(CONTAINER, f"this container may not read the GPU's counters: {message}", _CAPABILITY)
        return CounterRead(meaning, f"no permission to read the GPU's counters: {message}", _MODPROBE)
    if meaning == ncu.NO_COUNTER:
        why = f"ncu has no value for {COUNTER} on this GPU: {message}{_versions(found, root)}"
        return CounterRead(meaning, why, f"install an ncu that knows this GPU; {by_hand}")
    why = {
        ncu.HIDDEN: f"{ncu.HIDDEN_TEXT}: {message}",
        ncu.BUSY: f"{ncu.BUSY_TEXT}: {message}{_named(_other_profilers(root))}",
        ncu.LOCKED: f"{ncu.LOCKED_TEXT}: {message}",
        ncu.DRIVER: f"{ncu.DRIVER_TEXT}: {message}{_versions(found, root)}",
    }[meaning]
    return CounterRead(meaning, why, ncu.REMEDIES[meaning])


def value_in(text: str) -> float | None:
    """The counter's value in a raw page of ncu; None where there is no table or no value in it."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r'"?ID"?,', line)), None)
    if start is None:
        return None
    rows = list(csv.reader(lines[start:]))
    if COUNTER not in rows[0]:
        return None
    column = rows[0].index(COUNTER)
    # the row of units has no number in it
    values = [number(row[column]) for row in rows[1:] if len(row) > column]
    return next((value for value in values if value is not None), None)


def in_container(root: Path = Path("/")) -> bool:
    """Whether this process runs in a container, as far as the usual marks tell."""
    if any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        return True
    with suppress(OSError):
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
        return re.search(r"docker|kubepods|containerd|libpod|lxc", groups) is not None
    return False


def _other_profilers(root: Path) -> list[str]:
    """Programs that hold counters, as far as /proc shows them."""
    found = []
    for place in root.glob("proc/[0-9]*/comm"):
        with suppress(OSError):
            name = place.read_text(encoding="utf-8", errors="replace").strip()
            if _OTHERS.fullmatch(name):
                found.append(f"{name} (process {place.parent.name})")
    return sorted(found)


def _named(others: Sequence[str]) -> str:
    return f"; running here: {', '.join(others)}" if others else ""


def _versions(found: Availability, root: Path) -> str:
    """``; ncu 2025.3.1 is of a release that needs driver 580, and here is 535.104.05``, as far as known."""
    have = driver_version(root)
    named = re.match(r"(\d+)\.(\d+)", found.version)
    needed = _DRIVER_BRANCHES.get((int(named[1]), int(named[2]))) if named else None
    if have and needed and int(have.partition(".")[0]) < needed:
        return f"; ncu {found.version} is of a CUDA release whose driver is {needed}, and here is {have}"
    return f"; ncu {found.version}, driver {have}" if have else ""


def driver_version(root: Path = Path("/")) -> str:
    """``580.159.04`` as the kernel module says it; "" where it does not."""
    with suppress(OSError):
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"\s(\d{3}\.\d+(?:\.\d+)?)\s", text):
            return found[1]
    return ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
