"""Calls of a kernel on GPU tensors: checks, devices, streams; against stand-ins for torch and the driver."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilelang_min.driver.kernel import Kernel
from tilelang_min.errors import LaunchError
from tilelang_min.runtime import cuda
from tilelang_min.runtime.bundle import Bundle


class Tensor:
    """What a kernel asks of a torch tensor."""

    def __init__(
        self,
        address: int = 4096,
        device: int = 0,
        shape: tuple[int, ...] = (4, 8),
        dtype: object = None,
        contiguous: bool = True,
    ) -> None:
        self.address, self.shape, self.dtype, self.contiguous = address, shape, dtype, contiguous
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu", index=device if device >= 0 else None)

    def is_contiguous(self) -> bool:
        return self.contiguous

    def get_device(self) -> int:
        return -1 if self.device.index is None else int(self.device.index)

    def data_ptr(self) -> int:
        return self.address


class Dtype:
    """A name as torch prints it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    file = Path(__file__).parents[1] / "runtime" / "test_cuda_launch.py"
    spec = importlib.util.spec_from_file_location("fake_cuda_driver", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fake = module.FakeDriver()
    fake.results |= {
        "cuDeviceGetCount": lambda: 2,
        "cuDevicePrimaryCtxRetain": lambda device: 70 + device,
        "cuCtxGetDevice": lambda: fake.context - 70,
    }
    fake.context = 70
    monkeypatch.setattr(cuda, "_driver", lambda: fake)
    monkeypatch.setattr(cuda, "native", fake.native)
    monkeypatch.setattr(cuda, "_devices", {})
    return fake


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = SimpleNamespace(
        Tensor=Tensor,
        float32=Dtype("float32"),
        float16=Dtype("float16"),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 500 + device),
        cuda=SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)  # type: ignore[arg-type]
    return fake


def kernel() -> Kernel:
    """A bundle with two parameters, the first of which has a tensor map."""
    parameters = [
        {"name": name, "dtype": "float32", "shape": [4, 8], "access": access}
        for name, access in (("A", "in"), ("B", "out"))
    ]
    tensor_map = {"name": "A_map", "parameter": "A", "dtype": "float32", "shape": [4, 8], "box": [4, 8], "swizzle": 32}
    record = {
        "format": 1,
        "name": "k",
        "symbol": "k",
        "target": "cuda:sm_90a",
        "parameters": parameters,
        "grid": [4, 1, 1],
        "threads": 128,
        "launch": {"shared_bytes_dynamic": 512, "cluster": [2, 1, 1], "tensor_maps": [tensor_map]},
        "operations": [],
        "metadata": {},
        "binary": {"kind": "cubin", "file": "binary.cubin"},
    }
    return Kernel(Bundle(record, {"binary.cubin": b"cubin"}))


def tensors(torch: Any, **how: Any) -> list[Tensor]:
    return [Tensor(4096, dtype=torch.float32, **how), Tensor(8192, dtype=torch.float32, **how)]


def test_the_bundle_says_how_to_launch(driver: Any, torch: Any) -> None:
    driver.maps = 1
    made = kernel()
    a, b = tensors(torch)
    made(a, b)
    made(a, b)
    assert driver.launched_pointers == [[4096, 8192]] * 2
    assert driver.named("launch")[0][2:] == (4, 1, 1, 128, 1, 1, 512, 500, (2, 1, 1))
    assert len(driver.named("cuTensorMapEncodeTiled")) == 1


def test_an_old_bundle_has_neither_cluster_nor_maps(driver: Any, torch: Any) -> None:
    made = kernel()
    made.bundle.record["launch"] = {"shared_bytes_dynamic": 0}
    made(*tensors(torch))
    assert (made.cluster, made.tensor_maps) == ((1, 1, 1), ())
    assert driver.named("launch")[0][-1] is None


def test_the_tensors_device_and_its_stream(driver: Any, torch: Any) -> None:
    driver.maps = 1
    made = kernel()
    made(*tensors(torch, device=1))
    assert driver.context == 70  # as before
    assert [(call[1], call[9]) for call in driver.named("launch")] == [(1071, 501)]
    bound = made.bind(*tensors(torch, device=1))
    bound()
    assert [(call[1], call[9]) for call in driver.named("launch")][1:] == [(1071, 501)]
    with cuda.use_stream(7):
        made(*tensors(torch))
        bound()
    assert [(call[1], call[9]) for call in driver.named("launch")][2:] == [(1070, 7), (1071, 7)]


def test_tensors_that_do_not_fit(driver: Any, torch: Any) -> None:
    driver.maps = 1
    made = kernel()
    a, b = tensors(torch)
    wrong = {
        "parameter B is on GPU 1, and A on GPU 0": [a, Tensor(8192, device=1, dtype=torch.float32)],
        "parameter A: the tensor is on": [Tensor(device=-1, dtype=torch.float32), b],
        "parameter A must be float32, the tensor is float16": [Tensor(dtype=torch.float16), b],
        "parameter B must have shape (4, 8), the tensor has (8, 4)": [a, Tensor(shape=(8, 4), dtype=torch.float32)],
        "parameter A is not contiguous": [Tensor(contiguous=False, dtype=torch.float32), b],
        "parameter B starts at an address that is no multiple of 16": [a, Tensor(4100, dtype=torch.float32)],
        "kernel k takes 2 tensors (A, B), 1 given": [a],
    }
    for message, arguments in wrong.items():
        for call in (made, made.bind):
            with pytest.raises(LaunchError) as caught:
                call(*arguments)
            assert message in caught.value.message
            assert caught.value.remedy
    assert not driver.named("launch")


def test_arrays_are_for_neither_graphs_nor_bindings(driver: Any, torch: Any) -> None:
    made = kernel()
    a, b = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(LaunchError, match="parameter A: a NumPy array cannot be bound"):
        made.bind(a, b)
    driver.results["cuStreamIsCapturing"] = lambda stream: "CU_STREAM_CAPTURE_STATUS_ACTIVE"
    with pytest.raises(LaunchError, match="cannot be copied while a graph is captured"):
        made(a, b)
    assert not driver.named("cuMemcpyHtoD", "launch")


def test_arrays_of_others_say_where_they_are(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy and the like: no torch here at all."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    class Array:
        def __init__(self, address: int, device: int) -> None:
            self.device = SimpleNamespace(id=device)
            facts = {"data": (address, False), "typestr": "<f4", "shape": (4, 8), "strides": None, "version": 3}
            self.__cuda_array_interface__ = facts

    driver.maps = 1
    made = kernel()
    made(Array(4096, 1), Array(8192, 1))
    assert (driver.context, driver.launched_pointers) == (70, [[4096, 8192]])
    assert [(call[1], call[9]) for call in driver.named("launch")] == [(1071, 0)]
    with pytest.raises(LaunchError, match="parameter B is on GPU 0, and A on GPU 1"):
        made(Array(4096, 1), Array(8192, 0))
