"""Cycles of tile operations from a build that reads the clock around them: needs no profiler, and no permission.

The launcher runs the build beside the plain one and sends what it measured (message ``clocked``); here that becomes records.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from tileprof import __version__
from tileprof.collect.noise import NOISY, duration, is_noisy, quartiles
from tileprof.collect.tool import Availability
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance

TOOL = "cycles"


def available() -> Availability:
    """Always: whatever launches can read its clock."""
    return Availability(TOOL, True, version=__version__)


def slowdown(message: Mapping[str, Any]) -> float:
    """Time of the build with clock reads, of the plain one's: median over median."""
    return float(median(message["clocked_ns"]) / median(message["plain_ns"]))


TOO_NOISY = "cycles: too noisy to say what the clock reads cost"
"""How a note on clock reads of unknown cost begins."""

LEAST = 0.9
"""Slowdown below which clock reads would have made the kernel faster, which they do not: the times are of two conditions."""


def cost_is_known(message: Mapping[str, Any]) -> bool:
    """Whether the two times tell what the clock reads cost: neither is noisy, and the dearer build is not much the faster."""
    return slowdown(message) >= LEAST and not (is_noisy(message["plain_ns"]) or is_noisy(message["clocked_ns"]))


def overhead_note(message: Mapping[str, Any]) -> str:
    """The same for people, with the times it comes from."""
    plain, clocked = median(message["plain_ns"]), median(message["clocked_ns"])
    count = len(message["clocked_ns"])
    if cost_is_known(message):
        return (
            f"cycles: the build with clock reads took {clocked / 1e3:.2f} us, the plain one {plain / 1e3:.2f} us: "
            f"{slowdown(message) - 1:+.1%} (medians of {count} launches each, in turns)"
        )
    with_reads, without = (
        f"{duration(low)} to {duration(high)}"
        for low, high in map(quartiles, (message["clocked_ns"], message["plain_ns"]))
    )
    return f"{TOO_NOISY}: with them the middle half of {count} launches took {with_reads}, without {without}"


def cycles_metrics(message: Mapping[str, Any]) -> list[Metric]:
    """Records of a message: of each operation the cycles of all workers by phase and their count, and totals of the kernel.

    A phase that an operation does not have has no record.
    """
    cycles = message["cycles"]
    workers = f"sum over {cycles['workers']} {cycles['worker']}s of one launch"
    if cycles["recorded"] < cycles["blocks"]:
        workers += f", scaled up from {cycles['recorded']} of {cycles['blocks']} blocks"
    source = Provenance("measured", TOOL, __version__, workers)
    longest = Provenance("measured", TOOL, __version__, f"the longest {cycles['worker']} that was recorded")
    derived = Provenance("derived", TOOL, __version__, "median time of the build with clock reads / of the plain one")
    rows = [
        make("cycles.sum", float(cycles["elapsed"]), source),
        make("cycles.longest", float(cycles["longest"]), longest),
        make("cycles.slowdown", slowdown(message), derived, flag=None if cost_is_known(message) else NOISY),
    ]
    for operation in cycles["operations"]:
        phases = {name: operation[name] for name in ("run", "issue", "wait")}
        figures = {"sum": sum(value or 0 for value in phases.values()), **phases, "count": operation["count"]}
        rows += [
            make(f"cycles.{name}", float(value), source, operation=operation["operation"])
            for name, value in figures.items()
            if value is not None
        ]
    return [row for row in rows if row is not None]


GROUP_WARPS = 4
"""Warps of a group: they meet in products of warp groups, and of so many the first stands for all."""


def timeline_metrics(message: Mapping[str, Any]) -> list[Metric]:
    """``cycles.begin`` and ``cycles.end`` of the operations of one block; the form is that of ``analyse/timeline.py``.

    A block of more than GROUP_WARPS workers is shown by its groups, the first worker of each for all.
    """
    events = message["events"]
    many = max((event["worker"] for event in events), default=0) >= GROUP_WARPS
    each, word = (GROUP_WARPS, "group") if many else (1, message["cycles"]["worker"])
    source = Provenance(
        "measured", TOOL, __version__, "one block of a build of its own; the first executions of each operation"
    )
    seen: dict[tuple[int, int, str], int] = {}
    rows = []
    for event in sorted(events, key=lambda item: item["begin"]):
        group, place = divmod(event["worker"], each)
        if place:
            continue
        operation, phase = event["operation"], event["phase"]
        number = seen[operation, group, phase] = seen.get((operation, group, phase), -1) + 1
        where = {"operation": operation, "access": f"{word} {group} {phase}", "launch": number}
        rows += [make(f"cycles.{end}", float(event[end]), source, **where) for end in ("begin", "end")]
    return [row for row in rows if row is not None]
