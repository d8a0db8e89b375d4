"""Launching kernels on AMD GPUs: modules and functions of each device, argument buffers, what a launch may be.

The counterpart of :mod:`tilelang_min.runtime.cuda_launch`.  Arguments go as an array of their places (``kernelParams``), whose
sizes the runtime reads from the code object's metadata.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tilelang_min.errors import LaunchError
from tilelang_min.runtime import gpu, hip
from tilelang_min.runtime.hip_library import call, check, handle, library

MOST_WORK_ITEMS = 2**32
"""Work-items of a launch in one direction stay below this (HIP API reference, hipModuleLaunchKernel)."""

_RELAXED = 2
"""``hipStreamCaptureModeRelaxed``."""


class _Call(gpu.ArgumentBuffer):
    """The argument buffers of one launcher in one thread and on one device."""

    __slots__ = ("function",)

    def __init__(self, function: int, count: int) -> None:
        super().__init__(count)
        self.function = function


class _Calls(threading.local):
    """Of each thread its calls by context."""

    def __init__(self) -> None:
        self.by_context: dict[int, _Call] = {}


class Launcher:
    """One kernel of a code object.

    ``launcher(pointers, grid=(x, y, z), threads=n)`` launches it without waiting; errors of the launch itself raise LaunchError
    at once, errors of the kernel when the stream is next synchronised.  ``arch`` is what the code object is for; each device
    that it is launched on is asked whether it is one.
    """

    def __init__(self, binary: bytes, symbol: str, *, arch: str, shared_bytes_dynamic: int = 0, count: int = 0) -> None:
        self.symbol = symbol
        self.arch = arch
        self.shared_bytes_dynamic = shared_bytes_dynamic
        self.count = count
        self._binary = ctypes.create_string_buffer(
            binary, len(binary)
        )  # the runtime may read it later than when loading
        self._calls = _Calls()
        self._functions: dict[int, tuple[int, int]] = {}  # by context: module and function
        self._lock = threading.Lock()
        self._launch = library().hipModuleLaunchKernel
        self._function(hip.ensure_context())

    def __call__(
        self, pointers: Sequence[int], *, grid: tuple[int, int, int], threads: int, stream: int | None = None
    ) -> None:
        """Launch.  ``pointers`` are device addresses in parameter order; ``stream`` defaults to :func:`hip.current_stream`."""
        self.launch(hip.ensure_context(), pointers, grid, threads, hip.current_stream() if stream is None else stream)

    def launch(
        self, context: int, pointers: Sequence[int], grid: tuple[int, int, int], threads: int, stream: int
    ) -> None:
        """The same for who knows the current context and the stream already."""
        one = self._calls.by_context.get(context)
        if one is None or len(one.values) < len(pointers):
            self.count = max(self.count, len(pointers))
            one = self._calls.by_context[context] = _Call(self._function(context), self.count)
        if one.pointers != pointers:
            one.put(pointers)
        x, y, z = grid
        status = self._launch(
            one.function, x, y, z, threads, 1, 1, self.shared_bytes_dynamic, stream, one.addresses, None
        )
        if status:
            self._explain(status, grid, threads)

    def _explain(self, status: int, grid: tuple[int, int, int], threads: int) -> None:
        if grid[0] * threads >= MOST_WORK_ITEMS:
            raise LaunchError(
                f"kernel {self.symbol}: {grid[0]:,} blocks of {threads} threads are more than HIP launches along x",
                remedy="give a block more of the work",
            )
        check(status, "hipModuleLaunchKernel")

    def _function(self, context: int) -> int:
        with self._lock:
            known = self._functions.get(context)
            if known is None:
                known = self._functions[context] = self._load(hip.device_of(context))
            return known[1]

    def _load(self, device: int) -> tuple[int, int]:
        """Module and function on a device, which must be the current one."""
        here = hip.architecture(device)
        if here != self.arch:
            raise LaunchError(
                f"kernel {self.symbol} is for {self.arch}, and device {device} is a {here}",
                remedy=self._elsewhere(here),
            )
        with _uncaptured():
            try:
                with ExitStack() as loaded:
                    module = handle("hipModuleLoadData", ctypes.addressof(self._binary))
                    loaded.callback(_unload, module)
                    function = handle("hipModuleGetFunction", module, self.symbol.encode())
                    loaded.pop_all()
                    return module, function
            except LaunchError as error:
                raise LaunchError(
                    f"kernel {self.symbol} cannot be loaded on device {device} ({here}): {error.message}",
                    remedy=error.remedy,
                ) from None

    def _elsewhere(self, here: str) -> str:
        """What to do where the current device is another one."""
        fitting = [n for n in range(hip.device_count()) if hip.architecture(n) == self.arch]
        if fitting:
            return f"put the tensors on device {fitting[0]}, or set HIP_VISIBLE_DEVICES={fitting[0]}"
        return f"compile for hip:{here}"

    def close(self) -> None:
        """Unloads the binary.  The launcher must not be called afterwards."""
        for module, _ in self._functions.values():
            call("hipModuleUnload", module)
        self._functions.clear()
        self._calls = _Calls()


def _unload(module: int) -> None:
    with suppress(LaunchError):  # another error is on its way out
        call("hipModuleUnload", module)


@contextmanager
def _uncaptured() -> Iterator[None]:
    """Lets this thread load code while a stream of it is being captured into a graph."""
    mode = ctypes.c_int(_RELAXED)
    call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))  # writes back what it was
    try:
        yield
    finally:
        call("hipThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def load(binary: bytes, symbol: str, *, arch: str, shared_bytes_dynamic: int = 0, count: int = 0) -> Launcher:
    """A launcher for kernel ``symbol`` of a code object for ``arch``.  LaunchError where there is no GPU or it does not fit.

    ``count``: arguments of the kernel, if known.
    """
    return Launcher(binary, symbol, arch=arch, shared_bytes_dynamic=shared_bytes_dynamic, count=count)
