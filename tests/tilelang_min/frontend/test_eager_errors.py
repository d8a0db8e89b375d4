"""Every error of functions that are kernels: message, line, caret and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_source import MARK, load, take_mark

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LanguageError, LaunchError, ShapeError, TileLangError

HEAD = """\
import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit(target="cpu")
"""
DEFAULT = {
    "head": "def f(A, B):",
    "lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")',
    "kernel": "with T.Kernel(1, threads=32) as bx:\n    for i in T.Parallel(8):\n        B[i] = A[i]",
    "end": "",
}
OUT = {
    "head": "def f(A):",
    "lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB = T.empty((N,), "float32")',
    "end": "return B",
}
FIXED = 'A: T.Tensor((8,), "float32")\nB: T.Tensor((8,), "float32")'
x, x9, xx = np.zeros(8, np.float32), np.zeros(9, np.float32), np.zeros((8, 8), np.float32)

# What differs from DEFAULT (the mark « before the expected caret), the call, a part of the message, a part of the remedy.
CASES: dict[str, tuple[dict[str, str], str, str, str]] = {
    # -- shapes and types --------------------------------------------------------------------------------------
    "rank": (
        {"lines": 'N = T.const("N")\nA: «T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(xx, x)",
        "'A' has 1 dimension here, and the tensor that it is given has 2: (8, 8)",
        "pass a tensor of that rank, or annotate all of its dimensions",
    ),
    "two tensors that disagree": (
        {"lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: «T.Tensor[[N], "float32"]'},
        "f(x, x9)",
        "N is 8 by dimension 0 of A, but 9 by dimension 0 of B",
        "pass tensors that agree on N, or give one of them another T.const",
    ),
    "a tensor that disagrees with a keyword": (
        {"lines": 'N = T.const("N")\nA: «T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x, x, N=9)",
        "N is 9 by keyword, but 8 by dimension 0 of A",
        "pass tensors that agree on N",
    ),
    "a fixed dimension": (
        {"lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: «T.Tensor((8,), "float32")'},
        "f(x, x9)",
        "dimension 0 of 'B' is 8 here, and 9 in the tensor that it is given",
        "pass a tensor of this shape, or name the dimension with T.const",
    ),
    "a computed dimension": (
        {"lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: «T.Tensor((N + 2,), "float32")'},
        "f(x, x9)",
        "dimension 0 of 'B' is 10 here, and 9 in the tensor",
        "pass a tensor of this shape",
    ),
    "an empty tensor": (
        {"lines": 'N = T.const("N")\nA: «T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x[:0], x[:0])",
        "dimension 0 of 'A' is 0: there is nothing to compute",
        "make the dimension T.dynamic",
    ),
    "data type": (
        {"lines": 'N = T.const("N")\nA: «T.Tensor((N,), T.float16)\nB: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "parameter A must be float16, the tensor is float32",
        "convert it to float16",
    ),
    "an output without a size": (
        {**OUT, "lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\n«B = T.empty((N - 8,), "float32")'},
        "f(x)",
        "dimension 0 of 'B' is not a positive integer",
        "compute it of T.const dimensions and plain integers",
    ),
    "an output of no type": (
        {**OUT, "lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\n«B = T.empty((N,), "float33")'},
        "f(x)",
        "'float33' is not a supported data type",
        "use one of",
    ),
    # -- dimensions --------------------------------------------------------------------------------------------
    "a dimension of no tensor": (
        {"lines": 'N, L = 8, 8\n«L = T.const("L")\nA: T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "nothing says how large L is",
        "let L stand as it is in the shape of a tensor: A: T.Tensor((L, ...), dtype), or pass L=...",
    ),
    "a dimension that is only computed with": (
        {"lines": '«N = T.const("N")\nA: T.Tensor((N * 2,), "float32")\nB: T.Tensor((8,), "float32")'},
        "f(x, x)",
        "nothing says how large N is",
        "let N stand as it is",
    ),
    "compiling without its tensor": (
        {"lines": '«N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: T.Tensor((8,), "float32")'},
        "f.compile(B=x)",
        "nothing says how large N is",
        "pass N=..., or the tensors A",
    ),
    "a keyword that is nothing": (
        {"head": "«def f(A, B):"},
        "f(x, x, NN=8)",
        "f has no parameter 'NN', and no dimension of T.const of that name",
        "Known: A, B, N",
    ),
    "a name that the language does not have": (
        {"lines": DEFAULT["lines"] + "\n«limit = T.floow(3.5)"},
        "f(x, x)",
        "the tile language has no T.floow",
        "did you mean T.floor?",
    ),
    "an annotation that the language does not have": (
        {"lines": 'N = T.const("N")\n«A: T.StridedTensor((N,), (1,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "the tile language has no T.StridedTensor",
        "",
    ),
    "a name that is none": (
        {"lines": '«N = T.const("1N")\nA: T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "'1N' is no name",
        "use letters, digits and _",
    ),
    "no name": ({"lines": "«N = T.const(',')\n" + FIXED}, "f(x, x)", "T.const needs a name", 'write M = T.const("M")'),
    "a dimension of floats": (
        {"lines": '«N = T.const("N", "float32")\n' + FIXED},
        "f(x, x)",
        "dimensions are integers",
        "leave the type out",
    ),
    "a runtime dimension that decides": (
        {
            "lines": 'N = T.dynamic("n")\nA: T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")\n«if N > 8:\n    pass'
        },
        "f(x, x)",
        "n is known at launch alone and cannot decide anything before",
        "compare it inside the kernel",
    ),
    "a runtime dimension of an output alone": (
        {
            **OUT,
            "head": "«def f(A):",
            "lines": 'A: T.Tensor((8,), "float32")\nB = T.empty((T.dynamic("n"),), "float32")',
        },
        "f(x)",
        "nothing says how large the runtime dimension n is",
        "use it as a dimension of a T.Tensor",
    ),
    "a computed runtime dimension": (
        {**OUT, "lines": 'N = T.dynamic("n")\nA: T.Tensor((N,), "float32")\n«B = T.empty((2 * N,), "float32")'},
        "f(x)",
        "dimension (2 * n) of 'B' is computed of what is known at launch alone",
        "make it a runtime dimension of its own",
    ),
    # -- annotations -------------------------------------------------------------------------------------------
    "a tensor without annotation": (
        {"head": "def f(A, B, «D):"},
        "f(x, x, x)",
        "'D' is given a tensor and has no annotation of one",
        "write it in front of `with T.Kernel(...)`: D: T.Tensor((M, N), 'float16')",
    ),
    "an annotation that is not reached": (
        {
            "head": "def f(A, B, «D=None, on=False):",
            "lines": DEFAULT["lines"] + '\nif on:\n    D: T.Tensor((N,), "float32")',
        },
        "f(x, x, x)",
        "'D' is given a tensor and has no annotation of one",
        "D: T.Tensor((M, N), 'float16')",
    ),
    "an annotation without a shape": (
        {"lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\nB: «T.Tensor'},
        "f(x, x)",
        "T.Tensor of 'B' has no shape",
        "B: T.Tensor((M, N), 'float16')",
    ),
    "an annotation of no parameter": (
        {"lines": DEFAULT["lines"] + '\n«D: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "'D' is annotated as a tensor and is no parameter of f",
        "or make it an output: D = T.empty(shape, dtype)",
    ),
    "what is no tensor": (
        {"head": "def f(«A, B):"},
        "f([1.0], x)",
        "'A' of f is list, and the kernel annotates it as a tensor",
        "pass a NumPy array or a torch tensor",
    ),
    "a tensor in front of its annotation": (
        {"lines": '«N = A.shape[0]\nA: T.Tensor((N,), "float32")\nB: T.Tensor((N,), "float32")'},
        "f(x, x)",
        "A.shape is asked for in front of the annotation of A",
        "name dimensions with T.const",
    ),
    "parameters without names": (
        {"head": "def f(A, B, *«rest):"},
        "f(x, x)",
        "have names of their own",
        "name each of them",
    ),
    # -- outputs -----------------------------------------------------------------------------------------------
    "an output that is not returned": (
        {**OUT, "lines": 'N = T.const("N")\nA: T.Tensor((N,), "float32")\n«B = T.empty((N,), "float32")', "end": ""},
        "f(x)",
        "B is made by T.empty and not returned",
        "end the function with `return B`, or take the tensor as a parameter",
    ),
    "one of two": (
        {**OUT, "lines": OUT["lines"] + '\n«D = T.empty((N,), "float32")'},
        "f(x)",
        "D is made by T.empty and not returned",
        "end the function with `return B, D`",
    ),
    "an argument returned": (
        {"end": "return «B"},
        "f(x, x)",
        "B is an argument: whoever calls f has it",
        "leave it out",
    ),
    "a number returned": ({"end": "return «N"}, "f(x, x)", "N is no tensor of T.empty", "N = T.empty(shape, dtype)"),
    "a tile returned": (
        {**OUT, "end": "return B, «bx"},
        "f(x)",
        "bx is no tensor of T.empty",
        "bx = T.empty(shape, dtype)",
    ),
    "an expression returned": (
        {**OUT, "end": "return «B + 1"},
        "f(x)",
        "B + 1 is no tensor of T.empty",
        "write return C",
    ),
    "returned twice": ({**OUT, "end": "return B, «B"}, "f(x)", "B is returned twice", "return each tensor once"),
    "a shape without brackets": (
        {**OUT, "lines": OUT["lines"] + '\n«D = T.empty(N, "float32")'},
        "f(x)",
        "T.empty has 'float32' among its extents",
        "write the shape in brackets",
    ),
    "two types": (
        {**OUT, "lines": OUT["lines"] + '\n«D = T.empty((N,), "float32", "float16")'},
        "f(x)",
        "T.empty takes a shape and a data type",
        "write C = T.empty((M, N), 'float16')",
    ),
    # -- the function ------------------------------------------------------------------------------------------
    "a list as default": (
        {"head": "def f(A, B, shape=«[8, 8]):"},
        "f(x, x)",
        "the default of 'shape' is a list, which can change between calls",
        "write a tuple",
    ),
    "a dictionary as default": (
        {"head": "def f(A, B, *, options=«{}):"},
        "f(x, x)",
        "the default of 'options' is a dict, which can change",
        "write a value that cannot change",
    ),
    "a return in front": (
        {"lines": DEFAULT["lines"] + "\nif N > 8:\n    «return"},
        "f(x, x)",
        "the function returns in front of its `with T.Kernel(...)`",
        "return the tensors of T.empty in its last line",
    ),
    "a statement behind": (
        {"end": "«print(N)"},
        "f(x, x)",
        "a statement behind `with T.Kernel(...)` is not part of the kernel",
        "move it in front of the with block, or into it",
    ),
    "a return inside": (
        {**OUT, "kernel": "with T.Kernel(1, threads=32) as bx:\n    «return B", "end": ""},
        "f(x)",
        "the function returns inside of its `with T.Kernel(...)`",
        "move this line behind the block",
    ),
    "a kernel inside another statement": (
        {"kernel": "if N > 4:\n    «with T.Kernel(1, threads=32) as bx:\n        B[0] = A[0]"},
        "f(x, x)",
        "`with T.Kernel(...)` stands inside another statement",
        "let it stand at the top level of the function",
    ),
    "two kernels": (
        {"end": "«with T.Kernel(1, threads=32) as bx:\n    B[0] = A[0]"},
        "f(x, x)",
        "a kernel has one `with T.Kernel(...)` block",
        "write a second function",
    ),
    "no kernel": (
        {"head": "«def f(A, B):", "kernel": "T.Kernel"},
        "f(x, x)",
        "launches nothing",
        "or return a @T.prim_func",
    ),
    "a dimension inside the kernel": (
        {"kernel": 'with T.Kernel(1, threads=32) as bx:\n    M = «T.const("M")'},
        "f(x, x)",
        "T.const('M') was called where no arguments are known",
        "write it in front of `with T.Kernel(...)`",
    ),
    "an output inside the kernel": (
        {"kernel": "with T.Kernel(1, threads=32) as bx:\n    D = «T.empty((8,))"},
        "f(x, x)",
        "T.empty was called where no kernel is made",
        "write it in front of `with T.Kernel(...)`",
    ),
}


def written(parts: dict[str, str]) -> str:
    """The module of a case."""
    named = {**DEFAULT, **parts}
    lines = "\n".join(named[part] for part in ("lines", "kernel", "end"))
    return HEAD + named["head"] + "\n" + "\n".join(f"    {line}" for line in lines.splitlines() if line) + "\n"


def raised(folder: Path, parts: dict[str, str], call: str) -> TileLangError:
    with pytest.raises(TileLangError) as caught:
        eval(call, {"f": load(folder, written(parts)).f, "x": x, "x9": x9, "xx": xx})
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_errors_say_what_where_and_what_instead(name: str, tmp_path: Path) -> None:
    parts, call, message, remedy = CASES[name]
    _, line, column = take_mark(written(parts))
    error = raised(tmp_path, {key: text.replace(MARK, "") for key, text in parts.items()}, call)
    assert message in error.message
    assert remedy in (error.remedy or "")
    assert error.location is not None
    assert (error.location.line, error.location.column + 1) == (line, column)


# Mistakes of a call, which have no line in the kernel.
CALLS: dict[str, tuple[str, str, str]] = {
    "too many": ("f(x, x, x)", "f takes 2 arguments by position, 3 given", "its parameters are A, B"),
    "twice": ("f(x, A=x)", "f is given 'A' twice", "pass it by position or by name"),
    "too few": ("f(x)", "f needs B", "call it as f(A, B); f.compile(...) does without tensors"),
    "a dimension of text": ("f.compile(N='8')", "N='8' of f is no dimension", "pass a positive integer"),
    "a negative dimension": ("f.compile(N=-8)", "N=-8 of f is no dimension", "pass a positive integer"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_do_not_fit(name: str, tmp_path: Path) -> None:
    call, message, remedy = CALLS[name]
    error = raised(tmp_path, {}, call)
    assert message in error.message
    assert remedy in (error.remedy or "")


def test_a_constant_that_is_missing(tmp_path: Path) -> None:
    error = raised(tmp_path, {"head": "def f(A, B, block):"}, "f.compile(N=8)")
    assert error.message == "f needs block"


def test_an_output_that_the_kernel_reads(tmp_path: Path) -> None:
    kernel = "with T.Kernel(1, threads=32) as bx:\n    for i in T.Parallel(8):\n        B[i] += A[i]"
    error = raised(tmp_path, {**OUT, "kernel": kernel}, "f(x)")
    assert error.message.startswith("B of f is made by T.empty, and the kernel reads it")
    assert error.remedy == "take B as a parameter, and pass a tensor"


def test_the_kinds_of_errors(tmp_path: Path) -> None:
    """Shapes and types of arguments are errors of the call that catch as such."""
    assert isinstance(raised(tmp_path, {}, "f(x, x9)"), ShapeError)
    assert isinstance(raised(tmp_path, {}, "f(x, x.astype('float64'))"), LaunchError)


def test_what_the_authors_lines_raise_is_raised(tmp_path: Path) -> None:
    """Also where it hides a dimension: not that the dimension is unknown."""
    lines = (
        'N = T.const("N")\nA: T.Tensor((N,), "float32")\nassert N % 16 == 0, f"N is {N}"\nB: T.Tensor((N,), "float32")'
    )
    function = load(tmp_path, written({"lines": lines})).f
    with pytest.raises(AssertionError, match="N is 8"):
        function(x, x)
    lines = 'N = T.const("N")\nA: T.Tensor((N,), dtipe)\nB: T.Tensor((8,), "float32")'
    function = load(tmp_path, written({"lines": lines})).f
    with pytest.raises(NameError, match="dtipe"):
        function(x, x)


def test_options_that_do_not_belong_to_it() -> None:
    def f(A):
        with T.Kernel(1, threads=32) as bx:
            A[0] = bx

    with pytest.raises(LanguageError, match="out_idx of f: its body is the kernel") as caught:
        tilelang.jit(out_idx=[0])(f)
    assert "make outputs with C = T.empty" in (caught.value.remedy or "")


@pytest.mark.parametrize(("call", "message"), [(lambda: T.const("M"), "T.const"), (lambda: T.empty((2,)), "T.empty")])
def test_outside_of_kernels(call: Any, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        call()
    assert "a function under @tilelang.jit whose body is the kernel" in (caught.value.remedy or "")
