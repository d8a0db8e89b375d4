"""Thread programs written by hand in the form that lowering makes, for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir, tirx
from tvm.script.tirx import ptx

from tilelang_min.program import Parameter, SharedBuffer, SourceLocation, ThreadProgram, TileOperation
from tilelang_min.targets import resolve

ITEMSIZE = {"float16": 2, "float32": 4, "int32": 4, "uint32": 4, "uint8": 1}
CG16 = "cp.async.cg.shared::cta.global"
CA = "cp.async.ca.shared::cta.global"
LDMATRIX_X4 = "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16"
LDMATRIX_X4_TRANS = "ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16"
LDMATRIX_X2_TRANS = "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16"
LDMATRIX_X1 = "ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16"
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def var(name: str) -> Any:
    return tirx.Var(name, "int32")


def i32(value: int) -> Any:
    return tirx.IntImm("int32", value)


def f32(value: float) -> Any:
    return tirx.FloatImm("float32", value)


def at(index: Any, lanes: int = 1) -> Any:
    return index if lanes == 1 else tirx.Ramp(index, 1, lanes)


def load(buffer: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferLoad(buffer, [at(index, lanes)])


def store(buffer: Any, value: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferStore(buffer, value, [at(index, lanes)])


def splat(value: Any, lanes: int) -> Any:
    return tirx.Broadcast(value, lanes)


def loop(v: Any, extent: Any, *body: Any, unroll: bool = False) -> Any:
    kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL
    return tirx.For(v, 0, extent, kind, sequence(*body))


def sequence(*body: Any) -> Any:
    return body[0] if len(body) == 1 else tirx.SeqStmt(list(body))


def when(condition: Any, *body: Any, other: Any = None) -> Any:
    return tirx.IfThenElse(condition, sequence(*body), other)


def choose(condition: Any, a: Any, b: Any) -> Any:
    return tirx.if_then_else(condition, a, b)


def mark(operation: int) -> Any:
    return tirx.Evaluate(tirx.call_extern("void", "__tl_op", operation))


def barrier() -> Any:
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))


def instruction(text: str, *operands: Any) -> Any:
    return tirx.Evaluate(ptx[text](*operands))


def commit() -> Any:
    return instruction("cp.async.commit_group")


def wait(groups: int) -> Any:
    return instruction("cp.async.wait_group", groups)


def local(name: str, count: int, dtype: str = "float32") -> Any:
    return tirx.decl_buffer((count,), dtype, name, scope="local", data_alignment=16)


class Build:
    """Collects parameters and shared tiles of one thread program, then wraps a body into it.

    Operation n is called ``operation n`` and stands on line 10 + n of ``kernel.py``.
    """

    def __init__(
        self,
        target: str = "cuda:sm_80",
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: int = 32,
        name: str = "kernel",
    ) -> None:
        self.target, self.grid, self.threads, self.name = resolve(target), grid, threads, name
        self.bx, self.by, self.bz, self.tx = (var(n) for n in ("blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x"))
        self.block = var("block")
        self.pointers: list[Any] = []
        self.buffers: list[Any] = []
        self.parameters: list[Parameter] = []
        self.tiles: list[Any] = []
        self.shared_buffers: list[SharedBuffer] = []
        self.views: list[Any] = []
        self.arena: Any = None

    def parameter(self, name: str, dtype: str, shape: tuple[int, ...], access: str = "in") -> Any:
        parameter = Parameter(name, dtype, shape, access)
        pointer = tirx.Var(name, ir.PointerType(ir.PrimType(dtype), "global"))
        buffer = tirx.decl_buffer((parameter.elements,), dtype, name, data=pointer, data_alignment=16)
        self.parameters.append(parameter)
        self.pointers.append(pointer)
        self.buffers.append(buffer)
        return buffer

    def shared(self, name: str, dtype: str, elements: int) -> Any:
        self._list(name, dtype, elements)
        self.tiles.append(tirx.decl_buffer((elements,), dtype, name, scope="shared", data_alignment=128))
        return self.tiles[-1]

    def view(self, name: str, dtype: str, elements: int, *, by_pointer: bool = True) -> Any:
        """A tile in the arena of dynamic shared memory."""
        if self.arena is None:
            self.arena = tirx.decl_buffer((96 * 1024,), "uint8", "arena", scope="shared.dyn", data_alignment=128)
        offset = self._list(name, dtype, elements)
        pointer = ir.PointerType(ir.PrimType(dtype), "shared.dyn")
        buffer = tirx.decl_buffer((elements,), dtype, name, scope="shared.dyn", data_alignment=128)
        data = (
            tirx.reinterpret(pointer, self.arena.ptr_to([offset]))
            if by_pointer
            else tirx.call_intrin(pointer, "tirx.handle_add_byte_offset", self.arena.data, offset)
        )
        self.views.append(tirx.DeclBuffer(buffer, data=data))
        return buffer

    def _list(self, name: str, dtype: str, elements: int) -> int:
        offset = sum(-(-s.bytes // 128) * 128 for s in self.shared_buffers)
        self.shared_buffers.append(SharedBuffer(name, dtype, (elements,), 1, offset, elements * ITEMSIZE[dtype]))
        return offset

    def program(self, *body: Any, locals: Sequence[Any] = ()) -> ThreadProgram:
        allocations = [
            tirx.AllocBuffer(t) for t in [*([self.arena] if self.arena is not None else []), *self.tiles, *locals]
        ]
        statement: Any = tirx.SeqStmt([*allocations, *self.views, *body, mark(0)])
        parameters: list[Any] = list(self.pointers)
        if self.target.kind == "cpu":
            begin, end = var("block_begin"), var("block_end")
            parameters += [begin, end]
            statement = tirx.For(self.block, begin, end - begin, tirx.ForKind.SERIAL, statement)
        else:
            extents = [("threadIdx.x", self.tx, self.threads), ("blockIdx.z", self.bz, self.grid[2])]
            extents += [("blockIdx.y", self.by, self.grid[1]), ("blockIdx.x", self.bx, self.grid[0])]
            for tag, v, n in extents:
                axis = tirx.IterVar(ir.Range(0, n), v, tirx.IterVar.ThreadIndex, tag)
                statement = tirx.AttrStmt(axis, "thread_extent", n, statement)
        declarations = [tirx.DeclBuffer(b, data=p) for b, p in zip(self.buffers, self.pointers)]
        function = tirx.PrimFunc(parameters, sequence(*declarations, statement))
        return ThreadProgram(
            name=self.name,
            target=self.target,
            function=function.with_attr({"global_symbol": self.name, "tirx.noalias": True}),
            parameters=tuple(self.parameters),
            grid=self.grid,
            threads=self.threads,
            shared=tuple(self.shared_buffers),
            shared_bytes_dynamic=96 * 1024 if self.arena is not None else 0,
            operations=tuple(
                TileOperation(i, "copy", f"operation {i}", SourceLocation("kernel.py", 10 + i, 4)) for i in range(8)
            ),
        )


def copy_through_shared(row: int, grid: tuple[int, int, int] = (2, 2, 1), unroll: bool = False) -> ThreadProgram:
    """B = 2 A for float32 of 32 x 32 tiles: rows written as vectors of 4, columns read back by single elements.

    ``row`` is the distance of rows in shared memory.  Operation 1 fills the tile, operation 2 empties it by columns:
    lane c of a warp reads row c, one column at a time.
    """
    b = Build(grid=grid, threads=64)
    n = 32 * grid[0]
    a_in = b.parameter("A", "float32", (32 * grid[1], n))
    out = b.parameter("B", "float32", (32 * grid[1], n), "out")
    tile = b.shared("tile", "float32", 32 * row)
    i, j, tx = var("i"), var("j"), b.tx
    r, c = i * 8 + tx // 8, tx % 8 * 4
    fill = store(tile, load(a_in, (b.by * 32 + r) * n + b.bx * 32 + c, 4), r * row + c, 4)
    column = j * 2 + tx // 32
    value = load(tile, tx % 32 * row + column) * f32(2.0)
    empty = store(out, value, (b.by * 32 + tx % 32) * n + b.bx * 32 + column)
    return b.program(mark(1), loop(i, 4, fill, unroll=unroll), barrier(), mark(2), loop(j, 16, empty, unroll=unroll))


def mma_tile(
    row: int = 24,
    *,
    waits: bool = True,
    views: bool = False,
    by_pointer: bool = True,
    access: str = CG16,
    size: Any = None,
) -> ThreadProgram:
    """C[16, 16] = A[16, 16] B[16, 16] by one warp; cp.async (operations 1, 2), ldmatrix and two mma (3), stores (4)."""
    b = Build(threads=32)
    a_in, b_in = b.parameter("A", "float16", (16, 16)), b.parameter("B", "float16", (16, 16))
    out = b.parameter("C", "float32", (16, 16), "out")
    if views:
        a_tile = b.view("A_shared", "float16", 16 * row, by_pointer=by_pointer)
        b_tile = b.view("B_shared", "float16", 16 * row, by_pointer=by_pointer)
    else:
        a_tile, b_tile = b.shared("A_shared", "float16", 16 * row), b.shared("B_shared", "float16", 16 * row)
    a, bb, c = local("a", 4, "uint32"), local("b", 4, "uint32"), local("c", 8)
    tx, i, n = b.tx, var("i"), var("n")
    to = tx // 2 * row + tx % 2 * 8
    sizes = () if size is None else (size(tx),)

    def mma(half: int) -> Any:
        acc = [c[half * 4 + item] for item in range(4)]
        return instruction(MMA, *acc, *(a[r] for r in range(4)), bb[half * 2], bb[half * 2 + 1], *acc)

    def copy(tile: Any, source: Any) -> list[Any]:
        if access == CG16:
            return [instruction(CG16, tile.ptr_to([to]), source.ptr_to([tx * 8]), 16, *sizes)]
        part = var("part")
        return [loop(part, 2, instruction(CA, tile.ptr_to([to + part * 4]), source.ptr_to([tx * 8 + part * 4]), 8))]

    row_of = tx // 4 + n % 2 * 8
    column_of = n // 2 * 8 + tx % 4 * 2
    return b.program(
        *(mark(1), loop(i, 8, store(c, f32(0.0), i), unroll=True), *copy(a_tile, a_in)),
        *(mark(2), *copy(b_tile, b_in), commit(), *([wait(0)] if waits else []), barrier()),
        mark(3),
        instruction(LDMATRIX_X4, *(a[r] for r in range(4)), a_tile.ptr_to([tx % 16 * row + tx // 16 * 8])),
        instruction(LDMATRIX_X4_TRANS, *(bb[r] for r in range(4)), b_tile.ptr_to([tx % 16 * row + tx // 16 * 8])),
        mma(0),
        mma(1),
        mark(4),
        loop(n, 4, store(out, load(c, n * 2, 2), row_of * 16 + column_of, 2), unroll=True),
        locals=[a, bb, c],
    )


def simt_gemm(size: int = 1024, micro: int = 4, target: str = "cuda:sm_80") -> ThreadProgram:
    """C = A B in float32 by 256 threads of micro x micro elements, 16 of K at a time; copies are operations 1 and 2,
    the product 3, the result 4."""
    tile, bk = 16 * micro, 16
    b = Build(target, (size // tile, size // tile, 1), 256)
    a_in, b_in = b.parameter("A", "float32", (size, size)), b.parameter("B", "float32", (size, size))
    out = b.parameter("C", "float32", (size, size), "out")
    a_row = bk + 4
    a_tile, b_tile = b.shared("A_shared", "float32", tile * a_row), b.shared("B_shared", "float32", bk * tile)
    a, bb, c = local("a", micro), local("b", micro), local("c", micro * micro)
    tx, by, bx = b.tx, b.by, b.bx
    z, ko, p, q, kk, i, j, m = (var(name) for name in ("z", "ko", "p", "q", "kk", "i", "j", "m"))
    loads = tile * bk // 4 // 256
    a_at, b_at = (p * 256 + tx), (q * 256 + tx)
    ty, tc = tx // 16, tx % 16
    product = loop(
        kk,
        bk,
        *(store(a, load(a_tile, (ty * micro + r) * a_row + kk), r) for r in range(micro)),
        *(store(bb, load(b_tile, kk * tile + tc * 4 + v * 64, 4), v * 4, 4) for v in range(micro // 4)),
        loop(
            i,
            micro,
            loop(j, micro, store(c, c[i * micro + j] + a[i] * bb[j], i * micro + j), unroll=True),
            unroll=True,
        ),
    )
    fill_a = store(
        a_tile,
        load(a_in, (by * tile + a_at // 4) * size + ko * bk + a_at % 4 * 4, 4),
        a_at // 4 * a_row + a_at % 4 * 4,
        4,
    )
    per_row = tile // 4
    fill_b = store(
        b_tile,
        load(b_in, (ko * bk + b_at // per_row) * size + bx * tile + b_at % per_row * 4, 4),
        b_at // per_row * tile + b_at % per_row * 4,
        4,
    )
    write = [
        store(
            out,
            load(c, m * micro + v * 4, 4),
            (by * tile + ty * micro + m) * size + bx * tile + v * 64 + tc * 4,
            4,
        )
        for v in range(micro // 4)
    ]
    return b.program(
        mark(3),
        loop(z, micro * micro, store(c, f32(0.0), z), unroll=True),
        loop(
            ko,
            size // bk,
            *(mark(1), loop(p, loads, fill_a, unroll=True), mark(2), loop(q, loads, fill_b, unroll=True), barrier()),
            *(mark(3), product, barrier()),
        ),
        mark(4),
        loop(m, micro, *write, unroll=True),
        locals=[a, bb, c],
    )


def mma_gemm(size: int = 1024, stages: int = 2, pad: int = 8) -> ThreadProgram:
    """C = A B, float16 to float32: 128x128x32 tiles, 4 warps of 64x64, cp.async ``stages - 1`` tiles ahead.

    Operations: 1 copy A, 2 copy B, 3 product, 4 result.
    """
    b = Build(grid=(size // 128, size // 128, 1), threads=128)
    a_in, b_in = b.parameter("A", "float16", (size, size)), b.parameter("B", "float16", (size, size))
    out = b.parameter("C", "float32", (size, size), "out")
    a_row, b_row, tiles = 32 + pad, 128 + pad, size // 32
    a_tile = b.shared("A_shared", "float16", stages * 128 * a_row)
    b_tile = b.shared("B_shared", "float16", stages * 32 * b_row)
    a, bb, c = local("a", 16, "uint32"), local("b", 16, "uint32"), local("c", 128)
    tx, lane, warp_m, warp_n = b.tx, b.tx % 32, b.tx // 64, b.tx // 32 % 2

    def copies(tile: Any, number: int) -> list[Any]:
        p, q = var(f"p{number}"), var(f"q{number}")
        a_at, b_at = p * 128 + tx, q * 128 + tx
        slot = tirx.floormod(tile, stages)
        a_to = slot * (128 * a_row) + a_at // 4 * a_row + a_at % 4 * 8
        b_to = slot * (32 * b_row) + b_at // 16 * b_row + b_at % 16 * 8
        a_from = (b.by * 128 + a_at // 4) * size + tile * 32 + a_at % 4 * 8
        b_from = (tile * 32 + b_at // 16) * size + b.bx * 128 + b_at % 16 * 8
        return [
            *(mark(1), loop(p, 4, instruction(CG16, a_tile.ptr_to([a_to]), a_in.ptr_to([a_from]), 16), unroll=True)),
            *(mark(2), loop(q, 4, instruction(CG16, b_tile.ptr_to([b_to]), b_in.ptr_to([b_from]), 16), unroll=True)),
            commit(),
        ]

    ko, kk, f, g, m, n, z, w = (var(name) for name in ("ko", "kk", "f", "g", "m", "n", "z", "w"))
    slot = tirx.floormod(ko, stages)
    a_at = slot * (128 * a_row) + (warp_m * 64 + f * 16 + lane % 16) * a_row + kk * 16 + lane // 16 * 8
    b_at = slot * (32 * b_row) + (kk * 16 + lane % 16) * b_row + warp_n * 64 + g * 16 + lane // 16 * 8
    acc = [c[(m * 8 + n) * 4 + item] for item in range(4)]
    product = instruction(MMA, *acc, *(a[m * 4 + i] for i in range(4)), bb[n * 2], bb[n * 2 + 1], *acc)
    load_a = instruction(LDMATRIX_X4, *(a[f * 4 + i] for i in range(4)), a_tile.ptr_to([a_at]))
    load_b = instruction(LDMATRIX_X4_TRANS, *(bb[g * 4 + i] for i in range(4)), b_tile.ptr_to([b_at]))
    multiply = loop(
        kk,
        2,
        loop(f, 4, load_a, unroll=True),
        loop(g, 4, load_b, unroll=True),
        loop(m, 4, loop(n, 8, product, unroll=True), unroll=True),
        unroll=True,
    )
    fragment, half = w // 2, w % 2
    row = b.by * 128 + warp_m * 64 + fragment // 8 * 16 + half * 8 + lane // 4
    column = b.bx * 128 + warp_n * 64 + fragment % 8 * 8 + lane % 4 * 2
    ahead = stages - 1
    return b.program(
        *(mark(3), loop(z, 128, store(c, f32(0.0), z), unroll=True)),
        *(statement for s in range(ahead) for statement in copies(i32(s), s)),
        loop(
            ko,
            tiles,
            when(ko + ahead < tiles, *copies(ko + ahead, ahead), other=sequence(mark(2), commit())),
            *(mark(2), wait(ahead), barrier(), mark(3), multiply, barrier()),
        ),
        mark(4),
        loop(w, 64, store(out, load(c, w * 2, 2), row * size + column, 2), unroll=True),
        locals=[a, bb, c],
    )
