"""The join: values measured per machine instruction, summed per tile operation and kind of access.

Primary key is the byte offset of an instruction within its kernel: the bundle has the listing of the binary that ran, with the
operation of each offset, so this is exact.  It is only trusted where the opcodes at those offsets agree; a driver that compiled
the kernel again moves instructions, and then the line table decides: (file, line) -> operation.  What belongs to no operation
is kept, with operation None and access ``unattributed``.  Sums are held against the totals that the profiler gives.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tileprof.analyse.sass_access import access, misread_by_profiler, mnemonic
from tileprof.collect.ncu_file import KernelProfile, MeasuredInstruction, NcuReport
from tileprof.errors import ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

MISREAD = "misread by profiler"
"""Flag of counts that the profiler is known to get wrong."""

WITHOUT_BULK = "without bulk copies"
"""Flag of sectors of a kernel that moves data by the tensor memory accelerator, which the counters of instructions do not see."""
_BULK = ("UTMA", "UBLK")

UNATTRIBUTED = "unattributed"
OTHER = "other"
"""Access of instructions that moved data and whose opcode we do not know."""
TRUST = 0.95
"""Least share of measured instructions whose opcode must stand at the same offset of the listing."""

_OPERATION_SUFFIX = re.compile(r"#op(\d+)$")
_PER_ACCESS = {
    "shared.transactions": "shared",
    "shared.transactions_ideal": "shared",
    "global.sectors": "global",
    "global.sectors_ideal": "global",
}
_REQUESTS = {"shared.requests": "shared", "global.requests": "global"}
_READS = ("load", "ldmatrix", "atomic")

Key = tuple[str, int | None, str | None]
Finder = Callable[[MeasuredInstruction], int | None]
Word = Callable[[str], str]


@dataclass(frozen=True)
class Joined:
    """Measured figures of one launch by tile operation.

    ``key`` says what joined them: ``offset`` (exact) or ``line``.  ``agreement`` is the share of measured instructions whose
    opcode stands at the same offset of the listing, ``attributed`` the share of executed instructions that found an
    operation (None where nothing was executed).  ``notes`` are for the report.
    """

    metrics: tuple[Metric, ...]
    key: str
    agreement: float
    attributed: float | None
    notes: tuple[str, ...]


def join_bundle(report: NcuReport, bundle: Path, grid: Sequence[int] | None = None) -> list[Joined]:
    """Every complete launch of a bundle's kernel in a report, joined with the bundle's listing and operations.

    ``grid`` is that of the launch where the bundle's depends on runtime dimensions.

    ``bundle`` is a directory or a zip file.  Variants of a kernel share its symbol: where some launches ran the bundle's very
    binary, only those are taken.  Raises :class:`ProfileFormatError` where the report has no complete launch of that kernel or
    the bundle no listing.
    """
    try:
        kernel, listing = (json.loads(member(bundle, name)) for name in ("kernel.json", "listing.json"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ProfileFormatError(f"{bundle} is no bundle with a listing: {error}") from None
    if grid is not None:
        kernel["grid"] = list(grid)
    launches = [profile for profile in report.of_symbol(kernel["symbol"]) if profile.complete]
    if not launches:
        others = ", ".join(sorted({profile.symbol for profile in report.kernels}))
        raise ProfileFormatError(
            f"the report has no complete launch of kernel {kernel['symbol']}; it has {others}",
            remedy="profile the program that launches this bundle, and let it end",
        )
    joined = [join(profile, kernel, listing) for profile in launches]
    same = [one for one, profile in zip(joined, launches, strict=True) if not _differences(profile, kernel)]
    return [one for one in same if one.key == "offset"] or same or joined


def member(bundle: Path, name: str) -> bytes:
    """A file of a bundle that is a directory or a zip file."""
    if bundle.is_dir():
        return (bundle / name).read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        return archive.read(name)


def join(profile: KernelProfile, kernel: dict[str, Any], listing: dict[str, Any]) -> Joined:
    """One launch, a bundle's ``kernel.json`` and its ``listing.json``.

    Metrics of the result: the launch's own counters; per operation and access ``shared.transactions``,
    ``shared.transactions_ideal``, ``shared.conflicts``, ``shared.requests`` and the same of ``global.sectors``; per operation
    ``executed.instructions``, ``stall.samples`` and ``stall.<reason>``; and the totals of the kernel.  ``requests`` count an
    instruction's executions, also those in which every lane was switched off.
    """
    notes = _launch_notes(profile, kernel)
    rows = listing_rows(listing)
    key, agreement, find = finder(profile.instructions, kernel, rows, notes)
    sums = sums_of(profile.instructions, find)
    buffers = _Buffers(kernel)
    misread = {
        (find(instruction), how.kind)
        for instruction in profile.instructions
        if misread_by_profiler(instruction.text) and (how := access(instruction.text, instruction.memory)) is not None
    }
    if misread:
        notes.append(
            "this profiler misreads predicate register P0 at asynchronous copies past L1: their measured transactions and "
            "sectors are too small, and flagged"
        )
    rows_of_operations = _rows(sums, buffers, profile, misread)
    bulk = any(name.startswith(_BULK) for name, _ in rows.values())
    metrics = [*profile.metrics, *_totals(profile, sums, notes, bulk), *rows_of_operations]
    executed = [(o, v) for (name, o, _), v in sums.items() if name == "executed.instructions"]
    whole = sum(value for _, value in executed)
    attributed = sum(value for operation, value in executed if operation is not None) / whole if whole else None
    return Joined(tuple(metrics), key, agreement, attributed, tuple(notes))


def finder(
    instructions: Sequence[MeasuredInstruction],
    kernel: dict[str, Any],
    rows: dict[int, tuple[str, int | None]],
    notes: list[str],
    word: Word = mnemonic,
) -> tuple[str, float, Finder]:
    """How operations are found: ``offset`` or ``line``, the share of instructions that stand where the listing has them, and what
    finds them.  ``rows`` are those of :func:`listing_rows` with the same ``word``; a note says where lines have to do."""
    agreement = agreement_of(instructions, rows, word)
    if agreement >= TRUST:
        return "offset", agreement, _by_offset(rows)
    if instructions:
        notes.append(
            f"only {agreement:.0%} of the measured instructions stand where the bundle's listing has them: this is another "
            "binary of the kernel; figures were joined by source line instead"
        )
    return "line", agreement, _by_line(kernel["operations"])


_FACTS = {
    "registers.per_thread": "registers_per_thread",
    "shared.static_bytes": "shared_bytes_static",
    "shared.dynamic_bytes": "shared_bytes_dynamic",
}


def _differences(profile: KernelProfile, kernel: dict[str, Any]) -> list[str]:
    """What says that the profiled launch was not the one the bundle describes; unknown facts say nothing."""
    notes: list[str] = []
    grid, threads = tuple(kernel["grid"]), kernel["threads"]
    known = all(isinstance(extent, int) for extent in grid)  # else it is known at launch alone
    if known and profile.grid is not None and profile.grid != grid:
        notes.append(
            f"the profiled launch has the grid {profile.grid}, the bundle {grid}: figures are of another launch"
        )
    if profile.block is not None and profile.block != (threads, 1, 1):
        notes.append(f"the profiled launch has blocks of {profile.block} threads, the bundle {threads}")
    measured = {metric.metric: metric.value for metric in profile.metrics}
    metadata = kernel.get("metadata") or {}
    for metric, field in _FACTS.items():
        here, there = measured.get(metric), metadata.get(field)
        if here is not None and there is not None and here != there:
            notes.append(
                f"{metric} of the profiled launch is {here:.0f}, of the bundle {there}: this is another binary"
            )
    return notes


def _launch_notes(profile: KernelProfile, kernel: dict[str, Any]) -> list[str]:
    notes = _differences(profile, kernel)
    if profile.missing:
        notes.append(f"counters without a value, treated as missing: {', '.join(profile.missing)}")
    return notes


def listing_rows(listing: dict[str, Any], word: Word = mnemonic) -> dict[int, tuple[str, int | None]]:
    """Offset -> (mnemonic, operation id) of a listing's JSON form; rows without an offset are left out.

    ``word`` finds the mnemonic in an instruction.
    """
    at = {name: i for i, name in enumerate(listing["columns"])}
    return {
        row[at["offset"]]: (word(row[at["opcode"]]), row[at["operation"]])
        for row in listing["rows"]
        if row[at["offset"]] is not None
    }


def agreement_of(
    instructions: Iterable[MeasuredInstruction], rows: dict[int, tuple[str, int | None]], word: Word = mnemonic
) -> float:
    """Share of measured instructions whose mnemonic stands at the same offset of the listing; 0 if none was measured.

    Those whose text was not read say nothing.
    """
    same = [i.offset in rows and rows[i.offset][0] == word(i.text) for i in instructions if i.text]
    return sum(same) / len(same) if same else 0.0


def _by_offset(rows: dict[int, tuple[str, int | None]]) -> Finder:
    return lambda instruction: rows.get(instruction.offset, ("", None))[1]


def _by_line(operations: list[dict[str, Any]]) -> Finder:
    """The operation of a line: a file name that ends in ``#op<id>`` says it; else it is the first one on that line.

    Files are compared by as many trailing parts as the operation's file name has, since a compiler may make names absolute.
    """
    places: dict[tuple[PurePosixPath, int], int] = {}
    for operation in sorted(operations, key=lambda item: int(item["id"])):
        location = operation["location"]
        places.setdefault((PurePosixPath(location["file"]), location["line"]), operation["id"])
    known = {operation["id"] for operation in operations}

    def find(instruction: MeasuredInstruction) -> int | None:
        if instruction.file is None or instruction.line is None:
            return None
        if named := _OPERATION_SUFFIX.search(instruction.file):
            return int(named[1]) if int(named[1]) in known else None
        parts = PurePosixPath(instruction.file).parts
        for (file, line), operation in places.items():
            own = file.parts
            if line == instruction.line and parts[-len(own) :] == own:
                return operation
        return None

    return find


def sums_of(instructions: Iterable[MeasuredInstruction], find: Finder) -> dict[Key, float]:
    """(metric, operation, access) -> sum over instructions; access is None for what has none."""
    sums: dict[Key, float] = defaultdict(float)
    for instruction in instructions:
        operation = find(instruction)
        how = access(instruction.text, instruction.memory)
        for name, value in instruction.values.items():
            if name not in _PER_ACCESS:
                sums[name, operation, None] += value
            elif how is not None or value:
                sums[name, operation, how.kind if how is not None else OTHER] += value
        executed = instruction.values.get("executed.instructions")
        for name, space in _REQUESTS.items():
            if how is not None and space in how.spaces and executed is not None:
                sums[name, operation, how.kind] += executed
    return dict(sums)


def _totals(profile: KernelProfile, sums: dict[Key, float], notes: list[str], bulk: bool) -> Iterator[Metric]:
    """Totals of the kernel, flagged where our sums do not come to the same, or where ``bulk`` copies are not among them."""
    ours: dict[str, float] = defaultdict(float)
    for (name, _, _), value in sums.items():
        ours[name] += value
    for row in profile.total_metrics():
        flag = row.flag
        if row.metric in ours and ours[row.metric] != row.value:
            flag = "sum differs"
            notes.append(
                f"{row.metric}: instructions sum to {ours[row.metric]:.0f}, the profiler's total is {row.value:.0f}"
            )
        if bulk and flag is None and row.metric in ("global.sectors", "global.sectors_ideal"):
            flag = WITHOUT_BULK
        yield Metric(row.metric, row.value, row.unit, row.provenance, launch=row.launch, flag=flag)
    for name in _REQUESTS:
        if name in ours:
            yield from _one(make(name, ours[name], _requests(profile.provenance), launch=profile.index))


def _requests(provenance: Provenance) -> Provenance:
    detail = "executions of the instructions that access this memory"
    return Provenance(provenance.kind, provenance.tool, provenance.version, detail)


def _rows(
    sums: dict[Key, float], buffers: _Buffers, profile: KernelProfile, misread: set[tuple[int | None, str]]
) -> Iterator[Metric]:
    """Records per operation and access, conflicts with them; zero stall reasons of single operations are left out.

    Counts of accesses in ``misread`` are flagged: the profiler gets them wrong.
    """
    rest: dict[str, float] = defaultdict(float)
    for (name, operation, kind), value in _with_conflicts(sums).items():
        if operation is None:
            rest[name] += value
            continue
        if name.startswith("stall.") and value == 0:
            continue
        provenance = _requests(profile.provenance) if name in _REQUESTS else profile.provenance
        buffer = buffers.only(operation, kind, name.partition(".")[0])
        wrong = (operation, kind) in misread and name.startswith(("shared.", "global.")) and name not in _REQUESTS
        row = make(name, value, provenance, operation=operation, buffer=buffer, access=kind, launch=profile.index)
        yield from _one(dataclasses.replace(row, flag=MISREAD) if wrong and row is not None else row)
    for name, value in rest.items():
        if value:
            yield from _one(
                make(name, value, profile.provenance, access=UNATTRIBUTED, launch=profile.index, flag=UNATTRIBUTED)
            )


def _with_conflicts(sums: dict[Key, float]) -> dict[Key, float]:
    """The sums, with the conflicts of each operation and access where both counters have a value there."""
    result = dict(sums)
    for (name, operation, kind), value in sums.items():
        ideal = sums.get(("shared.transactions_ideal", operation, kind))
        if name == "shared.transactions" and ideal is not None:
            result["shared.conflicts", operation, kind] = value - ideal
    return result


class _Buffers:
    """Which buffer an access of an operation must be of: known where the operation has only one that fits."""

    def __init__(self, kernel: dict[str, Any]) -> None:
        self._spaces = {
            "shared": {buffer["name"] for buffer in kernel.get("shared", ())},
            "global": {parameter["name"] for parameter in kernel.get("parameters", ())},
        }
        self._operations = {operation["id"]: operation for operation in kernel["operations"]}

    def only(self, operation: int, kind: str | None, space: str) -> str | None:
        """The single buffer of that space which the operation reads (loads) or writes (stores), or None."""
        record = self._operations.get(operation)
        if kind is None or space not in self._spaces or record is None:
            return None
        reads = kind in _READS or (kind.startswith("cp_async") and space == "global")
        names = {name for name in record["reads" if reads else "writes"] if name in self._spaces[space]}
        return names.pop() if len(names) == 1 else None


def _one(metric: Metric | None) -> Iterator[Metric]:
    if metric is not None:
        yield metric
