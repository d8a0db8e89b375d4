"""Accumulators that the blocks of a cluster add up through their shared memory; ``transform/split.py`` says when.

Every block has the sums of its share of the iterations.  The first ``parts`` of them (mostly all) keep a part of the columns
each::

    at the start    every thread arrives at the cluster's barrier
    behind the loop it waits there, so that all blocks run
                    for each other block that keeps a part: my registers of that part -> its scratch, as 16 bytes a thread
                    arrive and wait: all that was sent is there
                    my part += what the others sent, one after the other in their order

Thread t of one block holds the same elements as thread t of another, so a register goes to the same thread there, and neighbouring
threads write neighbouring bytes.  The order of the sums is the same in every launch.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.tirx import cuda, ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.hopper import ClusterSum
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.lower.context import Context, sequence

_WIDTH, _BYTES = 4, 16
"""Registers that travel together, and their bytes."""


def begin(context: Context) -> None:
    """Every thread says that its block runs."""
    context.emit(tirx.Evaluate(ptx["barrier.cluster.arrive.relaxed"]()))


def come_along(context: Context) -> None:
    """What threads do at the cluster's barriers that have nothing to add up."""
    context.emit(tirx.Evaluate(ptx["barrier.cluster.wait.acquire"]()))
    _all_meet(context)


def _all_meet(context: Context) -> None:
    context.emit(tirx.Evaluate(ptx["barrier.cluster.arrive.release"]()))
    context.emit(tirx.Evaluate(ptx["barrier.cluster.wait.acquire"]()))


def registers_of(layout: WarpgroupLayout, parts: int, part: int) -> list[int]:
    """The registers that hold part ``part`` of the columns, in the order of the registers of the part's own layout."""
    size = layout.items // parts
    return [tile * layout.items + part * size + item for tile in range(layout.tiles[0]) for item in range(size)]


def sum_over_cluster(context: Context, layouts: Layouts, total: ClusterSum) -> None:
    """The exchange; afterwards the target holds the sums."""
    layout, split = layouts.fragments[total.source.name], total.split
    assert isinstance(layout, WarpgroupLayout)
    held, kept = context.storage[total.source.name], context.storage[total.target.name]
    scratch, threads = context.storage[total.scratch.name], layout.threads
    if split.parts == 1:
        parts = [list(range(layout.registers))]
    else:
        parts = [registers_of(layout, split.parts, part) for part in range(split.parts)]
    groups = len(parts[0]) // _WIDTH
    rank = split.rank
    context.mark(total.operation)
    context.emit(tirx.Evaluate(ptx["barrier.cluster.wait.acquire"]()))
    for part, registers in enumerate(parts):
        with context.nested() as sending:
            context.mark(total.operation)
            _send(context, held, registers, scratch, part, rank, threads)
        context.emit(tirx.IfThenElse(tirx.NE(rank, part), sequence(sending), None))
    context.mark(total.operation)
    _all_meet(context)
    if split.parts > 1:
        for part, registers in enumerate(parts):
            own = [tirx.BufferStore(kept, held[register], [index(item)]) for item, register in enumerate(registers)]
            context.emit(tirx.IfThenElse(tirx.EQ(rank, part), sequence(own), None))
    with context.nested() as adding:
        context.mark(total.operation)
        for slot in range(split.count - 1):
            for group in range(groups):
                arrived = context.registers("arrived", "float32", _WIDTH)
                at = context.simplify(((slot * groups + group) * threads + context.thread) * _WIDTH)
                load = tirx.BufferLoad(scratch, [tirx.Ramp(index(at), 1, _WIDTH)])
                context.emit(tirx.BufferStore(arrived, load, [tirx.Ramp(index(0), 1, _WIDTH)]))
                for item in range(_WIDTH):
                    number = group * _WIDTH + item
                    context.emit(tirx.BufferStore(kept, kept[number] + arrived[item], [index(number)]))
    body = sequence(adding)
    context.emit(body if split.parts == split.count else tirx.IfThenElse(tirx.LT(rank, split.parts), body, None))
    context.mark(total.operation)


def _send(context: Context, held: Any, registers: list[int], scratch: Any, part: int, rank: Any, threads: int) -> None:
    """The registers of a part to the block that keeps it, into the place for what this block sends."""
    there = context.array("there", "uint32", 1)
    start = cuda.cvta_generic_to_shared(scratch.ptr_to([index(0)]))
    context.emit(tirx.Evaluate(ptx["mapa.shared::cluster.u32"](there[0], start, tirx.IntImm("uint32", part))))
    slot = rank - tirx.Cast("int32", tirx.GT(rank, part))
    groups = len(registers) // _WIDTH
    offset = (slot * (groups * threads) + context.thread) * _BYTES
    place = tirx.Var(context.fresh("place"), "uint32")
    context.emit(tirx.Bind(place, there[0] + tirx.Cast("uint32", index(offset))))
    for group in range(groups):
        values = [held[register] for register in registers[group * _WIDTH : (group + 1) * _WIDTH]]
        at = place + tirx.IntImm("uint32", group * threads * _BYTES) if group else place
        context.emit(tirx.Evaluate(ptx["st.shared::cluster.v4.f32"](at, *values)))
