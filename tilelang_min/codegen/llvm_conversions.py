"""Definitions, as LLVM text, of the conversions that :mod:`tilelang_min.codegen.storage` calls, for AMD and CPU kernels.

TVM prints a declaration and calls; here the declaration becomes an internal function that LLVM inlines, where it takes the
debug location of its call.  Integer arithmetic on whole vectors, and instructions where the processor has them:

``half``        float16 to float32 is one instruction
``bfloat``      LLVM rounds float32 to bfloat16 well by itself (amdgcn; on x86-64 it would call a library)
``ocp_float8``  instructions for 8-bit floats of the language's formats (gfx950; those of gfx942 are for other formats)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection

from tilelang_min.codegen.storage import ODD, PREFIX
from tilelang_min.errors import CodegenError

_DECLARATION = re.compile(
    rf"^declare [^\n]*@(?P<name>{PREFIX}(?P<pair>\w+?)(?:_x(?P<lanes>\d+))?)\([^\n]*\n", re.MULTILINE
)


def definitions(text: str, features: Collection[str]) -> str:
    """LLVM text with every declared conversion defined."""
    found = list(_DECLARATION.finditer(text))
    if not found:
        return text
    functions = [_Function(m["name"], m["pair"], int(m["lanes"] or 1), features) for m in found]
    bodies = [function.text() for function in functions]
    declared = sorted({line for function in functions for line in function.declared} - set(text.split("\n")))
    text = _DECLARATION.sub("", text)
    known = set(re.findall(r"^declare .* @([\w.]+)\(", text, re.MULTILINE))
    fresh = [line for line in declared if re.findall(r"@([\w.]+)\(", line)[0] not in known]
    return "\n".join([text.rstrip("\n"), "", *fresh, "", *bodies])


class _Function:
    """Writes one function in static single assignment form; types are LLVM's element types, with the function's lanes."""

    def __init__(self, name: str, pair: str, lanes: int, features: Collection[str]) -> None:
        self.name, self.pair, self.lanes, self.features = name, pair, lanes, features
        self.lines: list[str] = []
        self.declared: set[str] = set()

    def text(self) -> str:
        """The definition."""
        if self.pair not in _CONVERSIONS:
            raise CodegenError(f"no code for the conversion {self.pair}")
        source, result, body = _CONVERSIONS[self.pair]
        value = body(self, "%x")
        head = f"define internal {self.type(result)} @{self.name}({self.type(source)} %x) alwaysinline nounwind memory(none) {{"
        return "\n".join([head, "entry:", *self.lines, f"  ret {self.type(result)} {value}", "}", ""])

    def type(self, element: str, lanes: int | None = None) -> str:
        """An element type as it is, or a vector of it."""
        count = self.lanes if lanes is None else lanes
        return f"<{count} x {element}>" if count > 1 else element

    def const(self, element: str, value: float) -> str:
        """A constant in all lanes."""
        text = str(int(value)) if element.startswith("i") else _float(value)
        return f"splat ({element} {text})" if self.lanes > 1 else text

    def emit(self, text: str) -> str:
        """Appends an instruction and returns the name of its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def op(self, operation: str, element: str, a: str, b: str | float) -> str:
        """A binary operation; numbers stand for constants."""
        right = b if isinstance(b, str) else self.const(element, b)
        return self.emit(f"{operation} {self.type(element)} {a}, {right}")

    def compare(self, predicate: str, element: str, a: str, b: str | float) -> str:
        """fcmp or icmp."""
        return self.op(f"{'icmp' if element.startswith('i') else 'fcmp'} {predicate}", element, a, b)

    def select(self, condition: str, element: str, a: str | float, b: str | float) -> str:
        """``a`` where the condition holds, else ``b``."""
        kind = self.type(element)
        first, second = (each if isinstance(each, str) else self.const(element, each) for each in (a, b))
        return self.emit(f"select {self.type('i1')} {condition}, {kind} {first}, {kind} {second}")

    def convert(self, operation: str, source: str, value: str, to: str) -> str:
        """bitcast, zext, trunc, fpext and other conversions."""
        return self.emit(f"{operation} {self.type(source)} {value} to {self.type(to)}")

    def absolute(self, element: str, value: str) -> str:
        """The absolute value of a float."""
        bits = {"float": "f32", "double": "f64"}[element]
        symbol = f"llvm.fabs.{f'v{self.lanes}' if self.lanes > 1 else ''}{bits}"
        kind = self.type(element)
        self.declared.add(f"declare {kind} @{symbol}({kind})")
        return self.emit(f"call {kind} @{symbol}({kind} {value})")

    def call(self, result: str, name: str, *operands: tuple[str, str]) -> str:
        """A call of an intrinsic with scalar operands (type, value)."""
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


def _float(value: float) -> str:
    """A float constant as LLVM writes it: the bits of the double of equal value."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _from_bfloat16(f: _Function, x: str) -> str:
    return f.convert("bitcast", "i32", f.op("shl", "i32", f.convert("zext", "i16", x, "i32"), 16), "float")


def _to_bfloat16(f: _Function, x: str) -> str:
    """To nearest even: half of the last place is added, one more where the place is odd."""
    if "bfloat" in f.features:
        return f.convert("bitcast", "bfloat", f.convert("fptrunc", "float", x, "bfloat"), "i16")
    bits = f.convert("bitcast", "float", x, "i32")
    odd = f.op("and", "i32", f.op("lshr", "i32", bits, 16), 1)
    rounded = f.op("lshr", "i32", f.op("add", "i32", f.op("add", "i32", bits, 0x7FFF), odd), 16)
    return f.convert("trunc", "i32", f.select(f.compare("uno", "float", x, x), "i32", 0x7FFF, rounded), "i16")


def _from_float8(f: _Function, x: str, drop: int, bias: int, unit: float, special: Callable[[str, str], str]) -> str:
    """Normal numbers by their bits, subnormal ones as so many units."""
    wide = f.convert("zext", "i8", x, "i32")
    size = f.op("and", "i32", wide, 0x7F)
    bits = f.op("add", "i32", f.op("shl", "i32", size, drop), bias << 23)
    small = f.op("fmul", "float", f.convert("uitofp", "i32", size, "float"), unit)
    first_normal = 1 << (23 - drop)
    bits = f.select(
        f.compare("ult", "i32", size, first_normal), "i32", f.convert("bitcast", "float", small, "i32"), bits
    )
    sign = f.op("shl", "i32", f.op("and", "i32", wide, 0x80), 24)
    return f.convert("bitcast", "i32", f.op("or", "i32", special(size, bits), sign), "float")


def _from_e4m3(f: _Function, x: str) -> str:
    if "ocp_float8" in f.features:
        return _unpacked(f, x, "fp8")
    nan = 0x7FC00000
    if "half" in f.features:  # the bits as float16 have an exponent that is too small by 8
        wide = f.convert("zext", "i8", x, "i16")
        size = f.op("and", "i16", wide, 0x7F)
        bits = f.op("or", "i16", f.op("shl", "i16", size, 7), f.op("shl", "i16", f.op("and", "i16", wide, 0x80), 8))
        value = f.convert("fpext", "half", f.convert("bitcast", "i16", bits, "half"), "float")
        scaled = f.op("fmul", "float", value, 256.0)
        return f.select(f.compare("eq", "i16", size, 0x7F), "float", float("nan"), scaled)
    return _from_float8(
        f, x, 20, 120, 2.0**-9, lambda size, bits: f.select(f.compare("eq", "i32", size, 0x7F), "i32", nan, bits)
    )


def _from_e5m2(f: _Function, x: str) -> str:
    """The high byte of a float16."""
    if "half" in f.features:
        bits = f.op("shl", "i16", f.convert("zext", "i8", x, "i16"), 8)
        return f.convert("fpext", "half", f.convert("bitcast", "i16", bits, "half"), "float")

    def endless(size: str, bits: str) -> str:
        return f.select(f.compare("uge", "i32", size, 0x7C), "i32", f.op("or", "i32", bits, 0x7F800000), bits)

    return _from_float8(f, x, 21, 112, 2.0**-16, endless)


def _to_float8(f: _Function, x: str, limit: float, drop: int, offset: int, normal: float, magic: float) -> str:
    """Clamp, then round at the last kept bit; below the smallest normal number the sum with ``magic`` leaves the result in
    the low bits."""
    sign = f.op("and", "i32", f.op("lshr", "i32", f.convert("bitcast", "float", x, "i32"), 24), 0x80)
    size = f.absolute("float", x)
    size = f.select(f.compare("ogt", "float", size, limit), "float", limit, size)
    bits = f.convert("bitcast", "float", size, "i32")
    odd = f.op("and", "i32", f.op("lshr", "i32", bits, drop), 1)
    rounded = f.op("add", "i32", f.op("add", "i32", bits, (1 << (drop - 1)) - 1), odd)
    large = f.op("sub", "i32", f.op("lshr", "i32", rounded, drop), offset)
    shifted = f.convert("bitcast", "float", f.op("fadd", "float", size, magic), "i32")
    small = f.op("sub", "i32", shifted, struct.unpack("<I", struct.pack("<f", magic))[0])
    result = f.select(f.compare("oge", "float", size, normal), "i32", large, small)
    result = f.select(f.compare("uno", "float", x, x), "i32", 0x7F, result)
    return f.convert("trunc", "i32", f.op("or", "i32", result, sign), "i8")


def _to_e4m3(f: _Function, x: str) -> str:
    if "ocp_float8" in f.features:
        return _packed(f, x, "fp8", 448.0)
    return _to_float8(f, x, 448.0, 20, 120 << 3, 2.0**-6, 2.0**14)


def _to_e5m2(f: _Function, x: str) -> str:
    if "ocp_float8" in f.features:
        return _packed(f, x, "bf8", 57344.0)
    return _to_float8(f, x, 57344.0, 21, 112 << 2, 2.0**-14, 2.0**7)


def _packed(f: _Function, x: str, kind: str, limit: float) -> str:
    """gfx950: two float32 to two 8-bit floats at a time, in the low or high half of a word; the instruction would make NaN
    of what is too large."""
    largest = _float(limit)
    lowest = _float(-limit)
    clamped = []
    for value in f.elements("float", x):
        inside = f.call("float", "llvm.amdgcn.fmed3.f32", ("float", value), ("float", lowest), ("float", largest))
        nan = f.emit(f"fcmp uno float {value}, {value}")
        clamped.append(f.emit(f"select i1 {nan}, float {value}, float {inside}"))
    clamped += [_float(0.0)] * (-len(clamped) % 2)
    words = []
    for first in range(0, len(clamped), 4):
        word = "poison"
        for half in range(min(4, len(clamped) - first) // 2):
            pair = [("float", value) for value in clamped[first + 2 * half : first + 2 * half + 2]]
            place = ("i1", "true" if half else "false")
            word = f.call("i32", f"llvm.amdgcn.cvt.pk.{kind}.f32", *pair, ("i32", word), place)
        words.append(word)
    if f.lanes >= 4:
        return f.emit(f"bitcast {f.type('i32', len(words))} {f.vector('i32', words)} to {f.type('i8')}")
    low = f.emit(f"trunc i32 {words[0]} to i{8 * f.lanes}")
    return low if f.lanes == 1 else f.emit(f"bitcast i16 {low} to <2 x i8>")


def _unpacked(f: _Function, x: str, kind: str) -> str:
    """gfx950: two 8-bit floats of a word to two float32 at a time."""
    if f.lanes == 1:
        word = f.emit(f"zext i8 {x} to i32")
        return f.call("float", f"llvm.amdgcn.cvt.f32.{kind}", ("i32", word), ("i32", "0"))
    if f.lanes == 2:
        words = [f.emit(f"zext i16 {f.emit(f'bitcast <2 x i8> {x} to i16')} to i32")]
    else:
        count = f.lanes // 4
        whole = f.emit(f"bitcast {f.type('i8')} {x} to {f.type('i32', count)}")
        words = (
            [whole]
            if count == 1
            else [f.emit(f"extractelement <{count} x i32> {whole}, i32 {i}") for i in range(count)]
        )
    values = []
    for i in range(0, f.lanes, 2):
        half = ("i1", "true" if i % 4 else "false")
        pair = f.call("<2 x float>", f"llvm.amdgcn.cvt.pk.f32.{kind}", ("i32", words[i // 4]), half)
        values += [f.emit(f"extractelement <2 x float> {pair}, i32 {j}") for j in (0, 1)]
    return f.vector("float", values)


def _to_odd(f: _Function, x: str) -> str:
    """The nearest float32, or its neighbour on the other side of x where that one's last bit is 1."""
    nearest = f.convert("fptrunc", "double", x, "float")
    back = f.convert("fpext", "float", nearest, "double")
    bits = f.convert("bitcast", "float", nearest, "i32")
    even = f.compare("eq", "i32", f.op("and", "i32", bits, 1), 0)
    inexact = f.compare("one", "double", back, x)
    beyond = f.compare("ogt", "double", f.absolute("double", back), f.absolute("double", x))
    other = f.op("add", "i32", bits, f.select(beyond, "i32", -1, 1))
    either = f.op("and", "i1", even, inexact)
    return f.convert("bitcast", "i32", f.select(either, "i32", other, bits), "float")


_CONVERSIONS: dict[str, tuple[str, str, Callable[[_Function, str], str]]] = {
    "bfloat16_float32": ("i16", "float", _from_bfloat16),
    "float32_bfloat16": ("float", "i16", _to_bfloat16),
    "float8_e4m3fn_float32": ("i8", "float", _from_e4m3),
    "float32_float8_e4m3fn": ("float", "i8", _to_e4m3),
    "float8_e5m2_float32": ("i8", "float", _from_e5m2),
    "float32_float8_e5m2": ("float", "i8", _to_e5m2),
    ODD: ("double", "float", _to_odd),
}
"""LLVM's types of argument and result, and the body."""
