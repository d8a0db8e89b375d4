"""The eager style: functions that are kernels, called with tensors; and that factories are what they were."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from eager_kernels import (
    annotated_above,
    by_macro,
    by_macro_at_launch,
    matmul,
    numbers,
    rows_of_any_number,
    scale,
    scaled_rows,
    statistics,
)
from quickstart_kernels import module

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LanguageError, LaunchError, ShapeError
from tilelang_min.language import PrimFunc
from tileprof.errors import UsageError

GPUS = ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]


def operands(m: int, n: int, k: int, *, transposed: bool = False) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(m + n)
    a = (chance.standard_normal((m, k)) / 2).astype(np.float16)
    b = (chance.standard_normal((k, n)) / 2).astype(np.float16)
    return a, np.ascontiguousarray(b.T) if transposed else b, a.astype(np.float64) @ b.astype(np.float64)


def simulated(kernel: tilelang.Kernel, *arrays: Any) -> dict[str, Any]:
    """What the kernel writes, outputs that a call allocates included."""
    return kernel.simulate(*arrays, count=False).outputs


# -- right values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_the_shapes_that_it_is_given(transposed: bool) -> None:
    for m, n, k in ((64, 64, 32), (33, 40, 72)):
        a, b, expected = operands(m, n, k, transposed=transposed)
        c = matmul(a, b, transposed=transposed)
        assert type(c) is np.ndarray
        assert c.dtype == np.float32
        np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", GPUS)
def test_a_product_simulated(target: str) -> None:
    a, b, expected = operands(80, 48, 40)
    kernel = matmul.for_target(target).compile(a, b, block_M=64)
    assert [p.name for p in kernel.parameters] == ["A", "B", "C"]
    np.testing.assert_allclose(simulated(kernel, a, b)["C"], expected, rtol=1e-3, atol=1e-3)


def test_several_outputs_come_in_the_order_of_the_return() -> None:
    x = np.random.default_rng(1).standard_normal((20, 16)).astype(np.float32)
    largest, sums = statistics(x)
    np.testing.assert_allclose(sums, x.sum(axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(largest, x.max(axis=1))
    kernel = statistics.compile(x)
    assert [p.name for p in kernel.parameters] == ["X", "largest", "sums"]
    assert kernel.out_idx == (1, 2)


@pytest.mark.parametrize("target", GPUS)
def test_several_outputs_simulated(target: str) -> None:
    x = np.random.default_rng(1).standard_normal((20, 16)).astype(np.float32)
    made = simulated(statistics.for_target(target).compile(M=20, N=16), x)
    np.testing.assert_allclose(made["sums"], x.sum(axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(made["largest"], x.max(axis=1))


def test_a_tensor_of_the_caller_is_written_and_one_may_be_left_out() -> None:
    x, y, bias = np.arange(100, dtype=np.float32), np.zeros(100, np.float32), np.ones(100, np.float32)
    assert scale(x, y) is None
    np.testing.assert_array_equal(y, 2 * x)
    scale(x, y, 3.0, bias=bias)
    np.testing.assert_array_equal(y, 3 * x + 1)
    scale(x, Y=y, factor=0.5)
    np.testing.assert_array_equal(y, x / 2)
    assert [p.name for p in scale.compile(x, y, bias=bias).parameters] == ["X", "Y", "bias"]


def test_runtime_dimensions_beside_constant_ones() -> None:
    for m in (1, 17, 64):
        a, b = np.arange(m * 24, dtype=np.float32).reshape(m, 24), np.ones((1, 24), np.float32)
        np.testing.assert_array_equal(rows_of_any_number(a, b), a + 1)
    kernel = rows_of_any_number.compile(N=24)
    assert kernel.sizes == ("m",)
    assert kernel.parameters[0].shape == ("m", 24)
    assert rows_of_any_number.compile(np.empty((5, 24), np.float32), b) is kernel
    other = rows_of_any_number.compile(N=8)
    assert other is not kernel
    assert rows_of_any_number(np.zeros((3, 8), np.float32), np.ones((1, 8), np.float32)).sum() == 24


def test_a_dimension_of_const_for_every_size() -> None:
    """A kernel that its author wrote for fixed shapes, compiled for any number of rows; calls use it where it was asked for."""
    kernel = matmul.compile(M=T.dynamic("rows"), N=40, K=72)
    assert kernel.sizes == ("rows",)
    for m in (1, 33, 64):
        a, b, expected = operands(m, 40, 72)
        np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(matmul(a, b, M=T.dynamic("rows")), expected, rtol=1e-3, atol=1e-3)
    assert matmul.compile(a, b, M=T.dynamic("rows")) is kernel


@pytest.mark.parametrize("target", GPUS)
def test_runtime_dimensions_simulated(target: str) -> None:
    kernel = rows_of_any_number.for_target(target).compile(N=24)
    a, b = np.arange(17 * 24, dtype=np.float32).reshape(17, 24), np.ones((1, 24), np.float32)
    np.testing.assert_array_equal(simulated(kernel, a, b)["C"], a + 1)


def test_kernels_that_are_a_macro() -> None:
    x = np.arange(40, dtype=np.float32).reshape(2, 20)
    np.testing.assert_array_equal(by_macro(x, 2, 20), 2 * x)
    np.testing.assert_array_equal(by_macro(x, 2, 20, factor=0.5), x / 2)
    with pytest.raises(ShapeError, match="dimension 1 of 'X' is 21 here, and 20 in the tensor that it is given"):
        by_macro(x, 2, 21)
    for rows in (x, x[:1], np.ones((3, 5), np.float32)):
        np.testing.assert_array_equal(by_macro_at_launch(rows), 3 * rows)
    assert by_macro_at_launch.compile().sizes == ("M", "N")
    made = simulated(by_macro_at_launch.for_target("cuda:sm_80").compile(), x)
    np.testing.assert_array_equal(made["Y"], 3 * x)


def test_a_factory_whose_kernel_is_a_macro() -> None:
    @tilelang.jit(target="cpu")
    def factory(rows):
        @T.prim_func
        def main(X: T.Tensor((rows, 20), "float32"), Y: T.Tensor((rows, 20), "float32")):
            scaled_rows(X, Y, 2.0, 16)

        return main

    assert factory.mode == "lazy"
    x = np.arange(40, dtype=np.float32).reshape(2, 20)
    factory(2)(x, y := np.zeros_like(x))
    np.testing.assert_array_equal(y, 2 * x)


def test_what_is_a_factory_and_what_a_kernel() -> None:
    """Names in a factory's own body that kernels have too do not make it one."""
    settings = SimpleNamespace(const=4)

    @T.macro
    def copied(X, Y):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i] = X[i]

    @tilelang.jit(target="cpu")
    def factory():
        n = settings.const

        @T.prim_func
        def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
            copied(X, Y)

        return main

    @tilelang.jit(target="cpu")
    def kernel(X, Y):
        X: T.Tensor((4,), "float32")
        Y: T.Tensor((4,), "float32")
        copied(X, Y)

    assert (factory.mode, kernel.mode) == ("lazy", "eager")
    x, y, z = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    factory()(x, y)
    kernel(x, z)
    np.testing.assert_array_equal([y, z], [x, x])


def test_a_kernel_without_inputs() -> None:
    np.testing.assert_array_equal(numbers(50), np.arange(50))
    np.testing.assert_array_equal(numbers(50, start=7), np.arange(50) + 7)
    np.testing.assert_array_equal(numbers.compile(M=9)(), np.arange(9))


def test_a_function_in_a_function_sees_its_surroundings() -> None:
    """Two of one source are two kernels where what they see differs."""

    def made(factor: float) -> Any:
        @tilelang.jit(target="cpu")
        def times(A):
            N = T.const("N")
            A: T.Tensor((N,), "float32")
            B = T.empty((N,), "float32")
            with T.Kernel(1, threads=32):
                for i in T.Parallel(8):
                    B[i] = A[i] * factor
            return B

        return times

    x = np.arange(8, dtype=np.float32)
    for factor in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(made(factor)(x), factor * x)


def test_several_kernels_at_once() -> None:
    x = np.arange(8, dtype=np.float32)
    kernels = scale.par_compile([{"X": x, "Y": x, "factor": 5.0}, (x, x, 6.0)], num_workers=2)
    assert [kernel is scale.compile(x, x, value) for kernel, value in zip(kernels, (5.0, 6.0), strict=True)] == [
        True
    ] * 2
    with pytest.raises(ShapeError):
        scale.par_compile([(x, x[:4])])
    assert scale.par_compile([(x, x[:4])], ignore_error=True) == [None]
    function = module("elementwise").scale_add_relu.for_target("cpu")
    assert [kernel.parameters[0].shape for kernel in function.par_compile([(64, 64), {"M": 32, "N": 64}])] == [
        (64, 64),
        (32, 64),
    ]


def test_annotations_where_the_parameters_stand() -> None:
    a = np.arange(96, dtype=np.float32).reshape(3, 32)
    np.testing.assert_array_equal(annotated_above(a), 3 * a)
    np.testing.assert_array_equal(annotated_above(a[:2], 0.5), a[:2] / 2)
    assert annotated_above.compile().sizes == ("rows",)


def test_torch_tensors_get_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    a, b, expected = operands(33, 40, 72)
    c = matmul(torch.from_numpy(a), torch.from_numpy(b))
    assert isinstance(c, torch.Tensor)
    assert c.dtype == torch.float32
    np.testing.assert_allclose(c.numpy(), expected, rtol=1e-3, atol=1e-3)


# -- kernels and their cache -----------------------------------------------------------------------------------------


def test_compiling_without_launching() -> None:
    """By tensors, by dimensions, or by both; all are one kernel, which takes the tensors and gives the outputs."""
    a, b, expected = operands(64, 64, 32)
    kernel = matmul.compile(a, b)
    assert isinstance(kernel, tilelang.Kernel)
    assert matmul.compile(M=64, N=64, K=32) is kernel
    assert matmul.compile(A=a, N=64) is kernel
    assert matmul.compile(T.Tensor((64, 32), "float16"), B=b) is kernel
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-3, atol=1e-3)
    assert kernel.name == "matmul"
    assert kernel.metadata.flops
    assert "define" in matmul.get_kernel_source(a, b)
    made = matmul.prim_func(M=64, N=64, K=32)
    assert isinstance(made, PrimFunc)
    again = tilelang.compile(made, "cpu")
    assert again.bundle_record()["hash"] == kernel.bundle_record()["hash"]
    np.testing.assert_array_equal(again(a, b), kernel(a, b))


def test_outputs_may_be_left_out_where_a_kernel_is_measured() -> None:
    """Timing, binding, analysing and profiling, and given to all of them, as to kernels of factories with ``out_idx``."""
    a, b, expected = operands(64, 64, 32)
    kernel, c = matmul.compile(a, b), np.zeros((64, 64), np.float32)
    for args in ((a, b), (a, b, c)):
        assert kernel.get_profiler().do_bench(*args, rep=3) > 0
        kernel.bind(*args)()
        assert tilelang.profile(kernel, *args).run.cases[0].timing is not None
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    with pytest.raises(LaunchError, match="takes 3 tensors"):
        kernel.bind(a)
    on_gpu = matmul.for_target("cuda:sm_80").compile(a, b)
    analysis = on_gpu.analyse(a, b)  # of one block, which stands for the others
    assert [count for _, count in analysis.classes] == [4]
    np.testing.assert_allclose(analysis.outputs["C"][:32, :32], expected[:32, :32], rtol=1e-3, atol=1e-3)
    with pytest.raises(UsageError) as caught:
        tilelang.profile(matmul, a, b)
    assert "tilelang.profile(matmul.compile(a, b), a, b)" in str(caught.value)


def test_the_disk_cache_knows_shapes_and_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    a, b, _ = operands(64, 64, 32)
    fresh = matmul.for_target("cpu")
    hashes = [
        fresh.compile(a, b).bundle_record()["hash"],
        fresh.compile(M=64, N=64, K=64).bundle_record()["hash"],
        fresh.compile(a, b, block_M=16).bundle_record()["hash"],
        fresh.compile(a, b, 32, 32, 32, "float16").bundle_record()["hash"],
        matmul.for_target("cpu").compile(a, b).bundle_record()["hash"],
    ]
    assert hashes[0] == hashes[3] == hashes[4]
    assert len(set(hashes)) == 3
    assert len(list(tmp_path.rglob("*.tlk"))) == 3


def test_constants_of_other_types_are_other_kernels() -> None:
    x = np.arange(8, dtype=np.float32)
    values = [scale.compile(x, x, value) for value in (1, 1.0, True, -0.0, 0.0)]
    assert len({id(kernel) for kernel in values}) == len(values)
    assert scale.compile(x, x, 1.0) is values[1]


class Options:
    def __init__(self, amount: float) -> None:
        self.amount = amount


CHANGING = Options(0.5)
AMOUNT = 1.0
AMOUNTS = {1: 10.0}


def moved(own: Any) -> Any:
    """A function that adds what stands in its module, its closure, its argument and the environment."""

    @tilelang.jit(target="cpu")
    def move(A, options=None):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        outside = tuple(json.loads(os.environ["TEST_EAGER_AMOUNTS"]))
        given = options.amount if options is not None else 0.0
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] + AMOUNT + AMOUNTS[1] + own[0] + outside[0] + given
        return B

    return move


def test_another_value_anywhere_is_another_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that only the disk cache could mistake: a tuple that the lines in front of the kernel make."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TEST_EAGER_AMOUNTS", "[10000.0]")
    own, zeros, options = [100.0], np.zeros(8, np.float32), Options(0.5)
    move = moved(own)
    assert move(zeros)[0] == 10111.0
    known = move.compile(zeros)
    monkeypatch.setitem(globals(), "AMOUNT", 2.0)
    assert move(zeros)[0] == 10112.0
    monkeypatch.setitem(AMOUNTS, 1, 20.0)
    assert move(zeros)[0] == 10122.0
    own[0] = 200.0
    assert move(zeros)[0] == 10222.0
    assert move(zeros, options)[0] == 10222.5
    options.amount = 0.25
    assert move(zeros, options)[0] == 10222.25
    monkeypatch.setitem(globals(), "AMOUNT", 1.0)
    monkeypatch.setitem(AMOUNTS, 1, 10.0)
    own[0] = 100.0
    assert move.compile(zeros) is known
    monkeypatch.setenv("TEST_EAGER_AMOUNTS", "[20000.0]")
    assert moved([100.0])(zeros)[0] == 20111.0


class Adding:
    """A kernel as a method, and a default that changes."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    @tilelang.jit(target="cpu")
    def add(self, A, options=CHANGING):
        N = T.const("N")
        A: T.Tensor((N,), "float32")
        B = T.empty((N,), "float32")
        amount = self.amount + options.amount
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                B[i] = A[i] + amount
        return B


def test_methods_and_defaults_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros(8, np.float32)
    one, two = Adding(1.0), Adding(2.0)
    assert (one.add(zeros)[0], two.add(zeros)[0]) == (1.5, 2.5)
    monkeypatch.setattr(CHANGING, "amount", 0.25)
    assert (one.add(zeros)[0], Adding.add(two, zeros)[0]) == (1.25, 2.25)
    assert repr(Adding.add) == "<EagerFunction Adding.add for cpu>"


def test_a_call_without_tensors_is_an_error_also_when_the_kernel_is_known() -> None:
    scaled = scale.compile(N=24)
    assert scaled is scale.compile(N=24)
    with pytest.raises(LanguageError, match="scale needs X"):
        scale(N=24)


def test_a_second_call_costs_little_more_than_a_call_of_the_kernel() -> None:
    """A few microseconds: three times that is allowed here, where other work disturbs."""
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    scale(x, y)
    kernel = scale.compile(x, y)
    best = [1.0, 1.0]
    for _ in range(40):
        for number, call in enumerate((lambda: scale(x, y), lambda: kernel(x, y))):
            start = time.perf_counter()
            for _ in range(50):
                call()
            best[number] = min(best[number], (time.perf_counter() - start) / 50)
    assert best[0] - best[1] < 15e-6


def test_a_build_with_clock_reads() -> None:
    a, b, expected = operands(64, 64, 32)
    function = matmul.instrumented()
    np.testing.assert_allclose(function(a, b), expected, rtol=1e-3, atol=1e-3)
    assert function.compile(a, b).cycles().operations


# -- factories -------------------------------------------------------------------------------------------------------


def test_factories_are_what_they_were() -> None:
    """A function that returns a @T.prim_func gives kernels; ``compile`` is another name of calling it."""
    function = module("elementwise").scale_add_relu
    assert function.mode == "lazy"
    assert matmul.mode == "eager"
    kernel = function.for_target("cpu")(64, 64)
    assert isinstance(kernel, tilelang.Kernel)
    assert function.for_target("cpu").compile(64, 64).bundle_record()["hash"] == kernel.bundle_record()["hash"]
    assert function.prim_func(64, 64).made is None


EDITED = """
import tilelang_min as tilelang
import tilelang_min.language as T


@T.macro
def more(A, B, N, amount):
    for i in T.Parallel(N):
        B[i] = A[i] + (amount + 1.0)


@tilelang.jit(target="cpu")
def eager(A):
    N = T.const("N")
    A: T.Tensor[(N,), "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        more(A, B, N, 10.0)
    return B


@tilelang.jit(target="cpu", out_idx=-1)
def lazy(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            more(A, B, N, 10.0)

    return main
"""


def test_a_file_that_is_edited_after_import_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is imported again; lines may have moved, or may hold other numbers."""
    file = tmp_path / "edited_kernels.py"
    file.write_text(EDITED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module: Any = importlib.import_module("edited_kernels")
    for number, text in enumerate((EDITED.replace(".0", "0.0"), "# moved\n\n" + EDITED.replace("10.0", "20.0"))):
        file.write_text(text)
        os.utime(file, (number, number))
        zeros = np.zeros(8 + number, np.float32)
        assert module.eager(zeros)[0] == 11.0
        assert module.lazy(8 + number)(zeros)[0] == 11.0
        assert module.eager.for_target("cpu")(zeros)[0] == 11.0
    module = importlib.reload(module)
    assert module.eager(zeros)[0] == 21.0
    assert module.lazy(9)(zeros)[0] == 21.0
