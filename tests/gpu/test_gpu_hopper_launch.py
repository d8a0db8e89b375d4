"""Launching what Hopper adds, on a real one: tensor maps, clusters, 227 KB of shared memory; graphs, streams, threads, timing."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

from tilelang_min import profiler
from tilelang_min.codegen.nvidia.nvrtc import compile_cubin
from tilelang_min.errors import LaunchError
from tilelang_min.program import TensorMap
from tilelang_min.runtime import cuda, cuda_launch
from tilelang_min.runtime.cuda_timing import time_graph
from tilelang_min.runtime.measuring import measure_gpu

pytestmark = pytest.mark.gpu

SOURCE = r"""
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void box(const float* a, float* b, const __grid_constant__ CUtensorMap a_map) {
  __shared__ alignas(1024) float tile[16 * 32];
  __shared__ alignas(8) unsigned long long bar;
  unsigned t = (unsigned)__cvta_generic_to_shared(tile), m = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(m));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(m), "r"(16 * 32 * 4));
    asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(t),
      "l"(&a_map), "r"((int)blockIdx.x * 32), "r"((int)blockIdx.y * 16), "r"(m) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(m) : "memory");
  for (int i = threadIdx.x; i < 512; i += blockDim.x) b[(blockIdx.y * gridDim.x + blockIdx.x) * 512 + i] = tile[i];
}
extern "C" __global__ void ranks(const float* a, float* b) {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) b[blockIdx.y * gridDim.x + blockIdx.x] = rank;
}
extern "C" __global__ void large(const float* a, float* b) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < 58112; i += blockDim.x) s[i] = a[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 58112; i += blockDim.x) b[i] = s[58111 - i];
}
extern "C" __global__ void count(const float* a, float* b) { if (threadIdx.x == 0) atomicAdd(b, a[0]); }
"""


@cache
def cubin() -> bytes:
    return compile_cubin(SOURCE, arch="sm_90a", name="hopper").cubin


@pytest.fixture(autouse=True)
def hopper() -> None:
    if cuda.device_info().compute_capability != (9, 0):
        pytest.skip("needs compute capability 9.0")


def run(launcher: Any, a: Any, count: int, grid: tuple[int, int, int], threads: int = 128) -> Any:
    with cuda.DeviceBuffer.from_numpy(a) as source, cuda.DeviceBuffer(count * 4) as result:
        launcher([source.pointer, result.pointer], grid=grid, threads=threads)
        return result.to_numpy((count,), "float32")


@pytest.mark.parametrize("swizzle", [0, 128])
def test_tensor_map(swizzle: int) -> None:
    tensor_map = TensorMap("a_map", "a", "float32", (40, 64), (16, 32), swizzle)
    launcher = cuda_launch.load(cubin(), "box", tensor_maps=[tensor_map], parameters=["a", "b"])
    a = np.arange(40 * 64, dtype=np.float32).reshape(40, 64)
    for factor in (1, 2):  # another tensor, another map
        found = run(launcher, a * factor, 6 * 512, (2, 3, 1)).reshape(3, 2, 512)
        padded = np.zeros((48, 64), np.float32)
        padded[:40] = a * factor
        expected = padded.reshape(3, 16, 2, 32).transpose(0, 2, 1, 3).reshape(3, 2, 512)
        if swizzle:
            byte = np.arange(512) * 4
            moved = np.zeros_like(expected)
            moved[..., (byte ^ ((byte >> 7 & 7) << 4)) // 4] = expected
            expected = moved
        np.testing.assert_array_equal(found, expected)


def test_clusters() -> None:
    launcher = cuda_launch.load(cubin(), "ranks", cluster=(2, 2, 1))
    found = run(launcher, np.zeros(1, np.float32), 16, (4, 4, 1))
    np.testing.assert_array_equal(found.reshape(4, 4), np.tile([[0, 1], [2, 3]], (2, 2)))
    assert set(
        run(cuda_launch.load(cubin(), "ranks", cluster=(16, 1, 1)), np.zeros(1, np.float32), 16, (16, 1, 1))
    ) == set(range(16))


def test_all_of_shared_memory() -> None:
    launcher = cuda_launch.load(cubin(), "large", shared_bytes_dynamic=227 * 1024)
    a = np.arange(58112, dtype=np.float32)
    np.testing.assert_array_equal(run(launcher, a, 58112, (1, 1, 1), 1024), a[::-1])
    with pytest.raises(LaunchError, match="shared memory"):
        cuda_launch.load(cubin(), "large", shared_bytes_dynamic=228 * 1024)


def test_threads_launch_at_once() -> None:
    launcher = cuda_launch.load(cubin(), "count")
    buffers = [cuda.DeviceBuffer.from_numpy(np.zeros(1, np.float32)) for _ in range(4)]
    one = cuda.DeviceBuffer.from_numpy(np.ones(1, np.float32))

    def work(buffer: cuda.DeviceBuffer) -> None:
        for _ in range(300):
            launcher([one.pointer, buffer.pointer], grid=(1, 1, 1), threads=32)

    workers = [threading.Thread(target=work, args=(buffer,)) for buffer in buffers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [float(buffer.to_numpy((1,), "float32")[0]) for buffer in buffers] == [300.0] * 4


def test_captured_by_torch() -> None:
    torch = pytest.importorskip("torch")
    one, total = torch.ones(1, device="cuda"), torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # loaded while the capture is under way
        launcher = cuda_launch.load(cubin(), "count")
        for _ in range(3):
            launcher([one.data_ptr(), total.data_ptr()], grid=(1, 1, 1), threads=32)
    assert float(total) == 0
    graph.replay()
    graph.replay()
    assert float(total) == 6


def test_timing_by_events_and_by_graph() -> None:
    launcher = cuda_launch.load(cubin(), "count")
    with (
        cuda.DeviceBuffer.from_numpy(np.zeros(1, np.float32)) as b,
        cuda.DeviceBuffer.from_numpy(np.ones(1, np.float32)) as a,
    ):

        def launch() -> None:
            launcher([a.pointer, b.pointer], grid=(1, 1, 1), threads=32)

        short = measure_gpu(launch, warmup=3, rep=20, flush_l2=False)
        assert (short.method, short.note) == ("graph", "")
        assert 500 < short.quantile(0.5) < 15_000
        flushed = time_graph(launch, launches=10, flush_l2=True)
        assert all(500 < each < 50_000 for each in flushed)
        events = measure_gpu(launch, warmup=3, rep=20, method="events")
        assert events.quantile(0.5) > 500
        assert profiler.do_bench(launch, 1, 2, quantiles=[0.1, 0.9])[0] > 0

        def waits() -> None:
            launch()
            cuda.synchronize()

        kept = measure_gpu(waits, warmup=1, rep=3)
        assert kept.method == "events"
        assert "captured" in kept.note
    ranks = cuda_launch.load(cubin(), "ranks")  # a failed capture leaves the context usable
    assert float(run(ranks, np.ones(1, np.float32), 1, (1, 1, 1))[0]) == 0
