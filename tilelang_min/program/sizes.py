"""Runtime dimensions: what they are, by the shapes of a call's arguments, and what depends on them.  Imports no TVM."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

from tilelang_min.errors import BundleError, LaunchError
from tilelang_min.program.metadata import Extent
from tilelang_min.program.thread_program import Parameter

MOST_ELEMENTS = 2**31 - 1
"""Elements of a tensor: indices are 32-bit."""

_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Any] = {"min": min, "max": max}


def evaluate(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The number that an extent is: itself, or the value of its text, such as ``(m + 63) // 64``, for these sizes.

    Raises BundleError for text that is anything but sums, products, whole quotients, remainders, min and max.
    """
    return extent if isinstance(extent, int) else _value(_tree(extent), sizes, extent)


@cache
def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise _damaged(text) from error


def _value(node: ast.expr, sizes: Mapping[str, int], text: str) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        made = _OPERATORS[type(node.op)](_value(node.left, sizes, text), _value(node.right, sizes, text))
        return int(made)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and node.args:
        return int(_FUNCTIONS[node.func.id](*(_value(item, sizes, text) for item in node.args)))
    raise _damaged(text)


def _damaged(text: str) -> BundleError:
    return BundleError(f"{text!r} is no extent of a grid", remedy="compile the kernel again")


def names_of(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """The runtime dimensions of a kernel, in the order in which it takes them behind its tensors."""
    return tuple(dict.fromkeys(extent for item in parameters for extent in item.shape if isinstance(extent, str)))


def bound(parameters: Sequence[Parameter], shapes: Sequence[Sequence[int] | None]) -> dict[str, int]:
    """The sizes that the arguments' shapes give; a shape of None says nothing.

    Each is that of the first tensor that has it.  Raises LaunchError where another tensor disagrees; number and fixed extents of
    dimensions are checked elsewhere, against :func:`fixed`.
    """
    found: dict[str, tuple[int, str]] = {}
    for parameter, shape in zip(parameters, shapes, strict=True):
        if shape is None or len(shape) != len(parameter.shape):
            continue
        for axis, (extent, given) in enumerate(zip(parameter.shape, shape, strict=True)):
            if not isinstance(extent, str):
                continue
            place = f"dimension {axis} of {parameter.name}"
            size, first = found.setdefault(extent, (int(given), place))
            if size != given:
                raise LaunchError(
                    f"runtime dimension {extent} is {size} in {first}, but {given} in {place}",
                    remedy=f"pass tensors that agree on {extent}",
                )
    return {name: size for name, (size, _) in found.items()}


def fixed(parameters: Sequence[Parameter], sizes: Mapping[str, int]) -> tuple[Parameter, ...]:
    """The parameters with these sizes in place of names.

    Raises LaunchError for a name without a size, and for a tensor that has more elements than a kernel can count.
    """
    made = []
    for item in parameters:
        for extent in item.shape:
            if isinstance(extent, str) and extent not in sizes:
                raise LaunchError(
                    f"nothing says how large the runtime dimension {extent} of {item.name} is",
                    remedy=f"pass tensors, or a size: sizes={{{extent!r}: 128}}",
                )
        shape = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in item.shape)
        if any(isinstance(extent, str) for extent in item.shape) and prod(shape) > MOST_ELEMENTS:
            raise LaunchError(
                f"parameter {item.name} of shape {shape} has {prod(shape):,} elements; indices are 32-bit",
                remedy="split the tensor",
            )
        made.append(Parameter(item.name, item.dtype, shape, item.access))
    return tuple(made)


def grid_of(extents: Sequence[Extent], sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """Blocks of a launch in each direction; none at all where an extent is not positive."""
    x, y, z = (max(0, evaluate(extent, sizes)) for extent in extents)
    return x, y, z
