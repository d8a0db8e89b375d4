"""What calls of one kernel have in common: keys of arguments, and of what a function finds around it."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from typing import Any

from tilelang_min.driver.keys import describe
from tilelang_min.errors import TileLangError
from tilelang_min.language.kernel_source import read_source

_PLAIN = frozenset({int, float, str, bool, bytes, type(None)})
_CHANGEABLE = (list, dict, set)
_WHOLE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
"""Objects whose attributes say nothing about a kernel that is given them."""


def frozen(value: Any) -> Any:
    """A key that is equal for equal values of equal types, also of what may change: an object counts with its attributes."""
    if isinstance(value, (str, int)):
        return (type(value), value)
    if isinstance(value, (list, tuple)):
        return (type(value), *map(frozen, value))
    if isinstance(value, dict):
        return (
            type(value),
            *sorted(((repr(key), frozen(item)) for key, item in value.items()), key=lambda pair: pair[0]),
        )
    if isinstance(value, (set, frozenset)):
        return (type(value), *sorted(map(repr, value)))
    if isinstance(value, float):
        return (type(value), repr(value))  # 0.0 and -0.0 are equal, NaN is not itself
    try:
        hash(value)
    except TypeError:
        return (type(value), describe(value))
    by_identity = getattr(type(value), "__hash__", None) is object.__hash__ and not isinstance(value, _WHOLE)
    if by_identity and getattr(value, "__dict__", None):
        return (type(value), value, describe(vars(value)))
    return (type(value), value)


class Surroundings:
    """The names that one function uses and does not make: another value of one in its module or closure means another kernel.

    What changes inside of an object, or in functions that are called, is not seen.  Modules are left out, and builtins.  A function
    whose source cannot be read has the names that its code asks for.
    """

    def __init__(self, function: Any) -> None:
        self._globals: dict[str, Any] = function.__globals__
        self._cells = tuple(function.__closure__ or ())
        used = _names_of(function) - set(function.__code__.co_freevars)
        self._names = tuple(name for name in sorted(used) if not self._is_fixed(name))
        self._last: tuple[list[Any], Any] = [], ()

    def _is_fixed(self, name: str) -> bool:
        if name not in self._globals:
            return hasattr(builtins, name)
        return isinstance(self._globals[name], types.ModuleType)

    def key(self) -> Any:
        """The same for the same values: equal numbers and texts, and containers of them; other objects are themselves."""
        if not self._names and not self._cells:
            return ()
        values = list(map(self._globals.get, self._names))
        for cell in self._cells:
            try:
                values.append(cell.cell_contents)
            except ValueError:  # not bound yet
                values.append(None)
        last, key = self._last
        if key is not None and len(last) == len(values) and all(one is other for one, other in zip(last, values)):
            return key
        key = tuple(map(_around, values))
        self._last = values, None if any(isinstance(value, _CHANGEABLE) for value in values) else key
        return key


class _Same:
    """An object as a key, equal to itself alone."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _around(value: Any) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        return (kind, *map(_around, value))
    if kind is dict:
        return (kind, *((_around(name), _around(item)) for name, item in value.items()))
    if kind is set:
        return (kind, frozenset(map(_around, value)))
    return frozen(value) if kind in _PLAIN else _Same(value)


def _names_of(function: Callable[..., Any]) -> set[str]:
    """Names that a function uses, and neither it nor a function inside it makes."""
    try:
        source = read_source(function).function
    except (TileLangError, OSError):
        return set(function.__code__.co_names)
    used: set[str] = set()
    made = {item.arg for item in ast.walk(source.args) if isinstance(item, ast.arg)}
    notes = [item.annotation for item in ast.walk(source.args) if isinstance(item, ast.arg) and item.annotation]
    for part in (*source.body, *notes):
        for node in ast.walk(part):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
            elif isinstance(node, ast.arg):
                made.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                made.add(node.name)
            elif isinstance(node, ast.alias):
                made.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "Tensor" in node.value:
                used |= _names_in_text(node.value)
    return used - made


def _names_in_text(text: str) -> set[str]:
    """Names in an annotation that is written as text."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


__all__ = ["Surroundings", "frozen"]
