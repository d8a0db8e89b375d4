"""A case once more under rocprof v1, which ROCm before 6.2 has: the planned counters in one table.

It runs the program once a pass and puts all passes into one row of each dispatch.  It knows neither PC samples nor, of 8-bit
products, their operations, and level counters that it accumulates stay raw; rocprofv3 is better where it is there
(``profiled_amd.py``).  No AMD GPU was at hand: tested with a stand-in.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang_min import targets
from tileprof.collect import csv_rows, rocprof, rocprof_file
from tileprof.collect.amd import Agent
from tileprof.collect.profile import ForeignLaunch
from tileprof.collect.rocprofv3_log import trouble_in
from tileprof.errors import MeasurementInvalid
from tileprof.execute.child import run_command
from tileprof.execute.measuring import measuring
from tileprof.execute.profiled_amd import COUNTED_LAUNCHES, WARM_LAUNCHES, counted_metrics
from tileprof.execute.results import CaseBuilder
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory


def profile_with_rocprof(
    builder: CaseBuilder,
    request: dict[str, Any],
    directory: RunDirectory,
    limit_s: float,
    raw: Sequence[str],
    plan: TargetPlan,
    stop: threading.Event,
) -> None:
    """Run the launcher under rocprof and add the measured metrics of the case to ``builder``.

    ``request`` is what the launcher was asked, ``raw`` names further counters; ``limit_s`` is for one pass.  Setting ``stop`` ends
    it early.
    """
    symbol, tool = (builder.compiled or {})["symbol"], rocprof.find()
    if tool is None or plan.passes is None:
        builder.note(f"no counters: {rocprof.TOOL} is gone")
        return
    passes = plan.passes.passes
    stem = directory.temporary / f"{builder.case.hash}.rocprof"
    job, asked, log = (stem.with_suffix(ending) for ending in (".rocprof.json", ".txt", ".log"))
    table = directory.raw / f"{builder.case.hash}.rocprof.csv"
    launches = {**request, "launches": WARM_LAUNCHES + COUNTED_LAUNCHES, "name": builder.case.id}
    with measuring(builder, rocprof.TOOL, "counters", limit_s):
        job.write_text(json.dumps(launches), encoding="utf-8")
        asked.write_text(rocprof.input_text(passes, kernel=symbol), encoding="utf-8")
        line = rocprof.command(tool, [sys.executable, "-m", "tileprof.launcher", str(job)], asked, table)
        log.unlink(missing_ok=True)
        status = run_command(line, limit_s * max(1, len(passes.passes)), log, stop)
        if status is None:
            return
        said = log.read_text(encoding="utf-8", errors="replace")
        if (error := trouble_in(said)) is not None:
            raise error
        builder.metrics += counted_metrics(_launch(table, symbol, builder, status), raw, "", rocprof.TOOL)


def _launch(table: Path, symbol: str, builder: CaseBuilder, status: int) -> ForeignLaunch:
    """The last launch of the kernel.  MeasurementInvalid where there is none, or where nothing of it was counted."""
    if not table.is_file():
        raise MeasurementInvalid(
            f"{rocprof.TOOL}: it wrote no table and ended with status {status}", remedy="run the same command by hand"
        )
    profile = rocprof_file.read_table(table, csv_rows.read(table), agent_of(builder.case.target.target))
    for note in profile.notes:
        builder.note(note)
    own = [launch for launch in profile.launches if launch.kernel == symbol and launch.raw]
    if not own:
        seen = ", ".join(sorted({launch.kernel for launch in profile.launches})) or "none"
        raise MeasurementInvalid(f"{rocprof.TOOL} counted no launch of kernel {symbol}; kernels it saw: {seen}")
    return own[-1]


def agent_of(target: str) -> Agent:
    """The GPU of this machine for a target, as far as the kernel's topology and the target tell."""
    known = targets.resolve(target)
    gpu = next((one for one in targets.kfd.visible(targets.amd_gpus()) if one.arch == known.arch), None)
    return Agent(
        arch=known.arch,
        name=gpu.name if gpu is not None else "",
        cu=gpu.units if gpu is not None else None,
        xcc=gpu.dies if gpu is not None else None,
        simds=known.registers.partitions,
        wave_slots=known.limits.max_warps if known.limits is not None else None,
        wave_size=known.warp_size,
    )
