"""The small expression language of ``where``: arithmetic, comparison and logic over names, nothing else.

Grammar: numbers, strings, ``true``; names; ``+ - * / // %`` and signs; chained comparisons, ``in`` and ``not in`` over a
bracketed list; ``and``, ``or``, ``not``; ``x if c else y``; calls of min, max, abs and ceildiv.  Parsed by Python's own
parser and walked by :func:`evaluate`, so that no other name, attribute or call can be reached.

Address expressions (``integers=True``) have ``^ & | << >>`` beside these, and no ``/``, strings or fractions.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tileprof.workload.problems import unknown

_MOST_NODES = 400
_MOST_BITS = 512
_MOST_SHIFT = 64

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _shift(function: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def shift(value: int, by: int) -> int:
        if not 0 <= by <= _MOST_SHIFT:
            raise OverflowError
        return function(value, by)

    return shift


_BITWISE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: _shift(operator.lshift),
    ast.RShift: _shift(operator.rshift),
}
_COMPARISON: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
_CONSTANT_NAMES = {"true": True, "false": False}


def _ceildiv(a: Any, b: Any) -> Any:
    return -(-a // b)


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "min": (min, 2, 16),
    "max": (max, 2, 16),
    "abs": (abs, 1, 1),
    "ceildiv": (_ceildiv, 2, 2),
}


class ExpressionError(Exception):
    """An expression that is wrong; ``offset`` is the place in its text, from 0."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Expression:
    """A parsed expression: its text, its tree and the names it reads."""

    text: str
    body: ast.expr
    names: frozenset[str]
    shift: int = 0  # width of the blanks before the expression

    def check_names(self, known: set[str]) -> None:
        """Raise ExpressionError for the first name that is not in ``known``."""
        for node in ast.walk(self.body):
            if isinstance(node, ast.Name) and node.id in self.names and node.id not in known:
                raise ExpressionError(unknown("name", node.id, known), node.col_offset + self.shift)


def parse_expression(text: str, *, integers: bool = False) -> Expression:
    """The expression in ``text``; raises ExpressionError for anything outside the grammar (of integers, where that is set)."""
    stripped = text.strip()
    shift = len(text) - len(text.lstrip())
    try:
        tree = ast.parse(stripped, mode="eval")
    except SyntaxError as error:
        end = len(stripped) + 1  # where Python says 0: something is missing there
        offset = (error.offset or end) - 1 if (error.lineno or 1) == 1 else 0
        raise ExpressionError(f"not an expression: {error.msg}", offset + shift) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("not an expression") from None
    nodes = list(ast.walk(tree.body))
    if len(nodes) > _MOST_NODES:
        raise ExpressionError(f"the expression has more than {_MOST_NODES} parts")
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names: set[str] = set()
    for node in nodes:
        _check(node, shift, integers)
        if isinstance(node, ast.Name) and id(node) not in functions and node.id not in _CONSTANT_NAMES:
            names.add(node.id)
    return Expression(text, tree.body, frozenset(names), shift)


def _check(node: ast.AST, shift: int, integers: bool) -> None:
    """Raise ExpressionError when the node is not part of the grammar."""
    offset = getattr(node, "col_offset", 0) + shift
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, int if integers else bool | int | float | str):
            raise ExpressionError(f"'{node.value!r}' cannot be used here", offset)
    elif isinstance(node, ast.BinOp):
        if integers and (type(node.op) not in {**_ARITHMETIC, **_BITWISE} or isinstance(node.op, ast.Div)):
            raise ExpressionError("only + - * // % ^ & | << and >> are known here", offset)
        if not integers and type(node.op) not in _ARITHMETIC:
            raise ExpressionError("only + - * / // and % are known here", offset)
    elif isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Invert):
            raise ExpressionError("'~' is not known here; write 'not'", offset)
    elif isinstance(node, ast.Compare):
        if any(type(op) not in _COMPARISON for op in node.ops):
            raise ExpressionError("'is' is not known here; write '=='", offset)
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            name = ast.unparse(node.func)
            raise ExpressionError(unknown("function", name, _FUNCTIONS), offset)
        _, least, most = _FUNCTIONS[node.func.id]
        if node.keywords or not least <= len(node.args) <= most:
            raise ExpressionError(f"{node.func.id} takes {least} or more values", offset)
    elif isinstance(node, ast.Attribute | ast.Subscript):
        raise ExpressionError("only plain names can be used here", offset)
    elif not isinstance(
        node,
        ast.BoolOp
        | ast.IfExp
        | ast.Name
        | ast.List
        | ast.Tuple
        | ast.expr_context
        | ast.operator
        | ast.unaryop
        | ast.boolop
        | ast.cmpop,
    ):
        raise ExpressionError(f"{type(node).__name__} is not part of such an expression", offset)


def evaluate_integer(expression: Expression, values: Mapping[str, Any]) -> int:
    """The whole number that the expression gives for ``values``; raises ExpressionError when it gives none."""
    result = _value(expression.body, values)
    if not isinstance(result, int):
        raise ExpressionError(f"'{expression.text.strip()}' is {result!r}, and should be a whole number")
    return int(result)


def evaluate(expression: Expression, values: Mapping[str, Any]) -> bool:
    """The truth of the expression for ``values``; raises ExpressionError when it cannot be computed or is no condition."""
    result = _value(expression.body, values)
    if not isinstance(result, bool):
        raise ExpressionError(f"'{expression.text.strip()}' is {result!r}, and should be true or false")
    return result


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    offset = node.col_offset
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            if node.id in values:
                return values[node.id]
            if node.id in _CONSTANT_NAMES:
                return _CONSTANT_NAMES[node.id]
            raise ExpressionError(unknown("name", node.id, values), offset)
        case ast.List() | ast.Tuple():
            return [_value(item, values) for item in node.elts]
        case ast.BinOp():
            left, right = _value(node.left, values), _value(node.right, values)
            return _bounded({**_ARITHMETIC, **_BITWISE}[type(node.op)], (left, right), offset, numbers=True)
        case ast.UnaryOp():
            operand = _value(node.operand, values)
            if isinstance(node.op, ast.Not):
                return not operand
            return _bounded(
                operator.neg if isinstance(node.op, ast.USub) else operator.pos, (operand,), offset, numbers=True
            )
        case ast.BoolOp():
            wanted = isinstance(node.op, ast.Or)
            return (
                any(_value(v, values) for v in node.values) if wanted else all(_value(v, values) for v in node.values)
            )
        case ast.Compare():
            left = _value(node.left, values)
            for op, comparator in zip(node.ops, node.comparators):
                right = _value(comparator, values)
                if not _bounded(_COMPARISON[type(op)], (left, right), offset, numbers=False):
                    return False
                left = right
            return True
        case ast.IfExp():
            return _value(node.body if _value(node.test, values) else node.orelse, values)
        case ast.Call(func=ast.Name(id=name)):
            arguments = tuple(_value(argument, values) for argument in node.args)
            return _bounded(_FUNCTIONS[name][0], arguments, offset, numbers=True)
        case _:
            raise ExpressionError(f"{type(node).__name__} is not part of such an expression", offset)


def _bounded(function: Callable[..., Any], arguments: tuple[Any, ...], offset: int, *, numbers: bool) -> Any:
    """``function(*arguments)`` with errors that point at the expression, and without numbers that grow out of hand."""
    if numbers:
        for argument in arguments:
            if isinstance(argument, str | list):
                raise ExpressionError(f"arithmetic needs numbers, found {argument!r}", offset)
            if isinstance(argument, int) and argument.bit_length() > _MOST_BITS:
                raise ExpressionError("a number grows too large", offset)
    try:
        result = function(*arguments)
    except ZeroDivisionError:
        raise ExpressionError("division by zero", offset) from None
    except TypeError:
        shown = " and ".join(repr(argument) for argument in arguments)
        raise ExpressionError(f"cannot compare {shown}", offset) from None
    except OverflowError:
        raise ExpressionError("a number grows too large", offset) from None
    if isinstance(result, float) and math.isnan(result):
        raise ExpressionError("the result is not a number", offset)
    return result
