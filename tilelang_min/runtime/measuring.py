"""How long something takes, and how that was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelang_min.errors import LaunchError, did_you_mean

SHORT_NS = 50_000.0
"""Work that events say is shorter is replayed from a graph where the method is left open: an event, a launch and an event take
the host about 15 us, so that events of short work may measure the host."""
LEAST, MOST = 5, 1000
"""Samples of one measurement."""
METHODS = ("auto", "events", "graph", "wall")


def check_numbers(launches: int, warmup: int) -> None:
    """Raise LaunchError for numbers of launches that make no measurement."""
    if launches < 1 or warmup < 0:
        raise LaunchError(
            f"launches={launches} and warmup={warmup} leave nothing to measure",
            remedy="give launches of 1 or more, warmup of 0 or more",
        )


@dataclass(frozen=True)
class Measurement:
    """Samples in nanoseconds, in the order taken, and how they were taken.

    ``method`` is ``events``, ``graph`` or ``wall``; ``flushed`` says whether the cache was emptied before each sample,
    ``per_sample`` how many calls a sample is the mean of; ``note`` what else is to be known.
    """

    samples_ns: tuple[float, ...]
    method: str
    flushed: bool
    warmup: int
    per_sample: int = 1
    note: str = ""

    def quantile(self, q: float) -> float:
        """The q-quantile in nanoseconds, between samples by linear interpolation."""
        if not 0 <= q <= 1:
            raise LaunchError(f"a quantile is a number from 0 to 1, not {q}", remedy="give 0.5 for the median")
        ordered = sorted(self.samples_ns)
        place = q * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    @property
    def median_ms(self) -> float:
        """Median in milliseconds."""
        return self.quantile(0.5) / 1e6

    def milliseconds(self, quantiles: Sequence[float] | None = None) -> Any:
        """The median in milliseconds, or a list of the ``quantiles`` asked for."""
        return self.median_ms if quantiles is None else [self.quantile(q) / 1e6 for q in quantiles]

    @property
    def how(self) -> str:
        """The method in words."""
        if self.method == "graph" and self.per_sample > 1:
            return f"CUDA graphs of {self.per_sample} launches each"
        return {
            "events": "events around single launches",
            "graph": "events around single launches in a CUDA graph",
            "wall": "wall clock around single calls",
        }[self.method]

    def describe(self) -> str:
        """How it was measured, in one line."""
        cache = "cache flushed before each" if self.flushed else "cache as the call before left it"
        note = f"; {self.note}" if self.note else ""
        return f"{self.how}, {cache}, {len(self.samples_ns)} samples after {self.warmup} calls{note}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {
            "samples_ns": list(self.samples_ns),
            "method": self.method,
            "flushed": self.flushed,
            "warmup": self.warmup,
            "per_sample": self.per_sample,
            "note": self.note,
        }


def measure_gpu(
    launch: Callable[[], object],
    *,
    kind: str = "cuda",
    warmup_ms: float = 25.0,
    rep_ms: float = 100.0,
    flush_l2: bool = True,
    method: str = "auto",
    warmup: int | None = None,
    rep: int | None = None,
) -> Measurement:
    """Times work that ``launch`` puts on the current stream of the GPU, of ``kind`` ``cuda`` or ``hip``.

    As many calls as fit into ``warmup_ms`` and ``rep_ms`` (at least :data:`LEAST`), or ``warmup`` and ``rep`` of them.  ``auto``
    takes events, and a graph where one call takes less than :data:`SHORT_NS`; where it cannot be captured events stay, with a
    note.  On AMD's GPUs there are events alone.
    """
    from tilelang_min.runtime import cuda_timing, gpu, gpu_timing

    runtime = gpu.runtime(kind)
    check_method(method, ("auto", "events", "graph"))
    if kind != "cuda" and method == "graph":
        raise LaunchError("graphs are timed on NVIDIA GPUs only", remedy="time it with events: method='events'")
    estimate, before = 0.0, 0
    if method == "auto" or warmup is None or rep is None:
        first = gpu_timing.time_launches(runtime, launch, launches=LEAST, warmup=1, flush_l2=flush_l2)
        estimate, before = sorted(first)[len(first) // 2], LEAST + 1
    calls, samples = _numbers(estimate, warmup_ms, rep_ms, warmup, rep)
    note = ""
    if method == "graph" or (kind == "cuda" and method == "auto" and estimate < SHORT_NS):
        try:
            times = cuda_timing.time_graph(launch, launches=samples, warmup=calls, flush_l2=flush_l2)
        except LaunchError as error:
            if method == "graph":
                raise
            note = error.message
        else:
            per_sample = 1 if flush_l2 else cuda_timing.BATCH
            return Measurement(tuple(times), "graph", flush_l2, calls + before, per_sample)
    times = gpu_timing.time_launches(runtime, launch, launches=samples, warmup=calls, flush_l2=flush_l2)
    return Measurement(tuple(times), "events", flush_l2, calls + before, note=note)


def measure_host(
    launch: Callable[[], object],
    *,
    warmup_ms: float = 25.0,
    rep_ms: float = 100.0,
    flush: Callable[[], None] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
) -> Measurement:
    """Wall time of calls that end when their work is done; ``flush`` empties the cache before each sample."""
    clock = time.perf_counter_ns

    def one() -> float:
        start = clock()
        launch()
        return float(clock() - start)

    estimate, before = 0.0, 0
    if warmup is None or rep is None:
        estimate, before = min(one(), one()), 2
    calls, samples = _numbers(estimate, warmup_ms, rep_ms, warmup, rep)
    for _ in range(calls):
        launch()
    times = []
    for _ in range(samples):
        if flush is not None:
            flush()
        times.append(one())
    return Measurement(tuple(times), "wall", flush is not None, calls + before)


_BACKENDS = {"event": "events", "cupti": "auto", "cudagraph": "graph"}
"""TileLang's words for how a GPU is timed, and ours."""


def method_of(backend: str | None, method: str) -> str:
    """``method``, or what TileLang's ``backend`` means where only that is given.  LaunchError for an unknown one."""
    if backend is None:
        return method
    if backend not in _BACKENDS:
        raise LaunchError(f"there is no backend {backend!r}", remedy=did_you_mean(backend, _BACKENDS))
    return _BACKENDS[backend] if method == "auto" else method


def check_method(method: str, known: Sequence[str] = METHODS) -> None:
    """Raise LaunchError for a method of timing that is not among those known."""
    if method not in known:
        raise LaunchError(f"no such method of timing: {method!r}", remedy=f"choose one of {', '.join(known)}")


def _numbers(
    estimate_ns: float, warmup_ms: float, rep_ms: float, warmup: int | None, rep: int | None
) -> tuple[int, int]:
    """Calls to warm up with, and samples."""
    each = max(estimate_ns, 1.0)
    calls = warmup if warmup is not None else min(MOST, max(1, int(warmup_ms * 1e6 / each)))
    samples = rep if rep is not None else min(MOST, max(LEAST, int(rep_ms * 1e6 / each)))
    return calls, samples
