"""Atomics on every target: what they compute, what they are compiled to, and what a target does not have."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import kernel_atomics
import numpy as np
import pytest
from kernel_runs import LAUNCHED, run

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LanguageError, SimulationError, TargetError
from tilelang_min.program.atomics import AtomicCall
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.targets import resolve
from tilelang_min.targets.atomics import atomics

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"
GPUS = ("cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942", "hip:gfx950")


def workload_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"workload_{name}", KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def simulated(kernel: Any, target: str, **arrays: Any) -> dict[str, Any]:
    """Also for the CPU, which other tests launch; a GPU at hand launches."""
    program = thread_program(kernel, resolve(target))[2]
    if target != "cpu" and target in LAUNCHED:
        return run(kernel, target, [arrays[parameter.name] for parameter in program.parameters])
    return simulate(program, arrays).outputs


@pytest.mark.parametrize("target", ["cpu", *GPUS])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
def test_weighted_histogram(target: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-5, 40, 1000, dtype=np.int32)
    w = rng.integers(-9, 9, 1000).astype(dtype)
    inside = (x >= 0) & (x < 33)
    expected = np.bincount(x[inside], w[inside], 33)
    start = np.arange(33).astype(dtype)
    made = simulated(kernel_atomics.counted(1000, 33, dtype), target, X=x, W=w, H=start)["H"]
    np.testing.assert_array_equal(made, expected + start)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
def test_compiled_for_the_cpu(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 33, 20000, dtype=np.int32)
    w = rng.integers(-9, 9, 20000).astype(dtype)
    made = np.zeros(33, dtype)
    kernel = tilelang.compile(kernel_atomics.counted(20000, 33, dtype), "cpu")
    kernel(x, w, made)
    np.testing.assert_array_equal(made, np.bincount(x, w, 33))
    assert "lock" in kernel.assembly()
    a = (rng.standard_normal((50, 24)) * 100).astype(dtype)
    high, low = np.zeros((2, 24), dtype)
    tilelang.compile(kernel_atomics.extremes(50, 24, dtype), "cpu")(a, high, low)
    for got, expected in zip((high, low), kernel_atomics.column_extremes(a), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_extremes_of_either_sign(target: str, dtype: str) -> None:
    a = (np.random.default_rng(3).standard_normal((50, 24)) * 100).astype(dtype)
    a[:, 0], a[:, 1] = -np.abs(a[:, 0]), np.abs(a[:, 1])
    zeros = np.zeros(24, dtype)
    made = simulated(kernel_atomics.extremes(50, 24, dtype), target, A=a, high=zeros, low=zeros)
    high, low = kernel_atomics.column_extremes(a)
    np.testing.assert_array_equal(made["high"], high)
    np.testing.assert_array_equal(made["low"], low)


@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        ("cuda:sm_80", "float16", "RED.E.ADD.F16x2"),
        ("cuda:sm_90a", "bfloat16", "REDG.E.ADD.BF16x2"),
        ("hip:gfx90a", "float16", "global_atomic_pk_add_f16"),
        ("hip:gfx942", "bfloat16", "global_atomic_pk_add_bf16"),
        ("hip:gfx950", "bfloat16", "global_atomic_pk_add_bf16"),
    ],
)
def test_halves_go_in_pairs(target: str, dtype: str, instruction: str) -> None:
    a = np.random.default_rng(4).integers(-4, 5, (24, 48)).astype(numpy_dtype(dtype))
    kernel = tilelang.compile(kernel_atomics.halves(24, 48, dtype), target)
    assert any(one.opcode.startswith(instruction) for one in kernel.listing.instructions)
    made = kernel.simulate(a, np.zeros(48, numpy_dtype(dtype))).outputs["B"]
    np.testing.assert_array_equal(made.astype(np.float64), a.astype(np.float64).sum(axis=0))
    (count,) = (count for count in kernel.analyse().counts if count.access == "atomic")
    assert count.width_bits == 32


@pytest.mark.parametrize(
    ("target", "shared", "tensor"),
    [
        ("cuda:sm_75", "ATOMS.CAST.SPIN", "RED.E.ADD.F32"),
        ("cuda:sm_90a", "ATOMS.CAST.SPIN", "REDG.E.ADD.F32"),
        ("hip:gfx90a", "ds_add_f32", "global_atomic_add_f32"),
        ("hip:gfx950", "ds_add_f32", "global_atomic_add_f32"),
    ],
)
def test_floats_are_added_by_the_memory(target: str, shared: str, tensor: str) -> None:
    kernel = tilelang.compile(kernel_atomics.counted(1000, 33, "float32"), target)
    opcodes = [one.opcode for one in kernel.listing.instructions]
    for wanted in (shared, tensor):
        assert any(opcode.startswith(wanted) for opcode in opcodes), opcodes
    assert not any("cmpswap" in opcode for opcode in opcodes)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx90a"])
def test_elements_and_regions_outside_of_nests(target: str) -> None:
    zeros = np.zeros(4, np.int32), np.zeros((8, 16), np.float32)
    made = simulated(kernel_atomics.single(7), target, A=zeros[0], B=zeros[1])
    np.testing.assert_array_equal(made["A"], [12, 9, 6, 0])
    np.testing.assert_array_equal(made["B"][:4], 3.5)
    np.testing.assert_array_equal(made["B"][4:], 0)


def test_same_updates_need_no_barrier_and_others_do() -> None:
    def barriers(first: str, second: str) -> int:
        operations = {"add": T.atomic_add, "max": T.atomic_max}
        one, other = operations[first], operations[second]

        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=64) as bx:
                S = T.alloc_shared((8,), "int32")
                T.clear(S)
                for i in T.Parallel(64):
                    one(S[i % 8], A[i])
                for i in T.Parallel(64):
                    other(S[i // 8], A[i])
                for i in T.Parallel(8):
                    A[i + bx] = S[i]

        program = thread_program(main, resolve("cuda:sm_80"))[2]
        result = simulate(program, {"A": np.arange(64, dtype=np.int32)})
        assert result.outputs["A"][0] == (56 * 8 // 2 * 0 + 224 + 28 if second == "add" else 224)
        return str(program.function.script()).count("tvm_storage_sync")

    assert barriers("add", "add") + 1 == barriers("add", "max")


def test_an_update_races_with_a_plain_access() -> None:
    from tvm import tirx
    from tvm_ffi import structural_map

    program = thread_program(kernel_atomics.counted(1000, 33, "int32"), resolve("cuda:sm_80"))[2]

    def without(node: Any) -> Any:
        name = str(getattr(getattr(node.value, "op", None), "name", ""))
        return tirx.Evaluate(tirx.IntImm("int32", 0)) if name == "tirx.tvm_storage_sync" else node

    body = structural_map(program.function.body, (tirx.Evaluate, without))
    broken = dataclasses.replace(program, function=program.function.with_body(body))
    arrays = {"X": np.arange(1000, dtype=np.int32) % 33, "W": np.ones(1000, np.int32), "H": np.zeros(33, np.int32)}
    with pytest.raises(SimulationError, match=r"updates .* wrote it|reads .* updated it"):
        simulate(broken, arrays)


def test_what_a_target_lacks_is_said() -> None:
    with pytest.raises(TargetError, match=r"cuda:sm_80 has no atomic add of bfloat16 in global memory") as caught:
        thread_program(kernel_atomics.halves(24, 48, "bfloat16"), resolve("cuda:sm_80"))
    assert caught.value.location is not None
    with pytest.raises(TargetError, match="two neighbours at a time"):
        thread_program(kernel_atomics.counted(1000, 33, "float16"), resolve("cuda:sm_90a"))
    with pytest.raises(LanguageError, match=r"there is no T\.atomic_max of float16"):
        thread_program(kernel_atomics.extremes(16, 8, "float16"), resolve("cuda:sm_90a"))


def test_fragments_need_no_atomic() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((64,), "float32")
            for i in T.Parallel(64):
                T.atomic_add(F[i], A[i + bx])

    with pytest.raises(LanguageError, match="updates a tensor or a shared tile, F is fragment"):
        thread_program(main, resolve("cuda:sm_80"))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a", "hip:gfx942"])
def test_workload_kernels(target: str) -> None:
    module = workload_module("atomics")
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 262, 9000, dtype=np.int32)
    made = simulated(module.histogram.prim_func(9000), target, X=x, H=np.zeros(256, np.int32))["H"]
    np.testing.assert_array_equal(made, module.histogram_reference(x))
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((70, 300), (300, 80)))
    product = module.split_k.prim_func(70, 80, 300)
    made = simulated(product, target, A=a, B=b, C=np.zeros((70, 80), np.float32))["C"]
    np.testing.assert_allclose(made, module.split_k_reference(a, b), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["cpu", *GPUS])
def test_names_of_calls_are_read_back(target: str) -> None:
    for space in ("shared", "global"):
        for kind in atomics(resolve(target), space):
            operation, dtype = kind.split(".")
            lanes = 2 if dtype.endswith("x2") else 1
            call = AtomicCall(space, operation, dtype.removesuffix("x2"), lanes)
            assert AtomicCall.parse(call.name) == call
            assert call.kind == kind


def test_loops_disturbed_by_other_warps_are_open() -> None:
    program = thread_program(kernel_atomics.counted(256, 33, "float32"), resolve("cuda:sm_90a"))[2]
    arrays = {"W": np.ones(256, np.float32), "H": np.zeros(33, np.float32)}

    def rule(x: Any) -> set[str]:
        counts = simulate(program, {"X": x.astype(np.int32), **arrays}).counts
        return {count.rule for count in counts if count.buffer == "part" and count.access == "atomic"}

    assert rule(np.arange(256) % 33) == {"open"}
    assert rule(np.where(np.arange(256) % 128 < 32, np.arange(256) // 128, -1)) == {"known"}
