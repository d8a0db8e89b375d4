"""Calling kernels: what fits, what does not, outputs that the call allocates, launching where it cannot be done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quickstart_kernels import kernel

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver import arguments
from tilelang_min.errors import LanguageError, LaunchError, SimulationError, TargetError
from tilelang_min.program import Parameter
from tilelang_min.runtime import gpu, hip_library
from tilelang_min.targets import kfd


@T.prim_func
def axpy(X: T.Tensor((10, 4), "float32"), Y: T.Tensor((10, 4), "float32"), Z: T.Tensor((10, 4), "float16")):
    """Y is read and written, Z only written."""
    with T.Kernel(1, threads=64):
        for i, j in T.Parallel(10, 4):
            Y[i, j] = Y[i, j] + X[i, j] * 2.0
            Z[i, j] = X[i, j]


@pytest.fixture(scope="module")
def compiled() -> Any:
    return tilelang.compile(axpy, "cpu", cache=False)


def tensors() -> list[Any]:
    x = np.arange(40, dtype=np.float32).reshape(10, 4)
    return [x, np.ones((10, 4), np.float32), np.zeros((10, 4), np.float16)]


def test_a_call_changes_its_outputs_only(compiled: Any) -> None:
    x, y, z = tensors()
    assert compiled(x, y, z) is None
    assert np.array_equal(x, tensors()[0])
    assert np.array_equal(y, 1 + 2 * x)
    assert np.array_equal(z, x.astype(np.float16))
    assert [(p.name, p.access) for p in compiled.parameters] == [("X", "in"), ("Y", "inout"), ("Z", "out")]


WRONG: dict[str, tuple[Any, str, str]] = {
    # which argument becomes what: a part of the message, a part of the remedy
    "type": (
        lambda x, y, z: (x.astype(np.float64), y, z),
        "parameter X must be float32, the tensor is float64",
        "convert it to float32",
    ),
    "type of an output": (
        lambda x, y, z: (x, y, z.astype(np.float32)),
        "parameter Z must be float16, the tensor is float32",
        "convert it to float16",
    ),
    "shape": (
        lambda x, y, z: (x[:9].copy(), y, z),
        "parameter X must have shape (10, 4), the tensor has (9, 4)",
        "compile the kernel for this shape",
    ),
    "rank": (
        lambda x, y, z: (x, y.reshape(-1), z),
        "parameter Y must have shape (10, 4), the tensor has (40,)",
        "compile the kernel for this shape",
    ),
    "columns first": (
        lambda x, y, z: (np.asfortranarray(x), y, z),
        "parameter X is not contiguous",
        "pass a contiguous copy",
    ),
    "every second row": (
        lambda x, y, z: (np.zeros((20, 4), np.float32)[::2], y, z),
        "parameter X is not contiguous",
        "pass a contiguous copy",
    ),
    "too few": (
        lambda x, y, z: (x, y),
        "kernel axpy takes 3 tensors (X, Y, Z), 2 given",
        "call it as kernel(X, Y, Z)",
    ),
    "too many": (
        lambda x, y, z: (x, y, z, z),
        "kernel axpy takes 3 tensors (X, Y, Z), 4 given",
        "call it as kernel(X, Y, Z)",
    ),
    "a list": (lambda x, y, z: (x.tolist(), y, z), "parameter X: list is not a tensor", "pass a NumPy array"),
    "a number": (lambda x, y, z: (3.0, y, z), "parameter X: float is not a tensor", "pass a NumPy array"),
    "an odd address": (
        lambda x, y, z: (np.zeros(161, np.uint8)[1:].view(np.float32).reshape(10, 4), y, z),
        "parameter X starts at an address that is no multiple of its element's size",
        "pass a copy",
    ),
    "other byte order": (
        lambda x, y, z: (x.astype(">f4"), y, z),
        "parameter X must be float32 in the machine's byte order",
        "convert it to float32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_arguments_that_do_not_fit(what: str, compiled: Any) -> None:
    change, message, remedy = WRONG[what]
    x, y, z = tensors()
    with pytest.raises(LaunchError) as caught:
        compiled(*change(x, y, z))
    assert message in caught.value.message
    assert remedy in (caught.value.remedy or "")
    assert np.array_equal(y, tensors()[1])  # nothing ran


def test_read_only_arrays(compiled: Any) -> None:
    """Good for inputs, not for what is written."""
    x, y, z = tensors()
    x.flags.writeable = False
    compiled(x, y, z)
    y.flags.writeable = False
    with pytest.raises(LaunchError, match="parameter Y is written, but the array is read-only") as caught:
        compiled(x, y, z)
    assert caught.value.remedy == "pass a writable array"


class FromDLPack:
    """A tensor of another library: DLPack and nothing else."""

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array = array
        self.device = type("Device", (), {"type": device})()

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_tensors_of_other_libraries(compiled: Any) -> None:
    x, y, z = tensors()
    compiled(FromDLPack(x), FromDLPack(y), FromDLPack(z))
    assert np.array_equal(y, 1 + 2 * x)
    with pytest.raises(LaunchError, match="parameter X: the tensor is on a GPU, this kernel runs on the CPU") as caught:
        compiled(FromDLPack(x, "cuda"), y, z)
    assert caught.value.remedy == "pass tensor.cpu()"


def test_torch_tensors(compiled: Any) -> None:
    torch = pytest.importorskip("torch")
    x, y, z = (torch.from_numpy(array) for array in tensors())
    compiled(x, y, z)
    assert np.array_equal(y.numpy(), 1 + 2 * x.numpy())
    made = tilelang.compile(axpy, "cpu", out_idx=-1, cache=False)(x, y)
    assert isinstance(made, torch.Tensor)
    assert made.dtype == torch.float16


def test_outputs_that_the_call_allocates() -> None:
    x, y, _ = tensors()
    one = tilelang.compile(axpy, "cpu", out_idx=2, cache=False)
    z = one(x, y)
    assert (z.dtype, z.shape) == (np.float16, (10, 4))
    assert np.array_equal(z, x.astype(np.float16))
    assert one(x, y) is not z
    a, b = np.ones((128, 128), np.float32), np.ones((128, 128), np.float32)
    product = tilelang.compile(kernel("padded", "float32"), "cpu", out_idx=[-1], cache=False)
    assert np.array_equal(product(a, b), np.full((128, 128), 128, np.float32))
    both = tilelang.compile(_two_outputs, "cpu", out_idx=(1, 0), cache=False)
    first, second = both(x)
    assert np.array_equal(first, x + 1)
    assert np.array_equal(second, x + 2)
    with pytest.raises(LaunchError, match="kernel axpy takes 2 inputs, 3 given"):
        one(*tensors())
    for wrong in (3, -4):
        with pytest.raises(LanguageError, match=f"out_idx {wrong} does not exist: axpy has 3 parameters"):
            tilelang.compile(axpy, "cpu", out_idx=wrong)


@T.prim_func
def _two_outputs(P: T.Tensor((10, 4), "float32"), Q: T.Tensor((10, 4), "float32"), X: T.Tensor((10, 4), "float32")):
    with T.Kernel(1, threads=64):
        for i, j in T.Parallel(10, 4):
            P[i, j] = X[i, j] + 1.0
            Q[i, j] = X[i, j] + 2.0


def test_an_output_that_is_read_too_is_no_output() -> None:
    with pytest.raises(LanguageError, match="parameter Y of axpy is read as well as written") as caught:
        tilelang.compile(axpy, "cpu", out_idx=1, cache=False)
    assert "leave it out of out_idx" in (caught.value.remedy or "")
    with pytest.raises(LanguageError, match="parameter X of axpy is only read"):
        tilelang.compile(axpy, "cpu", out_idx=0, cache=False)


def test_calls_by_name(compiled: Any) -> None:
    with pytest.raises(LaunchError, match=r"X= is given by name") as caught:
        compiled(X=tensors()[0])
    assert caught.value.remedy == "call it as kernel(X, Y, Z)"


def test_an_output_index_that_is_not_there() -> None:
    with pytest.raises(LanguageError, match=r"out_idx 7 does not exist") as caught:
        tilelang.compile(axpy, "cpu", out_idx=7)
    assert caught.value.remedy == "give numbers from 0 to 2, or from the end -1 to -3"


def test_options_that_are_not_there() -> None:
    for name in ("arch_params",):
        with pytest.raises(LanguageError, match=f"compile option {name} is not supported by this version"):
            tilelang.compile(axpy, "cpu", **{name: "x"})
    with pytest.raises(TargetError, match="sm_81"):
        tilelang.compile(axpy, "cuda:sm_81")


def test_bound_to_tensors() -> None:
    x, y, z = tensors()
    kernel = tilelang.compile(axpy, "cpu", cache=False)
    launch = kernel.bind(x, y, z)
    launch()
    launch()
    assert np.array_equal(y, 1 + 4 * x)
    with pytest.raises(LaunchError, match="takes 3 tensors"):
        kernel.bind(x)


def test_launching_where_it_cannot_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang_min.runtime import cuda

    def fails() -> int:
        raise LaunchError("no driver", remedy="install one")

    monkeypatch.setattr(cuda, "ensure_context", fails)
    made = tilelang.compile(axpy, "cuda:sm_80", cache=False)
    with pytest.raises(
        LaunchError, match="kernel axpy is for cuda:sm_80, and there is no such GPU here: no driver"
    ) as caught:
        made(*tensors())
    assert "install one; or compile for 'cpu'" in (caught.value.remedy or "")
    made = tilelang.compile(axpy, "hip:gfx942", cache=False)
    monkeypatch.setattr(kfd, "trouble", lambda: ("no AMD GPU with its driver here", "use another machine"))
    monkeypatch.setattr(hip_library, "library_path", lambda: None)
    hip_library.library.cache_clear()
    with pytest.raises(LaunchError, match="for hip:gfx942, and there is no such GPU here: no AMD GPU with") as caught:
        made(*tensors())
    assert "kernel.simulate" in (caught.value.remedy or "")


def test_simulating_instead() -> None:
    x, y, z = tensors()
    for target in ("cuda:sm_80", "hip:gfx942", "cpu"):
        made = tilelang.compile(axpy, target, cache=False)
        outputs = made.simulate(x, y, z).outputs
        assert set(outputs) == {"Y", "Z"}
        assert np.array_equal(outputs["Y"], 1 + 2 * x)
        assert np.array_equal(y, tensors()[1])
        with pytest.raises(LaunchError, match="takes 3 tensors"):
            made.simulate(x)
        for blocks, message in (([], "blocks is empty"), (1, "blocks=1 are no blocks"), ([(0, 0)], "are no blocks")):
            with pytest.raises(SimulationError, match=message) as caught:
                made.simulate(x, y, z, blocks=blocks)
            assert caught.value.remedy


class OnGpu:
    """What a CUDA tensor shows, at a made-up address."""

    def __init__(self, address: int = 4096, typestr: str = "<f4", strides: Any = None) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "typestr": typestr,
            "shape": (10, 4),
            "strides": strides,
            "version": 3,
        }


X = Parameter("X", "float32", (10, 4), "in")


def test_tensors_on_a_gpu() -> None:
    prepared = arguments.prepare_gpu("k", [X], [OnGpu(64)], gpu.runtime("cuda"))
    assert prepared.pointers == [64]
    for tensor, message in (
        (OnGpu(68), "parameter X starts at an address that is no multiple of 16 bytes"),
        (OnGpu(typestr="<f2"), "parameter X must be float32, the tensor is float16"),
        (OnGpu(strides=(4, 40)), "parameter X is not contiguous"),
        ([1, 2], "parameter X: list is not a tensor on a GPU"),
    ):
        with pytest.raises(LaunchError) as caught:
            arguments.prepare_gpu("k", [X], [tensor], gpu.runtime("cuda"))
        assert message in caught.value.message
        assert caught.value.remedy


def test_benchmarks_run_on_given_and_on_random_tensors(compiled: Any) -> None:
    profiler = compiled.get_profiler()
    assert 0 < profiler.do_bench(warmup=1, rep=3) < 1000
    x, y, z = tensors()
    assert 0 < profiler.do_bench(x, y, z, warmup=1, rep=3) < 1000
    assert y[0, 1] > 1  # it ran on these
