"""Software pipelines: ``T.Pipelined`` becomes a serial loop whose copies run ahead of the work that reads them.

Before, with ``num_stages=3``::

    for k in T.Pipelined(n, num_stages=3):
        T.copy(A[.., k], A_shared)
        T.gemm(A_shared, ..)

After (a target with asynchronous copies)::

    copy(A[.., 0], A_shared@0); commit
    copy(A[.., 1], A_shared@1); commit
    for k in serial(n):
        wait(1 pending); barrier
        if k + 2 < n: copy(A[.., k + 2], A_shared@(k + 2))
        commit
        gemm(A_shared@k, ..)

``@s`` is the copy ``s % 3`` of the tile.  Without asynchronous copies there is no commit and no wait; the order is the same.
"""

from __future__ import annotations

import dataclasses

from tilelang_min.analysis.regions import read, written
from tilelang_min.ir.expressions import as_int, loads, simplify, substitute, uses
from tilelang_min.ir.nodes import (
    Assign,
    AsyncCommit,
    AsyncWait,
    Barrier,
    Buffer,
    Conditional,
    Copy,
    Expr,
    Gemm,
    Loop,
    Parallel,
    Statement,
    TileProgram,
    walk,
)
from tilelang_min.targets import Target


def pipeline(program: TileProgram, target: Target) -> TileProgram:
    """Expand every pipelined loop.  On the CPU, and where nothing can run ahead, such a loop is an ordinary one."""
    stages: dict[str, int] = {}
    body = _expand(program, program.body, target, stages)
    return dataclasses.replace(program, body=body, stages=stages)


def _expand(
    program: TileProgram, body: tuple[Statement, ...], target: Target, stages: dict[str, int]
) -> tuple[Statement, ...]:
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            inner = dataclasses.replace(statement, body=_expand(program, statement.body, target, stages))
            out.extend(_pipelined(program, inner, target, stages) if inner.kind == "pipelined" else (inner,))
        elif isinstance(statement, Conditional):
            out.append(
                dataclasses.replace(
                    statement,
                    then=_expand(program, statement.then, target, stages),
                    otherwise=_expand(program, statement.otherwise, target, stages),
                )
            )
        else:
            out.append(statement)
    return tuple(out)


def _pipelined(program: TileProgram, loop: Loop, target: Target, stages: dict[str, int]) -> tuple[Statement, ...]:
    serial = dataclasses.replace(loop, kind="serial", stages=1)
    extent = as_int(simplify(loop.extent))
    count = loop.stages if extent is None else min(loop.stages, max(1, extent))
    if target.kind == "cpu" or count < 2:
        return (serial,)
    ahead = [
        statement for statement in loop.body if isinstance(statement, Copy) and _can_run_ahead(program, loop, statement)
    ]
    if not ahead:
        return (serial,)
    asynchronous = "cp_async" in target.features
    for copy in ahead:
        stages[copy.target.buffer.name] = count
    staged = {copy.target.buffer.name for copy in ahead}
    distance = count - 1

    def copies(iteration: Expr) -> tuple[Statement, ...]:
        shifted = [(loop.variable, iteration)]
        return tuple(
            dataclasses.replace(
                copy,
                source=dataclasses.replace(
                    copy.source, offsets=tuple(substitute(o, shifted) for o in copy.source.offsets)
                ),
                target_stage=iteration - loop.start,
                asynchronous=asynchronous,
            )
            for copy in ahead
        )

    out: list[Statement] = []
    for step in range(distance):
        statements = copies(loop.start + step)
        if extent is None:
            statements = (Conditional(loop.operation, step < loop.extent, statements),)
        out.extend(statements)
        if asynchronous:
            out.append(AsyncCommit(ahead[-1].operation))
    body: list[Statement] = []
    first = ahead[0].operation
    if asynchronous:
        body.append(AsyncWait(first, distance - 1))
    body.append(Barrier(first))
    more = loop.variable + distance < loop.start + loop.extent
    body.append(Conditional(first, more, copies(loop.variable + distance)))
    if asynchronous:
        body.append(AsyncCommit(ahead[-1].operation))
    stage = loop.variable - loop.start
    body.extend(_at_stage(statement, staged, stage) for statement in loop.body if statement not in ahead)
    out.append(dataclasses.replace(serial, body=tuple(body)))
    return tuple(out)


def _can_run_ahead(program: TileProgram, loop: Loop, copy: Copy) -> bool:
    """Whether ``copy`` may run iterations early without changing the result.

    Its source must be a parameter that the loop does not write, at offsets that read no tile; its tile must be written by this
    copy alone, be read only below it in this loop, and be touched nowhere else.
    """
    source, tile = copy.source.buffer, copy.target.buffer
    if source.scope != "global" or tile.scope != "shared" or source.dtype != tile.dtype:
        return False
    if any(loads(offset) for offset in (*copy.source.offsets, *copy.target.offsets)):
        return False
    if any(uses(offset, loop.variable) for offset in copy.target.offsets):
        return False
    inside = list(walk(loop.body))
    if any(source in written(statement) for statement in inside):
        return False
    if sum(tile in written(statement) for statement in inside) != 1:
        return False
    outside = [statement for statement in walk(program.body) if not any(statement is other for other in inside)]
    if any(tile in written(statement) or tile in read(program, statement) for statement in outside):
        return False
    above = loop.body[: loop.body.index(copy)]
    if any(tile in read(program, statement) for statement in walk(above)):
        return False
    return all(_readable_at_stage(program, statement, tile) for statement in inside)


def _readable_at_stage(program: TileProgram, statement: Statement, tile: Buffer) -> bool:
    """Statements that can name the stage of a tile they read; nests carry a table of stages."""
    if tile not in read(program, statement):
        return True
    return isinstance(statement, (Copy, Gemm, Parallel, Assign))


def _at_stage(statement: Statement, staged: set[str], stage: Expr) -> Statement:
    """``statement`` with every read of a staged tile at ``stage``."""
    if isinstance(statement, Copy) and statement.source.buffer.name in staged:
        return dataclasses.replace(statement, source_stage=stage)
    if isinstance(statement, Gemm):
        return dataclasses.replace(
            statement,
            a_stage=stage if statement.a.buffer.name in staged else None,
            b_stage=stage if statement.b.buffer.name in staged else None,
        )
    if isinstance(statement, (Parallel, Assign)):
        return dataclasses.replace(statement, stages={**statement.stages, **dict.fromkeys(staged, stage)})
    if isinstance(statement, Loop):
        return dataclasses.replace(statement, body=tuple(_at_stage(item, staged, stage) for item in statement.body))
    if isinstance(statement, Conditional):
        return dataclasses.replace(
            statement,
            then=tuple(_at_stage(item, staged, stage) for item in statement.then),
            otherwise=tuple(_at_stage(item, staged, stage) for item in statement.otherwise),
        )
    return statement
