"""Launching on NVIDIA GPUs, against a driver that only writes down what it is asked; tests/gpu has the real one."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from tilelang_min.errors import LaunchError
from tilelang_min.program import TensorMap
from tilelang_min.runtime import cuda, cuda_launch, cuda_timing


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
    CUstreamCaptureMode = CUstreamCaptureStatus = Names()
    CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = Names()
    CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Names()
    cuuint32_t = cuuint64_t = int

    def __init__(self) -> None:
        self.launched_maps: list[bytes] = []
        self.encoded = 0
        self.kept: list[Any] = []
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
            "cuKernelGetFunction": lambda kernel: 1000 + self.context,
            "cuStreamIsCapturing": lambda stream: "CU_STREAM_CAPTURE_STATUS_NONE",
            "cuThreadExchangeStreamCaptureMode": lambda mode: f"not {mode}",
            "cuTensorMapEncodeTiled": self.encode,
            "cuStreamCreate": lambda flags: 55,
            "cuStreamEndCapture": lambda stream: "graph",
            "cuGraphInstantiate": lambda graph, flags: f"ready {graph}",
            "cuMemAlloc": lambda size: 4096,
            "cuEventCreate": self.new_event,
            "cuEventElapsedTime": lambda before, after: 0.001 * after,  # milliseconds
        }

    def set_context(self, context: int) -> None:
        self.context = context

    def new_event(self, flags: int) -> int:
        self.events += 1
        return self.events

    def encode(self, *arguments: Any) -> Any:
        """A map whose 128 bytes are its number."""
        self.encoded += 1
        memory = (ctypes.c_char * 128).from_buffer_copy(bytes([self.encoded]) * 128)
        self.kept.append(memory)

        class Made:
            def getPtr(self) -> int:
                return ctypes.addressof(memory)

        return Made()

    def native(self, name: str) -> Callable[..., int]:
        """What the driver's library itself would do."""
        return {"cuCtxGetCurrent": self.get_context, "cuLaunchKernelEx": self.launch}[name]

    def get_context(self, pointer: Any) -> int:
        pointer._obj.value = self.context
        return 0

    def launch(self, config: Any, function: Any, addresses: Any, extra: None) -> int:
        given = config._obj
        cluster = tuple(given.attributes[0].value[:3]) if given.count else None
        self.calls.append(
            ("launch", function.value, *given.grid, *given.block, given.shared, given.stream or 0, cluster)
        )
        count = len(addresses) - self.maps
        self.launched_pointers.append([ctypes.c_uint64.from_address(at).value for at in addresses[:count]])
        for at in addresses[count:]:
            assert at % 64 == 0
            self.launched_maps.append(ctypes.string_at(at, 128))
        return self.failures.get("launch", Status.CUDA_SUCCESS).value

    maps = 0
    """Tensor maps among the arguments of a launch."""

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
    monkeypatch.setattr(cuda, "native", fake.native)
    monkeypatch.setattr(cuda, "_devices", {})
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return fake


def test_launch_passes_addresses_of_the_pointers(driver: FakeDriver) -> None:
    launcher = cuda_launch.load(b"cubin", "k", shared_bytes_dynamic=1024)
    launcher([0x1000, 0xFFFF_FFFF_0000], grid=(5, 6, 7), threads=128)
    assert driver.launched_pointers == [[0x1000, 0xFFFF_FFFF_0000]]
    (call,) = driver.named("launch")
    assert call[1:] == (1077, 5, 6, 7, 128, 1, 1, 1024, 0, None)
    assert driver.named("cuLibraryLoadData")[0][1] == b"cubin"
    assert driver.named("cuLibraryGetKernel") == [("cuLibraryGetKernel", "library", b"k")]


def test_first_use_takes_the_primary_context_and_later_uses_the_current_one(driver: FakeDriver) -> None:
    launcher = cuda_launch.load(b"cubin", "k")
    assert driver.context == 77
    driver.context = 78  # somebody, torch say, works with another device
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    assert len(driver.named("cuDevicePrimaryCtxRetain")) == 1
    assert [call[1] for call in driver.named("launch")] == [1078] * 2
    assert len(driver.named("cuKernelGetFunction")) == 2  # one for each context


@pytest.mark.parametrize(("shared", "asked"), [(0, []), (48 << 10, []), ((48 << 10) + 16, [(48 << 10) + 16])])
def test_shared_memory_beyond_48_kib_is_asked_for_once(driver: FakeDriver, shared: int, asked: list[int]) -> None:
    launcher = cuda_launch.load(b"cubin", "k", shared_bytes_dynamic=shared)
    for _ in range(2):
        launcher([1, 2], grid=(1, 1, 1), threads=32)
    assert [call[3] for call in driver.named("cuFuncSetAttribute")] == asked
    assert all(call[8] == shared for call in driver.named("launch"))


def test_more_shared_memory_than_the_device_has(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="needs 102401 bytes of shared memory a block, the device has 102400"):
        cuda_launch.load(b"cubin", "k", shared_bytes_dynamic=(100 << 10) + 1)


def test_stream_is_torchs_where_torch_uses_the_gpu(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        cuda_stream = 1234

    class TorchCuda:
        initialized = False

        def is_initialized(self) -> bool:
            return self.initialized

        def current_stream(self) -> Stream:
            return Stream()

        def current_device(self) -> int:
            return 0

    class Torch:
        cuda = TorchCuda()

    monkeypatch.setitem(sys.modules, "torch", Torch())  # type: ignore[arg-type]
    launcher = cuda_launch.load(b"cubin", "k")
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    Torch.cuda.initialized = True
    launcher([1, 2], grid=(1, 1, 1), threads=32)
    launcher([1, 2], grid=(1, 1, 1), threads=32, stream=5)
    assert [call[9] for call in driver.named("launch")] == [0, 1234, 5]


A_MAP = TensorMap("A_map", "A", "float16", (100, 64), (32, 64), 128)
B_MAP = TensorMap("B_map", "B", "float32", (7, 3, 8), (1, 3, 8), 0)


def test_maps_are_encoded_once_for_each_address(driver: FakeDriver) -> None:
    driver.maps = 2
    launcher = cuda_launch.load(b"cubin", "k", tensor_maps=[A_MAP, B_MAP], parameters=["A", "B", "C"])
    for pointers in ([16, 32, 48], [16, 32, 64], [16, 160, 48]):
        launcher(pointers, grid=(1, 1, 1), threads=32)
    assert driver.launched_pointers == [[16, 32, 48], [16, 32, 64], [16, 160, 48]]
    assert [each[0] for each in driver.launched_maps] == [1, 2, 1, 2, 1, 3]
    first, second, third = driver.named("cuTensorMapEncodeTiled")
    assert first[1:10] == (
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
        *(2, 16, [64, 100], [128], [64, 32], [1, 1]),
        *("CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B"),
    )
    assert second[2:8] == (3, 32, [8, 3, 7], [32, 96], [8, 3, 1], [1, 1, 1])
    assert third[3] == 160
    with pytest.raises(LaunchError, match="parameter A starts at an address that is no multiple of 16 bytes"):
        launcher([8, 32, 48], grid=(1, 1, 1), threads=32)


def test_maps_of_tensors_whose_rows_are_known_at_launch(driver: FakeDriver) -> None:
    """Sizes are arguments behind the addresses; a map is encoded once for each address and size."""
    driver.maps = 1
    rows = TensorMap("A_map", "A", "float16", ("m", 64), (32, 64), 128)
    launcher = cuda_launch.load(b"cubin", "k", tensor_maps=[rows], parameters=["A", "C", "m"])
    for arguments in ([16, 48, 100], [16, 48, 7], [16, 64, 100]):
        launcher(arguments, grid=(1, 1, 1), threads=32)
    assert driver.launched_pointers == [[16, 48, 100], [16, 48, 7], [16, 64, 100]]
    assert [each[0] for each in driver.launched_maps] == [1, 2, 1]
    assert [call[4:6] for call in driver.named("cuTensorMapEncodeTiled")] == [([64, 100], [128]), ([64, 7], [128])]


def test_maps_of_a_kernel_that_cannot_be(driver: FakeDriver) -> None:
    bad = TensorMap("A_map", "A", "float16", (100, 60), (32, 60), 0)
    with pytest.raises(LaunchError, match="rows of 120 bytes are no multiple of 16"):
        cuda_launch.load(b"cubin", "k", tensor_maps=[bad], parameters=["A"])
    with pytest.raises(LaunchError, match="tensor map A_map describes A, which is no parameter"):
        cuda_launch.load(b"cubin", "k", tensor_maps=[A_MAP], parameters=["B"])


def test_clusters(driver: FakeDriver) -> None:
    launcher = cuda_launch.load(b"cubin", "k", cluster=(2, 1, 1))
    launcher([1, 2], grid=(4, 3, 1), threads=128)
    assert driver.named("launch")[0][2:] == (4, 3, 1, 128, 1, 1, 0, 0, (2, 1, 1))
    with pytest.raises(LaunchError, match="5 blocks along x are not whole clusters of 2"):
        launcher([1, 2], grid=(5, 3, 1), threads=128)
    assert not driver.named("cuFuncSetAttribute")
    cuda_launch.load(b"cubin", "k", cluster=(4, 4, 1))
    assert driver.named("cuFuncSetAttribute")[0][2:] == ("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)


def test_launches_neither_wait_nor_allocate(driver: FakeDriver) -> None:
    """So that they can be captured; loading on the way lets a capture be."""
    driver.maps = 1
    launcher = cuda_launch.load(b"cubin", "k", tensor_maps=[A_MAP], parameters=["A"])
    modes = driver.named("cuThreadExchangeStreamCaptureMode")
    assert [mode[1] for mode in modes[:2]] == ["CU_STREAM_CAPTURE_MODE_RELAXED", "not CU_STREAM_CAPTURE_MODE_RELAXED"]
    driver.calls.clear()
    launcher([16], grid=(1, 1, 1), threads=32)
    assert [call[0] for call in driver.calls] == ["cuTensorMapEncodeTiled", "launch"]
    driver.calls.clear()
    launcher([16], grid=(1, 1, 1), threads=32)
    assert [call[0] for call in driver.calls] == ["launch"]


def test_threads_have_buffers_of_their_own(driver: FakeDriver) -> None:
    launcher = cuda_launch.load(b"cubin", "k", parameters=["A", "B"])

    def work(number: int) -> None:
        for i in range(50):
            launcher([number, i], grid=(1, 1, 1), threads=32)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(driver.launched_pointers) == sorted([n, i] for n in range(4) for i in range(50))


def test_a_launch_that_fails(driver: FakeDriver) -> None:
    launcher = cuda_launch.load(b"cubin", "k")
    driver.failures["launch"] = Status.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(LaunchError, match=r"cuLaunchKernelEx failed: text of 1 \(CUDA_ERROR_INVALID_VALUE\)"):
        launcher([1], grid=(1, 1, 1), threads=32)


def test_another_device_for_a_while(driver: FakeDriver) -> None:
    driver.results["cuDevicePrimaryCtxRetain"] = lambda device: 70 + device
    driver.results["cuCtxGetDevice"] = lambda: driver.context - 70
    assert cuda.current_device() == 0
    with cuda.on_device(3):
        assert (driver.context, cuda.current_device()) == (73, 3)
    assert (driver.context, cuda.current_device()) == (70, 0)


@pytest.mark.parametrize("call", ["cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"])
def test_binary_of_another_architecture(driver: FakeDriver, call: str) -> None:
    driver.failures[call] = Status.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(LaunchError, match=r"kernel k cannot be loaded on Fake A100 \(sm_80\)") as caught:
        cuda_launch.load(b"cubin", "k")
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
        "from tilelang_min.runtime import cuda, cuda_launch\n"
        "ok, reason = cuda.available()\n"
        "assert not ok and 'cuda-bindings' in reason, reason\n"
        "assert not {'tvm', 'torch', 'pandas'} & set(sys.modules)\n"
        "try: cuda_launch.load(b'', 'k')\n"
        "except cuda.LaunchError as error: assert \"pip install 'tileprof[cuda]'\" in str(error)\n"
        "else: sys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
