"""Thread program -> LLVM text, unoptimised, as a plain C function without TVM's runtime.

TVM lowers and prints (``target.build.llvm`` without MakePackedAPI, optimisation level 0).  The text is then made ours:

* TVM's module glue (constructor, function tables) and, where the processor converts itself, the float16 helpers go;
* tiles become fixed arrays on the stack: TVM prints ``alloca float, i64 128, align 16``, which LLVM splits into registers
  late or never and which a 64-byte vector straddles cache lines in; ``alloca [128 x float], align 64`` it splits at once;
* function attributes: the whole vector width, no recognition of loops as ``memcpy`` or ``memset`` (library calls would
  hide instructions from the listing and leave undefined symbols), and stack probes, so that a stack that is too small is a
  fault at the guard page and never a write beyond it;
* elementary functions and conversions get their definitions (:mod:`tilelang_min.codegen.cpu.elementary`,
  :mod:`tilelang_min.codegen.llvm_float64`, :mod:`tilelang_min.codegen.llvm_conversions`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tilelang_min.codegen import llvm_atomics, llvm_conversions, llvm_float64
from tilelang_min.codegen.cpu import elementary
from tilelang_min.codegen.cpu.streaming import stream_large_results
from tilelang_min.codegen.passes import lowered
from tilelang_min.codegen.storage import Needs, with_plain_types
from tilelang_min.errors import CodegenError
from tilelang_min.program.thread_program import STREAM_ATTRIBUTE

if TYPE_CHECKING:
    from tilelang_min.program import ThreadProgram

TRIPLE = "x86_64-unknown-linux-gnu"

_GLUE = re.compile(r"^@(?:__tvm_|__TVM|llvm\.global_ctors).*\n", re.MULTILINE)
_STARTUP = re.compile(r"^define internal void @__tvm_module_startup\(\).*?^}\n", re.MULTILINE | re.DOTALL)
_HALF_HELPER = re.compile(
    r"^(?:; Function Attrs:[^\n]*\n)?define weak dso_local \w+ @__(?:trunc|extend)\w+\(.*?^}\n",
    re.MULTILINE | re.DOTALL,
)
_ARRAY = re.compile(r"= alloca (half|bfloat|float|double|i\d+), i\d+ (\d+), align \d+")
_ATTRIBUTES = re.compile(r"^(attributes #\d+ = \{)(?=.*\"target-cpu\")", re.MULTILINE)
_NEEDS = Needs(
    lanes_in_names=True,
    half_from_double=True,  # LLVM calls a library for it
)
_ELEMENT_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8}


def print_llvm(program: ThreadProgram) -> str:
    """LLVM text of the thread program, markers included: input of ``attach_operations``.

    Raises :class:`CodegenError` where TVM refuses the program or an elementary function is not available.
    """
    import tvm
    from tvm import ir
    from tvm.target import Target

    level, *extensions = program.target.arch.split("+")
    machine: dict[str, Any] = {"kind": "llvm", "mtriple": TRIPLE, "mcpu": level, "opt-level": 0}
    if extensions:
        machine["mattr"] = [f"+avx512{extension}" for extension in extensions]
    target = Target(machine)
    function = llvm_float64.rewrite_calls(with_plain_types(program.function, _NEEDS))
    function = elementary.rewrite_calls(function)
    function = function.with_attr({"target": target, "tirx.is_global_func": True, "global_symbol": program.name})
    try:
        module = lowered(ir.IRModule.from_expr(function))
        text: str = tvm.get_global_func("target.build.llvm")(module, target).inspect_source("ll")
    except (RuntimeError, ValueError, TypeError) as error:  # TVM raises its InternalError, a RuntimeError, and these
        raise CodegenError(
            f"TVM cannot print kernel {program.name} as LLVM: {error}",
            remedy="this is an error of the compiler, not of the kernel: please report it with the kernel's source",
        ) from error
    text = own_text(text, program.target.arch, program.target.vector_bits or 128)
    streamed = str((program.function.attrs or {}).get(STREAM_ATTRIBUTE, ""))
    return stream_large_results(text, program.name, streamed.split())


def own_text(text: str, arch: str, vector_bits: int) -> str:
    """TVM's text changed as the module's docstring says."""
    text = _STARTUP.sub("", _GLUE.sub("", text))
    text = text.replace("define dllexport ", "define ")
    if arch != "x86-64-v2":  # below, LLVM itself calls the helpers for what is one instruction from v3 on (F16C)
        text = _HALF_HELPER.sub("", text)
    else:
        text = text.replace("define weak dso_local ", "define weak hidden ")
    text = _ARRAY.sub(_array, text)
    attributes = (
        f'nounwind "no-builtins" "prefer-vector-width"="{vector_bits}" "probe-stack"="inline-asm" '
        '"stack-probe-size"="4096" '
    )
    text = _ATTRIBUTES.sub(rf"\1 {attributes}", text)
    features = () if arch == "x86-64-v2" else ("half",)
    text = llvm_conversions.definitions(llvm_float64.definitions(elementary.definitions(text)), features)
    return llvm_atomics.definitions(text, amd=False)


def _array(match: re.Match[str]) -> str:
    """A tile as one value of array type, aligned to a cache line where it has the size of one."""
    element, count = match[1], int(match[2])
    size = count * (_ELEMENT_BYTES.get(element) or max(1, int(element[1:]) // 8))
    alignment = min(64, max(16, 1 << (size - 1).bit_length()))
    return f"= alloca [{count} x {element}], align {alignment}"
