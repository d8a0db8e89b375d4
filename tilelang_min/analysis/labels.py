"""Numbers that are equal where a program does alike: of blocks, of iterations, of tiles that a block takes in turn.

What is counted depends on where conditions hold, on how often loops run, and on where accesses lie modulo the period in which
their costs repeat.  Each such :class:`Fact` is looked at for many values of some variables at once; all others range freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import sym, tirx

from tilelang_min.analysis.intervals import Interval, Unknown, interval, truth
from tilelang_min.analysis.points import NotCountable, distinct, evaluate, handle_of, row_numbers, variables_of

POINTS = 1 << 20
"""Most points of a table of values; where there are more, every value of the variables is held to be different."""


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Something that decides what is counted.

    ``kind``: the ``truth`` of a condition, a ``number`` (of iterations, of elements of a box), a ``place`` modulo ``period``, or
    a place or operand that has to be the ``same`` and is not looked at here.
    """

    kind: str
    expression: Any
    period: int = 0


def label(facts: Iterable[Fact], values: Mapping[int, Any], ranges: Mapping[int, Interval], count: int) -> Any:
    """A number for each of ``count`` points, equal where all facts are.

    ``values`` by variable handle are arrays of ``count`` (or one number for all points); ``ranges`` are those of other variables.
    """
    labels = np.zeros(count, np.int64)
    for fact in facts:
        if fact.kind == "same":
            continue
        names = [h for h in variables_of(fact.expression) if h in values and np.ndim(values[h])]
        if not names:
            continue
        first, which = distinct(fact.expression, {handle: values[handle] for handle in names}, count)
        known = {h: value for h, value in values.items() if not np.ndim(value)}
        known |= {handle: values[handle][first] for handle in names}
        found = _label_rows(fact, known, ranges, names, len(first))[which]
        labels = np.unique(labels * (int(found.max(initial=0)) + 1) + found, return_inverse=True)[1].reshape(-1)
    return labels


def named_in(expression: Any) -> dict[int, Any]:
    """The variables of an expression by handle."""
    found: list[Any] = []
    tvm_ffi.structural_walk(expression, (tirx.Var, found.append))
    return {handle_of(each): each for each in found}


def _label_rows(
    fact: Fact, known: Mapping[int, Any], ranges: Mapping[int, Interval], names: list[int], rows: int
) -> Any:
    """A number for each row of values."""
    if fact.kind == "place":
        found = _remainders(fact, known, names)
        if found is not None:
            return np.broadcast_to(found, (rows,))
        expression = tirx.FloorMod(fact.expression, tirx.IntImm(str(fact.expression.ty.dtype), fact.period))
        return _table(expression, known, ranges, np.arange(rows), rows)
    intervals = {h: Interval(np.asarray(v, np.int64), np.asarray(v, np.int64)) for h, v in known.items()}
    try:
        if fact.kind == "truth":
            decided = np.broadcast_to(np.asarray(truth(fact.expression, {**ranges, **intervals})), (rows,))
            open_, labels = decided < 0, np.where(decided < 0, 0, decided)
        else:
            value = interval(fact.expression, {**ranges, **intervals})
            low, high = np.broadcast_to(value.low, (rows,)), np.broadcast_to(value.high, (rows,))
            open_, labels = low != high, np.where(low == high, low - low.min(), 0)
    except Unknown:
        open_, labels = np.ones(rows, bool), np.zeros(rows, np.int64)
    if open_.any():
        labels = labels.copy()
        undecided = np.flatnonzero(open_)
        labels[open_] = labels.max() + 1 + _table(fact.expression, known, ranges, undecided, rows)
    return labels


def _remainders(fact: Fact, known: Mapping[int, Any], names: list[int]) -> Any:
    """How far the rows move a place, modulo its period; None where that is not linear."""
    found = named_in(fact.expression)
    factors = list(sym.detect_linear_equation(fact.expression, [found[handle] for handle in names]))[:-1]
    if len(factors) != len(names) or not all(isinstance(factor, tirx.IntImm) for factor in factors):
        return None
    moved: Any = np.int64(0)
    for handle, factor in zip(names, factors, strict=True):
        moved = (moved + int(factor.value) % fact.period * known[handle]) % fact.period
    return moved


def _table(expression: Any, known: Mapping[int, Any], ranges: Mapping[int, Interval], chosen: Any, rows: int) -> Any:
    """A number for each chosen row: equal where the expression has the same values for all values of other variables."""
    others = [handle for handle in variables_of(expression) if handle not in known]
    if any(handle not in ranges for handle in others):
        return np.arange(len(chosen))
    extents = [int(ranges[handle].high - ranges[handle].low) + 1 for handle in others]
    if np.prod([float(extent) for extent in extents]) * len(chosen) > POINTS:
        return np.arange(len(chosen))
    points = np.indices(extents).reshape(len(extents), -1) if others else np.zeros((0, 1), np.int64)
    values: dict[int, Any] = {h: (points[n] + int(ranges[h].low))[None, :] for n, h in enumerate(others)}
    for handle, value in known.items():
        values[handle] = np.broadcast_to(value, (rows,))[chosen][:, None]
    try:
        table = np.broadcast_to(np.asarray(evaluate(expression, values)), (len(chosen), points.shape[1]))
    except NotCountable:
        return np.arange(len(chosen))
    return row_numbers(table)


__all__ = ["Fact", "label", "named_in"]
