"""The source of a jitted function whose body is the kernel: its parts, found by reading alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_launch(statement: ast.AST) -> bool:
    """Whether a statement is ``with T.Kernel(...)``, however the language is called there."""
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


def first_lines(function: ast.FunctionDef) -> list[ast.stmt]:
    """What stands in front of the first ``with T.Kernel(...)``; all of it where there is none."""
    launch = next((number for number, item in enumerate(function.body) if is_launch(item)), len(function.body))
    return function.body[:launch]


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


__all__ = ["bare_annotations", "first_lines", "is_launch", "own_nodes", "parameter_names", "place_of"]
