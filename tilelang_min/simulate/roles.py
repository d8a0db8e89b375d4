"""Which threads of a block run together, where the roles of a kernel wait for one another.

A kernel with mbarriers or warp group products cannot run all its threads in step: a producer is ahead of its consumers.  Its
threads run as *strands*, which hand over where they wait.  A strand is a warp group, or those of its warps for which the same
conditions hold, of the conditions on the thread's number alone under which something waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelang_min.simulate.tree import Expression, KernelTree, Statement
from tilelang_min.targets.wgmma import GROUP_WARPS

CONCURRENT = (
    "tirx.ptx.mbarrier",
    "tirx.ptx.wgmma",
    "tirx.ptx.cp_async_bulk",
    "tirx.ptx.cp_reduce_async_bulk",
    "tirx.ptx.barrier",
    "tirx.ptx.bar_sync",
    "tirx.ptx.bar_arrive",
    "tirx.ptx.setmaxnreg",
    "tirx.ptx.mapa",
)
"""Beginnings of the names of calls that make a program one of strands."""

WAITS = (
    "tirx.tvm_storage_sync",
    "tirx.ptx.mbarrier_try_wait",
    "tirx.ptx.mbarrier_test_wait",
    "tirx.ptx.barrier",
    "tirx.ptx.bar_sync",
)
"""Beginnings of the names of calls at which a strand may have to wait."""

OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "div": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}


def is_concurrent(tree: KernelTree) -> bool:
    """Whether the threads of a block must run as strands."""
    return _calls(tree.body, CONCURRENT)


def strands_of(tree: KernelTree, threads: int, warp_size: int) -> list[Any]:
    """The thread numbers of each strand of a block, in order of their first threads."""
    numbers = np.arange(threads)
    environment: dict[int, Any] = {key: numbers for key, tag in tree.indices.items() if tag == "threadIdx.x"}
    conditions = list(_conditions(tree.body, np.ones(threads, bool), environment))
    strands: dict[tuple[Any, ...], list[Any]] = {}
    for first in range(0, threads, warp_size):
        warp = numbers[first : first + warp_size]
        truths = tuple((bool(c[warp].any()), bool(c[warp].all())) for c in conditions)
        strands.setdefault((first // (warp_size * GROUP_WARPS), *truths), []).append(warp)
    return [np.concatenate(warps) for warps in strands.values()]


def _calls(statement: Statement, names: tuple[str, ...]) -> bool:
    if statement.kind == "effect" and str(statement.args[0].value).startswith(names):
        return True
    return any(_calls(child, names) for child in statement.body if child is not None)


def _conditions(statement: Statement, holds: Any, environment: dict[int, Any]) -> Iterator[Any]:
    """Conditions on the thread alone, with those around them, of branches that wait."""
    if statement.kind == "let":
        value = _evaluate(statement.args[0], environment)
        if value is not None:
            environment[statement.var] = value
    if statement.kind != "if" or not _calls(statement, WAITS):
        for child in statement.body:
            if child is not None:
                yield from _conditions(child, holds, environment)
        return
    value = _evaluate(statement.args[0], environment)
    then, other = statement.body
    first = holds if value is None else holds & np.broadcast_to(value, holds.shape).astype(bool)
    second = holds if value is None else holds & ~np.broadcast_to(value, holds.shape).astype(bool)
    if value is not None:
        yield first
    for child, inside in ((then, first), (other, second)):
        if child is not None:
            yield from _conditions(child, inside, environment)


def _evaluate(e: Expression, environment: dict[int, Any]) -> Any:
    """The value for each thread, or None where it depends on more."""
    if e.kind == "const":
        return np.int64(e.value) if -(1 << 63) <= e.value < 1 << 63 else None  # a descriptor: no condition on threads
    if e.kind == "var":
        return environment.get(e.value)
    parts = [_evaluate(arg, environment) for arg in e.args]
    if any(part is None for part in parts):
        return None
    if e.kind == "not":
        return np.logical_not(parts[0])
    if e.kind == "cast" and "int" in e.dtype:
        return parts[0]
    operator = OPERATORS.get(e.kind)
    return None if operator is None else operator(*parts)
