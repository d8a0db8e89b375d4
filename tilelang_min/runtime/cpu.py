"""Loads the shared objects of CPU kernels and launches them on this machine's processors: no compiler, no TVM.

A kernel is a C function over a range of linear block numbers.  A launch deals chunks of blocks to threads that are kept for
the life of the process (:mod:`tilelang_min.runtime.cpu_threads`), the calling thread among them; ctypes releases Python's
lock while they compute.  Blocks do not depend on each other, so the results have the same bits whatever the threads are.
"""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilelang_min.errors import LaunchError, ResourceError
from tilelang_min.runtime.cpu_threads import Job, calling_thread_has_stack, default_workers, run_job
from tilelang_min.runtime.measuring import check_numbers

MAX_STACK_BYTES = 64 * 1024 * 1024
"""Largest stack frame that a launch provides for."""

INLINE_BELOW_NS = 40_000.0
"""A launch that took less on one thread stays there: waking another costs 10 to 20 us (measured on 2 cores)."""

CHUNKS_A_WORKER = 4
"""Into so many chunks each thread's share is cut, for threads that start late or are interrupted."""


class Launcher:
    """One kernel of a loaded shared object.

    ``launcher(pointers, grid=(x, y, z))`` runs all blocks and returns when they are done.  ``stack_bytes`` is the stack one
    call of the kernel takes, read from the binary; where the calling thread has less, the launch runs on threads that have
    enough.
    """

    def __init__(self, binary: bytes, symbol: str, *, workers: int | None = None) -> None:
        self.symbol = symbol
        self.workers = default_workers() if workers is None else workers
        if self.workers < 1:
            raise LaunchError(f"a launch on {self.workers} threads", remedy="use at least one thread")
        self.stack_bytes = _stack_bytes(binary, symbol)
        if self.stack_bytes > MAX_STACK_BYTES:
            raise ResourceError(
                f"kernel {symbol} needs {self.stack_bytes} bytes of stack for its tiles, more than {MAX_STACK_BYTES}",
                remedy="use smaller tiles or fewer stages",
            )
        self._library: ctypes.CDLL | None = _open(binary, symbol)
        try:
            self._function: Any = self._library[symbol]
        except AttributeError:
            raise LaunchError(f"the shared object holds no kernel {symbol}", remedy="compile again") from None
        self._function.restype = None
        self._parameters: int | None = None
        self._block_ns: float | None = None

    def __call__(self, pointers: Sequence[int], *, grid: tuple[int, int, int], workers: int | None = None) -> None:
        """Launch and wait.  ``pointers`` are addresses in parameter order, ``workers`` the most threads to use."""
        if self._library is None:
            raise LaunchError(f"kernel {self.symbol} was closed", remedy="load it again")
        blocks = grid[0] * grid[1] * grid[2]
        if not 0 <= blocks < 2**31:
            raise LaunchError(f"a grid of {blocks} blocks", remedy="launch 0 to 2147483647 blocks")
        if len(pointers) != self._parameters:
            self._bind(len(pointers))
        most = min(self.workers if workers is None else workers, blocks)
        small = self._block_ns is not None and self._block_ns * blocks < INLINE_BELOW_NS
        own_stack = calling_thread_has_stack(self.stack_bytes)
        start = time.perf_counter_ns()
        try:
            if (most <= 1 or small) and own_stack:
                self._function(*pointers, 0, blocks)
                done = blocks
            else:
                step = -(-blocks // (max(most, 1) * CHUNKS_A_WORKER)) if blocks else 1
                job = Job(self._function, tuple(pointers), blocks, step)
                done = run_job(job, max(most, 1), self.stack_bytes, own_stack)
        except ctypes.ArgumentError as error:
            raise LaunchError(
                f"kernel {self.symbol} was given something that is no address: {error}", remedy="pass addresses as int"
            ) from None
        if done:  # blocks the calling thread ran, in the time of the launch
            self._block_ns = (time.perf_counter_ns() - start) / done

    def _bind(self, parameters: int) -> None:
        if self._parameters is not None:
            raise LaunchError(
                f"kernel {self.symbol} takes {self._parameters} tensors, {parameters} were given",
                remedy="pass one address for each parameter",
            )
        self._function.argtypes = [ctypes.c_void_p] * parameters + [ctypes.c_int32] * 2
        self._parameters = parameters

    def close(self) -> None:
        """Unloads the binary.  Closing twice is fine."""
        if self._library is not None:
            import _ctypes

            _ctypes.dlclose(self._library._handle)
            self._library = None


def load(binary: bytes, symbol: str, *, arch: str | None = None, workers: int | None = None) -> Launcher:
    """A launcher for function ``symbol`` of a shared object.

    ``arch`` is the level of x86-64 it was compiled for: where this machine's processor has less, loading is an error rather
    than an illegal instruction later.  ``workers`` is the most threads a launch uses (default: ``TILELANG_NUM_THREADS``, else
    as many processors as this process may use).  Raises :class:`LaunchError`; :class:`ResourceError` for a kernel whose
    tiles exceed the largest stack.
    """
    if arch is not None:
        _check_level(arch)
    return Launcher(binary, symbol, workers=workers)


def time_launches(launch: Callable[[], object], *, launches: int, warmup: int = 3) -> list[float]:
    """Wall time in nanoseconds of each of ``launches`` calls, in order, warm-up calls not among them.

    Caches are as the call before left them.  The clock's resolution and the two calls of it cost about 0.1 us.
    """
    check_numbers(launches, warmup)
    for _ in range(warmup):
        launch()
    clock = time.perf_counter_ns
    times: list[float] = []
    for _ in range(launches):
        start = clock()
        launch()
        times.append(float(clock() - start))
    return times


def _check_level(arch: str) -> None:
    from tilelang_min.errors import TargetError
    from tilelang_min.targets import cpu

    try:
        here = cpu.detect()
    except TargetError as error:
        raise LaunchError(f"cannot launch a kernel for {arch}: {error.message}", remedy=error.remedy) from None
    levels = cpu.ARCHITECTURES
    if arch in levels and levels.index(arch) > levels.index(here):
        raise LaunchError(
            f"the kernel was compiled for {arch}, this processor is {here}",
            remedy=f'compile for the target "cpu:{here}"',
        )


def _open(binary: bytes, symbol: str) -> ctypes.CDLL:
    """Opens a shared object from memory, by way of a private file that is gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="tilelang-") as folder:
            path = os.path.join(folder, "kernel.so")
            with open(path, "wb") as file:
                file.write(binary)
            return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise LaunchError(
            f"kernel {symbol} cannot be loaded: {error}",
            remedy="compile again; if programs may not be run from the folder for temporary files, set TMPDIR to another",
        ) from None


def _stack_bytes(binary: bytes, symbol: str) -> int:
    """Bytes of stack that a call takes: the sum over the object's functions in its section ``.stack_sizes``.

    The section holds, for each function, its 8-byte address and its frame in bytes as unsigned LEB128 (LLVM, "Emitting
    function stack size information").
    """
    try:
        if binary[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        table, entry, count, names = struct.unpack_from("<Q", binary, 40) + struct.unpack_from("<HHH", binary, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", binary, table + entry * index) for index in range(count)]
        strings = sections[names][4]
        for name, _, _, _, offset, size, *_ in sections:
            if binary.startswith(b".stack_sizes\0", strings + name):
                return _frames(binary[offset : offset + size])
    except (ValueError, IndexError, struct.error) as error:
        raise LaunchError(f"the binary of kernel {symbol} is damaged: {error}", remedy="compile again") from None
    raise LaunchError(f"the binary of kernel {symbol} does not say how much stack it needs", remedy="compile again")


def _frames(data: bytes) -> int:
    position = total = 0
    while position < len(data):
        position += 8
        shift = 0
        while True:
            byte = data[position]
            position += 1
            total += (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
    return total
