"""Data types and small integer helpers that mean the same inside and outside kernels."""

from __future__ import annotations

from typing import Any

DTYPES: dict[str, int] = {"float32": 4, "float16": 2, "int32": 4, "uint32": 4, "bool": 1}
"""Supported data types and their size in bytes."""

DTYPE_ALIASES = {"float": "float32", "half": "float16", "int": "int32", "fp32": "float32", "fp16": "float16"}


def dtype_bytes(dtype: str) -> int:
    """Size of one element in bytes."""
    return DTYPES[dtype]


def ceildiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up, for integers and index expressions (``b`` positive)."""
    return (a + b - 1) // b
