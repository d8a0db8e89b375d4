"""What the front end makes of kernels that are right."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_source import body, load

import tilelang_min.language as T
from tilelang_min.errors import LanguageError
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import Assign, Conditional, Copy, Fill, Gemm, Loop, Parallel, TileProgram
from tilelang_min.ir.printer import describe


def parsed(folder: Path, text: str) -> TileProgram:
    """The program with ``text`` in its body."""
    return parse(load(folder, body(text)).main)


def numbers(values: Any) -> tuple[Any, ...]:
    """Offsets as plain integers or text."""
    return tuple(value if isinstance(value, int) else str(value) for value in values)


COPIES = {
    # statement: source offsets, target offsets, extents of both sides (without ones)
    "T.copy(A[by * bm, bx * bn], S)": (("by * 16", "bx * 32"), (0, 0), (16, 32)),
    "T.copy(S, C[by * bm, bx * bn])": ((0, 0), ("by * 16", "bx * 32"), (16, 32)),
    "T.copy(A[0:bm, bx * bn : (bx + 1) * bn], S)": ((0, "bx * 32"), (0, 0), (16, 32)),
    "T.copy(A[:, 0:bn], S)": ((0, 0), (0, 0), (16, 32)),  # the smaller side counts
    "T.copy(A[0:8, 0:8], S)": ((0, 0), (0, 0), (8, 8)),
    "T.copy(A[by, 0:bn], S[3, :])": (("by", 0), (3, 0), (32,)),
    "T.copy(I[0:4], S[2, 4:8])": ((0,), (2, 4), (4,)),
    "T.copy(A[0:1, 0:bn], S[bm - 1, 0])": ((0, 0), (15, 0), (32,)),
    "T.copy(A[bx * bn - 1, by], S)": (("bx * 32 - 1", "by"), (0, 0), (16, 32)),
}


@pytest.mark.parametrize("statement", COPIES)
def test_regions_of_copies(statement: str, tmp_path: Path) -> None:
    copy = parsed(tmp_path, statement).body[0]
    assert isinstance(copy, Copy)
    source, target, extents = COPIES[statement]
    assert numbers(copy.source.offsets) == source
    assert numbers(copy.target.offsets) == target
    assert copy.source.tile_extents == copy.target.tile_extents == extents


def test_table_of_operations(tmp_path: Path) -> None:
    """Ids in source order, kinds, labels, places, parents, and the buffers each reads and writes."""
    program = parsed(
        tmp_path,
        """
        T.clear(G)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[by * bm, k * bn], S)
            T.copy(A[k * bn, bx * bm], R)
            T.gemm(S, R, G)
        if bx > 0:
            for i, j in T.Parallel(bm, bm):
                G[i, j] = G[i, j] * A[i, I[j]]
        T.copy(G, C[by * bm, bx * bm])
        x[1] = A[0, 0]
        T.fill(S, x[1])
        """,
    )
    table = [(o.kind, o.label, o.parent, o.reads, o.writes, o.location.line - 15) for o in program.operations]
    assert table[0][:4] == ("kernel", "main", None, ())
    assert table[1:] == [
        ("fill", "T.clear(G)", 0, (), ("G",), 0),
        ("loop", "for k in T.Pipelined(3, num_stages=2)", 0, (), (), 1),
        ("copy", "T.copy(A[by * bm, k * bn], S)", 2, ("A",), ("S",), 2),
        ("copy", "T.copy(A[k * bn, bx * bm], R)", 2, ("A",), ("R",), 3),
        ("gemm", "T.gemm(S, R, G)", 2, ("S", "R", "G"), ("G",), 4),
        ("loop", "if bx > 0", 0, (), (), 5),
        ("parallel", "for i, j in T.Parallel(bm, bm)", 6, ("A", "G", "I"), ("G",), 6),
        ("copy", "T.copy(G, C[by * bm, bx * bm])", 0, ("G",), ("C",), 8),
        ("store", "x[1] = A[0, 0]", 0, ("A",), ("x",), 9),
        ("fill", "T.fill(S, x[1])", 0, ("x",), ("S",), 10),
    ]
    assert [operation.id for operation in program.operations] == list(range(11))
    kinds = [type(statement) for statement in program.body]
    assert kinds == [Fill, Loop, Conditional, Copy, Assign, Fill]
    assert program.grid == (3, 4, 1)
    assert program.threads == 64
    assert program.sources == {program.location.file: Path(program.location.file).read_text()}


def test_program_as_text(tmp_path: Path) -> None:
    program = parsed(
        tmp_path,
        """
        for k in T.serial(2, 5):
            T.copy(A[by * bm, k * bn], S)
            T.gemm(S, R, G, transpose_A=False, clear_accum=True)
        if by == 0:
            T.clear(S[0:4, :])
        else:
            for i in T.Parallel(4):
                C[0, i] = A[0, i] + 1.0
        """,
    )
    lines = describe(program).splitlines()
    assert lines[0] == "kernel main  grid (3, 4, 1)  threads 64"
    assert [line.split("    #")[0] for line in lines[9:]] == [
        "  for k in 2 .. 5 (serial)",
        "    copy A[by * 16:+16, k * 32:+32] -> S[0:+16, 0:+32]",
        "    gemm G[0:+16, 0:+16] = S[0:+16, 0:+32] @ R[0:+32, 0:+16]",
        "  if by == 0",
        "    fill S[0:+4, 0:+32] = T.float32(0.0)",
        "  else",
        "    parallel i < 4",
        "      C[0, i] = A[0, i] + T.float32(1.0)",
    ]


def test_gemm_extents_and_flags(tmp_path: Path) -> None:
    program = parsed(
        tmp_path,
        """
        T.gemm(R, R, G, True, False)
        T.gemm(S[:, 8:24], R[0:16, :], G, clear_accum=True)
        """,
    )
    first, second = program.body
    assert isinstance(first, Gemm)
    assert isinstance(second, Gemm)
    assert (first.m, first.n, first.k, first.transpose_a, first.transpose_b, first.clear) == (
        16,
        16,
        32,
        True,
        False,
        False,
    )
    assert (second.m, second.n, second.k, second.clear) == (16, 16, 16, True)
    assert second.a.offsets == (0, 8)


def test_names_bound_again_in_the_same_block(tmp_path: Path) -> None:
    """As in Python: the last binding counts, in a nest for each point."""
    program = parsed(
        tmp_path,
        """
        n = 3
        n = n + 1
        S2 = S
        for k in T.serial(n):
            at = k * 2
            at = at + 1
            for i in T.Parallel(bn):
                y = A[at, i]
                y = y * y
                S2[0, i] = y
        """,
    )
    loop = program.body[0]
    assert isinstance(loop, Loop)
    assert loop.extent == 4
    nest = loop.body[0]
    assert isinstance(nest, Parallel)
    assert [assign.buffer.name for assign in nest.body] == ["y", "y_2", "S"]
    assert str(nest.body[0].value) == "A[k * 2 + 1, i]"
    assert str(nest.body[1].value) == "y * y"
    assert str(nest.body[2].value) == "y_2"


def test_tiles_and_loops_of_one_name_stay_apart(tmp_path: Path) -> None:
    program = parsed(
        tmp_path,
        """
        for k in T.serial(2):
            D = T.alloc_shared((4,), "float16")
            T.clear(D)
        for k in T.serial(2):
            D = T.alloc_shared((8,), "float16")
            T.clear(D)
        """,
    )
    assert [buffer.name for buffer in program.buffers[5:]] == ["D", "D_2"]
    assert [str(loop.variable) for loop in program.body if isinstance(loop, Loop)] == ["k", "k_2"]


def test_branches_decided_now(tmp_path: Path) -> None:
    """Conditions on constants leave nothing behind, also inside a nest and with ``elif``."""
    program = parsed(
        tmp_path,
        """
        kind, bias, wanted = "float32", None, 0 or 4
        if bm == 16 and S.dtype == kind and kind in ("float16", "float32") and bias is None and wanted == 4:
            T.clear(S)
        else:
            T.nothing(S)
        if bn < 10:
            T.clear(R)
        elif S.shape[0] == 16:
            "a comment as text"
            pass
        for i in T.Parallel(4):
            if bk > 8:
                C[0, i] = 1.0
            else:
                C[0, i] = 2.0
        """,
    )
    fill, nest = program.body
    assert isinstance(fill, Fill)
    assert fill.region.buffer.name == "S"
    assert isinstance(nest, Parallel)
    assert [str(assign.value) for assign in nest.body] == ["T.float32(2.0)"]


def test_expressions(tmp_path: Path) -> None:
    """Constants fold, numbers take the type of what they meet, mixed types widen."""
    program = parsed(
        tmp_path,
        """
        h = T.alloc_local((2,), "float16")
        i = T.alloc_local((2,), "int32")
        x[0] = 2**3 + 7 // 2 - 7 % 4 + (1 if bm == 16 else 0)
        x[1] = h[0] * 2
        x[2] = h[0] + x[1]
        x[3] = i[0] + 0.5
        i[1] = x[0] * 3
        x[0] = T.max(bx, 3) + T.min(1, 2) + max(1, 5) + math.pi
        x[0] = 1.0 if 0 < bx < 3 else 0.0
        x[0] = T.if_then_else(not bx > 0 or by == 1, x[1], 2)
        x[0] = T.cast(h[1], "float") ** 3
        x[0] = -x[1]
        """,
    )
    values = [str(assign.value) for assign in program.body if isinstance(assign, Assign)]
    assert values == [
        "T.float32(9.0)",
        'T.Cast("float32", h[0] * T.float16(2.0))',
        'T.Cast("float32", h[0]) + x[1]',
        'T.Cast("float32", i[0]) + T.float32(0.5)',
        'T.Cast("int32", x[0] * T.float32(3.0))',
        'T.Cast("float32", T.max(bx, 3) + 1 + 5) + T.float32(3.1415926535897931)',
        "T.if_then_else(0 < bx and bx < 3, T.float32(1.0), T.float32(0.0))",
        "T.if_then_else(not bx > 0 or by == 1, x[1], T.float32(2.0))",
        'T.Cast("float32", h[1]) * T.Cast("float32", h[1]) * T.Cast("float32", h[1])',
        "T.float32(0.0) - x[1]",
    ]


def test_grid_dimensions_of_one_block_have_index_zero(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\n\n@T.prim_func\ndef main(A: T.Tensor((8,), 'float32')):\n"
        "    with T.Kernel(1, 5, threads=32) as (bx, by):\n        A[bx + by] = 1.0\n",
    )
    (store,) = parse(module.main).body
    assert isinstance(store, Assign)
    assert str(store.indices[0]) == "by"


def test_annotations_kept_as_text(tmp_path: Path) -> None:
    """``from __future__ import annotations``, quotes around one annotation, and constants of an enclosing factory."""
    module = load(
        tmp_path,
        "from __future__ import annotations\nimport tilelang_min.language as T\n\n\ndef factory(n, kind):\n"
        "    half = n // 2\n\n    @T.prim_func\n"
        "    def main(A: T.Tensor((n, half), kind), B: 'T.Tensor((half,), kind)'):\n"
        "        with T.Kernel(T.ceildiv(n, 4), threads=32) as bx:\n            T.clear(B)\n\n    return main\n",
    )
    program = parse(module.factory(10, "float16"))
    assert [(p.name, p.shape, p.dtype) for p in program.parameters] == [
        ("A", (10, 5), "float16"),
        ("B", (5,), "float16"),
    ]
    assert program.grid == (3, 1, 1)


def test_closures_globals_and_callables(tmp_path: Path) -> None:
    """Names come from the closure first, then from the defining scope, then from the module; functions may be called."""
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\nscale = 2.0\nwidth = 99\n\n\n"
        "def shifted(value, by=1):\n    return value + by * scale\n"
        "\n\ndef factory(width):\n    class Tiles:\n        rows = 4\n\n    sizes = {'n': width}\n\n    @T.prim_func\n"
        "    def main(A: T.Tensor((Tiles.rows, width), 'float32')):\n        columns = sizes['n']\n"
        "        with T.Kernel(1, threads=32):\n            for i, j in T.Parallel(Tiles.rows, columns):\n"
        "                A[i, j] = shifted(A[i, j], by=3) * scale\n\n    return main\n",
    )
    program = parse(module.factory(7))
    (nest,) = program.body
    assert isinstance(nest, Parallel)
    assert nest.extents == (4, 7)
    assert str(nest.body[0].value) == "(A[i, j] + T.float32(6.0)) * T.float32(2.0)"


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\n\ndef factory(n, tile, factor):\n    @T.prim_func\n"
        "    def main(A: T.Tensor((n, 4), 'float32')):\n        with T.Kernel(T.ceildiv(n, tile), threads=32) as bx:\n"
        "            S = T.alloc_shared((tile, 4), 'float32')\n            T.copy(A[bx * tile, 0], S)\n"
        "            for i, j in T.Parallel(tile, 4):\n                A[bx * tile + i, j] = S[i, j] * factor\n\n    return main\n",
    )
    program = parse(module.factory(np.int64(9), np.int32(4), np.float32(0.5)))
    assert program.parameters[0].shape == (9, 4)
    assert all(type(extent) is int for extent in program.parameters[0].shape + program.grid + program.buffers[0].shape)
    nest = program.body[1]
    assert isinstance(nest, Parallel)
    assert str(nest.body[0].value) == "S[i, j] * T.float32(0.5)"


@pytest.mark.parametrize("file", ["<ipython-input-3-a1b2c3>", "/tmp/ipykernel_17/3141592653.py"])
def test_kernels_of_a_notebook(file: str) -> None:
    """A cell has no file, but Python's line cache knows its source."""
    text = (
        "import tilelang_min.language as T\n\n@T.prim_func\ndef main(A: T.Tensor((8,), 'float32')):\n"
        "    with T.Kernel(1, threads=32):\n        T.clear(A)\n        T.clear(B)\n"
    )
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    with pytest.raises(LanguageError) as caught:
        parse(names["main"])
    assert str(caught.value).splitlines()[:3] == [
        f"{file}:7:17: the name 'B' is not defined here",
        "    T.clear(B)",
        "            ^",
    ]


def test_decorator_and_signature_over_many_lines(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\n\ndef factory():\n\t@T.prim_func\n\tdef main(\n\t\tA: T.Tensor(\n\t\t\t(8,),\n"
        "\t\t\t'float32',\n\t\t),\n\t):\n\t\t'''Docs\nat the margin.'''\n\t\twith T.Kernel(\n"
        "\t\t\t2,\n\t\t\tthreads=32,\n\t\t) as bx:\n"
        "\t\t\tT.fill(\n\t\t\t\tA[bx * 4 : bx * 4 + 4],\n\t\t\t\t1.0,\n\t\t\t)\n\treturn main\n",
    )
    program = parse(module.factory())
    assert program.operations[1].label == "T.fill( A[bx * 4 : bx * 4 + 4], 1.0, )"
    assert program.operations[1].location.line == 18
    assert program.operations[1].location.text == "\t\t\tT.fill("


def test_markers_compute_nothing_but_ceildiv_does() -> None:
    assert T.ceildiv(7, 2) == 4
    assert T.float16 == "float16"
    assert T.Tensor((3,), "float32") == T.Tensor((3,))


def test_names_that_are_not_bound_yet(tmp_path: Path) -> None:
    """A variable of the factory that gets its value later, or never."""
    module = load(
        tmp_path,
        "import tilelang_min.language as T\n\n\ndef factory(late):\n    @T.prim_func\n"
        "    def main(A: T.Tensor((4,), 'float32')):\n        with T.Kernel(1, threads=64):\n"
        "            A[0] = value\n\n    if late:\n        value = 3.0\n    return main\n",
    )
    (store,) = parse(module.factory(True)).body
    assert isinstance(store, Assign)
    assert str(store.value) == "T.float32(3.0)"
    with pytest.raises(LanguageError, match="the name 'value' is not defined here"):
        parse(module.factory(False))
