"""Times work on an NVIDIA GPU with events: launch by launch, or replayed from a CUDA graph where launching takes longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.runtime import gpu_timing
from tilelang_min.runtime.cuda import (
    call,
    current_stream,
    driver_module,
    ensure_context,
    synchronize,
    use_stream,
)
from tilelang_min.runtime.gpu import runtime, torch_on
from tilelang_min.runtime.measuring import check_numbers

BATCH = 20
"""Launches of one replay of a graph without flushes."""

_EXTERNAL = 1
"""``CU_EVENT_RECORD_EXTERNAL``: an event recorded in a graph at each replay."""
_NON_BLOCKING = 1
"""``CU_STREAM_NON_BLOCKING``."""


def time_launches(
    launch: Callable[[], object], *, launches: int, warmup: int = 3, flush_l2: bool = True, stream: int | None = None
) -> list[float]:
    """Nanoseconds of each call, by events: :func:`tilelang_min.runtime.gpu_timing.time_launches` on an NVIDIA GPU."""
    return gpu_timing.time_launches(
        runtime("cuda"), launch, launches=launches, warmup=warmup, flush_l2=flush_l2, stream=stream
    )


def time_graph(
    launch: Callable[[], object], *, launches: int, warmup: int = 3, flush_l2: bool = True, batch: int = BATCH
) -> list[float]:
    """Nanoseconds of each of ``launches`` samples, replayed from a CUDA graph: the host's share of a launch does not show.

    With ``flush_l2`` one graph holds all samples, each a flush, an event, one launch and an event.  Without, a sample is the mean
    of ``batch`` launches that follow one another in a graph.  ``launch`` must put its work on the current stream (see
    :func:`tilelang_min.runtime.cuda.current_stream`) and neither wait nor allocate; LaunchError where it cannot be captured.
    """
    check_numbers(launches, warmup)
    cuda = runtime("cuda")
    ensure_context()
    with ExitStack() as cleanup:
        stream = int(call("cuStreamCreate", _NON_BLOCKING))
        cleanup.callback(_destroy, "cuStreamDestroy", stream)
        flush = gpu_timing.flush_buffer(cuda, cleanup) if flush_l2 else None
        pairs = gpu_timing.event_pairs(cuda, launches, cleanup)
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
            return [cuda.elapsed_ns(before, after) for before, after in pairs]
        for before, after in pairs:
            call("cuEventRecord", before, stream)
            call("cuGraphLaunch", graph, stream)
            call("cuEventRecord", after, stream)
        synchronize(stream)
        return [cuda.elapsed_ns(before, after) / batch for before, after in pairs]


def _captured(work: Callable[[], None], stream: int, cleanup: ExitStack) -> Any:
    """What ``work`` puts on the stream, as a graph that can be launched."""
    modes = driver_module().CUstreamCaptureMode
    call("cuStreamBeginCapture", stream, modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    try:
        work()
        graph = call("cuStreamEndCapture", stream)
    except BaseException as error:
        with suppress(LaunchError):  # the capture has failed: this only ends it
            call("cuGraphDestroy", call("cuStreamEndCapture", stream))
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
    torch = torch_on("cuda")
    in_torch: Any = nullcontext()
    if torch is not None:
        in_torch = torch.cuda.stream(torch.cuda.ExternalStream(stream))
    with in_torch, use_stream(stream):
        yield


def _destroy(name: str, handle: object) -> None:
    with suppress(LaunchError):  # after a kernel that failed nothing can be destroyed; its own error is on the way out
        call(name, handle)
