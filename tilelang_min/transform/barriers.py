"""Barriers: wherever a thread could see another thread's memory too early or too late.

Before::

    T.copy(A, S)          # every thread writes a part of S
    T.gemm(S, ..)         # every thread reads all of S

After::

    T.copy(A, S)
    barrier
    T.gemm(S, ..)

Two statements conflict when one writes a shared tile, or a tensor, that the other reads or writes, unless they touch different
stages, provably different elements, or each thread only what it touched itself.  A loop is gone through until nothing changes,
so that the end of every iteration is checked against the start of all later ones.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx

from tilelang_min.analysis.regions import Touch, need_barrier, touches
from tilelang_min.ir.expressions import as_int, bind_range
from tilelang_min.ir.hopper import RingLoop
from tilelang_min.ir.nodes import (
    AsyncCommit,
    AsyncWait,
    Barrier,
    Conditional,
    Loop,
    SchedulingFence,
    Statement,
    TileProgram,
    walk,
)
from tilelang_min.ir.vectors import ranges


@dataclass(frozen=True, eq=False)
class _Pending:
    """An access since the last barrier.  ``origin`` names it; ``carried`` are the loops in an earlier iteration of which it was.
    ``operation`` is that of its statement."""

    origin: tuple[int, int]
    touch: Touch
    operation: int
    carried: frozenset[int] = frozenset()

    @property
    def key(self) -> tuple[tuple[int, int], frozenset[int]]:
        """What makes two pending accesses the same."""
        return self.origin, self.carried


def insert_barriers(program: TileProgram) -> TileProgram:
    """The program with every barrier that its shared tiles, and tensors that it writes, need."""
    body, _ = _Inserter(program).block(program.body, ())
    return dataclasses.replace(program, body=body)


class _Inserter:
    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.analyzer = ranges(program)
        self.known: dict[int, tuple[Touch, ...]] = {}
        self.earlier: dict[int, Any] = {}
        self.ended: dict[int, Any] = {}

    def block(
        self, statements: tuple[Statement, ...], pending: tuple[_Pending, ...]
    ) -> tuple[tuple[Statement, ...], tuple[_Pending, ...]]:
        """The statements with barriers, and what is pending behind them when ``pending`` was before."""
        out: list[Statement] = []
        for statement in statements:
            if isinstance(statement, Loop):
                if isinstance(statement, RingLoop) and self.once(statement, pending):
                    out.append(Barrier(statement.operation))
                    pending = ()
                body, pending = self.loop(statement, pending)
                out.append(dataclasses.replace(statement, body=body))
            elif isinstance(statement, Conditional):
                then, after_then = self.block(statement.then, pending)
                otherwise, after_else = self.block(statement.otherwise, pending)
                out.append(dataclasses.replace(statement, then=then, otherwise=otherwise))
                pending = _merge(after_then, after_else)
            elif isinstance(statement, Barrier):
                out.append(statement)
                pending = ()
            elif isinstance(statement, (AsyncCommit, AsyncWait, SchedulingFence)):
                out.append(statement)
            else:
                new = self.touches(statement)
                conflict = next(
                    (
                        (old, one)
                        for old in pending
                        for one in new
                        if need_barrier(self.program, old.touch, one.touch, self.analyzer)
                    ),
                    None,
                )
                if conflict is not None:
                    out.append(Barrier(statement.operation, self.reason(*conflict)))
                    pending = ()
                out.append(statement)
                pending = _merge(pending, new)
        return tuple(out), pending

    def once(self, loop: Loop, pending: tuple[_Pending, ...]) -> bool:
        """Whether a barrier in front of a loop spares it one in every iteration."""

        def barriers(before: tuple[_Pending, ...]) -> int:
            return sum(isinstance(item, Barrier) for item in walk(self.loop(loop, before)[0]))

        return bool(pending) and barriers(()) < barriers(pending)

    def loop(self, loop: Loop, pending: tuple[_Pending, ...]) -> tuple[tuple[Statement, ...], tuple[_Pending, ...]]:
        """The loop's body, good for the first and for all later iterations, and what is pending behind the loop."""
        before = pending
        while True:
            body, after = self.block(loop.body, before)
            merged = _merge(before, tuple(self.carry(loop, one) for one in after))
            if len(merged) == len(before):
                break
            before = merged
        ended = tuple(dataclasses.replace(one, touch=one.touch.moved(loop.variable, self.end(loop))) for one in after)
        return body, _merge(pending, ended)

    def touches(self, statement: Statement) -> tuple[_Pending, ...]:
        """Accesses of one statement."""
        number = id(statement)
        if number not in self.known:
            self.known[number] = touches(self.program, statement, self.analyzer)
        return tuple(
            _Pending((number, place), touch, statement.operation) for place, touch in enumerate(self.known[number])
        )

    def reason(self, old: _Pending, new: _Pending) -> str:
        """Why two accesses need a barrier between them, for people."""
        before, after = (self.program.operations[one.operation] for one in (old, new))
        did, does = ("writes" if one.touch.writes else "reads" for one in (old, new))
        earlier = " in an earlier iteration" if old.carried else ""
        return (
            f"{before.label} (line {before.location.line}) {did} {old.touch.buffer.name}{earlier}, "
            f"{after.label} {does} it"
        )

    def carry(self, loop: Loop, one: _Pending) -> _Pending:
        """The access as later iterations see it: from an iteration that was any number of steps ago."""
        if id(loop) in one.carried:
            return one
        if id(loop) not in self.earlier:
            steps = tirx.Var(f"{loop.variable.name}_ago", "int32")
            extent = as_int(loop.extent)
            self.analyzer.bind(steps, ir.Range(1, max(2, extent if extent is not None else 1 << 30)))
            self.earlier[id(loop)] = loop.variable - steps
        touch = one.touch.moved(loop.variable, self.earlier[id(loop)])
        return _Pending(one.origin, touch, one.operation, one.carried | {id(loop)})

    def end(self, loop: Loop) -> Any:
        """A name for the loop's variable in accesses that are looked at behind the loop."""
        if id(loop) not in self.ended:
            variable = tirx.Var(f"{loop.variable.name}_ended", "int32")
            bind_range(self.analyzer, variable, loop.start, loop.extent)
            self.ended[id(loop)] = variable
        return self.ended[id(loop)]


def _merge(first: tuple[_Pending, ...], second: tuple[_Pending, ...]) -> tuple[_Pending, ...]:
    """All of both, each once.

    An access that is pending twice by the same road stands for both: behind a loop it has forgotten which iteration it was in.
    """
    return tuple({one.key: one for one in (*second, *first)}.values())
