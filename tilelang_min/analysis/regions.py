"""What statements of a tile program read and write, and which of their accesses can touch the same element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import ir

from tilelang_min.ir.expressions import as_int, index, is_symbolic, loads, simplify, substitute
from tilelang_min.ir.hopper import ClusterSum
from tilelang_min.ir.nodes import (
    Assign,
    Buffer,
    Copy,
    Expr,
    Fill,
    Gemm,
    Parallel,
    Reduce,
    Region,
    Statement,
    TileProgram,
)
from tilelang_min.ir.vectors import nest_of

_UNBOUNDED = 1 << 30


def written(statement: Statement) -> tuple[Buffer, ...]:
    """Buffers that a statement itself (not its children) writes."""
    if isinstance(statement, Copy):
        return (statement.target.buffer,)
    if isinstance(statement, Fill):
        return (statement.region.buffer,)
    if isinstance(statement, Gemm):
        return (statement.c.buffer,)
    if isinstance(statement, Reduce):
        if statement.step == "partial":
            return (statement.scratch,) if statement.scratch is not None else ()
        return (statement.target.buffer,)
    if isinstance(statement, Assign):
        return (statement.buffer,)
    if isinstance(statement, Parallel):
        return tuple(item.buffer for item in statement.body)
    if isinstance(statement, ClusterSum):
        return (statement.target, statement.scratch)
    return ()


def read(program: TileProgram, statement: Statement) -> tuple[Buffer, ...]:
    """Buffers that a statement itself (not its children) reads, in its values, its indices and its offsets."""
    found: tuple[Buffer, ...] = ()
    values: list[Any] = []
    if isinstance(statement, Copy):
        found = (statement.source.buffer,)
        values = [*statement.source.offsets, *statement.target.offsets]
    elif isinstance(statement, Gemm):
        found = (statement.a.buffer, statement.b.buffer, *(() if statement.clear else (statement.c.buffer,)))
    elif isinstance(statement, Reduce):
        found = (statement.source.buffer, *(() if statement.clear else (statement.target.buffer,)))
        values = [*statement.source.offsets, *statement.target.offsets]
    elif isinstance(statement, ClusterSum):
        found = (statement.source, statement.scratch)
    elif isinstance(statement, Fill):
        values = [statement.value, *statement.region.offsets]
    elif isinstance(statement, Assign):
        found = (statement.buffer,) if statement.atomic else ()
        values = [statement.value, *statement.indices]
    elif isinstance(statement, Parallel):
        found = tuple(item.buffer for item in statement.body if item.atomic)
        values = [value for item in statement.body for value in (item.value, *item.indices)]
    return found + tuple(program.buffer_of(load.source) for value in values for load in loads(value))


@dataclass(frozen=True, eq=False)
class Touch:
    """One access of a statement to a buffer that several threads can see.

    ``low`` and ``extents`` bound, for each dimension, the elements that the block touches; an extent of None means that
    nothing is known.  ``indices`` name the element of each point of a nest, in the nest's variables (None: not a nest).
    ``owner`` says which threads do it: equal owners and equal indices mean that the same thread touches the same element;
    the owner ``"thread 0"`` is one thread, whatever the element.  ``atomic`` updates of one kind may come in any order.
    """

    buffer: Buffer
    writes: bool
    stage: Expr
    low: tuple[Expr, ...]
    extents: tuple[int | None, ...]
    indices: tuple[Expr, ...] | None
    owner: object
    atomic: str = ""

    def moved(self, old: Any, new: Expr) -> Touch:
        """The access with variable ``old`` having the value ``new``."""
        pair = [(old, new)]
        return Touch(
            self.buffer,
            self.writes,
            None if self.stage is None else substitute(self.stage, pair),
            tuple(substitute(item, pair) for item in self.low),
            self.extents,
            None if self.indices is None else tuple(substitute(item, pair) for item in self.indices),
            self.owner,
            self.atomic,
        )


def touches(program: TileProgram, statement: Statement, analyzer: Any) -> tuple[Touch, ...]:
    """Accesses of one statement (not of its children) to shared tiles and tensors."""
    if isinstance(statement, Gemm):
        found = [
            _region(statement.a, False, statement.a_stage, statement),
            _region(statement.b, False, statement.b_stage, statement),
        ]
    elif isinstance(statement, Reduce):
        if statement.scratch is None:
            return ()
        tile = statement.scratch
        whole = Region(tile, (0,) * len(tile.shape), tile.shape)
        found = [_region(whole, statement.step == "partial", None, statement)]
    elif isinstance(statement, Assign):
        # Outside of nests one thread writes an element that all share; every thread writes its own registers.
        owner: object = "thread 0" if statement.buffer.scope != "local" else statement
        found = [
            _element(program.buffer_of(load.source), tuple(load.indices), False, statement.stages, owner)
            for value in (statement.value, *statement.indices)
            for load in loads(value)
        ]
        found.append(_element(statement.buffer, statement.indices, True, {}, owner, statement.atomic))
    elif isinstance(statement, (Copy, Fill, Parallel)):
        nest = nest_of(program, statement)
        inner = analyzer.clone()
        for variable, extent in zip(nest.variables, nest.extents, strict=True):
            inner.bind(variable, ir.Range(0, extent))
        zero = [(variable, 0) for variable in nest.variables]
        found = []
        for access in nest.accesses:
            low: list[Expr] = []
            extents: list[int | None] = []
            for item in access.indices:
                base = substitute(index(item), zero)
                bound = inner.const_int_bound(inner.simplify(index(item) - base))
                known = bound.min_value > -_UNBOUNDED and bound.max_value < _UNBOUNDED and not loads(item)
                low.append(simplify(base + bound.min_value) if known else base)
                extents.append(bound.max_value - bound.min_value + 1 if known else None)
            stage = nest.stages.get(access.buffer.name)
            found.append(
                Touch(
                    access.buffer,
                    access.writes,
                    stage,
                    tuple(low),
                    tuple(extents),
                    tuple(index(item) for item in access.indices),
                    statement,
                    access.atomic,
                )
            )
    else:
        return ()
    return tuple(touch for touch in found if touch.buffer.scope in ("shared", "global"))


def _region(region: Region, writes: bool, stage: Expr, owner: object) -> Touch:
    return Touch(region.buffer, writes, stage, region.offsets, region.extents, None, owner)


def _element(
    buffer: Buffer, indices: tuple[Expr, ...], writes: bool, stages: Any, owner: object, atomic: str = ""
) -> Touch:
    extents = tuple(None if loads(item) else 1 for item in indices)
    return Touch(buffer, writes, stages.get(buffer.name), indices, extents, None, owner, atomic)


def need_barrier(program: TileProgram, old: Touch, new: Touch, analyzer: Any) -> bool:
    """Whether two threads could touch one element, at least one of them writing, in an order that matters."""
    if old.buffer is not new.buffer or not (old.writes or new.writes):
        return False
    if old.owner == "thread 0" == new.owner:
        return False
    if old.atomic and old.atomic == new.atomic:
        return False
    stages = program.stages.get(old.buffer.name, 1)
    if stages > 1 and old.stage is not None and new.stage is not None:
        difference = as_int(simplify(old.stage - new.stage, analyzer))
        if difference is not None and difference % stages:
            return False
    for first, second, extent, other in zip(old.low, new.low, old.extents, new.extents, strict=True):
        if extent is not None and _before(first, extent, second, analyzer):
            return False
        if other is not None and _before(second, other, first, analyzer):
            return False
    return not (
        old.owner is new.owner
        and old.indices is not None
        and new.indices is not None
        and not any(loads(item) for item in (*old.indices, *new.indices))
        and _same_stage(old.stage, new.stage, stages, analyzer)
        and all(as_int(simplify(a - b, analyzer)) == 0 for a, b in zip(old.indices, new.indices, strict=True))
    )


def _same_stage(first: Expr, second: Expr, stages: int, analyzer: Any) -> bool:
    if stages == 1 or (first is None and second is None):
        return True
    difference = None if first is None or second is None else as_int(simplify(first - second, analyzer))
    return difference is not None and difference % stages == 0


def _before(low: Expr, extent: int, other: Expr, analyzer: Any) -> bool:
    """Whether a run of ``extent`` elements from ``low`` ends before ``other`` begins."""
    condition = low + extent <= other
    return bool(analyzer.can_prove(condition)) if is_symbolic(condition) else bool(condition)


__all__ = ["Touch", "need_barrier", "read", "touches", "written"]
