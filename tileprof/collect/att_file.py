"""``code.json`` of AMD's thread traces and PC-sampling views: figures per machine instruction with source lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tileprof.collect.pc_samples import place
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.collect.scrub import kernel_name
from tileprof.collect.text_file import read_json
from tileprof.errors import ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

TOOL = "rocprofv3"
NAME = "code.json"

_ISA, _SOURCE, _VADDR = "isa", "source", "vaddr"
_METRICS = {"hit": "executed.instructions", "latency": "wave.cycles", "stall": "wave.dependency_cycles"}
"""Columns of a thread trace -> metric."""


def is_code(record: Any) -> bool:
    """Whether a JSON value is such a file."""
    return isinstance(record, dict) and "code" in record and "header" in record


def read(path: Path) -> ForeignProfile:
    """The file ``path``, which may be a folder that holds it.  Raises :class:`ProfileFormatError`."""
    file = path / NAME if path.is_dir() else path
    return parse(read_json(file), file)


def parse(record: Any, path: Path) -> ForeignProfile:
    """The same of a file that has been read.  Each function is a launch without a time."""
    if not is_code(record):
        raise ProfileFormatError(f"{path} is no code.json of a thread trace")
    header = record["header"]
    columns = [str(name).strip().lower() for name in (header.split(",") if isinstance(header, str) else header)]
    at = {name: index for index, name in enumerate(columns)}
    if not {_ISA, _SOURCE} <= set(at):
        raise ProfileFormatError(f"{path} has columns that are not known: {', '.join(columns)}")
    sampled = "pc_stalled" in at
    how = "PC samples" if sampled else "thread trace of the waves of one compute unit"
    source = Provenance("measured", TOOL, "", how)
    launches: list[ForeignLaunch] = []
    for name, symbol, rows in _functions(record["code"], at):
        lines = tuple(line for row in rows if (line := _line(row, at, sampled)) is not None)
        index = len(launches)
        metrics = tuple(_totals(lines, source, index))
        if any(metric.value for metric in metrics):
            launches.append(ForeignLaunch(index, name, "hip", symbol=symbol, metrics=metrics, lines=lines))
    notes = () if launches else (f"{how}: no instruction was hit",)
    version = str(record.get("version", ""))
    return ForeignProfile("thread trace (code.json)", TOOL, "", tuple(launches), notes=(f"version {version}", *notes))


def _functions(code: Sequence[Sequence[Any]], at: dict[str, int]) -> Iterator[tuple[str, str, list[Sequence[Any]]]]:
    """(name, symbol, rows) of each function: a row ``; symbol`` begins one."""
    name, symbol = "(before the first symbol)", ""
    rows: list[Sequence[Any]] = []
    for row in code:
        text = str(row[at[_ISA]])
        if text.startswith(";"):
            if rows:
                yield name, symbol, rows
            symbol = text.lstrip("; ").strip()
            name, rows = kernel_name(str(row[at[_SOURCE]]) or symbol), []
        else:
            rows.append(row)
    if rows:
        yield name, symbol, rows


def _line(row: Sequence[Any], at: dict[str, int], sampled: bool) -> SourceValue | None:
    values: dict[str, float] = {}
    if sampled:
        issued, stalled = float(row[at["pc_issued"]]), float(row[at["pc_stalled"]])
        values = {"stall.samples": issued + stalled, "stall.selected": issued}
    else:
        values = {metric: float(row[at[column]]) for column, metric in _METRICS.items() if column in at}
    if not any(values.values()):
        return None
    file, line = place(str(row[at[_SOURCE]]))
    return SourceValue(file, line, str(row[at[_ISA]]), values)


def _totals(lines: Sequence[SourceValue], source: Provenance, index: int) -> Iterator[Metric]:
    totals: dict[str, float] = {}
    for line in lines:
        for name, value in line.values.items():
            totals[name] = totals.get(name, 0.0) + value
    for name, value in totals.items():
        metric = make(name, value, source, launch=index)
        if metric is not None:
            yield metric
