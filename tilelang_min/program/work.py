"""Floating-point operations and least bytes of kernels with runtime dimensions: what the bundle keeps, and its value for sizes.

Operations are terms: so many of a type at each point of a box of integers at which conditions hold.  Everything is text in the
names of runtime dimensions and of the box's own variables, and is evaluated here with NumPy alone, without the compiler.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from typing import Any

from tilelang_min.errors import BundleError
from tilelang_min.program.counting import MOST_POINTS, count_where


@dataclass(frozen=True)
class WorkTerm:
    """``operations`` by type at each point of ``box`` at which all ``conditions`` hold.

    A variable of the box is (name, first value, number of values), the latter two in terms of sizes and of variables before it.
    """

    operations: dict[str, int]
    box: tuple[tuple[str, str, str], ...]
    conditions: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; :meth:`from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> WorkTerm:
        """What :meth:`to_json` wrote."""
        box = tuple((str(name), str(first), str(count)) for name, first, count in record["box"])
        return cls(record["operations"], box, tuple(record["conditions"]))


def flops_at(terms: Iterable[WorkTerm], sizes: Mapping[str, int]) -> dict[str, int]:
    """Operations a launch by type, for these runtime dimensions.  BundleError for text that is no such expression."""
    counts: Counter[str] = Counter()
    for term in terms:
        points = points_of(term, sizes)
        for dtype, number in term.operations.items():
            counts[dtype] += points * number
    return {dtype: count for dtype, count in sorted(counts.items()) if count}


def points_of(term: WorkTerm, sizes: Mapping[str, int]) -> int:
    """How often a term's operations are done."""
    ranges: dict[str, tuple[int, int]] = {}
    conditions = list(term.conditions)
    for name, first, count in term.box:
        if not {*_names(first), *_names(count)} & set(ranges):
            ranges[name] = int(_evaluate(first, sizes)), max(0, int(_evaluate(count, sizes)))
            continue
        end = f"({first}) + ({count})"
        low, high = _least_and_most(first, end, ranges, sizes)
        ranges[name] = low, max(0, high - low)
        conditions += [f"{name} >= {first}", f"{name} < {end}"]
    total = 1
    free = dict(ranges)
    for names, group in _groups(conditions, ranges):
        total *= _count({name: ranges[name] for name in names}, group, sizes)
        for name in names:
            free.pop(name, None)
    return total * prod(count for _, count in free.values())


def _least_and_most(
    first: str, end: str, ranges: Mapping[str, tuple[int, int]], sizes: Mapping[str, int]
) -> tuple[int, int]:
    """The least first value and the largest end of a range that depends on other variables."""
    import numpy as np

    used = {name: ranges[name] for name in ranges if name in {*_names(first), *_names(end)}}
    if any(count == 0 for _, count in used.values()):
        return 0, 0
    if prod(count for _, count in used.values()) > MOST_POINTS:  # then their first and last values have to do
        points = {name: [low, low + count - 1] for name, (low, count) in used.items()}
        grids = dict(zip(points, np.meshgrid(*points.values(), indexing="ij", sparse=True), strict=True))
    else:
        grids = _grids(used)
    values = {**sizes, **grids}
    return int(np.min(_evaluate(first, values))), int(np.max(_evaluate(end, values)))


def _groups(conditions: Sequence[str], variables: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Conditions in groups that share no variable, each with its variables."""
    known = set(variables)
    groups: list[tuple[set[str], list[str]]] = []
    for condition in conditions:
        names, members, rest = set(_names(condition)) & known, [condition], []
        for other, others in groups:
            if other & names:
                names, members = names | other, [*members, *others]
            else:
                rest.append((other, others))
        groups = [*rest, (names, members)]
    for names, members in groups:
        yield sorted(names), members


def _count(ranges: Mapping[str, tuple[int, int]], conditions: Sequence[str], sizes: Mapping[str, int]) -> int:
    """Points of a few variables at which conditions hold."""
    extents = {name: count for name, (_, count) in ranges.items()}
    if 0 in extents.values():
        return 0
    values = {**sizes, **_grids(ranges)}
    met = [condition for condition in conditions if prod(extents.get(n, 1) for n in _names(condition)) <= MOST_POINTS]
    return count_where(list(extents.values()), [_evaluate(condition, values) for condition in met])


def _grids(ranges: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """An axis of its own for the values of each variable."""
    import numpy as np

    grids = {}
    for axis, (name, (first, count)) in enumerate(ranges.items()):
        shape = [1] * len(ranges)
        shape[axis] = count
        grids[name] = np.arange(first, first + count, dtype=np.int64).reshape(shape)
    return grids


@cache
def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _damaged(text) from error


@cache
def _names(text: str) -> tuple[str, ...]:
    """Names in a text, functions aside."""
    tree = _tree(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return tuple(
        dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)
    )


def _evaluate(text: str, values: Mapping[str, Any]) -> Any:
    return _value(_tree(text), values, text)


_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.FloorDiv: "floor_divide", ast.Mod: "mod",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.And: "logical_and", ast.Or: "logical_or",
}  # fmt: skip
_FUNCTIONS = {"min": "minimum", "max": "maximum", "fmod": "fmod"}


def _value(node: ast.expr, values: Mapping[str, Any], text: str) -> Any:
    import numpy as np

    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    parts: list[ast.expr] = []
    name: str | None = None
    if isinstance(node, ast.BinOp):
        name, parts = _OPERATORS.get(type(node.op)), [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        name, parts = _OPERATORS.get(type(node.ops[0])), [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
        name, parts = _OPERATORS[type(node.op)], node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        name, parts = "logical_not", [node.operand]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        arguments = [_value(item, values, text) for item in node.args]
        if node.func.id == "div" and len(arguments) == 2:  # towards zero
            return np.trunc(np.divide(*arguments)).astype(np.int64)
        if node.func.id in _FUNCTIONS and len(arguments) == 2:
            return getattr(np, _FUNCTIONS[node.func.id])(*arguments)
    if name is None:
        raise _damaged(text)
    return getattr(np, name)(*(_value(item, values, text) for item in parts))


def _damaged(text: str) -> BundleError:
    return BundleError(f"{text!r} is no condition or extent", remedy="compile the kernel again")
