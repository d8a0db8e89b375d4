"""Types that TVM's printers have no code for, or wrong code, in terms of types that they print well: TIRx to TIRx.

======================================  =================================================================================
in the thread program                   afterwards
======================================  =================================================================================
bfloat16, 8-bit floats in memory        the same bits as uint16, uint8
conversions from and to them            calls of ``__tl_convert_<from>_<to>`` between these and float32, defined by the
                                        vendor's room
arithmetic, functions, comparisons      in float32, each result rounded to the type
float64 to a 16- or 8-bit float         by way of a float32 rounded to odd, so that it is rounded once
bool in memory (where asked for)        uint8
8- and 16-bit integer arithmetic        in int32, each result wrapped to the type
(where asked for)
======================================  =================================================================================

A program that holds none of these is returned as it is.  What the conversions mean: :mod:`tilelang_min.program.dtypes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilelang_min.program.dtypes import data_type, numpy_dtype

PREFIX = "__tl_convert_"
"""Begin of the names of conversion functions."""

ROUNDED = "float32_rounded_bfloat16"
"""Name of the conversion of a float32 to the nearest bfloat16, as a float32."""

ODD = "float64_odd32"
"""Name of the conversion of a float64 to the float32 around it whose last bit is 1, exact values apart."""

_SMALL = frozenset({"int8", "int16", "uint8", "uint16"})
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max")
_COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True)
class Needs:
    """What a printer cannot do by itself.

    ``lanes_in_names``: a conversion of a vector is called ``..._x8``, because a name has one signature (LLVM).
    ``bool_bytes``, ``small_integers``: see the table of this module.  ``half_from_double``: it has no correct float64 to
    float16.  ``rounds_bfloat16``: it has one function for a float32 that is rounded to bfloat16 and used as float32 again.
    """

    lanes_in_names: bool = False
    bool_bytes: bool = False
    small_integers: bool = False
    half_from_double: bool = False
    rounds_bfloat16: bool = False


def _is_rounding(value: Any) -> bool:
    """Whether a value is a float32 that was just rounded to bfloat16."""
    from tvm import ir

    return (
        isinstance(value, ir.Call)
        and str(getattr(value.op, "name", "")).endswith("call_pure_extern")
        and str(getattr(value.args[0], "value", "")) == f"{PREFIX}float32_bfloat16"
    )


def with_plain_types(function: Any, needs: Needs) -> Any:
    """The function in types that the printer has; the same object where it is in them already."""
    from tvm import ir, tirx
    from tvm_ffi import structural_mutate

    if not _concerns(function, needs):
        return function
    rewriter = _Rewriter(needs)
    body = structural_mutate(
        function.body,
        [
            (tirx.Var, rewriter.variable),
            (ir.TensorLoad, rewriter.load),
            (tirx.BufferStore, rewriter.store),
            (tirx.Cast, rewriter.cast),
            (tirx.Select, rewriter.select),
            (tirx.Broadcast, rewriter.broadcast),
            (tirx.FloatImm, rewriter.constant),
            (tirx.Bind, rewriter.bind),
            (ir.Call, rewriter.call),
            *((getattr(tirx, name), rewriter.arithmetic) for name in _ARITHMETIC),
            *((getattr(tirx, name), rewriter.comparison) for name in _COMPARISONS),
        ],
    )
    parameters = [rewriter.variable(parameter, None) for parameter in function.params]
    return tirx.PrimFunc(parameters, body, function.ret_type, function.attrs, function.span)


def split(dtype: Any) -> tuple[str, int]:
    """``float8_e4m3fnx4`` -> (``float8_e4m3fn``, 4)."""
    name, separator, lanes = str(dtype).rpartition("x")
    return (name, int(lanes)) if separator and lanes.isdigit() else (str(dtype), 1)


def joined(element: str, lanes: int) -> str:
    """The inverse of :func:`split`."""
    return element if lanes == 1 else f"{element}x{lanes}"


def bits_type(element: str) -> str | None:
    """The integer type that holds a narrow float in memory; None for every other type."""
    known = data_type(element)
    return f"uint{8 * known.size}" if known is not None and known.narrow else None


def _concerns(function: Any, needs: Needs) -> bool:
    """Whether anything in the function is of a type to rewrite: its buffers and conversions tell."""
    from tvm import tirx
    from tvm_ffi import structural_walk

    found: set[tuple[str, str, str]] = set()

    def note_buffer(statement: Any) -> None:
        kind = statement.buffer.ty
        found.add((str(kind.dtype), "", str(kind.storage_scope)))

    def note_cast(cast: Any) -> None:
        found.add((split(cast.ty.dtype)[0], split(cast.value.ty.dtype)[0], ""))

    structural_walk(function.body, [((tirx.AllocBuffer, tirx.DeclBuffer), note_buffer), (tirx.Cast, note_cast)])
    for to, source, scope in found:
        if any(each and bits_type(each) for each in (to, source)):
            return True
        if needs.bool_bytes and to == "bool" and not source:
            return True
        # The arena of dynamic shared memory is bytes that nobody computes with.
        if needs.small_integers and to in _SMALL and scope != "shared.dyn":
            return True
        if needs.half_from_double and (to, source) == ("float16", "float64"):
            return True
    return False


@dataclass
class _Rewriter:
    """Callbacks of ``structural_mutate``: each owns the node it is given and returns what takes its place."""

    needs: Needs
    variables: dict[Any, Any] = field(default_factory=dict)

    # ---- types ----------------------------------------------------------------------------------------------------------

    def memory_type(self, element: str) -> str:
        """The type of an element in memory."""
        if element == "bool" and self.needs.bool_bytes:
            return "uint8"
        return bits_type(element) or element

    def pointer_type(self, kind: Any) -> Any:
        """A pointer type with its element as it is in memory; the same object where nothing changes."""
        from tvm import ir

        element = getattr(kind, "element_type", None)
        if not isinstance(element, ir.PrimType):
            return kind
        new = self.memory_type(str(element.dtype))
        return kind if new == str(element.dtype) else ir.PointerType(ir.PrimType(new), kind.storage_scope)

    def variable(self, variable: Any, _mutator: Any) -> Any:
        known = self.variables.get(variable)
        if known is None:
            known = self.variables[variable] = self._new_variable(variable)
        return known

    def _new_variable(self, variable: Any) -> Any:
        from tvm import ir, tirx

        kind = variable.ty
        if tirx.is_buffer_var(variable):
            element = str(kind.dtype)
            new = self.memory_type(element)
            if new == element:
                return variable
            return tirx.decl_buffer(
                list(kind.shape),
                new,
                variable.name,
                scope=kind.storage_scope,
                data_alignment=int(kind.data_alignment),
            )
        if isinstance(kind, ir.PointerType):
            pointer = self.pointer_type(kind)
            return variable if pointer is kind else tirx.Var(variable.name, pointer)
        element, lanes = split(getattr(kind, "dtype", ""))
        bits = bits_type(element)
        return variable if bits is None else tirx.Var(variable.name, joined(bits, lanes))

    # ---- conversions ----------------------------------------------------------------------------------------------------

    def convert(self, source: str, result: str, value: Any, lanes: int) -> Any:
        """A call of the vendor's conversion function; ``source`` is a type or the name :data:`ODD` or :data:`ROUNDED`."""
        from tvm import ir, tirx

        name = f"{PREFIX}{source}" if source in (ODD, ROUNDED) else f"{PREFIX}{source}_{result}"
        if self.needs.lanes_in_names and lanes > 1:
            name += f"_x{lanes}"
        return tirx.call_pure_extern(ir.PrimType(joined(bits_type(result) or result, lanes)), name, value)

    def widened(self, value: Any, element: str, lanes: int) -> Any:
        """The bits of a narrow float as float32."""
        from tvm import tirx

        if isinstance(value, tirx.IntImm):
            number = numpy_dtype(bits_type(element) or "").type(value.value).view(numpy_dtype(element))
            return tirx.FloatImm("float32", float(number))
        if isinstance(value, tirx.Broadcast):
            return tirx.Broadcast(self.widened(value.value, element, 1), lanes)
        if element == "bfloat16" and self.needs.rounds_bfloat16 and _is_rounding(value):
            return self.convert(ROUNDED, "float32", value.args[1], lanes)
        return self.convert(element, "float32", value, lanes)

    def cast(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        source, lanes = split(node.value.ty.dtype)
        result, _ = split(node.ty.dtype)
        value = mutator.mutate(node.value)
        if source == result:
            return value
        if bits_type(source):
            value, source = self.widened(value, source, lanes), "float32"
        to_narrow = bits_type(result) is not None
        if source == "float64" and (to_narrow or (result == "float16" and self.needs.half_from_double)):
            value, source = self.convert(ODD, "float32", value, lanes), "float32"
        if to_narrow:
            if source != "float32":
                value = tirx.Cast(joined("float32", lanes), value)
            return self.convert("float32", result, value, lanes)
        return value if source == result else tirx.Cast(joined(result, lanes), value)

    def constant(self, node: Any, _mutator: Any) -> Any:
        from tvm import tirx

        element = str(node.ty.dtype)
        bits = bits_type(element)
        if bits is None:
            return node
        number = numpy_dtype(element).type(float(node.value))
        return tirx.IntImm(bits, int(number.view(numpy_dtype(bits))))

    # ---- values ---------------------------------------------------------------------------------------------------------

    def arithmetic(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        element, lanes = split(node.ty.dtype)
        a, b = mutator.mutate(node.a), mutator.mutate(node.b)
        if bits_type(element):
            wide = type(node)(self.widened(a, element, lanes), self.widened(b, element, lanes))
            return self.convert("float32", element, wide, lanes)
        if element in _SMALL and self.needs.small_integers:
            int32 = joined("int32", lanes)
            return tirx.Cast(joined(element, lanes), type(node)(tirx.Cast(int32, a), tirx.Cast(int32, b)))
        return node if a.same_as(node.a) and b.same_as(node.b) else type(node)(a, b)

    def comparison(self, node: Any, mutator: Any) -> Any:
        element, lanes = split(node.a.ty.dtype)
        a, b = mutator.mutate(node.a), mutator.mutate(node.b)
        if bits_type(element):
            a, b = self.widened(a, element, lanes), self.widened(b, element, lanes)
        return node if a.same_as(node.a) and b.same_as(node.b) else type(node)(a, b)

    def select(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        parts = [mutator.mutate(each) for each in (node.condition, node.true_value, node.false_value)]
        return tirx.Select(*parts)

    def broadcast(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        return tirx.Broadcast(mutator.mutate(node.value), node.lanes)

    def bind(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        return tirx.Bind(self.variable(node.var, mutator), mutator.mutate(node.value), node.span)

    def call(self, node: Any, mutator: Any) -> Any:
        from tvm import ir, tirx

        name = getattr(node.op, "name", "")
        short = name.rpartition(".")[2]
        if short == "address_of" and isinstance(node.args[0], ir.TensorLoad):
            return tirx.address_of(self._plain_load(node.args[0], mutator))
        kind = node.ty
        if isinstance(kind, ir.PointerType):
            changed = mutator.default_mutate(node)
            pointer = self.pointer_type(kind)
            return changed if pointer is kind else tirx.call_intrin(pointer, name, *changed.args)
        element, lanes = split(getattr(kind, "dtype", ""))
        if short == "if_then_else" and bits_type(element):
            return tirx.if_then_else(*(mutator.mutate(each) for each in node.args))
        if short == "reinterpret":
            value, result = mutator.mutate(node.args[0]), joined(bits_type(element) or element, lanes)
            return value if str(value.ty.dtype) == result else tirx.reinterpret(result, value)
        if name == "tirx.call_extern":  # takes narrow floats as the bits they are
            return mutator.default_mutate(node)
        if bits_type(element) or any(bits_type(_element(each)) for each in node.args):
            return self._by_float32(node, mutator, name, element, lanes)
        return mutator.default_mutate(node)

    def _by_float32(self, node: Any, mutator: Any, name: str, element: str, lanes: int) -> Any:
        """A function of narrow floats, computed in float32."""
        from tvm import ir, tirx

        arguments = []
        for each in node.args:
            value, kind = mutator.mutate(each), _element(each)
            arguments.append(self.widened(value, kind, lanes) if bits_type(kind) else value)
        if not bits_type(element):
            return tirx.call_intrin(node.ty, name, *arguments)
        wide = tirx.call_intrin(ir.PrimType(joined("float32", lanes)), name, *arguments)
        return self.convert("float32", element, wide, lanes)

    # ---- memory ---------------------------------------------------------------------------------------------------------

    def _plain_load(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        return tirx.BufferLoad(self.variable(node.source, mutator), [mutator.mutate(each) for each in node.indices])

    def load(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        value = self._plain_load(node, mutator)
        element, lanes = split(node.ty.dtype)
        return tirx.Cast(joined("bool", lanes), value) if element == "bool" and self.needs.bool_bytes else value

    def store(self, node: Any, mutator: Any) -> Any:
        from tvm import tirx

        value = mutator.mutate(node.value)
        if split(node.value.ty.dtype)[0] == "bool" and self.needs.bool_bytes:
            value = _as_bytes(value)
        indices = [mutator.mutate(each) for each in node.indices]
        return tirx.BufferStore(self.variable(node.buffer, mutator), value, indices, node.span)


def _element(value: Any) -> str:
    """Element type of an expression; empty where it has none."""
    return split(getattr(getattr(value, "ty", None), "dtype", ""))[0]


def _as_bytes(value: Any) -> Any:
    """A truth value as 0 or 1 in a uint8, without detours for what is copied or chosen from memory."""
    from tvm import ir, tirx

    if isinstance(value, tirx.Cast) and _element(value.value) == "uint8":
        return value.value
    if isinstance(value, tirx.IntImm):
        return tirx.IntImm("uint8", int(bool(value.value)))
    if isinstance(value, tirx.Broadcast):
        return tirx.Broadcast(_as_bytes(value.value), value.lanes)
    if isinstance(value, tirx.Select):
        return tirx.Select(value.condition, _as_bytes(value.true_value), _as_bytes(value.false_value))
    if isinstance(value, ir.Call) and getattr(value.op, "name", "").endswith(".if_then_else"):
        condition, first, second = value.args
        return tirx.if_then_else(condition, _as_bytes(first), _as_bytes(second))
    _, lanes = split(value.ty.dtype)
    return tirx.Cast(joined("uint8", lanes), value)
