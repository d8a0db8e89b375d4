"""Random programs of the language for the tests: a draw of options becomes the source of a kernel, and its result in float64.

Three families: matrix products with all that may stand around them, two products with something between, and element-wise
nests with reductions over shared tiles.  The source is written to a file, so that errors show it.
"""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tilelang_min.language import PrimFunc
from tilelang_min.program.dtypes import numpy_dtype

Arrays = list[Any]
_FOLDER = Path(tempfile.mkdtemp(prefix="random_programs_"))
_NUMBERS = itertools.count()

ACCUMULATORS = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int32",
}
LAYOUTS = ["", "", "", "T.rows()", "T.rows(padding=1)", "T.rows(padding=8)", "T.make_swizzled_layout({tile})"]
POLICIES = ["Square", "Square", "FullRow", "FullCol"]


@dataclass
class Drawn:
    """A kernel's source, its arguments (the last is the output), and what the output should hold."""

    source: str
    arrays: Arrays
    expected: Any
    options: dict[str, Any] = field(default_factory=dict)

    def kernel(self) -> PrimFunc:
        """The kernel that the source is."""
        path = _FOLDER / f"program_{next(_NUMBERS)}.py"
        path.write_text(self.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = module.main
        assert isinstance(made, PrimFunc)
        return made


def _picker(draw: Any) -> Callable[..., Any]:
    """A function that draws one of its arguments."""
    return lambda *items: draw(st.sampled_from(items))


def _values(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    generator = np.random.default_rng(seed)
    if dtype.startswith("int"):
        return generator.integers(-9, 10, shape).astype(dtype)
    return generator.standard_normal(shape).astype(numpy_dtype(dtype))


def _wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def _lines(indent: int, *lines: str) -> str:
    return "".join(" " * indent + line + "\n" for line in lines if line)


def _kernel(parameters: str, grid: str, names: str, threads: int, body: str) -> str:
    return (
        "import tilelang_min.language as T\n\n\n@T.prim_func\n"
        f"def main({parameters}):\n    with T.Kernel({grid}, threads={threads}) as {names}:\n{body}"
    )


# -- one product ---------------------------------------------------------------------------------------------------


@st.composite
def products(draw: Any) -> Drawn:
    """A product of any shape, with what may stand in its loop and behind it."""
    pick = _picker(draw)
    m, n, k = (draw(st.integers(1, 72)) for _ in range(3))
    bm, bn, bk = pick(16, 32, 32, 64, 24, 8), pick(16, 32, 32, 64, 40), pick(16, 32, 32, 64, 8, 12)
    dtype = pick("float16", "float16", "float32", "bfloat16", "int8", "float64")
    accum = ACCUMULATORS[dtype]
    out = pick(accum, accum, dtype) if dtype != "int8" else "int32"
    ta, tb = draw(st.booleans()), draw(st.booleans())
    threads, stages = pick(64, 128, 128, 256), draw(st.integers(1, 6))
    form = pick(
        "plain",
        "plain",
        "plain",
        "nested",
        "two",
        "later",
        "some",
        "twice",
        "carry",
        "scaled",
        "serial",
        "halves",
        "manual",
        "outer",
        "blocks",
    )
    side_a, side_b = pick("shared", "shared", "fragment"), pick("shared", "shared", "shared", "fragment")
    layouts = [pick(*LAYOUTS), pick(*LAYOUTS)]
    stale = draw(st.booleans())  # form "outer" multiplies the part of the first round in the second one too
    policy, epilogue = pick(*POLICIES), pick("", "", "bias", "column", "relu", "shared", "clear")
    a_tile, b_tile = ((bk, bm) if ta else (bm, bk)), ((bn, bk) if tb else (bk, bn))
    size = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1}[dtype]
    for number, tile in enumerate((a_tile, b_tile)):
        if "swizzled" in layouts[number] and tile[-1] * size % 32:
            layouts[number] = ""
    options = {key: value for key, value in locals().items() if isinstance(value, (int, str, tuple, list, bool))}
    steps = -(-k // bk)

    def copy_a(step: str) -> str:
        place = f"{step} * {bk}, by * {bm}" if ta else f"by * {bm}, {step} * {bk}"
        return f"T.copy(A[{place}], A_s)"

    def copy_b(step: str) -> str:
        place = f"bx * {bn}, {step} * {bk}" if tb else f"{step} * {bk}, bx * {bn}"
        return f"T.copy(B[{place}], B_s)"

    left, right = ("A_f" if side_a == "fragment" else "A_s"), ("B_f" if side_b == "fragment" else "B_s")
    to_fragments = [
        "T.copy(A_s, A_f)" if side_a == "fragment" else "",
        "T.copy(B_s, B_f)" if side_b == "fragment" else "",
    ]
    gemm = f"T.gemm({left}, {right}, acc, transpose_A={ta}, transpose_B={tb}, policy=T.GemmWarpPolicy.{policy})"
    work = [*to_fragments, gemm]
    body = _lines(
        8,
        f"A_s = T.alloc_shared({a_tile}, '{dtype}')",
        f"B_s = T.alloc_shared({b_tile}, '{dtype}')",
        *(
            f"T.annotate_layout({{{name}: {layout.format(tile=name)}}})" if layout else ""
            for name, layout in zip(("A_s", "B_s"), layouts, strict=True)
        ),
        f"A_f = T.alloc_fragment({a_tile}, '{dtype}')" if side_a == "fragment" else "",
        f"B_f = T.alloc_fragment({b_tile}, '{dtype}')" if side_b == "fragment" else "",
        f"acc = T.alloc_fragment(({bm}, {bn}), '{accum}')",
        "T.clear(acc)",
    )
    loop = f"for ko in T.Pipelined({steps}, num_stages={stages}):"
    whole = _lines(12, copy_a("ko"), copy_b("ko"), *work)
    used = np.ones(steps)
    if form == "nested":
        inner = whole.replace("\n" + " " * 12, "\n" + " " * 16).replace(" " * 12, " " * 16, 1)
        body += _lines(8, "for g in T.serial(2):") + _lines(12, loop) + inner
        used *= 2
    elif form == "two":
        body += _lines(8, loop) + whole + _lines(8, loop.replace("ko in", "kp in")) + whole.replace("ko", "kp")
        used *= 2
    elif form == "later":
        body += _lines(8, loop.replace("Pipelined(", "Pipelined(1, " if steps > 1 else "Pipelined(0, ")) + whole
        used[: 1 if steps > 1 else 0] = 0
    elif form == "some":
        body += _lines(8, loop) + _lines(12, copy_a("ko"), copy_b("ko"), "if ko % 2 == 0:") + _lines(16, *work)
        used[1::2] = 0
    elif form == "twice":  # a tile that is read, overwritten in the same iteration, and read again
        body += _lines(8, loop) + whole + _lines(12, copy_a("ko"), *work)
        used *= 2
    elif form == "carry":  # what an iteration reads was written by the one before
        body += _lines(8, copy_a("0"), copy_b("0"), loop) + _lines(12, *work, copy_a("(ko + 1)"), copy_b("(ko + 1)"))
    elif form == "halves" and "fragment" not in (side_a, side_b) and bk % 2 == 0:  # a product of each half of K
        body += _lines(8, loop) + _lines(12, copy_a("ko"), copy_b("ko"))
        for part in (f"0:{bk // 2}", f"{bk // 2}:{bk}"):
            left = f"A_s[{part}, :]" if ta else f"A_s[:, {part}]"
            right = f"B_s[:, {part}]" if tb else f"B_s[{part}, :]"
            body += _lines(12, gemm.replace("T.gemm(A_s, B_s", f"T.gemm({left}, {right}"))
    elif form == "manual" and "fragment" not in (side_a, side_b) and not layouts[0]:  # stages written by hand
        body = body.replace(f"A_s = T.alloc_shared({a_tile}", f"A_s = T.alloc_shared({(2, *a_tile)}")
        stage = lambda step: f"A_s[{step} % 2, 0:{a_tile[0]}, 0:{a_tile[1]}]"  # noqa: E731
        body += _lines(8, copy_a("0").replace("A_s", stage("0")), f"for ko in T.serial({steps}):")
        body += _lines(12, copy_b("ko"), f"if ko + 1 < {steps}:")
        body += _lines(16, copy_a("(ko + 1)").replace("A_s", stage("(ko + 1)")))
        body += _lines(12, gemm.replace("A_s", stage("ko")))
    elif (
        form == "outer" and "fragment" not in (side_a, side_b) and not layouts[0]
    ):  # an outer loop chooses a part of a tile
        body = body.replace(f"A_s = T.alloc_shared({a_tile}", f"A_s = T.alloc_shared({(2, *a_tile)}")
        chosen = lambda place: f"A_s[{place}, 0:{a_tile[0]}, 0:{a_tile[1]}]"  # noqa: E731
        body += _lines(8, "for g in T.serial(2):") + _lines(12, loop)
        body += _lines(16, copy_a("ko").replace("A_s", chosen("g")), copy_b("ko"))
        body += _lines(16, gemm.replace("A_s", chosen("0" if stale else "g")))
        used *= 2
    elif form == "blocks":  # loops of blocks differ in length, and some have none
        body += _lines(8, loop.replace(str(steps), f"(by * 2 + bx) % {steps + 1}", 1)) + whole
    elif form == "scaled":
        body += _lines(8, loop) + _lines(12, copy_a("ko"), copy_b("ko"))
        body += _lines(12, f"for i, j in T.Parallel({a_tile[0]}, {a_tile[1]}):")
        body += _lines(16, "A_s[i, j] = A_s[i, j] * 2") + _lines(12, *work)
        used *= 2
    else:
        body += _lines(8, loop if form == "plain" else f"for ko in T.serial({steps}):") + whole
    if epilogue == "clear" and form not in ("manual", "outer"):  # the sum so far is thrown away
        body += _lines(8, copy_a("0"), copy_b("0"), *to_fragments, gemm.replace("policy", "clear_accum=True, policy"))
        used[:] = 0
        used[0] = 1
    a, b = _values(1, (k, m) if ta else (m, k), dtype), _values(2, (n, k) if tb else (k, n), dtype)
    bias, column = _values(3, (n,), "float32"), _values(4, (m,), "float32")
    wa, wb = (_wide(a).T if ta else _wide(a)), (_wide(b).T if tb else _wide(b))
    expected = (wa * np.repeat(used, bk)[:k]) @ wb
    if form == "outer" and "A_s[0, " in body:
        last = np.zeros((m, bk))
        last[:, : k - (steps - 1) * bk] = wa[:, (steps - 1) * bk :]
        expected = wa @ wb + sum(last[:, : len(part)] @ part for part in np.split(wb, range(bk, k, bk)))
    elif form == "blocks" and epilogue != "clear":
        for y, x in itertools.product(range(-(-m // bm)), range(-(-n // bn))):
            rows, columns = slice(y * bm, (y + 1) * bm), slice(x * bn, (x + 1) * bn)
            length = (y * 2 + x) % (steps + 1) * bk
            expected[rows, columns] = wa[rows, :length] @ wb[:length, columns]
    body += _epilogue(epilogue, bm, bn, accum, out)
    if epilogue == "bias":
        expected = expected + _wide(bias)
    elif epilogue == "column":
        expected = expected * _wide(column)[:, None]
    elif epilogue == "relu":
        expected = np.maximum(expected, 0)
    if accum == "int32" and epilogue in ("bias", "column"):
        return draw(st.nothing())
    shapes = [f"A: T.Tensor({a.shape}, '{dtype}')", f"B: T.Tensor({b.shape}, '{dtype}')"]
    arrays = [a, b]
    if epilogue in ("bias", "column"):
        extra = bias if epilogue == "bias" else column
        shapes.append(f"bias: T.Tensor({extra.shape}, 'float32')")
        arrays.append(extra)
    shapes.append(f"C: T.Tensor(({m}, {n}), '{out}')")
    arrays.append(np.zeros((m, n), numpy_dtype(out)))
    source = _kernel(", ".join(shapes), f"{-(-n // bn)}, {-(-m // bm)}", "(bx, by)", threads, body)
    return Drawn(source, arrays, expected, options)


def _epilogue(kind: str, bm: int, bn: int, accum: str, out: str) -> str:
    nest = f"for i, j in T.Parallel({bm}, {bn}):"
    place = f"C[by * {bm}, bx * {bn}]"
    if kind == "bias":
        return _lines(8, nest) + _lines(12, f"acc[i, j] += bias[bx * {bn} + j]") + _lines(8, f"T.copy(acc, {place})")
    if kind == "column":
        return _lines(8, nest) + _lines(12, f"acc[i, j] *= bias[by * {bm} + i]") + _lines(8, f"T.copy(acc, {place})")
    if kind == "relu":
        element = f"C[by * {bm} + i, bx * {bn} + j]"
        return _lines(8, nest) + _lines(12, f"{element} = T.max(acc[i, j], 0)")
    if kind == "shared":
        tile = f"C_s = T.alloc_shared(({bm}, {bn}), '{out}')"
        return _lines(8, tile, "T.copy(acc, C_s)", f"T.copy(C_s, {place})")
    return _lines(8, f"T.copy(acc, {place})")


# -- two products --------------------------------------------------------------------------------------------------


@st.composite
def chains(draw: Any) -> Drawn:
    """``D = f(A @ B) @ V``: the first result is an operand of the second, in registers."""
    pick = _picker(draw)
    m, n, d = draw(st.integers(1, 70)), draw(st.integers(1, 70)), draw(st.integers(1, 40))
    bm, bn, bd = pick(32, 64, 16), pick(32, 64, 16), pick(16, 32, 64)
    dtype = pick("float16", "float16", "bfloat16", "float32")
    threads, stages = pick(64, 128), draw(st.integers(1, 4))
    between = pick("none", "scale", "softmax", "row", "shared")
    policy, second = pick("FullRow", "FullRow", "Square", "FullCol"), pick("FullRow", "same")
    if between in ("softmax", "row"):
        policy = second = "FullRow"
    tb = draw(st.booleans())
    options = {key: value for key, value in locals().items() if isinstance(value, (int, str, bool))}
    columns = 24
    q, key = _values(1, (m, columns), dtype), _values(2, (n, columns) if tb else (columns, n), dtype)
    v = _values(3, (n, d), dtype)
    copy_key = f"T.copy(B[k * {bn}, 0], B_s)" if tb else f"T.copy(B[0, k * {bn}], B_s)"
    b_tile = (bn, 32) if tb else (32, bn)
    body = _lines(
        8,
        f"Q_s = T.alloc_shared(({bm}, 32), '{dtype}')",
        f"B_s = T.alloc_shared({b_tile}, '{dtype}')",
        f"V_s = T.alloc_shared(({bn}, {bd}), '{dtype}')",
        f"S = T.alloc_fragment(({bm}, {bn}), 'float32')",
        f"P = T.alloc_fragment(({bm}, {bn}), '{dtype}')",
        f"P_s = T.alloc_shared(({bm}, {bn}), '{dtype}')" if between == "shared" else "",
        f"O = T.alloc_fragment(({bm}, {bd}), 'float32')",
        f"high = T.alloc_fragment(({bm},), 'float32')" if between in ("softmax", "row") else "",
        "T.clear(O)",
        f"T.copy(A[by * {bm}, 0], Q_s)",
        f"for k in T.Pipelined({-(-n // bn)}, num_stages={stages}):",
    )
    body += _lines(
        12,
        copy_key,
        f"T.copy(V[k * {bn}, bx * {bd}], V_s)",
        f"T.gemm(Q_s, B_s, S, transpose_B={tb}, clear_accum=True, policy=T.GemmWarpPolicy.{policy})",
    )
    scores = _wide(q) @ (_wide(key).T if tb else _wide(key))
    nest = f"for i, j in T.Parallel({bm}, {bn}):"
    if between == "scale":
        body += _lines(12, nest) + _lines(16, "S[i, j] = T.max(S[i, j], 0) * 0.5")
        scores = np.maximum(scores, 0) * 0.5
    elif between in ("softmax", "row"):
        body += _lines(12, "T.reduce_max(S, high, dim=1)", nest)
        if between == "row":  # the largest of the tile, which is nothing one would compute, but well defined
            body += _lines(16, "S[i, j] = S[i, j] - high[i]")
        else:
            body += _lines(16, "S[i, j] = T.exp(S[i, j] - high[i])")
        parts = []
        for start in range(0, n, bn):
            part = scores[:, start : start + bn]
            whole = np.pad(part, ((0, 0), (0, bn - part.shape[1])))
            parts.append(part - whole.max(axis=1, keepdims=True))
        scores = np.concatenate(parts, axis=1)
        if between == "softmax":
            scores = np.exp(scores)
    body += _lines(12, "T.copy(S, P)")
    left = "P"
    if between == "shared":
        body += _lines(12, "T.copy(P, P_s)")
        left = "P_s"
    policy_2 = policy if second == "same" else second
    body += _lines(12, f"T.gemm({left}, V_s, O, policy=T.GemmWarpPolicy.{policy_2})")
    body += _lines(8, f"T.copy(O, D[by * {bm}, bx * {bd}])")
    rounded = _wide(np.asarray(scores).astype(numpy_dtype(dtype)))
    expected = rounded @ _wide(v)
    parameters = ", ".join(
        [
            f"A: T.Tensor({q.shape}, '{dtype}')",
            f"B: T.Tensor({key.shape}, '{dtype}')",
            f"V: T.Tensor({v.shape}, '{dtype}')",
            f"D: T.Tensor(({m}, {d}), 'float32')",
        ]
    )
    source = _kernel(parameters, f"{-(-d // bd)}, {-(-m // bm)}", "(bx, by)", threads, body)
    return Drawn(source, [q, key, v, np.zeros((m, d), np.float32)], expected, options)


# -- nests and reductions ------------------------------------------------------------------------------------------


@st.composite
def nests(draw: Any) -> Drawn:
    """Tiles through shared memory and registers, turned, shifted, reduced."""
    pick = _picker(draw)
    m, n = draw(st.integers(1, 80)), draw(st.integers(1, 80))
    bm, bn = pick(8, 16, 32, 48), pick(8, 16, 32, 64, 20)
    dtype, threads = pick("float32", "float16", "float64", "int32"), pick(64, 128)
    steps = draw(
        st.lists(st.sampled_from(["turn", "double", "add", "fragment", "sum", "columns", "shift"]), max_size=4)
    )
    layout, stages = pick(*LAYOUTS), draw(st.integers(1, 4))
    accum = dtype if dtype in ("int32", "float64") else "float32"
    size = {"float16": 2, "float32": 4, "float64": 8, "int32": 4}[dtype]
    if "swizzled" in layout and bn * size % 32:
        layout = ""
    options = {key: value for key, value in locals().items() if isinstance(value, (int, str, list))}
    a = _values(1, (m, n), dtype)
    pad = np.zeros((-(-m // bm) * bm, -(-n // bn) * bn))
    pad[:m, :n] = _wide(a)
    tiles = pad.reshape(-(-m // bm), bm, -(-n // bn), bn).transpose(0, 2, 1, 3).copy()
    rows, columns, name = bm, bn, "S"
    body = _lines(
        8,
        f"S = T.alloc_shared(({bm}, {bn}), '{dtype}')",
        f"T.annotate_layout({{S: {layout.format(tile='S')}}})" if layout else "",
        f"total = T.alloc_fragment(({bm},), '{accum}')",
        "T.clear(total)",
        f"for k in T.Pipelined({-(-n // bn)}, num_stages={stages}):",
        f"    T.copy(A[bx * {bm}, k * {bn}], S)",
    )
    for number, step in enumerate(steps):
        nest = f"for i, j in T.Parallel({rows}, {columns}):"
        if step == "turn":
            body += _lines(12, f"S{number} = T.alloc_shared(({columns}, {rows}), '{dtype}')")
            body += _lines(12, f"for i, j in T.Parallel({columns}, {rows}):", f"    S{number}[i, j] = {name}[j, i]")
            tiles, rows, columns, name = tiles.transpose(0, 1, 3, 2), columns, rows, f"S{number}"
        elif step == "double":
            body += _lines(12, nest, f"    {name}[i, j] = {name}[i, j] + {name}[i, j]")
            tiles = tiles * 2
        elif step == "add":
            body += _lines(12, nest, f"    {name}[i, j] += 1")
            tiles = tiles + 1
        elif step == "fragment":
            body += _lines(
                12,
                f"F{number} = T.alloc_fragment(({rows}, {columns}), '{dtype}')",
                f"T.copy({name}, F{number})",
                nest,
                f"    F{number}[i, j] = F{number}[i, j] * 2",
                f"T.copy(F{number}, {name})",
            )
            tiles = tiles * 2
        elif step == "shift":
            body += _lines(12, f"S{number} = T.alloc_shared(({rows}, {columns}), '{dtype}')")
            body += _lines(12, nest, f"    S{number}[i, (j + 3) % {columns}] = {name}[i, j]")
            tiles, name = np.roll(tiles, 3, axis=3), f"S{number}"
        elif step == "sum":  # each row's sum in its first column
            body += _lines(
                12,
                f"R{number} = T.alloc_fragment(({rows},), '{accum}')",
                f"T.reduce_sum({name}, R{number}, dim=1)",
                f"for i in T.Parallel({rows}):",
                f"    {name}[i, 0] = T.cast(R{number}[i] * 0, '{dtype}')",
            )
            tiles = tiles.copy()
            tiles[..., 0] = 0
        else:
            body += _lines(
                12,
                f"R{number} = T.alloc_fragment(({columns},), '{accum}')",
                f"T.reduce_max({name}, R{number}, dim=0)",
                nest,
                f"    {name}[i, j] = {name}[i, j] - T.cast(R{number}[j], '{dtype}')",
            )
            tiles = tiles - tiles.max(axis=2, keepdims=True)
    final = f"L = T.alloc_fragment(({rows},), '{accum}')"
    if rows == bm:
        body += _lines(12, final, f"T.reduce_sum({name}, L, dim=1)")
        body += _lines(12, f"for i in T.Parallel({bm}):", "    total[i] += L[i]")
        expected = tiles.sum(axis=(1, 3)).reshape(-1)[:m]
    else:
        final = f"L = T.alloc_fragment(({columns},), '{accum}')"
        body += _lines(12, final, f"T.reduce_sum({name}, L, dim=0)")
        body += _lines(12, f"for i in T.Parallel({bm}):", "    total[i] += L[i]")
        expected = tiles.sum(axis=(1, 2)).reshape(-1)[:m]
    body += _lines(8, f"T.copy(total, B[bx * {bm}])")
    parameters = f"A: T.Tensor({a.shape}, '{dtype}'), B: T.Tensor(({m},), '{accum}')"
    source = _kernel(parameters, f"{-(-m // bm)}", "bx", threads, body)
    return Drawn(source, [a, np.zeros(m, numpy_dtype(accum))], expected, options)
