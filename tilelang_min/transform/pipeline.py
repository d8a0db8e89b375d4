"""Software pipelines: ``T.Pipelined`` becomes a serial loop whose copies run ahead of the work that reads them.

Before, with ``num_stages=3``::

    for k in T.Pipelined(n, num_stages=3):
        T.copy(A[.., k], A_shared)
        T.gemm(A_shared, ..)

After, on a target with asynchronous copies::

    copy(A[.., 0], A_shared@0); commit
    copy(A[.., 1], A_shared@1); commit
    for k in serial(n):
        wait(1 pending); barrier
        if k + 2 < n: copy(A[.., k + 2], A_shared@(k + 2))
        commit
        gemm(A_shared@k, ..)

``@s`` is the copy ``s % 3`` of the tile.  Without asynchronous copies a tile goes through registers; it is loaded before the work
and stored behind it, so that the work hides the latency of global memory::

    copy(A[.., 0], ahead); copy(ahead, A_shared@0)
    copy(A[.., 1], ahead); copy(ahead, A_shared@1)
    for k in serial(n):
        barrier
        if k + 2 < n: copy(A[.., k + 2], ahead)
        scheduling fence
        gemm(A_shared@k, ..)
        scheduling fence
        if k + 2 < n: copy(ahead, A_shared@(k + 2))

One barrier an iteration is enough: stage k + 2 was last read in iteration k - 1, before the barrier, and is read again in
iteration k + 2, behind two more.

On Hopper, where ``transform/hopper.py`` planned it, the copies leave the loop: a producer carries them out::

    for k in serial(n), ring of 3 stages filled with [copy(A[.., k], A_shared), ..]:
        gemm(A_shared@stage, ..)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tvm import tirx

from tilelang_min.analysis.regions import read, written
from tilelang_min.ir.expressions import as_int, loads, simplify, substitute, uses
from tilelang_min.ir.hopper import Arrival, Barriers, Ring, RingLoop
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
    Region,
    SchedulingFence,
    Statement,
    TileProgram,
    walk,
)
from tilelang_min.ir.plans import HopperPlan
from tilelang_min.targets import Target
from tilelang_min.targets.wgmma import MOST_PENDING

_Statements = tuple[Statement, ...]


def pipeline(program: TileProgram, target: Target, hopper: HopperPlan | None = None) -> TileProgram:
    """Expand every pipelined loop.  On the CPU, and where nothing can run ahead, such a loop is an ordinary one."""
    expansion = _Expansion(program, target, hopper or HopperPlan())
    body = expansion.block(program.body)
    buffers = (*program.buffers, *expansion.registers)
    return dataclasses.replace(program, body=body, stages=expansion.stages, buffers=buffers)


class _Expansion:
    """``stages`` by name of the tile; ``registers`` are fragments that copies without cp.async go through,
    and barriers of rings."""

    def __init__(self, program: TileProgram, target: Target, hopper: HopperPlan) -> None:
        self.program = program
        self.target = target
        self.hopper = hopper
        self.stages: dict[str, int] = {}
        self.registers: list[Buffer] = []

    def block(self, body: _Statements) -> _Statements:
        """The statements with all pipelines in them expanded, inner ones first."""
        out: list[Statement] = []
        for statement in body:
            if isinstance(statement, Loop):
                inner = dataclasses.replace(statement, body=self.block(statement.body))
                out.extend(self.loop(inner) if inner.kind == "pipelined" else (inner,))
            elif isinstance(statement, Conditional):
                then, otherwise = self.block(statement.then), self.block(statement.otherwise)
                out.append(dataclasses.replace(statement, then=then, otherwise=otherwise))
            else:
                out.append(statement)
        return tuple(out)

    def loop(self, loop: Loop) -> _Statements:
        """One pipelined loop as prologue and serial loop."""
        serial = dataclasses.replace(loop, kind="serial", stages=1)
        extent = as_int(simplify(loop.extent))
        count = loop.stages if extent is None else min(loop.stages, max(1, extent))
        if loop.operation in self.hopper.loops:  # a producer may be ahead of its end, in a persistent block's next tile
            count = loop.stages
        if self.target.kind == "cpu" or count < 2:
            return (serial,)
        ahead = [item for item in loop.body if isinstance(item, Copy) and can_run_ahead(self.program, loop, item)]
        if not ahead:
            return (serial,)
        for copy in ahead:
            self.stages[copy.target.buffer.name] = count
        if loop.operation in self.hopper.loops:
            return (self.ring(loop, ahead, count),)
        work = _at_stage_all(
            tuple(item for item in loop.body if item not in ahead),
            {copy.target.buffer.name for copy in ahead},
            _stage(loop, loop.variable),
        )
        expand = self.asynchronous if "cp_async" in self.target.features else self.through_registers
        prologue, body = expand(loop, extent, ahead, count - 1, work)
        return (*prologue, dataclasses.replace(serial, body=body))

    def asynchronous(
        self, loop: Loop, extent: int | None, ahead: list[Copy], distance: int, work: _Statements
    ) -> tuple[_Statements, _Statements]:
        """Prologue and body with cp.async."""
        first, last = ahead[0].operation, ahead[-1].operation

        def copies(iteration: Expr) -> _Statements:
            return tuple(
                dataclasses.replace(
                    copy, source=_source(loop, copy, iteration), target_stage=_stage(loop, iteration), asynchronous=True
                )
                for copy in ahead
            )

        prologue: list[Statement] = []
        for step in range(distance):
            prologue += _prologue_step(loop, extent, step, copies)
            prologue.append(AsyncCommit(last))
        body = (
            AsyncWait(first, distance - 1),
            Barrier(first, "the tiles of this iteration have arrived, and those of the one before are read"),
            _if_more(loop, first, distance, copies),
            AsyncCommit(last),
            *work,
        )
        return tuple(prologue), body

    def ring(self, loop: Loop, ahead: list[Copy], count: int) -> RingLoop:
        """The loop whose copies a producer carries out."""
        tiles = {copy.target.buffer.name for copy in ahead}
        stage = tirx.Var(f"{loop.variable.name}_stage", "int32")
        rest = tuple(item for item in loop.body if item not in ahead)
        inside = list(walk(rest))
        products = [item for item in inside if isinstance(item, Gemm) and item.operation in self.hopper.gemms]
        readers = [item for item in inside if any(buffer.name in tiles for buffer in read(self.program, item))]
        bystanders = any(item not in products for item in readers)
        late = len(rest) <= MOST_PENDING and all(
            item in products and not item.clear and self.hopper.gemms[item.operation].instruction.in_place
            for item in rest
        )
        arrivals = self.arrivals(ahead, rest) if not late else (Arrival(tuple(ahead), frozenset()),)
        name, size = self.program.unused("ring_barriers", self.registers), 2 * count * len(arrivals)
        variable = tirx.decl_buffer((size,), "uint64", name)
        barriers = Barriers(name, (size,), "int64", "shared", ahead[0].target.buffer.location, variable)
        self.registers.append(barriers)
        return RingLoop(
            loop.operation,
            loop.variable,
            loop.start,
            loop.extent,
            "ring",
            _at_stage_all(rest, tiles, stage),
            count,
            Ring(count, arrivals, stage, barriers, late, bystanders),
        )

    def arrivals(self, ahead: list[Copy], work: _Statements) -> tuple[Arrival, ...]:
        """Loads by the statements that need them, in the order of their first use."""
        found: dict[frozenset[int], list[Copy]] = {}
        first: dict[frozenset[int], int] = {}
        for copy in ahead:
            places = [
                place
                for place, statement in enumerate(work)
                if any(copy.target.buffer in read(self.program, item) for item in walk((statement,)))
            ]
            readers = frozenset(work[place].operation for place in places)
            found.setdefault(readers, []).append(copy)
            first.setdefault(readers, min(places, default=len(work)))
        order = sorted(found, key=lambda readers: first[readers])
        return tuple(Arrival(tuple(found[readers]), readers) for readers in order)

    def through_registers(
        self, loop: Loop, extent: int | None, ahead: list[Copy], distance: int, work: _Statements
    ) -> tuple[_Statements, _Statements]:
        """Prologue and body with loads before the work and stores behind it."""
        first, last = ahead[0].operation, ahead[-1].operation
        held = [self.held(copy) for copy in ahead]

        def load(iteration: Expr) -> _Statements:
            return tuple(
                Copy(copy.operation, _source(loop, copy, iteration), region)
                for copy, region in zip(ahead, held, strict=True)
            )

        def store(iteration: Expr) -> _Statements:
            return tuple(
                Copy(copy.operation, region, copy.target, target_stage=_stage(loop, iteration))
                for copy, region in zip(ahead, held, strict=True)
            )

        prologue: list[Statement] = []
        for step in range(distance):
            prologue += _prologue_step(loop, extent, step, lambda iteration: (*load(iteration), *store(iteration)))
        body = (
            Barrier(first, "the tiles of this iteration have arrived, and those of the one before are read"),
            _if_more(loop, first, distance, load),
            SchedulingFence(last),
            *work,
            SchedulingFence(first),
            _if_more(loop, first, distance, store),
        )
        return tuple(prologue), body

    def held(self, copy: Copy) -> Region:
        """Registers for the tile that a copy brings."""
        tile, shape = copy.target.buffer, copy.target.tile_extents or (1,)
        name = self.program.unused(f"{tile.name}_ahead", self.registers)
        made = Buffer(name, shape, tile.dtype, "fragment", tile.location, tirx.decl_buffer(shape, tile.tvm_dtype, name))
        self.registers.append(made)
        return Region(made, (0,) * len(shape), shape)


def _source(loop: Loop, copy: Copy, iteration: Expr) -> Region:
    """The source region of ``copy`` in another iteration."""
    moved = [(loop.variable, iteration)]
    offsets = tuple(simplify(substitute(item, moved)) for item in copy.source.offsets)
    return dataclasses.replace(copy.source, offsets=offsets)


def _stage(loop: Loop, iteration: Expr) -> Expr:
    """Number of an iteration, from 0: it selects the stage, modulo how many there are."""
    return simplify(iteration - loop.start)


def _prologue_step(
    loop: Loop, extent: int | None, step: int, copies: Callable[[Expr], _Statements]
) -> tuple[Statement, ...]:
    statements = copies(simplify(loop.start + step))
    return (Conditional(loop.operation, step < loop.extent, statements),) if extent is None else statements


def _if_more(loop: Loop, operation: int, distance: int, copies: Callable[[Expr], _Statements]) -> Statement:
    """The copies of the iteration ``distance`` ahead, if there is one."""
    more = loop.variable + distance < loop.start + loop.extent
    return Conditional(operation, more, copies(loop.variable + distance))


def can_run_ahead(program: TileProgram, loop: Loop, copy: Copy) -> bool:
    """Whether ``copy`` may run iterations early without changing the result (:func:`why_not_ahead` says why not)."""
    return why_not_ahead(program, loop, copy) is None


def why_not_ahead(program: TileProgram, loop: Loop, copy: Copy) -> str | None:
    """Why ``copy`` may not run iterations early, or None where that does not change the result.

    Its source must be a parameter that the loop does not write, at offsets that read no tile; its tile must be written by this
    copy alone, be read only below it in this loop, and be touched nowhere else.
    """
    source, tile = copy.source.buffer, copy.target.buffer
    if source.scope != "global" or tile.scope != "shared":
        return "it does not bring a tensor into a shared tile"
    if source.dtype != tile.dtype:
        return f"it converts {source.dtype} to {tile.dtype}"
    if any(loads(offset) for offset in (*copy.source.offsets, *copy.target.offsets)):
        return "where it reads or writes depends on data"
    if any(uses(offset, loop.variable) for offset in copy.target.offsets):
        return f"it writes another part of {tile.name} in each iteration"
    if any(uses(offset, around.variable) for around in _loops(program) for offset in copy.target.offsets):
        return f"it writes another part of {tile.name} in each iteration of a loop around it"
    inside = list(walk(loop.body))
    if any(source in written(statement) for statement in inside):
        return f"the loop also writes {source.name}"
    if sum(tile in written(statement) for statement in inside) != 1:
        return f"other statements of the loop write {tile.name} too"
    outside = [statement for statement in walk(program.body) if not any(statement is other for other in inside)]
    if any(tile in written(statement) or tile in read(program, statement) for statement in outside):
        return f"{tile.name} is used outside the loop"
    above = loop.body[: loop.body.index(copy)] if copy in loop.body else ()
    if any(tile in read(program, statement) for statement in walk(above)):
        return f"{tile.name} is read above it: that is the tile of the iteration before"
    if not all(_readable_at_stage(program, statement, tile) for statement in inside):
        return f"a statement that reads {tile.name} cannot tell its stages apart"
    return None


def _loops(program: TileProgram) -> list[Loop]:
    return [statement for statement in walk(program.body) if isinstance(statement, Loop)]


def _readable_at_stage(program: TileProgram, statement: Statement, tile: Buffer) -> bool:
    """Statements that can name the stage of a tile they read; nests carry a table of stages."""
    if tile not in read(program, statement):
        return True
    if isinstance(statement, Copy):
        return tile is statement.source.buffer and not any(
            loads(offset) for offset in (*statement.source.offsets, *statement.target.offsets)
        )
    return isinstance(statement, (Gemm, Parallel, Assign))


def _at_stage_all(statements: _Statements, staged: set[str], stage: Expr) -> _Statements:
    return tuple(_at_stage(statement, staged, stage) for statement in statements)


def _at_stage(statement: Statement, staged: set[str], stage: Expr) -> Statement:
    """``statement`` with every read of a staged tile at ``stage``."""
    if isinstance(statement, Copy) and statement.source.buffer.name in staged:
        return dataclasses.replace(statement, source_stage=stage)
    if isinstance(statement, Gemm):
        return dataclasses.replace(
            statement,
            a_stage=stage if statement.a.buffer.name in staged else statement.a_stage,
            b_stage=stage if statement.b.buffer.name in staged else statement.b_stage,
        )
    if isinstance(statement, (Parallel, Assign)):
        return dataclasses.replace(statement, stages={**statement.stages, **dict.fromkeys(staged, stage)})
    if isinstance(statement, Loop):
        return dataclasses.replace(statement, body=_at_stage_all(statement.body, staged, stage))
    if isinstance(statement, Conditional):
        return dataclasses.replace(
            statement,
            then=_at_stage_all(statement.then, staged, stage),
            otherwise=_at_stage_all(statement.otherwise, staged, stage),
        )
    return statement
