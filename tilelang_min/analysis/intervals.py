"""Interval arithmetic on integer expressions of TVM, for many values of some variables at once.

An interval's ends are NumPy arrays: a variable that is known exactly has equal ends, one value for each point of interest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx


class Unknown(Exception):
    """An expression holds something without an interval: an element of a tensor, a call."""


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from ``low`` to ``high``, both included; arrays of the same or of matching shapes."""

    low: Any
    high: Any


def interval(expression: Any, values: Mapping[int, Interval]) -> Interval:
    """Bounds of an integer expression; ``values`` by variable handle.  Raises Unknown."""
    if isinstance(expression, (int, np.integer)):
        return Interval(np.int64(expression), np.int64(expression))
    if isinstance(expression, tirx.IntImm):
        return Interval(np.int64(int(expression.value)), np.int64(int(expression.value)))
    if isinstance(expression, tirx.Var):
        handle = int(expression.__chandle__())
        if handle not in values:
            raise Unknown
        return values[handle]
    if isinstance(expression, tirx.Cast):
        return interval(expression.value, values)
    if isinstance(expression, tirx.Select):
        first, second = interval(expression.true_value, values), interval(expression.false_value, values)
        return Interval(np.minimum(first.low, second.low), np.maximum(first.high, second.high))
    if not isinstance(expression, _ARITHMETIC):
        raise Unknown
    a, b = interval(expression.a, values), interval(expression.b, values)
    if isinstance(expression, tirx.Add):
        return Interval(a.low + b.low, a.high + b.high)
    if isinstance(expression, tirx.Sub):
        return Interval(a.low - b.high, a.high - b.low)
    if isinstance(expression, tirx.Min):
        return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))
    if isinstance(expression, tirx.Max):
        return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))
    if isinstance(expression, tirx.Mul):
        ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
        return Interval(np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(np.broadcast_arrays(*ends)))
    if not np.all((b.low == b.high) & (b.low > 0)):
        raise Unknown
    if isinstance(expression, (tirx.Div, tirx.Mod)) and not np.all(a.low >= 0):
        raise Unknown  # they cut towards zero, which is the floor of what is not negative alone
    low, high = a.low // b.low, a.high // b.low
    if isinstance(expression, (tirx.FloorDiv, tirx.Div)):
        return Interval(low, high)
    same = low == high  # no multiple of the divisor in between
    return Interval(np.where(same, a.low % b.low, 0), np.where(same, a.high % b.low, b.low - 1))


_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)


def truth(condition: Any, values: Mapping[int, Interval]) -> Any:
    """1 where the condition holds for all values, 0 where for none, -1 where that is not known.  Raises Unknown."""
    if isinstance(condition, tirx.IntImm):
        return np.int64(bool(condition.value))
    if isinstance(condition, tirx.Not):
        inner = truth(condition.a, values)
        return np.where(inner < 0, inner, 1 - inner)
    if isinstance(condition, (tirx.And, tirx.Or)):
        a, b = truth(condition.a, values), truth(condition.b, values)
        deciding = 0 if isinstance(condition, tirx.And) else 1
        settled = (a == deciding) | (b == deciding)
        return np.where(settled, deciding, np.where((a < 0) | (b < 0), -1, 1 - deciding))
    if not isinstance(condition, (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)):
        raise Unknown
    a, b = interval(condition.a, values), interval(condition.b, values)
    if isinstance(condition, (tirx.GT, tirx.GE)):
        a, b = b, a
    if isinstance(condition, (tirx.LT, tirx.GT)):
        return _three(a.high < b.low, a.low >= b.high)
    if isinstance(condition, (tirx.LE, tirx.GE)):
        return _three(a.high <= b.low, a.low > b.high)
    apart = (a.high < b.low) | (b.high < a.low)
    equal = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return _three(equal, apart) if isinstance(condition, tirx.EQ) else _three(apart, equal)


def _three(always: Any, never: Any) -> Any:
    return np.where(always, 1, np.where(never, 0, -1))


__all__ = ["Interval", "Unknown", "interval", "truth"]
