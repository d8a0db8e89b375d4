"""Kernels on the Hopper path, executed by the simulator: results, choices that are off, and what falls back with which note."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from kernel_matmul import matmul, product, quickstart

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LanguageError
from tilelang_min.ir.plans import HopperPlan
from tilelang_min.program import ThreadProgram
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.targets import Target, resolve
from tilelang_min.transform.hopper import HopperOptions

HOPPER = resolve("cuda:sm_90a")
PRODUCT, LOAD, STORE, MULTICAST = "wgmma_", "cp_async_bulk_tensor_g2s", "cp_async_bulk_tensor_s2g", "multicast::cluster"


def units(count: int) -> Target:
    """A Hopper of few units, so that blocks are persistent in small grids."""
    return dataclasses.replace(HOPPER, devices=(dataclasses.replace(HOPPER.devices[0], units=count),))


def lowered(kernel: Any, target: Target = HOPPER, **options: bool | int) -> tuple[HopperPlan, ThreadProgram, set[str]]:
    """The plan, the thread program, and the instructions in it."""
    from tvm import ir
    from tvm_ffi import structural_walk

    _, layouts, program = thread_program(kernel, target, hopper=HopperOptions(**options))
    assert layouts is not None
    found: set[str] = set()

    def note(call: Any) -> None:
        name = str(getattr(call.op, "name", ""))
        if name.startswith("tirx.ptx."):
            found.add(name.removeprefix("tirx.ptx."))
            found.update(str(item.value) for item in call.args if isinstance(item, ir.StringImm))

    structural_walk(program.function.body, (ir.Call, note))
    return layouts.hopper, program, found


def has(found: set[str], name: str) -> bool:
    return any(item.startswith(name) for item in found)


def check(
    kernel: Any, shape: tuple[int, int, int], *, target: Target = HOPPER, seed: int = 0, **options: bool | int
) -> HopperPlan:
    """Simulate a product of ``kernel_matmul`` on fresh inputs and compare with float64."""
    plan, program, _ = lowered(kernel, target, **options)
    generator = np.random.default_rng(seed + sum(shape))
    inputs: dict[str, Any] = {}
    for parameter in program.parameters[:2]:
        dtype = numpy_dtype(parameter.dtype)
        values = generator.integers(-100, 100, parameter.shape) if "int" in parameter.dtype else None
        inputs[parameter.name] = (generator.standard_normal(parameter.shape) if values is None else values).astype(
            dtype
        )
    result = simulate(program, inputs).outputs["C"].astype(np.float64)
    m, n, k = shape
    a, b = inputs["A"], inputs["B"]
    turned = (a.shape != (m, k), b.shape != (k, n))
    expected = product(a, b, *turned)
    tolerance = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3, "int32": 0.0}[program.parameters[2].dtype]
    assert np.isfinite(result).all()
    assert np.abs(result - expected).max() <= tolerance * np.abs(expected).max()
    return plan


@pytest.mark.parametrize(
    ("shape", "tile", "stages", "threads", "options"),
    [
        ((70, 72, 88), (64, 64, 64), 2, 128, {}),
        ((70, 72, 88), (64, 64, 32), 3, 128, {"transpose_b": True}),
        ((136, 40, 104), (128, 64, 32), 2, 256, {"transpose_a": True}),
        ((72, 40, 56), (64, 32, 16), 4, 128, {"transpose_a": True, "transpose_b": True}),
        ((130, 72, 200), (192, 64, 32), 6, 384, {"out": "float16"}),
        ((64, 136, 64), (64, 128, 64), 2, 256, {"out": "float16"}),  # warp groups side by side
        ((128, 48, 64), (128, 48, 32), 2, 128, {"out": "float16"}),  # two instructions of a group, one above the other
        ((40, 72, 128), (64, 64, 64), 2, 128, {"dtype": "bfloat16"}),
        ((1, 8, 8), (64, 64, 64), 2, 128, {}),
    ],
)
def test_products(shape: Any, tile: Any, stages: int, threads: int, options: dict[str, Any]) -> None:
    kernel = matmul(*shape, *tile, stages, threads, **options)
    plan = check(kernel, shape)
    assert plan.specialised
    assert not plan.notes
    assert len(plan.stores) == 1


def narrow(dtype: str, accumulator: str, m: int = 72, n: int = 40, k: int = 160) -> Any:
    """``C = A @ B^T`` of 8-bit elements."""

    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), accumulator)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64), dtype)
            B_shared = T.alloc_shared((32, 64), dtype)
            C_local = T.alloc_fragment((64, 32), accumulator)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=2):
                T.copy(A[by * 64, ko * 64], A_shared)
                T.copy(B[bx * 32, ko * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * 64, bx * 32])

    return main


@pytest.mark.parametrize(("dtype", "accumulator"), [("float8_e4m3", "float32"), ("int8", "int32")])
def test_narrow_types(dtype: str, accumulator: str) -> None:
    assert check(narrow(dtype, accumulator), (72, 40, 160)).specialised


def test_persistent_blocks() -> None:
    shape = (136, 264, 72)
    kernel = matmul(*shape, 128, 64, 32, 3, 256, out="float16")
    plan, program, _ = lowered(kernel, units(4))
    assert plan.persistent
    assert program.grid == (4, 1, 1)
    check(kernel, shape, target=units(4))
    assert lowered(kernel, units(4), persistent=False)[1].grid == (5, 2, 1)
    several = matmul(*shape, 64, 64, 32, 3, 128)  # fit on a unit, and overlap one another
    assert not lowered(several, units(4))[0].persistent


@pytest.mark.parametrize(("shape", "order"), [((256, 136, 72), "row"), ((64, 256, 72), "column")])
def test_clusters_share_loads(shape: Any, order: str) -> None:
    kernel = matmul(*shape, 64, 64, 32, 2, 128, transpose_b=True)
    plan, program, found = lowered(kernel, units(4), cluster=True)
    assert plan.panel is not None
    assert (plan.cluster, plan.panel[1], program.cluster) == (2, order, (2, 1, 1))
    assert MULTICAST in found
    check(kernel, shape, target=units(4), cluster=True)
    assert MULTICAST not in lowered(kernel)[2]


def test_work_around_the_ring() -> None:
    """A bias in shared memory, a loop around the pipeline, and work on what it gives: consumers alone meet at barriers."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), D: T.Tensor((64,), "float32"),
             C: T.Tensor((2, 64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            bias = T.alloc_shared((64,), "float32")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.copy(D, bias)
            for turn in T.serial(2):
                T.clear(C_local)
                for ko in T.Pipelined(4, num_stages=3):
                    T.copy(A[0, ko * 32], A_shared)
                    T.copy(B[ko * 32, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                for i, j in T.Parallel(64, 64):
                    C_local[i, j] = C_local[i, j] * (turn + 1) + bias[63 - j]
                for i, j in T.Parallel(64, 64):
                    C[turn, i, j] = C_local[i, j]

    plan, program, found = lowered(main)
    assert plan.specialised
    assert "bar_sync_count" in found
    generator = np.random.default_rng(3)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    d = generator.standard_normal(64).astype(np.float32)
    result = simulate(program, {"A": a, "B": b, "D": d}).outputs["C"]
    for turn in range(2):
        np.testing.assert_allclose(result[turn], product(a, b) * (turn + 1) + d[::-1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "tile", "note"),
    [
        ((70, 72, 129), (64, 64, 32), "rows of A are 258 bytes long, no multiple of 16"),
        ((70, 71, 64), (64, 64, 32), "rows of B are 142 bytes long, no multiple of 16"),
        ((70, 72, 64), (32, 64, 32), "32x64 does not divide into 1 warp groups of 64 rows"),
        ((70, 72, 64), (64, 72, 32), "a row of B_shared is no whole number of 32 bytes"),
    ],
)
def test_what_does_not_fit_falls_back(shape: Any, tile: Any, note: str) -> None:
    plan = check(matmul(*shape, *tile, 2, 128), shape)
    assert not plan.specialised
    assert any(note in item for item in plan.notes), plan.notes


@pytest.mark.parametrize(("groups", "registers"), [(1, None), (2, (40, 232)), (3, (32, 160)), (4, (32, 112))])
def test_registers_that_move_were_there(groups: int, registers: tuple[int, int] | None) -> None:
    """The consumers ask for what all threads had at the start, less what the producer keeps: more would never come."""
    from tvm import ir
    from tvm_ffi import structural_walk

    kernel = matmul(64 * groups, 64, 64, 64 * groups, 64, 32, 2, 128 * groups)
    _, program, _ = lowered(kernel)
    found: dict[str, int] = {}

    def note(call: Any) -> None:
        if str(getattr(call.op, "name", "")) == "tirx.ptx.setmaxnreg":
            found[str(call.args[1].value)] = int(call.args[0])

    structural_walk(program.function.body, (ir.Call, note))
    assert found == ({} if registers is None else {"dec": registers[0], "inc": registers[1]})
    at_start = 65536 // program.threads // 8 * 8 * program.threads
    assert registers is None or 128 * (registers[0] + groups * registers[1]) <= at_start


@pytest.mark.parametrize(
    ("tile", "threads", "ring", "note"),
    [
        ((192, 192), 384, True, None),
        ((192, 256), 384, False, "products need 154 registers of each of 384 threads, beside it they have 128"),
        (
            (256, 192),
            512,
            False,
            "no producer warp group: products need 122 registers of each of 512 threads, beside it they have 96",
        ),
        ((256, 256), 512, None, "256 columns needs 154 registers of each of 512 threads, 128 are there"),
        ((256, 256), 1024, None, "128 columns needs 90 registers of each of 1024 threads, 64 are there"),
    ],
)
def test_what_the_assembler_asks_for_is_there(tile: Any, threads: int, ring: bool | None, note: str | None) -> None:
    """``ring`` None: no products of warp groups either.  Such kernels were refused by ptxas."""
    m, n = tile
    kernel = matmul(m, n, 64, m, n, 32, 2, threads)
    plan, _, _ = lowered(kernel)
    assert (plan.specialised, bool(plan.gemms)) == (bool(ring), ring is not None)
    assert note is None or any(note in item for item in plan.notes), plan.notes
    assert tilelang.compile(kernel, "cuda:sm_90a", cache=False).metadata.registers_per_thread <= 65536 // threads


def test_a_full_block_has_no_room_for_a_producer() -> None:
    plan, program, _ = lowered(matmul(512, 64, 64, 512, 64, 32, 2, 1024))
    assert (plan.specialised, program.threads) == (False, 1024)
    assert any("1024 threads leave no room" in item for item in plan.notes)


def test_a_loop_without_stages_keeps_the_products() -> None:
    kernel = matmul(70, 72, 88, 64, 64, 32, 1, 128)
    plan = check(kernel, (70, 72, 88))
    assert plan.gemms
    assert not plan.specialised
    assert any("it has one stage" in item for item in plan.notes)


def test_choices_can_be_off() -> None:
    kernel = matmul(128, 128, 128, 64, 64, 32, 2, 128, out="float16")
    _, program, found = lowered(kernel)
    assert has(found, PRODUCT)
    assert has(found, LOAD)
    assert has(found, STORE)
    assert (program.threads, program.consumer_threads) == (256, 128)
    assert [item.parameter for item in program.tensor_maps] == ["A", "B", "C"]
    _, program, found = lowered(kernel, warp_specialize=False)
    assert has(found, PRODUCT)
    assert not has(found, LOAD)
    assert (program.threads, program.consumer_threads) == (128, None)
    check(kernel, (128, 128, 128), warp_specialize=False)
    _, program, found = lowered(kernel, tma=False)
    assert has(found, PRODUCT)
    assert not has(found, "cp_async_bulk")
    assert not program.tensor_maps
    _, _, found = lowered(kernel, wgmma=False)
    assert "ldmatrix" in found
    assert not has(found, PRODUCT)


@pytest.mark.parametrize("value", ["fast", {"wgma": True}, {"tma": 1}, {"split": 0}, {"split": "2"}])
def test_unknown_options_are_errors(value: Any) -> None:
    with pytest.raises(LanguageError, match="compile option hopper"):
        HopperOptions.of(value)
    assert HopperOptions.of(False) == HopperOptions(*[False] * 7)
    assert HopperOptions.of({"tma": False}) == HopperOptions(tma=False)
    assert HopperOptions.of({"split": 3}) == HopperOptions(split=3)


@pytest.mark.parametrize(("block", "threads", "causal"), [((64, 64), 128, False), ((128, 32), 256, True)])
def test_attention_keeps_its_weights_in_registers(block: tuple[int, int], threads: int, causal: bool) -> None:
    module = quickstart("attention")
    kernel = module.attention.prim_func(
        1, 2, 104, 64, causal=causal, block_M=block[0], block_N=block[1], threads=threads
    )
    plan, program, found = lowered(kernel)
    assert plan.specialised
    assert {"wgmma_f16_ss", "wgmma_f16_rs"} <= found
    generator = np.random.default_rng(5)
    inputs = [generator.standard_normal((1, 104, 2, 64)).astype(np.float16) for _ in "QKV"]
    result = simulate(program, dict(zip("QKV", inputs, strict=True))).outputs["Output"].astype(np.float64)
    np.testing.assert_allclose(result, module.reference(*inputs, causal=causal), atol=3e-3)


def test_operands_that_other_lanes_hold_go_through_panels() -> None:
    """Two warp groups side by side each hold half of the first product's columns; the second needs all of them along K."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            first = T.alloc_fragment((64, 64), "float32")
            half = T.alloc_fragment((64, 64), "float16")
            second = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.clear(first)
            T.gemm(A_shared, B_shared, first)
            T.copy(first, half)
            T.clear(second)
            T.gemm(half, B_shared, second)
            T.copy(second, C)

    _, program, found = lowered(main)
    assert "wgmma_f16_rs" not in found
    generator = np.random.default_rng(6)
    a, b = (generator.standard_normal((64, 64)).astype(np.float16) / 8 for _ in range(2))
    result = simulate(program, {"A": a.astype(np.float16), "B": b.astype(np.float16)}).outputs["C"]
    np.testing.assert_allclose(result, product(a, b) @ b.astype(np.float64), atol=5e-3)
