"""Data types and their sizes, the same words in every room."""

from __future__ import annotations

DTYPES: dict[str, int] = {"float32": 4, "float16": 2, "int32": 4, "uint32": 4, "bool": 1}
"""Supported data types and their size in bytes."""


def dtype_bytes(dtype: str) -> int:
    """Size of one element in bytes."""
    return DTYPES[dtype]
