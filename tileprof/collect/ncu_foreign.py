"""Nsight Compute reports of other people's programs: launches with metrics, instructions with source lines, sources, ranges.

Reading the report itself is in ``ncu_file.py``.  Of a session's machine only the GPU is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tileprof.collect import ncu_file
from tileprof.collect.ncu_file import KernelProfile
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.collect.scrub import kernel_name, path
from tileprof.metrics import nvidia
from tileprof.store.records import Ceiling

TOOL = "ncu"


def read(file: Path) -> ForeignProfile:
    """The report ``file``; errors as of :func:`tileprof.collect.ncu_file.load`."""
    loaded = ncu_file.load(file)
    report = ncu_file.report_of(loaded, file)
    launches: list[ForeignLaunch] = []
    sources: dict[str, str] = {}
    ceilings: tuple[Ceiling, ...] = ()
    gpus: dict[str, dict[str, str | float]] = {}
    for kernel in report.kernels:
        action = loaded.actions[kernel.index]
        counters = ncu_file.counters(action)
        launch = _launch(kernel, action, counters)
        launches.append(launch)
        ceilings = ceilings or nvidia.ceilings(counters, launch.target, TOOL, report.version)
        sources.update(_sources(action))
        if kernel.device:
            arch = nvidia.arch_of(kernel.compute_capability)
            gpus[kernel.device] = {"vendor": "nvidia", "name": kernel.device, "arch": arch}
    notes = ["the file ends in the middle of a launch, which was left out"] if report.truncated else []
    return ForeignProfile(
        "ncu report", TOOL, report.version, tuple(launches), sources=sources, ceilings=ceilings, gpus=tuple(gpus.values()),
        notes=tuple(notes),
    )  # fmt: skip


def _launch(kernel: KernelProfile, action: Any, counters: dict[str, float]) -> ForeignLaunch:
    arch = nvidia.arch_of(kernel.compute_capability)
    notes = []
    if not kernel.complete:
        notes.append("its profiling broke off: what is there may be of some passes only")
    if kernel.missing:
        notes.append(f"counters without a value, treated as missing: {', '.join(kernel.missing)}")
    return ForeignLaunch(
        index=kernel.index,
        kernel=kernel_name(kernel.name),
        symbol=kernel.symbol,
        target=f"cuda:{arch}" if arch else "cuda",
        device=kernel.device,
        grid=kernel.grid,
        block=kernel.block,
        metrics=(*kernel.metrics, *kernel.total_metrics()),
        raw=counters,
        lines=tuple(_lines(kernel)),
        ranges=_ranges(action),
        complete=kernel.complete,
        max_clock_hz=nvidia.max_clock_hz(counters),
        notes=tuple(notes),
    )


def _lines(kernel: KernelProfile) -> Iterator[SourceValue]:
    """Instructions, with their conflicts where both counters have a value."""
    for one in kernel.instructions:
        values = dict(one.values)
        if "shared.transactions" in values and "shared.transactions_ideal" in values:
            values["shared.conflicts"] = values["shared.transactions"] - values["shared.transactions_ideal"]
        yield SourceValue(path(one.file) if one.file else None, one.line, one.text, values, one.memory)


def _sources(action: Any) -> dict[str, str]:
    """Source files that the report carries; those of which it has only the name are left out."""
    try:
        return {path(str(name)): str(text) for name, text in action.source_files().items() if text}
    except (RuntimeError, TypeError, ValueError):  # reports without any
        return {}


def _ranges(action: Any) -> tuple[str, ...]:
    """NVTX ranges around the launch: push/pop ranges outermost first, then start/end ranges."""
    state = action.nvtx_state()
    if state is None:
        return ()
    found: list[str] = []
    for identity in state.domains():
        domain = state.domain_by_id(identity)
        found += [str(name) for name in domain.push_pop_ranges()]
        found += [str(name) for name in domain.start_end_ranges()]
    return tuple(found)
