"""Timing and checking one kernel: what ``kernel.get_profiler()`` gives, as in TileLang."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilelang_min.driver import arguments as call_arguments
from tilelang_min.driver.fills import supplied_arguments, way
from tilelang_min.errors import LaunchError
from tilelang_min.runtime.measuring import Measurement, check_method, measure_gpu, measure_host, method_of

if TYPE_CHECKING:
    from tilelang_min.driver.kernel import Kernel
    from tilelang_min.program import Parameter


class Profiler:
    """Timing of one kernel on tensors, or on inputs made for it where none are given; comparing it with a reference.

    In all methods ``warmup`` and ``rep`` are numbers of calls; ``flush_l2`` says whether a GPU's L2 cache is emptied before each
    sample (a CPU's caches are as the call before left them); ``method`` is as in :func:`tilelang_min.profiler.measure`, and for
    kernels of a CPU always the wall clock.
    """

    def __init__(self, kernel: Kernel, tensor_supply_type: Any = "Auto") -> None:
        self.kernel = kernel
        self.kind = way(tensor_supply_type)

    def do_bench(
        self,
        *args: Any,
        warmup: int = 3,
        rep: int = 20,
        quantiles: Sequence[float] | None = None,
        flush_l2: bool = True,
        method: str = "auto",
        backend: str | None = None,
        input_tensors: Sequence[Any] | None = None,
    ) -> Any:
        """Median time of a call in milliseconds, or a list of the ``quantiles`` asked for.

        With a function in place of tensors, ``do_bench(reference)``, that is timed on inputs made for the kernel.  ``backend`` is
        TileLang's word for ``method``; ``input_tensors`` are another way to give tensors.
        """
        method = method_of(backend, method)
        args = args or tuple(input_tensors or ())
        if len(args) == 1 and callable(args[0]) and not hasattr(args[0], "shape"):
            return self._timed(args[0], warmup, rep, flush_l2, method).milliseconds(quantiles)
        measured = self.measure(*args, warmup=warmup, rep=rep, flush_l2=flush_l2, method=method)
        return measured.milliseconds(quantiles)

    def _timed(self, function: Callable[..., Any], warmup: int, rep: int, flush_l2: bool, method: str) -> Measurement:
        """Samples of a function on the tensors of a call."""
        check_method(method)
        kernel = self.kernel
        given = self._made([item for number, item in enumerate(kernel.parameters) if number not in kernel.out_idx])
        if kernel.target.kind == "cpu":
            return measure_host(lambda: function(*given), warmup=warmup, rep=rep)
        return measure_gpu(
            lambda: function(*given), kind=kernel.target.kind, warmup=warmup, rep=rep, flush_l2=flush_l2, method=method
        )

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
        tensors = kernel.completed(args) or supplied_arguments(kernel.parameters, self.kind)
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

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Run the kernel and ``reference_program`` on the same inputs and compare, as in TileLang.

        Both get the tensors of a call: ``input_tensors``, or ones made for this (torch's where it is in use, else arrays).
        Compared is what they return, element by element: ``|result - reference| <= atol + rtol * |reference|``, NaN equal to NaN,
        of all but a share of ``max_mismatched_ratio`` of the elements.  Where the kernel returns nothing, the parameters that it
        writes are compared with what the reference returns or, if nothing, with what it leaves in tensors of its own.

        Raises AssertionError with the tensor, the number of elements and the largest difference; LaunchError where the reference
        gives another number of tensors.
        """
        kernel = self.kernel
        allocated = set(kernel.out_idx)
        parameters = [item for number, item in enumerate(kernel.parameters) if number not in allocated]
        given = list(input_tensors) if input_tensors is not None else self._made(parameters)
        found = _listed(kernel(*given) if kernel.out_idx else None)
        for_reference = given
        if not kernel.out_idx:
            for_reference = [_copy(tensor) for tensor in given]
            kernel(*given)
        wanted = _listed(reference_program(*for_reference))
        names = [item.name for number, item in enumerate(kernel.parameters) if number in allocated]
        if not kernel.out_idx:
            written = [number for number, item in enumerate(parameters) if item.access != "in"]
            names = [parameters[number].name for number in written]
            found = [given[number] for number in written]
            wanted = wanted or [for_reference[number] for number in written]
        if len(found) != len(wanted):
            raise LaunchError(
                f"kernel {kernel.name} gives {len(found)} tensors ({', '.join(names)}), the reference {len(wanted)}",
                remedy="let the reference return them in this order",
            )
        for name, one, other in zip(names, found, wanted, strict=True):
            if other is not None:
                _check_close(name, one, other, atol, rtol, max_mismatched_ratio)

    def _made(self, parameters: Sequence[Parameter]) -> list[Any]:
        """Inputs for a call, of torch on the kernel's device where torch is in use."""
        arrays = supplied_arguments(parameters, self.kind)
        torch = sys.modules.get("torch")
        if torch is None:
            return list(arrays)
        device = "cpu" if self.kernel.target.kind == "cpu" else "cuda"
        return [
            call_arguments.torch_tensor(item.dtype, array).to(device)
            for item, array in zip(parameters, arrays, strict=True)
        ]


def _listed(result: Any) -> list[Any]:
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _copy(tensor: Any) -> Any:
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def _doubles(tensor: Any) -> Any:
    """The elements as float64 in host memory."""
    import numpy as np

    if hasattr(tensor, "detach"):
        return tensor.detach().cpu().double().numpy()
    return np.asarray(tensor).astype(np.float64)


def _check_close(name: str, found: Any, wanted: Any, atol: float, rtol: float, ratio: float) -> None:
    import numpy as np

    one, other = _doubles(found), _doubles(wanted)
    if one.shape != other.shape:
        raise AssertionError(f"{name} has shape {one.shape}, the reference {other.shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(one - other)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        off = ~same & ~((gap <= atol + rtol * np.abs(other)) & np.isfinite(other))
    count = int(off.sum())
    if count > ratio * one.size:
        largest = float(np.nan_to_num(gap[off], nan=np.inf, posinf=np.inf).max())
        place = tuple(int(index) for index in np.argwhere(off)[0])
        raise AssertionError(
            f"{name} differs from the reference in {count:,} of {one.size:,} elements by more than {atol} + {rtol} of it, at most "
            f"by {largest:g}; the first is {name}{list(place)}: {one[place]:g} instead of {other[place]:g}"
        )
