"""The threads that CPU kernels run on: kept, with stacks as large as tiles need, fed through a queue.

A :class:`Job` is a range of blocks from which every participating thread takes the next chunk until none is left.  The
calling thread takes part and does not wait for helpers that have not woken up by the time the work is done, so a launch is
never slower than without them by more than it takes to wake one.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue

from tilelang_min.errors import LaunchError

THREADS_VARIABLE = "TILELANG_NUM_THREADS"
"""Environment variable: how many threads a launch uses."""

_SMALL_STACK = 16 * 1024 * 1024
_LARGE_STACK = 80 * 1024 * 1024
_MARGIN = 512 * 1024  # stack left for the interpreter and ctypes around the kernel
_MOST_KEPT_APART = 8  # threads: with more processors one of them is idle, and each thread costs a system call
_ALWAYS_THERE = 16 * 1024  # stack that any thread has left


def default_workers() -> int:
    """How many threads a launch uses: ``TILELANG_NUM_THREADS``, else the processors this process may run on."""
    text = os.environ.get(THREADS_VARIABLE)
    if text is None or not text.strip():
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        workers = int(text)
    except ValueError:
        workers = 0
    if not 1 <= workers <= 4096:
        raise LaunchError(f'{THREADS_VARIABLE} is "{text}"', remedy="set it to a number from 1 to 4096, or unset it")
    return workers


class Job:
    """Blocks ``0 <= block < blocks`` of one launch, dealt in chunks of ``step``."""

    __slots__ = (
        "_active",
        "_arguments",
        "_blocks",
        "_chunks",
        "_closed",
        "_done",
        "_error",
        "_function",
        "_lock",
        "_step",
    )

    def __init__(self, function: Callable[..., object], arguments: tuple[int, ...], blocks: int, step: int) -> None:
        self._function = function
        self._arguments = arguments
        self._blocks = blocks
        self._step = step
        self._chunks = count()
        self._lock = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self._active = 0
        self._closed = False
        self._error: BaseException | None = None

    def work(self) -> int:
        """Takes chunks until none is left; the number of blocks this thread has run."""
        done = 0
        while True:
            begin = next(self._chunks) * self._step  # one bytecode on a C object: atomic
            if begin >= self._blocks:
                return done
            end = min(begin + self._step, self._blocks)
            self._function(*self._arguments, begin, end)
            done += end - begin

    def help(self) -> None:
        """What a kept thread does with a job."""
        with self._lock:
            if self._closed:
                return
            self._active += 1
        try:
            self.work()
        except BaseException as error:
            self._error = error
        with self._lock:
            self._active -= 1
            if not self._active and not self._closed:  # every chunk was taken, and all that were taken are done
                self._closed = True
                self._done.release()
            elif not self._active:
                self._done.release()

    def stop(self) -> None:
        """No thread takes another chunk."""
        self._blocks = 0

    def finish(self, took_part: bool) -> None:
        """Waits until the chunks that other threads took are done; raises what they raised."""
        wait = True
        if took_part:
            with self._lock:
                wait = not self._closed and self._active > 0
                self._closed = True
        if wait:
            try:
                self._done.acquire()
            except BaseException:  # interrupted: helpers still write into the caller's tensors, so wait for them
                self.stop()
                self._done.acquire()
                raise
        if self._error is not None:
            raise self._error


class _Pool:
    """Kept threads with stacks of one size."""

    def __init__(self, stack_bytes: int) -> None:
        self._stack_bytes = stack_bytes
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._threads = 0
        self._ids: list[int] = []
        self._apart: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def submit(self, job: Job, helpers: int) -> None:
        """Wakes so many threads for a job."""
        if helpers > self._threads:
            self._grow(helpers)
        self._keep_apart()
        for _ in range(helpers):
            self._jobs.put(job)

    def _grow(self, threads: int) -> None:
        with self._lock:
            before = threading.stack_size(self._stack_bytes)
            try:
                while self._threads < threads:
                    name = f"tilelang-{self._threads}"
                    threading.Thread(target=self._serve, name=name, daemon=True).start()
                    self._threads += 1
            except RuntimeError as error:
                if not self._threads:
                    raise LaunchError(
                        f"cannot start a thread with {self._stack_bytes} bytes of stack: {error}",
                        remedy=f"allow this process more threads or memory, or set {THREADS_VARIABLE}=1",
                    ) from None
            finally:
                threading.stack_size(before)

    def _keep_apart(self) -> None:
        """Keep the threads off the processor that the caller is on.

        A thread is woken on the processor of who wakes it when no other is idle, and the two then take turns on it for as long as a
        short launch takes.  Threads that are not there yet when this runs are told at the next launch.
        """
        if _processor is None or not 0 < len(self._ids) <= _MOST_KEPT_APART:
            return
        now = (_processor(), len(self._ids))
        if now == self._apart or now[0] < 0:
            return
        try:
            others = os.sched_getaffinity(0) - {now[0]}
            if len(others) >= self._threads:
                for thread in self._ids:
                    os.sched_setaffinity(thread, others)
        except OSError:  # forbidden, or one of them has gone: they run where the system puts them
            pass
        self._apart = now

    def _serve(self) -> None:
        self._ids.append(threading.get_native_id())
        while True:
            self._jobs.get().help()


def _processor_call() -> Callable[[], int] | None:
    """``sched_getcpu`` of the C library, where it and affinities exist."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        function = ctypes.CDLL(None).sched_getcpu
    except (AttributeError, OSError):
        return None
    function.argtypes, function.restype = [], ctypes.c_int
    return function


_processor = _processor_call()
_pools: dict[int, _Pool] = {}
_this_thread = threading.local()


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run_job(job: Job, workers: int, stack_bytes: int, own_stack: bool) -> int:
    """Runs a job on up to ``workers`` threads, the calling one among them if its stack suffices; blocks it ran itself."""
    size = _SMALL_STACK if stack_bytes + _MARGIN <= _SMALL_STACK else _LARGE_STACK
    pool = _pools.setdefault(size, _Pool(size)) if size not in _pools else _pools[size]
    pool.submit(job, workers - 1 if own_stack else workers)
    done = 0
    try:
        if own_stack:
            done = job.work()
    except BaseException:
        job.stop()
        raise
    finally:
        job.finish(own_stack)
    return done


def calling_thread_has_stack(needed: int) -> bool:
    """Whether the calling thread's stack has room for a kernel's frame beside what Python uses."""
    if needed <= _ALWAYS_THERE:
        return True
    size: int | None = getattr(_this_thread, "stack_bytes", None)
    if size is None:
        size = _this_thread.stack_bytes = _stack_size()
    return needed + _MARGIN <= size


def _stack_size() -> int:
    """Bytes of the calling thread's stack as the C library knows it; 0 where it cannot be asked."""
    try:
        library = ctypes.CDLL(None)
        attributes = (ctypes.c_char * 128)()  # pthread_attr_t: 56 bytes in glibc and musl on x86-64
        start, size = ctypes.c_void_p(), ctypes.c_size_t()
        library.pthread_self.restype = ctypes.c_void_p
        if library.pthread_getattr_np(ctypes.c_void_p(library.pthread_self()), attributes):
            return 0
        try:
            if library.pthread_attr_getstack(attributes, ctypes.byref(start), ctypes.byref(size)):
                return 0
        finally:
            library.pthread_attr_destroy(attributes)
        return size.value
    except (AttributeError, OSError):
        return 0
