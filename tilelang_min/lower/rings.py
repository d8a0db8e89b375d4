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

from tilelang_min.ir.expressions import as_int, bind_range, index, substitute
from tilelang_min.ir.hopper import Ring, RingLoop
from tilelang_min.ir.nodes import Conditional, Gemm, Loop, Statement, walk
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_wgmma import lower_wgmma, wait_products
from tilelang_min.lower.tma import TensorMaps, load_tile, tile_bytes

Pairs = list[tuple[Any, Any]]
Block = Callable[[Context, Layouts, tuple[Statement, ...]], None]
"""Lowers statements of a block."""


@dataclass
class _State:
    """Where one role is in a ring: two registers of one element."""

    stage: Any
    parity: Any


class Rings:
    """The rings of a kernel, as one role sees them.

    All arrivals of a loop are at the same stage, except those of consumers of ``ahead`` loops, which take some earlier.
    """

    def __init__(self, context: Context, loops: list[RingLoop], role: str, parity: int, ahead: set[int]) -> None:
        self.context = context
        self.states: dict[int, list[_State]] = {}
        self.parity = parity
        for loop in loops:
            name = role if len(loops) == 1 else f"{role}_{loop.variable.name}"
            count = len(ring_of(loop).arrivals)
            if loop.operation in ahead:
                self.states[loop.operation] = [self._state(f"{name}_{number}") for number in range(count)]
            else:
                self.states[loop.operation] = [self._state(name)] * count
        self.together: set[int] = set()  # loads of which each block of a cluster brings a half to both
        self.ready = context.registers(f"{role}_ready", "uint32", 1)

    def _state(self, name: str) -> _State:
        stage, parity = (self.context.registers(f"{name}_{what}", "int32", 1) for what in ("stage", "parity"))
        return _State(stage, parity)

    def start(self) -> None:
        """All rings at their first stage."""
        for state in {id(each): each for states in self.states.values() for each in states}.values():
            self._set(state.stage, 0)
            self._set(state.parity, self.parity)

    def _set(self, register: Any, value: Any) -> None:
        self.context.emit(tirx.BufferStore(register, index(value), [index(0)]))

    def stage(self, loop: RingLoop, arrival: int = 0) -> Any:
        """The register that holds the stage."""
        return self.states[loop.operation][arrival].stage[0]

    def wait(self, loop: RingLoop, arrival: int, barrier: Any) -> None:
        """Wait until the barrier has completed the round of this role's parity."""
        zero, ready = tirx.IntImm("uint32", 0), self.ready
        self.context.emit(tirx.BufferStore(ready, zero, [index(0)]))
        parity = tirx.Cast("uint32", self.states[loop.operation][arrival].parity[0])
        attempt = tirx.Evaluate(ptx["mbarrier.try_wait.parity.shared::cta.b64"](ready[0], barrier, parity))
        self.context.emit(tirx.While(tirx.EQ(ready[0], zero), attempt))

    def step(self, loop: RingLoop, stage: Any, arrival: int = 0) -> None:
        """On to the next stage; behind the last comes the first, in a round of the other parity."""
        state, last = self.states[loop.operation][arrival], tirx.EQ(stage, ring_of(loop).stages - 1)
        turned = tirx.bitwise_xor(state.parity[0], tirx.Cast("int32", last))
        self._set(state.parity, turned)
        self._set(state.stage, tirx.Select(last, index(0), stage + 1))


def ring_loops(statements: tuple[Statement, ...]) -> list[RingLoop]:
    """All loops with a ring."""
    return [item for item in walk(statements) if isinstance(item, RingLoop)]


def ring_of(loop: RingLoop) -> Ring:
    """The loop's ring."""
    assert loop.ring is not None
    return loop.ring


def full(context: Context, ring: Ring, arrival: int, stage: Any) -> Any:
    """Where the mbarrier lies that says that an arrival is there."""
    return context.storage[ring.barriers.name].ptr_to([index(stage + arrival * 2 * ring.stages)])


def empty(context: Context, ring: Ring, arrival: int, stage: Any) -> Any:
    """Where the mbarrier lies that says that an arrival's place is free."""
    return context.storage[ring.barriers.name].ptr_to([index(stage + (arrival * 2 + 1) * ring.stages)])


def initialise(context: Context, ring: Ring, consumers: int) -> None:
    """What one thread does before anybody uses the ring; ``consumers`` threads work with it."""
    arrivals = (consumers if ring.bystanders else consumers // context.target.warp_size) * context.cluster
    for number in range(len(ring.arrivals)):
        for stage in range(ring.stages):
            pairs = ((full(context, ring, number, stage), 1), (empty(context, ring, number, stage), arrivals))
            for barrier, count in pairs:
                expected = tirx.IntImm("uint32", count)
                context.emit(tirx.Evaluate(ptx["mbarrier.init.shared::cta.b64"](barrier, expected)))


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
    ring = ring_of(loop)
    context.mark(ring.loads[0].operation)
    stage = tirx.Var(context.fresh("filled"), "int32")
    bind_range(context.analyzer, stage, 0, ring.stages)
    context.emit(tirx.Bind(stage, rings.stage(loop)))
    for number, arrival in enumerate(ring.arrivals):
        context.mark(arrival.loads[0].operation)
        rings.wait(loop, number, empty(context, ring, number, stage))
        total = sum(tile_bytes(context, copy.target.buffer) for copy in arrival.loads)
        barrier = full(context, ring, number, stage)
        expected = ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](barrier, tirx.IntImm("uint32", total))
        context.emit(tirx.Evaluate(expected))
        for copy in arrival.loads:
            context.mark(copy.operation)
            offsets = tuple(substitute(item, renamed) for item in copy.source.offsets)
            half = context.rank if id(copy) in rings.together else None
            load_tile(context, maps, copy, offsets, stage, barrier, half)
    context.mark(loop.operation)
    rings.step(loop, stage)


# -- the consumers -------------------------------------------------------------------------------------------------


def consume(context: Context, rings: Rings, layouts: Layouts, loop: RingLoop, block: Block) -> None:
    """The loop as the consumers run it; ``block`` lowers its work."""
    ring = ring_of(loop)
    context.mark(loop.operation)
    bind_range(context.analyzer, ring.stage, 0, ring.stages)
    with context.nested() as body:
        context.mark(loop.operation)
        context.emit(tirx.Bind(ring.stage, rings.stage(loop)))
        if ring.late:
            _late(context, rings, layouts, loop)
        else:
            _in_order(context, rings, layouts, loop, block)
        context.mark(loop.operation)
        rings.step(loop, ring.stage)
    context.emit(tirx.For(loop.variable, index(loop.start), index(loop.extent), tirx.ForKind.SERIAL, sequence(body)))
    context.mark(loop.operation)
    if ring.late:
        wait_products(context, 0)
        with context.nested() as last:
            release(context, ring, 0, _before(ring, rings.stage(loop)))
        context.emit(if_it_runs(context, loop, last))


def _late(context: Context, rings: Rings, layouts: Layouts, loop: RingLoop) -> None:
    """Products alone: those of the iteration before have ended when these are under way."""
    ring = ring_of(loop)
    rings.wait(loop, 0, full(context, ring, 0, ring.stage))
    for statement in loop.body:
        assert isinstance(statement, Gemm)
        context.mark(statement.operation)
        lower_wgmma(context, statement, layouts.gemms[statement.operation], wait=False)
    context.mark(loop.operation)
    wait_products(context, len(loop.body))
    with context.nested() as behind:
        release(context, ring, 0, _before(ring, ring.stage))
    context.emit(tirx.IfThenElse(tirx.GT(loop.variable, index(loop.start)), sequence(behind), None))


def _in_order(context: Context, rings: Rings, layouts: Layouts, loop: RingLoop, block: Block) -> None:
    """Any work: each arrival is waited for in front of its first reader, and its place given back behind the last."""
    ring = ring_of(loop)
    waiting = dict(enumerate(ring.arrivals))
    for place, statement in enumerate(loop.body):
        for number in [each for each, arrival in waiting.items() if statement.operation in arrival.readers]:
            context.mark(statement.operation)
            rings.wait(loop, number, full(context, ring, number, ring.stage))
            del waiting[number]
        block(context, layouts, (statement,))
        later = {item.operation for item in loop.body[place + 1 :]}
        for number, arrival in enumerate(ring.arrivals):
            if number not in waiting and statement.operation in arrival.readers and not arrival.readers & later:
                context.mark(statement.operation)
                release(context, ring, number, ring.stage)
    for number in waiting:  # nobody reads it; its places go round all the same
        rings.wait(loop, number, full(context, ring, number, ring.stage))
        release(context, ring, number, ring.stage)


def if_it_runs(context: Context, loop: Loop, statements: list[Any]) -> Any:
    """Statements for a loop that has iterations, under the condition that it has some where that is not known."""
    some = context.simplify(tirx.GT(index(loop.extent), 0))
    return sequence(statements) if as_int(some) == 1 else tirx.IfThenElse(some, sequence(statements), None)


def _before(ring: Ring, stage: Any) -> Any:
    """The stage before ``stage``."""
    return tirx.Select(tirx.EQ(stage, 0), index(ring.stages - 1), stage - 1)


def release(context: Context, ring: Ring, arrival: int, stage: Any) -> None:
    """Give a place back: all threads say so where each read what it liked, else one of each warp."""
    barrier = empty(context, ring, arrival, stage)
    if context.cluster > 1:
        _release_to_all(context, barrier)
        return
    arrive = tirx.Evaluate(ptx["mbarrier.arrive.shared::cta.b64"](barrier))
    if ring.bystanders:
        context.emit(arrive)
    else:
        context.emit(tirx.IfThenElse(tirx.EQ(context.thread % context.target.warp_size, 0), arrive, None))


def _release_to_all(context: Context, barrier: Any) -> None:
    """To the producers of all blocks of the cluster, whose loads write here: lane r of each warp tells block r."""
    there = context.array("there", "uint32", 1)
    lane = context.thread % context.target.warp_size
    address = ptx["mapa.shared::cluster.u32"](there[0], cuda.cvta_generic_to_shared(barrier), tirx.Cast("uint32", lane))
    arrive = ptx["mbarrier.arrive.shared::cluster.b64"](there[0])
    body = sequence([tirx.Evaluate(address), tirx.Evaluate(arrive)])
    context.emit(tirx.IfThenElse(tirx.LT(lane, context.cluster), body, None))
