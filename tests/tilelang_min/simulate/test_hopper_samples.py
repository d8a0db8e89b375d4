"""Tiles and iterations of programs with roles that stand for others: counts are those of the whole run."""

from __future__ import annotations

import dataclasses
import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from hopper_programs import ring_gemm
from test_hopper_barriers import share
from test_hopper_blocks import persistent
from tvm import tirx

import tilelang_min.language as T
from tilelang_min.analysis.samples import Chosen, Sample, Samples
from tilelang_min.driver.analysis import analyse_program, simulate_tiles
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import zero_arguments
from tilelang_min.errors import SimulationError
from tilelang_min.lower.instrument import instrument
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate
from tilelang_min.targets import Target, resolve
from tilelang_min.transform.hopper import HopperOptions

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"


def workload(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"samples_{name}", KERNELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def machine(units: int) -> Target:
    """A Hopper GPU of few units, so that few tiles make blocks persistent."""
    target = resolve("cuda:sm_90a")
    return dataclasses.replace(target, devices=(dataclasses.replace(target.devices[0], units=units),))


def product(m: int, n: int, k: int, *, units: int = 5, cluster: bool = False, **tiles: Any) -> ThreadProgram:
    chosen = {"block_M": 128, "block_N": 128, "block_K": 32, "num_stages": 4, "threads": 256, **tiles}
    return thread_program(
        workload("gemm").gemm.prim_func(m, n, k, **chosen), machine(units), hopper=HopperOptions(cluster=cluster)
    )[2]


def attention(seq_len: int, *, causal: bool) -> ThreadProgram:
    sizes = {"block_M": 64, "block_N": 32, "threads": 128, "causal": causal}
    return thread_program(workload("attention").attention.prim_func(1, 1, seq_len, 64, **sizes), machine(132))[2]


def samples_of(program: ThreadProgram) -> list[Sample]:
    """What is chosen, after making sure that it runs through: nothing falls back to the whole program."""
    found = Samples(program).all()
    values = dict(zip((p.name for p in program.parameters), zero_arguments(program.parameters), strict=True))
    for each in found:
        simulate(program, values, blocks=[each.block], schedule=each.schedule)
    return found


def assert_same(program: ThreadProgram) -> None:
    sampled = analyse_program(program)
    whole = analyse_program(program, zero_arguments(program.parameters))
    assert sorted(sampled.counts, key=lambda c: c.key) == sorted(whole.counts, key=lambda c: c.key)
    assert sampled.executed == whole.executed


CASES: dict[str, Any] = {
    "persistent": lambda: product(512, 384, 384),
    "persistent, ragged": lambda: product(500, 392, 424, num_stages=5),
    "persistent, pairs": lambda: product(500, 512, 328, units=4, cluster=True),
    "one tile a block": lambda: product(120, 72, 1000, units=132, block_M=64, block_N=64, threads=128),
    "without a producer": lambda: product(100, 77, 515, units=132, block_M=64, block_N=64, num_stages=3, threads=128),
    "attention": lambda: attention(520, causal=False),
    "causal attention": lambda: attention(500, causal=True),
    "stages by number": lambda: ring_gemm(200, 104, 1000),
    "tiles by turns, with parities": persistent,
    "a cluster that shares": share,
}


@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_of_the_whole_run(case: str) -> None:
    assert_same(CASES[case]())


@pytest.mark.parametrize("seed", range(4))
def test_random_products(seed: int) -> None:
    draw = random.Random(seed)
    m, n = (128 * draw.randint(2, 4) - draw.choice([0, 8, 24]) for _ in range(2))
    k = 8 * draw.randint(1, 60)
    tiles = {"block_K": draw.choice([32, 64]), "num_stages": draw.randint(3, 5), "transpose_B": draw.random() < 0.5}
    program = product(m, n, k, units=draw.choice([3, 5, 7]), **tiles)
    samples_of(program)
    assert_same(program)


def test_the_work_grows_neither_with_tiles_nor_with_iterations() -> None:
    def work(tiles: int, k: int) -> tuple[int, int]:
        found = samples_of(product(128 * tiles, 128 * tiles, k))
        chosen = [each for sample in found for each in sample.schedule.values() if isinstance(each, Chosen)]
        iterations = 0
        for one in chosen:
            for number, _ in one.iterations:
                left_out = max(((times - 1) * period for _, period, times in one.inner[number].values()), default=0)
                iterations += k // 32 - left_out
        assert sum(times for one in chosen for _, times in one.iterations) == 2 * tiles * tiles  # of either role
        return len(found), iterations

    assert work(4, 32 * 32) == work(6, 32 * 320)
    assert work(6, 32 * 320)[1] <= 60


def test_loops_that_depend_on_data_run_whole() -> None:
    @T.prim_func
    def main(L: T.Tensor((4,), "int32"), A: T.Tensor((64, 4096), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((64, 64), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[0, L[k % 4] * 64], A_shared)
                T.gemm(A_shared, A_shared, total)
            T.copy(total, C)

    program = thread_program(main, machine(132))[2]
    assert all(not sample.schedule for sample in Samples(program).all())


def test_a_missing_wait_is_found() -> None:
    """Without the wait for a stage to be free the producer overwrites what is being read."""
    program = product(512, 384, 384)

    def without(node: Any) -> Any:
        wait = isinstance(node.body, tirx.Evaluate) and "producer_parity" in str(node.body)
        return tirx.Evaluate(tirx.IntImm("int32", 0)) if wait else node

    body = tvm_ffi.structural_map(program.function.body, (tirx.While, without))
    broken = dataclasses.replace(
        program, function=tirx.PrimFunc(program.function.params, body, program.function.ret_type)
    )
    with pytest.raises(SimulationError, match=r"arrives at the mbarrier|race on shared memory"):
        analyse_program(broken)


def test_the_first_tile_of_a_block_alone() -> None:
    program = product(512, 384, 64)
    rng = np.random.default_rng(1)
    arrays = {
        "A": rng.standard_normal((512, 64)).astype(np.float16),
        "B": rng.standard_normal((64, 384)).astype(np.float16),
        "C": np.full((512, 384), np.nan, np.float16),
    }
    found = simulate_tiles(program, arrays, [(0, 0, 0), (4, 0, 0)], 1, count=False).outputs["C"]
    expected = arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)
    known = ~np.isnan(found)
    assert known.sum() == 2 * 128 * 128
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-2, atol=1e-2)
    assert np.isnan(arrays["C"]).all()


def test_clock_reads_count_every_iteration_of_overlapped_products() -> None:
    """The loop is no part of the product that is started in front of it."""
    plain = attention(256, causal=False)
    program, record = instrument(plain, "operations")
    rows = np.zeros(record.parameter.shape, np.int64)
    values = dict(zip((p.name for p in plain.parameters), zero_arguments(plain.parameters), strict=True))
    block = (0, 0, 0)
    found = simulate(program, {**values, record.parameter.name: rows}, blocks=[block], count=False)
    counts = found.outputs[record.parameter.name][0]
    kinds = {operation.id: operation.kind for operation in plain.operations}
    loop = next(operation.id for operation in plain.operations if operation.kind == "loop")
    inner = {operation.id for operation in plain.operations if operation.parent == loop}
    times = {
        slot.operation: int(counts[0, 2 + 2 * number])
        for number, slot in enumerate(record.slots)
        if slot.operation in inner and slot.phase == "run" and kinds[slot.operation] in ("parallel", "reduce")
    }
    assert len(times) >= 5
    assert set(times.values()) <= {256 // 32, 256 // 32 + 1}  # some are begun for the next iteration
    samples_of(program)
    assert_same(program)
