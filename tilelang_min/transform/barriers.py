"""Barriers: wherever a thread could see another thread's shared memory too early or too late.

Before::

    T.copy(A, S)          # every thread writes a part of S
    T.gemm(S, ..)         # every thread reads all of S

After::

    T.copy(A, S)
    barrier
    T.gemm(S, ..)

Two statements conflict when one writes a shared tile that the other reads or writes, at stages that may be the same.  A loop is
gone through until nothing changes, so that the end of one iteration is checked against the start of the next.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tilelang_min.ir.expressions import as_int, simplify
from tilelang_min.ir.nodes import (
    Assign,
    AsyncCommit,
    AsyncWait,
    Barrier,
    Conditional,
    Copy,
    Expr,
    Gemm,
    Loop,
    Parallel,
    Statement,
    TileProgram,
)
from tilelang_min.transform.pipeline import read, written


@dataclass(frozen=True)
class _Touch:
    """One access since the last barrier; ``carried`` when it comes from an earlier iteration."""

    name: str
    writes: bool
    stage: Expr
    carried: bool = False


def insert_barriers(program: TileProgram) -> TileProgram:
    """The program with every barrier that its shared tiles need."""
    body, _ = _block(program, program.body, ())
    return dataclasses.replace(program, body=body)


def _block(
    program: TileProgram, statements: tuple[Statement, ...], pending: tuple[_Touch, ...]
) -> tuple[tuple[Statement, ...], tuple[_Touch, ...]]:
    out: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Loop):
            before = pending
            while True:
                body, after = _block(program, statement.body, before)
                merged = _merge(before, tuple(dataclasses.replace(touch, carried=True) for touch in after))
                if merged == before:
                    break
                before = merged
            out.append(dataclasses.replace(statement, body=body))
            pending = _merge(pending, after)
        elif isinstance(statement, Conditional):
            then, after_then = _block(program, statement.then, pending)
            otherwise, after_else = _block(program, statement.otherwise, pending)
            out.append(dataclasses.replace(statement, then=then, otherwise=otherwise))
            pending = _merge(after_then, after_else)
        elif isinstance(statement, Barrier):
            out.append(statement)
            pending = ()
        elif isinstance(statement, (AsyncCommit, AsyncWait)):
            out.append(statement)
        else:
            touches = _touches(program, statement)
            if any(_conflict(program, old, new) for old in pending for new in touches):
                out.append(Barrier(statement.operation))
                pending = ()
            out.append(statement)
            pending = _merge(pending, touches)
    return tuple(out), pending


def _merge(first: tuple[_Touch, ...], second: tuple[_Touch, ...]) -> tuple[_Touch, ...]:
    keys = {_key(touch) for touch in first}
    return first + tuple(touch for touch in second if _key(touch) not in keys and not keys.add(_key(touch)))  # type: ignore[func-returns-value]


def _key(touch: _Touch) -> tuple[str, bool, str, bool]:
    return touch.name, touch.writes, str(touch.stage), touch.carried


def _touches(program: TileProgram, statement: Statement) -> tuple[_Touch, ...]:
    stages: dict[str, Expr] = {}
    target_stage: Expr = None
    if isinstance(statement, Copy):
        target_stage = statement.target_stage
        if statement.source_stage is not None:
            stages[statement.source.buffer.name] = statement.source_stage
    elif isinstance(statement, Gemm):
        stages = {statement.a.buffer.name: statement.a_stage, statement.b.buffer.name: statement.b_stage}
    elif isinstance(statement, (Parallel, Assign)):
        stages = statement.stages
    touches = [
        _Touch(item.name, False, stages.get(item.name)) for item in read(program, statement) if item.scope == "shared"
    ]
    touches += [_Touch(item.name, True, target_stage) for item in written(statement) if item.scope == "shared"]
    return tuple(touches)


def _conflict(program: TileProgram, old: _Touch, new: _Touch) -> bool:
    if old.name != new.name or not (old.writes or new.writes):
        return False
    if old.stage is None or new.stage is None or old.carried:
        # An earlier iteration's loop variable is not this one's: only a barrier in between tells stages apart.
        return True
    difference = as_int(simplify(old.stage - new.stage))
    return difference is None or difference % program.stages.get(old.name, 1) == 0
