"""What cannot be, or hardly: values are kept and flagged, never clamped or dropped.

Values outside a metric's own range (a share above 100 %) are flagged when they are made (``catalogue.make``).  Here is what takes
several values of a launch to see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from tileprof.store.records import Metric

CLOCK_RANGE = (0.3, 1.15)
"""Clock over the device's maximum that can be believed."""
ANY_CLOCK_HZ = (1e8, 5e9)
"""Clocks that some GPU may have: what is left to judge by where the maximum is not known."""
IMPLAUSIBLE_CLOCK = "implausible clock"
ZERO = "zero in a launch that took time"

NEVER_ZERO = (
    "clock.hz",
    "cycles.elapsed",
    "executed.instructions",
    "launch.warps",
    "occupancy.achieved",
    "occupancy.warps",
    "wave.cycles",
)
"""Metrics that no launch can leave at zero: counters that are gated, denied or not there read so."""

_EVIDENCE = "launch.warps"
_UNAFFECTED = (
    "launch.",
    "registers.",
    "time.",
    "spill.",
    "scratch.",
    "shared.static",
    "shared.dynamic",
    "occupancy.theoretical",
)


def flag_implausible(rows: Sequence[Metric], max_clock_hz: float | None = None) -> list[Metric]:
    """The rows of one launch, with a flag on each that cannot be believed; flags that are there stay.

    ``max_clock_hz`` is the most that the device is made for; without it only clocks that no GPU has are flagged.  Where no warp
    is counted although time passed, every zero of the launch is doubtful.
    """
    took_time = any(row.metric.startswith("time.") and row.value > 0 for row in rows)
    blind = took_time and any(row.metric == _EVIDENCE and row.value == 0 for row in rows)
    return [
        row if row.flag else dataclasses.replace(row, flag=_flag(row, took_time, blind, max_clock_hz)) for row in rows
    ]


def _flag(row: Metric, took_time: bool, blind: bool, max_clock_hz: float | None) -> str | None:
    counted = row.provenance.kind in ("measured", "derived")
    impossible = row.metric in NEVER_ZERO or (blind and not row.metric.startswith(_UNAFFECTED))
    if row.value == 0 and took_time and counted and row.operation is None and impossible:
        return ZERO
    if row.metric == "clock.hz":
        low, high = (share * max_clock_hz for share in CLOCK_RANGE) if max_clock_hz else ANY_CLOCK_HZ
        if not low <= row.value <= high:
            return IMPLAUSIBLE_CLOCK
    return None


def flagged(rows: Iterable[Metric]) -> list[Metric]:
    """Those rows that carry a flag."""
    return [row for row in rows if row.flag is not None]
