"""Values that only exist while a kernel's source is read: tile accesses, and the rules by which numbers meet expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx

from tilelang_min.ir.nodes import Buffer


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
    """Data type name of a TVM expression."""
    return str(value.ty.dtype)


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
    if isinstance(value, bool):
        return tirx.const(value, dtype or "bool")
    if isinstance(value, int):
        return tirx.const(float(value) if dtype and dtype.startswith("float") else value, dtype or "int32")
    return tirx.const(float(value), dtype if dtype and dtype.startswith("float") else "float32")


def convert(value: Any, dtype: str) -> Any:
    """``value`` converted to ``dtype``; constants are converted at once."""
    number = constant(value)
    if number is not None:
        if dtype.startswith("float"):
            return tirx.FloatImm(dtype, float(number))
        return tirx.const(bool(number) if dtype == "bool" else int(number), dtype)
    return value if dtype_of(value) == dtype else tirx.Cast(dtype, value)


_RANK = {"bool": 0, "int32": 1, "uint32": 2, "float16": 3, "float32": 4}


def common_type(left: Any, right: Any) -> tuple[Any, Any]:
    """Both operands in one type: Python numbers follow the expression, otherwise the wider type wins."""
    left_constant = not is_expression(left)
    right_constant = not is_expression(right)
    if left_constant and right_constant:
        return as_expression(left), as_expression(right)
    if left_constant or right_constant:
        expression, number = (right, left) if left_constant else (left, right)
        dtype = dtype_of(expression)
        if isinstance(number, float) and not dtype.startswith("float"):
            dtype = "float32"
        pair = convert(expression, dtype), as_expression(number, dtype)
        return (pair[1], pair[0]) if left_constant else pair
    dtype = max(dtype_of(left), dtype_of(right), key=lambda name: _RANK[name])
    return convert(left, dtype), convert(right, dtype)
