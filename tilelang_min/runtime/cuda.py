"""NVIDIA's driver through its own Python bindings: contexts, devices, streams and memory.

Everything goes through ``cuda.bindings.driver``, whose calls are the same in all releases of CUDA 12 and 13.  A kernel is
loaded once and used in whichever context is current: torch's when torch has one, else the first device's primary context,
which torch shares.  Launching stands in :mod:`tilelang_min.runtime.cuda_launch`, timing in
:mod:`tilelang_min.runtime.cuda_timing`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilelang_min.errors import LaunchError
from tilelang_min.runtime import gpu

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


class _Current(gpu.ChosenStream):
    """Of each thread also: where the driver writes its current context."""

    def __init__(self) -> None:
        super().__init__()
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
    torch = gpu.torch_on("cuda")
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


def current_stream(ordinal: int | None = None) -> int:
    """The stream that launches go to: torch's current one where torch uses the GPU, else the default stream (0).

    ``ordinal``: of which device, if not torch's current one.
    """
    chosen = _current.stream
    if chosen is not None:
        return chosen
    torch = gpu.torch_on("cuda")
    return 0 if torch is None else gpu.torch_stream(torch, ordinal)


use_stream = _current.use
"""Makes a stream the current one of this thread, whatever torch's is: ``with use_stream(stream): ...``"""


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


class DeviceBuffer(gpu.DeviceBuffer):
    """Memory on the device of the current context."""

    def _allocate(self, nbytes: int) -> int:
        ensure_context()
        return int(call("cuMemAlloc", nbytes))

    def _free(self) -> None:
        call("cuMemFree", self.pointer)

    def _copy_in(self, address: int) -> None:
        call("cuMemcpyHtoD", self.pointer, address, self.nbytes)
        synchronize(0)  # the copy returns when its source may be reused, which is earlier

    def _copy_out(self, address: int) -> None:
        synchronize()
        call("cuMemcpyDtoH", address, self.pointer, self.nbytes)


def buffer(nbytes: int) -> DeviceBuffer:
    """Memory on the device of the current context."""
    return DeviceBuffer(nbytes)


def copy_of(array: np.ndarray[Any, Any]) -> DeviceBuffer:
    """A copy of an array there."""
    return DeviceBuffer.from_numpy(array)


def cache_bytes() -> int:
    """Bytes of the L2 cache."""
    return device_info().l2_bytes


def fill_zeros(pointer: int, nbytes: int, stream: int) -> None:
    """Puts writing zeros on a stream."""
    call("cuMemsetD8Async", pointer, 0, nbytes, stream)


def new_event() -> Any:
    """An event that can be timed."""
    return call("cuEventCreate", 0)


def record(event: Any, stream: int) -> None:
    """Puts an event on a stream."""
    call("cuEventRecord", event, stream)


def elapsed_ns(before: Any, after: Any) -> float:
    """Nanoseconds between two events that have happened."""
    return float(call("cuEventElapsedTime", before, after)) * 1e6


def destroy_event(event: Any) -> None:
    """Gives an event back."""
    call("cuEventDestroy", event)
