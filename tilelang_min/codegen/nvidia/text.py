"""Rewrites TVM's CUDA C++ so that the cubin's line table names tile operations.

Two things stand in the way in the text as printed.  Operation markers are calls of a function that does not exist: they
become ``#line`` directives.  And every PTX instruction is a helper function, whose line is where the machine code would
point: ptxas merges neighbouring instructions of one helper into one row of the line table, whatever lines they were
called from.  So the helpers become macros, which have no line of their own.
"""

from __future__ import annotations

import re

from tilelang_min.codegen.nvidia.joined import join
from tilelang_min.codegen.nvidia.lines import OperationLines
from tilelang_min.codegen.nvidia.printing import ROLLED
from tilelang_min.errors import CodegenError
from tilelang_min.program import OPERATION_MARKER

_HELPER = re.compile(
    r"^__forceinline__ __device__ (?P<type>[\w ]+?[ *]+)(?P<name>\w+)\((?P<parameters>[^()]*)\) \{\n(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
_ASM_BODY = re.compile(r'\s*asm volatile\((?P<inside>(?:"(?:[^"\\]|\\.)*"|[^;"])*)\);\s*')
_RETURN_BODY = re.compile(r"\s*return (?P<value>[^;]*);\s*")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_MARKER = re.compile(rf"\s*{OPERATION_MARKER}\((\d+)\);\s*")
_SMALLEST = re.compile(r"(?<![\w.])-(?:(2147483648)|9223372036854775808)(?![\w.])")
_ROLLED = re.compile(rf"{ROLLED}\((\d+)\);")
_KERNEL = re.compile(r'^extern "C" __global__ .*\{\s*$', re.MULTILINE)


def finish(text: str, lines: OperationLines) -> str:
    """Text for NVRTC from text as TVM printed it: helpers as macros, operation markers as ``#line`` directives."""
    kernel = _KERNEL.search(text)
    if kernel is None:
        raise CodegenError("the printed CUDA C++ holds no kernel")
    body = _ROLLED.sub(r"#pragma unroll \1", smallest_integers(text[kernel.start() :]))
    macros, body = join(helpers_to_macros(text[: kernel.start()]), body)
    return macros + markers_to_lines(body, lines)


def smallest_integers(text: str) -> str:
    """The smallest int32 and int64 as C++ must write them: its ``-2147483648`` negates a number that is a ``long``."""
    return _SMALLEST.sub(lambda number: "(-2147483647 - 1)" if number[1] else "(-9223372036854775807LL - 1)", text)


def helpers_to_macros(text: str) -> str:
    """Every helper function that is one ``asm`` statement, or returns one expression, as a macro of the same name.

    ``void f(float& d, uint32_t a) { asm volatile("..." : "=f"(d) : "r"(a)); }`` becomes
    ``#define f(d, a) asm volatile("..." : "=f"(d) : "r"((uint32_t)(a)))``; helpers of any other form stay functions.
    """
    return _HELPER.sub(_macro, text)


def _macro(helper: re.Match[str]) -> str:
    result_type = helper["type"].strip()
    parameters = [_parameter(item) for item in helper["parameters"].split(",") if item.strip()]
    if result_type == "void" and (asm := _ASM_BODY.fullmatch(helper["body"])):
        body = f"asm volatile({_substitute(asm['inside'], dict(parameters))})"
    elif result_type != "void" and (value := _RETURN_BODY.fullmatch(helper["body"])):
        body = f"(({result_type})({_substitute(value['value'], dict(parameters))}))"
    else:
        return helper[0]
    body = " ".join(body.split("\n"))
    return f"#define {helper['name']}({', '.join(name for name, _ in parameters)}) {body}\n"


def _parameter(declaration: str) -> tuple[str, str]:
    """Name of a parameter, and the text that stands for it in a macro: by value with a cast, by reference bare."""
    parts = re.fullmatch(r"\s*(.*?)(\w+)\s*", declaration, re.DOTALL)
    if parts is None:
        raise CodegenError(f"a parameter of a printed helper function is not understood: {declaration!r}")
    kind, name = parts[1].strip(), parts[2]
    return name, name if kind.endswith("&") else f"({kind})({name})"


def _substitute(text: str, replacements: dict[str, str]) -> str:
    """Words replaced outside string literals."""
    pieces = _STRING.split(text)
    pieces[::2] = [_WORD.sub(lambda word: replacements.get(word[0], word[0]), piece) for piece in pieces[::2]]
    return "".join(pieces)


def markers_to_lines(kernel: str, lines: OperationLines) -> str:
    """The kernel with each physical line preceded by the ``#line`` of its operation; before the first marker that is 0.

    The directive is repeated for every physical line, since the line number would count on by itself otherwise.
    """
    directive = _directive(0, lines)
    result: list[str] = []
    for line in kernel.split("\n"):
        if marker := _MARKER.fullmatch(line):
            directive = _directive(int(marker[1]), lines)
        elif line.strip():
            result += (directive, line)
    text = "\n".join(result) + "\n"
    if OPERATION_MARKER in text:
        raise CodegenError("an operation marker does not stand on a line of its own in the printed CUDA C++")
    return text


def _directive(operation: int, lines: OperationLines) -> str:
    try:
        file, line = lines.place(operation)
    except KeyError:
        raise CodegenError(f"the thread program marks operation {operation}, which it does not list") from None
    return f'#line {line} "{file}"'
