"""Loops of two products with other work between them, as attention has them: the second product runs during that work.

Before, each iteration (``G1`` the first product, ``G2`` the second, from registers)::

    before; G1; work; G2

After, with ``G2`` of an iteration under way while the next one works::

    before(0); G1(0)
    for k in all but the last:
        work(k), of which what touches the result or an operand of G2(k - 1) waits for it
        before(k + 1); start G1(k + 1); start G2(k); wait for G1(k + 1)
    work(last); G2(last)

What ``G1`` and ``G2`` read arrives, and is given back, separately: the ring of the one is a stage ahead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx

from tilelang_min.analysis.regions import read, written
from tilelang_min.ir.expressions import bind_range, index
from tilelang_min.ir.hopper import RingLoop
from tilelang_min.ir.nodes import Barrier, Buffer, Conditional, Gemm, Loop, Region, Statement, TileProgram
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_wgmma import lower_wgmma, wait_products
from tilelang_min.lower.rings import Block, Rings, full, if_it_runs, release, ring_of

_FIRST, _SECOND = 0, 1
"""Arrivals, in the order of their first use."""


@dataclass(frozen=True)
class Overlap:
    """The parts of a loop's body."""

    before: tuple[Statement, ...]
    first: Gemm
    work: tuple[Statement, ...]
    second: Gemm


def overlap_of(program: TileProgram, layouts: Layouts, loop: RingLoop) -> Overlap | None:
    """The parts of a loop whose second product can run during the work of the next iteration; None: it cannot."""
    ring, body = ring_of(loop), loop.body
    if not layouts.hopper.overlap or ring.late or ring.bystanders or ring.stages < 2:
        return None
    if any(isinstance(item, (Loop, Conditional, Barrier)) for item in body):
        return None
    products = [item for item in body if isinstance(item, Gemm)]
    if len(products) != 2 or body[-1] is not products[1]:
        return None
    first, second = products
    for item in products:
        plan = layouts.gemms[item.operation]
        if plan.kind != "wgmma" or not plan.instruction.in_place or item.clear:
            return None
    if first.a.buffer.scope != "shared" or second.a.buffer.scope != "fragment":
        return None
    if [arrival.readers for arrival in ring.arrivals] != [frozenset({first.operation}), frozenset({second.operation})]:
        return None
    place = next(number for number, item in enumerate(body) if item is first)
    parts = Overlap(body[:place], first, body[place + 1 : -1], second)
    if any(_touches(program, item, second) for item in (*parts.before, first)):
        return None
    return parts


def _touches(program: TileProgram, statement: Statement, product: Gemm) -> bool:
    """Whether a statement must not run while ``product`` does: it uses what that writes, or writes what that reads."""
    result: Buffer = product.c.buffer
    writes = written(statement)
    return result in writes or result in read(program, statement) or product.a.buffer in writes


def consume_overlapped(
    context: Context, rings: Rings, layouts: Layouts, loop: RingLoop, parts: Overlap, block: Block
) -> None:
    """The loop as the consumers run it."""
    writer = _Writer(context, rings, layouts, loop, parts, block)
    last = loop.start + loop.extent - 1
    context.mark(loop.operation)
    with context.nested() as whole:
        context.mark(loop.operation)
        for item in writer.at(loop.start, writer.start_first, pending=0):
            context.emit(item)
        variable = tirx.Var(context.fresh(loop.variable.name), "int32")
        bind_range(context.analyzer, variable, loop.start, loop.extent)
        with context.nested() as body:
            for item in writer.at(variable, writer.work):
                context.emit(item)
            for item in writer.at(variable + 1, writer.start_first, pending=None):
                context.emit(item)
            writer.start_second()
            wait_products(context, 1)
            writer.give_back(_FIRST)
        extent = context.simplify(loop.extent - 1)
        context.mark(loop.operation)  # the loop is no part of the product that stands in front of it
        context.emit(tirx.For(variable, index(loop.start), index(extent), tirx.ForKind.SERIAL, sequence(body)))
        context.mark(loop.operation)
        for item in writer.at(last, writer.work):
            context.emit(item)
        writer.start_second()
        wait_products(context, 0)
        writer.give_back(_SECOND)
    context.emit(if_it_runs(context, loop, whole))
    context.mark(loop.operation)


class _Writer:
    """Writes the parts; :meth:`at` puts an iteration's number in."""

    def __init__(
        self, context: Context, rings: Rings, layouts: Layouts, loop: RingLoop, parts: Overlap, block: Block
    ) -> None:
        self.context, self.rings, self.layouts, self.loop = context, rings, layouts, loop
        self.parts, self.block, self.ring = parts, block, ring_of(loop)

    def at(self, iteration: Any, part: Callable[..., None], **options: Any) -> list[Any]:
        """What ``part`` writes, for iteration ``iteration``."""
        with self.context.nested() as body:
            part(**options)
        variable = self.loop.variable

        def replace(found: Any) -> Any:
            return index(iteration) if found.same_as(variable) else found

        return [tvm_ffi.structural_map(item, (tirx.Var, replace)) for item in body]

    def start_first(self, pending: int | None) -> None:
        """What stands before the first product, and that; with ``pending`` wait and give its place back."""
        self.block(self.context, self.layouts, self.parts.before)
        self._start(_FIRST, self.parts.first)
        if pending is not None:
            wait_products(self.context, pending)
            self.give_back(_FIRST)

    def start_second(self) -> None:
        """The second product."""
        self._start(_SECOND, self.parts.second)

    def _start(self, arrival: int, product: Gemm) -> None:
        context = self.context
        context.mark(product.operation)
        stage = tirx.Var(context.fresh(f"{product.b.buffer.name}_stage"), "int32")
        bind_range(context.analyzer, stage, 0, self.ring.stages)
        context.emit(tirx.Bind(stage, self.rings.stage(self.loop, arrival)))
        self.rings.wait(self.loop, arrival, full(context, self.ring, arrival, stage))
        tiles = {copy.target.buffer.name for copy in self.ring.arrivals[arrival].loads}

        def at_stage(region: Region, known: Any) -> Any:
            return stage if region.buffer.name in tiles else known

        staged = dataclasses.replace(
            product, a_stage=at_stage(product.a, product.a_stage), b_stage=at_stage(product.b, product.b_stage)
        )
        lower_wgmma(context, staged, self.layouts.gemms[product.operation], wait=False)

    def give_back(self, arrival: int) -> None:
        """The place of an arrival, whose product has ended; the next one is due."""
        stage = tirx.Var(self.context.fresh("done"), "int32")
        bind_range(self.context.analyzer, stage, 0, self.ring.stages)
        self.context.emit(tirx.Bind(stage, self.rings.stage(self.loop, arrival)))
        release(self.context, self.ring, arrival, stage)
        self.rings.step(self.loop, stage, arrival)

    def work(self) -> None:
        """What stands between the products.  In front of what touches the second one's registers its predecessor has ended."""
        waited = False
        for statement in self.parts.work:
            if not waited and _touches(self.context.program, statement, self.parts.second):
                self._finish_second()
                waited = True
            self.block(self.context, self.layouts, (statement,))
        if not waited:
            self._finish_second()

    def _finish_second(self) -> None:
        """In all iterations but the first a second product is under way."""
        context = self.context
        context.mark(self.parts.second.operation)
        wait_products(context, 0)
        with context.nested() as body:
            self.give_back(_SECOND)
        context.emit(tirx.IfThenElse(tirx.GT(self.loop.variable, index(self.loop.start)), sequence(body), None))
