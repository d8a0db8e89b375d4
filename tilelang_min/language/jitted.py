"""The source of a jitted function whose body is the kernel: its parts, found by reading alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilelang_min.language.prim_func import Macro

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_launch(statement: ast.AST, means: Callable[[ast.expr], Any] | None = None) -> bool:
    """Whether a statement is ``with T.Kernel(...)``, however the language is called there, or calls a macro that has it.

    ``means`` gives the value of a name, of which macros are known.
    """
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and means is not None:
        function = means(statement.value.func)
        return isinstance(function, Macro) and function.launches
    if not isinstance(statement, ast.With):
        return False
    calls = [item.context_expr for item in statement.items]
    return any(isinstance(call, ast.Call) and _last_name(call.func) == "Kernel" for call in calls)


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def own_nodes(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Nodes of the statements, those of functions and classes in them left out, in the order of the source."""
    for statement in statements:
        yield statement
        if not isinstance(statement, _INNER):
            yield from own_nodes(list(ast.iter_child_nodes(statement)))


def first_lines(function: ast.FunctionDef, means: Callable[[ast.expr], Any] | None = None) -> list[ast.stmt]:
    """What stands in front of the first ``with T.Kernel(...)`` (see :func:`is_launch`); all of it where there is none."""
    launch = (number for number, item in enumerate(function.body) if is_launch(item, means))
    return function.body[: next(launch, len(function.body))]


def parameter_names(function: ast.FunctionDef) -> list[str]:
    """Names of the parameters, keyword-only ones last."""
    given = function.args
    return [item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def bare_annotations(statements: Sequence[ast.stmt]) -> dict[ast.AnnAssign, str]:
    """``name: T.Tensor[...]`` and other annotations without a value, each with its name."""
    return {
        node: node.target.id
        for node in own_nodes(statements)
        if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name)
    }


def names_tensor(annotation: ast.expr) -> bool:
    """Whether an annotation is written as that of a tensor: called or indexed, in quotes, or T.Tensor itself."""
    if isinstance(annotation, (ast.Call, ast.Subscript)):
        return True
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str)
    return _last_name(annotation) in ("Tensor", "Buffer")


def place_of(function: ast.FunctionDef, name: str) -> ast.AST:
    """Where a tensor of the kernel is described: its annotation in the body, the line that makes it, or the parameter."""
    lines = first_lines(function)
    for annotation, annotated in bare_annotations(lines).items():
        if annotated == name:
            return annotation.annotation
    given = function.args
    for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if argument.arg == name:
            return argument
    for node in own_nodes(lines):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return node
    return function


__all__ = ["bare_annotations", "first_lines", "is_launch", "names_tensor", "own_nodes", "parameter_names", "place_of"]
