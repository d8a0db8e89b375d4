"""What the readers of AMD's profilers share: devices, and one dispatch turned into a launch with canonical metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang_min import targets
from tileprof.collect.csv_rows import Table, whole
from tileprof.collect.profile import ForeignLaunch
from tileprof.collect.scrub import kernel_name
from tileprof.metrics import amd as amd_metrics
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Agent:
    """One GPU as a profile describes it; what it does not say is None."""

    arch: str = ""
    name: str = ""
    cu: int | None = None
    xcc: int | None = None
    simds: int | None = None
    wave_slots: int | None = None
    wave_size: int | None = None
    max_clock_hz: float | None = None

    @property
    def target(self) -> str:
        """``hip:gfx942``, or ``hip`` where the architecture is not known."""
        return f"hip:{self.arch}" if self.arch else "hip"

    def facts(self) -> dict[str, float]:
        """What is known of it, under the names that formulas use."""
        known = {name: getattr(self, name) for name in ("cu", "xcc", "simds", "wave_slots", "wave_size")}
        return {name: float(value) for name, value in known.items() if value}

    def describe(self) -> dict[str, str | float]:
        """For reports: what it is, without identifiers."""
        record: dict[str, str | float] = {"vendor": "amd", "name": self.name or self.arch, "arch": self.arch}
        return {**record, **({"units": float(self.cu)} if self.cu else {})}


def agent_from(value: Callable[[str], Any]) -> Agent:
    """The agent whose field ``name`` (as in agent_info, lower case) is ``value(name)``."""

    def count(name: str) -> int | None:
        return whole(str(value(name) if value(name) is not None else "")) or None

    name = str(value("name") or "")
    arch = name if name.startswith("gfx") else targets.gfx_name(count("gfx_target_version") or 0)
    product = str(value("product_name") or "")
    if product.lower() in ("", "unknown", name.lower()):
        product = ""
    clock = count("max_engine_clk_fcompute")
    return Agent(
        arch=arch,
        name=product,
        cu=count("cu_count"),
        xcc=count("num_xcc"),
        simds=count("simd_per_cu"),
        wave_slots=count("max_waves_per_cu"),
        wave_size=count("wave_front_size"),
        max_clock_hz=clock * 1e6 if clock else None,
    )


@dataclass(frozen=True)
class Agents:
    """The GPUs of a profile by the ways in which tools name them: a node number, ``Agent 4``, ``GPU-0``."""

    by_node: Mapping[int, Agent] = field(default_factory=dict)

    def find(self, text: str | None) -> Agent:
        """The agent that a column names; where it cannot be told, what all GPUs have in common, else an unknown one."""
        word = (text or "").strip()
        digits = whole(word.rpartition(" ")[2].rpartition("-")[2])
        gpus = list(self.by_node.values())
        if digits is not None:
            if word.upper().startswith("GPU") and digits < len(gpus):
                return gpus[digits]
            if digits in self.by_node:
                return self.by_node[digits]
        return gpus[0] if gpus and all(gpu == gpus[0] for gpu in gpus) else Agent()

    def describe(self) -> tuple[Mapping[str, str | float], ...]:
        """Each kind of GPU once."""
        return tuple(agent.describe() for agent in dict.fromkeys(self.by_node.values()))


def agents_from_table(table: Table) -> Agents:
    """GPUs of an ``agent_info`` file, by node."""
    gpus: dict[int, Agent] = {}
    for row in table.rows:
        node = whole(row.get("node_id"))
        if node is not None and row.get("agent_type", "").upper() == "GPU":
            gpus[node] = agent_from(row.get)
    return Agents(gpus)


@dataclass(frozen=True)
class Dispatch:
    """One dispatch as a tool recorded it.  ``grid`` is in work-items; ``passes`` are counters, one mapping a pass."""

    name: str
    agent: Agent
    process: int | None = None
    grid: Triple | None = None
    block: Triple | None = None
    work_items: int | None = None
    group_size: int | None = None
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    lds_bytes: int | None = None
    lds_with_dynamic: bool = False
    scratch_bytes: int | None = None
    start_ns: float | None = None
    end_ns: float | None = None
    passes: Sequence[Mapping[str, float]] = ()
    symbol: str = ""
    ranges: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rounded_times: bool = False

    @property
    def duration_ns(self) -> float | None:
        """End minus start; None where that is not a time: not known, rounded away, or negative."""
        if self.start_ns is None or self.end_ns is None or self.rounded_times:
            return None
        duration = self.end_ns - self.start_ns
        return duration if duration > 0 else None


def blocks_of(items: Triple | None, block: Triple | None) -> Triple | None:
    """Blocks of a grid that is given in work-items."""
    if items is None or block is None or 0 in block:
        return None
    x, y, z = (math.ceil(items[i] / block[i]) for i in range(3))
    return x, y, z


def launch_of(dispatch: Dispatch, index: int, provenance: Provenance) -> ForeignLaunch:
    """The launch with its metrics; what the dispatch does not say is missing."""
    agent, duration = dispatch.agent, dispatch.duration_ns
    grid = blocks_of(dispatch.grid, dispatch.block)
    counted = any(dispatch.passes)
    notes = list(dispatch.notes)
    if dispatch.start_ns is not None and dispatch.end_ns is not None and duration is None:
        notes.append(
            "the file's times are rounded: there is no duration"
            if dispatch.rounded_times
            else "a launch ends before it starts: it has no duration"
        )
    facts = agent.facts()
    if duration is not None:
        facts["duration_ns"] = duration
    metrics: list[Metric] = list(_static(dispatch, grid, provenance, index))
    if counted:
        metrics += amd_metrics.launch_metrics(dispatch.passes, facts, agent.arch, provenance, index)
        profiled = make("time.profiled_ns", duration, provenance, launch=index)
        metrics += [profiled] if profiled is not None else []
    raw: dict[str, float] = {}
    for values in reversed(dispatch.passes):
        raw.update(values)
    return ForeignLaunch(
        index=index,
        kernel=kernel_name(dispatch.name),
        target=agent.target,
        symbol=dispatch.symbol,
        device=agent.name,
        process=dispatch.process,
        grid=grid,
        block=dispatch.block,
        start_ns=dispatch.start_ns,
        duration_ns=None if counted else duration,
        metrics=tuple(metrics),
        raw=raw,
        ranges=dispatch.ranges,
        max_clock_hz=agent.max_clock_hz,
        notes=tuple(notes),
    )


def _static(dispatch: Dispatch, grid: Triple | None, tool: Provenance, index: int) -> list[Metric]:
    """Registers, memory and shape, as the profiler shows them: allocated, not asked for."""
    shown = Provenance("measured", tool.tool, tool.version, "as allocated for the dispatch")
    static = Provenance("measured", tool.tool, tool.version, "static part, rounded up; dynamic LDS is not in it")
    vgprs = None if dispatch.vgprs is None else dispatch.vgprs + (dispatch.agprs or 0)
    threads = math.prod(dispatch.block) if dispatch.block else dispatch.group_size
    blocks = math.prod(grid) if grid else None
    if blocks is None and dispatch.work_items is not None and threads:
        blocks = math.ceil(dispatch.work_items / threads)
    lds = "shared.static_bytes" if not dispatch.lds_with_dynamic else "shared.allocated_bytes"
    values = (
        ("registers.vgpr", vgprs, shown),
        ("registers.agpr", dispatch.agprs, shown),
        ("registers.sgpr", dispatch.sgprs, shown),
        (lds, dispatch.lds_bytes, shown if dispatch.lds_with_dynamic else static),
        ("scratch.bytes", dispatch.scratch_bytes, shown),
        ("launch.threads_per_block", threads, shown),
        ("launch.blocks", blocks, shown),
    )
    rows = (make(name, None if value is None else float(value), source, launch=index) for name, value, source in values)
    return [row for row in rows if row is not None]
