"""Other people's profiles as cases: launches of one kernel with one shape together, source lines as operations.

What a profile says of single instructions hangs on source lines here, as it hangs on tile operations for our own kernels, so that
flame graph, source view and conflict map work for both.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilelang_min import targets
from tileprof.analyse.sass_access import access
from tileprof.collect.profile import ForeignLaunch, ForeignProfile, SourceValue
from tileprof.metrics import make
from tileprof.metrics.plausible import flag_implausible
from tileprof.store.records import CaseResult, Metric, Provenance, Timing

LINE = "line"
"""Kind of an operation that is a source line."""
UNATTRIBUTED = "unattributed"

_STATIC = ("launch.threads_per_block", "launch.blocks", "registers.", "shared.static_bytes", "shared.dynamic_bytes",
           "shared.allocated_bytes", "scratch.bytes", "occupancy.theoretical")  # fmt: skip
"""Metrics that all launches of a case share."""
_BY_ACCESS = (
    "shared.transactions",
    "shared.transactions_ideal",
    "shared.conflicts",
    "global.sectors",
    "global.sectors_ideal",
)
_LONGEST_NAME = 72
_MOST_RANGES = 4


def cases_of(profile: ForeignProfile, label: str = "") -> list[CaseResult]:
    """The cases of a profile; ``label`` tells its targets from those of other profiles of the run (empty: there is only one).

    What is to be said of the profile as a whole is a note of every case; its calls and copies are one of the first.
    """
    groups: dict[tuple[Any, ...], list[ForeignLaunch]] = {}
    for launch in profile.launches:
        groups.setdefault(_key(launch), []).append(launch)
    names = short_names(launch.kernel for launch in profile.launches)
    taken: Counter[str] = Counter()
    cases: list[CaseResult] = []
    for launches in groups.values():
        case = _case(profile, launches, names[launches[0].kernel], label)
        taken[case.id] += 1
        if taken[case.id] > 1:  # other registers or shared memory with the same shape
            case = replace(case, id=f"{case.id}#{taken[case.id]}")
        whole = profile.notes if cases else (*profile.notes, *_calls(profile))
        cases.append(replace(case, notes=(*case.notes, *whole)))
    return cases


def _key(launch: ForeignLaunch) -> tuple[Any, ...]:
    static = tuple(sorted((m.metric, m.value) for m in launch.metrics if m.metric.startswith(_STATIC)))
    return launch.kernel, launch.target, launch.device, launch.grid, launch.block, static, launch.complete


def short_names(names: Iterable[str]) -> dict[str, str]:
    """A readable name for each full one, all different: no return type, no parameters, long template arguments cut."""
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        if name in found:
            continue
        short = _short(name)
        if taken.setdefault(short, name) != name:
            digest = hashlib.sha256(name.encode()).hexdigest()[:6]
            short = f"{short[: _LONGEST_NAME - 8]}~{digest}"
            taken[short] = name
        found[name] = short
    return found


def _short(name: str) -> str:
    text = re.sub(r"\s+", " ", name).strip()
    text = _without_parameters(text)
    depth, start = 0, 0
    for position, character in enumerate(text):  # what stands before the last space outside brackets is the return type
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth -= 1
        elif character == " " and depth == 0 and not text[:position].endswith("operator"):
            start = position + 1
    text = text[start:] or text
    if len(text) <= _LONGEST_NAME:
        return text
    base, _, arguments = text.partition("<")
    base = base[-_LONGEST_NAME + 8 :]
    return f"{base}<{arguments[: _LONGEST_NAME - len(base) - 3]}…>" if arguments else base[:_LONGEST_NAME]


def _without_parameters(text: str) -> str:
    """The name without a parameter list at its end."""
    if not text.endswith(")"):
        return text
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[position], 0)
        if depth == 0:
            return text[:position].rstrip() or text
    return text


def _case(profile: ForeignProfile, launches: Sequence[ForeignLaunch], name: str, label: str) -> CaseResult:
    first = launches[0]
    device = first.device or first.target
    target_name = f"{device} ({label})" if label else device
    shape = {key: "x".join(map(str, size)) for key, size in (("grid", first.grid), ("block", first.block)) if size}
    inside = f"[{', '.join(f'{key}={size}' for key, size in shape.items())}]" if shape else ""
    lines = _lines(launches)
    operations, places = _operations(first, lines, profile.sources)
    metrics = [*_static(launches), *_measured(launches), *_by_line(launches, places)]
    version = f" {profile.version}" if profile.version else ""
    how = f"{profile.tool}{version}"
    times = [launch.duration_ns for launch in launches if launch.duration_ns is not None]
    timing = Timing(tuple(times), f"kernel trace of {how}", 0, False) if times else None
    if timing is not None:
        source = Provenance(
            "measured", profile.tool, profile.version, f"median of {len(times)} launches in a kernel trace"
        )
        row = make("time.profiled_ns", timing.median_ns, source)
        metrics += [row] if row is not None else []
    complete = first.complete
    return CaseResult(
        id=f"{name}{inside}@{target_name}",
        hash=hashlib.sha256(repr((first.kernel, first.grid, first.block, first.target)).encode()).hexdigest()[:16],
        kernel=name,
        target_name=target_name,
        target=first.target,
        args={} if name == first.kernel else {"name": first.kernel},
        shape=dict(shape),
        tiles={},
        status="ok" if complete else "invalid_measurement",
        reason="" if complete else "its profiling broke off",
        operations=tuple(operations),
        sources={file: text for file, text in profile.sources.items() if any(place[0] == file for place in places)},
        metrics=tuple(metrics),
        timing=timing,
        notes=tuple(_notes(profile, launches, how)),
    )


def _notes(profile: ForeignProfile, launches: Sequence[ForeignLaunch], how: str) -> Iterator[str]:
    count = sum(launch.count for launch in launches)
    yield f"imported: {profile.format}, {how}, {count} launch{'es' if count != 1 else ''}"
    yield from dict.fromkeys(note for launch in launches for note in launch.notes)
    ranges = Counter(" / ".join(launch.ranges) for launch in launches if launch.ranges)
    for text, times in ranges.most_common(_MOST_RANGES):
        yield f"in range {text}" + (f", {times} launches" if times > 1 else "")
    if len(ranges) > _MOST_RANGES:
        yield f"in {len(ranges) - _MOST_RANGES} other ranges"


def _calls(profile: ForeignProfile) -> Iterator[str]:
    """API calls and copies in a sentence each domain."""
    domains: dict[str, list[float]] = {}
    for call in profile.calls:
        entry = domains.setdefault(call.domain, [0, 0.0])
        entry[0] += call.calls
        entry[1] += call.total_ns
    for domain, (count, total) in domains.items():
        yield f"beside the kernels, {domain}: {count:.0f} calls, {total / 1e6:.3f} ms together"


def _static(launches: Sequence[ForeignLaunch]) -> list[Metric]:
    """What all launches of the case share, once."""
    return [replace(m, launch=None) for m in launches[0].metrics if m.metric.startswith(_STATIC)]


def _measured(launches: Sequence[ForeignLaunch]) -> Iterator[Metric]:
    """Figures of each launch, with what cannot be believed flagged."""
    for launch in launches:
        clock = launch.max_clock_hz or _nominal_clock(launch.target)
        yield from (m for m in flag_implausible(launch.metrics, clock) if not m.metric.startswith(_STATIC))


def _nominal_clock(target: str) -> float | None:
    """The highest clock of the devices known for an architecture, or None."""
    try:
        devices = targets.resolve(target).devices if ":" in target else ()
    except Exception:  # an architecture that the compiler does not have
        return None
    return max((device.clock_hz for device in devices), default=None)


Place = tuple[str, int]


def _lines(launches: Sequence[ForeignLaunch]) -> list[Place]:
    """Source lines of the case, in order of file and line."""
    return sorted(
        {(v.file, v.line) for launch in launches for v in launch.lines if v.file is not None and v.line is not None}
    )


def _operations(
    first: ForeignLaunch, lines: Sequence[Place], sources: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[Place, int]]:
    """An operation for the kernel and one for each line (as TileOperation.to_json()), and the id of each line."""
    if not lines:
        return [], {}
    texts = {file: sources[file].splitlines() for file, _ in lines if file in sources}
    records = [_operation(0, "kernel", first.kernel, lines[0], "", None)]
    places: dict[Place, int] = {}
    for number, (file, line) in enumerate(lines, 1):
        own = texts.get(file, [])
        text = own[line - 1] if 0 < line <= len(own) else ""
        name = re.split(r"[\\/]", file)[-1]
        records.append(_operation(number, LINE, text.strip()[:120] or f"{name}:{line}", (file, line), text, 0))
        places[file, line] = number
    return records, places


def _operation(number: int, kind: str, label: str, place: Place, text: str, parent: int | None) -> dict[str, Any]:
    location = {"file": place[0], "line": place[1], "column": 0, "text": text}
    return operation_record(number, kind, label, location, parent)


def operation_record(
    number: int, kind: str, label: str, location: Mapping[str, Any], parent: int | None
) -> dict[str, Any]:
    """An operation as TileOperation.to_json() writes it."""
    return {
        "id": number,
        "kind": kind,
        "label": label,
        "location": dict(location),
        "parent": parent,
        "reads": [],
        "writes": [],
    }


def _by_line(launches: Sequence[ForeignLaunch], places: Mapping[Place, int]) -> Iterator[Metric]:
    """Figures of each line and launch, those of memory by kind of access; what has no line is ``unattributed``."""
    for launch in launches:
        if not launch.lines or (not launch.metrics and not any(value.values for value in launch.lines)):
            continue
        source = _line_provenance(launch)
        sums: dict[tuple[str, int | None, str | None], float] = defaultdict(float)
        for value in launch.lines:
            operation = places.get((value.file or "", value.line or 0))
            for metric, amount in value.values.items():
                sums[metric, operation, _access(value, metric)] += amount
        rest: dict[str, float] = defaultdict(float)
        for (metric, operation, kind), amount in sums.items():
            if operation is None:
                rest[metric] += amount
            elif amount or not metric.startswith("stall."):
                yield from _one(make(metric, amount, source, operation=operation, access=kind, launch=launch.index))
        for metric, amount in rest.items():
            if amount:
                yield from _one(
                    make(metric, amount, source, access=UNATTRIBUTED, launch=launch.index, flag=UNATTRIBUTED)
                )


def _access(value: SourceValue, metric: str) -> str | None:
    if metric not in _BY_ACCESS:
        return None
    found = access(value.text, value.memory)
    return found.kind if found is not None else "other"


def _line_provenance(launch: ForeignLaunch) -> Provenance:
    """Where the launch's own figures come from, or what is left to say without any."""
    measured = next((m.provenance for m in launch.metrics if m.provenance.kind == "measured"), None)
    return measured or Provenance("measured", "profiler", "", "samples by instruction")


def _one(metric: Metric | None) -> Iterator[Metric]:
    if metric is not None:
        yield metric
