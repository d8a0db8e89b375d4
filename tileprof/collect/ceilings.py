"""Ceilings for rooflines: measured on a CPU, taken from datasheets for GPUs.

A quick measurement (about a second), good for a roofline in a report.  It is not a benchmark suite: memory bandwidth from a
parallel copy of arrays that no cache holds, peak work from a compiled loop of fused multiply-adds on every core.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tilelang_min import targets
from tileprof.store.records import Ceiling, Provenance

FMA_SOURCE = """
typedef float vec __attribute__((vector_size(WIDTH)));
float fma_loop(long rounds, float scale, float offset) {
    vec chain[CHAINS];
    for (int i = 0; i < CHAINS; i++) chain[i] = (vec){0} + (float)i;
    vec x = (vec){0} + scale, y = (vec){0} + offset;
    for (long r = 0; r < rounds; r++) {
#pragma clang loop unroll(full)
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * x + y;
    }
    vec sum = chain[0];
    for (int i = 1; i < CHAINS; i++) sum += chain[i];
    float result = 0;
    for (unsigned i = 0; i < WIDTH / sizeof(float); i++) result += sum[i];
    return result;
}
"""
CHAINS = 12
"""Independent accumulators: above latency x pipes (8) of current cores, within the 16 registers of AVX2."""

MIN_COPY_BYTES = 64 << 20
MAX_COPY_BYTES = 1 << 30
_COPY_SECONDS, _FMA_SECONDS = 0.35, 0.2


def ceilings(target: str, gpu: str = "") -> list[Ceiling]:
    """Ceilings of a target: measured where it is the CPU, else those of a device's datasheet.

    ``target`` is any name that the compiler resolves; it stands in the records as given.  ``gpu`` is the product name of the
    GPU at hand, as its driver gives it; without one, or with one that is not known, the architecture's first device
    counts.  A GPU architecture without a known device gives none.
    """
    resolved = targets.resolve(target)
    if resolved.kind == "cpu":
        return measure_cpu(target, resolved.vector_bits or 128)
    return datasheet(target, resolved, gpu)


def datasheet(name: str, resolved: Any, gpu: str = "") -> list[Ceiling]:
    """Datasheet ceilings of the device that ``gpu`` names, else of the first one, labelled with device and source."""
    if not resolved.devices:
        return []
    device = matching_device(resolved.devices, gpu)
    provenance = Provenance("datasheet", device.name, "", device.source)
    rows = [
        Ceiling(name, "dram.bytes_per_s", "", targets.dram_bytes_per_second(device), provenance),
        Ceiling(name, "shared.bytes_per_s", "", targets.shared_bytes_per_second(device), provenance),
    ]
    for rate in device.flops_per_clock_per_unit:
        value = targets.flops_per_second(device, rate)
        if value is not None:
            rows.append(Ceiling(name, "flops_per_s", rate, float(value), provenance))
    return rows


def matching_device(devices: Sequence[Any], gpu: str) -> Any:
    """The device that shares most words with the product name ``gpu``, among those whose model it names; else the first.

    ``NVIDIA H200`` is ``H200 SXM``; ``NVIDIA A100-SXM4-80GB`` is ``A100 SXM 80GB`` rather than the smaller one.
    """
    words = set(re.findall(r"[A-Z]*[0-9]+[A-Z]*|[A-Z]+", gpu.upper()))
    named = [device for device in devices if device.name.upper().split()[0] in words]
    return max(named, key=lambda device: len(words & set(device.name.upper().split())), default=devices[0])


def measure_cpu(name: str, vector_bits: int) -> list[Ceiling]:
    """Bandwidth of memory and peak float32 work of all cores that this process may use."""
    cores = usable_cores()
    flops, how = peak_flops(cores, vector_bits)
    bandwidth, copy_bytes = copy_bandwidth(cores)
    copied = f"NumPy copy of {copy_bytes >> 20} MiB on {cores} threads, bytes read and written, best of several"
    return [
        Ceiling(name, "dram.bytes_per_s", "", bandwidth, Provenance("measured", "NumPy copy", np.__version__, copied)),
        Ceiling(name, "flops_per_s", "vector.float32", flops, how),
    ]


def usable_cores() -> int:
    """Cores that the scheduler may give this process (``taskset`` and containers narrow it)."""
    return len(os.sched_getaffinity(0))


def last_level_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """Size of the largest cache that cpu0 sees, or None where the system does not say."""
    sizes = []
    for entry in root.glob("index*/size"):
        text = entry.read_text().strip()
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:])
        if factor and text[:-1].isdigit():
            sizes.append(int(text[:-1]) * factor)
    return max(sizes, default=None)


def available_memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that can be had without swapping, or None where the system does not say."""
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def copy_size(cache: int | None, memory: int | None) -> int:
    """Bytes of each of the two arrays to copy: as large as the last cache, within an eighth of free memory.

    Both together are twice the cache, so that nothing of a pass is left when the next one comes back to it.
    """
    size = max(MIN_COPY_BYTES, min(cache or 4 * MIN_COPY_BYTES, MAX_COPY_BYTES))
    return min(size, max(1 << 20, memory // 8)) if memory else size


def copy_bandwidth(cores: int, size: int | None = None) -> tuple[float, int]:
    """(bytes read and written per second, bytes of one array), best of the passes that fit the time.

    Memory that a store brings into the cache first (write-allocate) is not counted, as in STREAM.
    """
    size = copy_size(last_level_cache_bytes(), available_memory_bytes()) if size is None else size
    source, target = (np.empty(size // 8, dtype=np.float64) for _ in range(2))
    bounds = [len(source) * i // cores for i in range(cores + 1)]
    parts = [(target[a:b], source[a:b]) for a, b in pairwise(bounds)]
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda part: part[1].fill(1.0), parts))  # first touch, where the copying thread is
        list(pool.map(lambda part: np.copyto(*part), parts))
        best = _best_seconds(lambda: list(pool.map(lambda part: np.copyto(*part), parts)), _COPY_SECONDS)
    return 2 * source.nbytes / best, source.nbytes


def _best_seconds(run: Callable[[], object], budget: float, least: int = 3) -> float:
    """Shortest of at least ``least`` runs, and of as many as the budget in seconds allows."""
    best, begin, runs = float("inf"), time.perf_counter(), 0
    while runs < least or time.perf_counter() - begin < budget:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        runs += 1
    return best


def peak_flops(cores: int, vector_bits: int) -> tuple[float, Provenance]:
    """Float32 operations per second of all cores (a fused multiply-add is 2), and how that was measured.

    With a compiled loop; where none can be compiled, with a matrix product of NumPy's BLAS, which says so.
    """
    with tempfile.TemporaryDirectory(prefix="tileprof-") as folder:
        try:
            loop = compile_fma(Path(folder), vector_bits)
        except (OSError, subprocess.SubprocessError) as error:
            why = f"stand-in, since the multiply-add loop does not compile here ({type(error).__name__})"
            return _sgemm_flops(), Provenance("measured", "BLAS sgemm", np.__version__, why)
        flops = _fma_flops(loop, cores, vector_bits)
    detail = f"{CHAINS} chains of {vector_bits}-bit fused multiply-adds on {cores} threads, best of several"
    return flops, Provenance("measured", "FMA loop", "", detail)


def compile_fma(folder: Path, vector_bits: int) -> Callable[[int, float, float], float]:
    """The loop of :data:`FMA_SOURCE` for this machine, with the clang and the linker of the package ``ziglang``.

    Raises OSError or SubprocessError where they do not run or refuse.
    """
    source, unit, library = folder / "fma.c", folder / "fma.o", folder / "fma.so"
    source.write_text(FMA_SOURCE)
    flags = ["-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-ffreestanding"]
    flags.append(f"-mprefer-vector-width={vector_bits}")  # else 512-bit vectors are split in two
    defines = [f"-DWIDTH={vector_bits // 8}", f"-DCHAINS={CHAINS}"]
    zig = [sys.executable, "-m", "ziglang"]
    for command in (
        [*zig, "clang", *flags, *defines, "-c", str(source), "-o", str(unit)],
        [*zig, "ld.lld", "-shared", str(unit), "-o", str(library)],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    function: Any = ctypes.CDLL(str(library)).fma_loop
    function.argtypes, function.restype = [ctypes.c_long, ctypes.c_float, ctypes.c_float], ctypes.c_float
    return lambda rounds, scale, offset: float(function(rounds, scale, offset))


def _fma_flops(loop: Callable[[int, float, float], float], cores: int, vector_bits: int) -> float:
    """Sum over cores of the best rate each reached while all were busy: other programs disturb single runs, not all."""
    rounds = 1 << 18

    def core(_: int) -> float:
        return _best_seconds(lambda: loop(rounds, 0.5, 1.0), _FMA_SECONDS)

    with ThreadPoolExecutor(cores) as pool:
        seconds = list(pool.map(core, range(cores)))
    return sum(rounds * 2 * CHAINS * (vector_bits // 32) / best for best in seconds)


def _sgemm_flops(n: int = 1024) -> float:
    a = np.ones((n, n), dtype=np.float32)
    out = np.empty_like(a)
    return 2 * n**3 / _best_seconds(lambda: np.matmul(a, a, out=out), _FMA_SECONDS)
