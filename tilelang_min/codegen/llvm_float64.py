"""Elementary functions of float64 as LLVM text, for AMD and CPU kernels: LLVM has none on amdgcn and calls libm on x86-64.

:func:`rewrite_calls` turns ``tirx.exp`` and its like on float64 into calls of internal functions, :func:`definitions` writes
those that a module uses; LLVM inlines them into the kernel, at the debug location of their call.

Methods: reduction by powers of two after W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980); the
series of the exponential and of the inverse hyperbolic tangent, as many terms as float64 needs; a power by way of its
logarithm as a sum of two float64 (T. J. Dekker, "A floating-point technique for extending the available precision", 1971).
Errors are at most 1.5 units in the last place, 2.5 of tanh and sigmoid (measured in the tests).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from tilelang_min.codegen.llvm_emitter import Emitter, with_definitions

PREFIX = "__tl_float64_"
"""Begin of the names of the internal functions; a function of vectors ends in their lanes: ``__tl_float64_exp_x4``."""

_DECLARATION = re.compile(
    rf"^declare [^\n]*@(?P<name>{PREFIX}(?P<function>[a-z0-9]+?)(?:_x(?P<lanes>\d+))?)\([^\n]*\n", re.MULTILINE
)

_LOG2E = 1 / math.log(2)
_LN2_HIGH = 0.6931471803691238  # 0x1.62E42FEEp-1, of 32 bits: its product with an exponent is exact
_LN2_LOW = 1.9082149292705877e-10  # ln 2 less that
_MAGIC = 1.5 * 2.0**52  # added to |x| < 2^51 it leaves the nearest integer in the low bits
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_EXP = [1 / math.factorial(k) for k in range(2, 14)]
_ATANH = [2 / (2 * k + 1) for k in range(1, 12)]
_THIRD_LOW = 1.850371707708594e-17  # one third less its float64
_SPLIT = 134217729.0  # 2^27 + 1


def rewrite_calls(function: Any) -> Any:
    """The function with elementary calls on float64 in terms of the internal functions; the same object without any."""
    from tvm import ir, tirx
    from tvm_ffi import structural_map

    def mapped(call: Any) -> Any:
        room, _, name = getattr(call.op, "name", "").partition(".")
        if name not in _FUNCTIONS or room not in ("tirx", "prim"):
            return call
        element, _, lanes = str(call.ty.dtype).partition("x")
        if element != "float64":
            return call
        symbol = f"{PREFIX}{name}" + (f"_x{lanes}" if lanes else "")
        return tirx.call_pure_extern(ir.PrimType(str(call.ty.dtype)), symbol, *call.args)

    body = structural_map(function.body, (ir.Call, mapped))
    return function if body.same_as(function.body) else function.with_body(body, span=function.span)


def definitions(text: str) -> str:
    """LLVM text with every declared function defined."""
    declared: set[str] = set()
    bodies = []
    for match in _DECLARATION.finditer(text):
        f = _Function(int(match["lanes"] or 1))
        arguments = ["%x", "%y"][: 2 if match["function"] == "pow" else 1]
        value = _FUNCTIONS[match["function"]](f, *arguments)
        bodies.append(f.definition(match["name"], "double", [("double", argument) for argument in arguments], value))
        declared |= f.declared
    return with_definitions(text, _DECLARATION, bodies, declared) if bodies else text


class _Function(Emitter):
    """Arithmetic on ``double`` by short names."""

    def add(self, a: str | float, b: str | float) -> str:
        return self.op("fadd", "double", a, b)

    def sub(self, a: str | float, b: str | float) -> str:
        return self.op("fsub", "double", a, b)

    def mul(self, a: str | float, b: str | float) -> str:
        return self.op("fmul", "double", a, b)

    def div(self, a: str | float, b: str | float) -> str:
        return self.op("fdiv", "double", a, b)

    def fma(self, a: str | float, b: str | float, c: str | float) -> str:
        """``a * b + c``, fused where the processor has the instruction."""
        return self.intrinsic("fmuladd", "double", a, b, c)

    def choose(self, condition: str, a: str | float, b: str | float) -> str:
        return self.select(condition, "double", a, b)

    def clamp(self, x: str, low: float, high: float) -> str:
        """x between two bounds; a NaN stays one."""
        x = self.choose(self.compare("ogt", "double", x, high), high, x)
        return self.choose(self.compare("olt", "double", x, low), low, x)

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Horner's rule; coefficients from the constant term up."""
        value = self.const("double", coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, coefficient)
        return value

    def nearest(self, shifted: str) -> tuple[str, str]:
        """For ``shifted = x + MAGIC``: the nearest integer of x, as float64 and as int64."""
        bits = self.op("sub", "i64", self.convert("bitcast", "double", shifted, "i64"), 0x4338000000000000)
        return self.sub(shifted, _MAGIC), bits

    def scaled(self, p: str, n: str) -> str:
        """``p * 2^n`` for |n| < 2100 in two steps, so that subnormal results are rounded once."""
        half = self.op("ashr", "i64", n, 1)
        for exponent in (half, self.op("sub", "i64", n, half)):
            bits = self.op("shl", "i64", self.op("add", "i64", exponent, 1023), 52)
            p = self.mul(p, self.convert("bitcast", "i64", bits, "double"))
        return p

    def product(self, a: str, b: str) -> tuple[str, str]:
        """a b as a rounded product and its exact error, by splitting both (no fused operation is needed)."""
        high = self.barrier_mul(a, b)
        (a1, a0), (b1, b0) = self.halves(a), self.halves(b)
        error = self.sub(self.barrier_mul(a1, b1), high)
        error = self.add(error, self.barrier_mul(a1, b0))
        error = self.add(error, self.barrier_mul(a0, b1))
        return high, self.add(error, self.barrier_mul(a0, b0))

    def barrier_mul(self, a: str, b: str) -> str:
        """A product that is not fused with the sum it goes into."""
        return self.intrinsic("arithmetic.fence", "double", self.mul(a, b))

    def halves(self, a: str) -> tuple[str, str]:
        """a as the sum of two numbers of 26 bits."""
        wide = self.barrier_mul(a, self.const("double", _SPLIT))
        high = self.sub(wide, self.sub(wide, a))
        return high, self.sub(a, high)

    def sum(self, a: str, b: str) -> tuple[str, str]:
        """a + b for |a| >= |b| or a = 0, as a rounded sum and its exact error."""
        high = self.add(a, b)
        return high, self.sub(b, self.sub(high, a))


def _exp_parts(f: _Function, r: str) -> str:
    """e^r - 1 for |r| <= ln(2) / 2."""
    return f.fma(f.mul(r, r), f.polynomial(r, _EXP), r)


def _reduced(f: _Function, x: str) -> tuple[str, str]:
    """(r, n) with x = n ln 2 + r."""
    n, bits = f.nearest(f.fma(x, _LOG2E, _MAGIC))
    return f.fma(n, -_LN2_LOW, f.fma(n, -_LN2_HIGH, x)), bits


def _exp(f: _Function, x: str) -> str:
    """2^n e^r."""
    r, n = _reduced(f, f.clamp(x, -746.0, 710.0))
    return f.scaled(f.add(_exp_parts(f, r), 1.0), n)


def _exp2(f: _Function, x: str) -> str:
    """2^n e^(r ln 2) with n the nearest integer."""
    x = f.clamp(x, -1076.0, 1025.0)
    n, bits = f.nearest(f.add(x, _MAGIC))
    r = f.sub(x, n)
    t = f.fma(r, _LN2_HIGH, f.mul(r, _LN2_LOW))
    return f.scaled(f.add(_exp_parts(f, t), 1.0), bits)


def _split_exponent(f: _Function, x: str) -> tuple[str, str]:
    """(e, m) with x = 2^e m, sqrt(1/2) <= m < sqrt 2, for positive x."""
    tiny = f.compare("olt", "double", x, 2.0**-1022)
    x = f.choose(tiny, f.mul(x, 2.0**54), x)
    bits = f.op("sub", "i64", f.convert("bitcast", "double", x, "i64"), _ROOT_HALF)
    e = f.convert("sitofp", "i64", f.op("ashr", "i64", bits, 52), "double")
    e = f.choose(tiny, f.sub(e, 54.0), e)
    mantissa = f.op("add", "i64", f.op("and", "i64", bits, (1 << 52) - 1), _ROOT_HALF)
    return e, f.convert("bitcast", "i64", mantissa, "double")


def _log_parts(f: _Function, x: str) -> tuple[str, str, str]:
    """(e, g, y) with x = 2^e (1 + g) and y = log(1 + g) - g: with s = g / (2 + g), log(1 + g) = g - s (g - s R(s^2) / s)."""
    e, m = _split_exponent(f, x)
    g = f.sub(m, 1.0)
    s = f.div(g, f.add(g, 2.0))
    z = f.mul(s, s)
    rest = f.mul(z, f.polynomial(z, _ATANH))
    half = f.mul(f.mul(g, g), 0.5)
    return e, g, f.sub(f.mul(s, f.add(half, rest)), half)


def _log_edges(f: _Function, x: str, result: str) -> str:
    """Values of a logarithm at infinity, 0, below 0 and NaN."""
    result = f.choose(f.compare("oeq", "double", x, math.inf), x, result)
    result = f.choose(f.compare("oeq", "double", x, 0.0), -math.inf, result)
    return f.choose(f.compare("ult", "double", x, 0.0), math.nan, result)


def _log(f: _Function, x: str) -> str:
    e, g, y = _log_parts(f, x)
    return _log_edges(f, x, f.fma(e, _LN2_HIGH, f.add(g, f.fma(e, _LN2_LOW, y))))


def _log2(f: _Function, x: str) -> str:
    """e + (g + y) log2 e, where log2 e = 1 + 0.4427 keeps the rounding of the large terms apart."""
    e, g, y = _log_parts(f, x)
    z = f.fma(g, _LOG2E - 1, f.mul(y, _LOG2E - 1))
    return _log_edges(f, x, f.add(f.add(f.add(z, y), g), e))


def _tanh(f: _Function, x: str) -> str:
    """t / (t + 2) with t = e^(2 |x|) - 1, and the sign of x."""
    size = f.clamp(f.intrinsic("fabs", "double", x), 0.0, 20.0)
    r, n = _reduced(f, f.add(size, size))
    power = f.scaled(f.const("double", 1.0), n)
    t = f.fma(_exp_parts(f, r), power, f.sub(power, 1.0))
    return f.intrinsic("copysign", "double", f.div(t, f.add(t, 2.0)), x)


def _sigmoid(f: _Function, x: str) -> str:
    """1 / (1 + e^-x); below 0 as e^x / (1 + e^x), which neither overflows nor loses small values."""
    e = _exp(f, f.sub(-0.0, f.intrinsic("fabs", "double", x)))
    above = f.choose(f.compare("oge", "double", x, 0.0), 1.0, e)
    return f.div(above, f.add(e, 1.0))


def _log2_double(f: _Function, x: str) -> tuple[str, str]:
    """log2 of a positive finite x as a sum of two float64, to about 2^-66."""
    e, m = _split_exponent(f, x)
    g = f.sub(m, 1.0)
    d, d_low = f.sum(f.const("double", 2.0), g)
    s = f.div(g, d)
    back, back_low = f.product(s, d)
    rest = f.sub(f.sub(f.sub(g, back), back_low), f.barrier_mul(s, d_low))
    s_low = f.div(rest, d)
    z, z_low = f.product(s, s)
    z_low = f.fma(f.add(s, s), s_low, z_low)
    # 1 + z / 3 + z^2 (1/5 + z / 7 + ...)
    third = 1 / 3
    a, a_low = f.product(z, f.const("double", third))
    a_low = f.add(a_low, f.fma(z, _THIRD_LOW, f.mul(z_low, third)))
    tail = f.mul(f.mul(z, z), f.polynomial(z, [1 / (2 * k + 1) for k in range(2, 13)]))
    t, t_low = f.sum(f.const("double", 1.0), a)
    t_low = f.add(t_low, f.add(a_low, tail))
    # times s, times 2 / ln 2
    u, u_low = f.product(s, t)
    u_low = f.add(u_low, f.fma(s, t_low, f.mul(s_low, t)))
    c, c_low = 2.8853900817779268, 4.0710547481862066e-17  # 2 / ln 2 as a sum
    w, w_low = f.product(u, f.const("double", c))
    w_low = f.add(w_low, f.fma(u, c_low, f.mul(u_low, c)))
    high, low = f.sum(e, w)
    wide = f.compare("oeq", "double", e, 0.0)
    high, low = f.choose(wide, w, high), f.choose(wide, 0.0, low)
    return f.sum(high, f.add(low, w_low))


def _pow(f: _Function, x: str, y: str) -> str:
    """2^(y log2 |x|), with C's rules for signs, zeros, infinities and NaN."""
    size = f.intrinsic("fabs", "double", x)
    inside = f.clamp(size, 5e-324, 1.7976931348623157e308)
    high, low = _log2_double(f, inside)
    limited = f.clamp(y, -(2.0**80), 2.0**80)
    p, p_low = f.product(high, limited)
    p_low = f.fma(low, limited, p_low)
    within = f.compare("olt", "double", f.intrinsic("fabs", "double", p), 1100.0)
    t, t_low = f.choose(within, p, f.clamp(p, -1100.0, 1100.0)), f.choose(within, p_low, 0.0)
    n, bits = f.nearest(f.add(t, _MAGIC))
    r, r_low = f.sum(f.sub(t, n), t_low)
    power = f.fma(r, _LN2_HIGH, f.fma(r, _LN2_LOW, f.mul(r_low, math.log(2))))
    result = f.scaled(f.add(_exp_parts(f, power), 1.0), bits)
    # |x| = 0 or infinite: 0 or infinite, by the sign of y
    endless = f.compare("oeq", "double", size, math.inf)
    zero = f.compare("oeq", "double", size, 0.0)
    up = f.compare("ogt", "double", y, 0.0)
    grows = f.select(endless, "i1", up, f.op("xor", "i1", up, -1 if f.lanes > 1 else "true"))
    extreme = f.choose(grows, math.inf, 0.0)
    result = f.choose(f.op("or", "i1", endless, zero), extreme, result)
    whole = f.compare("oeq", "double", f.intrinsic("trunc", "double", y), y)
    half = f.mul(y, 0.5)
    odd = f.op("and", "i1", whole, f.compare("one", "double", f.intrinsic("trunc", "double", half), half))
    result = f.choose(odd, f.intrinsic("copysign", "double", result, x), result)
    negative = f.op("and", "i1", f.compare("olt", "double", x, 0.0), f.compare("olt", "double", size, math.inf))
    broken = f.op("xor", "i1", whole, -1 if f.lanes > 1 else "true")
    result = f.choose(f.op("and", "i1", negative, broken), math.nan, result)
    result = f.choose(f.compare("uno", "double", x, y), math.nan, result)
    unit = f.compare("oeq", "double", size, 1.0)
    unit = f.op("and", "i1", unit, f.compare("oeq", "double", f.intrinsic("fabs", "double", y), math.inf))
    for one in (unit, f.compare("oeq", "double", x, 1.0), f.compare("oeq", "double", y, 0.0)):
        result = f.choose(one, 1.0, result)
    return result


_FUNCTIONS: dict[str, Callable[..., str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "log2": _log2,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "pow": _pow,
}
