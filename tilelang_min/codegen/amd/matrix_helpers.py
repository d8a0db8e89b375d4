"""Matrix instructions whose operands TVM has no type for: called through small functions with operands that it has.

The wide bfloat16 MFMA of gfx950 take ``<8 x bfloat>``; the thread program passes ``int16x8``, the same bits.  Before TVM
prints, the intrinsic becomes a call of ``__tl_mfma_...``; afterwards that function is defined in the text, as a bit cast
around the intrinsic, and LLVM inlines it.
"""

from __future__ import annotations

import re
from typing import Any

from tilelang_min.targets import MatrixInstruction, Target, resolve

PREFIX = "__tl_mfma_"
"""Begin of the names of helper functions."""

_DECLARATION = re.compile(rf"^declare [^\n]*@{PREFIX}(?P<name>\w+)\([^\n]*\n", re.MULTILINE)
_BFLOAT = "<8 x bfloat>"


def with_helper_calls(function: Any, target: Target) -> Any:
    """The function with calls of helpers in place of those intrinsics; the same object where it has none."""
    from tvm import ir, tirx
    from tvm_ffi import get_global_func, structural_map

    wanted = _instructions(target)
    if not wanted:
        return function
    number_of = get_global_func("target.llvm_lookup_intrinsic_id")
    numbers = {int(number_of(each.name)): each for each in wanted}

    def call(node: Any) -> Any:
        if getattr(node.op, "name", "") != "tirx.call_llvm_pure_intrin":
            return node
        instruction = numbers.get(int(node.args[0].value))
        if instruction is None:
            return node
        return tirx.call_pure_extern(node.ty, _helper(instruction), *node.args[1:4])

    body = structural_map(function.body, (ir.Call, call))
    return function if body.same_as(function.body) else function.with_body(body, span=function.span)


def definitions(text: str) -> str:
    """LLVM text with every declared helper defined."""
    found = {match["name"] for match in _DECLARATION.finditer(text)}
    if not found:
        return text
    text = _DECLARATION.sub("", text)
    lines = [text.rstrip("\n"), ""]
    for each in _instructions(resolve("hip:gfx950")):
        if _helper(each).removeprefix(PREFIX) not in found:
            continue
        vector = f"<{each.c_map.items} x float>"
        if f"@{each.name}(" not in text:
            lines.append(f"declare {vector} @{each.name}({_BFLOAT}, {_BFLOAT}, {vector}, i32, i32, i32)")
        lines += [
            f"define internal {vector} @{_helper(each)}(<8 x i16> %a, <8 x i16> %b, {vector} %c) alwaysinline nounwind {{",
            "entry:",
            f"  %x = bitcast <8 x i16> %a to {_BFLOAT}",
            f"  %y = bitcast <8 x i16> %b to {_BFLOAT}",
            f"  %d = call {vector} @{each.name}({_BFLOAT} %x, {_BFLOAT} %y, {vector} %c, i32 0, i32 0, i32 0)",
            f"  ret {vector} %d",
            "}",
        ]
    return "\n".join([*lines, ""])


def _instructions(target: Target) -> list[MatrixInstruction]:
    return [each for each in target.instruction_set if each.a_dtype == "bfloat16" and each.a_operand == "int16x8"]


def _helper(instruction: MatrixInstruction) -> str:
    return PREFIX + instruction.name.removeprefix("llvm.amdgcn.mfma.").replace(".", "_")
