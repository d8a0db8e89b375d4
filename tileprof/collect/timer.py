"""Unprofiled times of launches, as the launcher sends them -> Timing and metric records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tileprof import __version__
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance, Timing

TOOL = "timer"


def timing_of(message: Mapping[str, Any]) -> Timing:
    """The record of a launcher's message ``timed``."""
    return Timing(
        samples_ns=tuple(float(sample) for sample in message["samples_ns"]),
        method=str(message["method"]),
        warmup=int(message["warmup"]),
        flush_l2=bool(message["flushed"]),
    )


def timing_metrics(timing: Timing) -> list[Metric]:
    """``time.ns`` as the median of the samples; nothing where there are none."""
    if not timing.samples_ns:
        return []
    cache = "cold" if timing.flush_l2 else "warm"
    detail = f"median of {len(timing.samples_ns)} launches, {cache} cache, {timing.method}"
    record = make("time.ns", timing.median_ns, Provenance("measured", TOOL, __version__, detail))
    return [record] if record is not None else []
