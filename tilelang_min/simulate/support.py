"""Small functions that translated programs call at run time.

A condition is ``True`` (all lanes), ``False`` (no lane) or a boolean array; keeping the first two apart from arrays is
what lets a program without divergence run without masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_min.simulate import narrow

Condition = Any
"""``bool`` or a boolean array over lanes."""


def decide(condition: Condition) -> Condition:
    """The condition with arrays that are all true or all false replaced by ``True`` or ``False``."""
    if condition is True or condition is False:
        return condition
    if condition.all():
        return True
    if not condition.any():
        return False
    return condition


def less(base: Any, low: int, high: int, offset: int) -> Condition:
    """``base + offset < 0``, by the bounds of ``base`` where they decide."""
    if high + offset < 0:
        return True
    if low + offset >= 0:
        return False
    return base < -offset


def equal(base: Any, low: int, high: int, offset: int) -> Condition:
    """``base + offset == 0``, by the bounds of ``base`` where they decide."""
    if high + offset < 0 or low + offset > 0:
        return False
    return True if low == high else base == -offset


def both(a: Condition, b: Condition) -> Condition:
    """Logical and."""
    if a is True:
        return b
    if a is False or b is False:
        return False
    return a if b is True else a & b


def either(a: Condition, b: Condition) -> Condition:
    """Logical or."""
    if a is False:
        return b
    if a is True or b is True:
        return True
    return a if b is False else a | b


def negate(a: Condition) -> Condition:
    """Logical not."""
    return not a if a is True or a is False else ~a


def select(condition: Condition, a: Any, b: Any) -> Any:
    """``a`` where the condition holds, else ``b``."""
    if condition is True:
        return a
    if condition is False:
        return b
    return np.where(condition, a, b)


def cast(value: Any, dtype: Any) -> Any:
    """Conversion as the hardware does it: to nearest even for floats, toward zero for floats to integers."""
    return np.asarray(value).astype(dtype)


def truncated_division(a: Any, b: Any) -> Any:
    """C's ``/`` on integers."""
    quotient = abs(a) // abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def truncated_remainder(a: Any, b: Any) -> Any:
    """C's ``%`` on integers."""
    remainder = abs(a) % abs(b)
    return np.where(a < 0, -remainder, remainder)


def reinterpret(value: Any, dtype: Any, lanes: int) -> Any:
    """The bits of ``(old lanes, threads)`` as ``(lanes, threads)`` of another type."""
    array = np.atleast_2d(np.asarray(value))
    words = np.ascontiguousarray(array.T).view(dtype)
    return words.reshape(-1) if lanes == 1 else words.T


def dot(a: Any, b: Any, lanes: int) -> Any:
    """Products of neighbouring narrow integers, (lanes * n, threads) each, added up to (lanes, threads) of int32.

    An operand that is the same in all lanes may be given for one of them.
    """
    left, right = (np.asarray(x).astype(np.int32) for x in (a, b))
    words = max(len(left), len(right))
    left, right = (np.tile(x, (words // len(x), 1)) for x in (left, right))
    return (left * right).reshape(lanes, -1, left.shape[-1]).sum(axis=1, dtype=np.int32)


def bounds(base: Any) -> tuple[int, int]:
    """Least and greatest value of a lane array."""
    return int(base.min()), int(base.max())


NAMESPACE: dict[str, Any] = {
    "decide": decide,
    "less": less,
    "equal": equal,
    "both": both,
    "either": either,
    "negate": negate,
    "select": select,
    "cast": cast,
    "truncated_division": truncated_division,
    "truncated_remainder": truncated_remainder,
    "reinterpret": reinterpret,
    "dot": dot,
    "bounds": bounds,
    "np": np,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "copyto": np.copyto,
    **narrow.NAMESPACE,
}
"""Names that translated source may use, beside those it defines."""
