"""Launching kernels on NVIDIA GPUs: function handles, argument buffers, clusters, tensor maps.

What a launch needs is laid out once for each thread and context, and handed to ``cuLaunchKernelEx`` directly; a launch neither
waits nor allocates on the device, so it can be captured in a CUDA graph.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tilelang_min.errors import LaunchError
from tilelang_min.program import TensorMap
from tilelang_min.runtime import cuda, gpu
from tilelang_min.runtime.tensor_maps import MapEncoder
from tilelang_min.targets.nvidia import PORTABLE_CLUSTER, STATIC_SHARED_BYTES

CLUSTER_DIMENSION = 4
"""``CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION``."""


class _Attribute(ctypes.Structure):
    """``CUlaunchAttribute``."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class _Call(gpu.ArgumentBuffer):
    """The argument buffers of one launcher in one thread and context."""

    __slots__ = ("attribute", "config", "config_pointer", "function", "last", "maps")

    def __init__(self, function: int, launcher: Launcher) -> None:
        super().__init__(launcher.count, len(launcher.encoders))
        self.function = ctypes.c_void_p(function)
        self.config = _Config(shared=launcher.shared_bytes_dynamic)
        self.config.block[1] = self.config.block[2] = 1
        self.attribute = _Attribute(CLUSTER_DIMENSION)
        if launcher.cluster != (1, 1, 1):
            self.attribute.value[:3] = launcher.cluster
            self.config.attributes = ctypes.pointer(self.attribute)
            self.config.count = 1
        self.config_pointer = ctypes.byref(self.config)
        self.last: tuple[Any, ...] = ()
        self.maps: list[tuple[int, Any]] = []  # another thread may make room where they were kept


class _Calls(threading.local):
    """Of each thread its calls by context."""

    def __init__(self) -> None:
        self.by_context: dict[int, _Call] = {}


class Launcher:
    """One kernel of a loaded binary.

    ``launcher(pointers, grid=(x, y, z), threads=n)`` launches it without waiting; errors of the launch itself raise
    LaunchError at once, errors of the kernel when the stream is next synchronised.  ``cluster`` blocks start together;
    ``tensor_maps`` follow the pointers as arguments, made from those of the parameters they name (``parameters``: all names).
    """

    def __init__(
        self,
        binary: bytes,
        symbol: str,
        *,
        shared_bytes_dynamic: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
        tensor_maps: Sequence[TensorMap] = (),
        parameters: Sequence[str] = (),
    ) -> None:
        cuda.ensure_context()
        self.symbol = symbol
        self.shared_bytes_dynamic = shared_bytes_dynamic
        self.cluster = cluster
        self.count = len(parameters)
        self._calls = _Calls()
        self._functions: dict[int, int] = {}  # by context: a library is shared by all, a function belongs to one
        self._lock = threading.Lock()
        self._library: Any = None
        self.encoders = [_encoder(tensor_map, parameters, symbol) for tensor_map in tensor_maps]
        self._launch = cuda.native("cuLaunchKernelEx")
        try:
            with _uncaptured():
                self._library = cuda.call("cuLibraryLoadData", binary, [], [], 0, [], [], 0)
                self._kernel = cuda.call("cuLibraryGetKernel", self._library, symbol.encode())
            self._function(cuda.ensure_context())  # with lazy loading, a binary that does not fit is only noticed here
        except LaunchError as error:
            with suppress(LaunchError):
                self.close()
            info = cuda.device_info()
            major, minor = info.compute_capability
            raise LaunchError(
                f"kernel {symbol} cannot be loaded on {info.name} (sm_{major}{minor}): {error.message}",
                remedy=error.remedy,
            ) from None

    def __call__(
        self, pointers: Sequence[int], *, grid: tuple[int, int, int], threads: int, stream: int | None = None
    ) -> None:
        """Launch.  ``pointers`` are device addresses in parameter order; ``stream`` defaults to :func:`cuda.current_stream`."""
        self.launch(cuda.ensure_context(), pointers, grid, threads, cuda.current_stream() if stream is None else stream)

    def launch(
        self, context: int, pointers: Sequence[int], grid: tuple[int, int, int], threads: int, stream: int
    ) -> None:
        """The same for who knows the current context and the stream already."""
        call = self._calls.by_context.get(context)
        if call is None or len(call.values) < len(pointers):
            call = self._prepare(context, len(pointers))
        if call.last != (grid, threads):
            self._shape(call, grid, threads)
        if call.pointers != pointers:
            self._point(call, pointers)
        call.config.stream = stream
        status = self._launch(call.config_pointer, call.function, call.addresses, None)
        if status:
            cuda.check(status, "cuLaunchKernelEx")

    def _prepare(self, context: int, count: int) -> _Call:
        self.count = max(self.count, count)
        call = self._calls.by_context[context] = _Call(self._function(context), self)
        return call

    def _point(self, call: _Call, pointers: Sequence[int]) -> None:
        call.pointers = None  # until all is in place
        call.maps = [encoder.encoded_for(pointers) for encoder in self.encoders]
        for slot, (address, _) in enumerate(call.maps, self.count):
            call.addresses[slot] = address
        call.put(pointers)

    def _shape(self, call: _Call, grid: tuple[int, int, int], threads: int) -> None:
        for extent, size, axis in zip(grid, self.cluster, "xyz", strict=True):
            if extent % size:
                raise LaunchError(
                    f"kernel {self.symbol}: {extent} blocks along {axis} are not whole clusters of {size}",
                    remedy="launch a multiple of the cluster",
                )
        call.config.grid[:] = grid
        call.config.block[0] = threads
        call.last = (grid, threads)

    def _function(self, context: int) -> int:
        with self._lock:
            function = self._functions.get(context)
            if function is None:
                with _uncaptured():
                    handle = cuda.call("cuKernelGetFunction", self._kernel)
                    self._attributes(handle)
                function = self._functions[context] = int(handle)
            return function

    def _attributes(self, function: Any) -> None:
        attributes = cuda.driver_module().CUfunction_attribute
        if self.shared_bytes_dynamic > STATIC_SHARED_BYTES:
            info = cuda.device_info()
            if self.shared_bytes_dynamic > info.shared_bytes_per_block:
                raise LaunchError(
                    f"it needs {self.shared_bytes_dynamic} bytes of shared memory a block, "
                    f"the device has {info.shared_bytes_per_block}",
                    remedy="use smaller tiles or fewer stages",
                )
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            cuda.call("cuFuncSetAttribute", function, attribute, self.shared_bytes_dynamic)
        x, y, z = self.cluster
        if x * y * z > PORTABLE_CLUSTER:
            attribute = attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            cuda.call("cuFuncSetAttribute", function, attribute, 1)

    def close(self) -> None:
        """Unloads the binary.  The launcher must not be called afterwards."""
        if self._library is not None:
            cuda.call("cuLibraryUnload", self._library)
            self._library = None
            self._functions.clear()
            self._calls = _Calls()


def _encoder(tensor_map: TensorMap, parameters: Sequence[str], symbol: str) -> MapEncoder:
    if tensor_map.parameter not in parameters:
        raise LaunchError(
            f"kernel {symbol}: tensor map {tensor_map.name} describes {tensor_map.parameter}, which is no parameter",
            remedy="compile the kernel again",
        )
    names = list(parameters)
    sizes = {extent: names.index(extent) for extent in tensor_map.shape if isinstance(extent, str)}
    return MapEncoder(tensor_map, names.index(tensor_map.parameter), cuda.driver_module(), cuda.call, sizes)


@contextmanager
def _uncaptured() -> Iterator[None]:
    """Lets this thread load code while a stream of it is being captured into a graph."""
    relaxed = cuda.driver_module().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = cuda.call("cuThreadExchangeStreamCaptureMode", relaxed)
    try:
        yield
    finally:
        cuda.call("cuThreadExchangeStreamCaptureMode", before)


def load(
    binary: bytes,
    symbol: str,
    *,
    shared_bytes_dynamic: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
    tensor_maps: Sequence[TensorMap] = (),
    parameters: Sequence[str] = (),
) -> Launcher:
    """A launcher for kernel ``symbol`` of a cubin.  LaunchError where there is no GPU or the binary does not fit it."""
    return Launcher(
        binary,
        symbol,
        shared_bytes_dynamic=shared_bytes_dynamic,
        cluster=cluster,
        tensor_maps=tensor_maps,
        parameters=parameters,
    )
