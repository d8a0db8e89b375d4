"""Timing launches on this machine's processors: wall clock, with a cold or a warm last-level cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tileprof.collect.ceilings import last_level_cache_bytes

LEAST_SAMPLES = 3
"""Samples that are taken even when the budget is spent."""

_FLUSH_FACTOR = 2  # a cache that does not replace the oldest line first needs more than its size
_MOST_FLUSH_BYTES = 512 << 20
_ASSUMED_CACHE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Samples:
    """Times of single launches in nanoseconds, and how they were taken."""

    samples_ns: tuple[float, ...]
    warmup: int
    flushed: bool
    wanted: int


class CacheFlusher:
    """Replaces the contents of the caches by writing a buffer larger than they are."""

    def __init__(self, cache_bytes: int | None = None) -> None:
        known = cache_bytes if cache_bytes is not None else last_level_cache_bytes()
        wanted = _FLUSH_FACTOR * (known or _ASSUMED_CACHE_BYTES)
        self.bytes = min(wanted, _MOST_FLUSH_BYTES)
        self._buffer = np.zeros(self.bytes // 8, np.uint64)

    def __call__(self) -> None:
        """Write the whole buffer."""
        self._buffer += np.uint64(1)


def time_launches(
    measure: Callable[[], float],
    *,
    warmup: int,
    samples: int,
    rounds: int,
    budget_s: float,
    flush: Callable[[], None] | None = None,
) -> Samples:
    """Times of single launches: ``rounds`` times ``warmup`` unrecorded and ``samples`` recorded ones.

    ``measure`` launches once and returns nanoseconds.  Once ``budget_s`` seconds of launching are spent, half of them
    on warm-up at most, the rest is left out, though never below LEAST_SAMPLES.  ``flush`` is called before each
    recorded launch.
    """
    budget_ns = budget_s * 1e9
    times: list[float] = []
    warmed = 0
    spent = 0.0
    for _ in range(rounds):
        for _ in range(warmup):
            if warmed and spent > budget_ns / 2:
                break
            spent += measure()
            warmed += 1
        for _ in range(samples):
            if len(times) >= LEAST_SAMPLES and spent > budget_ns:
                break
            if flush is not None:
                flush()
            times.append(measure())
            spent += times[-1]
    return Samples(tuple(times), warmed, flush is not None, rounds * samples)


def time_rounds(
    measure: Callable[[int, int], list[float]],
    *,
    warmup: int,
    samples: int,
    rounds: int,
    budget_s: float,
    flushed: bool = True,
) -> Samples:
    """Times of launches that are enqueued a round at a time: ``measure(warmup, launches)`` gives their nanoseconds.

    One launch is measured beforehand, to see how many the budget allows; never fewer than LEAST_SAMPLES.  ``flushed``: whether
    whoever measures flushes the cache before each.
    """
    (first,) = measure(0, 1)
    allowed = max(LEAST_SAMPLES, int(budget_s * 1e9 / rounds / max(first, 1.0)))
    times: list[float] = []
    for _ in range(rounds):
        times += measure(min(warmup, allowed), min(samples, allowed))
    return Samples(tuple(times), 1 + rounds * min(warmup, allowed), flushed, rounds * samples)
