"""A profile of one piece of foreign work as figures of one case: its kernels become operations, source lines stand below them.

A callable or a command launches one kernel or many.  What the profiler says of a kernel hangs on that kernel's operation; what adds
up over kernels (time, bytes, transactions, instructions) is summed for the case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tileprof.analyse.foreign import cases_of, operation_record
from tileprof.collect.profile import ForeignProfile
from tileprof.metrics import make
from tileprof.store.records import CaseResult, Metric, Provenance

_ADDITIVE = (
    "time.profiled_ns",
    "dram.read_bytes",
    "dram.write_bytes",
    "l2.bytes",
    "l1.bytes",
    "shared.requests",
    "shared.transactions",
    "shared.transactions_ideal",
    "shared.conflicts",
    "global.requests",
    "global.sectors",
    "global.sectors_ideal",
    "executed.instructions",
    "stall.samples",
)
"""Metrics whose sum over kernels means something; those of a type, ``flop.``, too."""
_NOWHERE = {"file": "", "line": 0, "column": 0, "text": ""}


@dataclass(frozen=True)
class ForeignWork:
    """Operations (as TileOperation.to_json()), metrics, sources by file name and notes of the case."""

    operations: tuple[dict[str, Any], ...]
    metrics: tuple[Metric, ...]
    sources: Mapping[str, str]
    notes: tuple[str, ...]


def work_of(profile: ForeignProfile, name: str) -> ForeignWork:
    """Everything that a profile says of the work called ``name``."""
    cases = [case for case in cases_of(profile) if case.metrics or case.operations]
    root = operation_record(0, "kernel", name, _NOWHERE, None)
    operations, metrics = [root], []
    sources: dict[str, str] = {}
    notes: list[str] = []
    for case in cases:
        added, own = _moved(case, len(operations), alone=len(cases) == 1)
        operations += added
        metrics += own
        sources.update(case.sources)
        notes += [note for note in case.notes if not note.startswith("imported: ")]
    if len(cases) > 1:
        metrics += _sums(metrics, {operation["id"] for operation in operations if operation["parent"] == 0})
        launches = sum(1 for launch in profile.launches if launch.complete)
        notes.append(f"{len(cases)} different kernels, {launches} launches; figures of the case are their sums")
    return ForeignWork(tuple(operations), tuple(metrics), sources, tuple(dict.fromkeys(notes)))


def _moved(case: CaseResult, start: int, *, alone: bool) -> tuple[list[dict[str, Any]], list[Metric]]:
    """The operations of a kernel with numbers from ``start``, and its metrics on them.

    Of a kernel that is ``alone`` the whole kernel's figures are the case's, without an operation.
    """
    shape = ", ".join(f"{key} {value}" for key, value in case.shape.items())
    label = f"{case.kernel} ({shape})" if shape else case.kernel
    place = case.operations[0]["location"] if case.operations else _NOWHERE
    records = [operation_record(start, "kernel", label, place, 0)]
    for operation in case.operations[1:]:
        parent = start + (operation["parent"] or 0)
        records.append({**operation, "id": start + operation["id"], "parent": parent})
    metrics = []
    for metric in case.metrics:
        if metric.operation is not None:
            metrics.append(replace(metric, operation=start + metric.operation))
        else:
            metrics.append(metric if alone else replace(metric, operation=start))
    return records, metrics


def _sums(metrics: Iterable[Metric], kernels: set[int]) -> list[Metric]:
    """Totals over the figures of whole kernels."""
    totals: dict[str, float] = defaultdict(float)
    sources: dict[str, Provenance] = {}
    for metric in metrics:
        whole = metric.operation in kernels and metric.access is None and metric.buffer is None
        if whole and (metric.metric in _ADDITIVE or metric.metric.startswith("flop.")):
            totals[metric.metric] += metric.value
            sources[metric.metric] = metric.provenance
    made = []
    for name, total in totals.items():
        source = sources[name]
        detail = "sum over kernels" + (f"; {source.detail}" if source.detail else "")
        made.append(make(name, total, replace(source, detail=detail)))
    return [metric for metric in made if metric is not None]
