"""Rings of stages: what the producer does to fill them, and how the consumers take stages and give them back.

For each stage there are two mbarriers.  ``full`` completes when the bytes of all tiles have arrived; ``empty`` when every consumer
has given the stage back.  Producer and consumers each keep their stage and the parity of its round, across all executions of the
loop::

    producer                                   consumers
    for k: wait empty[stage]                   for k: wait full[stage]
           full[stage] expects n bytes                work on the tiles at stage
           ask for the tiles at stage                 arrive at empty[stage]
           stage, parity = next                       stage, parity = next

The first round of the producer waits for the parity before the first, which counts as completed.  Where the work is products of
warp groups alone, a stage is given back one iteration later (``late``), so that the next products are under way before the last
have ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.tirx import cuda, ptx

from tilelang_min.ir.expressions import bind_range, index, substitute
from tilelang_min.ir.hopper import Ring, RingLoop
from tilelang_min.ir.nodes import Conditional, Gemm, Loop, Statement, walk
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_wgmma import lower_wgmma, wait_products
from tilelang_min.lower.tma import TensorMaps, load_tile, tile_bytes

_WARP = 32
Pairs = list[tuple[Any, Any]]


@dataclass
class _State:
    """Where one role is in a ring: two registers of one element."""

    stage: Any
    parity: Any


class Rings:
    """The rings of a kernel, as one role sees them."""

    def __init__(self, context: Context, loops: list[RingLoop], role: str, parity: int) -> None:
        self.context = context
        self.states: dict[int, _State] = {}
        self.parity = parity
        for loop in loops:
            name = f"{role}_{{}}" if len(loops) == 1 else f"{role}_{loop.variable.name}_{{}}"
            self.states[loop.operation] = _State(
                context.registers(name.format("stage"), "int32", 1),
                context.registers(name.format("parity"), "int32", 1),
            )
        self.together: set[int] = set()  # loads of which each block of a cluster brings a half to both
        self.ready = context.registers(f"{role}_ready", "uint32", 1)

    def start(self) -> None:
        """All rings at their first stage."""
        for state in self.states.values():
            self._set(state.stage, 0)
            self._set(state.parity, self.parity)

    def _set(self, register: Any, value: Any) -> None:
        self.context.emit(tirx.BufferStore(register, index(value), [index(0)]))

    def wait(self, loop: RingLoop, barrier: Any) -> None:
        """Wait until the barrier has completed the round of this role's parity."""
        zero, ready = tirx.IntImm("uint32", 0), self.ready
        self.context.emit(tirx.BufferStore(ready, zero, [index(0)]))
        parity = tirx.Cast("uint32", self.states[loop.operation].parity[0])
        attempt = tirx.Evaluate(ptx["mbarrier.try_wait.parity.shared::cta.b64"](ready[0], barrier, parity))
        self.context.emit(tirx.While(tirx.EQ(ready[0], zero), attempt))

    def step(self, loop: RingLoop, stage: Any) -> None:
        """On to the next stage; behind the last comes the first, in a round of the other parity."""
        assert loop.ring is not None
        state, last = self.states[loop.operation], tirx.EQ(stage, loop.ring.stages - 1)
        turned = tirx.bitwise_xor(state.parity[0], tirx.Cast("int32", last))
        self._set(state.parity, turned)
        self._set(state.stage, tirx.Select(last, index(0), stage + 1))


def ring_loops(statements: tuple[Statement, ...]) -> list[RingLoop]:
    """All loops with a ring."""
    return [item for item in walk(statements) if isinstance(item, RingLoop)]


def _full(context: Context, ring: Ring, stage: Any) -> Any:
    return context.storage[ring.barriers.name].ptr_to([index(stage)])


def _empty(context: Context, ring: Ring, stage: Any) -> Any:
    return context.storage[ring.barriers.name].ptr_to([index(stage + ring.stages)])


def initialise(context: Context, ring: Ring, consumers: int) -> None:
    """What one thread does before anybody uses the ring; ``consumers`` threads work with it."""
    arrivals = (consumers if ring.bystanders else consumers // _WARP) * context.cluster
    for stage in range(ring.stages):
        for barrier, count in ((_full(context, ring, stage), 1), (_empty(context, ring, stage), arrivals)):
            count_ = tirx.IntImm("uint32", count)
            context.emit(tirx.Evaluate(ptx["mbarrier.init.shared::cta.b64"](barrier, count_)))


# -- the producer --------------------------------------------------------------------------------------------------


def produce(
    context: Context, rings: Rings, maps: TensorMaps, statements: tuple[Statement, ...], renamed: Pairs
) -> None:
    """What the producing thread does for these statements: the loads of their rings, under the same loops and conditions.

    ``renamed`` are variables that have another name here: each is defined once in a function.
    """
    for statement in statements:
        if isinstance(statement, Conditional) and ring_loops((statement,)):
            with context.nested() as then:
                produce(context, rings, maps, statement.then, renamed)
            with context.nested() as otherwise:
                produce(context, rings, maps, statement.otherwise, renamed)
            condition = substitute(statement.condition, renamed)
            context.emit(tirx.IfThenElse(condition, sequence(then), sequence(otherwise) if otherwise else None))
        elif isinstance(statement, Loop) and ring_loops((statement,)):
            variable = tirx.Var(context.fresh(f"{statement.variable.name}_ahead"), "int32")
            bind_range(context.analyzer, variable, statement.start, statement.extent)
            inner = [*renamed, (statement.variable, variable)]
            with context.nested() as body:
                if isinstance(statement, RingLoop):
                    _fill(context, rings, maps, statement, inner)
                else:
                    produce(context, rings, maps, statement.body, inner)
            start, extent = (index(substitute(item, renamed)) for item in (statement.start, statement.extent))
            context.emit(tirx.For(variable, start, extent, tirx.ForKind.SERIAL, sequence(body)))


def _fill(context: Context, rings: Rings, maps: TensorMaps, loop: RingLoop, renamed: Pairs) -> None:
    """One stage."""
    ring = loop.ring
    assert ring is not None
    context.mark(ring.loads[0].operation)
    stage = tirx.Var(context.fresh("filled"), "int32")
    bind_range(context.analyzer, stage, 0, ring.stages)
    context.emit(tirx.Bind(stage, rings.states[loop.operation].stage[0]))
    rings.wait(loop, _empty(context, ring, stage))
    total = sum(tile_bytes(context, copy.target.buffer) for copy in ring.loads)
    full = _full(context, ring, stage)
    context.emit(tirx.Evaluate(ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](full, tirx.IntImm("uint32", total))))
    for copy in ring.loads:
        context.mark(copy.operation)
        offsets = tuple(substitute(item, renamed) for item in copy.source.offsets)
        half = context.rank if id(copy) in rings.together else None
        load_tile(context, maps, copy, offsets, stage, full, half)
    context.mark(loop.operation)
    rings.step(loop, stage)


# -- the consumers -------------------------------------------------------------------------------------------------


def consume(
    context: Context,
    rings: Rings,
    layouts: Layouts,
    loop: RingLoop,
    block: Callable[[Context, Layouts, tuple[Statement, ...]], None],
) -> None:
    """The loop as the consumers run it; ``block`` lowers its work."""
    ring = loop.ring
    assert ring is not None
    context.mark(loop.operation)
    state = rings.states[loop.operation]
    bind_range(context.analyzer, ring.stage, 0, ring.stages)
    with context.nested() as body:
        context.mark(loop.operation)
        context.emit(tirx.Bind(ring.stage, state.stage[0]))
        rings.wait(loop, _full(context, ring, ring.stage))
        if ring.late:
            for statement in loop.body:
                assert isinstance(statement, Gemm)
                context.mark(statement.operation)
                lower_wgmma(context, statement, layouts.gemms[statement.operation], wait=False)
            context.mark(loop.operation)
            wait_products(context, len(loop.body))
            with context.nested() as behind:
                _release(context, ring, _before(ring, ring.stage))
            context.emit(tirx.IfThenElse(tirx.GT(loop.variable, index(loop.start)), sequence(behind), None))
        else:
            block(context, layouts, loop.body)
            context.mark(loop.operation)
            _release(context, ring, ring.stage)
        rings.step(loop, ring.stage)
    context.emit(tirx.For(loop.variable, index(loop.start), index(loop.extent), tirx.ForKind.SERIAL, sequence(body)))
    context.mark(loop.operation)
    if ring.late:
        wait_products(context, 0)
        with context.nested() as last:
            _release(context, ring, _before(ring, state.stage[0]))
        some = context.simplify(tirx.GT(index(loop.extent), 0))
        context.emit(sequence(last) if some is True or some == 1 else tirx.IfThenElse(some, sequence(last), None))


def _before(ring: Ring, stage: Any) -> Any:
    """The stage before ``stage``."""
    return tirx.Select(tirx.EQ(stage, 0), index(ring.stages - 1), stage - 1)


def _release(context: Context, ring: Ring, stage: Any) -> None:
    """Give a stage back: all threads say so where each read what it liked, else one of each warp."""
    barrier = _empty(context, ring, stage)
    if context.cluster > 1:
        _release_to_all(context, barrier)
        return
    arrive = tirx.Evaluate(ptx["mbarrier.arrive.shared::cta.b64"](barrier))
    if ring.bystanders:
        context.emit(arrive)
    else:
        context.emit(tirx.IfThenElse(tirx.EQ(context.thread % _WARP, 0), arrive, None))


def _release_to_all(context: Context, barrier: Any) -> None:
    """To the producers of all blocks of the cluster, whose loads write here: lane r of each warp tells block r."""
    there = context.array("there", "uint32", 1)
    lane = context.thread % _WARP
    address = ptx["mapa.shared::cluster.u32"](there[0], cuda.cvta_generic_to_shared(barrier), tirx.Cast("uint32", lane))
    arrive = ptx["mbarrier.arrive.shared::cluster.b64"](there[0])
    body = sequence([tirx.Evaluate(address), tirx.Evaluate(arrive)])
    context.emit(tirx.IfThenElse(tirx.LT(lane, context.cluster), body, None))
