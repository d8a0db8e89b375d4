"""Reading whatever profile a path holds: the format is told by content, never by the name alone.

What cannot be read is an error that says what the file looks like and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tileprof.collect import (
    att_file,
    csv_rows,
    hatchet_file,
    ncu_csv,
    ncu_foreign,
    nsys_file,
    rocpd_file,
    rocprof_compute_file,
    rocprof_file,
    rocprofv3_csv,
    rocprofv3_json,
    rocprofv3_text,
)
from tileprof.collect.profile import ForeignProfile
from tileprof.collect.sqlite_file import MAGIC, Database
from tileprof.collect.text_file import decode, nothing_in, read_json, read_text
from tileprof.errors import MeasurementInvalid, ProfileFormatError

_NCU_MAGIC = b"NVR\x00"
_MOST_JSON_BYTES = 1 << 30
_KNOWN = (
    ".ncu-rep, CSV pages of ncu, SQLite exports and CSV of nsys, folders, CSV, JSON and rocpd databases of rocprofv3, workloads of "
    "rocprof-compute, CSV and databases of rocprof, text of rocprofv2, .hatchet of Proton"
)

_LEADS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a gzip archive", "unpack it first: gunzip FILE"),
    (b"\xfd7zXZ", "an xz archive", "unpack it first: xz -d FILE"),
    (b"PK\x03\x04", "a zip archive", "unpack it and name the folder; a bundle of ours is launched, not imported"),
    (b"\x7fELF", "a program or a code object", "profile it, and import what the profiler writes"),
    (b"\x89PNG", "a picture", "import the profile that it was drawn from"),
    (b"%PDF", "a document", "import the profile that it was made from"),
)
_ENDINGS = {
    ".nsys-rep": ("a report of Nsight Systems", "export it: nsys export --type sqlite FILE.nsys-rep"),
    ".qdrep": ("an old report of Nsight Systems", "export it: nsys export --type sqlite FILE.qdrep"),
    ".pftrace": ("a Perfetto trace", "let rocprofv3 write --output-format csv rocpd instead"),
    ".otf2": ("an OTF2 trace", "let rocprofv3 write --output-format csv rocpd instead"),
    ".att": ("a raw thread trace", "decode it with rocprof-trace-decoder, and import its ui_output folder"),
    ".yaml": ("a YAML file", "workloads are run with `tileprof run`; import takes profiles"),
    ".yml": ("a YAML file", "workloads are run with `tileprof run`; import takes profiles"),
}


def read(path: Path, passed_over: list[str] | None = None) -> list[ForeignProfile]:
    """Every profile in a file or folder; of a folder what cannot be read, or holds no kernel, is added to ``passed_over`` in words.

    Raises :class:`ProfileFormatError` where there is none or it is damaged, and whatever the format's reader raises.
    """
    if not path.exists():
        raise ProfileFormatError(f"there is no {path}", remedy="check the path")
    return _folder(path, [] if passed_over is None else passed_over) if path.is_dir() else [_file(path)]


def _folder(folder: Path, passed_over: list[str]) -> list[ForeignProfile]:
    """A workload of rocprof-compute, a thread trace, or a folder with files: rocprofv3's CSV files go together."""
    if rocprof_compute_file.is_folder(folder):
        return [rocprof_compute_file.read(folder)]
    if (folder / att_file.NAME).is_file():
        return [att_file.read(folder)]
    profiles: list[ForeignProfile] = []
    problems: list[ProfileFormatError | MeasurementInvalid] = []

    def take(reader: Callable[..., ForeignProfile | list[ForeignProfile]], *what: Any) -> None:
        try:
            found = reader(*what)
            profiles.extend(found if isinstance(found, list) else [found])
        except (ProfileFormatError, MeasurementInvalid) as error:  # others of the folder may be good
            problems.append(error)

    files = list(_files(folder))
    tables = [file for file in files if _is_rocprofv3_table(file)]
    if tables:
        take(rocprofv3_csv.read, tables)
    together = set(tables)
    for file in files:
        if file not in together:
            take(_file, file)
    for inner in sorted(entry for entry in folder.rglob("*") if entry.is_dir()):
        if _is_whole(inner):
            take(_folder, inner, passed_over)
    if not profiles:
        seen = "; ".join(error.message for error in problems[:3]) or "it is empty"
        invalid = next((error for error in problems if isinstance(error, MeasurementInvalid)), None)
        if invalid is not None:
            raise MeasurementInvalid(f"{folder} holds no profile of a kernel: {seen}", remedy=invalid.remedy)
        raise ProfileFormatError(f"{folder} holds no profile that can be read: {seen}", remedy=f"these can: {_KNOWN}")
    passed_over += [error.message for error in problems]
    return profiles


def _is_whole(folder: Path) -> bool:
    """Whether a folder is one profile as it stands."""
    return rocprof_compute_file.is_folder(folder) or (folder / att_file.NAME).is_file()


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder that may be profiles, without those of folders that are read as a whole."""
    wholes = {inner for inner in folder.rglob("*") if inner.is_dir() and _is_whole(inner)}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.startswith(".") and not any(parent in wholes for parent in file.parents):
            yield file


def _is_rocprofv3_table(file: Path) -> bool:
    if file.suffix.lower() != ".csv":
        return False
    with file.open("rb") as stream:
        head = decode(stream.read(1 << 16))
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines:
        return False
    header = csv_rows.Table(tuple(name.strip().lower() for name in csv_rows.split_line(lines[0])), ())
    kind = rocprofv3_csv.kind_of(header)
    # statistics of v1 have no standard deviation, and are read by themselves
    return kind is not None and (kind != "summary" or header.has("stddev"))


def ncu_reports(paths: Iterable[Path]) -> list[Path]:
    """The reports of Nsight Compute among files and in folders."""
    found = []
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as stream:
                    if _is_ncu_report(file, stream.read(len(_NCU_MAGIC))):
                        found.append(file)
    return found


def _is_ncu_report(path: Path, head: bytes) -> bool:
    return head.startswith(_NCU_MAGIC) or path.suffix in (".ncu-rep", ".ncu-repz")


def _file(path: Path) -> ForeignProfile:
    with path.open("rb") as stream:
        head = stream.read(1 << 16)
    if not head.strip():
        raise nothing_in(path)
    if _is_ncu_report(path, head):
        return ncu_foreign.read(path)
    if head.startswith(MAGIC):
        return _database(path)
    for lead, looks, remedy in _LEADS:
        if head.startswith(lead):
            raise ProfileFormatError(f"{path} is {looks}", remedy=remedy)
    if path.suffix in _ENDINGS:
        looks, remedy = _ENDINGS[path.suffix]
        raise ProfileFormatError(f"{path} is {looks}, which cannot be read here", remedy=remedy)
    if b"\x00" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise ProfileFormatError(
            f"{path} is a binary file of a form that is not known", remedy=f"these can be read: {_KNOWN}"
        )
    text = decode(head).lstrip()
    return _json(path) if text[:1] in ("{", "[") else _text(path)


def _database(path: Path) -> ForeignProfile:
    with Database(path) as database:
        names = database.names
        nsys = nsys_file.looks_like(database)
    if nsys:
        return nsys_file.read(path)
    if any(name.startswith("rocpd_") for name in names):
        return rocpd_file.read(path)
    if "KERN" in names:
        return rocprof_file.read_database(path)
    tables = ", ".join(sorted(names)[:5]) or "no tables"
    if "cases" in names and "provenances" in names:
        raise ProfileFormatError(f"{path} is a run of tileprof", remedy="name its folder: tileprof report RUN_DIR")
    raise ProfileFormatError(
        f"{path} is a SQLite file with {tables}, and no profile that is known", remedy=f"these can be read: {_KNOWN}"
    )


def _json(path: Path) -> ForeignProfile:
    size = path.stat().st_size
    if size > _MOST_JSON_BYTES:
        raise ProfileFormatError(
            f"{path} has {size >> 20} MiB of JSON",
            remedy="collect rocpd instead, which is read row by row: --output-format rocpd",
        )
    record = read_json(path)
    readers: tuple[tuple[Callable[[Any], bool], Callable[[Any, Path], ForeignProfile]], ...] = (
        (hatchet_file.is_hatchet, hatchet_file.parse),
        (att_file.is_code, att_file.parse),
        (lambda value: isinstance(value, dict) and rocprofv3_json.KEY in value, rocprofv3_json.parse),
    )
    for matches, parse in readers:
        if matches(record):
            return parse(record, path)
    if isinstance(record, dict) and "traceEvents" in record:
        raise ProfileFormatError(
            f"{path} is a Chrome trace, as torch's profiler writes",
            remedy="profile with nsys or rocprofv3; a trace has no counters, registers or source lines",
        )
    what = f"an object with {', '.join(list(record)[:5])}" if isinstance(record, dict) else "a list"
    raise ProfileFormatError(
        f"{path} is JSON, {what}, and no profile that is known", remedy=f"these can be read: {_KNOWN}"
    )


def _text(path: Path) -> ForeignProfile:
    text = read_text(path)
    if ncu_csv.looks_like(text):
        return ncu_csv.read(path)
    if nsys_file.is_stats(text):
        return nsys_file.read_stats(path)
    if rocprof_file.is_text(text):
        return rocprof_file.read_text(text, path)
    if rocprofv3_text.is_summary(text):
        return rocprofv3_text.read(text, path)
    first = next(line for line in text.splitlines() if line.strip())
    what = f"text that begins with {first.strip()[:60]!r}"
    if "," in first:
        table = csv_rows.parse(text, path)
        kind = rocprofv3_csv.kind_of(table)
        if kind == "summary":
            return _statistics(path, table)
        if kind is not None:
            return rocprofv3_csv.read([path])
        if rocprof_file.is_wide(table.header):
            whole = path.name == rocprof_compute_file.MAIN and rocprof_compute_file.is_folder(path.parent)
            return rocprof_compute_file.read(path.parent) if whole else rocprof_file.read_table(path, table)
        if all(re.fullmatch(r"[\w .%#()/-]{1,40}", name) for name in table.header):
            what = f"a table with columns {', '.join(table.header[:5])}"
    raise ProfileFormatError(f"{path} is {what}, and no profile that is known", remedy=f"these can be read: {_KNOWN}")


def _statistics(path: Path, table: csv_rows.Table) -> ForeignProfile:
    """Statistics by kernel: of rocprofv3 where they have a standard deviation, else of rocprof v1."""
    if table.has("stddev"):
        return rocprofv3_csv.read([path])
    launches = rocprofv3_csv.summaries(list(table.rows), "hip", rocprof_file.V1, 0)
    notes = (f"{table.dropped} damaged rows were left out",) if table.dropped else ()
    return ForeignProfile("rocprof statistics", rocprof_file.V1, "", tuple(launches), notes=notes)
