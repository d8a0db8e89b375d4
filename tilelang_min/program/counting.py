"""How many points of a box of integers satisfy conditions, each of which names some of the box's variables.

The variables are summed over one after another (variable elimination): the points of the whole box, billions for the causal mask of
a long sequence, are never looked at one by one, only those of the variables that conditions bring together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

MOST_POINTS = 1 << 22
"""Points of variables that meet in conditions which are looked at one by one; where there would be more, conditions are left
out."""


def count_where(extents: Sequence[int], tables: Sequence[Any]) -> int:
    """Points of the box at which all conditions hold.

    A table is whether a condition holds: an array of as many axes, of length 1 along variables that it does not name.  Where too
    many points would meet (:data:`MOST_POINTS`) the condition of the most points is taken to hold everywhere.
    """
    import numpy as np

    shape = (1,) * len(extents)
    kept = [np.asarray(table, bool).astype(np.int64) for table in tables]
    kept = sorted((table.reshape(shape) if table.ndim == 0 else table for table in kept), key=lambda table: table.size)
    while (found := _count(extents, kept)) is None:
        kept.pop()
    return found


def _count(extents: Sequence[int], factors: Sequence[Any]) -> int | None:
    """The sum over the box of the product of all factors; None where too many points would meet."""
    total, left = 1, set(range(len(extents)))
    while left:
        axis, size = min(((axis, _met(factors, axis)) for axis in left), key=lambda found: found[1])
        if size > MOST_POINTS:
            return None
        left.discard(axis)
        meeting = [factor for factor in factors if factor.shape[axis] > 1]
        if not meeting:
            total *= extents[axis]
            continue
        joined = reduce(lambda one, other: one * other, meeting).sum(axis=axis, keepdims=True)
        factors = [*(factor for factor in factors if factor.shape[axis] == 1), joined]
    return total * prod(int(factor.item()) for factor in factors)


def _met(factors: Sequence[Any], axis: int) -> int:
    """Points of the product of all factors that name a variable."""
    meeting = [factor.shape for factor in factors if factor.shape[axis] > 1]
    return prod(max(lengths) for lengths in zip(*meeting, strict=True))


__all__ = ["MOST_POINTS", "count_where"]
