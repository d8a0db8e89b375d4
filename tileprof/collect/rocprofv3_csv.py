"""rocprofv3's CSV files: one file, or a folder with every pass and process of a run.

Files are told apart by their columns, whatever they are called.  Counters of several passes are joined by the kernel's name
and the how-manieth call of that name it is, since every pass is a process of its own with numbers of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tileprof.collect import csv_rows
from tileprof.collect.amd import Agents, Dispatch, Triple, agents_from_table, launch_of
from tileprof.collect.csv_rows import Table, number, whole
from tileprof.collect.pc_samples import Sample, source_values
from tileprof.collect.profile import CallStatistic, ForeignLaunch, ForeignProfile, Range
from tileprof.collect.ranges import RangeIndex
from tileprof.collect.scrub import kernel_name
from tileprof.errors import ProfileFormatError
from tileprof.metrics import make
from tileprof.store.records import Provenance

TOOL = "rocprofv3"

KINDS = {
    "counters": ("kernel_name", "counter_name", "counter_value"),
    "kernels": ("kind", "kernel_name", "start_timestamp"),
    "agents": ("agent_type", "gfx_target_version"),
    "calls": ("domain", "function", "start_timestamp"),
    "copies": ("kind", "direction", "start_timestamp"),
    "memory": ("kind", "operation", "start_timestamp"),
    "samples": ("sample_timestamp", "exec_mask", "instruction"),
    "summary": ("name", "calls", "totaldurationns"),
}
"""What a file holds -> columns that say so."""

_SUFFIX = re.compile(
    r"_?(counter_collection|kernel_trace|agent_info|(hip|hsa|rccl|marker|rocdecode|rocjpeg)\w*_trace|memory_(copy|allocation)_trace"
    r"|scratch_memory_trace|pc_sampling_\w+|\w*stats)(_first\d+|_excerpt)?$"
)
_PASS = re.compile(r"^(?:pass|pmc)_\d+$")
_API = re.compile(
    r"^(?:__)?(?:hip|hsa|nccl|roctx|rocDec|rocJpeg)(?:[A-Z_]|$)|^[A-Z]+(?:_[A-Z]+)*_(?:API|COPY|ALLOC\w*)(?:_|$)"
)


def kind_of(table: Table) -> str | None:
    """What a table of rocprofv3 holds, or None for another tool's."""
    return next((kind for kind, columns in KINDS.items() if table.has(*columns)), None)


@dataclass
class _Group:
    """Files of one run: same folder but for the pass, same beginning of the name.  Tables by kind, each with its pass."""

    tables: dict[str, list[tuple[str, Table]]]

    def of(self, kind: str) -> list[Table]:
        return [table for _, table in self.tables.get(kind, ())]


def read(paths: Iterable[Path]) -> ForeignProfile:
    """The profile in these CSV files, which may be all of a folder.  Files that are no tables of rocprofv3 are passed over.

    Raises :class:`ProfileFormatError` where none is one, or where the only ones say that no kernel was seen.
    """
    groups: dict[tuple[Path, str], _Group] = {}
    notes: list[str] = []
    agents_near: dict[Path, Agents] = {}
    recognised = 0
    for path in sorted(paths):
        try:
            table = csv_rows.read(path)
        except ProfileFormatError as error:
            notes.append(f"{path.name}: {error.message.partition(' ')[2]}")
            continue
        kind = kind_of(table)
        if kind is None:
            continue
        recognised += 1
        if table.dropped:
            notes.append(f"{path.name}: {table.dropped} damaged rows were left out")
        folder, number_of_pass = _place(path)
        if kind == "agents":
            agents_near.setdefault(folder, agents_from_table(table))
        stem = _SUFFIX.sub("", path.stem)
        # passes are processes of their own: their files differ in the process number
        key = (folder, re.sub(r"\d+", "#", stem) if number_of_pass else stem)
        groups.setdefault(key, _Group(defaultdict(list))).tables[kind].append((number_of_pass, table))
    if not recognised:
        raise ProfileFormatError(
            "no table of rocprofv3 among these files", remedy="name the folder that rocprofv3 wrote to"
        )
    launches: list[ForeignLaunch] = []
    ranges: list[Range] = []
    calls: list[CallStatistic] = []
    gpus: dict[str, Mapping[str, str | float]] = {}
    for (folder, _), group in sorted(groups.items()):
        own = group.of("agents")
        agents = agents_from_table(own[0]) if own else agents_near.get(folder, Agents())
        found = _Reader(group, agents, len(launches))
        launches += found.launches()
        ranges += found.ranges
        calls += found.calls
        notes += found.notes
        gpus.update({str(gpu): gpu for gpu in agents.describe()})
    if not launches:
        seen = sorted({kind for group in groups.values() for kind in group.tables})
        if seen == ["agents"]:
            notes.append("only agent_info was written: no kernel was seen")
    return ForeignProfile(
        format="rocprofv3 CSV",
        tool=TOOL,
        version="",
        launches=tuple(launches),
        ranges=tuple(ranges),
        calls=tuple(calls),
        gpus=tuple(gpus.values()),
        notes=tuple(dict.fromkeys(notes)),
    )


def _place(path: Path) -> tuple[Path, str]:
    """Folder of a file and its pass: ``run/pass_2/host/7_kernel_trace.csv`` lies in ``run/host``, in ``pass_2``."""
    for parent in path.parents:
        if _PASS.match(parent.name):
            return parent.parent / path.parent.relative_to(parent), parent.name
    return path.parent, ""


class _Reader:
    """Turns the tables of one run into launches."""

    def __init__(self, group: _Group, agents: Agents, first: int) -> None:
        self.group = group
        self.agents = agents
        self.first = first
        self.notes: list[str] = []
        self.ranges, self.calls = _calls(group)
        self.calls += _copies(group)

    def launches(self) -> list[ForeignLaunch]:
        traced = [row for table in self.group.of("kernels") for row in table.rows]
        counted = self._counted(traced)
        known = {(row["kernel_name"], row.get("dispatch_id")) for _, row in counted}
        rest = [row for row in traced if (row["kernel_name"], row.get("dispatch_id")) not in known]
        dispatches = [*counted, *((_dispatch(row, self.agents), row) for row in rest)]
        counters, trace = (Provenance("measured", TOOL, "", how) for how in ("counters", "kernel trace"))
        samples = self._samples()
        index = RangeIndex(self.ranges)
        found: list[ForeignLaunch] = []
        for dispatch, row in dispatches:
            start = dispatch.start_ns
            inside = index.around(start, dispatch.process, whole(row.get("thread_id"))) if start else ()
            source = counters if dispatch.passes else trace
            launch = launch_of(replace(dispatch, ranges=inside), self.first + len(found), source)
            own = samples.pop(whole(row.get("dispatch_id")) or -1, ())
            found.append(replace(launch, lines=source_values(own)) if own else launch)
        found += self._sampled_only(samples, len(found))
        found += self._summaries(len(found))
        return found

    def _counted(self, traced: list[dict[str, str]]) -> list[tuple[Dispatch, dict[str, str]]]:
        """Dispatches with the counters of all passes; times of the trace where a table has none of its own."""
        passes: dict[str, list[tuple[dict[str, str], dict[str, float]]]] = {}
        for number_of_pass, table in self.group.tables.get("counters", ()):
            passes.setdefault(number_of_pass, []).extend(self._pivot(table))
        if not passes:
            return []
        times = {row.get("dispatch_id"): row for row in traced}
        calls: dict[tuple[str, int], list[tuple[dict[str, str], dict[str, float]]]] = {}
        for found in passes.values():
            nth: dict[str, int] = defaultdict(int)
            for row, values in found:
                name = kernel_name(row["kernel_name"])
                calls.setdefault((name, nth[name]), []).append((row, values))
                nth[name] += 1
        result = []
        for (name, _), found in calls.items():
            row = found[0][0]
            same = [
                (r, v)
                for r, v in found
                if (r.get("grid_size"), r.get("workgroup_size")) == (row.get("grid_size"), row.get("workgroup_size"))
            ]
            if len(same) < len(found):
                self.notes.append(f"{name[:80]}: passes launched it with different grids; the others were left out")
            timed = row if row.get("start_timestamp") else {**times.get(row.get("dispatch_id"), {}), **row}
            result.append((replace(_dispatch(timed, self.agents), passes=[v for _, v in same]), row))
        return sorted(result, key=lambda item: (item[0].process or 0, whole(item[1].get("dispatch_id")) or 0))

    def _pivot(self, table: Table) -> list[tuple[dict[str, str], dict[str, float]]]:
        """One entry a dispatch, in order of dispatch: its first row and its counters.  Rows come in any order."""
        found: dict[tuple[str, str], tuple[dict[str, str], dict[str, float]]] = {}
        for row in table.rows:
            key = (row.get("process_id", ""), row.get("dispatch_id", ""))
            values = found.setdefault(key, (row, {}))[1]
            value = number(row["counter_value"])
            if value is None:
                self.notes.append(f"{row['counter_name']}: some values are no numbers and were left out")
            elif row["counter_name"] in values:
                values[row["counter_name"]] += value
            else:
                values[row["counter_name"]] = value
        return sorted(
            found.values(),
            key=lambda item: (whole(item[0].get("process_id")) or 0, whole(item[0].get("dispatch_id")) or 0),
        )

    def _samples(self) -> dict[int, list[Sample]]:
        """PC samples by dispatch."""
        found: dict[int, list[Sample]] = defaultdict(list)
        for table in self.group.of("samples"):
            for row in table.rows:
                issued = whole(row.get("wave_issued_instruction"))
                found[whole(row.get("dispatch_id")) or 0].append(
                    Sample(row["instruction"], row.get("instruction_comment", ""), row.get("stall_reason"), issued)
                )
            if not table.rows:
                self.notes.append("PC sampling took 0 samples: the kernels are shorter than its interval")
        return dict(found)

    def _sampled_only(self, samples: dict[int, list[Sample]], done: int) -> list[ForeignLaunch]:
        """Samples of dispatches that no other table has: their kernels' names are not known."""
        return [
            ForeignLaunch(
                self.first + done + position,
                f"(dispatch {dispatch})",
                self.agents.find(None).target,
                lines=source_values(own),
            )
            for position, (dispatch, own) in enumerate(sorted(samples.items()))
        ]

    def _summaries(self, done: int) -> list[ForeignLaunch]:
        """Kernels of ``kernel_stats`` where nothing better is there."""
        if done:
            return []
        target = self.agents.find(None).target
        rows = [row for table in self.group.of("summary") for row in table.rows if not _API.match(row["name"])]
        return summaries(rows, target, TOOL, self.first)


def summaries(rows: list[dict[str, str]], target: str, tool: str, first: int) -> list[ForeignLaunch]:
    """Launches that stand for all calls of a kernel, from a table of statistics: mean, least and most time."""
    found: list[ForeignLaunch] = []
    for row in rows:
        calls, mean = whole(row.get("calls")), number(row.get("averagens"))
        least, most = number(row.get("minns")), number(row.get("maxns"))
        detail = f"mean of {calls} launches" + (
            f", {least:.0f} to {most:.0f} ns" if least is not None and most is not None else ""
        )
        index = first + len(found)
        source = Provenance("measured", tool, "", detail)
        made = (make("time.profiled_ns", mean, source, launch=index), make("launch.count", calls, source, launch=index))
        metrics = tuple(metric for metric in made if metric is not None)
        name = kernel_name(row["name"])
        found.append(ForeignLaunch(index, name, target, count=calls or 1, metrics=metrics))
    return found


def _triple(row: Mapping[str, str], name: str) -> Triple | None:
    values = [whole(row.get(f"{name}_{axis}")) for axis in "xyz"]
    if any(value is None for value in values):
        return None
    x, y, z = (value or 0 for value in values)
    return x, y, z


def _dispatch(row: Mapping[str, str], agents: Agents) -> Dispatch:
    """A row of a trace or of counters; columns that a version lacks are None."""
    lds = row.get("lds_block_size", row.get("group_segment_size"))
    return Dispatch(
        name=row["kernel_name"],
        agent=agents.find(row.get("agent_id")),
        process=whole(row.get("process_id")),
        grid=_triple(row, "grid_size"),
        block=_triple(row, "workgroup_size"),
        work_items=whole(row.get("grid_size")),
        group_size=whole(row.get("workgroup_size")),
        vgprs=whole(row.get("vgpr_count")),
        agprs=whole(row.get("accum_vgpr_count")),
        sgprs=whole(row.get("sgpr_count")),
        lds_bytes=whole(lds),
        scratch_bytes=whole(row.get("scratch_size", row.get("private_segment_size"))),
        start_ns=whole(row.get("start_timestamp")),
        end_ns=whole(row.get("end_timestamp")),
    )


def _calls(group: _Group) -> tuple[list[Range], list[CallStatistic]]:
    """ROCTX ranges, and what the API calls come to."""
    ranges: list[Range] = []
    sums: dict[tuple[str, str], list[float]] = {}
    for table in group.of("calls"):
        for row in table.rows:
            start, end = whole(row["start_timestamp"]), whole(row.get("end_timestamp"))
            if start is None or end is None:
                continue
            if row["domain"].startswith("MARKER"):
                ranges.append(
                    Range(row["function"], start, end, whole(row.get("process_id")), whole(row.get("thread_id")))
                )
            else:
                entry = sums.setdefault((row["domain"], row["function"]), [0, 0.0])
                entry[0] += 1
                entry[1] += end - start
    calls = [CallStatistic(domain, name, int(count), total) for (domain, name), (count, total) in sums.items()]
    for table in group.of("summary"):
        for row in table.rows:
            if _API.match(row["name"]):
                total = number(row["totaldurationns"]) or 0.0
                calls.append(CallStatistic("summary", row["name"], whole(row["calls"]) or 0, total))
    return ranges, calls


def _copies(group: _Group) -> list[CallStatistic]:
    """Copies and allocations by kind."""
    sums: dict[tuple[str, str], list[float]] = {}
    for kind, column in (("copies", "direction"), ("memory", "operation")):
        for table in group.of(kind):
            for row in table.rows:
                start, end = whole(row["start_timestamp"]), whole(row.get("end_timestamp"))
                entry = sums.setdefault((row["kind"], row[column]), [0, 0.0])
                entry[0] += 1
                entry[1] += end - start if start is not None and end is not None else 0
    return [CallStatistic(domain, name, int(count), total) for (domain, name), (count, total) in sums.items()]
