"""Counters of processors through the kernel's perf events: whether they can be had, and counting around launches.

Needs no tool: events are opened by the system call, for all threads of the process that launches, user mode only.  Virtual
machines often have no hardware counters, and kernels may deny them: then only what the kernel itself counts is there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tileprof.collect.tool import Availability
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

TOOL = "perf"
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_ATTR_BYTES = 112
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 5, 1 << 6
_ENABLED_AND_RUNNING = 1 | 2
_ENABLE, _DISABLE, _RESET = 0x2400, 0x2401, 0x2403
PARANOID = "proc/sys/kernel/perf_event_paranoid"
ALLOW = (
    "sudo sysctl kernel.perf_event_paranoid=1 "
    "(in a container: --cap-add=PERFMON, and a seccomp profile that allows perf_event_open)"
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the kernel's interface (``type`` 0 hardware, 1 software) and the metric that it gives."""

    metric: str
    type: int
    config: int
    name: str


EVENTS = (
    Event("cpu.cycles", 0, 0, "cycles"),
    Event("executed.instructions", 0, 1, "instructions"),
    Event("cpu.cache_references", 0, 2, "cache-references"),
    Event("cpu.cache_misses", 0, 3, "cache-misses"),
    Event("cpu.branches", 0, 4, "branches"),
    Event("cpu.branch_misses", 0, 5, "branch-misses"),
    Event("cpu.task_ns", 1, 1, "task-clock"),
    Event("cpu.page_faults", 1, 2, "page-faults"),
    Event("cpu.context_switches", 1, 3, "context-switches"),
)
HARDWARE, SOFTWARE = 0, 1

Opener = Callable[[Event, int], int]
"""Opens an event for a thread and gives its file descriptor; raises OSError."""


def open_event(event: Event, thread: int) -> int:
    """Open an event, disabled, for a thread (0: this one) on any core.  Raises OSError as the kernel says."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"no system call is known for {platform.machine()}")
    attributes = bytearray(_ATTR_BYTES)
    struct.pack_into("IIQQQQQ", attributes, 0, event.type, _ATTR_BYTES, event.config, 0, 0, _ENABLED_AND_RUNNING,
                     _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HV)  # fmt: skip
    library = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _ATTR_BYTES).from_buffer(attributes)
    descriptor: int = library.syscall(number, buffer, thread, -1, -1, 0)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def available(root: Path = Path("/"), opener: Opener = open_event) -> Availability:
    """Whether hardware events can be counted here, found out by opening one."""
    release = platform.release().split("-")[0]
    try:
        os.close(opener(EVENTS[0], 0))
    except OSError as error:
        why, remedy = _refusal(error, root)
        return Availability(TOOL, False, "", release, why, remedy)
    return Availability(TOOL, True, "perf_event_open", release)


def _refusal(error: OSError, root: Path) -> tuple[str, str]:
    """Why the kernel refused, and what to do."""
    try:
        level = (root / PARANOID).read_text().strip()
    except OSError:
        return "this kernel has no perf events", "use a kernel with CONFIG_PERF_EVENTS"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"the kernel denies counters to this user (perf_event_paranoid is {level})", ALLOW
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return (
            "this machine gives no hardware counters, as most virtual machines",
            "use a machine without virtualisation, or one whose hypervisor passes the PMU on",
        )
    if error.errno == errno.ENOSYS:
        return "the system call for counters is not there, or a sandbox blocks it", ALLOW
    return f"the kernel refused: {error.strerror}", ALLOW


@dataclass(frozen=True, slots=True)
class Reading:
    """What one event came to: ``value`` scaled to the whole time, ``share`` of the time in which it was really counted."""

    value: float
    share: float


class Counting:
    """Counts events over all threads of this process that exist when it is entered; a context manager.

    Events that the machine does not have are left out of ``readings``, which hold the rest once it is left.
    """

    def __init__(self, events: Sequence[Event] = EVENTS, opener: Opener = open_event) -> None:
        self.readings: dict[str, Reading] = {}
        self._events = events
        self._opener = opener
        self._open: dict[str, list[int]] = {}

    def __enter__(self) -> Counting:
        for event in self._events:
            try:
                self._open[event.metric] = self._for_all_threads(event)
            except OSError:
                continue  # not there or not allowed: missing
        self._tell(_RESET)
        self._tell(_ENABLE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell(_DISABLE)
        for metric, descriptors in self._open.items():
            total, enabled, running = 0.0, 0, 0
            for descriptor in descriptors:
                value, on, counted = struct.unpack("QQQ", os.read(descriptor, 24))
                total += value * on / counted if counted else 0.0
                enabled, running = enabled + on, running + counted
            if kind is None and (running or not enabled):
                self.readings[metric] = Reading(total, running / enabled if enabled else 1.0)
            for descriptor in descriptors:
                os.close(descriptor)
        self._open = {}

    def _for_all_threads(self, event: Event) -> list[int]:
        opened: list[int] = []
        try:
            for thread in sorted(int(name) for name in os.listdir("/proc/self/task")):
                opened.append(self._opener(event, thread))
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
            raise
        return opened

    def _tell(self, command: int) -> None:
        import fcntl

        for descriptors in self._open.values():
            for descriptor in descriptors:
                fcntl.ioctl(descriptor, command, 0)


def metrics_of(readings: Mapping[str, Mapping[str, float]], launches: int) -> list[Metric]:
    """Records of one launch from readings over ``launches`` of them, as :class:`Reading` in JSON form by metric.

    Also instructions a cycle and the mean clock, where their inputs are there.
    """
    rows: list[Metric | None] = []
    values: dict[str, float] = {}
    for metric, reading in readings.items():
        value, share = reading["value"] / launches, reading["share"]
        values[metric] = value
        scaled = "" if share > 0.999 else f", counted {share:.0%} of the time and scaled"
        source = Provenance("measured", TOOL, "", f"mean of {launches} launches, all threads, user mode{scaled}")
        rows.append(make(metric, value, source))
    cycles = values.get("cpu.cycles")
    if cycles:
        if "executed.instructions" in values:
            source = Provenance("derived", TOOL, "", "instructions / cycles of all threads")
            rows.append(make("executed.per_cycle", values["executed.instructions"] / cycles, source))
        if values.get("cpu.task_ns"):
            source = Provenance("derived", TOOL, "", "cycles in user mode / time on cores: a lower bound of the clock")
            rows.append(make("clock.hz", 1e9 * cycles / values["cpu.task_ns"], source))
    return [row for row in rows if row is not None]
