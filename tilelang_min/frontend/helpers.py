"""Functions of the author's that a kernel calls with expressions: read by the language's rules, as the kernel itself.

A function that only computes (assignments to names, ``if`` and ``assert`` on what is known now, ``return``) stands for its value:
``T.if_then_else``, ``T.cast`` and the rules by which numbers meet tiles mean in it what they mean in a kernel.  Everything else,
such as a function with loops, is called by Python.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tilelang_min.errors import LanguageError
from tilelang_min.frontend.surroundings import surroundings
from tilelang_min.frontend.values import is_expression
from tilelang_min.language import Macro
from tilelang_min.language.kernel_source import KernelSource, read_source

if TYPE_CHECKING:
    from tilelang_min.frontend.evaluate import Evaluator

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Assert, ast.Return, ast.Pass, ast.Expr)

_DEEPEST = 64
"""Functions inside functions; one that calls itself on an expression has no end."""


def computes(evaluator: Evaluator, function: Any, values: Iterable[Any]) -> KernelSource | None:
    """The source of a function that only computes and is called with expressions, or None."""
    plain = function.function if isinstance(function, Macro) else function
    if not isinstance(plain, types.FunctionType):
        return None
    if not isinstance(function, Macro) and not any(is_expression(value) for value in values):
        return None
    try:
        source = read_source(plain)
    except LanguageError:
        return None
    body = source.function.body
    known = all(_known(evaluator, statement) for statement in body)
    return source if known and any(isinstance(node, ast.Return) for item in body for node in ast.walk(item)) else None


def _known(evaluator: Evaluator, statement: ast.stmt) -> bool:
    if not isinstance(statement, _STATEMENTS):
        return False
    if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant):
        return False
    if isinstance(statement, ast.If):
        return all(_known(evaluator, item) for item in (*statement.body, *statement.orelse)) and _can(
            evaluator, statement.test
        )
    if isinstance(statement, ast.Assign) and not (
        len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    ):
        return False
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and not isinstance(statement.target, ast.Name):
        return False
    if isinstance(statement, ast.Assert):
        return _can(evaluator, statement.test)
    value = getattr(statement, "value", None)
    return value is None or _can(evaluator, value)


def _can(evaluator: Evaluator, node: ast.expr) -> bool:
    return all(
        hasattr(evaluator, f"_eval_{type(item).__name__}") for item in ast.walk(node) if isinstance(item, ast.expr)
    )


def inline_value(
    evaluator: Evaluator, node: ast.Call, function: Any, source: KernelSource, args: list[Any], keywords: dict[str, Any]
) -> Any:
    """What the function gives for these arguments.  LanguageError at the call where they do not fit."""
    plain = function.function if isinstance(function, Macro) else function
    try:
        bound = inspect.signature(plain).bind(*args, **keywords)
    except TypeError as error:
        raise evaluator.error(node, f"calling {plain.__name__} failed: {error}") from error
    if evaluator.depth >= _DEEPEST:
        raise evaluator.error(node, f"{plain.__name__} calls itself without end", "write the loop with T.serial")
    bound.apply_defaults()
    before = evaluator.source, evaluator.frames
    scope = function.scope if isinstance(function, Macro) else {}
    evaluator.source, evaluator.frames = source, [surroundings(plain, scope), dict(bound.arguments)]
    evaluator.depth += 1
    try:
        found = _run(evaluator, source.function.body)
    finally:
        evaluator.depth -= 1
        evaluator.source, evaluator.frames = before
    if not found:
        raise evaluator.error(node, f"{plain.__name__} gives no value here", "let it return one")
    return found[0]


def _run(evaluator: Evaluator, statements: list[ast.stmt]) -> tuple[Any, ...]:
    """The value that is returned, or nothing."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            return (None if statement.value is None else evaluator.known_value(statement.value),)
        if isinstance(statement, (ast.If, ast.Assert)):
            condition = evaluator.condition(statement.test)
            if is_expression(condition):
                raise evaluator.error(
                    statement.test,
                    "a function that gives a value cannot branch on an expression",
                    "use T.if_then_else(condition, a, b)",
                )
            if isinstance(statement, ast.Assert):
                if not condition:
                    raise evaluator.error(statement, "this assertion does not hold")
                continue
            found = _run(evaluator, statement.body if condition else statement.orelse)
            if found:
                return found
        elif isinstance(statement, ast.AugAssign):
            assert isinstance(statement.target, ast.Name)
            left = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
            evaluator.bind(statement.target.id, evaluator.binary(statement, statement.op, left, statement.value))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            assert isinstance(target, ast.Name)
            evaluator.bind(target.id, evaluator.known_value(statement.value))
    return ()


__all__ = ["computes", "inline_value"]
