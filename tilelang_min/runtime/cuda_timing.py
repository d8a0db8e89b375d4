"""Times work on an NVIDIA GPU with events: launch by launch, or replayed from a CUDA graph where launching takes longer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.runtime.cuda import (
    DeviceBuffer,
    call,
    current_stream,
    device_info,
    driver_module,
    ensure_context,
    synchronize,
    use_stream,
)

FLUSH_L2_SIZES = 2
"""How much is written between launches, in sizes of the L2 cache: a cache with any replacement is then rid of old lines."""

BATCH = 20
"""Launches of one replay of a graph without flushes."""

_EXTERNAL = 1
"""``CU_EVENT_RECORD_EXTERNAL``: an event recorded in a graph at each replay."""
_NON_BLOCKING = 1
"""``CU_STREAM_NON_BLOCKING``."""


def time_launches(
    launch: Callable[[], object], *, launches: int, warmup: int = 3, flush_l2: bool = True, stream: int | None = None
) -> list[float]:
    """Nanoseconds of each of ``launches`` calls of ``launch``, in order, warm-up calls not among them.

    ``launch`` must put its work on ``stream`` (default: the current one) and not wait for it.  All launches are enqueued
    before the first result is read, so the time the host takes does not show as long as it is ahead of the device; the
    flush (a memset that does not count) gives it that lead.  Resolution of events: about 0.5 us (CUDA Runtime API,
    cudaEventElapsedTime).
    """
    _check(launches, warmup)
    ensure_context()
    chosen = current_stream() if stream is None else stream
    with ExitStack() as cleanup:
        flush = _flush(cleanup) if flush_l2 else None
        pairs = _event_pairs(launches, cleanup)
        for _ in range(warmup):
            launch()
        for before, after in pairs:
            if flush is not None:
                call("cuMemsetD8Async", flush.pointer, 0, flush.nbytes, chosen)
            call("cuEventRecord", before, chosen)
            launch()
            call("cuEventRecord", after, chosen)
        synchronize(chosen)
        return [_elapsed_ns(before, after) for before, after in pairs]


def time_graph(
    launch: Callable[[], object], *, launches: int, warmup: int = 3, flush_l2: bool = True, batch: int = BATCH
) -> list[float]:
    """Nanoseconds of each of ``launches`` samples, replayed from a CUDA graph: the host's share of a launch does not show.

    With ``flush_l2`` one graph holds all samples, each a flush, an event, one launch and an event.  Without, a sample is the mean
    of ``batch`` launches that follow one another in a graph.  ``launch`` must put its work on the current stream (see
    :func:`tilelang_min.runtime.cuda.current_stream`) and neither wait nor allocate; LaunchError where it cannot be captured.
    """
    _check(launches, warmup)
    ensure_context()
    with ExitStack() as cleanup:
        stream = int(call("cuStreamCreate", _NON_BLOCKING))
        cleanup.callback(_destroy, "cuStreamDestroy", stream)
        flush = _flush(cleanup) if flush_l2 else None
        pairs = _event_pairs(launches, cleanup)
        synchronize(current_stream())  # what the arguments still wait for
        with _on_stream(stream):
            for _ in range(warmup):
                launch()
            synchronize(stream)

            def work() -> None:
                if flush is None:
                    for _ in range(batch):
                        launch()
                    return
                for before, after in pairs:
                    call("cuMemsetD8Async", flush.pointer, 0, flush.nbytes, stream)
                    call("cuEventRecordWithFlags", before, stream, _EXTERNAL)
                    launch()
                    call("cuEventRecordWithFlags", after, stream, _EXTERNAL)

            graph = _captured(work, stream, cleanup)
        call("cuGraphLaunch", graph, stream)  # the first replay loads what the graph needs
        if flush is not None:
            call("cuGraphLaunch", graph, stream)
            synchronize(stream)
            return [_elapsed_ns(before, after) for before, after in pairs]
        for before, after in pairs:
            call("cuEventRecord", before, stream)
            call("cuGraphLaunch", graph, stream)
            call("cuEventRecord", after, stream)
        synchronize(stream)
        return [_elapsed_ns(before, after) / batch for before, after in pairs]


def _check(launches: int, warmup: int) -> None:
    if launches < 1 or warmup < 0:
        raise LaunchError("launches must be at least 1, warmup at least 0")


def _captured(work: Callable[[], None], stream: int, cleanup: ExitStack) -> Any:
    """What ``work`` puts on the stream, as a graph that can be launched."""
    modes = driver_module().CUstreamCaptureMode
    call("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    try:
        work()
        graph = call("cuStreamEndCapture", stream)
    except BaseException as error:
        with suppress(LaunchError):  # the capture has failed: this only ends it
            call("cuStreamEndCapture", stream)
        if isinstance(error, LaunchError):
            raise LaunchError(
                f"the work cannot be captured in a CUDA graph: {error.message}",
                remedy="time it with events: method='events'",
            ) from None
        raise
    cleanup.callback(_destroy, "cuGraphDestroy", graph)
    ready = call("cuGraphInstantiate", graph, 0)
    cleanup.callback(_destroy, "cuGraphExecDestroy", ready)
    return ready


@contextmanager
def _on_stream(stream: int) -> Iterator[None]:
    """Makes a stream the current one, torch's too."""
    torch = sys.modules.get("torch")
    in_torch: Any = nullcontext()
    if torch is not None and torch.cuda.is_initialized():
        in_torch = torch.cuda.stream(torch.cuda.ExternalStream(stream))
    with in_torch, use_stream(stream):
        yield


def _flush(cleanup: ExitStack) -> DeviceBuffer:
    return cleanup.enter_context(DeviceBuffer(FLUSH_L2_SIZES * device_info().l2_bytes))


def _event_pairs(count: int, cleanup: ExitStack) -> list[tuple[Any, Any]]:
    pairs = []
    for _ in range(count):
        pair = (call("cuEventCreate", 0), call("cuEventCreate", 0))
        for event in pair:
            cleanup.callback(_destroy, "cuEventDestroy", event)
        pairs.append(pair)
    return pairs


def _elapsed_ns(before: Any, after: Any) -> float:
    return float(call("cuEventElapsedTime", before, after)) * 1e6


def _destroy(name: str, handle: object) -> None:
    with suppress(LaunchError):  # after a kernel that failed nothing can be destroyed; its own error is on the way out
        call(name, handle)
