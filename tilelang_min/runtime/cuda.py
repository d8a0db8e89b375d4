"""NVIDIA's driver through its own Python bindings: contexts, devices, streams and memory.

Everything goes through ``cuda.bindings.driver``, whose calls are the same in all releases of CUDA 12 and 13.  A kernel is
loaded once and used in whichever context is current: torch's when torch has one, else the first device's primary context,
which torch shares.  Launching stands in :mod:`tilelang_min.runtime.cuda_launch`, timing in
:mod:`tilelang_min.runtime.cuda_timing`.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Self

import numpy as np

from tilelang_min.errors import LaunchError

_INSTALL = "python -m pip install 'tileprof[cuda]'"

_REMEDIES = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the binary is for another architecture: compile for the one of this device",
    "CUDA_ERROR_INVALID_IMAGE": "the binary is damaged: compile again",
    "CUDA_ERROR_NOT_FOUND": "the binary holds no kernel of that name: compile again",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the block needs more registers than there are: use fewer threads or smaller tiles",
    "CUDA_ERROR_OUT_OF_MEMORY": "the device's memory is full: free some, or use smaller tensors",
    "CUDA_ERROR_ILLEGAL_ADDRESS": (
        "a kernel read or wrote outside its tensors; this process cannot use the GPU any more, start a new one and run it "
        "under compute-sanitizer"
    ),
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a tensor does not start at a multiple of 16 bytes; start a new process",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "restart the machine or its driver: the kernel module and libcuda differ",
}


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device of the current context.

    ``units`` multiprocessors; bytes for memory, L2 and the most shared memory a block may use; ``driver_version`` is the CUDA
    version that the driver serves.
    """

    name: str
    compute_capability: tuple[int, int]
    units: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes_per_block: int
    driver_version: str


@cache
def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        raise LaunchError(
            "launching on an NVIDIA GPU needs the package cuda-bindings, which is not installed", remedy=_INSTALL
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except Exception as error:  # the bindings raise differing types when libcuda is missing
        raise LaunchError(
            f"no NVIDIA driver here: {error}", remedy="run on a machine with an NVIDIA GPU, or choose the target cpu"
        ) from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(
            f"the NVIDIA driver does not start: {status.name}",
            remedy=_REMEDIES.get(
                status.name, "see whether nvidia-smi lists a GPU, and whether this process may use it"
            ),
        )
    return driver


def available() -> tuple[bool, str]:
    """Whether kernels can be launched here, and why not (or the device's name).  Never raises."""
    try:
        return True, device_info().name
    except LaunchError as error:
        return False, error.message


def driver_module() -> Any:
    """``cuda.bindings.driver``, initialised.  LaunchError where it or the driver is missing."""
    return _driver()


def call(name: str, *arguments: Any) -> Any:
    """Call a function of the driver API; its one result, a tuple of several, or None.  An error status raises LaunchError."""
    driver = _driver()
    status, *results = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        check(status, name)
    if len(results) > 1:
        return tuple(results)
    return results[0] if results else None


def check(status: Any, name: str) -> None:
    """Raise LaunchError for the error status that function ``name`` returned."""
    driver = _driver()
    status = driver.CUresult(status)
    _, text = driver.cuGetErrorString(status)
    reason = text.decode() if isinstance(text, bytes) else str(text)
    raise LaunchError(f"{name} failed: {reason} ({status.name})", remedy=_REMEDIES.get(status.name))


@cache
def native(name: str) -> Any:
    """A function of the driver's library itself, for what every launch calls: returns its status as an integer."""
    _driver()
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    function = getattr(library, name)
    function.restype = ctypes.c_int
    return function


class _Current(threading.local):
    """Of each thread: where the driver writes its current context, and the stream of :func:`use_stream`."""

    def __init__(self) -> None:
        self.stream: int | None = None
        self.context = ctypes.c_void_p()
        self.pointer = ctypes.byref(self.context)


_current = _Current()


def ensure_context() -> int:
    """Makes sure that a context is current in this thread (torch's where torch is in use); its address."""
    status = native("cuCtxGetCurrent")(_current.pointer)
    if status:
        check(status, "cuCtxGetCurrent")
    context = _current.context.value
    if context:
        return context
    torch = _torch()
    _primary_context(torch.cuda.current_device() if torch is not None else 0)
    return int(call("cuCtxGetCurrent"))


def _primary_context(ordinal: int) -> None:
    if call("cuDeviceGetCount") == 0:
        raise LaunchError("no NVIDIA GPU is visible", remedy="see CUDA_VISIBLE_DEVICES and nvidia-smi")
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", ordinal)))


_devices: dict[int, int] = {}
"""Devices of contexts; primary contexts, the ones used here, stay where they are."""


def current_device() -> int:
    """Number of the device of the current context."""
    return device_of(ensure_context())


def device_of(context: int) -> int:
    """Number of the device of a context, which must be the current one."""
    device = _devices.get(context)
    if device is None:
        device = _devices[context] = int(call("cuCtxGetDevice"))
    return device


def stream_of(ordinal: int, torchs: Callable[[int], int]) -> int:
    """The stream of :func:`use_stream`, else torch's current one on a device, which ``torchs`` tells."""
    chosen = _current.stream
    return torchs(ordinal) if chosen is None else chosen


@contextmanager
def on_device(ordinal: int) -> Iterator[int]:
    """Makes the primary context of a device, which torch uses too, the current one of this thread for a while; its address."""
    before = ensure_context()
    _primary_context(ordinal)
    try:
        yield ensure_context()
    finally:
        call("cuCtxSetCurrent", before)


def _torch() -> Any:
    """torch, where it uses the GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None


def current_stream(ordinal: int | None = None) -> int:
    """The stream that launches go to: torch's current one where torch uses the GPU, else the default stream (0).

    ``ordinal``: of which device, if not torch's current one.
    """
    chosen = _current.stream
    if chosen is not None:
        return chosen
    torch = _torch()
    if torch is None:
        return 0
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)  # a tenth of the time of what follows
    if raw is not None:
        return int(raw(torch.cuda.current_device() if ordinal is None else ordinal))
    stream = torch.cuda.current_stream() if ordinal is None else torch.cuda.current_stream(ordinal)
    return int(stream.cuda_stream)


@contextmanager
def use_stream(stream: int) -> Iterator[None]:
    """Makes a stream the current one of this thread, whatever torch's is."""
    before, _current.stream = _current.stream, stream
    try:
        yield
    finally:
        _current.stream = before


def is_capturing(stream: int) -> bool:
    """Whether work put on a stream is being recorded into a CUDA graph."""
    ensure_context()
    status = call("cuStreamIsCapturing", stream)
    return bool(status != _driver().CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)


def synchronize(stream: int | None = None) -> None:
    """Waits until a stream has done all its work.  Errors of kernels launched before surface here as LaunchError."""
    ensure_context()
    call("cuStreamSynchronize", current_stream() if stream is None else stream)


def device_info() -> DeviceInfo:
    """Facts about the device of the current context."""
    ensure_context()
    device = call("cuCtxGetDevice")
    attributes = _driver().CUdevice_attribute

    def ask(attribute: str) -> int:
        return int(call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{attribute}"), device))

    version = int(call("cuDriverGetVersion"))
    name: bytes = call("cuDeviceGetName", 128, device)
    return DeviceInfo(
        name=name.split(b"\0", 1)[0].decode(),
        compute_capability=(ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        units=ask("MULTIPROCESSOR_COUNT"),
        memory_bytes=int(call("cuDeviceTotalMem", device)),
        l2_bytes=ask("L2_CACHE_SIZE"),
        shared_bytes_per_block=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        driver_version=f"{version // 1000}.{version % 1000 // 10}",
    )


class DeviceBuffer:
    """Memory on the device, freed by :meth:`close` or at the end of a ``with`` block; ``pointer`` is its address."""

    def __init__(self, nbytes: int) -> None:
        ensure_context()
        self.nbytes = nbytes
        self.pointer = int(call("cuMemAlloc", max(nbytes, 1)))

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> DeviceBuffer:
        """A copy of an array (of any layout; the copy is C-contiguous)."""
        buffer = cls(array.nbytes)
        buffer.write(array)
        return buffer

    def write(self, array: np.ndarray[Any, Any]) -> None:
        """Copy an array of the same size in bytes to the device, and wait until it is there."""
        packed = np.ascontiguousarray(array)
        self._check_size(packed)
        call("cuMemcpyHtoD", self.pointer, packed.ctypes.data, packed.nbytes)
        synchronize(0)  # the copy returns when its source may be reused, which is earlier

    def read(self, array: np.ndarray[Any, Any]) -> None:
        """Copy to a C-contiguous array of the same size in bytes, behind what the current stream has to do."""
        self._check_size(array)
        if not array.flags.c_contiguous:
            raise LaunchError("a device buffer can only be read into a C-contiguous array", remedy="pass a copy")
        synchronize()
        call("cuMemcpyDtoH", array.ctypes.data, self.pointer, array.nbytes)

    def to_numpy(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        """A copy as a new array."""
        array = np.empty(shape, dtype)
        self.read(array)
        return array

    def _check_size(self, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes != self.nbytes:
            raise LaunchError(
                f"an array of {array.nbytes} bytes does not fit a device buffer of {self.nbytes}",
                remedy="allocate a buffer for this array",
            )

    def close(self) -> None:
        """Free the memory; waits for the device.  Closing twice is fine."""
        if self.pointer:
            call("cuMemFree", self.pointer)
            self.pointer = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error on its way out is the cause; after an illegal address nothing can be freed.
        with suppress(LaunchError) if kind else nullcontext():
            self.close()
