"""AMD GPUs through the HIP runtime: devices, streams, memory and events; the counterpart of :mod:`tilelang_min.runtime.cuda`.

A context is a device's number plus one.  torch, where it is built for ROCm and in use, decides the device and the stream.
Launching stands in :mod:`tilelang_min.runtime.hip_launch`, the library itself in :mod:`tilelang_min.runtime.hip_library`.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_min.errors import LaunchError
from tilelang_min.runtime import gpu
from tilelang_min.runtime.hip_library import ATTRIBUTES, call, handle, number, text
from tilelang_min.targets import amd, resolve
from tilelang_min.targets import kfd as topology

_PROPERTIES_BYTES = 1 << 14
"""More than any release's ``hipDeviceProp_tR0600`` (1472 bytes in ROCm 6)."""
_NOT_CAPTURING = 0
"""``hipStreamCaptureStatusNone``."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device of the current context.

    ``arch`` is ``gfx942``; ``units`` compute units; bytes for memory, L2 (of one die) and the most LDS a block may use;
    ``driver_version`` is the HIP runtime's.
    """

    name: str
    arch: str
    units: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes_per_block: int
    driver_version: str


def available() -> tuple[bool, str]:
    """Whether kernels can be launched here, and why not (or the device's name).  Never raises."""
    try:
        return True, device_info().name
    except LaunchError as error:
        return False, error.message


_current = gpu.ChosenStream()

use_stream = _current.use
"""Makes a stream the current one of this thread, whatever torch's is: ``with use_stream(stream): ...``"""


def current_device() -> int:
    """Number of the device of this thread, which is torch's too."""
    return number("hipGetDevice")


def ensure_context() -> int:
    """The context of this thread's device.  LaunchError where there is none."""
    return number("hipGetDevice") + 1


def device_of(context: int) -> int:
    """Number of the device of a context."""
    return context - 1


def stream_of(ordinal: int, torchs: Callable[[int], int]) -> int:
    """The stream of :func:`use_stream`, else torch's current one on a device, which ``torchs`` tells."""
    chosen = _current.stream
    return torchs(ordinal) if chosen is None else chosen


@contextmanager
def on_device(ordinal: int) -> Iterator[int]:
    """Makes a device the current one of this thread for a while; its context."""
    before = current_device()
    if before == ordinal:
        yield before + 1
        return
    call("hipSetDevice", ordinal)
    try:
        yield ordinal + 1
    finally:
        call("hipSetDevice", before)


def current_stream(ordinal: int | None = None) -> int:
    """The stream that launches go to: torch's current one where torch uses the GPU, else the default stream (0).

    ``ordinal``: of which device, if not torch's current one.
    """
    chosen = _current.stream
    if chosen is not None:
        return chosen
    torch = gpu.torch_on("hip")
    return 0 if torch is None else gpu.torch_stream(torch, ordinal)


def is_capturing(stream: int) -> bool:
    """Whether work put on a stream is being recorded into a graph."""
    value = ctypes.c_int()
    call("hipStreamIsCapturing", stream, ctypes.byref(value))
    return value.value != _NOT_CAPTURING


def synchronize(stream: int | None = None) -> None:
    """Waits until a stream has done all its work.  Errors of kernels launched before surface here as LaunchError."""
    call("hipStreamSynchronize", current_stream() if stream is None else stream)


def device_info() -> DeviceInfo:
    """Facts about the device of this thread."""
    device = current_device()
    memory = ctypes.c_size_t()
    call("hipDeviceTotalMem", ctypes.byref(memory), device)
    facts = {name: number("hipDeviceGetAttribute", which, device) for name, which in ATTRIBUTES.items()}
    version = number("hipRuntimeGetVersion")  # HIP_VERSION: major * 10^7 + minor * 10^5 + patch
    return DeviceInfo(
        name=text("hipDeviceGetName", device),
        arch=architecture(device),
        units=facts["units"],
        memory_bytes=memory.value,
        l2_bytes=facts["l2_bytes"],
        shared_bytes_per_block=facts["shared_bytes"],
        driver_version=f"{version // 10**7}.{version // 10**5 % 100}",
    )


@cache
def architecture(device: int) -> str:
    """``gfx942`` of a device.

    The kernel's topology says it, by the device's place on the bus; where that is not to be seen (some containers), or HIP was
    told to take the GPU for another one, the name in the runtime's own properties does.  That structure differs between
    releases, so its name is searched for and no place in it relied on.
    """
    if "HSA_OVERRIDE_GFX_VERSION" not in os.environ and (found := _by_topology(device)):
        return found
    properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    call("hipGetDevicePropertiesR0600", properties, device)
    name = re.search(rb"\0(gfx[0-9a-f]{3,5})(?::[a-z0-9+:-]*)?\0", properties.raw)
    if name is None:
        raise LaunchError(
            f"the HIP runtime does not say the architecture of device {device}", remedy="see what rocminfo says"
        )
    return name[1].decode()


def _by_topology(device: int, root: Path = Path("/")) -> str | None:
    place = text("hipDeviceGetPCIBusId", device).lower().partition(".")[0]
    found = {one.arch for one in topology.amd_gpus(root) if one.pci == place}
    return found.pop() if len(found) == 1 else None


def cache_bytes() -> int:
    """Bytes of all caches between the units and memory: of the largest known device of the architecture, or what the runtime says.

    The runtime counts the L2 of one die, and not the cache behind it.
    """
    device = current_device()
    arch = architecture(device)
    known = [each.cache_bytes or 0 for each in resolve(f"hip:{arch}").devices] if arch in amd.ARCHITECTURES else []
    return max(number("hipDeviceGetAttribute", ATTRIBUTES["l2_bytes"], device), *known, 1 << 20)


class DeviceBuffer(gpu.DeviceBuffer):
    """Memory on the device of this thread."""

    def _allocate(self, nbytes: int) -> int:
        return handle("hipMalloc", nbytes)

    def _free(self) -> None:
        call("hipFree", self.pointer)

    def _copy_in(self, address: int) -> None:
        call("hipMemcpyHtoD", self.pointer, address, self.nbytes)
        synchronize(0)

    def _copy_out(self, address: int) -> None:
        synchronize()
        call("hipMemcpyDtoH", address, self.pointer, self.nbytes)


def buffer(nbytes: int) -> DeviceBuffer:
    """Memory on the device of this thread."""
    return DeviceBuffer(nbytes)


def copy_of(array: np.ndarray[Any, Any]) -> DeviceBuffer:
    """A copy of an array there."""
    return DeviceBuffer.from_numpy(array)


def fill_zeros(pointer: int, nbytes: int, stream: int) -> None:
    """Puts writing zeros on a stream."""
    call("hipMemsetD8Async", pointer, 0, nbytes, stream)


def new_event() -> int:
    """An event that can be timed."""
    return handle("hipEventCreateWithFlags", 0)


def record(event: int, stream: int) -> None:
    """Puts an event on a stream."""
    call("hipEventRecord", event, stream)


def elapsed_ns(before: int, after: int) -> float:
    """Nanoseconds between two events that have happened."""
    milliseconds = ctypes.c_float()
    call("hipEventElapsedTime", ctypes.byref(milliseconds), before, after)
    return milliseconds.value * 1e6


def destroy_event(event: int) -> None:
    """Gives an event back."""
    call("hipEventDestroy", event)


def device_count() -> int:
    """GPUs that this process sees."""
    return number("hipGetDeviceCount")
