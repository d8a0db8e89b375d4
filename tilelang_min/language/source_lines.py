"""The lines of a function as its author wrote them: what the front end reads and what a kernel's key is made of."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tilelang_min.errors import LanguageError

_known: weakref.WeakKeyDictionary[types.CodeType, list[str]] = weakref.WeakKeyDictionary()
"""Lines of the files of functions as they were when the functions were decorated."""


def remember_source(function: Callable[..., Any]) -> None:
    """Keep the lines that a function's file has now, while it is imported: it may be edited before a kernel is compiled.

    Functions inside it are remembered too.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, getattr(function, "__globals__", None))
    if lines:
        for each in _codes(code):
            _known[each] = lines


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def source_lines(function: Callable[..., Any]) -> tuple[list[str], int]:
    """Lines of ``function``, with their ends, and the number of the first in its file.

    Raises LanguageError when Python cannot show the source (a function made by ``exec``, or an edited interactive cell).
    """
    try:
        _must_have_lines(function)
        return _by_parsing(function) or inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise LanguageError(
            f"the source of kernel {function.__name__!r} cannot be read ({error})",
            remedy="define the kernel in a file or a notebook cell; functions made by exec() have no source",
        ) from error


def _must_have_lines(function: Callable[..., Any]) -> None:
    """OSError for code that is from no file and no cell: from Python 3.13 on ``inspect`` gives lines of the module around it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and code.co_filename.startswith("<") and not linecache.getlines(code.co_filename):
        raise OSError(f"its code is from {code.co_filename}")


def _by_parsing(function: Callable[..., Any]) -> tuple[list[str], int] | None:
    """What ``inspect.getsourcelines`` gives, found by Python's parser; None where the file does not parse or has no such function.

    Its tokenizer is written in Python: the first cached kernel of a process would spend most of its time there.
    """
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return None
    lines = _known.get(code) or inspect.findsource(function)[0]
    try:
        nodes: list[Any] = ast.parse("".join(lines)).body
    except (SyntaxError, ValueError):
        return None
    while nodes:
        # Statements that reach over the line; what stands in their bodies, their decorators included, is next.
        inside = [node for node in nodes if _first(node) <= code.co_firstlineno <= (node.end_lineno or 0)]
        for node in inside:
            if isinstance(node, ast.FunctionDef) and (node.name, _first(node)) == (code.co_name, code.co_firstlineno):
                return lines[_first(node) - 1 : node.end_lineno], _first(node)
        nodes = [child for node in inside for child in ast.iter_child_nodes(node) if hasattr(child, "end_lineno")]
    return None


def _first(node: Any) -> int:
    """The first line of a statement, decorators included."""
    lines = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
    return int(min([node.lineno, *lines]))
