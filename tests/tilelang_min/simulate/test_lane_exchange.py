"""Exchanges between lanes: each instruction by its definition, counted, and a missing barrier around the scratch tile found."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm import ir, tirx

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import SimulationError
from tilelang_min.program import Parameter, SourceLocation, ThreadProgram, TileOperation
from tilelang_min.simulate import simulate


def exchange(target: str, value: Any, threads: int = 128, when: Any = None) -> Any:
    """``B[t] = value(A, t)`` for every thread; ``A`` is int32 in registers."""
    pointers, flats = [], []
    for name in ("A", "B"):
        pointers.append(tirx.Var(name, ir.PointerType(ir.PrimType("int32"), "global")))
        flats.append(tirx.decl_buffer((threads,), "int32", name, data=pointers[-1], scope="global"))
    thread = tirx.Var("threadIdx_x", "int32")
    held = tirx.decl_buffer((1,), "int32", "held", scope="local")
    zero = tirx.IntImm("int32", 0)
    store: Any = tirx.BufferStore(flats[1], value(held[zero], thread), [thread])
    if when is not None:
        store = tirx.IfThenElse(when(thread), store, None)
    body: Any = tirx.SeqStmt([tirx.AllocBuffer(held), tirx.BufferStore(held, flats[0][thread], [zero]), store])
    iterator = tirx.IterVar(ir.Range(0, threads), thread, tirx.IterVar.ThreadIndex, "threadIdx.x")
    body = tirx.AttrStmt(iterator, "thread_extent", tirx.IntImm("int32", threads), body)
    declared = [tirx.DeclBuffer(flat, data=pointer) for flat, pointer in zip(flats, pointers, strict=True)]
    function = tirx.PrimFunc(pointers, tirx.SeqStmt([*declared, body])).with_attr({"global_symbol": "exchange"})
    return ThreadProgram(
        "exchange",
        tilelang.targets.resolve(target),
        function,
        (Parameter("A", "int32", (threads,), "in"), Parameter("B", "int32", (threads,), "out")),
        (1, 1, 1),
        threads,
        (),
        0,
        (TileOperation(0, "kernel", "exchange", SourceLocation("k.py", 1, 0)),),
    )


def shfl(distance: int, width: int = 32) -> Any:
    mask = tirx.IntImm("uint32", 0xFFFFFFFF)
    return lambda held, _: tirx.call_intrin("int32", "tirx.tvm_warp_shuffle_xor", mask, held, distance, width, 32)


def swizzle(offset: int) -> Any:
    return lambda held, _: tirx.call_llvm_pure_intrin(
        "int32", "llvm.amdgcn.ds.swizzle", held, tirx.IntImm("int32", offset)
    )


def permute(address: Any) -> Any:
    return lambda held, thread: tirx.call_llvm_pure_intrin("int32", "llvm.amdgcn.ds.bpermute", address(thread), held)


THREADS = np.arange(128)
CASES: dict[str, tuple[str, Any, Any]] = {
    "xor 1": ("cuda:sm_80", shfl(1), THREADS ^ 1),
    "xor 16": ("cuda:sm_80", shfl(16), THREADS ^ 16),
    "xor 8 in sections of 8": ("cuda:sm_80", shfl(8, 8), THREADS),
    "swizzle xor 4": ("hip:gfx942", swizzle(4 << 10 | 0x1F), THREADS ^ 4),
    "swizzle broadcast of lane 3 of 32": ("hip:gfx942", swizzle(3 << 5), THREADS // 32 * 32 + 3),
    "swizzle or 1": ("hip:gfx942", swizzle(1 << 5 | 0x1F), THREADS | 1),
    "swizzle of four lanes": ("hip:gfx942", swizzle(0x8000 | 0b00_01_10_11), THREADS // 4 * 4 + 3 - THREADS % 4),
    "permute to the other half": ("hip:gfx942", permute(lambda t: (t + 32) % 64 * 4), THREADS ^ 32),
    "permute backwards": ("hip:gfx942", permute(lambda t: (63 - t % 64) * 4), THREADS // 64 * 64 + 63 - THREADS % 64),
    "permute beyond the wavefront": ("hip:gfx942", permute(lambda t: (t + 64) * 4), THREADS),
}


@pytest.mark.parametrize("case", CASES)
def test_definition(case: str) -> None:
    target, value, lanes = CASES[case]
    a = np.random.default_rng(0).integers(-(2**31), 2**31, 128).astype(np.int32)
    result = simulate(exchange(target, value), {"A": a})
    assert np.array_equal(result.outputs["B"], a[lanes])
    assert result.executed[0]["move"] == 128 // tilelang.targets.resolve(target).warp_size


def test_lanes_that_do_not_take_part() -> None:
    a = np.arange(128, dtype=np.int32)
    half = exchange("cuda:sm_80", shfl(16), when=lambda thread: thread % 32 < 16)
    with pytest.raises(SimulationError, match="a lane that does not take part"):
        simulate(half, {"A": a})
    whole = exchange("cuda:sm_80", shfl(16), when=lambda thread: thread < 64)
    made = simulate(whole, {"A": a}).outputs["B"]
    assert np.array_equal(made[:64], (THREADS ^ 16)[:64])


def maxima(steps: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((steps, 1024), "float32"), B: T.Tensor((steps,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_fragment((1024,), "float32")
            high = T.alloc_fragment((1,), "float32")
            for k in T.serial(steps):
                T.copy(A[k, 0:1024], tile)
                T.reduce_max(tile, high, dim=0)
                T.copy(high, B[k])

    return main


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942"])
def test_every_barrier_of_a_reduction_is_needed(target: str) -> None:
    """With all barriers the result is right; without any one of them the simulator names the race on the scratch tile."""
    program = thread_program(maxima(4), tilelang.targets.resolve(target))[2]
    a = np.random.default_rng(0).standard_normal((4, 1024)).astype(np.float32)
    assert np.array_equal(simulate(program, {"A": a}).outputs["B"], a.max(1))
    barriers = count_barriers(program)
    assert barriers == 2  # before the parts are read, and before the next iteration writes them
    for number in range(barriers):
        with pytest.raises(SimulationError, match=r"race on shared memory: .*T\.reduce_max.* of high_parts"):
            simulate(without_barrier(program, number), {"A": a})


def is_barrier(node: Any) -> bool:
    return str(getattr(getattr(node.value, "op", None), "name", "")) == "tirx.tvm_storage_sync"


def count_barriers(program: ThreadProgram) -> int:
    found: list[Any] = []
    tvm_ffi.structural_walk(
        program.function.body, (tirx.Evaluate, lambda node: found.append(node) if is_barrier(node) else None)
    )
    return len(found)


def without_barrier(program: ThreadProgram, number: int) -> ThreadProgram:
    seen = [0]

    def replace(node: Any) -> Any:
        if not is_barrier(node):
            return node
        seen[0] += 1
        return tirx.Evaluate(tirx.IntImm("int32", 0)) if seen[0] == number + 1 else node

    body = tvm_ffi.structural_map(program.function.body, (tirx.Evaluate, replace))
    function = tirx.PrimFunc(program.function.params, body).with_attr({"global_symbol": program.name})
    return dataclasses.replace(program, function=function)


def test_scratch_is_counted() -> None:
    """Shared bytes of the block, and one store and one load of the scratch tile by the reduction itself."""
    program = thread_program(maxima(2), tilelang.targets.resolve("cuda:sm_80"))[2]
    assert [(tile.name, tile.bytes) for tile in program.shared] == [("high_parts", 16)]
    a = np.zeros((2, 1024), np.float32)
    result = simulate(program, {"A": a})
    reduction = next(operation for operation in program.operations if operation.kind == "reduce")
    shared = {(c.access, c.requests) for c in result.counts if c.space == "shared" and c.operation == reduction.id}
    assert shared == {("store", 8), ("load", 32)}  # 4 warps; 4 parts, twice
    assert result.executed[reduction.id]["move"] == 2 * 4 * 5  # 5 exchanges of 4 warps, twice
