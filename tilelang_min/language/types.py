"""Data types and small integer helpers that mean the same inside and outside kernels."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any, NoReturn

from tilelang_min.errors import LanguageError
from tilelang_min.program.dtypes import DATA_TYPES, DTYPES, dtype_bytes

DTYPE_ALIASES = {"float": "float32", "half": "float16", "int": "int32", "fp32": "float32", "fp16": "float16"}
DTYPE_ALIASES |= {"double": "float64", "fp64": "float64", "bf16": "bfloat16", "float8_e4m3fn": "float8_e4m3"}
DTYPE_ALIASES |= {"uint": "uint32", "short": "int16", "long": "int64", "boolean": "bool"}
DTYPE_ALIASES |= {"e4m3_float8": "float8_e4m3", "e5m2_float8": "float8_e5m2"}

NOT_HELD = {
    "int4": 4,
    "uint4": 4,
    "uint64": 64,
    "float4_e2m1fn": 4,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "tfloat32": 32,
}
"""Types that kernels for TileLang name and no tile can have here, and their bits."""

_TORCH = {"float8_e4m3": "float8_e4m3fn"}


def normal_dtype(name: Any) -> str | None:
    """The data type that ``name`` means, or None.

    ``name``: text, a ``T.dtype``, a data type of torch or NumPy, or Python's ``float``, ``int`` and ``bool``.
    """
    if not isinstance(name, str):
        origin = (name.__module__ if isinstance(name, type) else type(name).__module__).partition(".")[0]
        if origin == "torch":
            name = str(name).removeprefix("torch.")
        elif origin in ("numpy", "ml_dtypes") or name in (float, int, bool):
            name = getattr(name, "name", None) or getattr(name, "__name__", "")
        else:
            return None
    name = DTYPE_ALIASES.get(name, str(name))
    return name if name in DTYPES else None


class DType(str):
    """A data type, ``T.float16``: text that may be called in a kernel, ``T.float16(x)`` converts ``x``.

    ``T.dtype(name)`` makes one of text, of data types of torch and NumPy, and of Python's ``float``, ``int`` and ``bool``.
    """

    __slots__ = ()

    def __new__(cls, name: Any) -> DType:
        """LanguageError for what is no data type."""
        text = normal_dtype(name)
        if text is None and str(name).rpartition(".")[2] in NOT_HELD:
            text = str(name).rpartition(".")[2]
        if text is None:
            raise LanguageError(f"{name!r} is no data type", remedy=f"use one of {', '.join(DTYPES)}")
        return super().__new__(cls, name if isinstance(name, str) and name == "float8_e4m3fn" else text)

    @property
    def bits(self) -> int:
        """Bits of one element."""
        name = normal_dtype(str(self))
        return NOT_HELD[str(self)] if name is None else 8 * DATA_TYPES[name].size

    @property
    def bytes(self) -> int:
        """Bytes of one element, at least 1."""
        return max(1, self.bits // 8)

    @property
    def itemsize(self) -> int:
        """Bytes of one element: NumPy's and torch's word."""
        return self.bytes

    def as_torch(self) -> Any:
        """torch's data type."""
        name = normal_dtype(str(self)) or str(self)
        return getattr(import_module("torch"), _TORCH.get(name, name))

    def __call__(self, *args: Any) -> NoReturn:
        """Conversions mean something in the source of a ``@T.prim_func`` alone."""
        raise LanguageError(
            f"T.{self}(...) was called outside a kernel",
            remedy="a number needs no type there; inside a kernel it converts to the type",
        )


class GemmWarpPolicy(Enum):
    """How the warps of a block share the tile of a matrix product; TileLang's names."""

    Square = "square"
    FullRow = "rows"
    FullCol = "columns"


def ceildiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up, for integers and index expressions (``b`` positive)."""
    return (a + b - 1) // b


__all__ = ["DTYPES", "DTYPE_ALIASES", "NOT_HELD", "DType", "GemmWarpPolicy", "ceildiv", "dtype_bytes", "normal_dtype"]
