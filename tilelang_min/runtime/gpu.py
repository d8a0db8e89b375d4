"""What launching has in common on NVIDIA's and AMD's GPUs: the functions both runtimes have, memory, streams, argument buffers.

:mod:`tilelang_min.runtime.cuda` and :mod:`tilelang_min.runtime.hip` are modules with the functions of :class:`Runtime`;
:func:`runtime` gives the one for a kind of target.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from tilelang_min.errors import LaunchError


class Runtime(Protocol):
    """A vendor's runtime.  A *context* is a number under which a thread's kernels and memory are known; a device has its own."""

    def available(self) -> tuple[bool, str]: ...
    def ensure_context(self) -> int: ...
    def current_device(self) -> int: ...
    def device_of(self, context: int) -> int: ...
    def on_device(self, ordinal: int) -> AbstractContextManager[int]: ...
    def current_stream(self, ordinal: int | None = None) -> int: ...
    def stream_of(self, ordinal: int, torchs: Callable[[int], int]) -> int: ...
    def is_capturing(self, stream: int) -> bool: ...
    def synchronize(self, stream: int | None = None) -> None: ...
    def buffer(self, nbytes: int) -> DeviceBuffer: ...
    def copy_of(self, array: np.ndarray[Any, Any]) -> DeviceBuffer: ...
    def cache_bytes(self) -> int: ...
    def fill_zeros(self, pointer: int, nbytes: int, stream: int) -> None: ...
    def new_event(self) -> Any: ...
    def record(self, event: Any, stream: int) -> None: ...
    def elapsed_ns(self, before: Any, after: Any) -> float: ...
    def destroy_event(self, event: Any) -> None: ...


def runtime(kind: str) -> Runtime:
    """The runtime of targets of a kind: ``cuda`` or ``hip``.  Nothing is loaded yet."""
    if kind == "hip":
        from tilelang_min.runtime import hip

        return hip
    from tilelang_min.runtime import cuda

    return cuda


class DeviceBuffer:
    """Memory on the device, freed by :meth:`close` or at the end of a ``with`` block; ``pointer`` is its address.

    A runtime's own class says how memory is got, freed and copied.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.pointer = self._allocate(max(nbytes, 1))

    def _allocate(self, nbytes: int) -> int:
        raise NotImplementedError

    def _free(self) -> None:
        raise NotImplementedError

    def _copy_in(self, address: int) -> None:
        """Copy from host memory, and wait until all is there."""
        raise NotImplementedError

    def _copy_out(self, address: int) -> None:
        """Copy to host memory, behind what the current stream has to do."""
        raise NotImplementedError

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> Self:
        """A copy of an array (of any layout; the copy is C-contiguous)."""
        buffer = cls(array.nbytes)
        try:
            buffer.write(array)
        except BaseException:
            with suppress(LaunchError):
                buffer.close()
            raise
        return buffer

    def write(self, array: np.ndarray[Any, Any]) -> None:
        """Copy an array of the same size in bytes to the device, and wait until it is there."""
        packed = np.ascontiguousarray(array)
        self._check_size(packed)
        self._copy_in(packed.ctypes.data)

    def read(self, array: np.ndarray[Any, Any]) -> None:
        """Copy to a C-contiguous array of the same size in bytes, behind what the current stream has to do."""
        self._check_size(array)
        if not array.flags.c_contiguous:
            raise LaunchError("a device buffer can only be read into a C-contiguous array", remedy="pass a copy")
        self._copy_out(array.ctypes.data)

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
            self._free()
            self.pointer = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An error on its way out is the cause; after an illegal address nothing can be freed.
        with suppress(LaunchError) if kind else nullcontext():
            self.close()


class ChosenStream(threading.local):
    """Of each thread the stream that it chose for its launches, whatever torch's is; None where it chose none."""

    def __init__(self) -> None:
        self.stream: int | None = None

    @contextmanager
    def use(self, stream: int) -> Iterator[None]:
        """Makes a stream the chosen one for a while."""
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before


def torch_on(kind: str) -> Any:
    """torch, where it uses GPUs of this kind (both are torch.cuda to it); else None."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    is_hip = getattr(getattr(torch, "version", None), "hip", None) is not None
    return torch if is_hip == (kind == "hip") else None


def torch_stream(torch: Any, ordinal: int | None) -> int:
    """torch's current stream of a device; ``ordinal`` None: of its current one."""
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)  # a tenth of the time of what follows
    if raw is not None:
        return int(raw(torch.cuda.current_device() if ordinal is None else ordinal))
    stream = torch.cuda.current_stream() if ordinal is None else torch.cuda.current_stream(ordinal)
    return int(stream.cuda_stream)


class ArgumentBuffer:
    """Arguments of 8 bytes as both drivers take them: values, and an array of the places where they are.

    ``further`` places follow for arguments that are put elsewhere.  A 4-byte integer is the beginning of its 8 bytes.
    """

    __slots__ = ("addresses", "pointers", "values")

    def __init__(self, count: int, further: int = 0) -> None:
        self.values = (ctypes.c_uint64 * max(count, 1))()
        self.addresses = (ctypes.c_void_p * max(count + further, 1))()
        size = ctypes.sizeof(ctypes.c_uint64)
        for index in range(count):
            self.addresses[index] = ctypes.addressof(self.values) + index * size
        self.pointers: list[int] | None = None

    def put(self, pointers: Sequence[int]) -> None:
        """Write the values of a launch."""
        self.pointers = None  # until all is in place
        for slot, pointer in enumerate(pointers):
            self.values[slot] = pointer
        self.pointers = list(pointers)
