"""Times launches on an NVIDIA GPU with events, each behind a flush of the L2 cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress

from tilelang_min.errors import LaunchError
from tilelang_min.runtime.cuda import DeviceBuffer, call, current_stream, device_info, ensure_context, synchronize

FLUSH_L2_SIZES = 2
"""How much is written between launches, in sizes of the L2 cache: a cache with any replacement is then rid of old lines."""


def time_launches(
    launch: Callable[[], object], *, launches: int, warmup: int = 3, flush_l2: bool = True, stream: int | None = None
) -> list[float]:
    """Nanoseconds of each of ``launches`` calls of ``launch``, in order, warm-up calls not among them.

    ``launch`` must put its work on ``stream`` (default: the current one) and not wait for it.  All launches are enqueued
    before the first result is read, so the time the host takes does not show as long as it is ahead of the device; the
    flush (a memset that does not count) gives it that lead.  Resolution of events: about 0.5 us (CUDA Runtime API,
    cudaEventElapsedTime).
    """
    if launches < 1 or warmup < 0:
        raise LaunchError("launches must be at least 1, warmup at least 0")
    ensure_context()
    chosen = current_stream() if stream is None else stream
    with ExitStack() as cleanup:
        flush = DeviceBuffer(FLUSH_L2_SIZES * device_info().l2_bytes) if flush_l2 else None
        if flush is not None:
            cleanup.enter_context(flush)
        pairs = []
        for _ in range(launches):
            pair = (call("cuEventCreate", 0), call("cuEventCreate", 0))
            for event in pair:
                cleanup.callback(_destroy, event)
            pairs.append(pair)
        for _ in range(warmup):
            launch()
        for before, after in pairs:
            if flush is not None:
                call("cuMemsetD8Async", flush.pointer, 0, flush.nbytes, chosen)
            call("cuEventRecord", before, chosen)
            launch()
            call("cuEventRecord", after, chosen)
        synchronize(chosen)
        return [float(call("cuEventElapsedTime", before, after)) * 1e6 for before, after in pairs]


def _destroy(event: object) -> None:
    with suppress(LaunchError):  # after a kernel that failed nothing can be destroyed; its own error is on the way out
        call("cuEventDestroy", event)
