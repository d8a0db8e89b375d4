"""Iterations of a loop that behave alike, so that a few stand for all: what counting costs then does not grow with the loop.

Of a loop outside of all others, iterations i and i + p are alike where

* every access to global memory moves by a multiple of the period in which costs repeat (``addresses.py``) from one to the other,
* every access to shared memory is to the very same element (so that races are the same too, and stages of a pipeline meet),
* every condition and inner bound that names i is true for the same threads, in the block that is looked at,

and nothing in the loop depends on data.  The first two are proved on the expressions; conditions are looked at iteration by
iteration.  A run of p iterations in the middle then counts for all such runs, and iteration goes on behind them: by a multiple of p
later, where stages of tiles stand as they would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.analysis.addresses import Place, accesses_in
from tilelang_min.analysis.intervals import Interval, Unknown, interval, truth
from tilelang_min.analysis.points import NotCountable, evaluate, handle_of, parts_of, variables_of
from tilelang_min.ir.expressions import as_int, index, loads, substitute, uses
from tilelang_min.program import ThreadProgram

LONGEST = 16
"""Longest period that is looked for."""
LEAST = 4
"""Periods that a loop must have in it before skipping pays."""
_POINTS = 1 << 20

Repeat = tuple[int, int, int]
"""First iteration, period, and how many periods the one that begins there stands for."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A loop, with what may tell its iterations apart; None where they depend on data."""

    node: Any
    places: tuple[Place, ...]
    conditions: tuple[Any, ...]
    bounds: tuple[Any, ...]
    ranges: dict[int, tuple[int, int]]
    period: int


class Iterations:
    """The loops of a program whose iterations repeat."""

    def __init__(self, program: ThreadProgram) -> None:
        self.program = program
        self.blocks: dict[int, int] = {}
        self.threads: dict[int, tuple[int, int]] = {}
        loops: list[Any] = []
        if program.target.kind != "cpu":
            loops = list(self._loops(program.function.body))
        self.candidates = [found for found in map(self._candidate, loops) if found is not None]

    def repeats(self, block: tuple[int, int, int]) -> dict[int, Repeat]:
        """For one block, by handle of the loop variable."""
        found = {}
        for candidate in self.candidates:
            repeat = self._repeat(candidate, block)
            if repeat is not None:
                found[handle_of(candidate.node.loop_var)] = repeat
        return found

    def _loops(self, node: Any) -> Iterator[Any]:
        """Serial loops in no other loop; launch dimensions are noted on the way."""
        if isinstance(node, tirx.SeqStmt):
            for item in node.seq:
                yield from self._loops(item)
        elif isinstance(node, tirx.AttrStmt):
            if str(node.attr_key) == "thread_extent":
                tag, handle = str(node.node.thread_tag), handle_of(node.node.var)
                if tag.startswith("blockIdx."):
                    self.blocks[handle] = "xyz".index(tag[-1])
                else:
                    self.threads[handle] = (0, int(node.value.value) - 1)
            yield from self._loops(node.body)
        elif isinstance(node, tirx.IfThenElse):
            for body in (node.then_case, node.else_case):
                if body is not None:
                    yield from self._loops(body)
        elif isinstance(node, tirx.For) and int(node.kind) != int(tirx.ForKind.UNROLLED):
            yield node

    def _candidate(self, node: Any) -> _Candidate | None:
        ranges = dict(self.threads)
        conditions: list[Any] = []
        inner: list[Any] = []
        named: list[Any] = []

        def call(each: Any) -> None:
            if str(getattr(each.op, "name", "")).endswith(".if_then_else"):
                conditions.append(each.args[0])

        tvm_ffi.structural_walk(
            node.body,
            [
                (tirx.For, inner.append),
                (tirx.While, named.append),
                (tirx.IfThenElse, lambda each: conditions.append(each.condition)),
                (tirx.Select, lambda each: conditions.append(each.condition)),
                (tirx.Bind, lambda each: named.append(each) if uses(each.value, node.loop_var) else None),
                (ir.Call, call),
            ],
        )
        places, bounds, data = accesses_in(self.program, node.body)
        if named and not all(isinstance(each, tirx.Bind) and loads(each.value) for each in named):
            return None  # a name may stand in an index for what it was made of
        if data or bounds or (as_int(node.extent) or 1 << 30) < LEAST:
            return None
        for loop in reversed(inner):
            first, extent = as_int(loop.min), as_int(loop.extent)
            if first is None or extent is None:
                return None
            ranges[handle_of(loop.loop_var)] = (first, first + max(1, extent) - 1)
        parts = [part for condition in conditions for part in parts_of(condition) if uses(part, node.loop_var)]
        if any(loads(part) for part in parts):
            return None
        moving = tuple(place for place in places if uses(place.index, node.loop_var))
        period = self._period(node.loop_var, moving, ranges)
        if period is None:
            return None
        return _Candidate(node, moving, tuple(parts), (), ranges, period)

    def _period(self, variable: Any, places: tuple[Place, ...], ranges: dict[int, tuple[int, int]]) -> int | None:
        """The least number of iterations after which every place costs the same."""
        analyzer = Analyzer()
        found: list[Any] = []
        for place in places:
            tvm_ffi.structural_walk(place.index, (tirx.Var, found.append))
        for handle, variable_ in {handle_of(each): each for each in found}.items():
            if handle in ranges:
                low, high = ranges[handle]
                analyzer.bind(variable_, ir.Range(low, high + 1))
            elif handle in self.blocks:
                analyzer.bind(variable_, ir.Range(0, self.program.grid[self.blocks[handle]]))
        for period in range(1, LONGEST + 1):
            if all(self._repeats(place, variable, period, analyzer) for place in places):
                return period
        return None

    @staticmethod
    def _repeats(place: Place, variable: Any, period: int, analyzer: Any) -> bool:
        moved = substitute(place.index, [(variable, variable + period)])
        difference = as_int(analyzer.simplify(index(moved - place.index)))
        if difference is None:
            return False
        return difference == 0 if place.shared else difference % place.period == 0

    def _repeat(self, candidate: _Candidate, block: tuple[int, int, int]) -> Repeat | None:
        node = candidate.node
        known = {handle: Interval(np.int64(block[axis]), np.int64(block[axis])) for handle, axis in self.blocks.items()}
        try:
            first, extent = (interval(each, known) for each in (node.min, node.extent))
        except Unknown:
            return None
        if first.low != first.high or extent.low != extent.high:
            return None
        start, count, period = int(first.low), int(extent.low), candidate.period
        if count < (LEAST + 1) * period:
            return None
        labels = np.zeros(count, np.int64)
        for condition in candidate.conditions:
            found = self._labels(condition, candidate, known, start, count)
            if found is None:
                return None
            labels = np.unique(labels * (int(found.max(initial=0)) + 1) + found, return_inverse=True)[1]
        alike = np.concatenate([[False], labels[period:] == labels[:-period], [False]])
        edges = np.flatnonzero(alike[1:] != alike[:-1])
        runs = edges.reshape(-1, 2)
        if not len(runs):
            return None
        begin, end = max(runs.tolist(), key=lambda run: run[1] - run[0])
        times = (end + period - begin) // period - 1  # of the first period each iteration runs by itself
        if times < 2:
            return None
        return start + begin + period, period, times

    def _labels(self, condition: Any, candidate: _Candidate, known: dict[int, Interval], start: int, count: int) -> Any:
        """A number for each iteration, equal where the condition is true for the same threads and inner iterations."""
        iterations = np.arange(start, start + count)
        variable = handle_of(candidate.node.loop_var)
        values = dict(known) | {
            handle: Interval(np.int64(a), np.int64(b)) for handle, (a, b) in candidate.ranges.items()
        }
        values[variable] = Interval(iterations, iterations)
        try:
            decided = np.broadcast_to(np.asarray(truth(condition, values)), (count,))
        except Unknown:
            return None
        labels = np.where(decided < 0, 0, decided + 1)
        open_ = np.flatnonzero(decided < 0)
        if not len(open_):
            return labels
        others = [handle for handle in variables_of(condition) if handle in candidate.ranges]
        extents = [candidate.ranges[handle][1] - candidate.ranges[handle][0] + 1 for handle in others]
        size = int(np.prod(extents, dtype=np.int64)) if others else 1
        if size * len(open_) > _POINTS:
            return None
        points = np.indices(extents).reshape(len(extents), -1) if others else np.zeros((0, 1), np.int64)
        at: dict[int, Any] = {handle: value.low for handle, value in known.items()}
        at |= {h: (points[number] + candidate.ranges[h][0])[None, :] for number, h in enumerate(others)}
        at[variable] = iterations[open_][:, None]
        try:
            table = np.broadcast_to(np.asarray(evaluate(condition, at)), (len(open_), points.shape[1]))
        except NotCountable:
            return None
        labels = labels.copy()
        labels[open_] = 3 + np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
        return labels


__all__ = ["Iterations", "Repeat"]
