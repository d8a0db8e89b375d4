"""Classes of blocks that behave alike, so that one block stands for all of its class.

Blocks of one kernel execute the same statements; what they do differs only where a condition, or the bound of a loop, depends on
a block index.  For every such condition the blocks are told apart by its truth table over all threads and iterations: always
true and always false by interval arithmetic, the others (the ragged edges) by looking at every point.  What their accesses
cost differs besides by alignment: by what the block adds to each index, modulo the period in which costs repeat.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, sym, tirx

from tilelang_min.analysis.addresses import Place, accesses_of, holds_data
from tilelang_min.analysis.intervals import Interval, Unknown, interval, truth
from tilelang_min.analysis.points import (
    NotCountable,
    distinct,
    evaluate,
    handle_of,
    parts_of,
    row_numbers,
    variables_of,
)
from tilelang_min.ir.expressions import loads
from tilelang_min.program import ThreadProgram

_POINTS = 1 << 22
"""Most points of one truth table; larger ones are sampled."""
MOST = 256
"""Most classes that alignment may make."""


@dataclass(frozen=True, slots=True)
class BlockClass:
    """``count`` blocks that behave like ``representative`` (x, y, z)."""

    representative: tuple[int, int, int]
    count: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """All classes of a launch; ``sampled`` are operations whose blocks may differ within a class."""

    classes: tuple[BlockClass, ...]
    sampled: frozenset[int]


def block_classes(program: ThreadProgram) -> tuple[BlockClass, ...]:
    """The classes of :func:`classify`."""
    return classify(program).classes


def classify(program: ThreadProgram) -> Blocks:
    """All classes, in the order of their first blocks (x fastest); their counts add up to the grid.

    Tensors are taken to start at multiples of 256 bytes.  What depends on the values of tensors tells no blocks apart: those
    operations are ``sampled``, and so are those for which blocks would fall into more than :data:`MOST` classes by alignment.
    """
    parts = _Parts(program)
    labels: dict[tuple[int, ...], Any] = {}
    unknown = False
    for expression, counts in parts.decisive():
        found = _labels(expression, parts, counts)
        unknown = unknown or (found is None and not parts.holds_data(expression))
        _add(labels, found)
    sampled = set(parts.data)
    if unknown:  # something that cannot be evaluated tells blocks apart: each stands for itself, if they are few
        shape = parts.grid[::-1]
        few = int(np.prod(shape)) <= MOST
        _add(labels, np.arange(np.prod(shape)).reshape(shape) if few else None)
        sampled |= set() if few else {operation.id for operation in program.operations}
    coarse = dict(labels)
    placed = set()
    for place in parts.places:
        found, exact = _placed(place, parts)
        _add(labels, found)
        placed |= {place.operation} if found is not None else set()
        sampled |= set() if exact else {place.operation}
    classes = _classes(labels, program.grid, MOST)
    if classes is None:
        sampled |= placed
        classes = _classes(coarse, program.grid, None)
        assert classes is not None
    return Blocks(classes, frozenset(sampled))


def _add(labels: dict[tuple[int, ...], Any], found: Any) -> None:
    """Takes numbers of blocks (z, y, x) in; those along the same axes are joined at once."""
    if found is not None:
        known = labels.get(found.shape, np.zeros(1, np.int64))
        labels[found.shape] = _joined(known, found)


def _classes(
    labels: dict[tuple[int, ...], Any], grid: tuple[int, int, int], most: int | None
) -> tuple[BlockClass, ...] | None:
    """Classes of blocks with equal numbers, None where there are more than ``most``."""
    gx, gy, gz = grid
    if all(sum(extent > 1 for extent in shape) <= 1 for shape in labels):
        # Each condition names one axis: the grid itself need not be looked at.
        axes = [np.zeros(extent, np.int64) for extent in (gz, gy, gx)]
        for shape, found in labels.items():
            for axis, extent in enumerate(shape):
                if extent > 1:
                    axes[axis] = _joined(axes[axis], found.reshape(-1))
        kinds = [list(zip(*(item.tolist() for item in _first_and_size(axis)), strict=True)) for axis in axes]
        found = [((x, y, z), nx * ny * nz) for (z, nz), (y, ny), (x, nx) in itertools.product(*kinds)]
    else:
        whole = np.zeros((gz, gy, gx), np.int64)
        for one in labels.values():
            whole = _joined(whole, one)
        first, sizes = _first_and_size(whole.reshape(-1))
        found = [
            ((place % gx, place // gx % gy, place // (gx * gy)), size)
            for place, size in zip(first.tolist(), sizes.tolist(), strict=True)
        ]
    if most is not None and len(found) > most:
        return None
    return tuple(BlockClass(place, size) for place, size in sorted(found, key=lambda item: item[0][::-1]))


def _first_and_size(labels: Any) -> tuple[Any, Any]:
    _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    return first, sizes


def _joined(first: Any, second: Any) -> Any:
    """Numbers that are equal where both are."""
    both = first * (int(second.max()) + 1) + second
    return np.unique(both, return_inverse=True)[1].reshape(both.shape)


class _Parts:
    """Block variables by axis, ranges of all other variables, conditions and loop bounds of a thread program."""

    def __init__(self, program: ThreadProgram) -> None:
        self.grid, self.cluster, self.kind = program.grid, program.cluster, program.target.kind
        self.bound: dict[int, Any] = {}
        self.blocks: dict[int, int] = {}
        self.ranges: dict[int, Interval] = {}
        self.conditions: list[Any] = []
        self.bounds: list[Any] = []
        self.loops: list[Any] = []
        self.variables: dict[int, Any] = {}
        self.threads: set[int] = set()
        tvm_ffi.structural_walk(
            program.function.body,
            [
                (tirx.AttrStmt, self.attribute),
                (tirx.Bind, self.bind),
                (tirx.For, self.loops.append),
                (tirx.IfThenElse, lambda node: self.conditions.append(node.condition)),
                (tirx.Select, lambda node: self.conditions.append(node.condition)),
                (ir.Call, self.call),
            ],
        )
        for node in self.loops:  # inner loops were met first
            self.bounds += [node.min, node.extent]
        for node in reversed(self.loops):
            try:
                low = interval(self.inlined(node.min), self.known())
                extent = interval(self.inlined(node.extent), self.known())
            except Unknown:
                continue
            high = np.maximum(np.max(low.high), np.max(low.high) + np.max(extent.high) - 1)
            self.ranges[handle_of(node.loop_var)] = Interval(np.int64(np.min(low.low)), np.int64(high))
        self.places: tuple[Place, ...] = ()
        self.data: frozenset[int] = frozenset()
        self.names: frozenset[int] = frozenset()
        if program.target.kind != "cpu":  # which has neither sectors nor banks
            accesses = accesses_of(program)
            self.data, self.names = accesses.data, accesses.names
            self.places = tuple(replace(place, index=self.inlined(place.index)) for place in accesses.places)
            self.bounds += accesses.bounds

    def attribute(self, node: Any) -> None:
        """A launch dimension."""
        if node.attr_key == "thread_extent":
            tag, variable = str(node.node.thread_tag), node.node.var
            if tag.startswith("blockIdx."):
                self.blocks[handle_of(variable)] = "xyz".index(tag[-1])
                self.variables[handle_of(variable)] = variable
            else:
                self.ranges[handle_of(variable)] = Interval(np.int64(0), np.int64(int(node.value.value) - 1))
                self.threads.add(handle_of(variable))

    def bind(self, node: Any) -> None:
        """A block index of a CPU program, or another name of a value."""
        name = str(node.var.name)
        if self.kind == "cpu" and name in ("bx", "by", "bz"):
            self.blocks.setdefault(handle_of(node.var), "xyz".index(name[1]))
        else:
            self.bound[handle_of(node.var)] = node.value

    def inlined(self, expression: Any) -> Any:
        """An expression in launch and loop variables alone, where they say all: names and ranks in a cluster replaced."""
        if not isinstance(expression, ir.Expr):
            return expression

        def name(variable: Any) -> Any:
            value = self.bound.get(handle_of(variable))
            return variable if value is None or loads(value) else self.inlined(value)

        def call(node: Any) -> Any:
            register = next((str(arg.value) for arg in node.args if isinstance(arg, ir.StringImm)), "")
            return self.rank() if register == "cluster_ctarank" else node

        return tvm_ffi.structural_map(expression, [(tirx.Var, name), (ir.Call, call)])

    def rank(self) -> Any:
        """A block's number in its cluster."""
        total: Any = tirx.IntImm("int32", 0)
        step = 1
        for axis, extent in enumerate(self.cluster):
            variable = next(
                (self.variables[h] for h, at in self.blocks.items() if at == axis and h in self.variables), None
            )
            if extent > 1 and variable is not None:
                total = total + tirx.FloorMod(variable, tirx.IntImm("int32", extent)) * step
            step *= extent
        return total

    def holds_data(self, expression: Any) -> bool:
        """Whether a value depends on what is in memory: what does makes its operation one that is sampled."""
        return holds_data(expression, self.names)

    def call(self, node: Any) -> None:
        """The condition of an ``if_then_else``."""
        if str(getattr(node.op, "name", "")).endswith(".if_then_else"):  # of `prim` or `tirx`, by version
            self.conditions.append(node.args[0])

    def known(self) -> dict[int, Interval]:
        """Intervals of all variables; block indices as arrays (z, y, x)."""
        values = dict(self.ranges)
        for handle, axis in self.blocks.items():
            index = self.index(axis)
            values[handle] = Interval(index, index)
        return values

    def index(self, axis: int) -> Any:
        """All values of a block index, along its own axis of (z, y, x)."""
        shape = [1, 1, 1]
        shape[2 - axis] = self.grid[axis]
        return np.arange(self.grid[axis], dtype=np.int64).reshape(shape)

    def decisive(self) -> Sequence[tuple[Any, bool]]:
        """Parts of conditions (and, marked, loop bounds) that name a block index, each once."""
        found: dict[str, tuple[Any, bool]] = {}
        conditions = [part for condition in self.conditions for part in parts_of(self.inlined(condition))]
        for expressions, counts in ((conditions, False), (self.bounds, True)):
            for each in expressions:
                expression = self.inlined(each)
                if any(handle in self.blocks for handle in variables_of(expression)):
                    found.setdefault(str(expression), (expression, counts))
        return list(found.values())


def _labels(expression: Any, parts: _Parts, counts: bool) -> Any:
    """A number for each block (z, y, x), equal where the expression behaves alike; None where nothing is known."""
    try:
        if counts:
            value = interval(expression, parts.known())
            undecided = np.asarray(value.low != value.high)
            labels = np.asarray(np.where(undecided, 0, value.low))
        else:
            decided = truth(expression, parts.known())
            undecided = np.asarray(decided < 0)
            labels = np.asarray(decided)
    except Unknown:
        return None
    labels = np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
    if undecided.any():
        tables = _tables(expression, parts, np.argwhere(np.broadcast_to(undecided, labels.shape)))
        if tables is None:
            return None
        labels = labels.copy()
        labels[np.broadcast_to(undecided, labels.shape)] = labels.max() + 1 + tables
    return labels


def _placed(place: Place, parts: _Parts) -> tuple[Any, bool]:
    """A number for each block (z, y, x), equal where the block moves the place alike (None where it does not move it), and
    whether that is all there is to say."""
    names = variables_of(place.index)
    named = [handle for handle in names if handle in parts.blocks]
    if not named or parts.threads.isdisjoint(names):
        return None, True  # one and the same element for all threads costs the same anywhere
    variables = [parts.variables[handle] for handle in named]
    found = sym.detect_linear_equation(place.index, variables)
    factors = [item.value for item in list(found)[:-1] if isinstance(item, tirx.IntImm)]
    if len(factors) == len(named):
        moved: Any = np.zeros((1, 1, 1), np.int64)
        for handle, factor in zip(named, factors, strict=True):
            if int(factor) % place.period and parts.grid[parts.blocks[handle]] > 1:
                moved = (moved + int(factor) % place.period * parts.index(parts.blocks[handle])) % place.period
        return moved, True
    places = np.argwhere(np.ones(np.broadcast_shapes(*(parts.index(parts.blocks[h]).shape for h in named)), bool))
    table = _tables(tirx.FloorMod(place.index, tirx.IntImm(str(place.index.ty.dtype), place.period)), parts, places, 0)
    if table is None:
        return None, False
    return table.reshape(np.broadcast_shapes(*(parts.index(parts.blocks[h]).shape for h in named))), True


def _tables(expression: Any, parts: _Parts, places: Any, sample: int = 64) -> Any:
    """A number for each of these blocks, equal where the expression has the same values over all other variables.

    Where those are too many, at least ``sample`` points drawn from them decide; None if that is 0.
    """
    others = [handle for handle in variables_of(expression) if handle not in parts.blocks]
    if any(handle not in parts.ranges for handle in others):
        return None
    at = {handle: places[:, 2 - axis] for handle, axis in parts.blocks.items()}
    first, which = distinct(expression, at, len(places))
    places = places[first]
    extents = [int(parts.ranges[handle].high - parts.ranges[handle].low) + 1 for handle in others]
    size = int(np.prod(extents, dtype=np.int64)) if others else 1
    if size * len(places) <= _POINTS:
        points = np.indices(extents).reshape(len(extents), -1) if others else np.zeros((0, 1), np.int64)
    elif not sample:
        return None
    else:
        generator = np.random.default_rng(0)
        points = np.stack([generator.integers(0, extent, max(sample, _POINTS // len(places))) for extent in extents])
    values: dict[int, Any] = {
        handle: (points[number] + int(parts.ranges[handle].low))[None, :] for number, handle in enumerate(others)
    }
    for handle, axis in parts.blocks.items():
        values[handle] = places[:, 2 - axis][:, None]
    try:
        table = np.broadcast_to(np.asarray(evaluate(expression, values)), (len(places), points.shape[1]))
    except NotCountable:
        return None
    return row_numbers(table)[which]


__all__ = ["BlockClass", "Blocks", "block_classes", "classify"]
