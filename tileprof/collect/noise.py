"""Times that lie too far apart: said with the case and flagged, so that nobody takes their median for the kernel's time.

This is about the samples of one measurement.  Whether a difference between two is real is ``analyse/gate.py``'s question.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles

NOISY = "noisy"
"""Flag of figures from such times."""

NOISE = "noisy times: "
"""How a note on them begins."""

WIDEST = 0.2
"""Distance of the quartiles, as a share of the median, beyond which samples are noisy."""

SLOWEST = 1.5
"""Median, as a multiple of the fastest sample, beyond which they are: most launches were then held up by something."""

MOST_WAITING = 0.1
"""Share of the time in which threads were ready that they may have waited for a processor."""

_REMEDY = "other work on this machine or a changing clock; time again when it is quiet, or with more samples and rounds"


def quartiles(samples: Sequence[float]) -> tuple[float, float]:
    """First and third quartile; of a single sample it is both."""
    if len(samples) < 2:
        return samples[0], samples[0]
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return low, high


def is_noisy(samples: Sequence[float]) -> bool:
    """Whether the samples, at least one, lie too far apart for their median to be the kernel's time."""
    low, high = quartiles(samples)
    middle = median(samples)
    return high - low > WIDEST * middle or middle > SLOWEST * min(samples)


def noise_note(samples_ns: Sequence[float]) -> str | None:
    """What to say of noisy samples; None where there are none, or where they lie together."""
    if not samples_ns or not is_noisy(samples_ns):
        return None
    low, high = quartiles(samples_ns)
    return (
        f"{NOISE}the middle half of {len(samples_ns)} launches took {duration(low)} to {duration(high)}, the fastest "
        f"{duration(min(samples_ns))}, the median is {duration(median(samples_ns))}: {_REMEDY}"
    )


def waiting_note(ran_ns: int, waited_ns: int) -> str | None:
    """What to say of threads that waited for a processor while they were timed; None where they had one."""
    share = waited_ns / (ran_ns + waited_ns)
    if share <= MOST_WAITING:
        return None
    return (
        f"{NOISE}while it was timed, the kernel's threads waited for a processor {share:.0%} of the time that they could have "
        "run: other work on this machine, or a limit on this container; time again when it is quiet"
    )


def duration(time_ns: float) -> str:
    """``41.3 us``, ``4.13 ms``."""
    unit, size = next(((u, s) for u, s in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if time_ns >= s), ("ns", 1.0))
    return f"{time_ns / size:.3g} {unit}"
