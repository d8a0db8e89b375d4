"""Names that CUDA C++ would not take, replaced before printing.

Authors choose names by Python's rules: ``def main(new, max)`` is a fine kernel.  TVM's printer knows C's keywords and
types, not those of C++ and not the functions that its own text calls.
"""

from __future__ import annotations

import re
from typing import Any

KERNEL_SUFFIX = "_kernel"
"""Behind every kernel's name, so that ``main``, ``exp`` or ``add`` can be kernels."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = re.compile(
    # Builtin variables, and names that start with two underscores: reserved, and used by the printer and the header.
    r"__.*|threadIdx|blockIdx|blockDim|gridDim|warpSize|CUDART_\w+"
    # Scalar and vector types.
    r"|(?:u?(?:char|short|int|long|longlong)|float|double|half|bool)\d*|u?int\d+_t|size_t|make_\w+"
    # Functions that the printer calls; each stands for its float and half forms too.
    r"|h?(?:max|min|abs|fabs|exp|exp2|exp10|log|log2|log10|log1p|sqrt|rsqrt|rcp|sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|atan2|asinh"
    r"|acosh|atanh|erf|pow|fmod|fma|floor|ceil|round|nearbyint|rint|trunc|isnan|isinf|isfinite|copysign|ldexp|hypot|popc)f?"
    r"|fmaxf?|fminf?|printf|assert|asm"
)
_KEYWORDS = frozenset(
    (
        "alignas alignof and and_eq auto bitand bitor break case catch class compl concept const const_cast consteval constexpr "
        "constinit continue co_await co_return co_yield decltype default delete do dynamic_cast else enum explicit export extern "
        "false for friend goto if inline mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected "
        "public register reinterpret_cast requires return signed sizeof static static_assert static_cast struct switch template "
        "this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
        "xor_eq char8_t char16_t char32_t"
    ).split()
)


def safe_name(name: str) -> str:
    """The name itself where CUDA C++ can have it, else one made from it; two names may come out the same."""
    if not _PLAIN.fullmatch(name):
        name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if _TAKEN.fullmatch(name) or name in _KEYWORDS or not _PLAIN.fullmatch(name):
        return f"v_{name.lstrip('_')}_"
    return name


def with_safe_names(function: Any) -> Any:
    """The function with every variable under a name that CUDA C++ takes; the same object where all are.

    TVM's printer tells equal names apart.
    """
    from tvm.tirx import PrimFunc, Var
    from tvm_ffi import structural_map, structural_walk

    variables: dict[Any, Any] = {}

    def note(variable: Any) -> None:
        if variable not in variables:
            name = safe_name(variable.name)
            variables[variable] = variable if name == variable.name else Var(name, variable.ty)

    for parameter in function.params:
        note(parameter)
    structural_walk(function.body, (Var, note))
    if all(new is old for old, new in variables.items()):
        return function
    body = structural_map(function.body, (Var, lambda variable: variables[variable]))
    parameters = [variables[parameter] for parameter in function.params]
    return PrimFunc(parameters, body, function.ret_type, function.attrs, function.span)
