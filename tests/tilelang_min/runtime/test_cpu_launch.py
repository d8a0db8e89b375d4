from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilelang_min.codegen.cpu.toolchain import build_shared_object
from tilelang_min.errors import LaunchError, ResourceError
from tilelang_min.runtime import cpu, cpu_threads
from tilelang_min.runtime.cpu import Launcher, load, time_launches

# B[block] = A[block] * A[block] + A[block], for each block, which also writes near both ends of an array on the stack.
KERNEL = """\
target triple = "x86_64-unknown-linux-gnu"

define void @square(ptr %a, ptr %b, i32 %begin, i32 %end) "probe-stack"="inline-asm" {{
entry:
  %tile = alloca [{tile} x i8], align 16
  %any = icmp slt i32 %begin, %end
  br i1 %any, label %loop, label %done

loop:
  %i = phi i32 [ %begin, %entry ], [ %next, %loop ]
  %low = urem i32 %i, {tile}
  %high = sub i32 {last}, %low
  %near = getelementptr i8, ptr %tile, i32 %low
  store volatile i8 7, ptr %near
  %far = getelementptr i8, ptr %tile, i32 %high
  store volatile i8 7, ptr %far
  %p = getelementptr float, ptr %a, i32 %i
  %x = load float, ptr %p, align 4
  %y = call float @llvm.fmuladd.f32(float %x, float %x, float %x)
  %q = getelementptr float, ptr %b, i32 %i
  store float %y, ptr %q, align 4
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %end
  br i1 %more, label %loop, label %done

done:
  ret void
}}
"""


def binary(tile: int = 256) -> bytes:
    return build_shared_object(KERNEL.format(tile=tile, last=tile - 1), "square")[0]


@pytest.fixture(scope="module")
def small() -> bytes:
    return binary()


def result(launcher: Launcher, blocks: int = 1000, **options: Any) -> np.ndarray[Any, Any]:
    a = np.random.default_rng(0).standard_normal(blocks).astype(np.float32)
    b = np.full(blocks + 8, -1, np.float32)
    launcher([a.ctypes.data, b.ctypes.data], grid=(blocks, 1, 1), **options)
    assert np.allclose(b[:blocks], a * a + a, rtol=1e-6)
    assert (b[blocks:] == -1).all()
    return b


@pytest.fixture
def never_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "INLINE_BELOW_NS", 0.0)


@pytest.mark.usefixtures("never_inline")
@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 1000, 4099])
def test_threads_and_inline_give_the_same_bits(small: bytes, blocks: int) -> None:
    alone = result(load(small, "square", workers=1), blocks)
    for workers in (2, 3, 16):
        assert np.array_equal(result(load(small, "square", workers=workers), blocks), alone)


@pytest.mark.usefixtures("never_inline")
def test_other_threads_take_part(small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()
    both = threading.Barrier(2, timeout=30)

    def function(begin: int, end: int) -> None:
        if threading.current_thread().name not in ran:
            ran.add(threading.current_thread().name)
            both.wait()  # only two threads at once can pass

    job = cpu_threads.Job(function, (), 64, 4)
    assert 0 < cpu_threads.run_job(job, 2, 0, own_stack=True) < 64
    assert len(ran) == 2


def test_errors_of_helpers_reach_the_caller_and_stop_the_rest() -> None:
    started = threading.Event()

    def function(begin: int, end: int) -> None:
        if threading.current_thread().name.startswith("tilelang"):
            started.set()
            raise ValueError("from a helper")
        started.wait(30)

    with pytest.raises(ValueError, match="from a helper"):
        cpu_threads.run_job(cpu_threads.Job(function, (), 8, 1), 2, 0, own_stack=True)


def test_a_grid_has_three_dimensions(small: bytes) -> None:
    a = np.arange(24, dtype=np.float32)
    b = np.zeros(24, np.float32)
    load(small, "square", workers=2)([a.ctypes.data, b.ctypes.data], grid=(2, 3, 4))
    assert np.array_equal(b, a * a + a)


def test_many_launches_from_many_threads(small: bytes) -> None:
    launcher = load(small, "square", workers=2)
    problems: list[BaseException] = []

    def many() -> None:
        try:
            for _ in range(200):
                result(launcher, 300)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_the_stack_of_a_kernel_is_read_from_its_binary(small: bytes) -> None:
    assert 128 <= load(small, "square").stack_bytes < 512  # the lowest 128 bytes need no frame (red zone)
    assert 99_800 <= load(binary(100_000), "square").stack_bytes < 101_000


def on_a_small_stack(action: Callable[[], object]) -> None:
    """Runs something on a thread whose stack has 256 KiB."""
    problems: list[BaseException] = []

    def target() -> None:
        try:
            action()
        except BaseException as error:
            problems.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=target)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if problems:
        raise problems[0]


@pytest.mark.parametrize("megabytes", [1, 12, 60])
@pytest.mark.parametrize("workers", [1, 2])
def test_large_tiles_run_whatever_stack_the_caller_has(megabytes: int, workers: int) -> None:
    launcher = load(binary(megabytes << 20), "square", workers=workers)
    result(launcher)
    on_a_small_stack(lambda: result(launcher))


def test_tiles_beyond_the_largest_stack_are_refused() -> None:
    with pytest.raises(ResourceError, match="bytes of stack"):
        load(binary(65 << 20), "square")


def test_wrong_calls_are_errors(small: bytes) -> None:
    launcher = load(small, "square")
    result(launcher)
    with pytest.raises(LaunchError, match="takes 2 tensors, 1 were given"):
        launcher([0], grid=(1, 1, 1))
    with pytest.raises(LaunchError, match="no address"):
        launcher([1.5, 2.5], grid=(1, 1, 1))  # type: ignore[list-item]
    with pytest.raises(LaunchError, match="blocks"):
        launcher([0, 0], grid=(1 << 16, 1 << 15, 1))
    launcher.close()
    launcher.close()
    with pytest.raises(LaunchError, match="closed"):
        launcher([0, 0], grid=(0, 1, 1))


def test_wrong_binaries_are_errors(small: bytes) -> None:
    with pytest.raises(LaunchError, match="holds no kernel cube"):
        load(small, "cube")
    for damaged in (b"", b"not an object", small[:70]):
        with pytest.raises(LaunchError, match="damaged"):
            load(damaged, "square")


def test_a_binary_for_a_better_processor_is_refused(small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang_min.targets.cpu.detect", lambda: "x86-64-v2")
    with pytest.raises(LaunchError, match="compiled for x86-64-v3, this processor is x86-64-v2"):
        load(small, "square", arch="x86-64-v3")
    load(small, "square", arch="x86-64-v2")


def test_the_number_of_threads(small: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILELANG_NUM_THREADS", raising=False)
    assert load(small, "square").workers == len(os.sched_getaffinity(0))
    monkeypatch.setenv("TILELANG_NUM_THREADS", "5")
    assert load(small, "square").workers == 5
    for wrong in ("none", "0", "-1", "1.5"):
        monkeypatch.setenv("TILELANG_NUM_THREADS", wrong)
        with pytest.raises(LaunchError, match="TILELANG_NUM_THREADS"):
            load(small, "square")
    with pytest.raises(LaunchError, match="0 threads"):
        load(small, "square", workers=0)


def test_times_are_of_each_launch() -> None:
    calls: list[int] = []
    times = time_launches(lambda: calls.append(1), launches=5, warmup=2)
    assert len(calls) == 7
    assert len(times) == 5
    assert all(0 < each < 1e9 for each in times)
    with pytest.raises(LaunchError):
        time_launches(lambda: None, launches=0)


@pytest.mark.usefixtures("never_inline")
def test_a_forked_child_starts_its_own_threads(small: bytes) -> None:
    code = (
        "import os, sys\n"
        "from tilelang_min.runtime import cpu\n"
        "cpu.INLINE_BELOW_NS = 0.0\n"
        "import ctypes\n"
        "launcher = cpu.load(sys.stdin.buffer.read(), 'square', workers=2)\n"
        "a, b = (ctypes.c_float * 99)(*range(99)), (ctypes.c_float * 99)()\n"
        "go = lambda: launcher([ctypes.addressof(a), ctypes.addressof(b)], grid=(99, 1, 1))\n"
        "go()\n"
        "child = os.fork()\n"
        "go()\n"
        "ok = b[98] == 98 * 98 + 98\n"
        "if not child: os._exit(0 if ok else 1)\n"
        "sys.exit(0 if ok and os.waitpid(child, 0)[1] == 0 and 'tvm' not in sys.modules else 1)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], input=small, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_helpers_keep_off_the_callers_processor() -> None:
    """A helper that is woken may run anywhere the caller may, except where the caller is; the caller's own affinity stays."""
    before = os.sched_getaffinity(0)
    pool = cpu_threads._Pool(16 * 1024 * 1024)
    ran: list[set[int]] = []

    class Noted:
        def help(self) -> None:
            ran.append(os.sched_getaffinity(0))

    for launch in range(50):
        pool.submit(Noted(), 1)  # type: ignore[arg-type]
        deadline = time.monotonic() + 5
        while len(ran) <= launch and time.monotonic() < deadline:
            time.sleep(0.001)
    assert len(ran) == 50
    assert all(mask <= before for mask in ran)
    assert len(ran[-1]) == len(before) - 1
    assert os.sched_getaffinity(0) == before
