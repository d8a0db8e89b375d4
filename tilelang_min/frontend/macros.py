"""``@T.macro``: the statements of a function in place of a call of it.

Names in the body mean what they mean where the macro is defined; its parameters stand for what the call passes: tiles, elements,
regions, variables of ``T.alloc_var`` (which the macro may change), expressions and constants.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tilelang_min.frontend.surroundings import surroundings, whole_file
from tilelang_min.ir.nodes import Statement
from tilelang_min.language.kernel_source import read_source
from tilelang_min.language.prim_func import Macro

if TYPE_CHECKING:
    from tilelang_min.frontend.body import BodyParser

_DEEPEST = 32
"""Macros inside macros; one that calls itself has no end."""


def inline(parser: BodyParser, node: ast.Call, macro: Macro, out: list[Statement]) -> None:
    """Append the statements of ``macro`` to ``out``.  LanguageError where the call does not fit."""
    if len(parser.macros) >= _DEEPEST:
        raise parser.error(node, f"macro {macro.name} calls itself without end", "write the loop with T.serial")
    source = read_source(macro.function)
    given = source.function.args
    if given.vararg or given.kwarg or given.posonlyargs:
        raise parser.error(node, f"macro {macro.name} has parameters that are no plain names", "name each of them")
    values = _arguments(parser, node, macro, [item.arg for item in (*given.args, *given.kwonlyargs)])
    operation = parser.operation(node, "loop", parser.source.segment(node), (), ())
    parser.sources.setdefault(source.file, whole_file(source))
    body = list(source.function.body)
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    before = parser.source, parser.evaluator.source, parser.evaluator.frames
    parser.source = parser.evaluator.source = source
    parser.evaluator.frames = [surroundings(macro.function, macro.scope), values]
    parser.macros.append(macro.name)
    try:
        with parser.inside(operation):
            for statement in body:
                if isinstance(statement, ast.Return):
                    raise parser.error(
                        statement, "a macro gives nothing back", "pass it the tile or the T.alloc_var that it fills"
                    )
                parser.statement(statement, out)
    finally:
        parser.macros.pop()
        parser.source, parser.evaluator.source, parser.evaluator.frames = before


def _arguments(parser: BodyParser, node: ast.Call, macro: Macro, names: list[str]) -> dict[str, Any]:
    """Values of the parameters."""
    defaults = macro.function.__defaults__ or ()
    positional = names[: macro.function.__code__.co_argcount]
    values: dict[str, Any] = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    values.update(macro.function.__kwdefaults__ or {})
    passed: dict[str, ast.expr] = dict(zip(positional, node.args, strict=False))
    if len(node.args) > len(positional):
        raise parser.error(node, f"macro {macro.name} takes {len(positional)} arguments, {len(node.args)} given")
    for keyword in node.keywords:
        if keyword.arg not in names or keyword.arg in passed:
            raise parser.error(
                node, f"macro {macro.name} has no argument {keyword.arg!r} left", f"it has: {', '.join(names)}"
            )
        passed[keyword.arg] = keyword.value
    for name, item in passed.items():
        variable = parser.variable(item.id) if isinstance(item, ast.Name) else None
        values[name] = variable or parser.evaluator.raw(item)
    missing = [name for name in names if name not in values]
    if missing:
        raise parser.error(node, f"macro {macro.name} needs {', '.join(missing)}", f"it has: {', '.join(names)}")
    return values


__all__ = ["inline"]
