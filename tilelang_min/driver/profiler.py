"""Timing one kernel: what ``kernel.get_profiler()`` gives, as in TileLang."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.driver.fills import random_arguments
from tilelang_min.errors import LaunchError
from tilelang_min.runtime.measuring import Measurement, check_method, measure_gpu, measure_host

if TYPE_CHECKING:
    from tilelang_min.driver.kernel import Kernel


class Profiler:
    """Timing of one kernel on tensors, or on random inputs where none are given.

    In all methods ``warmup`` and ``rep`` are numbers of calls; ``flush_l2`` says whether a GPU's L2 cache is emptied before each
    sample (a CPU's caches are as the call before left them); ``method`` is as in :func:`tilelang_min.profiler.measure`, and for
    kernels of a CPU always the wall clock.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def do_bench(
        self,
        *args: Any,
        warmup: int = 3,
        rep: int = 20,
        quantiles: Sequence[float] | None = None,
        flush_l2: bool = True,
        method: str = "auto",
    ) -> Any:
        """Median time of a call in milliseconds, or a list of the ``quantiles`` asked for."""
        measured = self.measure(*args, warmup=warmup, rep=rep, flush_l2=flush_l2, method=method)
        return measured.milliseconds(quantiles)

    def samples(
        self, *args: Any, warmup: int = 3, rep: int = 20, flush_l2: bool = True, method: str = "events"
    ) -> list[float]:
        """Nanoseconds of each of ``rep`` launches, in order."""
        measured = self.measure(*args, warmup=warmup, rep=rep, flush_l2=flush_l2, method=method)
        return list(measured.samples_ns)

    def measure(
        self,
        *args: Any,
        warmup: int | None = None,
        rep: int | None = None,
        flush_l2: bool = True,
        method: str = "auto",
    ) -> Measurement:
        """The samples, with how they were taken.  Without ``warmup`` and ``rep`` as many as fit into 25 and 100 ms."""
        check_method(method)
        if (rep is not None and rep < 1) or (warmup is not None and warmup < 0):
            raise LaunchError(
                f"warmup={warmup} and rep={rep} leave nothing to measure",
                remedy="give rep of 1 or more, warmup of 0 or more",
            )
        with self.launching(*args) as launch:
            if self.kernel.target.kind == "cpu":
                return measure_host(launch, warmup=warmup, rep=rep)
            kind = self.kernel.target.kind
            return measure_gpu(launch, kind=kind, warmup=warmup, rep=rep, flush_l2=flush_l2, method=method)

    @contextmanager
    def launching(self, *args: Any) -> Iterator[Callable[[], None]]:
        """A function that launches on arguments prepared once; NumPy arrays are copied to a GPU before, and back afterwards."""
        kernel = self.kernel
        tensors = kernel.completed(args) or random_arguments(kernel.parameters)
        launcher = kernel._launcher or kernel._load()
        if kernel.target.kind == "cpu":
            prepared, grid = kernel.prepared(tensors)
            yield lambda: launcher(prepared.pointers, grid=grid)
            return
        gpu = kernel._gpu
        device = call_arguments.device_of(kernel.parameters, tensors)
        with gpu.on_device(gpu.current_device() if device is None else device):  # copies of arrays go there too
            prepared, grid = kernel.prepared(tensors)
            threads, pointers = kernel._threads, prepared.pointers
            with prepared:
                yield lambda: launcher(pointers, grid=grid, threads=threads)
