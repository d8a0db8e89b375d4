"""Unprofiled times of launches, as the launcher sends them -> Timing and metric records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tileprof import __version__
from tileprof.collect.noise import NOISY, is_noisy
from tileprof.metrics import make
from tileprof.store.records import Metric, Provenance, Timing

TOOL = "timer"

GRAVE = frozenset({"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake"})
"""Reasons for lower clocks that make times worthless: the same launch is faster once they are gone."""


def timing_of(message: Mapping[str, Any]) -> Timing:
    """The record of a launcher's message ``timed``."""
    return Timing(
        samples_ns=tuple(float(sample) for sample in message["samples_ns"]),
        method=str(message["method"]),
        warmup=int(message["warmup"]),
        flush_l2=bool(message["flushed"]),
    )


LEAST_WATCHED_S = 0.2
"""Shortest timing whose telemetry says something about it."""


def telemetry_metrics(message: Mapping[str, Any]) -> list[Metric]:
    """Clock, temperature and power while the case was timed, from a launcher's message ``telemetry``.

    Nothing where the timing was shorter than what the driver itself looks at: its clocks and power are those of some 100 ms.
    """
    if message["seconds"] < LEAST_WATCHED_S:
        return []
    detail = f"mean of {message['samples']} samples while the case was timed"
    source = Provenance("measured", str(message["tool"]), str(message["driver"]), detail)
    after = Provenance("measured", str(message["tool"]), str(message["driver"]), "when the timing ended")
    rows = (
        ("clock.hz", message["clock_hz"], source),
        ("device.power", message["power_w"], source),
        ("device.temperature", message["temperature_c"], after),
    )
    made = [make(name, float(value), where) for name, value, where in rows if value is not None]
    return [record for record in made if record is not None]


def throttled(message: Mapping[str, Any]) -> tuple[str, bool] | None:
    """What held the clock down while the case was timed, and whether that makes its times worthless; None where nothing did."""
    reasons: Mapping[str, int] = message["reasons"]
    if not reasons:
        return None
    shares = ", ".join(f"{reason} in {count} of {message['samples']} samples" for reason, count in reasons.items())
    clock, highest = message["clock_hz"] / 1e6, message["max_clock_hz"]
    of = f" of {highest / 1e6:.0f}" if highest else ""
    return f"the GPU was throttled: {shares}; mean clock {clock:.0f}{of} MHz", bool(GRAVE & set(reasons))


def timing_metrics(timing: Timing) -> list[Metric]:
    """``time.ns`` as the median of the samples; nothing where there are none.  Flagged where they lie far apart."""
    if not timing.samples_ns:
        return []
    cache = "cold" if timing.flush_l2 else "warm"
    detail = f"median of {len(timing.samples_ns)} launches, {cache} cache, {timing.method}"
    flag = NOISY if is_noisy(timing.samples_ns) else None
    record = make("time.ns", timing.median_ns, Provenance("measured", TOOL, __version__, detail), flag=flag)
    return [record] if record is not None else []
