"""``cp.async`` and ``ldmatrix`` as ptxas takes them best: with a predicate instead of a branch, with constant offsets apart.

Before and after::

    if (k + 3 < 128) { cp.async [&S[s]], [&A[i]];  cp.async [&S[s + 1024]], [&A[i + 65536]] }

    p = k + 3 < 128;  @p cp.async [&S[s]], [&A[i] + 0];  @p cp.async [&S[s] + 2048], [&A[i] + 131072]

A branch ends what ptxas schedules together: the instructions on its two sides stay on them.  Registers that a predicated
ldmatrix leaves alone mean nothing, as behind the branch.  Addresses that differ by a constant would take two registers each,
which LLVM keeps from one iteration to the next; the instruction has room for the constant.
"""

from __future__ import annotations

from typing import Any

from tilelang_min.program import OPERATION_MARKER

_MOST = 32
"""Instructions of a branch that is worth it."""

_COPIES = {"tirx.ptx.cp_async_ca": "ca", "tirx.ptx.cp_async_cg": "cg"}
_PREDICATED = (*_COPIES, "tirx.ptx.ldmatrix")
_MACRO = "__tl_cp_async"
_FARTHEST = 1 << 30
"""Offsets are 32-bit numbers."""

_CALL = """\
#define {name}(d, dn, s, sn, n{p}) asm volatile("{head}cp.async.{kind}.shared::cta.global [%0+%2], [%1+%3], %4;{tail}" : : \
"r"((unsigned)__cvta_generic_to_shared((void*)(d))), "l"((const void*)(s)), "n"(dn), "n"(sn), "n"(n){operand} : "memory")
"""


def with_quick_copies(function: Any) -> Any:
    """The function with such branches gone and such addresses split."""
    from tvm.tirx import Evaluate, IfThenElse
    from tvm_ffi import structural_map

    body = structural_map(function.body, (IfThenElse, _flattened))
    body = structural_map(body, (Evaluate, _split))
    return function.with_body(body, span=function.span)


def definitions(text: str) -> str:
    """The macros that the text uses."""
    made = ""
    for kind in _COPIES.values():
        if f"{_MACRO}_{kind}(" in text:
            made += _CALL.format(name=f"{_MACRO}_{kind}", kind=kind, head="", tail="", p="", operand="")
        if f"{_MACRO}_{kind}_if(" in text:
            head, tail = "{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ", " }"
            operand = ', "r"((unsigned)(p))'
            made += _CALL.format(name=f"{_MACRO}_{kind}_if", kind=kind, head=head, tail=tail, p=", p", operand=operand)
    return made


def _flattened(branch: Any) -> Any:
    from tvm.tirx import Evaluate, SeqStmt

    if branch.else_case is not None:
        return branch
    inside = list(branch.then_case.seq) if isinstance(branch.then_case, SeqStmt) else [branch.then_case]
    if not all(isinstance(item, Evaluate) for item in inside):
        return branch
    calls = [item for item in inside if not _is_marker(item.value)]
    if not 0 < len(calls) <= _MOST or not all(_takes_predicate(item.value) for item in calls):
        return branch
    made = [item if _is_marker(item.value) else Evaluate(_with(item.value, branch.condition)) for item in inside]
    return made[0] if len(made) == 1 else SeqStmt(made)


def _name(call: Any) -> str:
    return str(getattr(getattr(call, "op", None), "name", ""))


def _is_marker(call: Any) -> bool:
    return bool(getattr(call, "args", ())) and getattr(call.args[0], "value", None) == OPERATION_MARKER


def _takes_predicate(call: Any) -> bool:
    """Whether an instruction can have one.  Its addresses are computed all the same, so they may read no memory but registers."""
    if _name(call) not in _PREDICATED or getattr(call.args[-1], "value", None) != "":
        return False
    return not any(_reads_memory(item) for item in _operands(call))


def _reads_memory(operand: Any) -> bool:
    from tvm import ir
    from tvm_ffi import structural_walk

    read: list[Any] = []
    named: list[Any] = []  # whose address is taken

    def note(call: Any) -> None:
        if _name(call) == "tirx.address_of":
            named.append(call.args[0])

    structural_walk(operand, [(ir.TensorLoad, read.append), (ir.Call, note)])
    memory = [item for item in read if str(item.source.ty.storage_scope) != "local"]
    return any(not any(item.same_as(other) for other in named) for item in memory)


def _operands(call: Any) -> list[Any]:
    """The arguments in front of the words of the instruction."""
    from tvm.ir import StringImm

    arguments = list(call.args)
    return arguments[: next(place for place, item in enumerate(arguments) if isinstance(item, StringImm))]


def _with(call: Any, condition: Any) -> Any:
    """The call with one operand more, and the word that says so."""
    from tvm.ir import Call, StringImm

    operands = _operands(call)
    words = list(call.args)[len(operands) : -1]
    return Call(call.op, [*operands, condition, *words, StringImm("pred")], ret_ty=call.ty)


def _split(statement: Any) -> Any:
    """A copy whose two addresses are elements, each with a constant added, as a call of the macro."""
    from tvm.tirx import Evaluate, call_extern

    call = statement.value
    kind = _COPIES.get(_name(call))
    if kind is None:
        return statement
    operands = _operands(call)
    predicated = str(getattr(call.args[-1], "value", "")) == "pred"
    if len(operands) != (4 if predicated else 3):  # one more says how many bytes there are
        return statement
    target, source = _address(operands[0]), _address(operands[1])
    if target is None or source is None:
        return statement
    name = f"{_MACRO}_{kind}" + ("_if" if predicated else "")
    return Evaluate(call_extern("void", name, *target, *source, *operands[2:]))


def _address(pointer: Any) -> tuple[Any, int] | None:
    """The address of an element without what is constant in its index, and that in bytes."""
    from tvm import ir, tirx
    from tvm.runtime import DataType

    if _name(pointer) == "tirx.cuda.cvta_generic_to_shared":
        pointer = pointer.args[0]
    if _name(pointer) != "tirx.address_of" or not isinstance(pointer.args[0], ir.TensorLoad):
        return None
    element = pointer.args[0]
    if len(element.indices) != 1 or str(element.indices[0].ty.dtype) != "int32":
        return None
    rest, constant = _terms(element.indices[0])
    size = int(DataType(str(element.ty.dtype)).bits) // 8
    if abs(constant * size) >= _FARTHEST:
        return None
    zero = tirx.IntImm("int32", 0)
    moved = tirx.BufferLoad(element.source, [zero if rest is None else rest])
    return tirx.address_of(moved), constant * size


def _terms(value: Any) -> tuple[Any, int]:
    """A sum as what is not constant in it (None: nothing) and the rest."""
    from tvm import tirx

    if isinstance(value, tirx.IntImm):
        return None, int(value.value)
    if not isinstance(value, tirx.Add):
        return value, 0
    (left, first), (right, second) = _terms(value.a), _terms(value.b)
    if left is None or right is None:
        return (right if left is None else left), first + second
    whole = value if not first and not second else tirx.Add(left, right)
    return whole, first + second
