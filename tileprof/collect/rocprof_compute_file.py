"""Folders of rocprof-compute (formerly omniperf): ``pmc_perf.csv`` with every counter, level counters, the machine, ceilings.

From ``sysinfo.csv`` only what the GPU is gets read; host name, command, BIOS and kernel stay behind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tileprof.collect import csv_rows, rocprof_file
from tileprof.collect.amd import Agent, launch_of
from tileprof.collect.csv_rows import Table, number, whole
from tileprof.collect.profile import ForeignLaunch, ForeignProfile
from tileprof.collect.rocprofv3_log import missing_counters
from tileprof.collect.scrub import kernel_name
from tileprof.collect.text_file import read_text
from tileprof.errors import ProfileFormatError
from tileprof.metrics.amd_blocks import ACCUMULATE
from tileprof.store.records import Ceiling, Provenance

TOOL = "rocprof-compute"
MAIN = "pmc_perf.csv"

_LEVELS = re.compile(r"^(SQ_\w*LEVEL\w*)\.csv$")

_CEILINGS = {
    "hbmbw": ("dram.bytes_per_s", ""),
    "l2bw": ("l2.bytes_per_s", ""),
    "l1bw": ("l1.bytes_per_s", ""),
    "ldsbw": ("shared.bytes_per_s", ""),
    "fp32flops": ("flops_per_s", "vector.float32"),
    "fp64flops": ("flops_per_s", "vector.float64"),
    "fp16flops": ("flops_per_s", "vector.float16"),
    "mfmabf16flops": ("flops_per_s", "matrix.bfloat16"),
    "mfmaf16flops": ("flops_per_s", "matrix.float16"),
    "mfmaf32flops": ("flops_per_s", "matrix.float32"),
    "mfmaf64flops": ("flops_per_s", "matrix.float64"),
    "mfmaf8flops": ("flops_per_s", "matrix.float8_e4m3"),
    "mfmai8ops": ("flops_per_s", "matrix.int8"),
}
"""Column of ``roofline.csv`` in GB/s, GFLOP/s or GOP/s -> quantity and unit class of a ceiling."""


def is_folder(path: Path) -> bool:
    """Whether a folder is a workload of rocprof-compute."""
    return (path / MAIN).is_file() or ((path / "sysinfo.csv").is_file() and any(path.glob("pmc_perf_*.csv")))


def read(folder: Path) -> ForeignProfile:
    """The workload in a folder.  Raises :class:`ProfileFormatError` where it has no counters."""
    agent, version = _machine(folder)
    notes: list[str] = []
    main, channels = folder / MAIN, _channels(folder)
    sources = [main] if main.is_file() else sorted(folder.glob("pmc_perf_*.csv"))
    passes = [_rows(path, notes, channels) for path in sources]
    if not any(passes):
        raise ProfileFormatError(
            f"{folder} holds no counters of rocprof-compute",
            remedy="its log.txt says why; profile again with `rocprof-compute profile`",
        )
    for path in sorted(folder.glob("SQ_*.csv")):
        if found := _LEVELS.match(path.name):
            passes.append(_level(found[1], path, notes, channels))
    log = folder / "log.txt"
    if log.is_file():
        absent = missing_counters(read_text(log))
        if absent:
            notes.append(f"counters that this GPU does not have: {', '.join(absent)}")
    if not agent.max_clock_hz:
        notes.append("the workload does not say the GPU's clock: implied clocks are not judged")
    launches = _launches(passes, agent, version)
    ceilings = _ceilings(folder / "roofline.csv", agent.target)
    return ForeignProfile(
        "rocprof-compute workload",
        TOOL,
        version,
        launches,
        ceilings=ceilings,
        gpus=(agent.describe(),),
        notes=tuple(notes),
    )


_Row = tuple[Mapping[str, str], dict[str, float]]


def _rows(path: Path, notes: list[str], channels: int | None) -> list[_Row]:
    """Rows of a table with their counters."""
    try:
        text = read_text(path)
        table = csv_rows.parse(text, path)
    except ProfileFormatError as error:
        notes.append(f"{path.name}: {error.message.partition(' ')[2]}")
        return []
    if not rocprof_file.is_wide(table.header):
        notes.append(f"{path.name} is no table of counters")
        return []
    if table.dropped:
        notes.append(f"{path.name}: {table.dropped} damaged rows were left out")
    names = rocprof_file.spelled(text)
    return [(row, rocprof_file.counters_of(row, names, channels)) for row in table.rows]


def _level(name: str, path: Path, notes: list[str], channels: int | None) -> list[_Row]:
    """A table of one level counter: what it was accumulated to gets that counter's name."""
    rows = _rows(path, notes, channels)
    lacking = False
    for _, values in rows:
        accumulated = values.pop(ACCUMULATE, None)
        if accumulated is None:
            lacking = True
        else:
            values[f"{name}_ACCUM"] = accumulated
    if lacking:
        notes.append(f"{path.name} lacks the accumulated counter: what is derived from it is missing")
    return rows


def _launches(passes: list[list[_Row]], agent: Agent, version: str) -> tuple[ForeignLaunch, ...]:
    """Launches in the order of the first table; other tables' rows are joined by kernel and how-manieth call it is."""
    source = Provenance("measured", TOOL, version, "counters")
    keyed: list[dict[tuple[str, int], _Row]] = []
    for rows in passes:
        counts: dict[str, int] = {}
        entries: dict[tuple[str, int], _Row] = {}
        for row, values in sorted(rows, key=lambda item: whole(rocprof_file.field_of(item[0], "dispatch")) or 0):
            name = kernel_name(rocprof_file.field_of(row, "name") or "")
            entries[name, counts.get(name, 0)] = (row, values)
            counts[name] = counts.get(name, 0) + 1
        keyed.append(entries)
    launches: list[ForeignLaunch] = []
    for key, (row, values) in keyed[0].items():
        others = [entries[key][1] for entries in keyed[1:] if key in entries]
        dispatch = rocprof_file.dispatch_of(row, agent, [values, *others])
        launches.append(launch_of(dispatch, len(launches), source))
    return tuple(launches)


def _system(folder: Path) -> Mapping[str, str]:
    path = folder / "sysinfo.csv"
    if not path.is_file():
        return {}
    table: Table = csv_rows.read(path)
    return table.rows[0] if table.rows else {}


def _machine(folder: Path) -> tuple[Agent, str]:
    """The GPU, and the version of the tool that its log tells."""
    system = _system(folder)
    clock = whole(system.get("max_sclk")) or None
    agent = Agent(
        arch=system.get("gpu_arch", ""),
        name=system.get("gpu_model", ""),
        cu=whole(system.get("cu_per_gpu")),
        xcc=whole(system.get("num_xcd")),
        simds=whole(system.get("simd_per_cu")),
        wave_slots=whole(system.get("max_waves_per_cu")),
        wave_size=whole(system.get("wave_size")),
        max_clock_hz=clock * 1e6 if clock else None,
    )
    log = folder / "log.txt"
    found = None
    if log.is_file() and log.stat().st_size:
        found = re.search(r"(?:Omniperf|rocprof\w*-compute) version: (\S+)", read_text(log)[:4000], re.IGNORECASE)
    return agent, found[1] if found else ""


def _channels(folder: Path) -> int | None:
    """Channels of L2, over which ``TCC_*[i]`` columns run."""
    system = _system(folder)
    channels, dies = whole(system.get("total_l2_chan")), whole(system.get("num_xcd"))
    return channels if channels and dies else None


def _ceilings(path: Path, target: str) -> tuple[Ceiling, ...]:
    """Ceilings that its micro-benchmark measured: the median over the GPUs."""
    if not path.is_file():
        return ()
    table = csv_rows.read(path)
    found = []
    for column, (quantity, unit_class) in _CEILINGS.items():
        values = sorted(value for row in table.rows if (value := number(row.get(column))) is not None)
        if values:
            source = Provenance("measured", TOOL, "", f"micro-benchmark, median of {len(values)} GPUs")
            found.append(Ceiling(target, quantity, unit_class, values[len(values) // 2] * 1e9, source))
    return tuple(found)
