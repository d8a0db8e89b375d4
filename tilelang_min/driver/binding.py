"""A kernel bound to tensors: arguments checked and laid out once, for calls that follow one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelang_min.errors import LaunchError

if TYPE_CHECKING:
    from tilelang_min.driver.kernel import Kernel


def bind(kernel: Kernel, args: tuple[Any, ...]) -> Callable[[], None]:
    """A function that launches ``kernel`` on ``args``, which it keeps alive; on a GPU, on the stream that is current then.

    NumPy arrays are for kernels of the CPU alone: a copy at each launch would be no binding.
    """
    args = kernel.completed(args)
    launcher = kernel._launcher or kernel._load()
    if kernel.target.kind == "cpu":
        prepared, grid = kernel.prepared(args)
        return lambda: launcher(prepared.pointers, grid=grid)
    import numpy as np

    gpu = kernel._gpu
    for parameter, argument in zip(kernel.parameters, args, strict=False):
        if isinstance(argument, np.ndarray):
            raise LaunchError(
                f"parameter {parameter.name}: a NumPy array cannot be bound to a kernel for a GPU",
                remedy="pass a tensor that is on the GPU",
            )
    prepared, grid = kernel.prepared(args)
    if 0 in grid:  # an empty tensor
        return lambda: None
    pointers, threads, device = prepared.pointers, kernel._threads, prepared.device
    kept = prepared.keep

    def launch() -> None:
        context = gpu.ensure_context()
        if device is None or gpu.device_of(context) == device:
            launcher.launch(context, pointers, grid, threads, gpu.current_stream(device))
            return
        with gpu.on_device(device) as context:
            launcher.launch(context, pointers, grid, threads, gpu.current_stream(device))

    launch.__dict__["tensors"] = kept
    return launch
