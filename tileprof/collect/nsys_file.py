"""Nsight Systems: its SQLite export (launches, NVTX ranges, API calls, copies) and the CSV of ``nsys stats``.

The export holds the whole environment of the profiled processes, the host's name and its users in several tables: none of those is
read, and text with NUL characters, which is environment in the string table, is nobody's name for a kernel.  Tables exist only when
they have something in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tileprof.collect import csv_rows
from tileprof.collect.csv_rows import Table, number, whole
from tileprof.collect.profile import CallStatistic, ForeignLaunch, ForeignProfile, Range
from tileprof.collect.ranges import RangeIndex
from tileprof.collect.scrub import kernel_name, path
from tileprof.collect.sqlite_file import Database
from tileprof.collect.text_file import read_text
from tileprof.errors import MeasurementInvalid, ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Ceiling, Metric, Provenance

TOOL = "nsys"

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
NVTX = "NVTX_EVENTS"

_PUSH_POP, _START_END = 59, 60
_NOISE = re.compile(
    r"OpenGL|OS runtime|initialized successfully|Number of|has (?:started|stopped)|launched by the profiler|flushed on"
    r"|Loaded CUPTI|Enabling trace|Profiling started|backtrace|sampling period",
    re.IGNORECASE,
)
"""Diagnostics that say nothing about what is missing."""


def looks_like(database: Database) -> bool:
    """Whether a database is an export of nsys."""
    return database.has("StringIds") or any(name.startswith("CUPTI_ACTIVITY") for name in database.names)


def read(file: Path) -> ForeignProfile:
    """The export ``file``.

    Raises :class:`ProfileFormatError` for a damaged or other file, :class:`MeasurementInvalid` where no kernel was recorded.
    """
    with Database(file) as database:
        if not looks_like(database):
            raise ProfileFormatError(f"{file} is no export of nsys", remedy="nsys export --type sqlite FILE.nsys-rep")
        return _Export(database, file).profile()


def process_of(global_id: int | None) -> int | None:
    """The process in a globalTid or globalPid: 24 bits above the thread's 24."""
    return None if global_id is None else global_id // 0x1000000 % 0x1000000


class _Export:
    def __init__(self, database: Database, file: Path) -> None:
        self.database = database
        self.file = file
        self.strings: dict[int, str] = {
            row["id"]: row["value"]
            for row in database.rows("StringIds", "id", "value")
            if isinstance(row["value"], str) and "\x00" not in row["value"]
        }
        self.version = self._version()
        self.devices = {row["id"]: row for row in self._devices()}

    def _version(self) -> str:
        if not self.database.has("META_DATA_EXPORT"):
            return ""
        rows = self.database.rows("META_DATA_EXPORT", "name", "value")
        return next((str(row["value"]) for row in rows if row["name"] == "EXPORT_PRODUCT_VERSION"), "")

    def _devices(self) -> Iterator[dict[str, Any]]:
        if self.database.has("TARGET_INFO_GPU"):
            yield from self.database.rows(
                "TARGET_INFO_GPU",
                "id",
                "name",
                "smCount",
                "clockRate",
                "memoryBandwidth",
                "computeMajor",
                "computeMinor",
            )

    def profile(self) -> ForeignProfile:
        ranges = list(self._ranges())
        notes = list(dict.fromkeys(self._diagnostics()))
        launches = tuple(self._launches(RangeIndex(ranges)))
        if not launches:
            why = "it has CUDA graphs as a whole" if self.database.has(GRAPHS) else "; ".join(notes[:3])
            raise MeasurementInvalid(
                f"{self.file} holds no kernel{': ' + why if why else ''}",
                remedy="profile with -t cuda, and with --cuda-graph-trace=node where graphs are launched",
            )
        gpus = tuple({"vendor": "nvidia", "name": str(d["name"]), "arch": _arch(d)} for d in self.devices.values())
        return ForeignProfile(
            "nsys SQLite", TOOL, self.version, launches, tuple(ranges), tuple(self._calls()), ceilings=tuple(self._ceilings()),
            gpus=gpus, notes=tuple(notes),
        )  # fmt: skip

    def _launches(self, index: RangeIndex) -> Iterator[ForeignLaunch]:
        if not self.database.has(KERNELS):
            return
        calls = self._launching_calls()
        source = Provenance("measured", TOOL, self.version, "kernel trace")
        columns = (
            "start", "end", "deviceId", "correlationId", "globalPid", "demangledName", "shortName", "mangledName",
            "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
            "dynamicSharedMemory", "localMemoryPerThread",
        )  # fmt: skip
        for number_of, row in enumerate(self.database.rows(KERNELS, *columns, order="start")):
            process = process_of(row["globalPid"])
            call = calls.get((process, row["correlationId"]))
            # a range belongs to the thread that launches, at the time at which it does
            inside = index.around(call[0], process, call[1]) if call else index.around(row["start"], process, None)
            name = self.strings.get(row["demangledName"]) or self.strings.get(row["shortName"]) or "(no name)"
            device = self.devices.get(row["deviceId"], {})
            arch = _arch(device)
            grid, block = _triple(row, "grid"), _triple(row, "block")
            clock = device.get("clockRate")
            duration = row["end"] - row["start"] if row["start"] is not None and row["end"] is not None else None
            yield ForeignLaunch(
                index=number_of,
                kernel=kernel_name(name),
                symbol=self.strings.get(row["mangledName"], ""),
                target=f"cuda:{arch}" if arch else "cuda",
                device=str(device.get("name", "")),
                process=process,
                grid=grid,
                block=block,
                start_ns=row["start"],
                duration_ns=duration if duration is not None and duration > 0 else None,
                metrics=tuple(_static(row, grid, block, source, number_of)),
                ranges=inside,
                max_clock_hz=float(clock) if clock else None,
            )

    def _launching_calls(self) -> dict[tuple[int | None, int], tuple[float, int]]:
        """(process, correlation id) -> start and thread of the call; ids repeat between processes."""
        if not self.database.has(CALLS):
            return {}
        return {
            (process_of(row["globalTid"]), row["correlationId"]): (row["start"], row["globalTid"] % 0x1000000)
            for row in self.database.rows(CALLS, "start", "globalTid", "correlationId")
            if row["globalTid"] is not None and row["start"] is not None
        }

    def _ranges(self) -> Iterator[Range]:
        """NVTX push/pop ranges of threads, and start/end ranges of processes."""
        if not self.database.has(NVTX):
            return
        for row in self.database.rows(NVTX, "start", "end", "eventType", "text", "textId", "globalTid"):
            if row["eventType"] not in (_PUSH_POP, _START_END) or row["end"] is None:
                continue
            text = row["text"] or self.strings.get(row["textId"], "")
            thread = (
                row["globalTid"] % 0x1000000 if row["globalTid"] is not None and row["eventType"] == _PUSH_POP else None
            )
            yield Range(str(text), row["start"], row["end"], process_of(row["globalTid"]), thread)

    def _calls(self) -> Iterator[CallStatistic]:
        sums: dict[tuple[str, str], list[float]] = {}
        for table, domain in ((CALLS, "CUDA_API"), (COPIES, "MEMCPY"), (FILLS, "MEMSET")):
            if not self.database.has(table):
                continue
            for row in self.database.rows(table, "start", "end", "nameId", "copyKind"):
                name = self.strings.get(row["nameId"], "") or f"kind {row['copyKind']}"
                entry = sums.setdefault((domain, name), [0, 0.0])
                entry[0] += 1
                entry[1] += (row["end"] or 0) - (row["start"] or 0)
        for (domain, name), (count, total) in sums.items():
            yield CallStatistic(domain, name, int(count), total)

    def _diagnostics(self) -> Iterator[str]:
        """Warnings of the profiler about what it may not have recorded."""
        if self.database.has("DIAGNOSTIC_EVENT"):
            for row in self.database.rows("DIAGNOSTIC_EVENT", "severity", "text"):
                if (row["severity"] or 0) >= 2 and row["text"] and not _NOISE.search(row["text"]):
                    yield f"nsys: {path(row['text'].strip())}"

    def _ceilings(self) -> Iterator[Ceiling]:
        """Bandwidth as the driver tells it."""
        for device in self.devices.values():
            if device["memoryBandwidth"]:
                detail = f"memory bandwidth that the driver tells for {device['name']}"
                source = Provenance("datasheet", str(device["name"]), "", detail)
                arch = _arch(device)
                target = f"cuda:{arch}" if arch else "cuda"
                yield Ceiling(target, "dram.bytes_per_s", "", float(device["memoryBandwidth"]), source)


def _arch(device: Mapping[str, Any]) -> str:
    major, minor = device.get("computeMajor"), device.get("computeMinor")
    return f"sm_{major}{minor}" if major is not None and minor is not None else ""


def _triple(row: Mapping[str, Any], name: str) -> tuple[int, int, int] | None:
    values = [row[f"{name}{axis}"] for axis in "XYZ"]
    return None if any(value is None for value in values) else (int(values[0]), int(values[1]), int(values[2]))


def _static(
    row: Mapping[str, Any],
    grid: tuple[int, int, int] | None,
    block: tuple[int, int, int] | None,
    source: Provenance,
    index: int,
) -> Iterator[Metric]:
    values = {
        "registers.per_thread": row["registersPerThread"],
        "shared.static_bytes": row["staticSharedMemory"],
        "shared.dynamic_bytes": row["dynamicSharedMemory"],
        "scratch.bytes": row["localMemoryPerThread"],
        "launch.threads_per_block": block[0] * block[1] * block[2] if block else None,
        "launch.blocks": grid[0] * grid[1] * grid[2] if grid else None,
    }
    for name, value in values.items():
        metric = make(name, None if value is None else float(value), source, launch=index)
        if metric is not None:
            yield metric


SUMMARY = ("total time (ns)", "instances", "name")
TRACE = ("start (ns)", "duration (ns)", "grdx")


def is_stats(text: str) -> bool:
    """Whether a text is what ``nsys stats --format csv`` prints of kernels."""
    return re.search(r"^(?:Time ?\(%\)|Start ?\(ns\)),.*Name", text, re.MULTILINE) is not None


def read_stats(file: Path) -> ForeignProfile:
    """The tables of kernels in what ``nsys stats`` printed: single launches where there is a trace, else sums by kernel."""
    text = read_text(file)
    tables = [csv_rows.parse(part, file) for part in _tables(text)]
    traces = [table for table in tables if table.has(*TRACE)]
    sums = [table for table in tables if table.has(*SUMMARY)]
    launches = [launch for table in traces for launch in _traced(table)]
    form = "nsys stats, trace"
    if not launches:
        launches = [launch for table in sums for launch in _summed(table)]
        form = "nsys stats, sums by kernel"
    if not launches:
        raise ProfileFormatError(
            f"{file} holds no kernels of nsys stats",
            remedy="nsys stats --report cuda_gpu_trace,cuda_gpu_kern_sum --format csv FILE.nsys-rep",
        )
    dropped = sum(table.dropped for table in (traces or sums))
    notes = (f"{dropped} damaged rows were left out",) if dropped else ()
    return ForeignProfile(form, TOOL, "", tuple(launches), notes=notes)


def _tables(text: str) -> Iterator[str]:
    """The tables in the text, each from its header to a blank line; messages before a header are passed over."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if re.match(r"(?:Time ?\(%\)|Start ?\(ns\)),", line):
            lines = [line]
        elif lines and line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []


def _traced(table: Table) -> Iterator[ForeignLaunch]:
    source = Provenance("measured", TOOL, "", "kernel trace")
    index = 0
    for row in table.rows:
        grid = [whole(row.get(f"grd{axis}")) for axis in "xyz"]
        block = [whole(row.get(f"blk{axis}")) for axis in "xyz"]
        if None in grid or None in block:
            continue  # a copy
        registers = make("registers.per_thread", number(row.get("reg/trd")), source, launch=index)
        device = re.sub(r"\s*\(\d+\)$", "", row.get("device", ""))
        yield ForeignLaunch(
            index=index,
            kernel=kernel_name(row["name"]),
            target="cuda",
            device=device,
            grid=(grid[0] or 0, grid[1] or 0, grid[2] or 0),
            block=(block[0] or 0, block[1] or 0, block[2] or 0),
            start_ns=number(row["start (ns)"]),
            duration_ns=number(row["duration (ns)"]),
            metrics=(registers,) if registers else (),
        )
        index += 1


def _summed(table: Table) -> Iterator[ForeignLaunch]:
    for index, row in enumerate(table.rows):
        count = whole(row["instances"]) or 1
        typical = "median" if row.get("med (ns)") else "mean"
        value = number(row.get("med (ns)") or row.get("avg (ns)"))
        least, most = row.get("min (ns)", "?"), row.get("max (ns)", "?")
        source = Provenance("measured", TOOL, "", f"{typical} of {count} launches, {least} to {most} ns")
        made = (
            make("time.profiled_ns", value, source, launch=index),
            make("launch.count", count, source, launch=index),
        )
        metrics = tuple(metric for metric in made if metric is not None)
        yield ForeignLaunch(index, kernel_name(row["name"]), "cuda", count=count, metrics=metrics)
