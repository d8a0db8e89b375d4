"""Operands by way of shared memory, as a matrix product reads them: cp.async and ldmatrix on NVIDIA, wide LDS reads on AMD.

The forms here are those that work for each type; they are what lowering writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import ir, tirx
from tvm.script.tirx import ptx
from type_programs import Build, barrier, i32, load, mark, store, tvm_name

from tilelang_min.codegen import amd, nvidia
from tilelang_min.program import SharedBuffer, ThreadProgram
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.targets import MatrixInstruction, resolve

LDMATRIX = "ldmatrix.sync.aligned.m8n8.x{}{}.shared::cta.b16"


def call(text: str, *operands: Any) -> Any:
    return tirx.Evaluate(ptx[text](*operands))


def instruction(target: str, a: str, c: str, k: int | None = None) -> MatrixInstruction:
    """The target's best instruction of these types."""
    return next(
        e
        for e in resolve(target).instruction_set
        if (e.a_dtype, e.b_dtype, e.c_dtype) == (a, a, c) and k in (None, e.k)
    )


def nvidia_tile(target: str, each: MatrixInstruction, transposed_b: bool) -> ThreadProgram:
    """C = A B by one warp: A (m x k) and B (k x n, or n x k where ``transposed_b``) come by cp.async, go to registers by
    ldmatrix, which moves rows of 16 bytes whatever they hold: 8x8 elements of 16 bits, 8x16 of 8 bits, 8x4 of 32 bits.

    With 16 bits B may lie either way, since ldmatrix.trans transposes 16-bit elements; with others its rows must run
    along k.
    """
    dtype, size = each.a_dtype, DATA_TYPES[each.a_dtype].size
    b = Build(target, threads=32, name="tile")
    b_shape = (each.n, each.k) if transposed_b else (each.k, each.n)
    a_in, b_in = b.parameter("A", dtype, (each.m, each.k)), b.parameter("B", dtype, b_shape)
    out = b.parameter("C", each.c_dtype, (each.m, each.n), "out")
    # Rows of an odd number of 16-byte chunks: eight of them lie in different banks.
    row, b_row = (width + (1 - width * size // 16 % 2) * 16 // size for width in (each.k, b_shape[1]))
    a_tile, b_tile = b.shared("A_shared", dtype, each.m * row), b.shared("B_shared", dtype, b_shape[0] * b_row)
    a = b.local("a", "uint32", each.registers("a"))
    bb = b.local("b", "uint32", each.registers("b"))
    c = b.local("c", each.c_operand, each.registers("c"))
    lane, chunk = b.thread, 16 // size
    body: list[Any] = [mark(1)]
    asynchronous = "cp_async" in resolve(target).features
    for tile, source, (rows, columns), stride in (
        (a_tile, a_in, (each.m, each.k), row),
        (b_tile, b_in, b_shape, b_row),
    ):
        chunks = rows * columns // chunk
        at = (lane // (columns // chunk), lane % (columns // chunk) * chunk)
        to, of = at[0] * stride + at[1], at[0] * columns + at[1]
        move = (
            call("cp.async.cg.shared::cta.global", tile.ptr_to([to]), source.ptr_to([of]), 16)
            if asynchronous
            else store(tile, load(source, of, chunk), to, chunk)
        )
        assert chunks <= 32
        body.append(move if chunks == 32 else tirx.IfThenElse(lane < chunks, move, None))
    if asynchronous:
        body += [call("cp.async.commit_group"), call("cp.async.wait_group", 0)]
    body += [barrier(), mark(3)]
    # Matrices of 8 rows and 16 bytes: rows 0 to 7, rows 8 to 15, then the same 16 bytes on.
    count = each.registers("a")
    body.append(
        call(
            LDMATRIX.format(count, ""),
            *(a[i] for i in range(count)),
            a_tile.ptr_to([lane % 16 * row + lane // 16 * chunk if count == 4 else lane % 16 * row]),
        )
    )
    count = each.registers("b")
    along = lane % 8 * b_row + lane // 8 % 2 * chunk if transposed_b else lane % 16 * b_row
    words = [bb[i] for i in range(count)]
    body.append(call(LDMATRIX.format(count, "" if transposed_b else ".trans"), *words, b_tile.ptr_to([along])))
    accumulators = [c[i] for i in range(each.registers("c"))]
    body += [store(c, tirx.const(0, each.c_operand), i32(i)) for i in range(len(accumulators))]
    body.append(call(each.name, *accumulators, *(a[i] for i in range(each.registers("a"))), *words, *accumulators))
    body.append(mark(4))
    packed = each.c_map.items // len(accumulators)
    natural = tvm_name(each.c_dtype, packed)
    for i, value in enumerate(accumulators):
        at_row, at_column = each.c_map(lane, i * packed)
        items = value if each.c_operand == natural else tirx.reinterpret(natural, value)
        body.append(store(out, items, at_row * each.n + at_column, packed))
    return b.program(*body)


def values(dtype: str, shape: tuple[int, ...], seed: int, most: int = 15) -> Any:
    """Eighths up to ``most``, which are exact in every type and have exact sums in the accumulator."""
    rng = np.random.default_rng(seed)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=numpy_dtype(dtype))
    return (rng.integers(-most, most, shape) / 8).astype(numpy_dtype(dtype))


CASES = [
    *(
        ("cuda:sm_80", dtype, c, b)
        for dtype, c in (("float16", "float32"), ("float16", "float16"))
        for b in (False, True)
    ),
    *(("cuda:sm_80", "bfloat16", "float32", b) for b in (False, True)),
    *(("cuda:sm_80", dtype, "int32", True) for dtype in ("int8", "uint8")),
    ("cuda:sm_80", "float32", "float32", True),
    *(("cuda:sm_89", dtype, "float32", True) for dtype in ("float8_e4m3", "float8_e5m2")),
    *(("cuda:sm_75", "float16", c, b) for c in ("float32", "float16") for b in (False, True)),
]


@pytest.mark.parametrize(("target", "dtype", "c", "transposed"), CASES)
def test_nvidia_operands_through_ldmatrix(target: str, dtype: str, c: str, transposed: bool) -> None:
    each = instruction(target, dtype, c)
    program = nvidia_tile(target, each, transposed)
    most = 8 if c == "float16" or dtype == "float8_e5m2" else 15
    a = values(dtype, (each.m, each.k), 1, most)
    b = values(dtype, (each.n, each.k) if transposed else (each.k, each.n), 2, most)
    result = simulate(program, {"A": a, "B": b})
    wide_b = b.astype(np.float64).T if transposed else b.astype(np.float64)
    assert np.array_equal(result.outputs["C"].astype(np.float64), a.astype(np.float64) @ wide_b)
    loads = {count.buffer: count for count in result.counts if count.access == "ldmatrix"}
    assert [loads[name].transactions for name in ("A_shared", "B_shared")] == [
        loads[name].transactions_ideal for name in ("A_shared", "B_shared")
    ]
    kernel = nvidia.generate(program)
    opcodes = [i.opcode for i in kernel.listing.instructions]
    assert sum("LDSM" in opcode for opcode in opcodes) == 2
    assert sum("MMA" in opcode for opcode in opcodes) == 1
    assert sum("LDGSTS" in opcode for opcode in opcodes) == (0 if target == "cuda:sm_75" else 2)


@pytest.mark.parametrize("by_pointer", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "bool"])
def test_nvidia_tiles_in_the_arena(dtype: str, by_pointer: bool) -> None:
    """A view of dynamic shared memory, whose pointer is of the type in memory."""
    b = Build("cuda:sm_80", threads=32)
    source, out = b.parameter("A0", dtype, (256,)), b.parameter("B", dtype, (256,), "out")
    arena = tirx.decl_buffer((65536,), "uint8", "arena", scope="shared.dyn", data_alignment=128)
    kind = ir.PointerType(ir.PrimType(tvm_name(dtype)), "shared.dyn")
    tile = tirx.decl_buffer((256,), tvm_name(dtype), "tile", scope="shared.dyn", data_alignment=128)
    data = (
        tirx.reinterpret(kind, arena.ptr_to([1024]))
        if by_pointer
        else tirx.call_intrin(kind, "tirx.handle_add_byte_offset", arena.data, 1024)
    )
    lanes = 8
    at, other = b.thread * lanes, (31 - b.thread) * lanes
    program = b.program(
        *(tirx.AllocBuffer(arena), tirx.DeclBuffer(tile, data=data)),
        *(mark(1), store(tile, load(source, at, lanes), at, lanes), barrier()),
        *(mark(4), store(out, load(tile, other, lanes), at, lanes)),
    )
    listed = SharedBuffer("tile", dtype, (256,), 1, 1024, 256 * DATA_TYPES[dtype].size)
    program = replace(program, shared=(listed,), shared_bytes_dynamic=65536)
    given = (np.arange(256) % 100).astype(numpy_dtype(dtype))
    found = simulate(program, {"A0": given}).outputs["B"]
    assert np.array_equal(found.reshape(32, lanes), given.reshape(32, lanes)[::-1])
    kernel = nvidia.generate(program)
    assert sum("LDS" in i.opcode for i in kernel.listing.instructions) == 1


def amd_tile(target: str, each: MatrixInstruction) -> ThreadProgram:
    """C = A B by one wavefront; A and B (n x k) lie in LDS with rows along k, from where a lane reads its run of k at once."""
    dtype, size = each.a_dtype, DATA_TYPES[each.a_dtype].size
    b = Build(target, threads=64, name="tile")
    a_in, b_in = b.parameter("A", dtype, (each.m, each.k)), b.parameter("B", dtype, (each.n, each.k))
    out = b.parameter("C", each.c_dtype, (each.m, each.n), "out")
    items, results = each.a_map.items, each.c_map.items
    row = each.k + 16 // size
    tiles = [b.shared(f"{name}_shared", dtype, each.m * row) for name in "AB"]
    c = b.local("c", each.c_dtype, results)
    lane = b.thread
    runs = max(1, items * size // 16)  # reads of 16 bytes at most
    step = items // runs
    body: list[Any] = [mark(1)]
    for tile, source in zip(tiles, (a_in, b_in), strict=True):
        for part in range(runs):
            at = (lane * runs + part) * step
            body.append(store(tile, load(source, at, step), at // each.k * row + at % each.k, step))
    body += [barrier(), mark(3)]
    operands = []
    for name, tile, lane_map, kind in (
        ("a", tiles[0], each.a_map, each.a_operand),
        ("b", tiles[1], each.b_map, each.b_operand),
    ):
        held = b.local(name, dtype, items)
        first, second = lane_map(lane, 0)
        base = first * row + second if name == "a" else second * row + first
        for part in range(runs):
            body.append(store(held, load(tile, base + part * step, step), i32(part * step), step))
        value = load(held, i32(0), items)
        operands.append(value if str(value.ty.dtype) == kind else tirx.reinterpret(kind, value))
    zero = tirx.Broadcast(tirx.const(0, each.c_dtype), results)
    body.append(store(c, zero, i32(0), results))
    modifiers = [i32(value) for value in each.modifiers]
    product = tirx.call_llvm_pure_intrin(
        ir.PrimType(each.c_operand), each.name, *operands, load(c, i32(0), results), *modifiers
    )
    body += [store(c, product, i32(0), results), mark(4)]
    for item in range(results):
        at_row, at_column = each.c_map(lane, item)
        body.append(store(out, load(c, i32(item)), at_row * each.n + at_column))
    return b.program(*body)


AMD_CASES = [
    *(("hip:gfx90a", *types) for types in (("bfloat16", "float32"), ("int8", "int32"), ("float64", "float64"))),
    *(("hip:gfx942", *types) for types in (("bfloat16", "float32"), ("int8", "int32"))),
    *(("hip:gfx950", dtype, "float32") for dtype in ("float16", "bfloat16", "float8_e4m3", "float8_e5m2")),
    ("hip:gfx950", "int8", "int32"),
]


@pytest.mark.parametrize(("target", "dtype", "c"), AMD_CASES)
def test_amd_operands_through_lds(target: str, dtype: str, c: str) -> None:
    each = instruction(target, dtype, c)
    program = amd_tile(target, each)
    a, b = values(dtype, (each.m, each.k), 1), values(dtype, (each.n, each.k), 2)
    found = simulate(program, {"A": a, "B": b}).outputs["C"].astype(np.float64)
    assert np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)
    kernel = amd.generate(program)
    opcodes = [i.opcode for i in kernel.listing.instructions]
    run_bytes = each.a_map.items * DATA_TYPES[dtype].size
    reads = [opcode for opcode in opcodes if opcode.startswith("ds_read")]
    width = {1: "b8", 4: "b32", 8: "b64"}.get(run_bytes, "b128")
    assert reads, opcodes
    assert all(width in opcode for opcode in reads)
    assert sum("mfma" in opcode for opcode in opcodes) == 1
