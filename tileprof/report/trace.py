"""trace.json: what was launched, for Perfetto and chrome://tracing.

A target is a process; one thread holds the cases, each as long as its median time; another every timed launch.  When a launch began
is not measured: launches are laid end to end, and every event says so.  Where an instrumented build measured one block, its
operations follow on threads of their own, a warp or warp group each.
"""

from __future__ import annotations

import json
import math
from typing import Any

from tileprof.analyse.labels import targets, variant_labels
from tileprof.analyse.timeline import Span, timelines
from tileprof.store.codec import finite
from tileprof.store.records import CaseResult, Run

CASES, LAUNCHES, BLOCK = 1, 2, 10
"""Thread numbers within a target's process."""

GAP_NS = 10.0
"""Between launches, so that no rounding makes one end after the next begins, at which readers stumble."""

LAID = "launches are laid end to end: when they began is not measured"


def render(run: Run) -> str:
    """The file's text: the JSON object form of the Trace Event Format, times in microseconds."""
    labels = variant_labels(run.cases)
    events: list[dict[str, Any]] = []
    for number, (name, target) in enumerate(targets(run.cases).items(), start=1):
        own = [case for case in run.cases if case.target_name == name]
        events += [_name("process_name", number, 0, f"{name} ({target})")]
        events += [
            _name("thread_name", number, CASES, "cases, median"),
            _name("thread_name", number, LAUNCHES, "launches"),
        ]
        at = 0.0
        for case in own:
            samples = [s for s in (case.timing.samples_ns if case.timing else ()) if math.isfinite(s) and s > 0]
            if not samples or case.timing is None:
                continue
            median = case.timing.median_ns
            if math.isfinite(median) and median > 0:
                events.append(_event(labels[case.id], number, CASES, at, median, _arguments(case)))
            then = at
            for index, sample in enumerate(samples):
                events.append(_event(labels[case.id], number, LAUNCHES, then, sample, {"launch": index, "note": LAID}))
                then += sample + GAP_NS
            at = then
        events += _blocks(own, number, labels)
    record = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"run": run.name, "exporter": f"tileprof {run.version}"},
    }
    return json.dumps(finite(record), separators=(",", ":"), allow_nan=False) + "\n"


def _blocks(cases: list[CaseResult], process: int, labels: dict[str, str]) -> list[dict[str, Any]]:
    """Operations of one block, from the instrumented build; nothing where there is none."""
    events: list[dict[str, Any]] = []
    thread = BLOCK
    for case in cases:
        rows: dict[str, list[Span]] = {}
        for span in timelines(case):
            rows.setdefault(span.who, []).append(span)
        for who, spans in rows.items():
            events.append(_name("thread_name", process, thread, f"{labels[case.id]}, {who}, cycles"))
            events += [_span(span, process, thread) for span in spans]
            thread += 1
    return events


def _span(span: Span, process: int, thread: int) -> dict[str, Any]:
    arguments = {
        "operation": span.operation, "line": span.line, "execution": span.iteration, "phase": span.phase or None,
        "unit": "one cycle is shown as one nanosecond",
    }  # fmt: skip
    return _event(span.what, process, thread, span.start, span.end - span.start, arguments)


def _arguments(case: CaseResult) -> dict[str, Any]:
    return {
        "case": case.id,
        "status": case.status,
        "launches": len(case.timing.samples_ns) if case.timing else 0,
        "note": LAID,
    }


def _event(
    name: str, process: int, thread: int, start_ns: float, length_ns: float, arguments: dict[str, Any]
) -> dict[str, Any]:
    known = {
        key: _text(value) if isinstance(value, str) else value for key, value in arguments.items() if value is not None
    }
    return {
        "name": _text(name), "cat": "kernel", "ph": "X", "pid": process, "tid": thread,
        "ts": round(start_ns / 1e3, 6), "dur": round(length_ns / 1e3, 6), "args": known,
    }  # fmt: skip


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": _text(name)}}


def _text(text: str) -> str:
    """A name that arrives whole: Perfetto ends a text at its first NUL."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}")
