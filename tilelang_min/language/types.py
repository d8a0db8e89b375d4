"""Data types and small integer helpers that mean the same inside and outside kernels."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilelang_min.program.dtypes import DTYPES, dtype_bytes

DTYPE_ALIASES = {"float": "float32", "half": "float16", "int": "int32", "fp32": "float32", "fp16": "float16"}
DTYPE_ALIASES |= {"double": "float64", "fp64": "float64", "bf16": "bfloat16", "float8_e4m3fn": "float8_e4m3"}


class GemmWarpPolicy(Enum):
    """How the warps of a block share the tile of a matrix product; TileLang's names."""

    Square = "square"
    FullRow = "rows"
    FullCol = "columns"


def ceildiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up, for integers and index expressions (``b`` positive)."""
    return (a + b - 1) // b


__all__ = ["DTYPES", "DTYPE_ALIASES", "GemmWarpPolicy", "ceildiv", "dtype_bytes"]
