"""Nsight Compute's CSV: the details page (a row a value), the raw page (a row a launch), the source page (a row an instruction).

Numbers have thousands separators and units scaled by row; a program's own output and ``==PROF==`` lines may stand before the
table.  Process name, host name and identifiers are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tileprof.collect import csv_rows
from tileprof.collect.csv_rows import Table, number, whole
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.collect.scrub import kernel_name
from tileprof.collect.text_file import read_text
from tileprof.errors import MeasurementInvalid, ProfileFormatError
from tileprof.metrics import make, nvidia
from tileprof.store.records import Ceiling, Metric, Provenance

TOOL = "ncu"
_BASE = ("id", "kernel name")

SOURCE_COLUMNS = {
    "instructions executed": "executed.instructions",
    "# samples": "stall.samples",
    "l1 wavefronts shared": "shared.transactions",
    "l1 wavefronts shared ideal": "shared.transactions_ideal",
    "l2 theoretical sectors global": "global.sectors",
    "l2 theoretical sectors global ideal": "global.sectors_ideal",
}
"""Column of the source page -> metric per instruction."""


def looks_like(text: str) -> bool:
    """Whether a text holds a page of ncu."""
    return (
        re.search(r'^"ID","Process ID"|^"Kernel Name",|==PROF==|==WARNING== No kernels', text, re.MULTILINE) is not None
    )


def read(path: Path) -> ForeignProfile:
    """The page in a file.

    Raises :class:`MeasurementInvalid` where ncu says that it profiled nothing, :class:`ProfileFormatError` for other damage.
    """
    text = read_text(path)
    if re.search(r'^"Kernel Name",', text, re.MULTILINE) and not re.search(r'^"ID",', text, re.MULTILINE):
        return _source_page(text, path)
    try:
        table = csv_rows.parse(_from_header(text), path, starts=("id",), pad=True)
    except ProfileFormatError:
        if "No kernels were profiled" in text:
            raise MeasurementInvalid(
                f"{path}: ncu profiled no kernel",
                remedy="check its kernel filter; it ends with status 0 all the same",
            ) from None
        raise ProfileFormatError(
            f"{path} holds no table of ncu", remedy="export it again: ncu --import FILE.ncu-rep --page raw --csv"
        ) from None
    notes = [f"{table.dropped} damaged rows were left out"] if table.dropped else []
    spelled = _spelled(text)
    ceilings: tuple[Ceiling, ...] = ()
    if table.has("metric name", "metric value"):
        launches, more = _details(table)
        ceilings = _body_ceilings(table, launches)
        form = "ncu CSV, details page"
    else:
        launches, more = _raw(table, spelled)
        ceilings = nvidia.ceilings(launches[0].raw, launches[0].target, TOOL) if launches else ()
        form = "ncu CSV, raw page"
    if not launches:
        raise ProfileFormatError(f"{path} holds column names and no launch", remedy="its profiler was ended too early")
    return ForeignProfile(form, TOOL, "", tuple(launches), ceilings=ceilings, notes=(*notes, *more))


def _from_header(text: str) -> str:
    """The text from the line that begins with the column ID, without ncu's messages and the program's output after it."""
    start = re.search(r'^"?ID"?,', text, re.MULTILINE)
    if start is None:
        return ""
    lines = text[start.start() :].splitlines()
    return "\n".join(line for line in lines if not line.startswith("==")) + ("\n" if text.endswith("\n") else "")


def _spelled(text: str) -> dict[str, str]:
    """Column names as written, by lower case."""
    start = re.search(r'^"?ID"?,.*$', text, re.MULTILINE)
    names = csv_rows.split_line(start[0]) if start else []
    return {name.strip().lower(): name.strip() for name in names}


def _details(table: Table) -> tuple[list[ForeignLaunch], list[str]]:
    """A row a value: launches in the order of their ids, with what several sections say once."""
    found: dict[str, tuple[Mapping[str, str], dict[str, float]]] = {}
    uncollectable: dict[str, None] = {}
    for row in table.rows:
        identity = row["id"].strip()
        if not identity.isdigit():
            continue  # output of the program between the rows
        values = found.setdefault(identity, (row, {}))[1]
        name = row["metric name"].strip()
        if not name:
            continue  # what a rule says
        counter = nvidia.DETAILS.get((row.get("section name", ""), name), name if "__" in name or "." in name else "")
        value = number(row["metric value"])
        if value is None and counter:
            uncollectable[counter] = None
        elif value is not None and counter and not row.get("body item label"):
            values.setdefault(counter, nvidia.base_value(value, row.get("metric unit", "")))
    launches = [_launch(row, values, index) for index, (row, values) in enumerate(found.values())]
    notes = [f"counters without a value, treated as missing: {', '.join(uncollectable)}"] if uncollectable else []
    return launches, notes


def _body_ceilings(table: Table, launches: Sequence[ForeignLaunch]) -> tuple[Ceiling, ...]:
    """What the roofline section draws as roofs: its items are labelled and complete."""
    values: dict[str, float] = {}
    for row in table.rows:
        counter = nvidia.ROOF_ITEMS.get(row.get("metric name", "").strip())
        value = number(row.get("metric value"))
        if counter is not None and value is not None and row.get("body item label", "").endswith("Roofline"):
            values.setdefault(counter, nvidia.base_value(value, row.get("metric unit", "")))
    return nvidia.ceilings(values, launches[0].target, TOOL) if launches else ()


def _raw(table: Table, spelled: Mapping[str, str]) -> tuple[list[ForeignLaunch], list[str]]:
    """A row a launch, after a row of units."""
    units: Mapping[str, str] = {}
    launches: list[ForeignLaunch] = []
    for row in table.rows:
        if not row["id"].strip():
            units = row
            continue
        values: dict[str, float] = {}
        for column, text in row.items():
            value = number(text)
            name = spelled.get(column, column)
            if value is not None and ("__" in name or name.startswith("memory_") or name == "inst_executed"):
                values[name] = nvidia.base_value(value, units.get(column, ""))
        launches.append(_launch(row, values, len(launches)))
    return launches, []


def _launch(row: Mapping[str, str], values: Mapping[str, float], index: int) -> ForeignLaunch:
    capability = re.fullmatch(r"(\d+)\.(\d+)", row.get("cc", "").strip())
    arch = nvidia.arch_of((int(capability[1]), int(capability[2])) if capability else None)
    passes = values.get("profiler__replayer_passes")
    detail = "Nsight Compute" + (f", {passes:.0f} passes" if passes else "")
    provenance = Provenance("measured", TOOL, "", detail)
    metrics = nvidia.launch_metrics(values, arch, provenance, index)
    return ForeignLaunch(
        index=index,
        kernel=kernel_name(row["kernel name"]),
        target=f"cuda:{arch}" if arch else "cuda",
        grid=_triple(row.get("grid size", "")),
        block=_triple(row.get("block size", "")),
        process=whole(row.get("process id")),
        metrics=tuple(metrics),
        raw=dict(values),
        max_clock_hz=nvidia.max_clock_hz(values),
    )


def _triple(text: str) -> tuple[int, int, int] | None:
    found = re.fullmatch(r"\((\d+),\s*(\d+),\s*(\d+)\)", text.strip())
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _source_page(text: str, path: Path) -> ForeignProfile:
    """Blocks of instructions, each after a line with the kernel's name."""
    launches: list[ForeignLaunch] = []
    dropped = 0
    for name, lines in _blocks(text):
        table = csv_rows.parse("\n".join(lines), path, starts=("address", "source"), pad=True)
        dropped += table.dropped
        index = len(launches)
        provenance = Provenance("measured", TOOL, "", "Nsight Compute, source page")
        rows = tuple(_instruction(row) for row in table.rows)
        metrics = tuple(_totals(rows, provenance, index))
        launches.append(ForeignLaunch(index, kernel_name(name), "cuda", metrics=metrics, lines=rows))
    if not launches:
        raise ProfileFormatError(f"{path} holds no kernel of ncu's source page")
    notes = (f"{dropped} damaged rows were left out",) if dropped else ()
    return ForeignProfile("ncu CSV, source page", TOOL, "", tuple(launches), notes=notes)


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    name = ""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith('"Kernel Name",'):
            if lines:
                yield name, lines
            name, lines = csv_rows.split_line(line)[1], []
        elif line.strip():
            lines.append(line)
    if lines:
        yield name, lines


def _instruction(row: Mapping[str, str]) -> SourceValue:
    values = {
        metric: value for column, metric in SOURCE_COLUMNS.items() if (value := number(row.get(column))) is not None
    }
    return SourceValue(None, None, " ".join(row.get("source", "").split()), values)


def _totals(rows: Sequence[SourceValue], provenance: Provenance, index: int) -> Iterator[Metric]:
    totals: dict[str, float] = {}
    for row in rows:
        for name, value in row.values.items():
            totals[name] = totals.get(name, 0.0) + value
    if "shared.transactions" in totals and "shared.transactions_ideal" in totals:
        totals["shared.conflicts"] = totals["shared.transactions"] - totals["shared.transactions_ideal"]
    for name, value in totals.items():
        metric = make(name, value, provenance, launch=index)
        if metric is not None:
            yield metric
