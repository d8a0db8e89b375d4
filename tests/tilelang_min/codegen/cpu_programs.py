"""Thread programs written by hand in the form that lowering makes, for the tests of the CPU code generator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from amd_programs import f32, load, loop, mark, ramp, store, var
from tvm import ir, tirx

from tilelang_min.program import CompiledKernel, Parameter, SourceLocation, ThreadProgram, TileOperation
from tilelang_min.targets import resolve

FILE = "kernel.py"


def operations(*lines: int) -> tuple[TileOperation, ...]:
    """Operations 0, 1, 2, ... that stand on these lines."""
    return tuple(
        TileOperation(i, "copy" if i else "kernel", f"operation {i}", SourceLocation(FILE, line, 4), 0 if i else None)
        for i, line in enumerate(lines)
    )


def tile(name: str, count: int, dtype: str = "float32", scope: str = "local") -> Any:
    """A tile of the calling thread."""
    return tirx.decl_buffer((count,), dtype, name, scope=scope, data_alignment=64)


def program(
    name: str,
    parameters: tuple[Parameter, ...],
    grid: tuple[int, int, int],
    body: Callable[..., list[Any]],
    lines: tuple[int, ...],
    target: str = "cpu",
) -> ThreadProgram:
    """A CPU thread program; ``body(block, *buffers)`` gives the statements of one block."""
    pointers = [tirx.Var(p.name, ir.PointerType(ir.PrimType(p.dtype), "global")) for p in parameters]
    buffers = [
        tirx.decl_buffer((p.elements,), p.dtype, p.name, data=v, data_alignment=np.dtype(p.dtype).itemsize)
        for p, v in zip(parameters, pointers)
    ]
    begin, end, block = var("block_begin"), var("block_end"), var("block")
    inner = tirx.SeqStmt([mark(0), *body(block, *buffers)])
    blocks = tirx.For(block, begin, end - begin, tirx.ForKind.SERIAL, inner)
    declarations = [tirx.DeclBuffer(b, data=v) for b, v in zip(buffers, pointers)]
    function = tirx.PrimFunc([*pointers, begin, end], tirx.SeqStmt([*declarations, blocks]))
    function = function.with_attr({"global_symbol": name, "tirx.noalias": True})
    return ThreadProgram(name, resolve(target), function, parameters, grid, 1, (), 0, operations(*lines))


def unary(
    function: Callable[[Any], Any],
    count: int,
    lanes: int = 8,
    dtype: str = "float32",
    target: str = "cpu",
    out: str | None = None,
) -> ThreadProgram:
    """``B[i] = function(A[i])`` for ``count`` elements, one vector a block."""
    assert count % lanes == 0
    parameters = (Parameter("A", dtype, (count,), "in"), Parameter("B", out or dtype, (count,), "out"))

    def body(block: Any, a: Any, b: Any) -> list[Any]:
        return [mark(1), store(b, function(load(a, block * lanes, lanes)), block * lanes, lanes)]

    return program("unary", parameters, (count // lanes, 1, 1), body, (2, 3), target)


def scale(count: int = 1000, lines: tuple[int, ...] = (5, 6, 7), target: str = "cpu") -> ThreadProgram:
    """B = 2 A by way of a tile of 128 elements; blocks of 128, the last one ragged.  Operations 1 (in) and 2 (out)."""
    parameters = (Parameter("A", "float32", (count,), "in"), Parameter("B", "float32", (count,), "out"))

    def body(block: Any, a: Any, b: Any) -> list[Any]:
        t, i = tile("tile", 128, scope="shared"), var("i")
        at = block * 128 + i * 8
        vector = tirx.SeqStmt(
            [
                mark(1),
                store(t, load(a, at, 8), i * 8, 8),
                mark(2),
                store(b, load(t, i * 8, 8) * tirx.Broadcast(f32(2.0), 8), at, 8),
            ]
        )
        return [tirx.AllocBuffer(t), loop(i, 16, tirx.IfThenElse(at + 8 <= count, vector, None))]

    return program("scale", parameters, (-(-count // 128), 1, 1), body, lines, target)


GEMM_LINES = (10, 12, 14, 15, 16, 17, 18)  # kernel, clear, loop, copy A, copy B, gemm, copy C


def gemm(m: int, n: int, k: int, target: str = "cpu") -> ThreadProgram:
    """C = A B in float32: tiles of 32 x 64 x 16, register blocks of 4 rows by 4 vectors.  Extents are whole tiles."""
    tm, tn, tk, rows, vectors = 32, 64, 16, 4, 4
    lanes = (resolve(target).vector_bits or 128) // 32
    vectors = min(vectors, tn // lanes)
    parameters = tuple(
        Parameter(name, "float32", shape, access)
        for name, shape, access in (("A", (m, k), "in"), ("B", (k, n), "in"), ("C", (m, n), "out"))
    )

    def body(block: Any, a: Any, b: Any, c: Any) -> list[Any]:
        a_tile, b_tile, c_tile = tile("A_shared", tm * tk), tile("B_shared", tk * tn), tile("C_local", tm * tn)
        acc = tile("acc", rows * vectors * lanes)
        bx, by = block % (n // tn), block // (n // tn)
        names = iter(var(f"v{i}") for i in range(30))

        def each(extent: int, make: Callable[[Any], Any], unroll: bool = False) -> Any:
            v = next(names)
            return loop(v, extent, make(v), unroll)

        def copy(
            to: Any, to_at: Callable[..., Any], of: Any, of_at: Callable[..., Any], height: int, width: int
        ) -> Any:
            def vector(r: Any, j: Any) -> Any:
                return store(to, load(of, of_at(r, j * lanes), lanes), to_at(r, j * lanes), lanes)

            return each(height, lambda r: each(width // lanes, lambda j: vector(r, j)))

        def multiply(row: Any, column: Any) -> Any:
            def tiles(make: Callable[[Any, Any], Any]) -> Any:
                return each(rows, lambda i: each(vectors, lambda j: make(i, j), True), True)

            def register(i: Any, j: Any) -> Any:
                return (i * vectors + j) * lanes

            def place(i: Any, j: Any) -> Any:
                return (row * rows + i) * tn + column * vectors * lanes + j * lanes

            def add(i: Any, j: Any, kk: Any) -> Any:
                left = tirx.Broadcast(load(a_tile, (row * rows + i) * tk + kk), lanes)
                right = load(b_tile, kk * tn + column * vectors * lanes + j * lanes, lanes)
                return store(acc, load(acc, register(i, j), lanes) + left * right, register(i, j), lanes)

            return tirx.SeqStmt(
                [
                    tiles(lambda i, j: store(acc, load(c_tile, place(i, j), lanes), register(i, j), lanes)),
                    each(tk, lambda kk: tiles(lambda i, j: add(i, j, kk))),
                    tiles(lambda i, j: store(c_tile, load(acc, register(i, j), lanes), place(i, j), lanes)),
                ]
            )

        def step(ko: Any) -> Any:
            return tirx.SeqStmt(
                [
                    mark(3),
                    copy(a_tile, lambda r, j: r * tk + j, a, lambda r, j: (by * tm + r) * k + ko * tk + j, tm, tk),
                    mark(4),
                    copy(b_tile, lambda r, j: r * tn + j, b, lambda r, j: (ko * tk + r) * n + bx * tn + j, tk, tn),
                    mark(5),
                    each(tm // rows, lambda row: each(tn // (vectors * lanes), lambda column: multiply(row, column))),
                    mark(2),
                ]
            )

        zero = tirx.Broadcast(f32(0.0), lanes)
        return [
            *(tirx.AllocBuffer(each_tile) for each_tile in (a_tile, b_tile, c_tile, acc)),
            mark(1),
            each(tm * tn // lanes, lambda i: tirx.BufferStore(c_tile, zero, [ramp(i * lanes, lanes)])),
            mark(2),
            each(k // tk, step),
            mark(6),
            copy(c, lambda r, j: (by * tm + r) * n + bx * tn + j, c_tile, lambda r, j: r * tn + j, tm, tn),
            mark(0),
        ]

    return program("gemm", parameters, (n // tn, m // tm, 1), body, GEMM_LINES, target)


def run(kernel: CompiledKernel, folder: Path, blocks: int, *arrays: np.ndarray[Any, Any]) -> None:
    """Runs all blocks on this thread, straight through ctypes."""
    path = folder / f"kernel{len(list(folder.iterdir()))}.so"
    path.write_bytes(kernel.binary)
    function = ctypes.CDLL(str(path))[kernel.symbol]
    function.argtypes = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int32] * 2
    function(*(array.ctypes.data for array in arrays), 0, blocks)
