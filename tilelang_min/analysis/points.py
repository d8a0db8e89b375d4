"""How many points of a box of integers satisfy conditions: exact counting of what ragged tiles and branches leave out.

Conditions are TVM expressions.  Those that share no variable are counted apart and multiplied, so that the extents of a
matrix product meet one another never: each group is counted with NumPy (:mod:`tilelang_min.program.counting`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, tirx

from tilelang_min.program.counting import MOST_POINTS, count_where


class NotCountable(Exception):
    """A condition holds something that has no value here (an element of a tensor, a call)."""


def count_points(variables: Mapping[Any, tuple[int, int]], conditions: Sequence[Any]) -> int:
    """Points of the box ``variables`` (variable -> first value, number of values) at which all conditions hold.

    A condition that cannot be counted (it reads a tensor, or too many points would meet) is taken to hold everywhere.
    """
    known = {handle_of(variable): (variable, first, extent) for variable, (first, extent) in variables.items()}
    total = 1
    free = dict(known)
    for names, group in _groups(known, [part for condition in conditions for part in parts_of(condition)]):
        for name in names:
            free.pop(name, None)
        total *= _count_group([known[name] for name in sorted(names)], group)
    for _, _, extent in free.values():
        total *= extent
    return total


def parts_of(condition: Any) -> list[Any]:
    """The conditions that an ``and`` joins."""
    if isinstance(condition, tirx.And):
        return [*parts_of(condition.a), *parts_of(condition.b)]
    return [condition]


def _groups(known: Mapping[int, Any], conditions: list[Any]) -> list[tuple[frozenset[int], list[Any]]]:
    """Conditions in groups that share no variable, with the variables of each."""
    groups: list[tuple[frozenset[int], list[Any]]] = []
    for condition in conditions:
        names = frozenset(set(variables_of(condition)) & set(known))
        members = [condition]
        rest = []
        for other_names, others in groups:
            if other_names & names:
                names |= other_names
                members += others
            else:
                rest.append((other_names, others))
        groups = [*rest, (names, members)]
    return groups


def handle_of(variable: Any) -> int:
    """The number that stands for a variable wherever values are given by variable."""
    return int(variable.__chandle__())


def variables_of(expression: Any) -> list[int]:
    """The variables that an expression names (:func:`handle_of`), each once."""
    found: list[int] = []
    if isinstance(expression, ir.Expr):
        tvm_ffi.structural_walk(expression, (tirx.Var, lambda variable: found.append(handle_of(variable))))
    return list(dict.fromkeys(found))


def terms_of(expression: Any, handles: Collection[int]) -> list[Any]:
    """The largest parts of an expression that name these variables alone: it depends on them through nothing else."""
    named = variables_of(expression)
    if not any(handle in handles for handle in named):
        return []
    if all(handle in handles for handle in named):
        return [expression]
    if type(expression) in _BINARY:
        return [*terms_of(expression.a, handles), *terms_of(expression.b, handles)]
    if isinstance(expression, tirx.Not):
        return terms_of(expression.a, handles)
    found: list[Any] = []
    tvm_ffi.structural_walk(expression, (tirx.Var, found.append))
    return [variable for variable in found if handle_of(variable) in handles]


def distinct(expression: Any, values: Mapping[int, Any], count: int) -> tuple[Any, Any]:
    """Of ``count`` points those that tell an expression apart, and for every point which of those is like it.

    ``values`` by variable handle are arrays of ``count``.
    """
    columns = []
    for term in terms_of(expression, values):
        try:
            columns.append(np.broadcast_to(np.asarray(evaluate(term, values), np.int64), (count,)))
        except NotCountable:
            columns += [np.broadcast_to(values[handle], (count,)) for handle in variables_of(term)]
    if not columns:
        return np.zeros(min(count, 1), np.int64), np.zeros(count, np.int64)
    if len(columns) == 1:
        _, first, which = np.unique(columns[0], return_index=True, return_inverse=True)
        return first, which.reshape(-1)
    which = np.zeros(count, np.int64)
    for column in columns:
        number = np.unique(column, return_inverse=True)[1].reshape(-1)
        which = np.unique(which * (int(number.max(initial=0)) + 1) + number, return_inverse=True)[1].reshape(-1)
    return np.unique(which, return_index=True)[1], which


def row_numbers(table: Any) -> Any:
    """A number for each row of a table, equal where rows are."""
    rows = np.packbits(table, axis=1) if table.dtype == bool else np.ascontiguousarray(table)
    if not rows.shape[1]:
        return np.zeros(len(rows), np.int64)
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)
    return np.unique(whole, return_inverse=True)[1].reshape(-1)


def _count_group(variables: list[tuple[Any, int, int]], conditions: list[Any]) -> int:
    extents = {handle_of(variable): extent for variable, _, extent in variables}
    if 0 in extents.values():
        return 0
    values: dict[int, Any] = {}
    for axis, (variable, first, extent) in enumerate(variables):
        shape = [1] * len(variables)
        shape[axis] = extent
        values[handle_of(variable)] = np.arange(first, first + extent).reshape(shape)
    tables = []
    for condition in conditions:
        if prod(extents.get(handle, 1) for handle in variables_of(condition)) > MOST_POINTS:
            continue
        try:
            tables.append(np.asarray(evaluate(condition, values), bool))
        except NotCountable:
            continue
    return count_where(list(extents.values()), tables)


_BINARY: dict[Any, Any] = {
    tirx.Add: np.add,
    tirx.Sub: np.subtract,
    tirx.Mul: np.multiply,
    tirx.FloorDiv: np.floor_divide,
    tirx.FloorMod: np.mod,
    tirx.Div: lambda a, b: np.trunc(np.divide(a, b)).astype(np.int64),
    tirx.Mod: np.fmod,
    tirx.Min: np.minimum,
    tirx.Max: np.maximum,
    tirx.EQ: np.equal,
    tirx.NE: np.not_equal,
    tirx.LT: np.less,
    tirx.LE: np.less_equal,
    tirx.GT: np.greater,
    tirx.GE: np.greater_equal,
    tirx.And: np.logical_and,
    tirx.Or: np.logical_or,
}


def evaluate(expression: Any, values: Mapping[int, Any]) -> Any:
    """Value of an integer expression for arrays of values by variable handle.  Raises NotCountable."""
    if isinstance(expression, (bool, int)):
        return expression
    if isinstance(expression, tirx.IntImm):
        return int(expression.value)
    if isinstance(expression, tirx.Var):
        handle = handle_of(expression)
        if handle in values:
            return values[handle]
        raise NotCountable
    function = _BINARY.get(type(expression))
    if function is not None:
        return function(evaluate(expression.a, values), evaluate(expression.b, values))
    if isinstance(expression, tirx.Not):
        return np.logical_not(evaluate(expression.a, values))
    raise NotCountable


__all__ = [
    "NotCountable",
    "count_points",
    "distinct",
    "evaluate",
    "handle_of",
    "parts_of",
    "row_numbers",
    "terms_of",
    "variables_of",
]
