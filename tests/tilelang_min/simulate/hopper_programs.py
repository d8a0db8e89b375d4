"""Thread programs of Hopper written by hand, for the tests of the simulator: products of warp groups fed by bulk copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from thread_programs import Build, i32, instruction, load, local, loop, mark, sequence, store, var, when
from tvm import ir, tirx
from tvm.script.tirx import cuda

from tilelang_min.program import SharedBuffer, TensorMap, ThreadProgram

LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.{}.tile.bulk_group"
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1}
WORDS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
}


def u32(value: Any) -> Any:
    return tirx.IntImm("uint32", value) if isinstance(value, int) else tirx.Cast("uint32", value)


class Hopper(Build):
    """Collects parameters, tensor maps, mbarriers and tiles (in dynamic shared memory, on 1,024 bytes)."""

    def __init__(
        self, threads: int = 128, grid: tuple[int, int, int] = (1, 1, 1), cluster: tuple[int, int, int] = (1, 1, 1)
    ) -> None:
        super().__init__("cuda:sm_90a", grid, threads)
        self.cluster = cluster
        self.maps: list[TensorMap] = []
        self.map_vars: dict[str, Any] = {}
        self.used = 0

    def tensor_map(self, parameter: str, box: tuple[int, ...], swizzle: int, name: str = "") -> Any:
        described = next(p for p in self.parameters if p.name == parameter)
        name = name or f"{parameter}_map"
        self.maps.append(TensorMap(name, parameter, described.dtype, described.shape, box, swizzle))
        self.map_vars[name] = tirx.Var(name, ir.PointerType(tirx.type.TensorMapType()))
        return self.map_vars[name]

    def tile(self, name: str, dtype: str, elements: int, alignment: int = 1024) -> Any:
        if self.arena is None:
            self.arena = tirx.decl_buffer((200 * 1024,), "uint8", "arena", scope="shared.dyn", data_alignment=1024)
        offset = -(-self.used // alignment) * alignment
        size = elements * (8 if dtype == "uint64" else 4 if dtype in ("uint32", "int32") else BYTES[dtype])
        self.used = offset + size
        self.shared_buffers.append(SharedBuffer(name, dtype, (elements,), 1, offset, size))
        pointer = ir.PointerType(ir.PrimType(dtype), "shared.dyn")
        buffer = tirx.decl_buffer((elements,), dtype, name, scope="shared.dyn", data_alignment=128)
        self.views.append(tirx.DeclBuffer(buffer, data=tirx.reinterpret(pointer, self.arena.ptr_to([offset]))))
        return buffer

    def program(self, *body: Any, locals: Sequence[Any] = ()) -> ThreadProgram:
        self.pointers += list(self.map_vars.values())
        made = super().program(*body, locals=locals)
        return replace(made, tensor_maps=tuple(self.maps), cluster=self.cluster)


def init(barriers: Any, number: Any, count: int) -> Any:
    return instruction("mbarrier.init.shared::cta.b64", barriers.ptr_to([number]), u32(count))


def fence_init() -> Any:
    return instruction("fence.mbarrier_init.release.cluster")


def fence_proxy() -> Any:
    return instruction("fence.proxy.async.shared::cta")


def arrive(barriers: Any, number: Any) -> Any:
    return instruction("mbarrier.arrive.shared::cta.b64", barriers.ptr_to([number]))


def expect(barriers: Any, number: Any, size: int) -> Any:
    return instruction("mbarrier.arrive.expect_tx.shared::cta.b64", barriers.ptr_to([number]), u32(size))


def await_phase(barriers: Any, number: Any, parity: Any, ok: Any) -> Any:
    wait = instruction("mbarrier.try_wait.parity.shared::cta.b64", ok[0], barriers.ptr_to([number]), u32(parity))
    return sequence(store(ok, tirx.IntImm("uint32", 0), 0), tirx.While(tirx.EQ(ok[0], tirx.IntImm("uint32", 0)), wait))


def box_load(tensor_map: Any, tile: Any, place: Any, coordinates: Sequence[Any], barriers: Any, number: Any) -> Any:
    text = LOAD.format(len(coordinates))
    return instruction(text, tile.ptr_to([place]), tirx.address_of(tensor_map), *coordinates, barriers.ptr_to([number]))


def box_store(tensor_map: Any, tile: Any, place: Any, coordinates: Sequence[Any], reduction: str = "") -> Any:
    text = (REDUCE if reduction else STORE).format(len(coordinates), reduction)
    return instruction(text, tirx.address_of(tensor_map), *coordinates, tile.ptr_to([place]))


def fence() -> Any:
    return instruction("wgmma.fence.sync.aligned")


def commit_product() -> Any:
    return instruction("wgmma.commit_group.sync.aligned")


def wait_product(left: int = 0) -> Any:
    return instruction("wgmma.wait_group.sync.aligned", left)


def descriptor(tile: Any, place: Any, leading: int, stride: int, swizzle: int) -> Any:
    """A matrix descriptor as an expression of 64 bits."""
    address = tirx.Cast("uint64", cuda.cvta_generic_to_shared(tile.ptr_to([place])))
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    rest = leading >> 4 << 16 | stride >> 4 << 32 | mode << 62
    part = tirx.bitwise_and(address, tirx.IntImm("uint64", 0x3FFFF))
    return tirx.bitwise_or(
        tirx.shift_right(part, tirx.IntImm("uint64", 4)), tirx.Cast("uint64", tirx.const(rest, "uint64"))
    )


def ring_gemm(
    m: int = 128,
    n: int = 64,
    k: int = 256,
    *,
    stages: int = 2,
    missing: str = "",
    expected: int | None = None,
    transposed_b: bool = True,
) -> ThreadProgram:
    """C = A B in float16 to float32 by blocks of 128 x 64 x 64: a producer, two consumer warp groups, a ring of stages.

    ``missing`` leaves something out: see the tests.  Operations: 1 set up, 2 loads, 3 product, 4 result, 5 waits of the producer.
    ``transposed_b``: B is (k, n) in memory and MN-major in shared memory, else (n, k).
    """
    bm, bn, bk = 128, 64, 64
    b = Hopper(384, (-(-n // bn), -(-m // bm), 1))
    b.parameter("A", "float16", (m, k))
    b.parameter("B", "float16", (k, n) if transposed_b else (n, k))
    out = b.parameter("C", "float32", (m, n), "out")
    a_map = b.tensor_map("A", (bm, bk), 128)
    b_map = b.tensor_map("B", (bk, bn) if transposed_b else (bn, bk), 128)
    a_tile, b_tile = b.tile("A_shared", "float16", stages * bm * bk), b.tile("B_shared", "float16", stages * bn * bk)
    bars = b.tile("barriers", "uint64", 2 * stages, 128)
    acc, ok = local("acc", bn // 2), local("ok", 1, "uint32")
    tx, ko, ki, z, r = b.tx, var("ko"), var("ki"), var("z"), var("r")
    group = tx // 128
    steps = -(-k // bk)

    def skip(what: str, *body: Any) -> list[Any]:
        return [] if missing == what else list(body)

    stage, phase = ko % stages, ko // stages % 2
    size = (bm + bn) * bk * 2 if expected is None else expected
    origin = [ko * bk, b.by * bm]
    b_origin = [b.bx * bn, ko * bk] if transposed_b else [ko * bk, b.bx * bn]
    produce = when(
        tx % 128 == 0,
        loop(
            ko,
            steps,
            mark(5),
            *skip("empty", await_phase(bars, stages + stage, 1 - phase, ok)),
            mark(2),
            expect(bars, stage, size),
            box_load(a_map, a_tile, stage * (bm * bk), origin, bars, stage),
            box_load(b_map, b_tile, stage * (bn * bk), b_origin, bars, stage),
        ),
    )
    stage, phase = ki % stages, ki // stages % 2

    def product(step: int) -> Any:
        a_bits = descriptor(a_tile, stage * (bm * bk) + (group - 1) * (64 * bk) + step * 16, 16, 1024, 128)
        if transposed_b:
            b_bits = descriptor(b_tile, stage * (bn * bk) + step * 16 * bn, 64 * bk * 2, 1024, 128)
        else:
            b_bits = descriptor(b_tile, stage * (bn * bk) + step * 16, 16, 1024, 128)
        accumulate = True if step else tirx.NE(ki, i32(0))
        return instruction(
            f"wgmma.mma_async.sync.aligned.m64n{bn}k16.f32.f16.f16",
            *(acc[i] for i in range(bn // 2)),
            *(a_bits, b_bits, accumulate, 1, 1, 0, int(transposed_b)),
        )

    row = b.by * bm + (group - 1) * 64 + tx % 128 // 32 * 16 + tx % 32 // 4 + r % 2 * 8
    column = b.bx * bn + r // 2 * 8 + tx % 4 * 2
    consume = sequence(
        loop(
            ki,
            steps,
            mark(3),
            *skip("full", await_phase(bars, stage, phase, ok)),
            *skip("fence", fence()),
            *(product(step) for step in range(bk // 16)),
            commit_product(),
            *skip("wait", wait_product()),
            *skip("release", when(tx % 128 == 0, arrive(bars, stages + stage))),
        ),
        mark(4),
        loop(
            r,
            bn // 4,
            when(tirx.And(row < m, column < n), store(out, load(acc, r * 2, 2), row * n + column, 2)),
            unroll=True,
        ),
    )
    counts = {"full": 1, "empty": 3 if missing == "count" else 2}
    return b.program(
        mark(1),
        when(
            tx == 0,
            loop(z, stages, init(bars, z, counts["full"]), init(bars, stages + z, counts["empty"])),
            *skip("init_fence", fence_init()),
        ),
        *skip("sync", tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))),
        when(group == 0, produce, other=consume),
        locals=[acc, ok],
    )


def reference(a: Any, b: Any) -> Any:
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def single_product(
    dtype: str,
    other: str = "",
    *,
    n: int = 16,
    swizzle: int = 128,
    result: str = "f32",
    a_major: str = "k",
    b_major: str = "k",
    registers: bool = False,
    accumulate: Any = True,
    early: bool = False,
    sign: int = 1,
    threads: int = 128,
    only: int | None = None,
) -> ThreadProgram:
    """D[64, n] = A[64, k] B[n, k]^T (+ D) of one warp group, k as many elements as 128 bytes hold.

    ``a_major`` and ``b_major``: ``k`` (the tensor is (64, k)) or ``mn`` ((k, 64)).  D starts as 2.  Operations: 1 set up, 2 loads,
    3 product, 4 result.
    """
    other = other or dtype
    size = BYTES[dtype]
    k, step = 128 // size, 32 // size
    b = Hopper(threads)
    b.parameter("A", dtype, (64, k) if a_major == "k" else (k, 64))
    b.parameter("B", other, (n, k) if b_major == "k" else (k, n))
    kind = {"f32": "float32", "s32": "int32", "f16": "float16"}[result]
    out = b.parameter("D", kind, (64, n), "out")
    bars = b.tile("barriers", "uint64", 1, 128)
    word = "float32" if result == "f32" else "uint32"
    count = n // 2 if result != "f16" else n // 4
    acc, ok, frag, pair = (
        local("acc", count, word),
        local("ok", 1, "uint32"),
        local("frag", 4, "uint32"),
        local("pair", 1, "uint32"),
    )
    tx, z, r = b.tx, var("z"), var("r")
    wide = swizzle or 16  # bytes of the rows of a box
    loads: list[Any] = []

    def bring(name: str, major: str, extent: int) -> tuple[Any, Any]:
        """Loads a tile in boxes of ``wide`` bytes; returns it and the descriptor of a step along k."""
        kind = dtype if name == "A" else other
        tile = b.tile(f"{name}_shared", kind, extent * k)
        columns, rows = (k, extent) if major == "k" else (extent, k)
        box = b.tensor_map(name, (rows, wide // size), swizzle)
        for part in range(columns * size // wide):
            loads.append(box_load(box, tile, part * rows * (wide // size), [part * (wide // size), 0], bars, 0))
        panel = rows * wide

        def bits(at: int) -> Any:
            byte = at * 32
            if major == "k" and swizzle:
                start, leading, stride = byte // wide * panel + byte % wide, 16, 8 * wide
            elif major == "k":
                start, leading, stride = byte // 16 * panel, panel, 128
            elif swizzle:
                start, leading, stride = at * 16 * wide, panel, 8 * wide
            else:
                start, leading, stride = at * 16 * wide, 128, panel
            return descriptor(tile, start // size, leading, stride, swizzle)

        return tile, bits

    _, b_bits = bring("B", b_major, n)
    a_buffer = b.buffers[0]
    body: list[Any] = []
    if not registers:
        _, a_bits = bring("A", a_major, 64)
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{step}.{result}.{WORDS[dtype]}.{WORDS[other]}"
    floats = result != "s32"
    turned = dtype in ("float16", "bfloat16")
    for at in range(k // step):
        operands: list[Any] = [acc[i] for i in range(count)]
        if registers:
            body.append(mark(2))
            words = step // 8 if size < 4 else 1  # elements of a register
            for i in range(4):
                row = tx // 32 * 16 + tx % 32 // 4 + i % 2 * 8
                column = at * step + tx % 4 * words + i // 2 * 4 * words
                value = load(a_buffer, row * k + column, words)
                body.append(store(frag, tirx.reinterpret("uint32", value), i))
            body += [mark(3), fence()]
            operands += [*(frag[i] for i in range(4)), b_bits(at)]
        else:
            operands += [a_bits(at), b_bits(at)]
        operands.append(accumulate)
        operands += [sign, 1] if floats else []
        operands += ([] if registers else [int(a_major == "mn")]) + [int(b_major == "mn")] if turned else []
        body.append(instruction(name, *operands))
        if registers:
            body += [commit_product(), wait_product()]
    if not early:
        body += [commit_product(), wait_product()]
    if only is not None:  # a wait among the products, by threads below ``only`` alone
        body = [when(tx < only, await_phase(bars, 0, 0, ok), *body)]
    two = {"f32": tirx.FloatImm("float32", 2.0), "s32": u32(2), "f16": u32(0x40004000)}[result]
    row = tx // 32 * 16 + tx % 32 // 4 + r % 2 * 8
    column = r // 2 * 8 + tx % 4 * 2
    if result == "f32":
        write = store(out, load(acc, r * 2, 2), row * n + column, 2)
    elif result == "s32":
        write = store(out, tirx.reinterpret("int32x2", load(acc, r * 2, 2)), row * n + column, 2)
    else:
        write = store(out, tirx.reinterpret("float16x2", acc[r]), row * n + column, 2)
    size_loaded = n * 128 + (0 if registers else 64 * 128)
    return b.program(
        mark(1),
        when(tx == 0, init(bars, 0, 1), fence_init()),
        tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared")),
        loop(z, count, store(acc, two, z), unroll=True),
        mark(2),
        when(tx == 0, expect(bars, 0, size_loaded), *loads),
        await_phase(bars, 0, 0, ok),
        mark(3),
        fence(),
        *body,
        mark(4),
        loop(r, n // 4, write, unroll=True),
        locals=[acc, ok, frag, pair],
    )
