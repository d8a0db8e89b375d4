"""Launching on AMD GPUs, against a stand-in of the HIP runtime that checks what it is asked: no AMD GPU was at hand."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from build import compile_library

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min import profiler
from tilelang_min.driver import target_names
from tilelang_min.errors import LaunchError
from tilelang_min.runtime import cuda, gpu, gpu_timing, hip, hip_launch, hip_library
from tilelang_min.runtime.measuring import measure_gpu
from tilelang_min.targets import kfd
from tilelang_min.tune.bench import Bench

KERNELS = """
void double_it(void **arguments, unsigned x, unsigned y, unsigned z, unsigned threads) {
  const float *a = *(const float **)arguments[0];
  float *b = *(float **)arguments[1];
  for (unsigned i = 0; i < 1000; i++) b[i] = 2 * a[i];
}
void add_rows(void **arguments, unsigned x, unsigned y, unsigned z, unsigned threads) {
  const float *a = *(const float **)arguments[0];
  float *b = *(float **)arguments[1];
  int rows = *(int *)arguments[2];
  for (int i = 0; i < rows * 64; i++) b[i] = a[i] + 1;
}
"""


def double_it(N: int = 1000) -> Any:
    @T.prim_func
    def double_it(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 256), threads=256) as bx:
            for i in T.Parallel(256):
                B[bx * 256 + i] = A[bx * 256 + i] * 2

    return double_it


def add_rows() -> Any:
    M = T.dynamic("m")

    @T.prim_func
    def add_rows(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=256) as bx:
            for i, j in T.Parallel(4, 64):
                B[bx * 4 + i, j] = A[bx * 4 + i, j] + 1

    return add_rows


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels.c").write_text(KERNELS)
    return compile_library(folder / "kernels.c", folder / "kernels.so")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel for gfx942, compiled here."""
    return tilelang.compile(double_it(), "hip:gfx942", cache=False).save(tmp_path_factory.mktemp("bundle") / "k.tlk")


@pytest.fixture
def device(rocm: Path, kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A machine with one MI300X; ``log()`` gives the calls since the last time."""
    for name, value in (("ROCM_PATH", rocm), ("FAKE_HIP_KERNELS", kernels), ("FAKE_HIP_LOG", tmp_path / "calls")):
        monkeypatch.setenv(name, str(value))
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "FAKE_HIP_ARCHS", "FAKE_HIP_FAIL", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(kfd, "trouble", lambda: None)

    def log() -> list[str]:
        file = tmp_path / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def forget() -> None:
        hip_library.library.cache_clear()
        hip.architecture.cache_clear()

    forget()
    yield SimpleNamespace(log=log, forget=forget, fail=lambda text: monkeypatch.setenv("FAKE_HIP_FAIL", text))
    monkeypatch.delenv("FAKE_HIP_FAIL", raising=False)
    hip.call("hipSetDevice", 0)
    forget()


def arrays(shape: tuple[int, ...] = (1000,)) -> tuple[Any, Any]:
    a = np.random.default_rng(0).random(shape, dtype=np.float32)
    return a, np.zeros_like(a)


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_a_bundle_is_loaded_and_launched(device: Any, bundle: Path) -> None:
    kernel = tilelang.load(bundle)
    a, b = arrays()
    kernel(a, b)
    assert np.array_equal(b, 2 * a)
    launches = [line for line in device.log() if line.startswith("launch")]
    assert launches == ["launch double_it 4 1 1 256 1 1 0 0 (nil)"], (
        "blocks, threads, dynamic LDS, device, default stream"
    )
    kernel(a, b)
    calls = device.log()
    assert "hipModuleLoadData" not in calls, "loaded once"
    assert calls.count("hipMalloc") == calls.count("hipFree") == 2


@pytest.mark.filterwarnings("ignore:kernel add_rows. NumPy arrays are copied")
def test_runtime_sizes_follow_the_addresses(device: Any) -> None:
    kernel = tilelang.compile(add_rows(), "hip:gfx942", cache=False)
    for rows in (3, 8, 0):
        a, b = arrays((rows, 64))
        kernel(a, b)
        assert np.array_equal(b, a + 1)
    shapes = [line.split()[2] for line in device.log() if line.startswith("launch")]
    assert shapes == ["1", "2"], "an empty tensor is no launch"


def test_launching_imports_no_compiler(bundle: Path, rocm: Path, kernels: Path) -> None:
    code = (
        "import sys, warnings, numpy as np, tilelang_min as tilelang\n"
        "warnings.simplefilter('ignore')\n"
        f"kernel = tilelang.load({str(bundle)!r})\n"
        "a, b = np.ones(1000, np.float32), np.zeros(1000, np.float32)\n"
        "kernel(a, b); assert (b == 2).all()\n"
        "assert not {'tvm', 'torch', 'pandas', 'cuda'} & set(sys.modules), sorted(sys.modules)\n"
    )
    env = {**os.environ, "ROCM_PATH": str(rocm), "FAKE_HIP_KERNELS": str(kernels)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


# --- what may go wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "message", "remedy"),
    [
        ("hipMalloc=2", r"hipMalloc failed: out of memory \(hipErrorOutOfMemory\)", "memory is full"),
        (
            "hipModuleLoadData=209",
            r"double_it cannot be loaded on device 0 \(gfx942\): .*NoBinaryForGpu",
            "another arch",
        ),
        ("hipModuleLoadData=200", "InvalidImage", "binary is damaged"),
        ("hipModuleGetFunction=500", "hipModuleGetFunction failed.*NotFound", "no kernel of that name"),
        ("hipModuleLaunchKernel=701", "LaunchOutOfResources", "more registers or LDS"),
        ("hipStreamSynchronize=700", "hipErrorIllegalAddress", "start a new one and simulate"),
        ("hipStreamSynchronize=719", "hipErrorLaunchFailure", "dmesg"),
        ("hipMemcpyDtoH=1", "hipMemcpyDtoH failed", None),
    ],
)
@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_errors_are_named_and_come_with_a_remedy(
    device: Any, bundle: Path, failure: str, message: str, remedy: str | None
) -> None:
    device.fail(failure)
    with pytest.raises(LaunchError, match=message) as caught:
        tilelang.load(bundle)(*arrays())
    assert caught.value.remedy == remedy if remedy is None else remedy in (caught.value.remedy or "")
    calls = device.log()
    assert calls.count("hipModuleUnload") == ("hipModuleGetFunction" in failure), "what cannot be used is unloaded"


@pytest.mark.parametrize(
    ("failure", "archs", "visible", "message", "remedy"),
    [
        ("hipInit=100", None, None, "finds no AMD GPU: .*hipErrorNoDevice", "rocminfo"),
        ("hipInit=35", None, None, "hipErrorInsufficientDriver", "rocminfo"),
        ("", None, "7", "finds no AMD GPU", "see HIP_VISIBLE_DEVICES"),
    ],
)
def test_no_device(
    device: Any,
    monkeypatch: pytest.MonkeyPatch,
    failure: str,
    archs: str,
    visible: str | None,
    message: str,
    remedy: str,
) -> None:
    if visible is not None:
        monkeypatch.setenv("HIP_VISIBLE_DEVICES", visible)
    device.fail(failure)
    with pytest.raises(LaunchError, match=message) as caught:
        hip.ensure_context()
    assert remedy in (caught.value.remedy or "")
    assert hip.available()[0] is False
    monkeypatch.setattr(kfd, "trouble", lambda: ("no access to /dev/kfd", kfd.REMEDY_GROUPS))
    with pytest.raises(LaunchError, match="no access to /dev/kfd") as caught:
        hip.ensure_context()
    assert "render,video" in (caught.value.remedy or "")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)


def test_without_the_library(device: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as here:
        here.setattr(hip_library, "library_path", lambda: None)
        with pytest.raises(LaunchError, match="needs libamdhip64") as caught:
            hip.ensure_context()
        assert "ROCM_PATH" in (caught.value.remedy or "")
        (tmp_path / "libamdhip64.so").write_bytes(b"no library")
        here.setattr(hip_library, "library_path", lambda: str(tmp_path / "libamdhip64.so"))
        with pytest.raises(LaunchError, match=r"libamdhip64\.so cannot be used"):
            hip.ensure_context()


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_the_binary_must_be_for_the_device(device: Any, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx90a:sramecc+:xnack-")
    with pytest.raises(LaunchError, match="double_it is for gfx942, and device 0 is a gfx90a") as caught:
        tilelang.load(bundle)(*arrays())
    assert caught.value.remedy == "compile for hip:gfx90a"
    device.forget()
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx90a:sramecc+:xnack-,gfx942:sramecc+:xnack-")
    kernel = tilelang.load(bundle)
    with pytest.raises(LaunchError, match="device 0 is a gfx90a") as caught:
        kernel(*arrays())
    assert "HIP_VISIBLE_DEVICES=1" in (caught.value.remedy or "")
    a, b = arrays()
    with hip.on_device(1):
        kernel(a, b)
    assert np.array_equal(b, 2 * a)
    assert hip.current_device() == 0, "the device is as before"


def test_a_grid_that_hip_cannot_launch(device: Any, bundle: Path) -> None:
    kernel = tilelang.load(bundle)
    launcher = hip_launch.load(kernel.bundle.binary, "double_it", arch="gfx942")
    with pytest.raises(LaunchError, match="16,777,216 blocks of 256 threads are more than HIP launches"):
        launcher([0, 0], grid=(1 << 24, 1, 1), threads=256)
    with pytest.raises(LaunchError, match="hipErrorInvalidConfiguration"):
        launcher([0, 0], grid=(1, 1, 1), threads=2048)
    launcher.close()
    assert "hipModuleUnload" in device.log()
    with pytest.raises(LaunchError, match="NotFound"):
        hip_launch.load(kernel.bundle.binary, "another", arch="gfx942")
    with pytest.raises(LaunchError, match="InvalidImage"):
        hip_launch.load(b"\0" * 64, "double_it", arch="gfx942")


# --- devices, streams, memory ----------------------------------------------------------------------------------------


def test_facts_about_the_device(device: Any) -> None:
    info = hip.device_info()
    assert (info.name, info.arch, info.units) == ("Stand-in of an AMD Instinct", "gfx942", 304)
    assert (info.l2_bytes, info.shared_bytes_per_block, info.driver_version) == (4 << 20, 65536, "6.4")
    assert hip.available() == (True, info.name)
    assert hip.cache_bytes() == 288 << 20, "the runtime counts the L2 of one die, and not the cache behind it"


def test_the_kernels_topology_says_the_architecture(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = kfd.KfdGpu(4, "gfx950", "MI355X", "0000:c1:00", "", 256, 8)
    monkeypatch.setattr(kfd, "amd_gpus", lambda root=None: (one,))
    assert hip.architecture(0) == "gfx950"
    device.forget()
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.4.2")
    assert hip.architecture(0) == "gfx942", "HIP was told to take it for another one"


class FakeTensor:
    """What a torch tensor on an AMD GPU shows."""

    def __init__(self, pointer: int, index: int) -> None:
        self.pointer, self.shape, self.dtype = pointer, (1000,), "torch.float32"
        self.device = SimpleNamespace(type="cuda", index=index)

    def is_contiguous(self) -> bool:
        return True

    def data_ptr(self) -> int:
        return self.pointer


def fake_torch(stream: int, version: str | None) -> Any:
    return SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True, current_device=hip.current_device),
        version=SimpleNamespace(hip=version),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: stream + device),
    )


def test_torchs_stream_and_the_tensors_device(device: Any, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx942,gfx942")
    with hip.on_device(1):
        created = ctypes.c_void_p()
        hip_library.library().hipStreamCreateWithFlags(ctypes.byref(created), 1)
        a, b = arrays()
        buffers = [hip.copy_of(array) for array in (a, b)]
    stream = created.value or 0
    kernel = tilelang.load(bundle)
    launch = kernel.bind(*(FakeTensor(buffer.pointer, 1) for buffer in buffers))
    monkeypatch.setitem(sys.modules, "torch", fake_torch(stream - 1, "6.4"))
    device.log()
    launch()
    assert [line for line in device.log() if line.startswith("launch")] == [
        f"launch double_it 4 1 1 256 1 1 0 1 {hex(stream)}"
    ]
    with hip.on_device(1):
        assert np.array_equal(buffers[1].to_numpy((1000,), "float32"), 2 * a)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(stream, None))
    assert hip.current_stream() == 0, "a torch for NVIDIA has no say"
    monkeypatch.setattr(cuda, "available", lambda: (True, "a GPU of the other vendor"))
    assert target_names.launching_kind() == "cuda"
    monkeypatch.setitem(sys.modules, "torch", fake_torch(stream, "6.4"))
    assert target_names.launching_kind() == "hip", "torch decides"
    monkeypatch.setitem(sys.modules, "torch", fake_torch(stream, None))
    assert gpu.torch_on("cuda") is not None
    with hip.use_stream(17):
        assert hip.current_stream() == 17


def test_buffers(device: Any) -> None:
    array = np.arange(12, dtype=np.float32)
    with hip.copy_of(array) as buffer:
        assert np.array_equal(buffer.to_numpy((12,), "float32"), array)
        with pytest.raises(LaunchError, match="does not fit a device buffer"):
            buffer.write(array[:3])
    buffer.close()
    assert device.log().count("hipFree") == 1


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("", "parameter B must have shape"),
        ("hipModuleLaunchKernel=719", "hipModuleLaunchKernel failed"),
        ("hipMemcpyHtoD=719", "hipMemcpyHtoD failed"),
        ("hipMemcpyDtoH=719", "hipMemcpyDtoH failed"),
    ],
)
def test_copies_of_arrays_are_freed_after_errors(device: Any, bundle: Path, broken: str, message: str) -> None:
    kernel = tilelang.load(bundle)
    a, b = arrays()
    kernel(a, b)
    device.log()
    device.fail(broken)
    for call in (kernel, kernel.get_profiler().measure):
        with pytest.raises(LaunchError, match=message):
            call(a, b if broken else b[:3])
        calls = device.log()
        assert calls.count("hipMalloc") == calls.count("hipFree") > 0


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_arrays_beside_tensors_are_copied_to_their_device(
    device: Any, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx942,gfx942")
    a, b = arrays()
    with hip.on_device(1):
        tensor = hip.copy_of(a)
    kernel = tilelang.load(bundle)
    for call in (kernel, kernel.get_profiler().measure):
        device.log()
        call(FakeTensor(tensor.pointer, 1), b)
        calls = device.log()
        assert calls.index("hipSetDevice") < calls.index("hipMalloc")
        assert np.array_equal(b, 2 * a)


# --- timing ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_timing_by_events_with_all_caches_flushed(device: Any, bundle: Path) -> None:
    kernel = tilelang.load(bundle)
    profiler = kernel.get_profiler()
    measured = profiler.measure(*arrays(), warmup=2, rep=3)
    assert measured.samples_ns == pytest.approx((10_000.0,) * 3), "the stand-in's launch, without its flush"
    assert (measured.method, measured.flushed, measured.per_sample) == ("events", True, 1)
    calls = device.log()
    assert f"memset {2 * (288 << 20)} 0" in calls
    assert calls.count("hipEventCreateWithFlags") == calls.count("hipEventDestroy") > 0
    assert profiler.do_bench(*arrays(), warmup=1, rep=3, quantiles=[0.5]) == pytest.approx([0.01])
    with pytest.raises(LaunchError, match="graphs are timed on NVIDIA GPUs only"):
        measure_gpu(lambda: None, kind="hip", method="graph")


def test_a_kernel_that_fails_while_timed(device: Any) -> None:
    device.fail("hipStreamSynchronize=719,hipEventDestroy=400,hipFree=719")
    with pytest.raises(LaunchError, match="hipStreamSynchronize failed"):
        gpu_timing.time_launches(gpu.runtime("hip"), lambda: None, launches=1)


@pytest.mark.filterwarnings("ignore:kernel double_it. NumPy arrays are copied")
def test_a_build_with_clock_reads_gets_its_memory(device: Any) -> None:
    kernel = tilelang.compile(double_it(), "hip:gfx942", instrument="operations", cache=False)
    a, b = arrays()
    kernel(a, b)
    assert np.array_equal(b, 2 * a)
    cycles = kernel.cycles()
    assert (cycles.worker, cycles.workers, cycles.elapsed) == ("wavefront", 16, 0), "the stand-in reads no clock"


# --- finding things --------------------------------------------------------------------------------------------------


def test_where_the_library_is_looked_for(tmp_path: Path) -> None:
    assert hip_library.library_path({}, tmp_path) is None
    for release in ("rocm-6.4.1", "rocm-7.10.0", "rocm-7.2.0"):
        (tmp_path / "opt" / release / "lib").mkdir(parents=True)
        (tmp_path / "opt" / release / "lib" / "libamdhip64.so.6").touch()
    assert "7.10.0" in (hip_library.library_path({}, tmp_path) or "")
    own = tmp_path / "own" / "lib"
    own.mkdir(parents=True)
    (own / "libamdhip64.so.7").touch()
    assert hip_library.library_path({"ROCM_PATH": str(own.parent)}, tmp_path) == str(own / "libamdhip64.so.7")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "maps").write_text(
        "7f00-7f01 r-xp 00000000 00:01 2     /usr/lib/libc.so\n"
        "7f02-7f03 r-xp 00000000 00:01 3     /venv/torch/lib/libamdhip64.so\n"
    )
    assert hip_library.library_path({"ROCM_PATH": str(own.parent)}, tmp_path) == "/venv/torch/lib/libamdhip64.so"


def topology(root: Path, *nodes: dict[str, int]) -> Path:
    for number, properties in enumerate(nodes):
        folder = root / kfd.TOPOLOGY / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text("".join(f"{name} {value}\n" for name, value in properties.items()))
        (folder / "name").write_text("aqua_vanjaram\n" if properties.get("gfx_target_version") else "\n")
    return root


MI300X = {"gfx_target_version": 90402, "simd_count": 1216, "simd_per_cu": 4, "num_xcc": 8, "domain": 0}


def test_the_topology_is_read(tmp_path: Path) -> None:
    root = topology(
        tmp_path,
        {"cpu_cores_count": 96, "simd_count": 0, "gfx_target_version": 0},
        {**MI300X, "location_id": 0xC100, "unique_id": 0xABC, "drm_render_minor": 128},
        {**MI300X, "gfx_target_version": 90010, "simd_count": 416, "num_xcc": 1, "location_id": 0x2608, "unique_id": 1},
    )
    (root / "sys/class/drm/renderD128/device").mkdir(parents=True)
    (root / "sys/class/drm/renderD128/device/product_name").write_text("AMD Instinct MI300X OAM\n")
    first, second = kfd.amd_gpus(root)
    assert first == kfd.KfdGpu(1, "gfx942", "AMD Instinct MI300X OAM", "0000:c1:00", f"{0xABC:016x}", 304, 8)
    assert (second.arch, second.name, second.pci, second.units) == ("gfx90a", "aqua_vanjaram", "0000:26:01", 104)
    for environment, nodes in (
        ({}, [1, 2]),
        ({"HIP_VISIBLE_DEVICES": "1"}, [2]),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, [2, 1]),
        ({"ROCR_VISIBLE_DEVICES": f"GPU-{1:016x}", "HIP_VISIBLE_DEVICES": "0"}, [2]),
        ({"HIP_VISIBLE_DEVICES": "0,9,1"}, [1]),
        ({"HIP_VISIBLE_DEVICES": ""}, []),
    ):
        assert [gpu.node for gpu in kfd.visible((first, second), environment)] == nodes, environment


def test_trouble_that_files_tell_of(tmp_path: Path) -> None:
    why, remedy = kfd.trouble(tmp_path) or ("", "")
    assert "there is no /dev/kfd" in why
    assert "--device=/dev/kfd" in remedy
    (tmp_path / "dev" / "dri").mkdir(parents=True)
    (tmp_path / "dev" / "kfd").touch()
    assert kfd.trouble(tmp_path) is None
    if os.geteuid():  # root may open every file
        (tmp_path / "dev" / "dri" / "renderD128").touch()
        (tmp_path / "dev" / "dri" / "renderD128").chmod(0)
        assert "renderD*" in (kfd.trouble(tmp_path) or ("",))[0]
        (tmp_path / "dev" / "kfd").chmod(0)
        assert "/dev/kfd" in (kfd.trouble(tmp_path) or ("",))[0]


# --- what the machine's GPU decides ----------------------------------------------------------------------------------


@pytest.fixture
def only_amd(device: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A machine whose only GPU is the stand-in."""
    exists = os.path.exists
    files = {"/dev/kfd": True, "/dev/nvidiactl": False, "/dev/nvidia0": False}
    monkeypatch.setattr(os.path, "exists", lambda path: files.get(str(path), exists(path)))
    monkeypatch.setattr(cuda, "available", lambda: (False, "no NVIDIA driver"))
    target_names.gpu_architecture.cache_clear()
    yield device
    target_names.gpu_architecture.cache_clear()


def test_auto_is_the_amd_gpu_that_is_there(only_amd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (tilelang.get_backend(), tilelang.get_target_arch()) == ("hip", "gfx942")
    assert target_names.choose_target("hip").arch == "gfx942"
    assert tilelang.device_info() == hip.device_info()
    only_amd.forget()
    target_names.gpu_architecture.cache_clear()
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx90a:sramecc+:xnack-")
    assert target_names.choose_target("rocm").arch == "gfx90a"
    only_amd.forget()
    target_names.gpu_architecture.cache_clear()
    monkeypatch.setenv("FAKE_HIP_ARCHS", "gfx1100")
    assert tilelang.get_backend() == "cpu", "a GPU that the compiler has no target for"


def test_any_work_is_timed_on_the_gpu_that_is_there(only_amd: Any) -> None:
    with hip.buffer(1 << 20) as memory:
        measured = profiler.measure(
            lambda: hip.fill_zeros(memory.pointer, memory.nbytes, hip.current_stream()), warmup_ms=0.01, rep_ms=0.02
        )
    assert (measured.method, measured.flushed) == ("events", True)
    assert measured.median_ms == pytest.approx(0.001), "what the stand-in says a memset takes"
    with pytest.raises(LaunchError, match="graphs are timed on NVIDIA GPUs only"):
        profiler.measure(lambda: None, method="graph")


def test_a_search_runs_and_times_kernels_there(device: Any, bundle: Path, tmp_path: Path) -> None:
    """Arguments are on the GPU once, for all kernels; outputs are NaN before, and come back as they are."""
    a, _ = arrays()
    (tmp_path / "a").write_bytes(a.tobytes())
    bench = Bench()
    arguments = [
        {"name": name, "dtype": "float32", "shape": [1000], "file": file}
        for name, file in (("A", str(tmp_path / "a")), ("B", None))
    ]
    for copy in (bundle, tmp_path / "other.tlk"):
        copy.write_bytes(bundle.read_bytes())
        assert bench.open(str(copy), arguments, [None, str(tmp_path / "out")], ordinal=0)["ns"] > 0
        assert np.array_equal(np.fromfile(tmp_path / "out", np.float32), 2 * a)
    assert device.log().count("hipMalloc") == 2, "both use the same arguments"
    answer = bench.time(str(bundle), 1, 3)
    assert (len(answer["samples"]), answer["flushed"]) == (3, True)
    device.log()
    bench.time(str(bundle), 0, 3)
    launches = [line for line in device.log() if line.startswith("launch")]
    assert len(launches) == 3, "how long it takes is known by now"
