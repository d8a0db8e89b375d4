"""What a function of the author's sees, and the file it stands in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tilelang_min.language.kernel_source import KernelSource


def surroundings(function: Callable[..., Any], scope: dict[str, Any]) -> dict[str, Any]:
    """Every name the function sees: globals, the defining scope, closure cells."""
    names = dict(function.__globals__)
    names.update(scope)
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a name that its function has not bound yet is not defined here
            names[name] = cell.cell_contents
    return names


def whole_file(source: KernelSource) -> str:
    """Text of the author's file, so that reports can show it; the function alone when the file cannot be read."""
    try:
        with open(source.path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError):
        return "\n" * (source.first_line - 1) + "\n".join(source.lines)


__all__ = ["surroundings", "whole_file"]
