"""In every form of loop, an operation is counted at least as often as the loops around it have iterations.

A loop that is lowered behind the marker of one of its operations is timed as one stretch of that operation: its own operations are
then counted once, and results are right all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import kernel_zoo
import numpy as np
import pytest
import tvm_ffi
from test_workload_kernels import load
from tvm import tirx
from tvm.sym import Analyzer

import tilelang_min as tilelang
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import zero_arguments
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import Conditional, Loop, Statement
from tilelang_min.language import PrimFunc
from tilelang_min.lower.instrument import instrument
from tilelang_min.lower.marked import operation_of
from tilelang_min.program import OPERATION_MARKER
from tilelang_min.simulate import simulate
from tilelang_min.transform.hopper import HopperOptions

OFF = HopperOptions.of(False)
RING = {"block_M": 128, "block_N": 64, "block_K": 32, "num_stages": 3, "threads": 256}


def product(m: int, n: int, k: int, **tiles: Any) -> PrimFunc:
    return load("gemm").gemm.prim_func(m, n, k, **{"block_M": 64, "block_N": 64, "threads": 128, **tiles})


def attention(**chosen: Any) -> PrimFunc:
    sizes = {"block_M": 64, "block_N": 32, "threads": 128, "num_stages": 2, **chosen}
    return load("attention").attention.prim_func(1, 1, 128, 64, **sizes)


CASES: dict[str, tuple[PrimFunc, str, dict[str, Any]]] = {
    "product, operands a step ahead": (product(64, 64, 128), "cuda:sm_80", {"double_buffer": "always"}),
    "product, within a tile": (product(64, 64, 128), "cuda:sm_80", {"double_buffer": "tile"}),
    "product, single": (product(64, 64, 128), "cuda:sm_80", {"double_buffer": "off"}),
    "product, copies in parts": (product(64, 64, 256, block_K=64, num_stages=2), "cuda:sm_80", {}),
    "product, ragged": (product(72, 40, 129), "cuda:sm_80", {}),
    "product without asynchronous copies": (product(64, 64, 128), "cuda:sm_75", {}),
    "product, no pipeline": (product(64, 64, 128, num_stages=0), "cuda:sm_80", {}),
    "product, ring": (product(128, 64, 256, **RING), "cuda:sm_90a", {"hopper": HopperOptions(split=False)}),
    "product, no roles": (
        product(128, 64, 256, **RING),
        "cuda:sm_90a",
        {"hopper": HopperOptions(warp_specialize=False)},
    ),
    "product, no boxes": (product(128, 64, 256, **RING), "cuda:sm_90a", {"hopper": HopperOptions(tma=False)}),
    "product, no warp groups": (product(128, 64, 256, **RING), "cuda:sm_90a", {"hopper": HopperOptions(wgmma=False)}),
    "product, as on sm_80": (product(128, 64, 256, **RING), "cuda:sm_90a", {"hopper": OFF}),
    "product, Blackwell": (product(64, 64, 128), "cuda:sm_120a", {}),
    "product, CDNA": (product(64, 64, 128), "hip:gfx942", {}),
    "attention": (attention(), "cuda:sm_90a", {}),
    "attention, causal": (attention(causal=True), "cuda:sm_90a", {}),
    "attention, one after the other": (attention(), "cuda:sm_90a", {"hopper": HopperOptions(overlap=False)}),
    "attention, sm_80": (attention(), "cuda:sm_80", {}),
    "attention, CDNA": (attention(), "hip:gfx90a", {}),
    "online softmax": (load("softmax").online.prim_func(4, 1024), "cuda:sm_80", {}),
    "loops in loops": (kernel_zoo.loops(256), "cuda:sm_80", {}),
}


def iterations(kernel: PrimFunc) -> dict[int, int]:
    """Of each operation how often the loops around it run it in block 0; not of what stands in a branch."""
    program = parse(kernel)
    analyzer = Analyzer()
    for variable in program.block_variables:
        if variable is not None:
            analyzer.bind(variable, tirx.const(0, "int32"))
    found: dict[int, int] = {}

    def look(statements: Iterable[Statement], outer: int) -> None:
        for statement in statements:
            if isinstance(statement, Loop):
                extent = analyzer.simplify(statement.extent)
                if hasattr(extent, "value"):
                    look(statement.body, outer * int(extent.value))
            elif not isinstance(statement, Conditional):
                found[statement.operation] = outer

    look(program.body, 1)
    return found


def counted(kernel: PrimFunc, target: str, options: dict[str, Any]) -> tuple[dict[int, int], dict[int, str]]:
    """Of each operation its largest count by one worker in block 0 and any phase, and the operations' kinds."""
    plain = thread_program(kernel, tilelang.targets.resolve(target), **options)[2]
    program, record = instrument(plain, "operations")
    values = dict(zip((p.name for p in plain.parameters), zero_arguments(plain.parameters), strict=True))
    rows = np.zeros(record.parameter.shape, np.int64)
    result = simulate(program, {**values, record.parameter.name: rows}, blocks=[(0, 0, 0)], count=False)
    first = result.outputs[record.parameter.name][0]
    counts: dict[int, int] = {}
    for number, slot in enumerate(record.slots):
        counts[slot.operation] = max(counts.get(slot.operation, 0), int(first[:, 2 + 2 * number].max()))
    return counts, {operation.id: operation.kind for operation in plain.operations}


@pytest.mark.parametrize("name", CASES)
def test_operations_in_loops_are_counted_in_every_iteration(name: str) -> None:
    kernel, target, options = CASES[name]
    expected = iterations(kernel)
    counts, kinds = counted(kernel, target, options)
    inside = {number: times for number, times in expected.items() if times > 1 and number in counts}
    assert inside, name
    for number, times in inside.items():
        assert counts[number] >= times, (kinds[number], number, counts)


def test_shares_of_a_loop_are_counted_as_shares() -> None:
    kernel = product(128, 64, 512, **RING)
    expected = iterations(kernel)
    counts, kinds = counted(kernel, "cuda:sm_90a", {"hopper": HopperOptions(split=2)})
    products = [number for number, kind in kinds.items() if kind == "gemm"]
    assert [counts[number] for number in products] == [expected[number] // 2 for number in products] == [8]


def test_a_loop_behind_the_marker_of_a_copy_is_the_programs() -> None:
    """Clock reads are put into a loop whatever the marker in front of it says."""
    kernel, target, options = CASES["product, operands a step ahead"]
    plain = thread_program(kernel, tilelang.targets.resolve(target), **options)[2]
    copy = next(operation.id for operation in plain.operations if operation.kind == "copy")
    changed = []

    def mistake(sequence: Any) -> Any:
        items = list(sequence.seq)
        for number, following in enumerate(items[1:]):
            if isinstance(following, tirx.For) and operation_of(items[number]) is not None:
                items[number] = tirx.Evaluate(tirx.call_extern("void", OPERATION_MARKER, copy))
                changed.append(following)
        return tirx.SeqStmt(items)

    function = tvm_ffi.structural_map(plain.function, (tirx.SeqStmt, mistake))
    assert changed
    places = [instrument(program, "operations")[1].slots for program in (plain, replace(plain, function=function))]
    assert set(places[0]) <= set(places[1])
