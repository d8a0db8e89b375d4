"""What any profile looks like once its file has been read: launches of kernels with canonical metrics, and what was odd.

Every reader in this room that is not for our own kernels makes these records; ``analyse/foreign.py`` turns them into cases.  Host
and user names, environment variables and command lines have no field here, so that no reader can keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tileprof.store.records import Ceiling, Metric


@dataclass(frozen=True, slots=True)
class SourceValue:
    """Values of one machine instruction or source line of a kernel.

    ``file`` and ``line`` as the profile has them (None without line table); ``text`` is the instruction; ``values`` by canonical
    metric; ``memory`` ncu's bit mask of the memories it reached.
    """

    file: str | None
    line: int | None
    text: str
    values: Mapping[str, float]
    memory: int | None = None


@dataclass(frozen=True)
class ForeignLaunch:
    """One launch, or a summary of ``count`` launches, of a kernel in somebody's profile.

    ``kernel`` is the demangled name without decoration, ``symbol`` the mangled one where the profile has it.  ``target`` is a name
    as ``cuda:sm_90`` (only ``cuda`` or ``hip`` where the architecture is not known).  ``grid`` is in blocks, ``block`` in threads.
    ``duration_ns`` is the time in a trace without counters, None for others; ``metrics`` are canonical, of one launch; ``raw`` is
    every counter as the profiler called it.  ``ranges`` are the names of NVTX or ROCTX ranges around the launch, outermost first.
    ``complete`` is False where profiling broke off.  ``max_clock_hz`` is what the device is made for, where the profile says.
    """

    index: int
    kernel: str
    target: str
    symbol: str = ""
    device: str = ""
    process: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    start_ns: float | None = None
    duration_ns: float | None = None
    count: int = 1
    metrics: tuple[Metric, ...] = ()
    raw: Mapping[str, float] = field(default_factory=dict)
    lines: tuple[SourceValue, ...] = ()
    ranges: tuple[str, ...] = ()
    complete: bool = True
    max_clock_hz: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Canonical metric -> value."""
        return {metric.metric: metric.value for metric in self.metrics}


@dataclass(frozen=True)
class Range:
    """An NVTX or ROCTX range, or a mark where both times are equal; ``thread`` is None where it spans threads."""

    name: str
    start_ns: float
    end_ns: float
    process: int | None = None
    thread: int | None = None


@dataclass(frozen=True)
class CallStatistic:
    """Calls of one API function or kind of copy: how many, and their time together."""

    domain: str
    name: str
    calls: int
    total_ns: float


@dataclass(frozen=True)
class ForeignProfile:
    """Everything read from one file or folder of one profiler.

    ``format`` says what the file was, ``tool`` and ``version`` what wrote it.  ``sources`` maps file name to text where the
    profile carries source.  ``gpus`` describe the devices without naming the machine.
    """

    format: str
    tool: str
    version: str
    launches: tuple[ForeignLaunch, ...]
    ranges: tuple[Range, ...] = ()
    calls: tuple[CallStatistic, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    ceilings: tuple[Ceiling, ...] = ()
    gpus: tuple[Mapping[str, str | float], ...] = ()
    notes: tuple[str, ...] = ()

    def of_kernel(self, text: str) -> tuple[ForeignLaunch, ...]:
        """Launches whose name contains ``text``."""
        return tuple(launch for launch in self.launches if text in launch.kernel)
