"""Writes small LLVM functions on scalars or vectors: what :mod:`.llvm_conversions` and :mod:`.llvm_float64` are made with.

Values are names or constants; types are LLVM's element types (``i32``, ``float``, ``double``), each with the function's lanes.
Text only: nothing here knows TVM or a target.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

_DECLARED = re.compile(r"^declare .* @([\w.]+)\(", re.MULTILINE)
_BITS = {"float": "f32", "double": "f64", "half": "f16"}


class Emitter:
    """The body of one function in static single assignment form.  ``declared`` are declarations of what it calls."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declared: set[str] = set()

    def definition(self, name: str, result: str, arguments: Iterable[tuple[str, str]], value: str) -> str:
        """The whole function, which returns ``value`` of element type ``result``; LLVM inlines it wherever it is called."""
        head = ", ".join(f"{self.type(element)} {argument}" for element, argument in arguments)
        define = f"define internal {self.type(result)} @{name}({head}) alwaysinline nounwind memory(none) {{"
        return "\n".join([define, "entry:", *self.lines, f"  ret {self.type(result)} {value}", "}", ""])

    def type(self, element: str, lanes: int | None = None) -> str:
        """An element type as it is, or a vector of it."""
        count = self.lanes if lanes is None else lanes
        return f"<{count} x {element}>" if count > 1 else element

    def const(self, element: str, value: float) -> str:
        """A constant in all lanes."""
        text = str(int(value)) if element.startswith("i") else float_text(value)
        return f"splat ({element} {text})" if self.lanes > 1 else text

    def emit(self, text: str) -> str:
        """Appends an instruction and returns the name of its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def value(self, element: str, operand: str | float) -> str:
        """An operand as text; numbers stand for constants."""
        return operand if isinstance(operand, str) else self.const(element, operand)

    def op(self, operation: str, element: str, a: str | float, b: str | float) -> str:
        """A binary operation."""
        return self.emit(f"{operation} {self.type(element)} {self.value(element, a)}, {self.value(element, b)}")

    def compare(self, predicate: str, element: str, a: str | float, b: str | float) -> str:
        """fcmp or icmp."""
        return self.op(f"{'icmp' if element.startswith('i') else 'fcmp'} {predicate}", element, a, b)

    def select(self, condition: str, element: str, a: str | float, b: str | float) -> str:
        """``a`` where the condition holds, else ``b``."""
        kind = self.type(element)
        first, second = self.value(element, a), self.value(element, b)
        return self.emit(f"select {self.type('i1')} {condition}, {kind} {first}, {kind} {second}")

    def convert(self, operation: str, source: str, value: str, to: str) -> str:
        """bitcast, zext, trunc, fpext and other conversions."""
        return self.emit(f"{operation} {self.type(source)} {value} to {self.type(to)}")

    def intrinsic(self, name: str, element: str, *operands: str | float) -> str:
        """A call of an LLVM intrinsic whose operands and result are of one float type."""
        symbol = f"llvm.{name}.{f'v{self.lanes}' if self.lanes > 1 else ''}{_BITS[element]}"
        kind = self.type(element)
        self.declared.add(f"declare {kind} @{symbol}({', '.join(kind for _ in operands)})")
        values = (f"{kind} {self.value(element, operand)}" for operand in operands)
        return self.emit(f"call {kind} @{symbol}({', '.join(values)})")

    def call(self, result: str, name: str, *operands: tuple[str, str]) -> str:
        """A call with scalar operands (type, value)."""
        self.declared.add(f"declare {result} @{name}({', '.join(kind for kind, _ in operands)})")
        return self.emit(f"call {result} @{name}({', '.join(' '.join(operand) for operand in operands)})")

    def elements(self, element: str, value: str) -> list[str]:
        """The elements of a vector, or the scalar."""
        if self.lanes == 1:
            return [value]
        return [self.emit(f"extractelement {self.type(element)} {value}, i32 {i}") for i in range(self.lanes)]

    def vector(self, element: str, values: list[str]) -> str:
        """A vector from its elements, or the scalar."""
        if len(values) == 1:
            return values[0]
        kind, result = self.type(element, len(values)), "poison"
        for i, value in enumerate(values):
            result = self.emit(f"insertelement {kind} {result}, {element} {value}, i32 {i}")
        return result


def float_text(value: float) -> str:
    """A float constant as LLVM writes it: the bits of the double of equal value."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def with_definitions(text: str, declarations: re.Pattern[str], bodies: Iterable[str], declared: set[str]) -> str:
    """A module without the declarations that match, with definitions in their place and what these call declared."""
    text = declarations.sub("", text)
    known = set(_DECLARED.findall(text))
    fresh = [line for line in sorted(declared) if _DECLARED.findall(line)[0] not in known]
    return "\n".join([text.rstrip("\n"), "", *fresh, "", *bodies])
