"""Operators of a kernel's expressions: arithmetic, comparisons, ``and`` and ``or``, conditional expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from tvm import tirx

from tilelang_min.errors import LanguageError
from tilelang_min.frontend.values import (
    Access,
    as_expression,
    common_type,
    constant,
    convert,
    divides,
    dtype_of,
    in_float32,
    is_expression,
)
from tilelang_min.ir.nodes import Buffer
from tilelang_min.program.dtypes import is_float

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}

BINARY: dict[str, type[ast.operator]] = {
    "floordiv": ast.FloorDiv,
    "floormod": ast.Mod,
    "shift_left": ast.LShift,
    "shift_right": ast.RShift,
    "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr,
    "bitwise_xor": ast.BitXor,
}
"""Functions of the language that are operators of Python."""

_COMPARE: dict[type[ast.cmpop], Any] = {
    ast.Lt: tirx.LT,
    ast.LtE: tirx.LE,
    ast.Gt: tirx.GT,
    ast.GtE: tirx.GE,
    ast.Eq: tirx.EQ,
    ast.NotEq: tirx.NE,
}

_PLAIN_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}


class Operators:
    """What each operator makes of its operands; how operands are evaluated is left to the subclass."""

    def raw(self, node: ast.expr) -> Any:
        """Any value: constant, construct, tile, access, expression, tuple."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Any:
        """A number or expression; a full tile access is read."""
        raise NotImplementedError

    def as_value(self, node: ast.AST, result: Any) -> Any:
        """Turn an access into the element it reads; tiles and other objects are errors."""
        raise NotImplementedError

    def condition(self, node: ast.expr) -> Any:
        """An expression, or True or False by Python's rules for anything that is known now (text, None, ...)."""
        raise NotImplementedError

    def error(
        self, node: ast.AST, message: str, remedy: str | None = None, kind: type[LanguageError] = LanguageError
    ) -> LanguageError:
        """An error that points at ``node``."""
        raise NotImplementedError

    def _eval_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node, node.op, node.left, node.right)

    def binary(self, node: ast.AST, op: ast.operator, left_node: ast.expr, right_node: ast.expr) -> Any:
        """``left op right``, written as an operator or as a function."""
        left, right = self.value(left_node), self.value(right_node)
        function = _ARITHMETIC.get(type(op))
        if function is None:
            raise self.error(node, f"operator {type(op).__name__} is not part of the tile language")
        if not is_expression(left) and not is_expression(right):
            try:
                return function(left, right)
            except Exception as error:  # division by zero, a shift by a negative number, float & int
                raise self.error(node, f"this compile-time expression has no value: {error}") from error
        if isinstance(op, ast.Pow):
            return self._power(node, left, right)
        left, right = common_type(left, right)
        if dtype_of(left) == "bool" and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            left, right = (convert(operand, "int32") for operand in (left, right))  # as in Python, True + True is 2
        floating = is_float(dtype_of(left))
        if floating and isinstance(
            op, (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
        ):
            raise self.error(node, f"{type(op).__name__} needs integers, not {dtype_of(left)}")
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and constant(right) == 0:
            raise self.error(node, "division by zero")
        if isinstance(op, ast.Div):
            if not floating:
                raise self.error(
                    node, "/ on integers would give a float", "use // for whole numbers or T.cast(x, 'float32')"
                )
            return tirx.Div(left, right)
        return function(left, right)

    def _power(self, node: ast.AST, base: Any, exponent: Any) -> Any:
        """``x ** y`` and ``T.pow(x, y)``; small whole powers are products."""
        if not is_expression(base) and not is_expression(exponent):
            return base**exponent
        number = constant(exponent)
        if isinstance(number, int) and 1 <= number <= 8:
            result = base
            for _ in range(number - 1):
                result = result * base
            return result
        base, exponent = common_type(base, exponent)
        if not is_float(dtype_of(base)):
            raise self.error(
                node,
                "powers of integers need a constant exponent from 1 to 8",
                "use T.cast(x, 'float32') ** y",
            )
        return in_float32(tirx.pow, base, exponent)

    def _eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            condition = self.condition(node.operand)
            return tirx.Not(convert(condition, "bool")) if is_expression(condition) else not condition
        operand = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            if not is_expression(operand):
                return -operand
            zero = as_expression(0, dtype_of(operand))
            return tirx.Sub(zero, operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        return self.inverted(node, operand)

    def inverted(self, node: ast.AST, operand: Any) -> Any:
        """``~x``: all bits of an integer the other way round; of a truth value, its opposite."""
        if not is_expression(operand):
            if isinstance(operand, float):
                raise self.error(node, "~ needs an integer")
            return ~int(operand)
        dtype = dtype_of(operand)
        if is_float(dtype):
            raise self.error(node, f"~ needs an integer, not {dtype}", "use T.cast first")
        if dtype == "bool":
            return tirx.Not(operand)
        ones = -1 if dtype.startswith("int") else 2 ** int(dtype.removeprefix("uint")) - 1
        return operand ^ tirx.const(ones, dtype)

    def _eval_Compare(self, node: ast.Compare) -> Any:
        nodes = [node.left, *node.comparators]
        values = [self.raw(item) for item in nodes]
        parts: list[Any] = []
        for number, op in enumerate(node.ops):
            left, right = values[number : number + 2]
            if not any(isinstance(side, (Access, Buffer)) or is_expression(side) for side in (left, right)):
                try:  # both are known now: Python's own comparison, of text and None as well
                    parts.append(_PLAIN_COMPARE[type(op)](left, right))
                except TypeError as error:
                    raise self.error(node, f"these cannot be compared: {error}") from error
            elif isinstance(op, (ast.Is, ast.IsNot)) and (left is None or right is None):
                parts.append(isinstance(op, ast.IsNot))  # a tile, a value: an argument that was given
            elif type(op) not in _COMPARE:
                raise self.error(node, f"comparison {type(op).__name__} is not part of the tile language")
            else:
                pair = (self.as_value(nodes[number], left), self.as_value(nodes[number + 1], right))
                parts.append(_COMPARE[type(op)](*common_type(*pair)))
        symbolic = [part for part in parts if is_expression(part)]
        if not all(part for part in parts if not is_expression(part)):
            return False
        return self._combine(symbolic, tirx.And) if symbolic else True

    def _eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``: as in Python, the value of a part that is known now and decides is the result."""
        all_of = isinstance(node.op, ast.And)
        symbolic: list[Any] = []
        known: Any = None
        for item in node.values:
            value = self.raw(item)
            if isinstance(value, (Access, Buffer)) or is_expression(value):
                symbolic.append(self.as_value(item, value))
                continue
            known = value
            if bool(value) is not all_of:
                return not all_of if symbolic else value
        return self._combine(symbolic, tirx.And if all_of else tirx.Or) if symbolic else known

    @staticmethod
    def _combine(parts: list[Any], operation: Any) -> Any:
        result = convert(parts[0], "bool")
        for part in (convert(item, "bool") for item in parts[1:]):
            if not divides(part):
                result = operation(result, part)
            elif operation is tirx.And:  # what stands in front may keep it from dividing by zero
                result = tirx.if_then_else(result, part, as_expression(False))
            else:
                result = tirx.if_then_else(result, as_expression(True), part)
        return result

    def _eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if not is_expression(condition):
            return self.raw(node.body if condition else node.orelse)
        return self._select(condition, self.value(node.body), self.value(node.orelse))

    @staticmethod
    def _select(condition: Any, then: Any, otherwise: Any) -> Any:
        if not is_expression(condition):
            return then if condition else otherwise
        then, otherwise = common_type(then, otherwise)
        return tirx.if_then_else(convert(condition, "bool"), then, otherwise)
