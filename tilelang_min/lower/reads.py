"""Reads of a nest that a thread would repeat: each distinct element is loaded once for the statement.

Before, of ``C[i, j] = A[i, j] + column[i]`` for two elements of a row::

    C[8 * t] = A[8 * t] + column[t]
    C[8 * t + 1] = A[8 * t + 1] + column[t]

After::

    x = column[t]
    C[8 * t] = A[8 * t] + x
    C[8 * t + 1] = A[8 * t + 1] + x

The vendors' compilers do the same where they can prove it; done here, what is simulated is what runs.  Tiles and tensors that the
nest itself writes are left alone, but for an element that an assignment reads right where an earlier one wrote it: it gets the
value that was written.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.ir.expressions import index, loads
from tilelang_min.ir.nodes import Expr
from tilelang_min.ir.vectors import Nest
from tilelang_min.lower.context import Context

Key = tuple[str, int, int, int]
"""Buffer, hashes of the element and of its guard, elements."""


class Reads:
    """What is known of the reads of one nest.

    First every read is planned (:meth:`plan`), then, in the same order, asked for: single elements by :meth:`scalar`, which keeps
    in a register only what comes up more than once; vectors, which are in registers anyhow, are looked up and entered in ``held``.
    """

    def __init__(self, context: Context, nest: Nest) -> None:
        self.context, self.nest = context, nest
        self.candidates = _candidates(nest)
        self.forwarded = _forwarded(nest)
        self.times: Counter[Key] = Counter()
        self.held: dict[Key, Any] = {}
        self.places: dict[tuple[int, int], tuple[Expr, Any, Key]] = {}

    def plan(self, number: int, register: int, element: Expr, guard: Any, width: int) -> None:
        """Say that access ``number`` of the nest reads ``width`` elements from ``element`` on for register ``register``."""
        key = (self.nest.accesses[number].buffer.name, _hash(element), _hash(guard), width)
        self.times[key] += 1
        self.places[number, register] = (element, guard, key)

    def scalar(self, number: int, register: int) -> Any:
        """The value of one planned element."""
        element, guard, key = self.places[number, register]
        buffer = self.nest.accesses[number].buffer
        value = self.context.storage[buffer.name][index(element)]
        if guard is not None:
            value = tirx.if_then_else(guard, value, tirx.const(0, buffer.tvm_dtype))
        if self.times[key] < 2:
            return value
        if key not in self.held:
            self.held[key] = tirx.Var(self.context.fresh(f"{buffer.name}_at"), buffer.tvm_dtype)
            self.context.emit(tirx.Bind(self.held[key], value))
        return self.held[key]


def _hash(value: Any) -> int:
    return int(tvm_ffi.structural_hash(value)) if isinstance(value, ir.Expr) else hash(value)


def _candidates(nest: Nest) -> frozenset[int]:
    """Accesses that may be shared: unconditional reads of memory that the nest does not write, at places that are no data."""
    written = {access.buffer.name for access in nest.accesses if access.writes}
    found, number = set(), 0
    for assign in nest.body:
        values = (assign.value, *assign.indices)
        count = sum(len(loads(item)) for item in values)
        if not any(_conditional(item) for item in values):
            for place in range(number, number + count):
                access = nest.accesses[place]
                if (
                    access.buffer.scope in ("global", "shared")
                    and access.buffer.name not in written
                    and not any(loads(item) for item in access.indices)
                ):
                    found.add(place)
        number += count + 1
    return frozenset(found)


def _conditional(value: Any) -> bool:
    """Whether an expression reads memory under a condition."""
    found: list[bool] = []

    def call(node: Any) -> None:
        if str(getattr(node.op, "name", "")).endswith(".if_then_else") and any(loads(arm) for arm in node.args[1:]):
            found.append(True)

    if isinstance(value, ir.Expr):
        tvm_ffi.structural_walk(value, (ir.Call, call))
    return bool(found)


def _forwarded(nest: Nest) -> dict[int, int]:
    """Reads, by access number, of the very element that an earlier assignment wrote, and the number of that access."""
    found: dict[int, int] = {}
    last: dict[str, int] = {}
    for number, access in enumerate(nest.accesses):
        name = access.buffer.name
        if access.writes:
            last.pop(name, None)
            if access.buffer.scope in ("global", "shared") and not access.atomic:
                last[name] = number
        elif name in last and _same(access.indices, nest.accesses[last[name]].indices):
            found[number] = last[name]
    return found


def _same(first: tuple[Expr, ...], second: tuple[Expr, ...]) -> bool:
    if any(loads(item) for item in (*first, *second)):
        return False
    return all(tvm_ffi.structural_equal(index(a), index(b)) for a, b in zip(first, second, strict=True))


__all__ = ["Reads"]
