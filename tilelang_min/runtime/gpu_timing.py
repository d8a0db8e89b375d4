"""Times launches on a GPU of either vendor with events, launch by launch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.runtime.gpu import DeviceBuffer, Runtime
from tilelang_min.runtime.measuring import check_numbers

FLUSH_SIZES = 2
"""How much is written between launches, in sizes of the cache: one with any replacement is then rid of old lines."""


def time_launches(
    gpu: Runtime,
    launch: Callable[[], object],
    *,
    launches: int,
    warmup: int = 3,
    flush_l2: bool = True,
    stream: int | None = None,
) -> list[float]:
    """Nanoseconds of each of ``launches`` calls of ``launch``, in order, warm-up calls not among them.

    ``launch`` must put its work on ``stream`` (default: the current one) and not wait for it.  All launches are enqueued
    before the first result is read, so the time the host takes does not show as long as it is ahead of the device; the
    flush (a memset that does not count) gives it that lead.  Resolution of events: about 0.5 us (CUDA Runtime API,
    cudaEventElapsedTime; HIP's documentation names none).
    """
    check_numbers(launches, warmup)
    gpu.ensure_context()
    chosen = gpu.current_stream() if stream is None else stream
    with ExitStack() as cleanup:
        flush = flush_buffer(gpu, cleanup) if flush_l2 else None
        pairs = event_pairs(gpu, launches, cleanup)
        for _ in range(warmup):
            launch()
        for before, after in pairs:
            if flush is not None:
                gpu.fill_zeros(flush.pointer, flush.nbytes, chosen)
            gpu.record(before, chosen)
            launch()
            gpu.record(after, chosen)
        gpu.synchronize(chosen)
        return [gpu.elapsed_ns(before, after) for before, after in pairs]


def flush_buffer(gpu: Runtime, cleanup: ExitStack) -> DeviceBuffer:
    """Memory that empties the caches when it is written, freed by ``cleanup``."""
    return cleanup.enter_context(gpu.buffer(FLUSH_SIZES * gpu.cache_bytes()))


def event_pairs(gpu: Runtime, count: int, cleanup: ExitStack) -> list[tuple[Any, Any]]:
    """Pairs of events, destroyed by ``cleanup``."""
    pairs = []
    for _ in range(count):
        pair = []
        for _ in range(2):
            pair.append(gpu.new_event())
            cleanup.callback(_destroy, gpu, pair[-1])
        pairs.append((pair[0], pair[1]))
    return pairs


def _destroy(gpu: Runtime, event: Any) -> None:
    with suppress(LaunchError):  # after a kernel that failed nothing can be destroyed; its own error is on the way out
        gpu.destroy_event(event)
