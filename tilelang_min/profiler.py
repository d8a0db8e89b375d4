"""Timing anything on a device, as in TileLang: ``from tilelang_min.profiler import do_bench``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelang_min.runtime.measuring import Measurement, check_method, measure_gpu, measure_host, method_of

__all__ = ["Measurement", "do_bench", "measure"]


def measure(
    fn: Callable[[], object],
    *,
    warmup_ms: float = 25.0,
    rep_ms: float = 100.0,
    flush_l2: bool = True,
    method: str = "auto",
) -> Measurement:
    """Times ``fn`` and says how: the samples in nanoseconds, with the method that took them.

    ``fn`` puts its work on the GPU's current stream (torch's, where torch is in use), without waiting; or, with ``method="wall"``,
    does it on the host before it returns.  ``flush_l2`` empties the L2 cache before each sample.  ``method``: ``events`` around
    single calls, ``graph`` (a CUDA graph of calls: for work so short that launching it takes longer), ``wall``, or ``auto``: events
    on a GPU, a graph for short work that can be captured (on NVIDIA's), the wall clock where there is no GPU.
    """
    from tilelang_min.driver.target_names import launching_kind

    check_method(method)
    kind = None if method == "wall" else launching_kind()
    if method == "wall" or (method == "auto" and kind is None):
        return measure_host(fn, warmup_ms=warmup_ms, rep_ms=rep_ms)
    return measure_gpu(fn, kind=kind or "cuda", warmup_ms=warmup_ms, rep_ms=rep_ms, flush_l2=flush_l2, method=method)


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25.0,
    rep: float = 100.0,
    *,
    quantiles: Sequence[float] | None = None,
    flush_l2: bool = True,
    method: str = "auto",
    backend: str | None = None,
) -> Any:
    """Milliseconds of ``fn``: the median, or a list of the ``quantiles`` asked for.  See :func:`measure`.

    ``warmup`` and ``rep`` are milliseconds to spend on calls before and on samples; ``backend`` is TileLang's word for ``method``:
    ``event``, ``cudagraph``, or ``cupti``, which is timed as ``auto`` does.
    """
    method = method_of(backend, method)
    return measure(fn, warmup_ms=warmup, rep_ms=rep, flush_l2=flush_l2, method=method).milliseconds(quantiles)
