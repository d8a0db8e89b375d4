"""Atomics in CUDA C++: a ``red`` instruction for each call of the thread program.

Macros, so that the line table names the operation that updates (:mod:`tilelang_min.codegen.nvidia.text`).  ``relaxed`` and, in
global memory, at the scope of the GPU: other kernels see results when this one has ended.
"""

from __future__ import annotations

import re

from tilelang_min.program.atomics import PREFIX, AtomicCall

_NAME = re.compile(rf"\b{PREFIX}\w+")

# type of an element: PTX type by operation, register, value in a macro of v (and w)
_ADD = {
    "int32": ("u32", "r", "(unsigned)(v)"),
    "uint32": ("u32", "r", "(unsigned)(v)"),
    "int64": ("u64", "l", "(unsigned long long)(v)"),
    "uint64": ("u64", "l", "(unsigned long long)(v)"),
    "float32": ("f32", "f", "(float)(v)"),
    "float64": ("f64", "d", "(double)(v)"),
    "float16x2": ("noftz.f16x2", "r", "__pack_half2(v, w)"),
    "bfloat16x2": ("noftz.bf16x2", "r", "(unsigned)(v) | (unsigned)(w) << 16"),
}
_ORDERED = {
    "int32": ("s32", "r", "(int)(v)"),
    "uint32": ("u32", "r", "(unsigned)(v)"),
    "int64": ("s64", "l", "(long long)(v)"),
    "uint64": ("u64", "l", "(unsigned long long)(v)"),
}


def definitions(text: str) -> str:
    """Definitions of the atomics that printed CUDA C++ calls; empty where there are none."""
    return "".join(f"{_macro(AtomicCall.parse(name))}\n" for name in sorted(set(_NAME.findall(text))))


def _macro(call: AtomicCall) -> str:
    dtype = call.kind.partition(".")[2]
    ptx, register, value = (_ADD if call.operation == "add" else _ORDERED)[dtype]
    parameters = "p, v, w" if call.lanes == 2 else "p, v"
    if call.space == "shared":
        instruction, address = (
            f"red.relaxed.cta.shared.{call.operation}.{ptx}",
            '"r"((unsigned)__cvta_generic_to_shared(p))',
        )
    else:
        instruction, address = f"red.relaxed.gpu.global.{call.operation}.{ptx}", '"l"(p)'
    body = f'asm volatile("{instruction} [%0], %1;" : : {address}, "{register}"({value}) : "memory")'
    return f"#define {call.name}({parameters}) {body}"
