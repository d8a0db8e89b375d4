"""rocprofv3's JSON (``*_results.json``): kernel dispatches, counters by instance, ROCTX ranges and PC samples of all processes.

Metadata of the node, the command line and its configuration are in the file too, and are not read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tileprof.collect.amd import Agent, Agents, Dispatch, Triple, agent_from, launch_of
from tileprof.collect.pc_samples import Sample, source_values
from tileprof.collect.profile import CallStatistic, ForeignLaunch, ForeignProfile, Range
from tileprof.collect.ranges import RangeIndex
from tileprof.collect.scrub import kernel_name
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Provenance

TOOL = "rocprofv3"
KEY = "rocprofiler-sdk-tool"
_GPU = 2


def parse(record: Any, path: Path) -> ForeignProfile:
    """The profile in what was read from ``path``.  Raises :class:`ProfileFormatError` for another tool's, or another form."""
    if not isinstance(record, dict) or not isinstance(record.get(KEY), list):
        raise ProfileFormatError(f"{path} is no result of rocprofv3: it has no '{KEY}'")
    launches: list[ForeignLaunch] = []
    ranges: list[Range] = []
    calls: list[CallStatistic] = []
    gpus: dict[str, Mapping[str, str | float]] = {}
    notes: list[str] = []
    for process in record[KEY]:
        try:
            reader = _Process(process)
            launches += reader.launches(len(launches))
        except (KeyError, TypeError, AttributeError) as error:
            raise ProfileFormatError(
                f"{path} has a form that is not known here: {type(error).__name__}: {error}",
                remedy="collect CSV or rocpd beside it: rocprofv3 --output-format csv rocpd",
            ) from None
        ranges += reader.ranges
        calls += reader.calls
        gpus.update({str(gpu): gpu for gpu in reader.agents.describe()})
        if reader.unused:
            notes.append(f"{reader.unused} kernels of the program were never launched")
    return ForeignProfile(
        "rocprofv3 JSON",
        TOOL,
        "",
        tuple(launches),
        tuple(ranges),
        tuple(calls),
        gpus=tuple(gpus.values()),
        notes=tuple(notes),
    )


def samples_of(path: Path, symbol: str) -> list[Sample]:
    """PC samples of a kernel's dispatches in a file, with the places of their instructions.  Raises ProfileFormatError."""
    try:
        record = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        found: list[Sample] = []
        for process in record[KEY]:
            found += _Process(process).samples_of(symbol)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfileFormatError(f"{path.name} is no result of rocprofv3 that can be read: {error}") from None
    return found


class _Process:
    """One entry of the file."""

    def __init__(self, process: Mapping[str, Any]) -> None:
        self.process = process
        self.pid = process["metadata"].get("pid")
        by_handle = {
            agent["id"]["handle"]: (agent.get("node_id", index), agent_from(agent.get))
            for index, agent in enumerate(process["agents"])
            if agent.get("type") == _GPU
        }
        self.agents = Agents(dict(by_handle.values()))
        self._by_handle = {handle: agent for handle, (_, agent) in by_handle.items()}
        # the first symbol is a placeholder with id 0
        self._symbols = {symbol["kernel_id"]: symbol for symbol in process["kernel_symbols"] if symbol["kernel_id"]}
        self._strings = process.get("strings", {})
        self.ranges = list(self._marks())
        self.calls = list(self._api_calls())
        self.unused = 0

    def _records(self, kind: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.process.get("buffer_records", {}).get(kind) or []
        return found

    def _marks(self) -> Iterator[Range]:
        messages = {entry.get("key"): entry.get("value") for entry in self._strings.get("marker_api") or []}
        for mark in self._records("marker_api"):
            text = messages.get(mark["correlation_id"]["internal"])
            if text:
                yield Range(str(text), mark["start_timestamp"], mark["end_timestamp"], self.pid, mark.get("thread_id"))

    def _api_calls(self) -> Iterator[CallStatistic]:
        kinds = dict(enumerate(self._strings.get("buffer_records") or []))
        sums: dict[tuple[str, str], list[float]] = {}
        for group in ("hip_api", "hsa_api", "rccl_api", "memory_copy", "memory_allocation", "scratch_memory"):
            for call in self._records(group):
                kind = kinds.get(call.get("kind", -1), {})
                names = kind.get("operations") or []
                number = call.get("operation", -1)
                name = names[number] if 0 <= number < len(names) else f"operation {number}"
                entry = sums.setdefault((str(kind.get("kind", group)), name), [0, 0.0])
                entry[0] += 1
                entry[1] += call["end_timestamp"] - call["start_timestamp"]
        for (domain, name), (count, total) in sums.items():
            yield CallStatistic(domain, name, int(count), total)

    def launches(self, first: int) -> list[ForeignLaunch]:
        """Dispatches in order of time, with counters where they were collected."""
        counted = {d.pop("id"): d["dispatch"] for d in self._counted()}
        traced = {
            record["dispatch_info"]["dispatch_id"]: self._dispatch(record, record["dispatch_info"])
            for record in self._records("kernel_dispatch")
        }
        dispatches: dict[int, Dispatch] = {**traced, **counted}
        self.unused = len(self._symbols) - len({dispatch.name for dispatch in dispatches.values()})
        samples = self._samples()
        index = RangeIndex(self.ranges)
        found: list[ForeignLaunch] = []
        for number, dispatch in sorted(dispatches.items(), key=lambda item: (item[1].start_ns or 0, item[0])):
            start = dispatch.start_ns
            inside = index.around(start, self.pid, None) if start is not None else ()
            how = "counters" if dispatch.passes else "kernel trace"
            source = Provenance("measured", TOOL, "", how)
            launch = launch_of(replace(dispatch, ranges=inside), first + len(found), source)
            found.append(replace(launch, lines=source_values(samples[number])) if number in samples else launch)
        return found

    def _counted(self) -> Iterator[dict[str, Any]]:
        names = {counter["id"]["handle"]: counter["name"] for counter in self.process.get("counters") or []}
        for record in self.process.get("callback_records", {}).get("counter_collection") or []:
            data = record["dispatch_data"]
            values: dict[str, float] = defaultdict(float)
            for entry in record["records"]:  # one a hardware instance: they add up
                values[names[entry["counter_id"]["handle"]]] += float(entry["value"])
            dispatch = self._dispatch(data, data["dispatch_info"])
            yield {"id": data["dispatch_info"]["dispatch_id"], "dispatch": replace(dispatch, passes=[dict(values)])}

    def _dispatch(self, times: Mapping[str, Any], info: Mapping[str, Any]) -> Dispatch:
        symbol = self._symbols.get(info["kernel_id"], {})
        return Dispatch(
            name=symbol.get("formatted_kernel_name") or f"(kernel {info['kernel_id']})",
            symbol=str(symbol.get("kernel_name", "")).removesuffix(".kd"),
            agent=self._by_handle.get(info["agent_id"]["handle"], Agent()),
            process=self.pid,
            grid=_triple(info["grid_size"]),
            block=_triple(info["workgroup_size"]),
            vgprs=symbol.get("arch_vgpr_count"),
            agprs=symbol.get("accum_vgpr_count"),
            sgprs=symbol.get("sgpr_count"),
            lds_bytes=info.get("group_segment_size"),
            lds_with_dynamic=True,
            scratch_bytes=info.get("private_segment_size"),
            start_ns=times.get("start_timestamp"),
            end_ns=times.get("end_timestamp"),
        )

    def samples_of(self, symbol: str) -> list[Sample]:
        """Samples of the dispatches of a kernel."""
        kernels = {
            record["dispatch_info"]["dispatch_id"]: self._dispatch(record, record["dispatch_info"])
            for record in self._records("kernel_dispatch")
        }
        names = {number: (one.symbol, kernel_name(one.name)) for number, one in kernels.items()}
        return [s for number, samples in self._samples().items() if symbol in names.get(number, ()) for s in samples]

    def _samples(self) -> dict[int, list[Sample]]:
        texts = self._strings.get("pc_sample_instructions") or []
        comments = self._strings.get("pc_sample_comments") or []
        found: dict[int, list[Sample]] = defaultdict(list)
        for kind in ("pc_sample_host_trap", "pc_sample_stochastic"):
            for sample in self._records(kind):
                body, position = sample.get("record", sample), sample.get("inst_index", -1)
                if not 0 <= position < len(texts):
                    continue
                comment = comments[position] if position < len(comments) else ""
                snapshot = body.get("snapshot") or {}
                reason = snapshot.get("stall_reason") or snapshot.get("reason_not_issued")
                found[body.get("dispatch_id", 0)].append(
                    Sample(
                        texts[position],
                        comment,
                        reason,
                        body.get("wave_issued"),
                        (body.get("pc") or {}).get("code_object_offset"),
                    )
                )
        return found


def _triple(size: Mapping[str, int]) -> Triple:
    return size["x"], size["y"], size["z"]
