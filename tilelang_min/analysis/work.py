"""Floating-point operations and least bytes of a kernel, counted on the tile program as its author wrote it.

A fused multiply-add is 2 operations, a transcendental function 1, a reduction 1 for each element.

Only elements that exist count: of a matrix product those for
which the copies that fill its tiles find elements in their tensors, of an element-wise nest those that it writes to a tensor
or, where it writes tiles, for which it finds elements in the tensors it reads.  Conditions on block and loop indices are
evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.sym import Analyzer

from tilelang_min.analysis.points import count_points, handle_of, parts_of
from tilelang_min.analysis.regions import written
from tilelang_min.ir.expressions import as_int, bind_range, index, is_symbolic, loads
from tilelang_min.ir.nodes import (
    Assign,
    Buffer,
    Conditional,
    Copy,
    Expr,
    Fill,
    Gemm,
    Loop,
    Parallel,
    Reduce,
    Region,
    Statement,
    TileProgram,
    walk,
)
from tilelang_min.ir.reducing import accumulator_type
from tilelang_min.program.dtypes import dtype_bytes, is_float, language_name
from tilelang_min.program.metadata import Extent
from tilelang_min.program.work import WorkTerm

_ONE = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min)
_CALLS = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "pow")


Box = dict[Any, tuple[Any, Any]]
"""First value and number of values by variable."""


def flops(program: TileProgram) -> dict[str, int]:
    """Operations a launch by type: of the operands for matrix products, of the arithmetic for everything else.

    ``program`` must be as parsed: a pipeline repeats copies, and its copies no longer tell what fills a tile.
    """
    counter = _Counter(program)
    box = {variable: (0, extent) for variable, extent in zip(program.block_variables, program.grid, strict=True)}
    counter.block(program.body, box, [])
    return {dtype: count for dtype, count in sorted(counter.counts.items()) if count}


def has_unknown_lengths(program: TileProgram) -> bool:
    """Whether memory says how often a loop runs: what a launch does is then not known before it."""
    loops = (item for item in walk(program.body) if isinstance(item, Loop))
    return any(loads(index(bound)) for loop in loops for bound in (loop.start, loop.extent))


class _Counter:
    """Walks the program with the box of variables that it runs over and the conditions it runs under."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.counts: Counter[str] = Counter()
        self.analyzer = Analyzer()
        for variable, extent in zip(program.block_variables, program.grid, strict=True):
            bind_range(self.analyzer, variable, 0, extent)

    def add(self, operations: Mapping[str, int], box: Box, conditions: list[Any]) -> None:
        """Enter operations by type, done at each point of the box at which the conditions hold."""
        if operations:
            points = count_points(box, conditions)
            for dtype, number in operations.items():
                self.counts[dtype] += points * number

    def block(self, statements: tuple[Statement, ...], box: Box, conditions: list[Any]) -> None:
        """Count all statements of a block."""
        for statement in statements:
            if isinstance(statement, Loop):
                span, bounds = self.span(statement)
                self.block(statement.body, {**box, statement.variable: span}, [*conditions, *bounds])
            elif isinstance(statement, Conditional):
                self.block(statement.then, box, [*conditions, statement.condition])
                self.block(statement.otherwise, box, [*conditions, tirx.Not(statement.condition)])
            elif isinstance(statement, Gemm):
                self.gemm(statement, box, conditions)
            elif isinstance(statement, Reduce):
                self.reduce(statement, box, conditions)
            elif isinstance(statement, Parallel):
                self.nest(statement, box, conditions)
            elif isinstance(statement, Assign):
                self.add(_operations(statement), box, [*conditions, *_inside(statement)])

    def span(self, loop: Loop) -> tuple[tuple[Any, Any], list[Any]]:
        """First value and number of values of a loop variable, with conditions where its bounds are expressions."""
        first, extent = as_int(loop.start), as_int(loop.extent)
        if first is not None and extent is not None:
            bind_range(self.analyzer, loop.variable, first, extent)
            return (first, extent), []
        low = self.analyzer.const_int_bound(index(loop.start)).min_value
        high = self.analyzer.const_int_bound(index(loop.start + loop.extent)).max_value
        if high - low > 1 << 24:  # nothing is known: once
            return (0, 1), []
        bind_range(self.analyzer, loop.variable, low, max(0, high - low))
        return (low, max(0, high - low)), [loop.variable >= loop.start, loop.variable < loop.start + loop.extent]

    def gemm(self, gemm: Gemm, box: Box, conditions: list[Any]) -> None:
        """2 m n k for each execution, of the elements that exist."""
        m, n, k = (tirx.Var(name, "int32") for name in ("m", "n", "k"))
        inner = {m: (0, gemm.m), n: (0, gemm.n), k: (0, gemm.k)}
        a = self.filled(gemm.a, (k, m) if gemm.transpose_a else (m, k))
        b = self.filled(gemm.b, (n, k) if gemm.transpose_b else (k, n))
        self.add({gemm.a.buffer.dtype: 2}, {**box, **inner}, [*conditions, *a, *b])

    def reduce(self, reduction: Reduce, box: Box, conditions: list[Any]) -> None:
        """One operation for each element that exists, in the type that they are added up in."""
        source = reduction.source
        variables = tuple(tirx.Var(f"r{place}", "int32") for place in range(len(source.extents)))
        inner = {variable: (0, extent) for variable, extent in zip(variables, source.extents, strict=True)}
        dtype = accumulator_type(source.buffer.dtype, reduction.target.buffer.dtype)
        if dtype.startswith("float"):
            exist = self.filled(source, variables)
            self.add({dtype: 1}, {**box, **inner}, [*conditions, *exist])

    def filled(self, region: Region, indices: tuple[Any, ...]) -> list[Any]:
        """Conditions that the element at ``indices`` of a tile's region comes from inside of a tensor.

        Known where one copy of a tensor fills the tile and nothing but fills writes it otherwise.
        """
        writers = [
            item for item in walk(self.program.body) if region.buffer in written(item) and not isinstance(item, Fill)
        ]
        if len(writers) != 1 or not isinstance(writers[0], Copy) or writers[0].source.buffer.scope != "global":
            return []
        copy = writers[0]
        steps = list(indices)
        if len(steps) < len(region.offsets):  # a matrix that is a part of a larger tile
            if len(region.tile_extents) != len(steps):
                return []
            steps = [0 if extent == 1 else steps.pop(0) for extent in region.extents]
        places = [
            offset + step - start
            for offset, step, start in zip(region.offsets, steps, copy.target.offsets, strict=True)
        ]
        moving = [place for place, extent in zip(places, copy.target.extents, strict=True) if extent != 1]
        conditions: list[Any] = []
        for offset, extent, full in zip(
            copy.source.offsets, copy.source.extents, copy.source.buffer.shape, strict=True
        ):
            at = offset if extent == 1 else offset + moving.pop(0)
            conditions += _between(at, full)
        return conditions

    def nest(self, nest: Parallel, box: Box, conditions: list[Any]) -> None:
        """The arithmetic of an element-wise nest."""
        inner = {variable: (0, extent) for variable, extent in zip(nest.variables, nest.extents, strict=True)}
        # A register that a nest keeps a value in belongs to the element that is written in the end.
        final = next((item for item in reversed(nest.body) if item.buffer.scope != "local"), None)
        for assign in nest.body:
            held, plain = _under(assign)
            exists = _inside(_under(final)[1] if assign.buffer.scope == "local" and final is not None else plain)
            self.add(_operations(assign), {**box, **inner}, [*conditions, *held, *exists])


class _Recorder(_Counter):
    """Writes down what would be counted, for a program with runtime dimensions."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.terms: list[WorkTerm] = []

    def span(self, loop: Loop) -> tuple[tuple[Any, Any], list[Any]]:
        return (loop.start, loop.extent), []

    def add(self, operations: Mapping[str, int], box: Box, conditions: list[Any]) -> None:
        if not operations:
            return
        names = {handle_of(variable): str(variable.name) for variable in self.program.sizes}
        taken, prefix = set(names.values()), "x"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        rows = []
        for number, (variable, (first, count)) in enumerate(box.items()):
            bounds = text_of(first, names), text_of(count, names)
            names[handle_of(variable)] = f"{prefix}{number}"
            # bounds that hold an element of a tensor: nothing is known, once
            rows.append((f"{prefix}{number}", *((bounds[0], bounds[1]) if bounds[0] and bounds[1] else ("0", "1"))))
        parts = [text_of(part, names) for condition in conditions for part in parts_of(condition)]
        kept = tuple(dict.fromkeys(part for part in parts if part is not None))
        self.terms.append(WorkTerm(dict(operations), tuple(rows), kept))


def work_terms(program: TileProgram) -> list[WorkTerm]:
    """What :func:`flops` counts, for sizes that are known later."""
    recorder = _Recorder(program)
    box = {variable: (0, extent) for variable, extent in zip(program.block_variables, program.grid, strict=True)}
    recorder.block(program.body, box, [])
    return recorder.terms


_TEXTS: dict[Any, str] = {
    tirx.Add: "({} + {})", tirx.Sub: "({} - {})", tirx.Mul: "({} * {})", tirx.FloorDiv: "({} // {})",
    tirx.FloorMod: "({} % {})", tirx.Div: "div({}, {})", tirx.Mod: "fmod({}, {})", tirx.Min: "min({}, {})",
    tirx.Max: "max({}, {})", tirx.EQ: "({} == {})", tirx.NE: "({} != {})", tirx.LT: "({} < {})", tirx.LE: "({} <= {})",
    tirx.GT: "({} > {})", tirx.GE: "({} >= {})", tirx.And: "({} and {})", tirx.Or: "({} or {})",
}  # fmt: skip


def text_of(value: Any, names: Mapping[int, str]) -> str | None:
    """An integer expression or condition as :mod:`tilelang_min.program.work` reads it; None where it holds anything else."""
    if isinstance(value, (bool, int)):
        return str(int(value)) if value >= 0 else f"(0 - {-value})"
    if isinstance(value, tirx.IntImm):
        return text_of(int(value.value), names)
    if isinstance(value, tirx.Var):
        return names.get(handle_of(value))
    if isinstance(value, tirx.Not):
        inner = text_of(value.a, names)
        return None if inner is None else f"(not {inner})"
    if type(value) not in _TEXTS:
        return None
    left, right = text_of(value.a, names), text_of(value.b, names)
    return None if left is None or right is None else _TEXTS[type(value)].format(left, right)


def _inside(assign: Assign) -> list[Any]:
    """Conditions that an assignment concerns elements that exist."""
    if assign.buffer.scope == "global":
        return _exists(assign.buffer, assign.indices)
    conditions: list[Any] = []
    for load in loads(assign.value):
        shape = load.source.ty.shape
        if str(load.source.ty.storage_scope) == "global":
            for item, extent in zip(load.indices, shape, strict=True):
                conditions += _between(item, extent)
    return conditions


def _under(assign: Assign) -> tuple[list[Any], Assign]:
    """The conditions of the nest's ``if`` around an assignment, and the assignment as it is where they hold.

    The front end gives elements of memory a place that does not exist elsewhere, and lets others keep their value.
    """
    chosen = _choice(assign.value)
    if assign.buffer.scope not in ("global", "shared"):
        kept = tvm_ffi.structural_equal(chosen[2], assign.buffer.var[assign.indices]) if chosen else False
        return (parts_of(chosen[0]), replace(assign, value=chosen[1])) if kept else ([], assign)
    chosen = _choice(assign.indices[0])
    if not chosen or as_int(chosen[2]) != -1:
        return [], assign
    return parts_of(chosen[0]), replace(assign, indices=(chosen[1], *assign.indices[1:]))


def _choice(value: Any) -> tuple[Any, ...]:
    """Condition and arms of an ``if_then_else``; empty for anything else."""
    known = isinstance(value, ir.Call) and str(getattr(value.op, "name", "")).endswith(".if_then_else")
    return tuple(value.args) if known else ()


def _exists(buffer: Buffer, indices: tuple[Expr, ...]) -> list[Any]:
    return [part for item, extent in zip(indices, buffer.shape, strict=True) for part in _between(item, extent)]


def _between(value: Expr, extent: Expr) -> list[Any]:
    value, known = index(value), as_int(extent)
    return [value >= 0, value < (extent if known is None else known)]


def _operations(assign: Assign) -> Counter[str]:
    """What one assignment computes: the arithmetic of its value, and an atomic update of floats."""
    counts = _arithmetic(assign.value)
    if assign.atomic and is_float(assign.buffer.dtype):
        counts[assign.buffer.dtype] += 1
    return counts


def _arithmetic(value: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    if not is_symbolic(value):
        return counts

    def arithmetic(node: Any) -> None:
        dtype = language_name(str(node.ty.dtype))
        if is_float(dtype):
            counts[dtype] += 1

    def call(node: Any) -> None:
        if str(getattr(node.op, "name", "")).split(".")[-1] in _CALLS:
            counts[language_name(str(node.ty.dtype))] += 1

    tvm_ffi.structural_walk(value, [(_ONE, arithmetic), (ir.Call, call)])
    return counts


def bytes_min(program: TileProgram) -> Extent:
    """Bytes that must cross the memory interface: every parameter read once if it is read, written once if it is written.

    With runtime dimensions text in their names.
    """
    total, terms = 0, []
    read = {name for operation in program.operations[1:] for name in operation.reads}
    written_names = {name for operation in program.operations[1:] for name in operation.writes}
    for parameter in program.parameters:
        times = (parameter.name in read) + (parameter.name in written_names)
        known = [extent for extent in map(as_int, parameter.shape) if extent is not None]
        size = prod(known) * dtype_bytes(parameter.dtype) * times
        names = [str(extent.name) for extent in parameter.shape if as_int(extent) is None]
        if not names:
            total += size
        elif times:
            terms.append(" * ".join([str(size), *names]))
    return " + ".join([*terms, str(total)]) if terms else total


__all__ = ["bytes_min", "flops", "has_unknown_lengths", "work_terms"]
