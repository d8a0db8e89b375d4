"""What an AMD GPU must confirm: launching, numerics, timing, clock reads and a counter.  Nobody has run this file yet: no AMD GPU
was at hand when it was written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LaunchError
from tilelang_min.profiler import measure
from tilelang_min.runtime import gpu, hip, hip_launch
from tileprof.execute.preflight import read_amd_counter

pytestmark = [pytest.mark.amd_gpu, pytest.mark.filterwarnings("ignore:kernel .* NumPy arrays are copied")]


def target() -> str:
    return f"hip:{hip.device_info().arch}"


def product(m: int, n: int, k: int, dtype: str, stages: int) -> Any:
    @T.prim_func
    def product(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=256) as (bx, by):
            a = T.alloc_shared((64, 32), dtype)
            b = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                T.copy(A[by * 64, ko * 32], a)
                T.copy(B[ko * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return product


def rows(m: int) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def rows(A: T.Tensor((n, m), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n, threads=64) as bx:
            line = T.alloc_fragment((m,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], line)
            T.reduce_sum(line, total, dim=0)
            T.copy(total, B[bx])

    return rows


def test_facts_agree_with_the_target() -> None:
    info = hip.device_info()
    known = tilelang.targets.resolve(target())
    assert info.units > 0
    assert info.memory_bytes > 1 << 30
    assert info.shared_bytes_per_block <= known.shared.block_limit
    assert hip.cache_bytes() >= info.l2_bytes > 0


@pytest.mark.parametrize(("dtype", "stages"), [("float16", 1), ("float16", 2), ("float32", 2)])
@pytest.mark.parametrize("shape", [(64, 64, 32), (200, 136, 96), (512, 512, 512)])
def test_products(shape: tuple[int, int, int], dtype: str, stages: int) -> None:
    m, n, k = shape
    chance = np.random.default_rng(0)
    a, b = (chance.standard_normal(size).astype(dtype) for size in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    tilelang.compile(product(m, n, k, dtype, stages), target(), cache=False)(a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - expected).max() <= 1e-2 * math.sqrt(k)


def test_runtime_dimensions() -> None:
    kernel = tilelang.compile(rows(256), target(), cache=False)
    for n in (1, 7, 1000, 0):
        a = np.random.default_rng(n).standard_normal((n, 256)).astype(np.float32)
        b = np.full(n, np.nan, np.float32)
        kernel(a, b)
        assert np.allclose(b, a.sum(1), atol=1e-3)


def test_the_simulator_computes_the_same() -> None:
    kernel = tilelang.compile(product(128, 128, 64, "float16", 2), target(), cache=False)
    chance = np.random.default_rng(1)
    a, b = (chance.standard_normal(size).astype(np.float16) for size in ((128, 64), (64, 128)))
    c = np.zeros((128, 128), np.float32)
    kernel(a, b, c)
    simulated = kernel.simulate(a, b, np.zeros_like(c)).outputs["C"]
    assert np.allclose(c, simulated, atol=1e-4)


def test_errors() -> None:
    kernel = tilelang.compile(rows(64), target(), cache=False)
    others = [name for name in ("gfx90a", "gfx942", "gfx950") if name != hip.device_info().arch]
    with pytest.raises(LaunchError, match="is for"):
        hip_launch.load(kernel.bundle.binary, kernel.name, arch=others[0])
    with pytest.raises(LaunchError, match="cannot be loaded on device"):
        hip_launch.load(b"\x7fELF" + bytes(200), kernel.name, arch=hip.device_info().arch)
    with pytest.raises(LaunchError, match="hipModuleGetFunction"):
        hip_launch.load(kernel.bundle.binary, "another", arch=hip.device_info().arch)


def test_times_grow_with_work() -> None:
    def median(blocks: int) -> float:
        kernel = tilelang.compile(product(64 * blocks, 2048, 2048, "float16", 2), target(), cache=False)
        return float(kernel.get_profiler().do_bench(warmup=2, rep=10))

    small, large = median(8), median(64)
    assert 0 < small < large
    with hip.buffer(1 << 28) as memory:
        fill = measure(lambda: hip.fill_zeros(memory.pointer, memory.nbytes, hip.current_stream()), rep_ms=20)
    assert fill.method == "events"
    assert 20e9 < memory.nbytes / (fill.median_ms / 1e3) < 2e13, "bytes a second of any device known here"


def test_streams_of_one_device_and_buffers_of_all() -> None:
    array = np.arange(1000, dtype=np.float32)
    for device in range(hip.device_count()):
        with hip.on_device(device), hip.copy_of(array) as buffer:
            assert np.array_equal(buffer.to_numpy((1000,), "float32"), array)
    assert gpu.runtime("hip").available()[0]


def test_clock_reads() -> None:
    kernel = tilelang.compile(product(256, 256, 256, "float16", 2), target(), instrument="operations", cache=False)
    chance = np.random.default_rng(0)
    a, b = (chance.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    kernel(a, b, c)
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=0.2)
    cycles = kernel.cycles()
    assert cycles.elapsed > 0
    assert sum(item.sum for item in cycles.operations) <= cycles.elapsed


def test_a_counter_can_be_read() -> None:
    tool, read = read_amd_counter()
    if read is None:
        pytest.skip(f"rocprofv3: {tool.why}")
    assert tool.usable, f"{tool.why}: {tool.remedy}"
