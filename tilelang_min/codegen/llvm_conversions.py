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

from tilelang_min.codegen.llvm_emitter import Emitter, float_text, with_definitions
from tilelang_min.codegen.storage import ODD, PREFIX
from tilelang_min.errors import CodegenError

_DECLARATION = re.compile(
    rf"^declare [^\n]*@(?P<name>{PREFIX}(?P<pair>\w+?)(?:_x(?P<lanes>\d+))?)\([^\n]*\n", re.MULTILINE
)


def definitions(text: str, features: Collection[str]) -> str:
    """LLVM text with every declared conversion defined."""
    declared: set[str] = set()
    bodies = []
    for match in _DECLARATION.finditer(text):
        if match["pair"] not in _CONVERSIONS:
            raise CodegenError(f"no code for the conversion {match['pair']}")
        source, result, body = _CONVERSIONS[match["pair"]]
        function = _Function(int(match["lanes"] or 1), features)
        value = body(function, "%x")
        bodies.append(function.definition(match["name"], result, [(source, "%x")], value))
        declared |= function.declared
    return with_definitions(text, _DECLARATION, bodies, declared) if bodies else text


class _Function(Emitter):
    """An emitter that knows what the processor has."""

    def __init__(self, lanes: int, features: Collection[str]) -> None:
        super().__init__(lanes)
        self.features = features


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
    size = f.intrinsic("fabs", "float", x)
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
    largest = float_text(limit)
    lowest = float_text(-limit)
    clamped = []
    for value in f.elements("float", x):
        inside = f.call("float", "llvm.amdgcn.fmed3.f32", ("float", value), ("float", lowest), ("float", largest))
        nan = f.emit(f"fcmp uno float {value}, {value}")
        clamped.append(f.emit(f"select i1 {nan}, float {value}, float {inside}"))
    clamped += [float_text(0.0)] * (-len(clamped) % 2)
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
    beyond = f.compare("ogt", "double", f.intrinsic("fabs", "double", back), f.intrinsic("fabs", "double", x))
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
