"""Nests with conditions that hold in few tiles: a version without them for all others.

Before (causal attention, tile ``k`` of keys)::

    for i, j: S[i, j] = if_then_else(k * 64 + j > row + i, -inf, 0)

After::

    if k * 64 + 63 > row:                # it may hold for some element
        for i, j: S[i, j] = if_then_else(k * 64 + j > row + i, -inf, 0)
    else:
        for i, j: S[i, j] = 0

The condition in front is the same for all threads of a block.  It is that of the element for which the difference of the two
sides is greatest, which is at a corner of the nest where the difference is linear in its variables.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.ir.expressions import as_int, index, loads, simplify, substitute, uses
from tilelang_min.ir.nodes import Parallel
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.context import Context

_COMPARISONS = {"GT": (1, tirx.GT), "GE": (1, tirx.GE), "LT": (-1, tirx.GT), "LE": (-1, tirx.GE)}
"""Sign of the difference left - right, and how it compares with 0 where the condition holds."""


def versions(context: Context, layouts: Layouts, nest: Parallel) -> tuple[Any, Parallel] | None:
    """A condition of the block without which no condition of the nest holds, and the nest for then; None where there is no such."""
    if any(assign.buffer.scope != "fragment" for assign in nest.body):
        return None
    conditions: list[Any] = []
    for assign in nest.body:
        tvm_ffi.structural_walk(assign.value, (ir.Call, lambda call: _note(call, conditions)))
    conditions = [item for item in conditions if any(uses(item, variable) for variable in nest.variables)]
    if not conditions:
        return None
    possible: Any = None
    for condition in conditions:
        some = None if loads(condition) else _possible(nest, condition)
        if some is None:
            return None
        possible = some if possible is None else tirx.Or(possible, some)
    possible = index(context.simplify(possible))
    if as_int(possible) is not None or context.proves(possible):
        return None

    def decided(call: Any) -> Any:
        if str(getattr(call.op, "name", "")).endswith(".if_then_else") and any(
            call.args[0].same_as(c) for c in conditions
        ):
            return call.args[2]
        return call

    body = tuple(
        dataclasses.replace(assign, value=tvm_ffi.structural_map(assign.value, (ir.Call, decided)))
        for assign in nest.body
    )
    plain = dataclasses.replace(nest, body=body)
    layouts.nests[id(plain)] = layouts.nests[id(nest)]
    for (number, name), registers in list(layouts.registers.items()):
        if number == id(nest):
            layouts.registers[id(plain), name] = registers
    layouts.hopper.plain.append(plain)
    return possible, plain


def _note(call: Any, conditions: list[Any]) -> None:
    if str(getattr(call.op, "name", "")).endswith(".if_then_else"):
        conditions.append(call.args[0])


def _possible(nest: Parallel, condition: Any) -> Any:
    """A condition without the nest's variables that holds wherever ``condition`` does for some of their values; None: unknown."""
    kind = type(condition).__name__
    if not any(uses(condition, variable) for variable in nest.variables):
        return condition
    if kind in ("Or", "And"):
        sides = [_possible(nest, side) for side in (condition.a, condition.b)]
        if any(side is None for side in sides):
            return None
        return getattr(tirx, kind)(*sides)
    if kind not in _COMPARISONS:
        return None
    sign, compare = _COMPARISONS[kind]
    difference = condition.a - condition.b if sign > 0 else condition.b - condition.a
    for variable, extent in zip(nest.variables, nest.extents, strict=True):
        step = as_int(simplify(substitute(difference, [(variable, variable + 1)]) - difference))
        if step is None:
            return None
        difference = substitute(difference, [(variable, extent - 1 if step > 0 else 0)])
    return compare(index(simplify(difference)), index(0))


__all__ = ["versions"]
