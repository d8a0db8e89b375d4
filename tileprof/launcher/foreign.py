"""``python foreign.py JOB.json``: runs work that is not ours (Triton, torch, another TileLang) and times it.

This file runs in whatever interpreter the workload names, so it needs Python 3.8 and nothing else: it imports neither tileprof
nor NumPy.  The function of the job is called once with the case's values.  What it returns, where that can be called, is the work,
and everything before was preparation; otherwise the call itself is the work.

``JOB.json``: ``file`` or ``module``, ``function``, ``directory``, ``values``, ``kind`` (``cuda``, ``hip``, ``cpu``),
``timing`` (policy, or None), ``cache_bytes`` (to flush at least), ``launches`` (launches under a profiler, of which the last is
recorded; 0 for a timed run), ``answer`` (where the result goes).  The answer: ``samples_ns``, ``method``, ``warmup``, ``flushed``,
``wanted``, ``versions``, ``notes``; or ``error`` and ``stage``.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

LEAST_SAMPLES = 3
RECORDED = "tileprof: recorded"
"""ROCTX range around what is to be recorded."""
_PACKAGES = ("torch", "triton", "tilelang", "cupy", "jax", "numpy")
_FLUSH_SIZES = 2  # what is written between launches, in sizes of the L2 cache
_ASSUMED_L2 = 64 << 20
_L2_ATTRIBUTE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_HIP_L2_ATTRIBUTE = 19  # hipDeviceAttributeL2CacheSize


def load(job: dict[str, Any]) -> Any:
    """The function that the job names."""
    directory = job["directory"]
    if directory not in sys.path:
        sys.path.insert(0, directory)
    if job.get("file"):
        folder = os.path.dirname(job["file"])
        if folder not in sys.path:
            sys.path.insert(0, folder)
        name = os.path.splitext(os.path.basename(job["file"]))[0]
        spec: Any = importlib.util.spec_from_file_location(name, job["file"])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # before it runs: Triton and dataclasses look it up
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(job["module"])
    return getattr(module, job["function"])


def prepare(job: dict[str, Any]) -> Callable[[], Any]:
    """The work as a function without arguments."""
    function = load(job)
    values = job["values"]
    made = function(**values)
    return made if callable(made) else lambda: function(**values)


class WallClock:
    """Times calls on a processor."""

    method = "wall clock around single calls"
    flushed = False

    def synchronize(self) -> None:
        """Calls have ended when they return."""

    def measure(self, work: Callable[[], Any], warmup: int, launches: int) -> list[float]:
        """Nanoseconds of each of ``launches`` calls behind ``warmup`` others."""
        for _ in range(warmup):
            work()
        times = []
        for _ in range(launches):
            start = time.perf_counter_ns()
            work()
            times.append(float(time.perf_counter_ns() - start))
        return times


class TorchEvents:
    """Times launches by events on torch's current stream, NVIDIA's and AMD's alike."""

    method = "torch events around single calls, enqueued together"

    def __init__(self, flush: bool, cache_bytes: int) -> None:
        torch: Any = sys.modules["torch"]  # the work has imported it
        self.torch = torch
        self.flushed = flush
        said = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 0)
        size = max(said, cache_bytes) or _ASSUMED_L2
        self.buffer = torch.empty(_FLUSH_SIZES * size, dtype=torch.int8, device="cuda") if flush else None

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.torch.cuda.synchronize()

    def measure(self, work: Callable[[], Any], warmup: int, launches: int) -> list[float]:
        """Nanoseconds of each of ``launches`` calls behind ``warmup`` others."""
        event = self.torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(launches)]
        for _ in range(warmup):
            work()
        for before, after in pairs:
            if self.buffer is not None:
                self.buffer.zero_()
            before.record()
            work()
            after.record()
        self.torch.cuda.synchronize()
        return [before.elapsed_time(after) * 1e6 for before, after in pairs]


class DriverEvents:
    """Times launches on the default stream by events of the vendor's driver, for work that does not use torch.

    A vendor's own class has the library, the names of its functions, and how it is started.
    """

    method = "driver events on the default stream around single calls, enqueued together"
    vendor = create = record = elapsed = destroy = fill = wait = ""

    def __init__(self, flush: bool, cache_bytes: int) -> None:
        self.library = self.open()
        self.flushed = flush
        self.bytes = _FLUSH_SIZES * (max(self.l2_bytes(), cache_bytes) or _ASSUMED_L2)
        self.buffer = ctypes.c_void_p()
        if flush:
            self.allocate()

    def open(self) -> Any:
        """The library, started."""
        raise NotImplementedError

    def l2_bytes(self) -> int:
        """Size of the L2 cache, as the driver says it."""
        raise NotImplementedError

    def allocate(self) -> None:
        """Gets the memory whose writing empties the caches."""
        raise NotImplementedError

    def call(self, name: str, *arguments: Any) -> None:
        """Call the driver.  RuntimeError with its status where it refuses."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} of the {self.vendor} fails with status {status}")

    def synchronize(self) -> None:
        """Wait until all work has ended."""
        self.call(self.wait)

    def measure(self, work: Callable[[], Any], warmup: int, launches: int) -> list[float]:
        """Nanoseconds of each of ``launches`` calls behind ``warmup`` others."""
        pairs = []
        for _ in range(launches):
            pair = (ctypes.c_void_p(), ctypes.c_void_p())
            for event in pair:
                self.call(self.create, ctypes.byref(event), 0)
            pairs.append(pair)
        for _ in range(warmup):
            work()
        for before, after in pairs:
            if self.flushed:
                self.call(self.fill, self.buffer, 0, ctypes.c_size_t(self.bytes), None)
            self.call(self.record, before, None)
            work()
            self.call(self.record, after, None)
        self.synchronize()
        times = []
        for before, after in pairs:
            elapsed = ctypes.c_float()
            self.call(self.elapsed, ctypes.byref(elapsed), before, after)
            times.append(elapsed.value * 1e6)
            for event in (before, after):
                self.call(self.destroy, event)
        return times


class CudaEvents(DriverEvents):
    """Events of NVIDIA's driver, in the context that the work made current, else in the first device's own."""

    vendor, wait = "CUDA driver", "cuCtxSynchronize"
    create, record, elapsed = "cuEventCreate", "cuEventRecord", "cuEventElapsedTime"
    destroy, fill = "cuEventDestroy_v2", "cuMemsetD8Async"

    def open(self) -> Any:
        """libcuda, with a context."""
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            device = ctypes.c_int()
            self.call("cuDeviceGet", ctypes.byref(device), 0)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.call("cuCtxSetCurrent", context)
        return self.library

    def l2_bytes(self) -> int:
        """Of the context's device."""
        device, size = ctypes.c_int(), ctypes.c_int()
        self.call("cuCtxGetDevice", ctypes.byref(device))
        self.call("cuDeviceGetAttribute", ctypes.byref(size), _L2_ATTRIBUTE, device)
        return size.value

    def allocate(self) -> None:
        """On the context's device."""
        self.call("cuMemAlloc_v2", ctypes.byref(self.buffer), ctypes.c_size_t(self.bytes))


class HipEvents(DriverEvents):
    """Events of AMD's HIP runtime, the one that the work has loaded."""

    vendor, wait = "HIP runtime", "hipDeviceSynchronize"
    create, record, elapsed = "hipEventCreateWithFlags", "hipEventRecord", "hipEventElapsedTime"
    destroy, fill = "hipEventDestroy", "hipMemsetD8Async"

    def open(self) -> Any:
        """libamdhip64."""
        with open("/proc/self/maps", encoding="utf-8") as maps:
            loaded = [line.split()[-1] for line in maps if "/libamdhip64" in line]
        if not loaded:
            raise RuntimeError("the work has not loaded AMD's HIP runtime, libamdhip64, so it launches nothing there")
        self.library = ctypes.CDLL(loaded[0])
        return self.library

    def l2_bytes(self) -> int:
        """Of one die of the current device."""
        device, size = ctypes.c_int(), ctypes.c_int()
        self.call("hipGetDevice", ctypes.byref(device))
        self.call("hipDeviceGetAttribute", ctypes.byref(size), _HIP_L2_ATTRIBUTE, device)
        return size.value

    def allocate(self) -> None:
        """On the current device."""
        self.call("hipMalloc", ctypes.byref(self.buffer), ctypes.c_size_t(self.bytes))


def clock_of(kind: str, flush: bool, cache_bytes: int = 0) -> Any:
    """What times the work: torch's events where the work uses torch on a GPU, else the driver's, else the wall clock.

    ``cache_bytes`` are known to be between the GPU's units and its memory, beyond what its driver says.
    """
    if kind == "cpu":
        return WallClock()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return TorchEvents(flush, cache_bytes)
    return CudaEvents(flush, cache_bytes) if kind == "cuda" else HipEvents(flush, cache_bytes)


def timed(work: Callable[[], Any], clock: Any, policy: dict[str, Any]) -> tuple[list[float], int]:
    """Samples of all rounds, as many as the budget allows, and never fewer than LEAST_SAMPLES."""
    (first,) = clock.measure(work, 0, 1)
    allowed = max(LEAST_SAMPLES, int(policy["budget_s"] * 1e9 / policy["rounds"] / max(first, 1.0)))
    warmup, samples = min(policy["warmup"], allowed), min(policy["samples"], allowed)
    times: list[float] = []
    for _ in range(policy["rounds"]):
        times += clock.measure(work, warmup, samples)
    return times, 1 + policy["rounds"] * warmup


def record_last(work: Callable[[], Any], clock: Any, launches: int, kind: str) -> None:
    """Launch under a profiler that starts when it is told: everything but the last launch is warm-up."""
    for _ in range(launches - 1):
        work()
    clock.synchronize()
    switch = ctypes.CDLL("libcuda.so.1") if kind == "cuda" else None
    if switch is not None and switch.cuProfilerStart():
        raise RuntimeError("the CUDA driver cannot start the profiler")
    # rocprofv3 loads ROCTX into the program: a range says which launches are meant
    marks = ctypes.CDLL(None)
    marked = kind == "hip" and hasattr(marks, "roctxRangePushA")
    if marked:
        marks.roctxRangePushA(ctypes.c_char_p(RECORDED.encode()))
    work()
    clock.synchronize()
    if marked:
        marks.roctxRangePop()
    if switch is not None:
        switch.cuProfilerStop()


def versions() -> dict[str, str]:
    """Versions of what the work uses."""
    found: dict[str, str] = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


def describe(error: BaseException, job: dict[str, Any]) -> str:
    """``file:line: Type: message`` at the author's own innermost line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == job.get("file")]
    if not own:
        own = [f for f in frames if "site-packages" not in f.filename and f.filename != os.path.abspath(__file__)]
    return f"{own[-1].filename}:{own[-1].lineno}: {text}\n    {own[-1].line}" if own else text


def run(job: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job."""
    stage = "preparing"
    try:
        work = prepare(job)
        stage = "launching"
        work()  # compiles what compiles when it is first called
        clock = clock_of(job["kind"], bool(job["timing"] and job["timing"]["flush_l2"]), job.get("cache_bytes", 0))
        clock.synchronize()
        answer: dict[str, Any] = {"versions": versions(), "notes": []}
        if job["launches"]:
            record_last(work, clock, job["launches"], job["kind"])
        elif job["timing"]:
            stage = "timing"
            policy = job["timing"]
            samples, warmup = timed(work, clock, policy)
            answer.update(samples_ns=samples, method=clock.method, warmup=warmup, flushed=clock.flushed)
            answer["wanted"] = policy["rounds"] * policy["samples"]
        return answer
    except Exception as error:  # whatever the author's code does is a result
        traceback.print_exc()
        return {"error": describe(error, job), "stage": stage}


def main(arguments: list[str]) -> int:
    """Run the job of a file and write its answer."""
    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
    answer = run(job)
    partial = job["answer"] + ".part"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.replace(partial, job["answer"])
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
