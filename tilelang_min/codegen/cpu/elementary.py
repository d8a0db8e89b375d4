"""Elementary functions of CPU kernels as LLVM text: no libm, any vector width, float32 arithmetic.

:func:`rewrite_calls` turns ``tirx.exp`` and its like into calls of internal functions, :func:`definitions` writes those of
them that a module uses.  LLVM inlines them into the kernel, where they take the debug location, hence the tile operation, of
their call.  float16 arguments are computed in float32 and rounded once.

Methods: argument reduction after W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980); the
polynomials are our own weighted minimax fits with coefficients rounded to float32 one after the other.  Relative error of the
polynomial alone: exp 3.2e-9, exp2 1.7e-10, log 7.7e-10, tanh 1.7e-10; of the functions at most 2 units in the last place of
float32 (measured in the tests, against float64).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tilelang_min.errors import CodegenError

PREFIX = "__tl_math_"
"""Prefix of the internal functions; their names end in the dtype, as in ``__tl_math_exp_float32x8``."""

_DECLARATION = re.compile(rf"^declare .* @({PREFIX}(\w+?)_float32(?:x(\d+))?)\(.*$", re.MULTILINE)


def rewrite_calls(function: Any) -> Any:
    """The function with each elementary call in terms of the internal functions, float16 by way of float32.

    Before ``tirx.exp(x: float16x8)``; after ``Cast("float16x8", __tl_math_exp_float32x8(Cast("float32x8", x)))``.
    Raises :class:`CodegenError` for a function or a type that is not available here.
    """
    import tvm_ffi
    from tvm import ir, tirx

    problems: list[CodegenError] = []  # raised inside a callback they would come out as errors of TVM

    def mapped(call: Any) -> Any:
        operator = getattr(call.op, "name", "")
        room, _, name = operator.partition(".")
        if room not in ("tirx", "prim") or name in _PLAIN:
            return call
        if name not in _FUNCTIONS and name not in _NATIVE:
            if name in _UNAVAILABLE:
                remedy = f"use one of {', '.join(sorted((*_FUNCTIONS, *_NATIVE)))}"
                problems.append(CodegenError(f"the function {name} is not available on the CPU", remedy=remedy))
            return call
        dtype = str(call.ty.dtype)
        base, _, lanes = dtype.partition("x")
        if not base.startswith(("float", "bfloat")):
            return call
        wide = f"float32x{lanes}" if lanes else "float32"
        if base == "float64" and name in _NATIVE:
            return call
        if base == "float32":
            arguments = list(call.args)
        elif base in ("float16", "bfloat16"):
            arguments = [tirx.Cast(wide, argument) for argument in call.args]
        else:
            message = f"{name} of {base} is not available on the CPU"
            problems.append(CodegenError(message, remedy="compute it in float32"))
            return call
        if name in _FUNCTIONS:
            result = tirx.call_pure_extern(ir.PrimType(wide), f"{PREFIX}{name}_{wide}", *arguments)
        elif base == "float32":
            return call
        else:
            result = tirx.call_intrin(ir.PrimType(wide), operator, *arguments)
        return result if base == "float32" else tirx.Cast(dtype, result)

    body = tvm_ffi.structural_map(function.body, (ir.Call, mapped))
    if problems:
        raise problems[0]
    if body.same_as(function.body):
        return function
    return tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs)


def definitions(text: str) -> str:
    """LLVM text with the declarations of internal functions replaced by their definitions (and what these call)."""
    declared = {match[1]: (match[2], int(match[3] or 1)) for match in _DECLARATION.finditer(text)}
    if not declared:
        return text
    wanted = dict(declared)
    for name, lanes in declared.values():
        for needed in _NEEDS.get(name, ()):
            wanted[_symbol(needed, lanes)] = (needed, lanes)
    bodies = [_Body(name, lanes).text() for name, lanes in dict.fromkeys(wanted.values())]
    intrinsics = sorted({line for body in bodies for line in body[1]})
    text = _DECLARATION.sub("", text)
    known = set(re.findall(r"^declare .* @([\w.]+)\(", text, re.MULTILINE))
    fresh = [line for line in intrinsics if re.findall(r"@([\w.]+)\(", line)[0] not in known]
    return "\n".join([text, *fresh, "", *(body[0] for body in bodies), ""])


def _symbol(name: str, lanes: int) -> str:
    return f"{PREFIX}{name}_float32" + (f"x{lanes}" if lanes > 1 else "")


def _float(value: float, bits: int = 32) -> str:
    """A float constant as LLVM writes it: the bits of the double of equal value."""
    if bits == 32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class _Body:
    """Writes one function in static single assignment form; values are names or constants with a type letter.

    Type letters: ``f`` float32, ``d`` float64, ``i`` int32, ``l`` int64, ``b`` bool, each with the function's lanes.
    """

    _ELEMENTS: ClassVar[dict[str, str]] = {"f": "float", "d": "double", "i": "i32", "l": "i64", "b": "i1"}

    def __init__(self, name: str, lanes: int) -> None:
        self.name = name
        self.lanes = lanes
        self.lines: list[str] = []
        self.declared: set[str] = set()

    def text(self) -> tuple[str, set[str]]:
        """The definition and the declarations of the intrinsics it calls."""
        arity = 2 if self.name == "pow" else 1
        arguments = ["%x", "%y"][:arity]
        result = _FUNCTIONS[self.name](self, *arguments)
        kind = self.type("f")
        head = ", ".join(f"{kind} {argument}" for argument in arguments)
        define = (
            f"define internal {kind} @{_symbol(self.name, self.lanes)}({head}) alwaysinline nounwind memory(none) {{"
        )
        return "\n".join([define, "entry:", *self.lines, f"  ret {kind} {result}", "}", ""]), self.declared

    def type(self, letter: str) -> str:
        """LLVM type of a type letter."""
        element = self._ELEMENTS[letter]
        return f"<{self.lanes} x {element}>" if self.lanes > 1 else element

    def const(self, letter: str, value: float) -> str:
        """A constant in all lanes."""
        element = {"f": lambda: _float(value), "d": lambda: _float(value, 64)}.get(letter, lambda: str(int(value)))()
        return f"splat ({self._ELEMENTS[letter]} {element})" if self.lanes > 1 else element

    def emit(self, text: str) -> str:
        """Appends an instruction and returns the name of its value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def op(self, operation: str, letter: str, *operands: str) -> str:
        """A binary (or unary) operation."""
        return self.emit(f"{operation} {self.type(letter)} {', '.join(operands)}")

    def compare(self, predicate: str, letter: str, a: str, b: str) -> str:
        """fcmp or icmp; predicates of floats start with o or u."""
        return self.emit(f"{'fcmp' if letter in 'fd' else 'icmp'} {predicate} {self.type(letter)} {a}, {b}")

    def select(self, condition: str, letter: str, a: str, b: str) -> str:
        """``a`` where the condition holds, else ``b``."""
        kind = self.type(letter)
        return self.emit(f"select {self.type('b')} {condition}, {kind} {a}, {kind} {b}")

    def convert(self, operation: str, source: str, value: str, to: str) -> str:
        """bitcast, fpext, sitofp and other conversions."""
        return self.emit(f"{operation} {self.type(source)} {value} to {self.type(to)}")

    def intrinsic(self, name: str, letter: str, *operands: str) -> str:
        """A call of an LLVM intrinsic that has an instruction of its own on every x86-64-v2 and above."""
        element = {"f": "f32", "d": "f64", "i": "i32", "l": "i64"}[letter]
        symbol = f"llvm.{name}.{f'v{self.lanes}' if self.lanes > 1 else ''}{element}"
        kind = self.type(letter)
        self.declared.add(f"declare {kind} @{symbol}({', '.join(kind for _ in operands)})")
        return self.emit(f"call {kind} @{symbol}({', '.join(f'{kind} {operand}' for operand in operands)})")

    def call(self, name: str, operand: str) -> str:
        """A call of another internal function."""
        kind = self.type("f")
        return self.emit(f"call {kind} @{_symbol(name, self.lanes)}({kind} {operand})")

    def fma(self, letter: str, a: str, b: str, c: str) -> str:
        """``a * b + c``, fused where the processor has the instruction."""
        return self.intrinsic("fmuladd", letter, a, b, c)

    def polynomial(self, letter: str, x: str, coefficients: Sequence[float]) -> str:
        """Horner's rule; coefficients from the constant term up."""
        value = self.const(letter, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(letter, value, x, self.const(letter, coefficient))
        return value

    def clamp(self, letter: str, x: str, low: float, high: float) -> str:
        """x between two bounds; a NaN stays one."""
        upper, lower = self.const(letter, high), self.const(letter, low)
        x = self.select(self.compare("ogt", letter, x, upper), letter, upper, x)
        return self.select(self.compare("olt", letter, x, lower), letter, lower, x)


_MAGIC = 12582912.0  # 1.5 * 2^23: added to |x| < 2^22 it leaves the nearest integer in the low mantissa bits
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # high part of 10 bits: its products with exponents are exact
_LOG2E = 1.4426950408889634
_EXP = (0.4999999403953552, 0.1666652113199234, 0.04166827350854874, 0.008368685841560364, 0.001382013550028205)
_EXP2 = (
    0.6931471824645996,
    0.24022650718688965,
    0.055504050105810165,
    0.009618086740374565,
    0.001333796652033925,
    0.000154521971126087,
    1.4320905393105932e-05,
)
_LOG = (
    0.3333331346511841,
    -0.25000008940696716,
    0.2000207155942917,
    -0.16667990386486053,
    0.14220362901687622,
    -0.12406207621097565,
    0.11883470416069031,
    -0.11670192331075668,
    0.06749556213617325,
)
_TANH = (
    -0.3333333134651184,
    0.13333222270011902,
    -0.05394846200942993,
    0.02170874923467636,
    -0.008195086382329464,
    0.0021576357539743185,
)
# float64, for pow alone: 2^r on |r| <= 1/2 (8e-13) and 2 log2(e) atanh(s) / s in s^2, |s| <= 0.1716 (8e-14)
_EXP2_64 = (
    1.0,
    0.6931471805482118,
    0.24022650698110698,
    0.05550410935267971,
    0.00961812861611115,
    0.001333345485921484,
    0.00015403825466948687,
    1.5309156474128144e-05,
    1.3178933123582973e-06,
)
_LOG2_64 = (
    2.8853900817778486,
    0.9617966941160053,
    0.5770779415523685,
    0.4122093381116536,
    0.31990204046068216,
    0.28295429585658977,
)


def _scaled(b: _Body, p: str, n: str) -> str:
    """``p * 2^n`` for n from -252 to 254 in two steps, so that subnormal results are rounded once."""
    half = b.op("ashr", "i", n, b.const("i", 1))
    for exponent in (half, b.op("sub", "i", n, half)):
        bits = b.op("shl", "i", b.op("add", "i", exponent, b.const("i", 127)), b.const("i", 23))
        p = b.op("fmul", "f", p, b.convert("bitcast", "i", bits, "f"))
    return p


def _nearest(b: _Body, t: str) -> tuple[str, str]:
    """For ``t = x + MAGIC``: the nearest integer of x as float and as int32."""
    n = b.op("fsub", "f", t, b.const("f", _MAGIC))
    bits = b.op("sub", "i", b.convert("bitcast", "f", t, "i"), b.const("i", 0x4B400000))
    return n, bits


def _exp(b: _Body, x: str) -> str:
    """e^x = 2^n e^r with n = round(x log2 e), r = x - n ln 2, e^r = 1 + r + r^2 P(r)."""
    x = b.clamp("f", x, -104.0, 89.0)
    n, bits = _nearest(b, b.fma("f", x, b.const("f", _LOG2E), b.const("f", _MAGIC)))
    r = b.fma("f", n, b.const("f", -_LN2_HIGH), x)
    r = b.fma("f", n, b.const("f", -_LN2_LOW), r)
    q = b.fma("f", b.op("fmul", "f", r, r), b.polynomial("f", r, _EXP), r)
    return _scaled(b, b.op("fadd", "f", q, b.const("f", 1.0)), bits)


def _exp2(b: _Body, x: str) -> str:
    """2^x = 2^n 2^r with n = round(x), 2^r = 1 + r P(r)."""
    x = b.clamp("f", x, -151.0, 129.0)
    n, bits = _nearest(b, b.op("fadd", "f", x, b.const("f", _MAGIC)))
    r = b.op("fsub", "f", x, n)
    return _scaled(b, b.fma("f", r, b.polynomial("f", r, _EXP2), b.const("f", 1.0)), bits)


def _log_parts(b: _Body, x: str) -> tuple[str, str, str]:
    """(e, f, y) with x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt 2, and y = log(1 + f) - f."""
    tiny = b.compare("olt", "f", x, b.const("f", 2.0**-126))
    x = b.select(tiny, "f", b.op("fmul", "f", x, b.const("f", 2.0**23)), x)
    bits = b.op("sub", "i", b.convert("bitcast", "f", x, "i"), b.const("i", 0x3F3504F3))
    exponent = b.op("ashr", "i", bits, b.const("i", 23))
    exponent = b.op("sub", "i", exponent, b.select(tiny, "i", b.const("i", 23), b.const("i", 0)))
    mantissa = b.op("and", "i", bits, b.const("i", 0x7FFFFF))
    one = b.convert("bitcast", "i", b.op("add", "i", mantissa, b.const("i", 0x3F3504F3)), "f")
    f = b.op("fsub", "f", one, b.const("f", 1.0))
    square = b.op("fmul", "f", f, f)
    cubic = b.op("fmul", "f", b.op("fmul", "f", f, square), b.polynomial("f", f, _LOG))
    y = b.fma("f", square, b.const("f", -0.5), cubic)
    return b.convert("sitofp", "i", exponent, "f"), f, y


def _log_edges(b: _Body, x: str, result: str) -> str:
    """Values of a logarithm at infinity, 0, below 0 and NaN."""
    infinity = b.const("f", float("inf"))
    result = b.select(b.compare("oeq", "f", x, infinity), "f", x, result)
    result = b.select(b.compare("oeq", "f", x, b.const("f", 0.0)), "f", b.const("f", float("-inf")), result)
    return b.select(b.compare("ult", "f", x, b.const("f", 0.0)), "f", b.const("f", float("nan")), result)


def _log(b: _Body, x: str) -> str:
    """log x = e ln 2 + log(1 + f)."""
    e, f, y = _log_parts(b, x)
    y = b.fma("f", e, b.const("f", _LN2_LOW), y)
    return _log_edges(b, x, b.fma("f", e, b.const("f", _LN2_HIGH), b.op("fadd", "f", f, y)))


def _log2(b: _Body, x: str) -> str:
    """log2 x = e + (f + y) log2 e, where log2 e = 1 + 0.4427 keeps the rounding of the large terms apart."""
    e, f, y = _log_parts(b, x)
    rest = b.const("f", _LOG2E - 1.0)
    z = b.fma("f", f, rest, b.op("fmul", "f", y, rest))
    z = b.op("fadd", "f", b.op("fadd", "f", z, y), f)
    return _log_edges(b, x, b.op("fadd", "f", z, e))


def _tanh(b: _Body, x: str) -> str:
    """x + x^3 P(x^2) below 0.625, else 1 - 2 / (e^2|x| + 1) with the sign of x."""
    size = b.intrinsic("fabs", "f", x)
    square = b.op("fmul", "f", x, x)
    small = b.fma("f", b.op("fmul", "f", x, square), b.polynomial("f", square, _TANH), x)
    e = b.call("exp", b.op("fadd", "f", size, size))
    rest = b.op("fdiv", "f", b.const("f", 2.0), b.op("fadd", "f", e, b.const("f", 1.0)))
    large = b.intrinsic("copysign", "f", b.op("fsub", "f", b.const("f", 1.0), rest), x)
    return b.select(b.compare("olt", "f", size, b.const("f", 0.625)), "f", small, large)


def _sigmoid(b: _Body, x: str) -> str:
    """1 / (1 + e^-x); below 0 as e^x / (1 + e^x), which neither overflows nor loses small values."""
    e = b.call("exp", b.op("fsub", "f", b.const("f", -0.0), b.intrinsic("fabs", "f", x)))
    above = b.select(b.compare("oge", "f", x, b.const("f", 0.0)), "f", b.const("f", 1.0), e)
    return b.op("fdiv", "f", above, b.op("fadd", "f", e, b.const("f", 1.0)))


def _pow(b: _Body, x: str, y: str) -> str:
    """2^(y log2 |x|) in float64, with C's rules for signs, zeros, infinities and NaN."""
    size = b.intrinsic("fabs", "f", x)
    wide = b.convert("fpext", "f", size, "d")  # float32 subnormals are normal here
    bits = b.op("sub", "l", b.convert("bitcast", "d", wide, "l"), b.const("l", 0x3FE6A09E667F3BCD))
    exponent = b.emit(f"trunc {b.type('l')} {b.op('ashr', 'l', bits, b.const('l', 52))} to {b.type('i')}")
    mantissa = b.op("and", "l", bits, b.const("l", (1 << 52) - 1))
    m = b.convert("bitcast", "l", b.op("add", "l", mantissa, b.const("l", 0x3FE6A09E667F3BCD)), "d")
    s = b.op("fdiv", "d", b.op("fsub", "d", m, b.const("d", 1.0)), b.op("fadd", "d", m, b.const("d", 1.0)))
    log2 = b.fma("d", s, b.polynomial("d", b.op("fmul", "d", s, s), _LOG2_64), b.convert("sitofp", "i", exponent, "d"))
    log2 = b.select(b.compare("oeq", "d", wide, b.const("d", 0.0)), "d", b.const("d", float("-inf")), log2)
    infinite = b.compare("oeq", "d", wide, b.const("d", float("inf")))
    log2 = b.select(infinite, "d", wide, log2)
    log2 = b.select(b.compare("uno", "d", wide, wide), "d", wide, log2)
    t = b.clamp("d", b.op("fmul", "d", b.convert("fpext", "f", y, "d"), log2), -160.0, 160.0)
    magic = 6755399441055744.0  # 1.5 * 2^52
    shifted = b.op("fadd", "d", t, b.const("d", magic))
    n = b.op("fsub", "d", shifted, b.const("d", magic))
    p = b.polynomial("d", b.op("fsub", "d", t, n), _EXP2_64)
    scale = b.op("sub", "l", b.convert("bitcast", "d", shifted, "l"), b.const("l", 0x4338000000000000 - 1023))
    scale = b.convert("bitcast", "l", b.op("shl", "l", scale, b.const("l", 52)), "d")
    result = b.convert("fptrunc", "d", b.op("fmul", "d", p, scale), "f")
    whole = b.compare("oeq", "f", b.intrinsic("trunc", "f", y), y)
    half = b.op("fmul", "f", y, b.const("f", 0.5))
    uneven = b.compare("one", "f", b.intrinsic("trunc", "f", half), half)
    odd = b.op("and", "b", whole, uneven)
    signed = b.select(odd, "f", b.intrinsic("copysign", "f", result, x), result)
    below = b.compare("olt", "f", x, b.const("f", 0.0))
    undefined = b.op("and", "b", below, b.op("xor", "b", whole, b.const("b", -1) if b.lanes > 1 else "true"))
    finite = b.compare("olt", "f", size, b.const("f", float("inf")))
    signed = b.select(b.op("and", "b", undefined, finite), "f", b.const("f", float("nan")), signed)
    endless = b.compare("oeq", "f", b.intrinsic("fabs", "f", y), b.const("f", float("inf")))
    unit = b.op("and", "b", b.compare("oeq", "f", size, b.const("f", 1.0)), endless)
    for one in (unit, b.compare("oeq", "f", x, b.const("f", 1.0)), b.compare("oeq", "f", y, b.const("f", 0.0))):
        signed = b.select(one, "f", b.const("f", 1.0), signed)
    return signed


_FUNCTIONS: dict[str, Callable[..., str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "log2": _log2,
    "pow": _pow,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
}
_NEEDS = {"tanh": ("exp",), "sigmoid": ("exp",)}
# One or two instructions each, written by TVM and LLVM without a library.
_NATIVE = frozenset({"sqrt", "rsqrt", "fabs", "floor", "ceil", "trunc", "round", "nearbyint"})
_UNAVAILABLE = frozenset(
    "acos acosh asin asinh atan atan2 atanh copysign cos cosh erf exp10 expm1 fmod hypot ldexp log10 log1p nextafter "
    "sin sinh tan".split()
)
_PLAIN = frozenset({"call_extern", "call_pure_extern", "if_then_else"})
