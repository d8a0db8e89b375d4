"""Atomics in LLVM text: each call of the thread program as a function around ``atomicrmw``, which LLVM inlines.

On AMD the metadata says that memory is the device's own, without which LLVM does not use the instructions that add floats.
"""

from __future__ import annotations

import re

from tilelang_min.codegen.llvm_types import TYPE_BYTES
from tilelang_min.program.atomics import PREFIX, AtomicCall

_DECLARATION = re.compile(rf"^declare [^\n]*@(?P<name>{PREFIX}\w+)\((?P<arguments>[^\n]*)\)[^\n]*\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\s+(?:noundef|signext|zeroext|nocapture|noalias)\b")
_NODE = re.compile(r"^!(\d+) = ", re.MULTILINE)
_TYPES = {
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "bfloat",
}
_SCOPES = {"shared": ' syncscope("workgroup")', "global": ' syncscope("agent")'}


def definitions(text: str, *, amd: bool) -> str:
    """The module with a definition of every atomic that it declares."""
    found = list(_DECLARATION.finditer(text))
    if not found:
        return text
    number = 1 + max((int(n) for n in _NODE.findall(text)), default=-1)
    bodies = [_definition(each, number if amd else None) for each in found]
    lines = [_DECLARATION.sub("", text).rstrip("\n"), "", *bodies]
    if amd:
        lines.append(f"!{number} = !{{}}")
    return "\n".join([*lines, ""])


def _definition(declaration: re.Match[str], memory: int | None) -> str:
    call = AtomicCall.parse(declaration["name"])
    pointer, *values = [_ATTRIBUTE.sub("", each).strip() for each in declaration["arguments"].split(",")]
    element = _TYPES[call.dtype]
    kind = element if call.lanes == 1 else f"<2 x {element}>"
    lines, value = [], "%v0"
    held = [f"%v{i}" for i in range(len(values))]
    if values[0] != element:  # the bits of a bfloat16
        lines += [f"  %e{i} = bitcast {given} %v{i} to {element}" for i, given in enumerate(values)]
        held = [f"%e{i}" for i in range(len(values))]
        value = held[0]
    if call.lanes == 2:
        lines.append(f"  %a = insertelement {kind} poison, {element} {held[0]}, i32 0")
        lines.append(f"  %b = insertelement {kind} %a, {element} {held[1]}, i32 1")
        value = "%b"
    size = TYPE_BYTES[element] * call.lanes
    scope = "" if memory is None else _SCOPES[call.space]
    tail = ""
    if memory is not None and call.space == "global":
        names = ("amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode")
        tail = "".join(f", !{name} !{memory}" for name in names)
    lines.append(
        f"  %r = atomicrmw {_operation(call)} {pointer} %p, {kind} {value}{scope} monotonic, align {size}{tail}"
    )
    arguments = ", ".join([f"{pointer} %p", *(f"{given} %v{i}" for i, given in enumerate(values))])
    head = f"define internal void @{call.name}({arguments}) alwaysinline nounwind {{"
    return "\n".join([head, "entry:", *lines, "  ret void", "}", ""])


def _operation(call: AtomicCall) -> str:
    if call.operation == "add":
        return "fadd" if "float" in call.dtype else "add"
    return f"u{call.operation}" if call.dtype.startswith("uint") else call.operation


__all__ = ["definitions"]
