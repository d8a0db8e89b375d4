"""Products by mma.sync whose operands are read a step ahead: the same bits and the same transactions as without, in every form of
loop; and their results, exchanged in quads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_runs import assert_close
from test_workload_kernels import load

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver import build
from tilelang_min.errors import LanguageError
from tilelang_min.language import PrimFunc
from tilelang_min.simulate import simulate
from tilelang_min.transform.hopper import HopperOptions

TARGETS = ("cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a")


def halves(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / 2).astype(np.float16)


def lowered(kernel: PrimFunc, target: str, mode: str) -> tuple[Any, Any, Any]:
    """Tile program, layouts and thread program, without warp group products."""
    found = tilelang.targets.resolve(target)
    return build.thread_program(kernel, found, hopper=HopperOptions.of(False), double_buffer=mode)


def outcome(
    kernel: PrimFunc, target: str, mode: str, arrays: list[Any]
) -> tuple[Any, dict[Any, tuple[int, int]], bool]:
    """The last output; transactions and conflicts by kind of access; whether operands are read ahead across iterations."""
    _, layouts, program = lowered(kernel, target, mode)
    named = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    result = simulate(program, named)
    counts: dict[Any, tuple[int, int]] = {}
    for one in result.counts:
        before = counts.get(one.key[2:4], (0, 0))
        counts[one.key[2:4]] = (before[0] + (one.transactions or 0), before[1] + (one.conflicts or 0))
    return list(result.outputs.values())[-1], counts, bool(layouts.ahead.loops)


def same(kernel: PrimFunc, target: str, arrays: list[Any], expected: Any, ahead: bool) -> None:
    """All modes give the bits of the plain form, which is right, at the same cost."""
    plain, counts, _ = outcome(kernel, target, "off", arrays)
    assert_close(plain, expected, f"plain on {target}", scale=2.0)
    for mode in ("tile", "always"):
        made, cost, taken = outcome(kernel, target, mode, arrays)
        assert taken == (ahead and mode == "always"), (target, mode)
        assert np.array_equal(made, plain), (target, mode)
        assert cost == counts, (target, mode)


@pytest.mark.parametrize(
    ("m", "n", "k", "transposed", "depth", "stages", "target"),
    [
        *((64, 64, 96, (False, False), 32, 3, target) for target in TARGETS),
        (72, 40, 96, (True, True), 64, 2, "cuda:sm_80"),
        (30, 66, 129, (False, True), 32, 4, "cuda:sm_80"),
    ],
)
def test_products(m: int, n: int, k: int, transposed: tuple[bool, bool], depth: int, stages: int, target: str) -> None:
    """More iterations than stages and fewer, whole tiles and ragged ones, rows that cp.async takes and such that it does not."""
    kernel = load("gemm").gemm.prim_func(m, n, k, *transposed, 64, 64, depth, num_stages=stages, threads=128)
    a, b = halves(*((k, m) if transposed[0] else (m, k))), halves(*((n, k) if transposed[1] else (k, n)), seed=1)
    expected = load("gemm").reference(a, b, *transposed)
    same(kernel, target, [a, b, np.full((m, n), np.nan, np.float16)], expected, ahead=target != "cuda:sm_75")


def rows(iterations: Callable[[Any], Any], depth: int = 32, second: bool = False) -> PrimFunc:
    """Blocks whose loops have ``iterations(block)`` iterations; with ``second`` two products in each."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 128), "float16"), C: T.Tensor((192, 64), "float32")):
        with T.Kernel(3, threads=64) as bx:
            tile_a = T.alloc_shared((64, depth), "float16")
            tile_b = T.alloc_shared((depth, 64), "float16")
            tile_c = T.alloc_shared((depth, 64), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(iterations(bx), num_stages=2):
                T.copy(A[0, k * depth], tile_a)
                T.copy(B[k * depth, 0], tile_b)
                if second:
                    T.copy(B[k * depth, 64], tile_c)
                T.gemm(tile_a, tile_b, total)
                if second:
                    T.gemm(tile_a, tile_c, total)
            T.copy(total, C[bx * 64, 0])

    return main


def product_of(a: Any, b: Any, depth: int) -> Any:
    """The first columns, and both halves together, of ``depth`` in K."""
    left, right = a.astype(np.float64)[:, :depth], b.astype(np.float64)[:depth]
    return left @ right[:, :64], left @ (right[:, :64] + right[:, 64:])


@pytest.mark.parametrize("second", [False, True])
def test_loops_of_unknown_length(second: bool) -> None:
    """None, two and four iterations: nothing is read in front of a loop that does not run, nor behind its last iteration."""
    a, b = halves(64, 128), halves(128, 128, seed=1)
    expected = np.concatenate([product_of(a, b, 64 * block)[second] for block in range(3)])
    kernel = rows(lambda block: block * 2, second=second)
    same(kernel, "cuda:sm_80", [a, b, np.full((192, 64), np.nan, np.float32)], expected, ahead=True)


def test_an_odd_number_of_steps() -> None:
    kernel = rows(lambda block: 2, depth=48)
    _, layouts, _ = lowered(kernel, "cuda:sm_80", "loop")
    assert not layouts.ahead.loops
    assert "3 steps along K are an odd number" in layouts.ahead.describe()


def test_a_product_of_what_another_one_makes() -> None:
    """It could be read too early only."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float16"),
        B: T.Tensor((128, 32), "float16"),
        V: T.Tensor((128, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=64):
            tile_a = T.alloc_shared((64, 32), "float16")
            tile_b = T.alloc_shared((32, 32), "float16")
            tile_v = T.alloc_shared((32, 64), "float16")
            between = T.alloc_fragment((64, 32), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            T.copy(A, tile_a)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(B[k * 32, 0], tile_b)
                T.copy(V[k * 32, 0], tile_v)
                T.gemm(tile_a, tile_b, between, transpose_B=True, clear_accum=True)
                T.gemm(between, tile_v, total)
            T.copy(total, C)

    a, b, v = halves(64, 32), halves(128, 32, seed=1), halves(128, 64, seed=2)
    expected = np.zeros((64, 64))
    for tile in range(0, 128, 32):
        first = np.zeros((64, 32), np.float16)
        for k in (0, 16):  # an instruction rounds to float16
            some_a, some_b = (each[:, k : k + 16].astype(np.float64) for each in (a, b[tile : tile + 32]))
            first = (first + some_a @ some_b.T).astype(np.float16)
        expected += first.astype(np.float64) @ v[tile : tile + 32].astype(np.float64)
    arrays = [a, b, v, np.full((64, 64), np.nan, np.float32)]
    made, _, taken = outcome(main, "cuda:sm_80", "always", arrays)
    assert not taken
    assert_close(made, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_that_begin_anew(dtype: str) -> None:
    """The last iteration's product, also where the instruction takes accumulators in registers of another type."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), dtype)):
        with T.Kernel(1, threads=64):
            tile_a = T.alloc_shared((64, 32), "float16")
            tile_b = T.alloc_shared((32, 64), "float16")
            total = T.alloc_fragment((64, 64), dtype)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], tile_a)
                T.copy(B[k * 32, 0], tile_b)
                T.gemm(tile_a, tile_b, total, clear_accum=True)
            T.copy(total, C)

    a, b = halves(64, 128), halves(128, 64, seed=1)
    expected = a[:, 96:].astype(np.float64) @ b[96:].astype(np.float64)
    same(main, "cuda:sm_80", [a, b, np.full((64, 64), np.nan, dtype)], expected, ahead=True)


def test_no_room_for_a_second_set() -> None:
    """64 x 96 for each warp take too many registers; 128 x 128 by eight warps: a block a unit would be lost."""
    for tile, threads, reason in (((128, 192), 128, "of 255 registers"), ((128, 128), 256, "instead of 2 blocks")):
        kernel = load("gemm").gemm.prim_func(512, 768, 512, False, False, *tile, 32, num_stages=3, threads=threads)
        _, layouts, _ = lowered(kernel, "cuda:sm_80", "loop")
        assert not layouts.ahead.loops
        assert reason in layouts.ahead.describe()


def test_other_work_in_the_loop() -> None:
    attention = load("attention").attention.prim_func(1, 1, 256, 64)
    assert not lowered(attention, "cuda:sm_80", "loop")[1].ahead.products
    _, layouts, _ = lowered(attention, "cuda:sm_80", "always")
    assert not layouts.ahead.loops
    assert len(layouts.ahead.products) == 2
    assert "it does other work than products" in layouts.ahead.describe()


def test_what_was_decided_is_said() -> None:
    kernel = load("gemm").gemm.prim_func(128, 128, 128, False, False, 64, 64, 32, num_stages=4, threads=64)
    compiled = tilelang.compile(kernel, "cuda:sm_80", cache=False)
    assert "operands of products are read a step ahead, across iterations" in compiled.explain()
    assert "__tl_cp_async_cg_if(" in compiled.source()  # no branches around the copies
    assert "if ((k" not in compiled.source()
    plain = tilelang.compile(kernel, "cuda:sm_80", cache=False, options={"double_buffer": False})
    assert "a step ahead" not in plain.explain()
    with pytest.raises(LanguageError, match="double_buffer is 'twice'"):
        tilelang.compile(kernel, "cuda:sm_80", cache=False, options={"double_buffer": "twice"})


def test_spills_are_not_paid_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the binary spills, the loop is lowered again without; what then spills less is taken."""
    from tilelang_min.codegen import nvidia

    programs: list[Any] = []
    generate = nvidia.generate

    def spilling(program: Any, **options: Any) -> Any:
        made = generate(program, **options)
        programs.append(program)
        spilled = dataclasses.replace(made.resources, spill_store_bytes=8 if len(programs) == 1 else 0)
        return dataclasses.replace(made, resources=spilled)

    monkeypatch.setattr(nvidia, "generate", spilling)
    kernel = load("gemm").gemm.prim_func(128, 128, 128, False, False, 64, 64, 32, num_stages=4, threads=64)
    compiled = tilelang.compile(kernel, "cuda:sm_80", cache=False)
    assert len(programs) == 2
    assert "not read ahead across iterations: that spilled 8 bytes a thread" in compiled.explain()
    assert compiled.metadata.spill_store_bytes == 0


@pytest.mark.parametrize(("columns", "wide"), [(128, True), (72, True), (68, False)])
def test_results_leave_in_sixteen_bytes(columns: int, wide: bool) -> None:
    """Also where the last tile is ragged, but for rows that are no whole number of 16 bytes; each sector is written once."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, columns), "float16"), C: T.Tensor((64, columns), "float16")
    ):
        with T.Kernel(T.ceildiv(columns, 64), threads=128) as bx:
            tile_a = T.alloc_shared((64, 32), "float16")
            tile_b = T.alloc_shared((32, 64), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            T.copy(A, tile_a)
            T.copy(B[0, bx * 64], tile_b)
            T.gemm(tile_a, tile_b, total)
            for i, j in T.Parallel(64, 64):
                C[i, bx * 64 + j] = T.max(total[i, j], 0)

    a, b = halves(64, 32), halves(32, columns, seed=1)
    _, _, program = lowered(main, "cuda:sm_80", "off")
    result = simulate(program, {"A": a, "B": b, "C": np.full((64, columns), np.nan, np.float16)})
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    assert_close(result.outputs["C"], expected, scale=2.0)
    stores = [one for one in result.counts if one.key[2:4] == ("global", "store")]
    assert {one.width_bits for one in stores} == ({128} if wide else {32})
    if columns == 128:
        assert sum(one.sectors or 0 for one in stores) == 64 * 128 * 2 // 32
