"""The thread program as plain Python nodes: the one module of the simulator that touches TVM objects.

Every field of a TVM node costs a foreign call, and an unrolled loop reads its body many times; so the function is read
once into the nodes below.  Nothing is interpreted here.  TVM itself is not imported: nodes are told apart by type name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tilelang_min.errors import SimulationError
from tilelang_min.program import OPERATION_MARKER
from tilelang_min.program.instrument import CLOCK_READS

LANES = re.compile(r"^(.*?)x(\d+)$")
BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Mod": "mod",
    "FloorDiv": "floordiv",
    "FloorMod": "floormod",
    "Min": "min",
    "Max": "max",
    "EQ": "eq",
    "NE": "ne",
    "LT": "lt",
    "LE": "le",
    "GT": "gt",
    "GE": "ge",
    "And": "and",
    "Or": "or",
    "LShift": "shl",
    "RShift": "shr",
    "BitwiseAnd": "bitand",
    "BitwiseOr": "bitor",
    "BitwiseXor": "bitxor",
}
BINARY_CALLS = {
    "tirx.shift_left": "shl",
    "tirx.shift_right": "shr",
    "tirx.bitwise_and": "bitand",
    "tirx.bitwise_or": "bitor",
    "tirx.bitwise_xor": "bitxor",
}


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A flat buffer.  ``key`` identifies it; ``scope`` is ``global``, ``shared``, ``shared.dyn`` or ``local``."""

    key: int
    name: str
    dtype: str
    elements: int
    scope: str


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An expression.

    ``kind`` is a name of :data:`BINARY`, or ``const`` (``value``: number), ``var`` (key), ``not``, ``select``, ``cast``,
    ``ramp`` (base, stride), ``broadcast``, ``load`` (``value``: Buffer; args: index), ``call`` (``value``: name),
    ``text`` (a string argument) or ``buffer`` (the data pointer of a Buffer).  ``dtype`` is that of one element.
    """

    kind: str
    args: tuple[Expression, ...] = ()
    dtype: str = ""
    lanes: int = 1
    value: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement.

    ``kind`` is ``sequence`` (body), ``loop`` (var, args: start, extent; unrolled), ``while`` (args: condition; body), ``if``
    (args: condition; body: then, else or None), ``let`` (var, args: value), ``store`` (buffer; args: value, index),
    ``allocate`` (buffer), ``view`` (buffer; args: data), ``marker`` (operation), ``effect`` (args: call).
    """

    kind: str
    args: tuple[Expression, ...] = ()
    body: tuple[Statement | None, ...] = ()
    buffer: Buffer | None = None
    var: int = 0
    name: str = ""
    unrolled: bool = False
    operation: int = 0


@dataclass(frozen=True, slots=True)
class KernelTree:
    """A whole thread program.

    ``parameters`` are the buffers over the pointer parameters, in order.  ``indices`` maps the keys of launch variables to
    ``threadIdx.x``, ``blockIdx.x/y/z`` or, on a CPU, ``block`` (the linear block index); ``maps`` those of tensor-map parameters
    to their names.
    """

    parameters: tuple[Buffer, ...]
    indices: dict[int, str]
    body: Statement
    maps: dict[int, str] = field(default_factory=dict)


def read_function(function: Any) -> KernelTree:
    """The plain tree of a ``tirx.PrimFunc`` in the form that ``program.ThreadProgram`` describes."""
    return _Reader(function).read()


def split_dtype(text: str) -> tuple[str, int]:
    """``"float16x4"`` -> ``("float16", 4)``."""
    match = LANES.match(text)
    return (match.group(1), int(match.group(2))) if match else (text, 1)


@dataclass
class _Reader:
    function: Any
    buffers: dict[int, Buffer] = field(default_factory=dict)
    indices: dict[int, str] = field(default_factory=dict)
    by_pointer: dict[int, Buffer] = field(default_factory=dict)

    def read(self) -> KernelTree:
        parameters = list(self.function.params)
        self.maps = {int(p.__chandle__()): str(p.name) for p in parameters if _is_map(p)}
        self.pointers = {
            p.__chandle__(): p.name
            for p in parameters
            if type(p.ty).__name__ == "PointerType" and p.__chandle__() not in self.maps
        }
        scalars = {p.name: p.__chandle__() for p in parameters if type(p.ty).__name__ != "PointerType"}
        self.block_begin = scalars.get("block_begin")
        body = self.statement(self.function.body)
        missing = [name for key, name in self.pointers.items() if key not in self.by_pointer]
        if missing:
            raise SimulationError(f"thread program declares no buffer over parameter {missing[0]!r}")
        return KernelTree(tuple(self.by_pointer[key] for key in self.pointers), self.indices, body, self.maps)

    def buffer(self, var: Any) -> Buffer:
        key = int(var.__chandle__())
        known = self.buffers.get(key)
        if known is None:
            elements = 1
            for extent in var.ty.shape:
                elements *= int(extent)
            known = Buffer(key, str(var.name), str(var.ty.dtype), elements, str(var.ty.storage_scope) or "global")
            self.buffers[key] = known
        return known

    def statement(self, node: Any) -> Statement:
        method = getattr(self, "statement_" + type(node).__name__, None)
        if method is None:
            raise SimulationError(f"the simulator has no rule for the statement {type(node).__name__}")
        result: Statement = method(node)
        return result

    def statement_SeqStmt(self, node: Any) -> Statement:
        return Statement("sequence", body=tuple(self.statement(child) for child in node.seq))

    def statement_For(self, node: Any) -> Statement:
        if self.block_begin is not None and _key(node.min) == self.block_begin:
            self.indices[node.loop_var.__chandle__()] = "block"
            return self.statement(node.body)
        if node.step is not None and not (hasattr(node.step, "value") and int(node.step.value) == 1):
            raise SimulationError("loops with a step other than 1 are not part of a thread program")
        return Statement(
            "loop",
            args=(self.expression(node.min), self.expression(node.extent)),
            body=(self.statement(node.body),),
            var=node.loop_var.__chandle__(),
            name=str(node.loop_var.name),
            unrolled=int(node.kind) == 3,
        )

    def statement_While(self, node: Any) -> Statement:
        return Statement("while", args=(self.expression(node.condition),), body=(self.statement(node.body),))

    def statement_IfThenElse(self, node: Any) -> Statement:
        other = None if node.else_case is None else self.statement(node.else_case)
        return Statement("if", args=(self.expression(node.condition),), body=(self.statement(node.then_case), other))

    def statement_Bind(self, node: Any) -> Statement:
        return Statement(
            "let", args=(self.expression(node.value),), var=node.var.__chandle__(), name=str(node.var.name)
        )

    def statement_BufferStore(self, node: Any) -> Statement:
        (index,) = node.indices
        return Statement(
            "store", args=(self.expression(node.value), self.expression(index)), buffer=self.buffer(node.buffer)
        )

    def statement_AllocBuffer(self, node: Any) -> Statement:
        return Statement("allocate", buffer=self.buffer(node.buffer))

    def statement_DeclBuffer(self, node: Any) -> Statement:
        buffer = self.buffer(node.buffer)
        pointer = _key(node.data)
        if pointer is not None and pointer in self.pointers:
            self.by_pointer.setdefault(pointer, buffer)
            if self.by_pointer[pointer] is not buffer:
                raise SimulationError(f"two buffers over parameter {self.pointers[pointer]!r}")
            return Statement("sequence")
        return Statement("view", args=(self.expression(node.data),), buffer=buffer)

    def statement_AttrStmt(self, node: Any) -> Statement:
        if str(node.attr_key) == "thread_extent":
            tag = str(node.node.thread_tag)
            if tag not in ("threadIdx.x", "blockIdx.x", "blockIdx.y", "blockIdx.z"):
                raise SimulationError(f"launch dimension {tag} is not part of a thread program")
            self.indices[node.node.var.__chandle__()] = tag
        return self.statement(node.body)

    def statement_Evaluate(self, node: Any) -> Statement:
        call = self.expression(node.value)
        if call.kind == "call" and call.value == "tirx.call_extern" and call.args[0].value == OPERATION_MARKER:
            return Statement("marker", operation=int(call.args[1].value))
        if call.kind == "call" and call.value == "tirx.call_extern" and call.args[0].value in CLOCK_READS:
            register = call.args[1]
            zero = Expression("const", dtype=register.dtype, value=0)
            return Statement("store", args=(zero, *register.args), buffer=register.value)
        if call.kind == "const" or (call.kind == "call" and call.value == "llvm.prefetch"):  # changes nothing
            return Statement("sequence")
        return Statement("effect", args=(call,))

    def expression(self, node: Any) -> Expression:
        kind = type(node).__name__
        if kind == "IntImm" or kind == "FloatImm":
            return Expression("const", dtype=str(node.ty.dtype), value=node.value)
        if kind == "StringImm":
            return Expression("text", value=str(node.value))
        if kind == "Var":
            if type(node.ty).__name__ == "BufferType":
                return Expression("buffer", value=self.buffer(node))
            return Expression("var", value=int(node.__chandle__()), **_type(node))
        if kind in BINARY:
            return Expression(BINARY[kind], (self.expression(node.a), self.expression(node.b)), **_type(node))
        if kind == "TensorLoad":
            (index,) = node.indices
            return Expression("load", (self.expression(index),), value=self.buffer(node.source), **_type(node))
        if kind == "Not":
            return Expression("not", (self.expression(node.a),), **_type(node))
        if kind == "Select":
            parts = (node.condition, node.true_value, node.false_value)
            return Expression("select", tuple(self.expression(part) for part in parts), **_type(node))
        if kind == "Cast":
            return Expression("cast", (self.expression(node.value),), **_type(node))
        if kind == "Broadcast":
            return Expression("broadcast", (self.expression(node.value),), **_type(node))
        if kind == "Ramp":
            return Expression("ramp", (self.expression(node.base), self.expression(node.stride)), **_type(node))
        if kind == "Call":
            name = str(node.op.name)
            args = tuple(self.expression(arg) for arg in node.args)
            if name in BINARY_CALLS:
                return Expression(BINARY_CALLS[name], args, **_type(node))
            if name == "tirx.call_llvm_pure_intrin" or name == "tirx.call_llvm_intrin":
                name, args = _intrinsic_name(int(node.args[0].value)), args[1:]
            if name in CLOCK_READS:  # there is no clock
                return Expression("const", dtype=str(node.ty.dtype), value=0)
            if name == "tirx.buffer_data":
                return args[0]
            return Expression("call", args, value=name, **_type(node))
        raise SimulationError(f"the simulator has no rule for the expression {kind}: {node}")


def _key(node: Any) -> int | None:
    return int(node.__chandle__()) if type(node).__name__ == "Var" else None


def _is_map(parameter: Any) -> bool:
    element = getattr(parameter.ty, "element_type", None)
    return type(element).__name__ == "TensorMapType"


def _type(node: Any) -> dict[str, Any]:
    dtype = getattr(node.ty, "dtype", None)
    if dtype is None:  # pointers and void
        return {"dtype": "handle", "lanes": 1}
    element, lanes = split_dtype(str(dtype))
    return {"dtype": element, "lanes": lanes}


def _intrinsic_name(number: int) -> str:
    from tvm_ffi import get_global_func  # whoever made the function has loaded TVM

    return str(get_global_func("target.llvm_get_intrinsic_name")(number))
