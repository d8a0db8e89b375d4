"""Loops of matrix products whose operands are read from shared memory one step ahead, also across the end of an iteration.

Before, with two steps along K in a tile (``transform/pipeline.py`` made the loop)::

    for k in serial(n):
        wait(S - 2 pending); barrier
        if k + S - 1 < n: copies(k + S - 1)
        commit
        read(step 0 of tile k); multiply(step 0); read(step 1); multiply(step 1)

After, with two sets of operand registers that the steps take in turns::

    wait(S - 2 pending); barrier
    read(step 0 of tile 0)
    if S - 1 < n: copies(S - 1), first part
    for k in serial(n):
        read(step 1); if k + S - 1 < n: copies(k + S - 1), second part
        commit
        multiply(step 0)
        wait(S - 2 pending); barrier
        if k + 1 < n: read(step 0 of tile k + 1)
        if k + S < n: copies(k + S), first part
        multiply(step 1)

At the barrier every thread has read the whole of tile k, so its stage is free at once, and the copies that fill it begin
there: all of them, or as many parts as the plan says, one in each of the steps that follow.  Nothing waits for the reads behind
the barrier but the products of the next iteration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import tirx

from tilelang_min.ir.expressions import as_int, index, substitute
from tilelang_min.ir.nodes import AsyncWait, Barrier, Conditional, Gemm, Loop, Region
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.gemm_mma import MatrixProduct
from tilelang_min.lower.marked import operation_of

Block = Callable[[Context, Layouts, tuple[Any, ...]], None]
"""Lowers statements."""


def lower_ahead(context: Context, layouts: Layouts, loop: Loop, block: Block) -> None:
    """The loop, of the form that ``transform/register_buffers.py`` looks for."""
    _Writer(context, layouts, loop, block).write()


class _Writer:
    """The parts of one loop.  A step is a product and the number of its step."""

    def __init__(self, context: Context, layouts: Layouts, loop: Loop, block: Block) -> None:
        loop = dataclasses.replace(loop, start=context.bound(loop.start), extent=context.bound(loop.extent))
        self.context, self.layouts, self.loop, self.block = context, layouts, loop, block
        self.wait, self.barrier, self.copies, self.commit, *products = loop.body
        self.products = [
            (item, MatrixProduct(context, item, layouts.gemms[item.operation], 2))
            for item in products
            if isinstance(item, Gemm)
        ]
        self.parts = layouts.ahead.loops[loop.operation]
        self.steps = [(gemm, made, step) for gemm, made in self.products for step in range(made.steps)]

    def write(self) -> None:
        """Everything."""
        context, loop = self.context, self.loop
        assert isinstance(self.wait, AsyncWait)
        assert isinstance(self.barrier, Barrier)
        context.mark(loop.operation)
        extent = as_int(context.simplify(loop.extent))
        if extent is None or extent < 1:
            with context.nested() as first:
                self.meet()
                self.read(0, ahead=True, iteration=loop.start)
            context.emit(tirx.IfThenElse(tirx.GT(index(loop.extent), 0), sequence(first), None))
        else:
            self.meet()
            self.read(0, ahead=True, iteration=loop.start)
        for item in self.part(0, index(loop.start)):
            context.emit(item)
        with context.nested() as body:
            context.mark(loop.operation)
            self.iteration()
        context.mark(loop.operation)  # the loop is no part of the copy that stands in front of it
        context.emit(
            tirx.For(loop.variable, index(loop.start), index(loop.extent), tirx.ForKind.SERIAL, sequence(body))
        )
        context.mark(loop.operation)

    def iteration(self) -> None:
        """The body."""
        context, variable, last = self.context, self.loop.variable, len(self.steps) - 1
        for number, (gemm, made, step) in enumerate(self.steps):
            if step == 0:
                context.mark(gemm.operation)
                self.clear(gemm, made)
                made.begin()  # which may take a copy of them
            if number < last:
                self.read(number + 1)
                for item in self.part(number + 1, variable):
                    context.emit(item)
                if number == last - 1:
                    self.block(context, self.layouts, (self.commit,))
            else:
                self.meet()
                with context.nested() as following:
                    self.read(0, ahead=True, iteration=variable + 1)
                more = variable + 1 < self.loop.start + self.loop.extent
                context.emit(tirx.IfThenElse(more, sequence(following), None))
                for item in self.part(0, variable + 1):
                    context.emit(item)
            context.mark(gemm.operation)
            made.multiply(step)
            if step == made.steps - 1:
                made.end()

    def clear(self, gemm: Gemm, made: MatrixProduct) -> None:
        """Zeros, where the product does not add to what is there."""
        if gemm.clear:
            c = self.context.storage[gemm.c.buffer.name]
            for register in range(made.layout.registers):
                zero = tirx.const(0, gemm.c.buffer.tvm_dtype)
                self.context.emit(tirx.BufferStore(c, zero, [tirx.IntImm("int32", register)]))

    def meet(self) -> None:
        """The tile whose step 0 is read next has arrived, and the one before has been read by all."""
        self.block(self.context, self.layouts, (self.wait, self.barrier))

    def read(self, number: int, *, ahead: bool = False, iteration: Any = None) -> None:
        """Operands of a step, of this iteration or of ``iteration``."""
        gemm, made, step = self.steps[number]
        self.context.mark(gemm.operation)
        made.read(step, self.at(gemm, iteration) if ahead else gemm)

    def at(self, gemm: Gemm, iteration: Any) -> Gemm:
        """A product as it is in another iteration."""
        moved = [(self.loop.variable, index(iteration))]

        def region(one: Region) -> Region:
            return dataclasses.replace(one, offsets=tuple(_moved(item, moved) for item in one.offsets))

        return dataclasses.replace(
            gemm,
            a=region(gemm.a),
            b=region(gemm.b),
            a_stage=_moved(gemm.a_stage, moved),
            b_stage=_moved(gemm.b_stage, moved),
        )

    def part(self, number: int, iteration: Any) -> list[Any]:
        """Part ``number`` of the copies that iteration ``iteration`` starts."""
        context, copies = self.context, self.copies
        assert isinstance(copies, Conditional)
        condition, known = context.condition(copies.condition)
        with context.assuming(known), context.nested() as whole:
            self.block(context, self.layouts, copies.then)
        flat: list[tuple[Any, Any]] = []  # markers and what they mark
        marker = None
        for item in whole:
            if operation_of(item) is not None:
                marker = item
            else:
                flat.append((marker, item))
        # What goes through registers is one piece.
        parts = self.parts if all(isinstance(item, tirx.Evaluate) for _, item in flat) else 1
        share = -(-len(flat) // parts)
        mine = flat[number * share : (number + 1) * share]
        if not mine:
            return []
        body: list[Any] = []
        marker = None
        for mark, item in mine:
            if mark is not marker:
                body.append(mark)
                marker = mark
            body.append(item)
        context.mark(copies.operation)
        branch = tirx.IfThenElse(condition, sequence(body), None)
        variable = self.loop.variable

        def replace(found: Any) -> Any:
            return index(iteration) if found.same_as(variable) else found

        return [tvm_ffi.structural_map(branch, (tirx.Var, replace))]


def _moved(value: Any, moved: list[tuple[Any, Any]]) -> Any:
    return None if value is None else substitute(index(value), moved)
