"""Conversions between float32 and the floats that CUDA C++ would need a header for: bfloat16 and the 8-bit floats.

They are macros, so that the line table names the operation that converts (:mod:`tilelang_min.codegen.nvidia.text`); where
a value is used twice or an instruction needs a register, the macro is a lambda called on the spot.  Instructions where the
architecture has them (bfloat16 from sm_80, 8-bit floats from sm_89), integer arithmetic elsewhere; no result depends on
whether the compiler flushes subnormals.
"""

from __future__ import annotations

import re

from tilelang_min.codegen.storage import PREFIX

_NAME = re.compile(rf"\b{PREFIX}\w+")


def _lambda(parameter: str, body: str) -> str:
    return f"([]({parameter} v) {{ {body} }}(x))"


_HALF = 'float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)({bits}))); {rest}'


def _to_float8(special: str, limit: str, normal: str, half_ulp: str, drop: int, offset: int, magic: str) -> str:
    """float32 to an 8-bit float in integers: clamp, then round at the last kept bit; below the smallest normal number
    the sum with a power of two leaves the result in the low bits."""
    return _lambda(
        "float",
        f"unsigned u = __float_as_uint(v), s = u >> 24 & 0x80; float a = fminf(__uint_as_float(u & 0x7fffffff), {limit}); "
        f"unsigned n = __float_as_uint(a); n = (n + {half_ulp} + (n >> {drop} & 1) >> {drop}) - {offset}; "
        f"unsigned d = __float_as_uint(a + {magic}) - __float_as_uint({magic}); "
        f"return (unsigned char)(s | (v != v ? {special} : a >= {normal} ? n : d));",
    )


def _satfinite(kind: str) -> str:
    return _lambda(
        "float",
        f'unsigned short r; asm("cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(v)); '
        "return (unsigned char)r;",
    )


# name behind the prefix: (text from sm_89 or the number given on, text below); one text where there is no difference
_MACROS: dict[str, str | tuple[int, str, str]] = {
    "bfloat16_float32": "__uint_as_float((unsigned)(x) << 16)",
    "float32_bfloat16": (
        800,
        _lambda("float", 'unsigned short r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v)); return r;'),
        _lambda(
            "float",
            "unsigned u = __float_as_uint(v); "
            "return (unsigned short)(v != v ? 0x7fff : u + 0x7fff + (u >> 16 & 1) >> 16);",
        ),
    ),
    # As the upper of two values, the lower of which is zero: the bits of the rounded value as float32, by one F2FP where a single
    # value takes an F2F, which is slower, and a shift.  What is stored stays a single one: two neighbours become one F2FP.
    "float32_rounded_bfloat16": (
        800,
        _lambda(
            "float",
            'unsigned r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(v), "f"(0.0f)); return __uint_as_float(r);',
        ),
        _lambda(
            "float",
            "unsigned u = __float_as_uint(v); "
            "return __uint_as_float(v != v ? 0x7fff0000u : u + 0x7fff + (u >> 16 & 1) & 0xffff0000u);",
        ),
    ),
    "float8_e4m3fn_float32": (
        890,
        _lambda(
            "unsigned char",
            'float r; asm("{ .reg .b32 t; .reg .b16 l, h; cvt.rn.f16x2.e4m3x2 t, %1; mov.b32 {l, h}, t; cvt.f32.f16 %0, l; }" '
            ': "=f"(r) : "h"((unsigned short)v)); return r;',
        ),
        # The bits as float16 have an exponent that is too small by 8.
        _lambda(
            "unsigned char",
            _HALF.format(
                bits="(v & 0x80) << 8 | (v & 0x7f) << 7",
                rest="return (v & 0x7f) == 0x7f ? __int_as_float(0x7fffffff) : r * 256.0f;",
            ),
        ),
    ),
    "float32_float8_e4m3fn": (
        890,
        _satfinite("e4m3"),
        _to_float8("0x7fu", "448.0f", "0.015625f", "0x7ffff", 20, 960, "16384.0f"),
    ),
    # The high byte of a float16.
    "float8_e5m2_float32": _lambda("unsigned char", _HALF.format(bits="v << 8", rest="return r;")),
    "float32_float8_e5m2": (
        890,
        _satfinite("e5m2"),
        _to_float8("0x7fu", "57344.0f", "6.103515625e-05f", "0xfffff", 21, 448, "128.0f"),
    ),
    "float64_odd32": _lambda(
        "double",
        "float r = __double2float_rz(v); return (double)r == v || v != v ? r : __uint_as_float(__float_as_uint(r) | 1);",
    ),
}


def definitions(text: str) -> str:
    """Definitions of the conversions that printed CUDA C++ calls; empty where there are none."""
    lines: list[str] = []
    for name in sorted(set(_NAME.findall(text))):
        macro = _MACROS[name.removeprefix(PREFIX)]
        if isinstance(macro, str):
            lines.append(f"#define {name}(x) {macro}")
        else:
            lines += [f"#if __CUDA_ARCH__ >= {macro[0]}", f"#define {name}(x) {macro[1]}", "#else"]
            lines += [f"#define {name}(x) {macro[2]}", "#endif"]
    return "".join(f"{line}\n" for line in lines)
