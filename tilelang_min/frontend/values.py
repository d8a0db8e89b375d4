"""Values that only exist while a kernel's source is read: tile accesses, and the rules by which numbers meet expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.ir.nodes import Buffer
from tilelang_min.program.dtypes import DATA_TYPES, is_float, language_name, numpy_dtype


@dataclass(frozen=True)
class Access:
    """``buffer[...]`` before it is known whether it means an element, the start of a region or a region.

    Each index is an expression, or a ``(start, stop)`` pair where the author wrote a slice.
    """

    buffer: Buffer
    indices: tuple[Any, ...]

    @property
    def has_slice(self) -> bool:
        """Whether any dimension was given as a slice."""
        return any(isinstance(index, tuple) for index in self.indices)


@dataclass(frozen=True)
class Variable:
    """A name made by ``T.alloc_var``: assigning to it changes its value.  ``buffer`` is a local tile of one element."""

    buffer: Buffer


def is_expression(value: Any) -> bool:
    """Whether ``value`` is a TVM expression (not a Python number and not a buffer)."""
    return isinstance(value, ir.Expr) and not tirx.is_buffer_var(value)


def dtype_of(value: Any) -> str:
    """The language's name of a TVM expression's data type."""
    return language_name(str(value.ty.dtype))


def plain_number(value: Any) -> int | float | bool | None:
    """The Python number that ``value`` is, NumPy's scalars included, or None for everything else."""
    if isinstance(value, (bool, int, float)):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        number = value.item()
        return number if isinstance(number, (bool, int, float)) else None
    return None


def constant(value: Any) -> int | float | bool | None:
    """The Python number that ``value`` is, or None when it is not a constant."""
    number = plain_number(value)
    if number is not None:
        return number
    if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
        number = value.value
        return bool(number) if dtype_of(value) == "bool" else number
    return None


def as_expression(value: Any, dtype: str | None = None) -> Any:
    """``value`` as a TVM expression; Python numbers take ``dtype`` (default int32, float32 or bool)."""
    if is_expression(value):
        return value
    if dtype is not None and is_float(dtype):
        return _float_constant(float(value), dtype)
    if isinstance(value, bool):
        return tirx.const(value, dtype or "bool")
    if isinstance(value, int):
        return tirx.const(value, dtype or "int32")
    return tirx.const(float(value), "float32")


def _float_constant(number: float, dtype: str) -> Any:
    """A constant of a float type; one of a narrow type is rounded as a conversion would."""
    known = DATA_TYPES[dtype]
    if known.narrow:
        largest = known.largest or 0.0
        if (
            known.size == 1 and abs(number) > largest
        ):  # as conversions to 8-bit floats: beyond the largest comes the largest
            number = math.copysign(largest, number)
        number = float(numpy_dtype(dtype).type(number))
    return tirx.FloatImm(known.tvm, number)


def convert(value: Any, dtype: str) -> Any:
    """``value`` converted to ``dtype``; constants are converted at once."""
    number = constant(value)
    if number is not None:
        if is_float(dtype):
            return _float_constant(float(number), dtype)
        return tirx.const(bool(number) if dtype == "bool" else int(number), dtype)
    return value if dtype_of(value) == dtype else tirx.Cast(DATA_TYPES[dtype].tvm, value)


def divides(value: Any) -> bool:
    """Whether an expression divides integers by what is no constant other than 0: processors may stop at a division by zero."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if not is_float(dtype_of(node)) and not constant(node.b):
            found.append(node)

    if is_expression(value):
        tvm_ffi.structural_walk(value, ((tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod), look))
    return bool(found)


def in_float32(function: Callable[..., Any], *operands: Any) -> Any:
    """``function`` of operands of one type; of the narrow floats in float32, rounded to their type."""
    dtype = dtype_of(operands[0])
    if not DATA_TYPES[dtype].narrow:
        return function(*operands)
    return convert(function(*(convert(operand, "float32") for operand in operands)), dtype)


_RANK = {
    name: rank
    for rank, name in enumerate(
        "bool int8 uint8 int16 uint16 int32 uint32 int64 float8_e4m3 float8_e5m2 float16 bfloat16 float32 float64".split()
    )
}


def common_type(left: Any, right: Any) -> tuple[Any, Any]:
    """Both operands in one type: Python numbers follow the expression, otherwise the wider type wins.

    Floats are wider than integers, unsigned integers than signed ones of that size; two floats of one size meet in float32.
    """
    left_constant = not is_expression(left)
    right_constant = not is_expression(right)
    if left_constant and right_constant:
        return as_expression(left), as_expression(right)
    if left_constant or right_constant:
        expression, number = (right, left) if left_constant else (left, right)
        dtype = dtype_of(expression)
        if isinstance(number, float) and not is_float(dtype):
            dtype = "float32"
        elif dtype == "bool" and not isinstance(number, bool):
            dtype = "int32"  # as in Python, True + 2 is 3
        pair = convert(expression, dtype), as_expression(number, dtype)
        return (pair[1], pair[0]) if left_constant else pair
    types = dtype_of(left), dtype_of(right)
    dtype = max(types, key=lambda name: _RANK[name])
    if (
        types[0] != types[1]
        and all(is_float(name) for name in types)
        and DATA_TYPES[types[0]].size == DATA_TYPES[types[1]].size
    ):
        dtype = "float32"
    return convert(left, dtype), convert(right, dtype)
