"""Thread programs written by hand in the form that lowering makes, for the tests of the NVIDIA code generator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amd_programs import Build, barrier, f32, load, local, loop, mark, store, var
from tvm import ir, tirx
from tvm.script.tirx import ptx

from tilelang_min.program import SharedBuffer, SourceLocation, ThreadProgram, TileOperation

FILE = "/home/author/kernel.py"
STAGE_TYPES = {"float16": 2, "float32": 4}


def operations(*entries: tuple[str, int]) -> tuple[TileOperation, ...]:
    """Operations 0, 1, 2, ... from (kind, line)."""
    return tuple(
        TileOperation(i, kind, f"{kind} {i}", SourceLocation(FILE, line, 4), None if i == 0 else 0)
        for i, (kind, line) in enumerate(entries)
    )


def instruction(text: str, *operands: Any) -> Any:
    """A statement that is one PTX instruction."""
    return tirx.Evaluate(ptx[text](*operands))


def mma_tile(target: str = "cuda:sm_80", lines: tuple[int, ...] = (3, 5, 6, 7, 8)) -> ThreadProgram:
    """C[16, 8] = A[16, 16] B[16, 8] by one warp: cp.async, guarded copy, ldmatrix, one mma.  Operations 0 to 4."""
    b = Build("mma_tile", (1, 1, 1), 32, target)
    a_in, b_in = b.parameter("A", "float16", (16, 16)), b.parameter("B", "float16", (16, 8))
    out = b.parameter("C", "float32", (16, 8), "out")
    a_tile, b_tile = b.shared("A_shared", "float16", (16, 24)), b.shared("B_shared", "float16", (16, 8))
    a, bb, c = local("a", 4, "uint32"), local("b", 2, "uint32"), local("c", 4, "float32")
    i, j, tx = var("i"), var("j"), b.tx
    size = tirx.Cast("uint32", tirx.Select(tx < 32, tirx.IntImm("int32", 16), tirx.IntImm("int32", 0)))
    accumulators = [c[n] for n in range(4)]
    body = [
        mark(1),
        loop(i, 4, store(c, f32(0.0), i), unroll=True),
        mark(2),
        instruction(
            "cp.async.cg.shared::cta.global",
            a_tile.ptr_to([tx // 2 * 24 + tx % 2 * 8]),
            a_in.ptr_to([tx * 8]),
            16,
            size,
        ),
        tirx.IfThenElse(tx < 16, store(b_tile, load(b_in, tx * 8, 8), tx * 8, 8), None),
        instruction("cp.async.commit_group"),
        instruction("cp.async.wait_group", 0),
        barrier(),
        mark(3),
        instruction(
            "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16",
            *(a[n] for n in range(4)),
            a_tile.ptr_to([tx % 16 * 24 + tx // 16 * 8]),
        ),
        instruction("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16", bb[0], bb[1], b_tile.ptr_to([tx % 16 * 8])),
        instruction(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            *accumulators,
            *(a[n] for n in range(4)),
            bb[0],
            bb[1],
            *accumulators,
        ),
        mark(4),
        loop(j, 2, store(out, load(c, j * 2, 2), (tx // 4 + j * 8) * 8 + tx % 4 * 2, 2)),
    ]
    kinds = ("kernel", "fill", "copy", "gemm", "copy")
    return b.program(operations(*zip(kinds, lines)), body, [a, bb, c])


def gemm(target: str = "cuda:sm_80", size: int = 1024, stages: int = 3, pad: int = 8) -> ThreadProgram:
    """C = A B, float16 to float32: 128x128x32 tiles in dynamic shared memory, 4 warps of 64x64, cp.async, ldmatrix, mma.

    Operations: 0 kernel, 1 clear, 2 loop, 3 copy A, 4 copy B, 5 gemm, 6 copy C.
    """
    bm, bn, bk = 128, 128, 32
    b = Build("gemm", (size // bn, size // bm, 1), 128, target)
    a_in, b_in = b.parameter("A", "float16", (size, size)), b.parameter("B", "float16", (size, size))
    out = b.parameter("C", "float32", (size, size), "out")
    a_row, b_row = bk + pad, bn + pad
    arena = Arena()
    a_tile = arena.tile("A_shared", (bm, a_row), stages)
    b_tile = arena.tile("B_shared", (bk, b_row), stages)
    a, bb, c = local("a", 16, "uint32"), local("b", 16, "uint32"), local("c", 128, "float32")
    tx, lane, warp_m, warp_n = b.tx, b.tx % 32, b.tx // 32 // 2, b.tx // 32 % 2
    tiles = size // bk

    def copy_a(k: Any) -> Any:
        v = var("pa")
        row, col = v * 32 + tx // 4, tx % 4 * 8
        to = a_tile.ptr_to([k % stages * (bm * a_row) + row * a_row + col])
        return loop(v, 4, async_copy(to, a_in.ptr_to([(b.by * bm + row) * size + k * bk + col])), unroll=True)

    def copy_b(k: Any) -> Any:
        v = var("pb")
        row, col = v * 8 + tx // 16, tx % 16 * 8
        to = b_tile.ptr_to([k % stages * (bk * b_row) + row * b_row + col])
        return loop(v, 4, async_copy(to, b_in.ptr_to([(k * bk + row) * size + b.bx * bn + col])), unroll=True)

    def multiply(stage: Any) -> list[Any]:
        kk, fm, fn, m, n = (var(name) for name in ("kk", "fm", "fn", "m", "n"))
        a_at = stage * (bm * a_row) + (warp_m * 64 + fm * 16 + lane % 16) * a_row + kk * 16 + lane // 16 * 8
        b_at = stage * (bk * b_row) + (kk * 16 + lane % 16) * b_row + warp_n * 64 + fn * 16 + lane // 16 * 8
        acc = [c[(m * 8 + n) * 4 + item] for item in range(4)]
        body = [
            loop(
                fm,
                4,
                instruction(
                    "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16",
                    *(a[fm * 4 + i] for i in range(4)),
                    a_tile.ptr_to([a_at]),
                ),
                unroll=True,
            ),
            loop(
                fn,
                4,
                instruction(
                    "ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16",
                    *(bb[fn * 4 + i] for i in range(4)),
                    b_tile.ptr_to([b_at]),
                ),
                unroll=True,
            ),
            loop(
                m,
                4,
                loop(
                    n,
                    8,
                    instruction(
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                        *acc,
                        *(a[m * 4 + i] for i in range(4)),
                        bb[n * 2],
                        bb[n * 2 + 1],
                        *acc,
                    ),
                    unroll=True,
                ),
                unroll=True,
            ),
        ]
        return [loop(kk, bk // 16, body, unroll=True)]

    i, ko, em, en, eh = (var(name) for name in ("i", "ko", "em", "en", "eh"))
    prologue: list[Any] = []
    for k in range(stages - 1):
        stage = tirx.IntImm("int32", k)
        prologue += [mark(3), copy_a(stage), mark(4), copy_b(stage), instruction("cp.async.commit_group")]
    ahead = ko + (stages - 1)
    c_row = b.by * bm + warp_m * 64 + em * 16 + eh * 8 + lane // 4
    c_col = b.bx * bn + warp_n * 64 + en * 8 + lane % 4 * 2
    body = [
        mark(1),
        loop(i, 128, store(c, f32(0.0), i), unroll=True),
        *prologue,
        mark(2),
        loop(
            ko,
            tiles,
            [
                mark(2),
                instruction("cp.async.wait_group", stages - 2),
                barrier(),
                tirx.IfThenElse(ahead < tiles, tirx.SeqStmt([mark(3), copy_a(ahead), mark(4), copy_b(ahead)]), None),
                instruction("cp.async.commit_group"),
                mark(5),
                *multiply(ko % stages),
            ],
        ),
        mark(6),
        loop(
            em,
            4,
            loop(
                en,
                8,
                loop(eh, 2, store(out, load(c, (em * 8 + en) * 4 + eh * 2, 2), c_row * size + c_col, 2), unroll=True),
                unroll=True,
            ),
            unroll=True,
        ),
    ]
    kinds = operations(
        ("kernel", 10), ("fill", 14), ("loop", 15), ("copy", 16), ("copy", 17), ("gemm", 18), ("copy", 19)
    )
    made = b.program(kinds, [*arena.declarations(), *body], [a, bb, c])
    return replace(made, shared=tuple(arena.buffers), shared_bytes_dynamic=arena.bytes)


def async_copy(destination: Any, source: Any) -> Any:
    """16 bytes, all of them."""
    return instruction("cp.async.cg.shared::cta.global", destination, source, 16, tirx.IntImm("uint32", 16))


class Arena:
    """Dynamic shared memory: one byte array with typed views."""

    def __init__(self) -> None:
        self.views: list[tuple[Any, int]] = []
        self.buffers: list[SharedBuffer] = []
        self.bytes = 0

    def tile(self, name: str, shape: tuple[int, int], stages: int, dtype: str = "float16") -> Any:
        """A view of the next free bytes."""
        count = shape[0] * shape[1] * stages
        pointer = tirx.Var(f"{name}_data", ir.PointerType(ir.PrimType(dtype), "shared.dyn"))
        view = tirx.decl_buffer((count,), dtype, name, data=pointer, scope="shared.dyn", data_alignment=128)
        self.buffers.append(SharedBuffer(name, dtype, shape, stages, self.bytes, count * STAGE_TYPES[dtype]))
        self.views.append((view, self.bytes))
        self.bytes += -(-count * STAGE_TYPES[dtype] // 128) * 128
        return view

    def declarations(self) -> list[Any]:
        """The allocation and the views."""
        arena = tirx.decl_buffer((self.bytes,), "uint8", "arena", scope="shared.dyn", data_alignment=128)
        statements: list[Any] = [tirx.AllocBuffer(arena)]
        for view, offset in self.views:
            kind = ir.PointerType(view.ty.dtype, "shared.dyn")
            statements.append(tirx.DeclBuffer(view, data=tirx.reinterpret(kind, arena.ptr_to([offset]))))
        return statements


def halves(target: str = "cuda:sm_80") -> ThreadProgram:
    """float16 in and out, float32 in between, in two operations: conversions come from a header's functions."""
    b = Build("halves", (4, 1, 1), 64, target)
    source = b.parameter("A", "float16", (2048,))
    one, two = b.parameter("B", "float16", (2048,), "out"), b.parameter("C", "float16", (2048,), "out")
    held = local("held", 8, "float32")
    at = b.bx * 512 + b.tx * 8

    def scaled(factor: float) -> Any:
        return tirx.Cast("float16x8", load(held, 0, 8) * tirx.Broadcast(f32(factor), 8))

    body = [
        mark(1),
        store(held, tirx.Cast("float32x8", load(source, at, 8)), 0, 8),
        mark(2),
        store(one, scaled(3.0), at, 8),
        mark(3),
        store(two, scaled(5.0), at, 8),
    ]
    kinds = operations(("kernel", 1), ("copy", 2), ("parallel", 3), ("parallel", 4))
    return b.program(kinds, body, [held])


def divide(target: str = "cuda:sm_80", both: bool = False) -> ThreadProgram:
    """C = A / B in operation 2, and with ``both`` D = B / A in operation 3; ptxas makes division a subroutine."""
    b = Build("divide", (1, 1, 1), 32, target)
    left, right = b.parameter("A", "float32", (32,)), b.parameter("B", "float32", (32,))
    one, two = b.parameter("C", "float32", (32,), "out"), b.parameter("D", "float32", (32,), "out")
    x, y = local("x", 1, "float32"), local("y", 1, "float32")
    body = [
        mark(1),
        store(x, load(left, b.tx), 0),
        store(y, load(right, b.tx), 0),
        mark(2),
        store(one, tirx.Div(x[0], y[0]), b.tx),
    ]
    if both:
        body += [mark(3), store(two, tirx.Div(y[0], x[0]), b.tx)]
    kinds = operations(("kernel", 1), ("copy", 2), ("parallel", 3), ("parallel", 4))
    return b.program(kinds, body, [x, y])
