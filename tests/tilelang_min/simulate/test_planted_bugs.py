"""Bugs planted in lowered kernels are found, each by the line that shows it; kernels as they are raise no alarm.

The kernels are products of ``workloads/kernels/matmul.py`` as lowering makes them.  One place of the thread program is changed:
a barrier taken out, a wait count raised, an index moved by one, two lanes swapped.  Every place is tried in turn.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.driver.build import thread_program
from tilelang_min.driver.fills import random_arguments
from tilelang_min.errors import SimulationError
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate
from tilelang_min.targets import resolve

ROOT = Path(__file__).resolve().parents[3]
GPUS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942")
TARGETS = ("cuda:sm_75", *GPUS, "hip:gfx950", "cpu")
SHAPE = (64, 64, 96)
KERNELS = {
    "naive": {"block": 16},
    "tiled-s1": {"num_stages": 1},
    "tiled-s2": {"num_stages": 2},
    "padded-s2": {"num_stages": 2},
    "padded-s3": {"num_stages": 3},
}
TOLERANCE = 1e-3
ANALYZER = Analyzer()


def workload(name: str) -> ModuleType:
    path = ROOT / "workloads" / "kernels" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"planted_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MATMUL = workload("matmul")


@cache
def lowered(name: str, target: str, dtype: str = "float16", shape: tuple[int, int, int] = SHAPE) -> ThreadProgram:
    factory = getattr(MATMUL, name.partition("-")[0])
    return thread_program(factory.prim_func(*shape, dtype=dtype, **KERNELS[name]), resolve(target))[2]


def places(program: ThreadProgram, kind: Any, wanted: Callable[[Any], bool]) -> int:
    """How many nodes of that kind there are."""
    found: list[Any] = []
    tvm_ffi.structural_walk(program.function.body, (kind, lambda node: found.append(node) if wanted(node) else None))
    return len(found)


def planted(
    program: ThreadProgram, kind: Any, wanted: Callable[[Any], bool], number: int, change: Callable[[Any], Any]
) -> ThreadProgram:
    """The program with the ``number``-th node of that kind changed."""
    seen = 0

    def replace(node: Any) -> Any:
        nonlocal seen
        if not wanted(node):
            return node
        seen += 1
        return change(node) if seen == number + 1 else node

    body = tvm_ffi.structural_map(program.function.body, (kind, replace))
    assert seen > number
    return dataclasses.replace(program, function=program.function.with_body(body))


def run(program: ThreadProgram) -> float:
    """Largest relative error of a simulated product; infinite where something was not written."""
    generator = np.random.default_rng(5)
    arrays = {
        parameter.name: generator.standard_normal(parameter.shape).astype(parameter.dtype)
        for parameter in program.parameters[:2]
    }
    c = simulate(program, arrays, count=False).outputs["C"].astype(np.float64)
    expected = MATMUL.reference(arrays["A"], arrays["B"])
    return float(np.abs(c - expected).max() / np.abs(expected).max()) if np.isfinite(c).all() else float("inf")


def verdict(program: ThreadProgram) -> str:
    """What the simulation finds: the text of its error, ``wrong result``, or nothing."""
    try:
        return "wrong result" if run(program) > TOLERANCE else ""
    except SimulationError as error:
        return str(error)


def call_name(node: Any) -> str:
    return str(getattr(getattr(node.value, "op", None), "name", ""))


def is_barrier(node: Any) -> bool:
    return call_name(node) == "tirx.tvm_storage_sync"


def is_wait(node: Any) -> bool:
    return "wait_group" in call_name(node)


def line_of(text: str) -> list[str]:
    """The lines of the kernel's file that a message names."""
    return [f"line {i}" for i in range(1, 100) if f"(line {i})" in text]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_as_they_are_raise_no_alarm(name: str, dtype: str, target: str) -> None:
    for shape in (SHAPE, (65, 33, 50)):
        assert verdict(lowered(name, target, dtype, shape)) == ""


REDUCTIONS: list[tuple[str, dict[str, int], int, tuple[int, int] | None]] = [
    ("softmax:rows", {}, 0, None),
    ("softmax:rows", {"block_M": 1}, 2, None),
    ("softmax:online", {}, 0, None),
    ("softmax:online", {"block_M": 1}, 2, None),
    ("rmsnorm:rmsnorm", {}, 0, None),
    ("rmsnorm:rmsnorm", {"block_M": 1}, 1, None),
    ("reductions:row_absmax", {}, 0, None),
    ("reductions:row_absmax", {"block_M": 1}, 2, (1, 256)),
    ("reductions:column_sums", {}, 2, (0, 32)),
]
"""Kernel, its options, barriers on a GPU (none where a row belongs to one warp), and dimension and step of a loop whose first
barrier, the first of the kernel, lets other threads read before the next iteration writes: with one iteration nobody needs it."""


def outcome(program: ThreadProgram) -> tuple[str, list[bytes]]:
    """The error of a simulation on random inputs, or nothing; and the bits of its outputs."""
    names = (parameter.name for parameter in program.parameters)
    inputs = dict(zip(names, random_arguments(program.parameters), strict=True))
    try:
        outputs = simulate(program, inputs, count=False).outputs
    except SimulationError as error:
        return str(error), []
    return "", [outputs[name].tobytes() for name in sorted(outputs)]


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942", "cpu"])
@pytest.mark.parametrize(("name", "options", "barriers", "loop"), REDUCTIONS, ids=lambda value: str(value))
def test_reductions(
    name: str, options: dict[str, int], barriers: int, loop: tuple[int, int] | None, target: str
) -> None:
    """No alarm as they are; every barrier is missed, but for the one that a single iteration does not need: bits stay the same."""
    file, _, factory = name.partition(":")
    for shape in ((5, 1024), (3, 1000), (70, 200)):
        kernel = getattr(workload(file), factory).prim_func(*shape, dtype="float32", **options)
        program = thread_program(kernel, resolve(target))[2]
        error, bits = outcome(program)
        assert not error
        assert any(any(each) for each in bits)
        assert places(program, tirx.Evaluate, is_barrier) == (0 if target == "cpu" else barriers)
        needless = [0] if loop is not None and shape[loop[0]] <= loop[1] else []
        for number in range(places(program, tirx.Evaluate, is_barrier)):
            bug = planted(program, tirx.Evaluate, is_barrier, number, lambda _: tirx.Evaluate(0))
            if number in needless:
                assert outcome(bug) == ("", bits)
            else:
                assert "race on shared memory" in outcome(bug)[0], (shape, number)


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "naive"])
def test_every_barrier_is_missed(name: str, target: str) -> None:
    program = lowered(name, target)
    barriers = places(program, tirx.Evaluate, is_barrier)
    assert barriers
    for number in range(barriers):
        text = verdict(planted(program, tirx.Evaluate, is_barrier, number, lambda _: tirx.Evaluate(0)))
        assert "race on shared memory" in text, (number, text)
        assert len(line_of(text)) == 2, text


def more(node: Any) -> Any:
    """A wait for one group fewer."""
    (count,) = (number for number, item in enumerate(node.value.args) if isinstance(item, tirx.IntImm))
    args = list(node.value.args)
    args[count] = tirx.IntImm("int32", int(args[count].value) + 1)
    return tirx.Evaluate(ir.Call(node.value.op, args, node.value.attrs, ret_ty=node.value.ty))


@pytest.mark.parametrize("stages", [2, 3])
def test_ldmatrix_of_wide_elements(stages: int) -> None:
    """tf32: ldmatrix counts in 2 bytes in tiles whose elements have 4; its stage is told from the others, in both directions."""
    kernel = workload("faults").single.prim_func(*SHAPE, precision="tf32", num_stages=stages)
    program = thread_program(kernel, resolve("cuda:sm_80"))[2]
    assert outcome(program)[0] == ""
    text = outcome(planted(program, tirx.Evaluate, is_wait, 0, more))[0]
    assert "may still be writing it" in text
    for number in range(places(program, tirx.Evaluate, is_barrier)):
        text = outcome(planted(program, tirx.Evaluate, is_barrier, number, lambda _: tirx.Evaluate(0)))[0]
        assert "race on shared memory" in text


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", ["tiled-s2", "padded-s2", "padded-s3"])
def test_a_wait_count_too_high(name: str, target: str) -> None:
    program = lowered(name, target)
    waits = places(program, tirx.Evaluate, is_wait)
    assert waits
    for number in range(waits):
        text = verdict(planted(program, tirx.Evaluate, is_wait, number, more))
        assert "may still be writing it" in text, (number, text)
        assert len(line_of(text)) == 2, text


def shifted(index: Any) -> Any:
    return tirx.Ramp(index.base + 1, index.stride, index.lanes) if isinstance(index, tirx.Ramp) else index + 1


def scope(buffer: Any) -> str:
    return str(buffer.ty.storage_scope) or "global"


def is_memory_store(node: Any) -> bool:
    return scope(node.buffer) != "local"


def is_memory_load(node: Any) -> bool:
    return scope(node.source) != "local"


def sample(count: int, most: int = 12) -> list[int]:
    """Some of many places, the first and the last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, most))})


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_place_off_by_one(name: str, target: str) -> None:
    """Out of range, misaligned, a race, or a wrong result: nothing goes unnoticed."""
    program = lowered(name, target)

    def store(node: Any) -> Any:
        return tirx.BufferStore(node.buffer, node.value, [shifted(node.indices[0])])

    def load(node: Any) -> Any:
        return tirx.BufferLoad(node.source, [shifted(node.indices[0])])

    found = []
    for kind, wanted, change in (
        (tirx.BufferStore, is_memory_store, store),
        (ir.TensorLoad, is_memory_load, load),
    ):
        for number in sample(places(program, kind, wanted)):
            text = verdict(planted(program, kind, wanted, number, change))
            assert text, (kind, number)
            found.append(text)
    assert len(found) > 2
    for text in found:
        assert text == "wrong result" or "matmul.py" in text


def test_an_index_beyond_the_tensor_is_named() -> None:
    """The last element of C, off by one: in range for every block but the last."""
    program = lowered("naive", "cuda:sm_80")
    last = places(program, tirx.BufferStore, is_memory_store) - 1
    bug = planted(
        program,
        tirx.BufferStore,
        is_memory_store,
        last,
        lambda node: tirx.BufferStore(node.buffer, node.value, [shifted(node.indices[0])]),
    )
    text = verdict(bug)
    assert "global store out of range" in text
    assert "accesses element 4096 of C, which has 4096" in text
    assert "T.copy(total" in text


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("name", KERNELS)
def test_two_lanes_swapped(name: str, target: str) -> None:
    """Threads 1 and 2 exchange the places of one access: of a load or a store alone, so that the data goes astray."""
    program = lowered(name, target)
    threads: list[Any] = []
    tvm_ffi.structural_walk(
        program.function.body,
        (
            tirx.AttrStmt,
            lambda node: (
                threads.append(node.node.var)
                if node.attr_key == "thread_extent" and str(node.node.thread_tag) == "threadIdx.x"
                else None
            ),
        ),
    )
    (thread,) = threads
    other = tirx.Select(
        thread.equal(1), tirx.IntImm("int32", 2), tirx.Select(thread.equal(2), tirx.IntImm("int32", 1), thread)
    )

    def swap(index: Any) -> Any:
        return tvm_ffi.structural_map(index, (tirx.Var, lambda var: other if var.same_as(thread) else var))

    def differs(index: Any) -> bool:
        """Whether the two lanes are at different places at all."""
        at = [
            tvm_ffi.structural_map(
                index, (tirx.Var, lambda v, n=n: tirx.IntImm("int32", n) if v.same_as(thread) else v)
            )
            for n in (1, 2)
        ]
        return str(ANALYZER.simplify(at[0])) != str(ANALYZER.simplify(at[1]))

    def wanted_store(node: Any) -> bool:
        return is_memory_store(node) and differs(base(node.indices[0]))

    def wanted_load(node: Any) -> bool:
        return is_memory_load(node) and differs(base(node.indices[0]))

    tried = 0
    for kind, wanted, change in (
        (
            tirx.BufferStore,
            wanted_store,
            lambda node: tirx.BufferStore(node.buffer, node.value, [swap(node.indices[0])]),
        ),
        (ir.TensorLoad, wanted_load, lambda node: tirx.BufferLoad(node.source, [swap(node.indices[0])])),
    ):
        for number in sample(places(program, kind, wanted), 6):
            assert verdict(planted(program, kind, wanted, number, change)), (kind, number)
            tried += 1
    assert tried > 1


def base(index: Any) -> Any:
    return index.base if isinstance(index, tirx.Ramp) else index
