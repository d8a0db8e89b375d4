"""Runtime dimensions in expressions and thread programs: their text for the launch, and programs with sizes put in."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.errors import LaunchError
from tilelang_min.ir.expressions import as_int, index
from tilelang_min.ir.nodes import Buffer, Expr
from tilelang_min.program import ThreadProgram
from tilelang_min.program.metadata import Extent
from tilelang_min.program.sizes import fixed as fixed_parameters
from tilelang_min.program.sizes import grid_of

_AST_INFIX: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"
}  # fmt: skip
_INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%"}


def text_of(value: Expr, names: Mapping[Any, str]) -> Extent | None:
    """An extent as a number, or as text in the names of runtime dimensions; None where it holds anything else."""
    known = as_int(value)
    if known is not None:
        return known
    text = _text(value, names)
    return None if text is None else text.removeprefix("(").removesuffix(")") if _outer(text) else text


def shape_of(buffer: Buffer) -> tuple[Extent, ...]:
    """The shape of a parameter with names in place of runtime dimensions."""
    return tuple(extent if isinstance(extent, int) else str(extent.name) for extent in buffer.shape)


def _outer(text: str) -> bool:
    """Whether one pair of brackets is around all of the text."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return letter == ")" and place == len(text) - 1
    return False


def _text(value: Any, names: Mapping[Any, str]) -> str | None:
    known = as_int(value)
    if known is not None:
        return str(known) if known >= 0 else f"(0 - {-known})"
    if isinstance(value, tirx.Var):
        return next((name for variable, name in names.items() if variable.same_as(value)), None)
    kind = type(value).__name__
    if kind not in _INFIX and kind not in ("Min", "Max"):
        return None
    left, right = _text(value.a, names), _text(value.b, names)
    if left is None or right is None:
        return None
    return f"({left} {_INFIX[kind]} {right})" if kind in _INFIX else f"{kind.lower()}({left}, {right})"


def expression_of(extent: Extent, variables: Mapping[str, Any]) -> Expr:
    """The inverse of :func:`text_of`: a number, or an expression of the variables that the names stand for."""
    if isinstance(extent, int):
        return index(extent)
    infix = {name: node for node, name in _INFIX.items()}

    def made(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return index(node.value)
        if isinstance(node, ast.Name):
            return variables[node.id]
        if isinstance(node, ast.BinOp):
            return getattr(tirx, infix[_AST_INFIX[type(node.op)]])(made(node.left), made(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return getattr(tirx, node.func.id.capitalize())(*(made(item) for item in node.args))
        raise ValueError(f"{extent!r} is no extent")

    return made(ast.parse(extent, mode="eval").body)


def with_sizes(program: ThreadProgram, sizes: Mapping[str, int]) -> ThreadProgram:
    """The program as a launch with these sizes executes it: numbers in place of the scalar arguments.

    Raises LaunchError for a size that is missing, and for sizes at which nothing is launched.
    """
    if not program.sizes:
        return program
    parameters = fixed_parameters(program.parameters, sizes)
    grid = grid_of(program.extents or program.grid, sizes)
    if 0 in grid:
        raise LaunchError(
            f"kernel {program.name} launches no block at {dict(sizes)}: its grid is {grid}", remedy="use larger sizes"
        )
    function = program.function
    numbers = {item: index(int(sizes[item.name])) for item in function.params if item.name in program.sizes}
    analyzer = Analyzer()
    buffers: dict[Any, Any] = {}

    def replace(variable: Any) -> Any:
        if variable in numbers:
            return numbers[variable]
        if type(variable.ty).__name__ != "BufferType":
            return variable
        if variable not in buffers:
            (extent,) = variable.ty.shape
            flat = _put(extent, numbers)
            buffers[variable] = variable if flat is extent else _resized(variable, analyzer.simplify(flat))
        return buffers[variable]

    body = tvm_ffi.structural_map(function.body, (tirx.Var, replace))
    kept = [item for item in function.params if item not in numbers]
    fixed = tirx.PrimFunc(kept, body, function.ret_type, function.attrs, function.span)
    return dataclasses.replace(
        program,
        function=fixed,
        parameters=parameters,
        grid=grid,
        tensor_maps=tuple(item.at(sizes) for item in program.tensor_maps),
        sizes=(),
        extents=None,
    )


def _put(extent: Any, numbers: Mapping[Any, Any]) -> Any:
    """An extent with numbers in place of sizes; the same object where it has none."""
    if not isinstance(extent, ir.Expr) or as_int(extent) is not None:
        return extent
    if isinstance(extent, tirx.Var):
        return numbers.get(extent, extent)
    return tvm_ffi.structural_map(extent, (tirx.Var, lambda variable: numbers.get(variable, variable)))


def _resized(buffer: Any, extent: Any) -> Any:
    kind = buffer.ty
    return tirx.decl_buffer(
        [extent], str(kind.dtype), buffer.name, scope=kind.storage_scope, data_alignment=int(kind.data_alignment)
    )


__all__ = ["expression_of", "shape_of", "text_of", "with_sizes"]
