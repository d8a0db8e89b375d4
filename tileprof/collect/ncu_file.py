"""Reading Nsight Compute reports (``.ncu-rep``): launch facts, counters of the launch, and values per instruction.

Needs the package ``ncu-report`` (extra ``ncu``), no GPU and no ncu.  Raw counter names are turned into canonical metrics on the
way in.  What a report does not hold, or holds as NaN, is missing: it appears nowhere, and never as 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tileprof.errors import ProfileFormatError, ProfilerUnavailable
from tileprof.metrics import convert, lookup, make, nvidia
from tileprof.metrics.ncu_names import (
    BLOCK,
    COMPUTE_CAPABILITY,
    DEVICE_NAME,
    FUNCTION_START,
    GRID,
    INSTRUCTION_COUNTERS,
    LAUNCH_COUNTERS,
    MEMORY_TYPE,
    PASSES,
    STALL_COUNTERS,
)
from tileprof.metrics.plausible import flag_implausible
from tileprof.store.records import Metric, Provenance

_PER_INSTRUCTION = {**INSTRUCTION_COUNTERS, **STALL_COUNTERS}
_OF_MEMORY = tuple(name for name in INSTRUCTION_COUNTERS if name.startswith(("shared.", "global.")))
_VERSION = re.compile(rb"(\d{4}\.\d+\.\d+)\.\d+ \(build \d+\)")


@dataclass(frozen=True, slots=True)
class MeasuredInstruction:
    """Values of one machine instruction, summed over all warps of the launch.

    ``offset`` in bytes from the kernel's first instruction; ``text`` the instruction as ncu disassembles it, "" where that was not
    asked; ``file`` and
    ``line`` from the line table (None without one); ``memory`` a bit mask of the memories it reached (None: not known).
    ``values`` by canonical metric: ``executed.instructions``, ``shared.transactions``, ``stall.<reason>``, ...
    """

    offset: int
    text: str
    file: str | None
    line: int | None
    memory: int | None
    values: dict[str, float]


@dataclass(frozen=True)
class KernelProfile:
    """One profiled launch.

    ``symbol`` is the mangled name, ``name`` the demangled one.  ``metrics`` are counters of the launch; ``totals`` the sums
    that the report itself gives for the values in ``instructions``.  ``missing`` names metrics whose counters were there
    without a value, as in an interrupted profile.  ``raw`` are counters that were asked for by their own names.
    """

    index: int
    name: str
    symbol: str
    device: str
    compute_capability: tuple[int, int] | None
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    passes: int | None
    provenance: Provenance
    metrics: tuple[Metric, ...]
    totals: dict[str, float]
    instructions: tuple[MeasuredInstruction, ...]
    missing: tuple[str, ...]
    raw: Mapping[str, float] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """False for a launch whose profiling broke off: it has no duration."""
        return any(metric.metric == "time.profiled_ns" for metric in self.metrics)

    def raw_metrics(self) -> tuple[Metric, ...]:
        """The counters asked for by name, as records ``raw.<name>`` in the profiler's own unit."""
        return tuple(
            Metric(f"raw.{name}", value, "", self.provenance, launch=self.index) for name, value in self.raw.items()
        )

    def total_metrics(self) -> tuple[Metric, ...]:
        """The totals as records of the whole kernel, with bank conflicts as their difference."""
        values = dict(self.totals)
        if "shared.transactions" in values and "shared.transactions_ideal" in values:
            values["shared.conflicts"] = values["shared.transactions"] - values["shared.transactions_ideal"]
        made = (make(name, value, self.provenance, launch=self.index) for name, value in values.items())
        return tuple(metric for metric in made if metric is not None)


@dataclass(frozen=True)
class NcuReport:
    """All launches of a report, and the version of ncu that wrote it ("" if it does not say).

    ``truncated`` says that the file ends in the middle of a launch, which is left out; the launches before it are whole.
    """

    version: str
    kernels: tuple[KernelProfile, ...]
    truncated: bool = False

    def of_symbol(self, symbol: str) -> tuple[KernelProfile, ...]:
        """The launches of one kernel, by mangled name."""
        return tuple(kernel for kernel in self.kernels if kernel.symbol == symbol)


def read(path: Path, raw: Sequence[str] = (), *, every: int = 1) -> NcuReport:
    """Every profiled kernel of a report file, with the counters named in ``raw``; errors are those of :func:`load`.

    ``every``: the text is read of each instruction that reaches memory, and of every n-th other one.  Disassembling takes most of
    the time, and whoever has the kernel's listing needs no more to see that it is the same binary.
    """
    return report_of(load(path), path, raw, every=every)


def report_of(loaded: Loaded, path: Path, raw: Sequence[str] = (), *, every: int = 1) -> NcuReport:
    """The kernels of a report that is loaded; ``path`` is for errors."""
    actions = enumerate(loaded.actions)
    kernels = [_kernel(action, index, loaded.version, raw, every) for index, action in actions if _is_kernel(action)]
    if not kernels:
        raise _nothing_in(path, loaded.truncated)
    return NcuReport(loaded.version, tuple(kernels), truncated=loaded.truncated)


def _nothing_in(path: Path, truncated: bool) -> ProfileFormatError:
    cut = ", since it is cut off" if truncated else ""
    return ProfileFormatError(f"{path} holds no whole kernel{cut}", remedy="the profiler's log says what happened")


@dataclass(frozen=True)
class Loaded:
    """A report as the library gives it: the actions that have a name, and whether others were cut off."""

    version: str
    actions: tuple[Any, ...]
    truncated: bool
    context: Any  # the library's objects live as long as it does


def load(path: Path) -> Loaded:
    """The actions of a report file.

    Raises :class:`ProfilerUnavailable` without the package ``ncu-report``, :class:`ProfileFormatError` where the file is
    missing, empty or no such report.
    """
    try:
        import ncu_report
    except ImportError as error:
        raise ProfilerUnavailable(
            f"reading {path.name} needs the package ncu-report, which does not import: {error}",
            remedy="python -m pip install 'tileprof[ncu]'",
        ) from None
    if not path.is_file():
        raise ProfileFormatError(f"there is no report {path}", remedy="the profiler's log says why none was written")
    try:
        context = ncu_report.load_report(str(path))
    except Exception as error:  # the library raises several undocumented types
        raise ProfileFormatError(
            f"{path} is no report that ncu-report can read: {error}",
            remedy="ncu-report must be at least as new as the ncu that wrote it: pip install -U ncu-report",
        ) from None
    version = _version(path)
    actions = [action for part in context for action in part]
    # The library gives the launch that a cut file breaks off in as one without a name.
    named = tuple(action for action in actions if action.name(action.NameBase_MANGLED))
    if not named:
        raise _nothing_in(path, bool(actions))
    return Loaded(version, named, len(named) < len(actions), context)


def _version(path: Path) -> str:
    """The version of ncu, which the library does not tell, from the session's text in the file."""
    found = _VERSION.search(path.read_bytes())
    return found[1].decode() if found else ""


def _is_kernel(action: Any) -> bool:
    kind: bool = action.workload_type() == action.WorkloadType_KERNEL
    return kind


def _kernel(action: Any, index: int, version: str, wanted: Sequence[str] = (), every: int = 1) -> KernelProfile:
    """One launch.  Totals of per-instruction counters are kept apart from counters of the launch."""
    passes = _number(action, PASSES)
    detail = "Nsight Compute, kernel replay" + (f", {passes:.0f} passes" if passes else "")
    provenance = Provenance("measured", "ncu", version, detail)
    metrics: list[Metric] = []
    missing: list[str] = []
    for counter in LAUNCH_COUNTERS:
        present = [name for name in counter.names() if action.metric_by_name(name) is not None]
        row = _launch_metric(action, counter.canonical, present, provenance, index)
        if row is not None:
            metrics.append(row)
        elif present:
            missing.append(counter.canonical)
    instructions, totals, without_value = _instructions(action, every)
    capability = [_number(action, name) for name in COMPUTE_CAPABILITY]
    arch = "" if None in capability else f"sm_{capability[0]:.0f}{capability[1]:.0f}"
    known = {row.metric for row in metrics} | set(_PER_INSTRUCTION) | {"shared.conflicts"}
    raw = counters(action)
    derived = nvidia.launch_metrics(raw, arch, provenance, index)
    derived += nvidia.opcode_metrics(_opcodes(action), provenance, index)
    for row in derived:
        if row.metric not in known:
            known.add(row.metric)
            metrics.append(row)
    return KernelProfile(
        index=index,
        name=action.name(action.NameBase_DEMANGLED),
        symbol=action.name(action.NameBase_MANGLED),
        device=_text(action, DEVICE_NAME),
        compute_capability=None if None in capability else (int(capability[0] or 0), int(capability[1] or 0)),
        grid=_triple(action, GRID),
        block=_triple(action, BLOCK),
        passes=None if passes is None else int(passes),
        provenance=provenance,
        metrics=tuple(flag_implausible(metrics, nvidia.max_clock_hz(raw))),
        totals=totals,
        instructions=instructions,
        missing=(*missing, *without_value),
        raw={name: value for name in wanted if (value := _number(action, name)) is not None},
    )


_OPCODES = "sass__inst_executed_per_opcode_with_modifier_all"


def counters(action: Any) -> dict[str, float]:
    """Every counter that some formula or ceiling takes, in base units; those without a value are absent."""
    values = {}
    for name in nvidia.INPUTS:
        value = _number(action, name)
        if value is not None:
            values[name] = nvidia.base_value(value, str(action.metric_by_name(name).unit()))
    return values


def _opcodes(action: Any) -> dict[str, float]:
    """How often warps executed each opcode with its modifiers."""
    metric = action.metric_by_name(_OPCODES)
    if metric is None or not metric.num_instances() or not metric.has_correlation_ids():
        return {}
    names = metric.correlation_ids()
    found = {}
    for i in range(metric.num_instances()):
        value = metric.value(i)
        if isinstance(value, int | float) and not math.isnan(value):
            found[str(names.value(i))] = float(value)
    return found


def _launch_metric(action: Any, canonical: str, names: list[str], provenance: Provenance, index: int) -> Metric | None:
    """The record of the first of several spellings that has a value, or None."""
    for name in names:
        value = _number(action, name)
        if value is not None:
            unit = str(action.metric_by_name(name).unit())
            return make(canonical, convert(value, unit, lookup(canonical).unit), provenance, launch=index)
    return None


def _number(action: Any, name: str) -> float | None:
    """A counter's scalar value; None where it is absent, no number, or NaN (has_value() says True for NaN)."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_value():
        return None
    value = metric.value()
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


def _text(action: Any, name: str) -> str:
    metric = action.metric_by_name(name)
    return str(metric.value()) if metric is not None and metric.has_value() else ""


def _triple(action: Any, names: tuple[str, str, str]) -> tuple[int, int, int] | None:
    values = [_number(action, name) for name in names]
    if any(value is None for value in values):
        return None
    x, y, z = (int(value or 0) for value in values)
    return x, y, z


def _instances(action: Any, name: str) -> Iterator[tuple[int, float]]:
    """(address, value) of each instruction that a counter has a value for."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.num_instances() or not metric.has_correlation_ids():
        return
    count = metric.num_instances()
    # one look at the kind of all instances: the library's own value() looks at each, which takes most of the time of a report
    kind = metric.kind(0)
    if kind in (metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT):
        read = metric.as_double
    elif kind in (metric.ValueKind_UINT32, metric.ValueKind_UINT64):
        read = metric.as_uint64
    else:
        return
    address = metric.correlation_ids().as_uint64
    for i in range(count):
        value = float(read(i))
        if not math.isnan(value):
            yield address(i), value


def _instructions(action: Any, every: int = 1) -> tuple[tuple[MeasuredInstruction, ...], dict[str, float], list[str]]:
    """Instructions in order of address; the report's own totals; metrics whose counter has no value."""
    values: dict[int, dict[str, float]] = {}
    totals: dict[str, float] = {}
    missing: list[str] = []
    for canonical, raw in _PER_INSTRUCTION.items():
        if action.metric_by_name(raw) is None:
            continue
        for address, value in _instances(action, raw):
            values.setdefault(address, {})[canonical] = value
        total = _number(action, raw)
        if total is None:
            missing.append(canonical)
        else:
            totals[canonical] = total
    if not values:
        return (), totals, missing
    memory = dict(_instances(action, MEMORY_TYPE))
    start = _function_start(action, min(values))

    def reaches_memory(address: int) -> bool:
        counted = (values[address].get(name) for name in _OF_MEMORY)
        return not memory or address in memory or any(counted)

    return (
        tuple(
            MeasuredInstruction(
                offset=address - start,
                text=_sass(action, address) if number % every == 0 or reaches_memory(address) else "",
                memory=int(memory[address]) if address in memory else None,
                values=values[address],
                **_place(action, address),
            )
            for number, address in enumerate(sorted(values))
        ),
        totals,
        missing,
    )


def _sass(action: Any, address: int) -> str:
    return " ".join((action.sass_by_pc(address) or "").split())


def _place(action: Any, address: int) -> dict[str, Any]:
    info = action.source_info(address)
    if info is None or not info.file_name():
        return {"file": None, "line": None}
    return {"file": info.file_name(), "line": int(info.line())}


def _function_start(action: Any, lowest: int) -> int:
    """Address of the first instruction of the kernel.

    It is the first instance of its counter; reports before ncu 2025 have it as scalar value, too.  Where neither can be, it
    is the lowest address with a value.
    """
    metric = action.metric_by_name(FUNCTION_START)
    candidates: list[float] = []
    if metric is not None:
        if metric.num_instances():
            candidates.append(metric.value(0))
        candidates.append(metric.value())
    for candidate in candidates:
        if isinstance(candidate, int | float) and 1 < candidate <= lowest:
            return int(candidate)
    return lowest
