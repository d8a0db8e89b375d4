"""LLVM's types of single values, as they stand in its text."""

from __future__ import annotations

TYPE_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
"""Sizes in memory."""
