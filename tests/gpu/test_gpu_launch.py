"""Kernels on a real NVIDIA GPU: loading, launching, errors, timing, and numerics of printed thread programs.

The first half needs NVRTC and the bindings only; what is compiled from a thread program needs TVM and is skipped without it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_min.codegen.nvidia.nvrtc import compile_cubin
from tilelang_min.errors import LaunchError
from tilelang_min.runtime import cuda, cuda_launch
from tilelang_min.runtime.cuda_timing import time_launches

pytestmark = pytest.mark.gpu

PROGRAMS = Path(__file__).parents[1] / "tilelang_min" / "codegen"

SOURCE = """
extern "C" __global__ void add_one(const float* a, float* b) {
  int i = blockIdx.y * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i] + 1.0f;
}
extern "C" __global__ void reverse(const float* a, float* b) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) s[i] = a[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) b[i] = s[16383 - i];
}
extern "C" __global__ void spin(const float* a, float* b) {
  long long start = clock64();
  while (clock64() - start < 1000000) {}
}
extern "C" __global__ void stray(const float* a, float* b) { b[1ll << 40] = a[0]; }
"""


def architecture() -> str:
    major, minor = cuda.device_info().compute_capability
    return f"sm_{major}{minor}"


@cache
def cubin() -> bytes:
    return compile_cubin(SOURCE, arch=architecture(), name="launch").cubin


def run(launcher: cuda_launch.Launcher, a: np.ndarray[Any, Any], grid: tuple[int, int, int], threads: int) -> Any:
    with cuda.DeviceBuffer.from_numpy(a) as source, cuda.DeviceBuffer(a.nbytes) as result:
        launcher([source.pointer, result.pointer], grid=grid, threads=threads)
        return result.to_numpy(a.shape, str(a.dtype))


def test_device_is_described() -> None:
    info = cuda.device_info()
    assert cuda.available() == (True, info.name)
    assert info.units > 0
    assert info.l2_bytes > 1 << 20
    assert info.shared_bytes_per_block >= 48 << 10


def test_launch() -> None:
    a = np.arange(6 * 64, dtype=np.float32)
    np.testing.assert_array_equal(run(cuda_launch.load(cubin(), "add_one"), a, (3, 2, 1), 64), a + 1)


def test_compiling_again_says_the_same() -> None:
    """A driver lets NVRTC take what it has compiled before from a cache; its report would be missing."""
    first, second = (compile_cubin(SOURCE, arch=architecture(), name="again") for _ in range(2))
    reports = [re.sub(r"time = [\d.]+ ms", "", made.log) for made in (first, second)]
    assert reports[0] == reports[1] != ""
    assert first.cubin == second.cubin


def test_64_kib_of_dynamic_shared_memory() -> None:
    a = np.arange(16384, dtype=np.float32)
    launcher = cuda_launch.load(cubin(), "reverse", shared_bytes_dynamic=65536)
    np.testing.assert_array_equal(run(launcher, a, (1, 1, 1), 256), a[::-1])


def test_torch_tensors_and_its_stream() -> None:
    torch = pytest.importorskip("torch")
    launcher = cuda_launch.load(cubin(), "add_one")
    a = torch.arange(4096, dtype=torch.float32, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        a.mul_(2)
        b = torch.empty_like(a)
        launcher([a.data_ptr(), b.data_ptr()], grid=(64, 1, 1), threads=64)
        assert torch.equal(b, a + 1)


def test_binary_of_another_architecture() -> None:
    other = "sm_80" if architecture() != "sm_80" else "sm_90"
    wrong = compile_cubin(SOURCE, arch=other, name="launch").cubin
    with pytest.raises(LaunchError, match="cannot be loaded on") as caught:
        cuda_launch.load(wrong, "add_one")
    assert "compile for" in str(caught.value)


def test_kernel_that_is_not_there() -> None:
    with pytest.raises(LaunchError, match="holds no kernel of that name"):
        cuda_launch.load(cubin(), "nothing")


def test_too_many_threads() -> None:
    launcher = cuda_launch.load(cubin(), "add_one")
    with pytest.raises(LaunchError, match="cuLaunchKernelEx failed"):
        launcher([0, 0], grid=(1, 1, 1), threads=2048)


def test_times_are_those_of_the_kernel() -> None:
    launcher = cuda_launch.load(cubin(), "spin")
    for flush_l2 in (True, False):
        times = time_launches(
            lambda: launcher([0, 0], grid=(1, 1, 1), threads=1), launches=10, warmup=2, flush_l2=flush_l2
        )
        assert len(times) == 10
        # A million cycles, at 0.3 to 2.6 GHz.
        assert all(380_000 < ns < 3_500_000 for ns in times), times


def test_illegal_address_in_a_process_of_its_own() -> None:
    code = (
        "import sys\n"
        "from tilelang_min.runtime import cuda, cuda_launch\n"
        "launcher = cuda_launch.load(sys.stdin.buffer.read(), 'stray')\n"
        "try:\n"
        "    with cuda.DeviceBuffer(4) as b:\n"
        "        launcher([b.pointer, b.pointer], grid=(1, 1, 1), threads=1)\n"
        "        cuda.synchronize()\n"
        "except cuda.LaunchError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=cubin(), capture_output=True, check=True)
    assert b"CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert b"outside its tensors" in done.stdout


def programs(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    pytest.importorskip("tvm")
    monkeypatch.syspath_prepend(PROGRAMS)
    import amd_programs
    import nvidia_programs

    return amd_programs, nvidia_programs


def target() -> str:
    return "cuda:sm_90a" if architecture() == "sm_90" else f"cuda:{architecture()}"


def execute(program: Any, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Outputs of a thread program, in parameter order."""
    from tilelang_min.codegen.nvidia import generate

    kernel = generate(program)
    launcher = cuda_launch.load(kernel.binary, kernel.symbol, shared_bytes_dynamic=program.shared_bytes_dynamic)
    given = iter(inputs)
    buffers = []
    for parameter in program.parameters:
        if parameter.access == "in":
            buffers.append(cuda.DeviceBuffer.from_numpy(next(given)))
        else:
            buffers.append(cuda.DeviceBuffer(parameter.elements * np.dtype(parameter.dtype).itemsize))
    launcher([buffer.pointer for buffer in buffers], grid=program.grid, threads=program.threads)
    results = [b.to_numpy(p.shape, p.dtype) for b, p in zip(buffers, program.parameters) if p.access == "out"]
    for buffer in buffers:
        buffer.close()
    return results


def test_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    np.testing.assert_array_equal(execute(programs(monkeypatch)[0].scale(target()), [a])[0], 2 * a)


def test_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng(0).standard_normal(2048).astype(np.float16)
    three, five = execute(programs(monkeypatch)[1].halves(target()), [a])
    np.testing.assert_array_equal(three, (a.astype(np.float32) * 3).astype(np.float16))
    np.testing.assert_array_equal(five, (a.astype(np.float32) * 5).astype(np.float16))


def test_division(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 32), dtype=np.float32)
    quotient, inverse = execute(programs(monkeypatch)[1].divide(target(), both=True), [a, b])
    np.testing.assert_array_equal(quotient, a / b)  # IEEE division
    np.testing.assert_array_equal(inverse, b / a)


@pytest.mark.parametrize("size", [16, 256, 1024])
def test_matrix_product(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    made = programs(monkeypatch)[1]
    program = made.mma_tile(target()) if size == 16 else made.gemm(target(), size=size)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(p.shape).astype(np.float16) for p in program.parameters[:2])
    (c,) = execute(program, [a, b])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=2e-3 * np.sqrt(size))
