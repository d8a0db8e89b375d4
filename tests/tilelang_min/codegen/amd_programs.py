"""Thread programs written by hand in the form that lowering makes, for the tests of the AMD code generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

from tilelang_min.program import Parameter, SharedBuffer, SourceLocation, ThreadProgram, TileOperation
from tilelang_min.targets import resolve

FILE = "kernel.py"


def operations(*entries: tuple[str, int]) -> tuple[TileOperation, ...]:
    """Operations 0, 1, 2, ... from (kind, line)."""
    return tuple(
        TileOperation(i, kind, f"{kind} {i}", SourceLocation(FILE, line, 4), None if i == 0 else 0)
        for i, (kind, line) in enumerate(entries)
    )


def mark(operation: int) -> Any:
    return tirx.Evaluate(tirx.call_extern("void", "__tl_op", operation))


def barrier() -> Any:
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))


def var(name: str) -> Any:
    return tirx.Var(name, "int32")


def ramp(base: Any, lanes: int) -> Any:
    return tirx.Ramp(base, 1, lanes)


def load(buffer: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferLoad(buffer, [index if lanes == 1 else ramp(index, lanes)])


def store(buffer: Any, value: Any, index: Any, lanes: int = 1) -> Any:
    return tirx.BufferStore(buffer, value, [index if lanes == 1 else ramp(index, lanes)])


def loop(v: Any, extent: int, body: Any, unroll: bool = False) -> Any:
    kind = tirx.ForKind.UNROLLED if unroll else tirx.ForKind.SERIAL
    return tirx.For(v, 0, extent, kind, body if not isinstance(body, list) else tirx.SeqStmt(body))


def local(name: str, count: int, dtype: str) -> Any:
    return tirx.decl_buffer((count,), dtype, name, scope="local", data_alignment=16)


def f32(value: float) -> Any:
    return tirx.FloatImm("float32", value)


class Build:
    """Collects parameters and shared tiles of one thread program, then wraps a body into it."""

    def __init__(self, name: str, grid: tuple[int, int, int], threads: int, target: str) -> None:
        self.name, self.grid, self.threads, self.target = name, grid, threads, resolve(target)
        self.bx, self.by, self.bz, self.tx = (var(n) for n in ("blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x"))
        self.pointers: list[Any] = []
        self.buffers: list[Any] = []
        self.parameters: list[Parameter] = []
        self.tiles: list[Any] = []
        self.shared_buffers: list[SharedBuffer] = []

    def parameter(self, name: str, dtype: str, shape: tuple[int, ...], access: str = "in") -> Any:
        parameter = Parameter(name, dtype, shape, access)
        pointer = tirx.Var(name, ir.PointerType(ir.PrimType(dtype), "global"))
        buffer = tirx.decl_buffer((parameter.elements,), dtype, name, data=pointer, data_alignment=16)
        self.parameters.append(parameter)
        self.pointers.append(pointer)
        self.buffers.append(buffer)
        return buffer

    def shared(self, name: str, dtype: str, shape: tuple[int, ...], stages: int = 1) -> Any:
        count = stages
        for extent in shape:
            count *= extent
        size = count * {"float16": 2, "float32": 4}[dtype]
        offset = -(-sum(-(-s.bytes // 128) * 128 for s in self.shared_buffers) // 128) * 128
        self.shared_buffers.append(SharedBuffer(name, dtype, shape, stages, offset, size))
        self.tiles.append(tirx.decl_buffer((count,), dtype, name, scope="shared", data_alignment=128))
        return self.tiles[-1]

    def program(
        self, ops: tuple[TileOperation, ...], body: list[Any], locals_: list[Any] | None = None
    ) -> ThreadProgram:
        statement: Any = tirx.SeqStmt([*(tirx.AllocBuffer(t) for t in [*self.tiles, *(locals_ or [])]), *body])
        extents = [("threadIdx.x", self.tx, self.threads), ("blockIdx.z", self.bz, self.grid[2])]
        extents += [("blockIdx.y", self.by, self.grid[1]), ("blockIdx.x", self.bx, self.grid[0])]
        for tag, v, n in extents:
            axis = tirx.IterVar(ir.Range(0, n), v, tirx.IterVar.ThreadIndex, tag)
            statement = tirx.AttrStmt(axis, "thread_extent", n, statement)
        declarations = [tirx.DeclBuffer(b, data=p) for b, p in zip(self.buffers, self.pointers)]
        function = tirx.PrimFunc(self.pointers, tirx.SeqStmt([*declarations, statement]))
        return ThreadProgram(
            name=self.name,
            target=self.target,
            function=function.with_attr({"global_symbol": self.name, "tirx.noalias": True}),
            parameters=tuple(self.parameters),
            grid=self.grid,
            threads=self.threads,
            shared=tuple(self.shared_buffers),
            shared_bytes_dynamic=0,
            operations=ops,
        )


def scale(target: str = "hip:gfx942", n: int = 64) -> ThreadProgram:
    """B = 2 A through a padded shared tile: a serial loop in, a barrier, an unrolled loop out."""
    b = Build("scale", (n // 32, n // 32, 1), 64, target)
    source, result = b.parameter("zz", "float32", (n, n)), b.parameter("aa", "float32", (n, n), "out")
    tile, held = b.shared("S", "float32", (32, 36)), local("L", 4, "float32")
    i, j = var("i"), var("j")

    def place(v: Any) -> tuple[Any, Any]:
        row, col = v * 8 + b.tx // 8, (b.tx % 8) * 4
        return row * 36 + col, (b.by * 32 + row) * n + b.bx * 32 + col

    twice = load(held, 0, 4) * tirx.Broadcast(f32(2.0), 4)
    body = [
        mark(1),
        loop(i, 4, store(tile, load(source, place(i)[1], 4), place(i)[0], 4)),
        barrier(),
        mark(2),
        loop(j, 4, [store(held, load(tile, place(j)[0], 4), 0, 4), store(result, twice, place(j)[1], 4)], unroll=True),
    ]
    return b.program(operations(("kernel", 1), ("copy", 5), ("parallel", 6)), body, [held])


def mfma(target: str = "hip:gfx942", intrinsic: str = "llvm.amdgcn.mfma.f32.32x32x8f16") -> ThreadProgram:
    """One wavefront, one MFMA on LDS tiles.  Two of its operations share source line 7."""
    shape = {
        "llvm.amdgcn.mfma.f32.32x32x8f16": (32, 8, "float16", 4),
        "llvm.amdgcn.mfma.f32.16x16x16f16": (16, 16, "float16", 4),
        "llvm.amdgcn.mfma.f32.32x32x2f32": (32, 2, "float32", 1),
        "llvm.amdgcn.mfma.f32.16x16x4f32": (16, 4, "float32", 1),
        "llvm.amdgcn.mfma.f32.16x16x32.f16": (16, 32, "float16", 8),
    }
    mn, k, dtype, items = shape[intrinsic]
    count = mn * mn // 64
    b = Build("mfma", (1, 1, 1), 64, target)
    a_in, b_in = b.parameter("A", dtype, (mn, k)), b.parameter("B", dtype, (k, mn))
    out = b.parameter("C", "float32", (mn, mn), "out")
    a_tile, b_tile = b.shared("A_shared", dtype, (mn, k)), b.shared("B_shared", dtype, (k, mn))
    a, bb, c = local("a", items, dtype), local("b", items, dtype), local("c", count, "float32")
    i, j = var("i"), var("j")
    lane, group = b.tx % mn, b.tx // mn
    per = mn * k // 64
    zero = tirx.IntImm("int32", 0)
    fragment = [load(a, 0, items), load(bb, 0, items), load(c, 0, count)]
    product = tirx.call_llvm_pure_intrin(ir.PrimType(f"float32x{count}"), intrinsic, *fragment, zero, zero, zero)
    body = [
        mark(1),
        store(c, tirx.Broadcast(f32(0.0), count), 0, count),
        mark(2),
        store(a_tile, load(a_in, b.tx * per, per), b.tx * per, per),
        mark(3),
        store(b_tile, load(b_in, b.tx * per, per), b.tx * per, per),
        barrier(),
        mark(4),
        store(a, load(a_tile, lane * k + group * items, items), 0, items),
        loop(i, items, store(bb, load(b_tile, (group * items + i) * mn + lane), i), unroll=True),
        store(c, product, 0, count),
        mark(5),
        loop(j, count, store(out, load(c, j), (8 * (j // 4) + 4 * group + j % 4) * mn + lane), unroll=True),
    ]
    kinds = operations(("kernel", 1), ("fill", 6), ("copy", 7), ("copy", 7), ("gemm", 8), ("copy", 9))
    return b.program(kinds, body, [a, bb, c])


def gemm(target: str = "hip:gfx942", size: int = 512, pad: int = 8) -> ThreadProgram:
    """C = A B, float16 to float32: 128x128x32 tiles, 4 wavefronts of 2x2 MFMA 32x32x8, LDS in two stages.

    The next tile is loaded into registers, the current one multiplied, then the registers go to the other stage.
    """
    bm = bn = 128
    bk = 32
    b = Build("gemm", (size // bn, size // bm, 1), 256, target)
    a_in, b_in = b.parameter("A", "float16", (size, size)), b.parameter("B", "float16", (size, size))
    out = b.parameter("C", "float32", (size, size), "out")
    a_row, b_row = bk + pad, bn + pad
    a_tile, b_tile = b.shared("A_shared", "float16", (bm, a_row), 2), b.shared("B_shared", "float16", (bk, b_row), 2)
    a, bb, c = local("a", 8, "float16"), local("b", 8, "float16"), local("c", 64, "float32")
    a_next, b_next = local("a_next", 16, "float16"), local("b_next", 16, "float16")
    wave, lane = b.tx // 64, b.tx % 64
    wm, wn, low, high = wave // 2, wave % 2, lane % 32, lane // 32
    zero = tirx.IntImm("int32", 0)
    ko = var("ko")

    def fetch(k: Any, p: Any, q: Any) -> tuple[Any, Any]:
        a_index = (b.by * bm + p * 64 + b.tx // 4) * size + k * bk + (b.tx % 4) * 8
        b_index = (k * bk + q * 16 + b.tx // 16) * size + b.bx * bn + (b.tx % 16) * 8
        return (
            loop(p, 2, store(a_next, load(a_in, a_index, 8), p * 8, 8), unroll=True),
            loop(q, 2, store(b_next, load(b_in, b_index, 8), q * 8, 8), unroll=True),
        )

    def put(stage: Any, p: Any, q: Any) -> tuple[Any, Any]:
        a_index = stage * (bm * a_row) + (p * 64 + b.tx // 4) * a_row + (b.tx % 4) * 8
        b_index = stage * (bk * b_row) + (q * 16 + b.tx // 16) * b_row + (b.tx % 16) * 8
        return (
            loop(p, 2, store(a_tile, load(a_next, p * 8, 8), a_index, 8), unroll=True),
            loop(q, 2, store(b_tile, load(b_next, q * 8, 8), b_index, 8), unroll=True),
        )

    def multiply(stage: Any) -> Any:
        ki, mi, ni, e, mj, nj = (var(n) for n in ("ki", "mi", "ni", "e", "mj", "nj"))
        a_index = stage * (bm * a_row) + (wm * 64 + mi * 32 + low) * a_row + ki * 8 + high * 4
        b_index = stage * (bk * b_row) + (ki * 8 + high * 4 + e) * b_row + wn * 64 + ni * 32 + low
        place = (mj * 2 + nj) * 16
        operands = [load(a, mj * 4, 4), load(bb, nj * 4, 4), load(c, place, 16)]
        product = tirx.call_llvm_pure_intrin(
            ir.PrimType("float32x16"), "llvm.amdgcn.mfma.f32.32x32x8f16", *operands, zero, zero, zero
        )
        load_b = loop(e, 4, store(bb, load(b_tile, b_index), ni * 4 + e), unroll=True)
        inner = [
            loop(mi, 2, store(a, load(a_tile, a_index, 4), mi * 4, 4), unroll=True),
            loop(ni, 2, load_b, unroll=True),
            loop(mj, 2, loop(nj, 2, store(c, product, place, 16), unroll=True), unroll=True),
        ]
        return loop(ki, bk // 8, inner, unroll=True)

    z, i, mo, no = var("z"), var("i"), var("mo"), var("no")
    row = b.by * bm + wm * 64 + mo * 32 + 8 * (i // 4) + 4 * high + i % 4
    column = b.bx * bn + wn * 64 + no * 32 + low
    a_first, b_first = fetch(tirx.IntImm("int32", 0), var("p0"), var("q0"))
    a_put, b_put = put(0, var("p1"), var("q1"))
    a_more, b_more = fetch(ko + 1, var("p2"), var("q2"))
    a_put2, b_put2 = put((ko + 1) % 2, var("p3"), var("q3"))
    steps = size // bk
    body = [
        mark(1),
        loop(z, 64, store(c, f32(0.0), z), unroll=True),
        *(mark(3), a_first, a_put),
        *(mark(4), b_first, b_put),
        barrier(),
        mark(2),
        loop(
            ko,
            steps,
            [
                tirx.IfThenElse(ko < steps - 1, tirx.SeqStmt([mark(3), a_more, mark(4), b_more]), None),
                mark(5),
                multiply(ko % 2),
                tirx.IfThenElse(ko < steps - 1, tirx.SeqStmt([mark(3), a_put2, mark(4), b_put2]), None),
                mark(2),
                barrier(),
            ],
        ),
        mark(6),
        loop(
            mo,
            2,
            loop(
                no,
                2,
                loop(i, 16, store(out, load(c, (mo * 2 + no) * 16 + i), row * size + column), unroll=True),
                unroll=True,
            ),
            unroll=True,
        ),
    ]
    kinds = [("kernel", 1), ("fill", 5), ("loop", 6), ("copy", 7), ("copy", 8), ("gemm", 9), ("copy", 10)]
    return b.program(operations(*kinds), body, [a, bb, c, a_next, b_next])


def product_of_elements(target: str = "hip:gfx942", dtype: str = "float32", size: int = 256) -> ThreadProgram:
    """C = A B, one element a thread, no tiles: a serial loop of one multiply-add."""
    b = Build("elements", (size // 64, size, 1), 64, target)
    a_in, b_in = b.parameter("A", dtype, (size, size)), b.parameter("B", dtype, (size, size))
    out, c, k = b.parameter("C", "float32", (size, size), "out"), local("c", 1, "float32"), var("k")
    column = b.bx * 64 + b.tx

    def wide(value: Any) -> Any:
        return value if dtype == "float32" else tirx.Cast("float32", value)

    term = wide(load(a_in, b.by * size + k)) * wide(load(b_in, k * size + column))
    body = [
        *(mark(1), store(c, f32(0.0), 0)),
        *(mark(2), loop(k, size, [mark(3), store(c, load(c, 0) + term, 0)])),
        *(mark(4), store(out, load(c, 0), b.by * size + column)),
    ]
    kinds = operations(("kernel", 1), ("fill", 5), ("loop", 6), ("parallel", 7), ("copy", 8))
    return b.program(kinds, body, [c])


def map_elements(
    function: Callable[[Any], Any], target: str = "hip:gfx942", dtype: str = "float32", n: int = 1000, name: str = "map"
) -> ThreadProgram:
    """B = function(A) on n elements, the last block ragged."""
    b = Build(name, (-(-n // 64), 1, 1), 64, target)
    source, result = b.parameter("A", dtype, (n,)), b.parameter("B", dtype, (n,), "out")
    index = b.bx * 64 + b.tx
    body = [mark(1), tirx.IfThenElse(index < n, store(result, function(load(source, index)), index), None)]
    return b.program(operations(("kernel", 1), ("parallel", 4)), body)


def ragged(target: str = "hip:gfx942", n: int = 1001) -> ThreadProgram:
    """A guarded load with zero fill into LDS, a barrier, a Select, a guarded store; then a half through a cast."""
    b = Build("ragged", (-(-n // 256), 1, 1), 256, target)
    source, result = b.parameter("A", "float16", (n,)), b.parameter("B", "float32", (n,), "out")
    tile = b.shared("S", "float16", (256,))
    index = b.bx * 256 + b.tx
    zero = tirx.FloatImm("float16", 0.0)
    guarded = tirx.if_then_else(index < n, load(source, index), zero)
    value = tirx.Cast("float32", load(tile, 255 - b.tx))
    chosen = tirx.Select(value > f32(0.0), value, value * f32(0.01))
    body = [
        *(mark(1), store(tile, guarded, b.tx), barrier()),
        *(mark(2), tirx.IfThenElse(index < n, store(result, chosen, index), None)),
    ]
    return b.program(operations(("kernel", 1), ("copy", 4), ("parallel", 5)), body)


def many_registers(target: str = "hip:gfx942", count: int = 96) -> ThreadProgram:
    """Holds ``count`` floats a thread across a barrier."""
    b = Build("many", (1, 1, 1), 256, target)
    source, result = b.parameter("A", "float32", (256 * count,)), b.parameter("B", "float32", (256 * count,), "out")
    held, i, j = local("L", count, "float32"), var("i"), var("j")
    total = load(held, j) * load(held, (j + 1) % count)
    body = [
        *(mark(1), loop(i, count, store(held, load(source, i * 256 + b.tx), i), unroll=True), barrier()),
        *(mark(2), loop(j, count, store(result, total, j * 256 + b.tx), unroll=True)),
    ]
    return b.program(operations(("kernel", 1), ("copy", 4), ("parallel", 5)), body, [held])
