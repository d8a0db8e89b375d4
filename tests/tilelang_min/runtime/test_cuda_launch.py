"""Launching on NVIDIA GPUs, against a driver that only writes down what it is asked; tests/gpu has the real one."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from tilelang_min.errors import LaunchError
from tilelang_min.runtime import cuda, cuda_timing


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Names:
    """Any attribute is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 8,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 108,
    "L2_CACHE_SIZE": 2 << 20,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 100 << 10,
}


class FakeDriver:
    """The driver API of a device with 2 MiB of L2 and 100 KiB of shared memory a block."""

    CUresult = Status
    CUdevice_attribute = Names()
    CUfunction_attribute = Names()

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failures: dict[str, Status] = {}
        self.context = 0
        self.launched_pointers: list[list[int]] = []
        self.events = 0
        self.results: dict[str, Callable[..., Any]] = {
            "cuCtxGetCurrent": lambda: self.context,
            "cuDeviceGetCount": lambda: 1,
            "cuDeviceGet": lambda ordinal: ordinal,
            "cuDevicePrimaryCtxRetain": lambda device: 77,
            "cuCtxSetCurrent": self.set_context,
            "cuCtxGetDevice": lambda: 0,
            "cuDeviceGetAttribute": lambda name, device: ATTRIBUTES[name.removeprefix("CU_DEVICE_ATTRIBUTE_")],
            "cuDeviceGetName": lambda size, device: b"Fake A100\0\0\0",
            "cuDeviceTotalMem": lambda device: 1 << 30,
            "cuDriverGetVersion": lambda: 13010,
            "cuLibraryLoadData": lambda *_: "library",
            "cuLibraryGetKernel": lambda library, name: name,
            "cuKernelGetFunction": lambda kernel: ("function", self.context),
            "cuMemAlloc": lambda size: 4096,
            "cuEventCreate": self.new_event,
            "cuEventElapsedTime": lambda before, after: 0.001 * after,  # milliseconds
            "cuLaunchKernel": self.launch,
        }

    def set_context(self, context: int) -> None:
        self.context = context

    def new_event(self, flags: int) -> int:
        self.events += 1
        return self.events

    def launch(self, function: Any, *rest: Any) -> None:
        addresses = (ctypes.c_void_p * 2).from_address(rest[-2])
        self.launched_pointers.append([ctypes.c_uint64.from_address(address or 0).value for address in addresses])

    def cuGetErrorString(self, status: Status) -> tuple[Status, bytes]:
        return Status.CUDA_SUCCESS, f"text of {status.value}".encode()

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def function(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            if name in self.failures:
                return (self.failures[name],)
            result = self.results.get(name, lambda *_: None)(*arguments)
            return (Status.CUDA_SUCCESS,) if result is None else (Status.CUDA_SUCCESS, result)

        return function

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] in names]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "_driver", lambda: fake)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return fake


def test_launch_passes_addresses_of_the_pointers(driver: FakeDriver) -> None:
    launcher = cuda.load(b"cubin", "k", shared_bytes_dynamic=1024)
    launcher([0x1000, 0xFFFF_FFFF_0000], grid=(5, 6, 7), threads=128)
    assert driver.launched_pointers == [[0x1000, 0xFFFF_FFFF_0000]]
    (call,) = driver.named("cuLaunchKernel")
    assert call[1:10] == (("function", 77), 5, 6, 7, 128, 1, 1, 1024, 0)
    assert driver.named("cuLibraryLoadData")[0][1] == b"cubin"
    assert driver.named("cuLibraryGetKernel") == [("cuLibraryGetKernel", "library", b"k")]


def test_first_use_takes_the_primary_context_and_later_uses_the_current_one(driver: FakeDriver) -> None:
    launcher = cuda.load(b"cubin", "k")
    assert driver.context == 77
    driver.context = 78  # somebody, torch say, works with another device
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    assert len(driver.named("cuDevicePrimaryCtxRetain")) == 1
    assert [call[1] for call in driver.named("cuLaunchKernel")] == [("function", 78)] * 2
    assert len(driver.named("cuKernelGetFunction")) == 2  # one for each context


@pytest.mark.parametrize(("shared", "asked"), [(0, []), (48 << 10, []), ((48 << 10) + 16, [(48 << 10) + 16])])
def test_shared_memory_beyond_48_kib_is_asked_for_once(driver: FakeDriver, shared: int, asked: list[int]) -> None:
    launcher = cuda.load(b"cubin", "k", shared_bytes_dynamic=shared)
    for _ in range(2):
        launcher([1, 2], grid=(1, 1, 1), threads=32)
    assert [call[3] for call in driver.named("cuFuncSetAttribute")] == asked
    assert all(call[8] == shared for call in driver.named("cuLaunchKernel"))


def test_more_shared_memory_than_the_device_has(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="needs 102401 bytes of shared memory a block, the device has 102400"):
        cuda.load(b"cubin", "k", shared_bytes_dynamic=(100 << 10) + 1)


def test_stream_is_torchs_where_torch_uses_the_gpu(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        cuda_stream = 1234

    class TorchCuda:
        initialized = False

        def is_initialized(self) -> bool:
            return self.initialized

        def current_stream(self) -> Stream:
            return Stream()

    class Torch:
        cuda = TorchCuda()

    monkeypatch.setitem(sys.modules, "torch", Torch())  # type: ignore[arg-type]
    launcher = cuda.load(b"cubin", "k")
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    Torch.cuda.initialized = True
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    launcher([1, 2], grid=(1, 1, 1), threads=32, stream=5)
    assert [call[9] for call in driver.named("cuLaunchKernel")] == [0, 1234, 5]


@pytest.mark.parametrize("call", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"])
def test_binary_of_another_architecture(driver: FakeDriver, call: str) -> None:
    driver.failures[call] = Status.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(LaunchError, match=r"kernel k cannot be loaded on Fake A100 \(sm_80\)") as caught:
        cuda.load(b"cubin", "k")
    assert caught.value.remedy is not None
    assert "compile for the one of this device" in caught.value.remedy


def test_errors_name_the_call_and_its_reason(driver: FakeDriver) -> None:
    driver.failures["cuStreamSynchronize"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(
        LaunchError, match=r"cuStreamSynchronize failed: text of 700 \(CUDA_ERROR_ILLEGAL_ADDRESS\)"
    ) as e:
        cuda.synchronize()
    assert e.value.remedy is not None
    assert "compute-sanitizer" in e.value.remedy


def test_no_device(driver: FakeDriver) -> None:
    driver.results["cuDeviceGetCount"] = lambda: 0
    assert cuda.available() == (False, "no NVIDIA GPU is visible")


def test_device_facts(driver: FakeDriver) -> None:
    assert cuda.available() == (True, "Fake A100")
    assert cuda.device_info() == cuda.DeviceInfo("Fake A100", (8, 0), 108, 1 << 30, 2 << 20, 100 << 10, "13.1")


def test_each_timed_launch_stands_alone_between_events_behind_a_flush(driver: FakeDriver) -> None:
    launches: list[int] = []

    def launch() -> None:
        launches.append(1)
        driver.calls.append(("launch",))

    times = cuda_timing.time_launches(launch, launches=3, warmup=2)
    order = [call[0] for call in driver.named("launch", "cuMemsetD8Async", "cuEventRecord", "cuStreamSynchronize")]
    assert order == [
        *["launch"] * 2,
        *["cuMemsetD8Async", "cuEventRecord", "launch", "cuEventRecord"] * 3,
        "cuStreamSynchronize",
    ]
    assert len(launches) == 5
    assert driver.named("cuMemAlloc") == [("cuMemAlloc", 4 << 20)]
    assert driver.named("cuMemsetD8Async")[0][1:] == (4096, 0, 4 << 20, 0)
    assert times == pytest.approx([2000.0, 4000.0, 6000.0])  # events 1-2, 3-4, 5-6; nanoseconds
    assert len(driver.named("cuEventDestroy")) == 6
    assert len(driver.named("cuMemFree")) == 1


def test_timing_without_flush(driver: FakeDriver) -> None:
    cuda_timing.time_launches(lambda: None, launches=1, warmup=0, flush_l2=False)
    assert not driver.named("cuMemAlloc", "cuMemsetD8Async")


def test_kernel_that_fails_while_timed(driver: FakeDriver) -> None:
    """Its own error comes out, not that of cleaning up after it."""
    for name in ("cuStreamSynchronize", "cuEventDestroy", "cuMemFree"):
        driver.failures[name] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(LaunchError, match="cuStreamSynchronize failed"):
        cuda_timing.time_launches(lambda: None, launches=1)


def test_buffers_check_sizes(driver: FakeDriver) -> None:
    buffer = cuda.DeviceBuffer.from_numpy(np.zeros((4, 3), np.float32).T)
    assert driver.named("cuMemcpyHtoD")[0][1::2] == (4096, 48)
    with pytest.raises(LaunchError, match="an array of 4 bytes does not fit a device buffer of 48"):
        buffer.write(np.zeros(1, np.float32))
    with pytest.raises(LaunchError, match="C-contiguous"):
        buffer.read(np.zeros((4, 3), np.float32).T)
    assert buffer.to_numpy((6,), "float64").shape == (6,)
    buffer.close()
    buffer.close()
    assert len(driver.named("cuMemFree")) == 1


def test_without_driver_or_bindings() -> None:
    """On any machine: an answer, not an exception; and no compiler is imported on the way."""
    code = (
        "import sys; sys.modules['cuda.bindings'] = None\n"
        "from tilelang_min.runtime import cuda\n"
        "ok, reason = cuda.available()\n"
        "assert not ok and 'cuda-bindings' in reason, reason\n"
        "assert not {'tvm', 'torch', 'pandas'} & set(sys.modules)\n"
        "try: cuda.load(b'', 'k')\n"
        "except cuda.LaunchError as error: assert \"pip install 'tileprof[cuda]'\" in str(error)\n"
        "else: sys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
