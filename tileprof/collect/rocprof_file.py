"""rocprof v1 and v2: wide tables with a column a v1's database, v2's text on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tileprof.collect import csv_rows, text_file
from tileprof.collect.amd import Agent, Dispatch, launch_of
from tileprof.collect.csv_rows import Table, number, whole
from tileprof.collect.profile import CallStatistic, ForeignLaunch, ForeignProfile, Range
from tileprof.collect.scrub import plain
from tileprof.collect.sqlite_file import Database
from tileprof.errors import MeasurementInvalid, ProfileFormatError
from tileprof.store.records import Provenance

V1, V2 = "rocprof", "rocprofv2"

# our field -> the column's name in v1, v2 and rocprof-compute (lower case)
_COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("kernelname", "kernel_name"),
    "device": ("gpu-id", "gpu_id"),
    "process": ("pid", "process_id"),
    "dispatch": ("index", "dispatch_id"),
    "items": ("grd", "grid_size"),
    "group": ("wgr", "workgroup_size"),
    "lds": ("lds", "lds_per_workgroup"),
    "scratch": ("scr", "scratch_per_workitem", "scratch_size"),
    "vgprs": ("arch_vgpr", "vgpr"),
    "agprs": ("accum_vgpr", "accumulative_vgpr"),
    "sgprs": ("sgpr",),
    "start": ("beginns", "start_timestamp", "begin_timestamp"),
    "end": ("endns", "end_timestamp"),
}
_OTHERS = {
    "queue-id", "queue-index", "queue_id", "tid", "thread_id", "wave_size", "sig", "obj", "dispatchns", "completens", "durationns",
    "correlation_id", "kernel_id", "fbar", "xcc_index",
}  # fmt: skip
_LEFT_OVER = re.compile(
    r"^(?:" + "|".join(_OTHERS | {c for names in _COLUMNS.values() for c in names}) + r")(?:_\d+)?$"
)
"""Columns that are no counters, with the numbers that merging tables appends."""

_INSTANCE = re.compile(r"^(.+)\[(\d+)\]$")


def is_wide(header: Sequence[str]) -> bool:
    """Whether these columns are a wide table of v1, v2 or rocprof-compute."""
    have = set(header)
    return (
        bool(have & {"kernelname", "kernel_name"}) and bool(have & {"grd", "grid_size"}) and "counter_name" not in have
    )


def version_of(header: Sequence[str]) -> str:
    """Which tool wrote a wide table."""
    return V1 if "kernelname" in header or "queue-id" in header else V2


def field_of(row: Mapping[str, str], name: str) -> str | None:
    """The value of one of our fields, whatever its column is called."""
    return next((row[column] for column in _COLUMNS[name] if row.get(column)), None)


def counters_of(row: Mapping[str, str], names: Mapping[str, str], channels: int | None = None) -> dict[str, float]:
    """Counters of a row by their own spelling (``names`` maps lower case to it); cells without a number are absent.

    ``X[0]`` to ``X[n-1]`` also give ``X_sum``, where ``channels`` says that these are all.
    """
    values: dict[str, float] = {}
    instances: dict[str, dict[int, float]] = {}
    for column, text in row.items():
        if _LEFT_OVER.match(column):
            continue
        value = number(text)
        if value is None:
            continue
        name = names.get(column, column)
        values[name] = value
        if found := _INSTANCE.match(name):
            instances.setdefault(found[1], {})[int(found[2])] = value
    for name, parts in instances.items():
        if f"{name}_sum" not in values and channels is not None and sorted(parts) == list(range(channels)):
            values[f"{name}_sum"] = sum(parts.values())
    return values


def dispatch_of(row: Mapping[str, str], agent: Agent, passes: Sequence[Mapping[str, float]]) -> Dispatch:
    """A row as a dispatch."""
    start, end = field_of(row, "start"), field_of(row, "end")
    return Dispatch(
        name=field_of(row, "name") or "",
        agent=agent,
        process=whole(field_of(row, "process")),
        work_items=whole(field_of(row, "items")),
        group_size=whole(field_of(row, "group")),
        vgprs=whole(field_of(row, "vgprs")),
        agprs=whole(field_of(row, "agprs")),
        sgprs=whole(field_of(row, "sgprs")),
        lds_bytes=whole(field_of(row, "lds")),
        scratch_bytes=whole(field_of(row, "scratch")),
        start_ns=_time(start),
        end_ns=_time(end),
        passes=passes,
        # spreadsheets write 8.1097E+14, which leaves no nanoseconds
        rounded_times=any("E" in (text or "").upper() for text in (start, end)),
    )


def _time(text: str | None) -> float | None:
    """A time in nanoseconds; fractions occur where a tool took the mean of several passes."""
    return whole(text) if re.fullmatch(r"\d+", (text or "").strip()) else number(text)


def spelled(text: str) -> dict[str, str]:
    """Column names of a CSV text's first line: lower case -> as written."""
    first = text.lstrip("\ufeff\n\r ").partition("\n")[0]
    return {name.strip().lower(): name.strip() for name in csv_rows.split_line(plain(first))}


def read_table(path: Path, table: Table, agent: Agent | None = None) -> ForeignProfile:
    """A wide table: results.csv of v1, or of v2's file plugin.  ``agent`` is the GPU, which the table does not tell."""
    names = spelled(text_file.read_text(path))
    tool = version_of(table.header)
    launches = _launches(table.rows, names, tool, agent or Agent())
    notes = [f"{table.dropped} damaged rows were left out"] if table.dropped else []
    return ForeignProfile(f"{tool} CSV", tool, "", launches, notes=tuple(notes))


def _launches(
    rows: Sequence[Mapping[str, str]], names: Mapping[str, str], tool: str, agent: Agent
) -> tuple[ForeignLaunch, ...]:
    found: list[ForeignLaunch] = []
    for row in rows:
        values = counters_of(row, names)
        source = Provenance("measured", tool, "", "counters" if values else "kernel trace")
        found.append(launch_of(dispatch_of(row, agent, [values] if values else ()), len(found), source))
    return tuple(found)


def read_database(path: Path) -> ForeignProfile:
    """results.db of v1: the table KERN, whose columns have hyphens."""
    with Database(path) as database:
        if not database.has("KERN"):
            raise ProfileFormatError(f"{path} has no table KERN: it is no database of rocprof")
        columns = database.columns("KERN")
        rows = [
            {name.lower(): "" if row[name] is None else str(row[name]) for name in columns}
            for row in database.rows("KERN", *columns)
        ]
    return ForeignProfile(
        "rocprof database", V1, "", _launches(rows, {name.lower(): name for name in columns}, V1, Agent())
    )


_ITEM = re.compile(r'(\w+)\(("(?:[^"]|"(?!\)))*"|[^()]*(?:\([^()]*\)[^()]*)*)\)')


def is_text(text: str) -> bool:
    """Whether a text is what rocprofv2 prints."""
    return re.search(r"^(?:Dispatch_ID\(\d+\),|Domain\(\w+\),|ROCProfilerV2: )", text, re.MULTILINE) is not None


def read_text(text: str, path: Path) -> ForeignProfile:
    """What rocprofv2 prints: ``Dispatch_ID(1), ... NAME(value)`` and ``Domain(...)`` lines, the program's own in between."""
    launches: list[ForeignLaunch] = []
    sums: dict[tuple[str, str], list[float]] = {}
    marks: list[Mapping[str, str]] = []
    for line in text.splitlines():
        items = {name.lower(): value.strip('"') for name, value in _ITEM.findall(line)}
        if line.startswith("Dispatch_ID("):
            launches.append(_text_launch(line, items, len(launches)))
        elif line.startswith("Domain(ROCTX"):
            marks.append(items)
        elif line.startswith("Domain("):
            start, end = whole(items.get("start_timestamp")), whole(items.get("end_timestamp"))
            entry = sums.setdefault(
                (items["domain"], items.get("function") or items.get("operation_name", "")), [0, 0.0]
            )
            entry[0] += 1
            entry[1] += end - start if start is not None and end is not None else 0
    if not launches and not sums and not marks:
        raise MeasurementInvalid(f"{path}: rocprofv2 recorded no kernel", remedy="check that the program launches one")
    calls = tuple(CallStatistic(domain, name, int(count), total) for (domain, name), (count, total) in sums.items())
    return ForeignProfile("rocprofv2 text", V2, "", tuple(launches), tuple(_ranges(marks)), calls)


def _text_launch(line: str, items: Mapping[str, str], index: int) -> ForeignLaunch:
    names = {name.lower(): name for name, _ in _ITEM.findall(line)}
    known = {"lds", "kernel_name"}
    values = counters_of({key: value for key, value in items.items() if key not in known}, names)
    source = Provenance("measured", V2, "", "counters" if values else "kernel trace")
    return launch_of(dispatch_of(items, Agent(), [values] if values else ()), index, source)


def _ranges(marks: Sequence[Mapping[str, str]]) -> Iterator[Range]:
    """ROCTX lines: a message opens a range (``ROCTX-RANGE:`` or one with an id), a line without one closes the last of its id."""
    open_: dict[str, list[tuple[str, float]]] = {}
    for mark in marks:
        moment = whole(mark.get("timestamp")) or 0
        identity = mark.get("roctx_id", "0")
        message = mark.get("roctx_message", "")
        if message.startswith("ROCTX-MARK:"):
            yield Range(message.removeprefix("ROCTX-MARK:").strip(), moment, moment)
        elif message:
            open_.setdefault(identity, []).append((message.removeprefix("ROCTX-RANGE:").strip(), moment))
        elif open_.get(identity):
            name, start = open_[identity].pop()
            yield Range(name, start, moment)
