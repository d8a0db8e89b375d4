"""Fragments to tensors through a staging tile and the tensor memory accelerator; ``transform/tma_stores.py`` says when.

Each warp group, for every 64 rows by a panel of columns of its part of the fragment::

    one thread waits until the copy of the tile that is now due has been read
    the group meets
    every thread writes its elements into the tile
    stores become visible to the copy engine; the group meets
    one thread asks for the transport
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Copy
from tilelang_min.ir.plans import Layouts, StagedStore
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.lower.context import CONSUMER_BARRIER, Context, sequence
from tilelang_min.lower.tma import TensorMaps
from tilelang_min.targets.wgmma import GROUP_THREADS, ROWS


def store_fragment(context: Context, maps: TensorMaps, layouts: Layouts, copy: Copy) -> None:
    """One ``T.copy(fragment, tensor[..])``."""
    layout, plan = layouts.fragments[copy.source.buffer.name], layouts.hopper.stores[id(copy)]
    assert isinstance(layout, WarpgroupLayout)
    context.mark(copy.operation)
    context.stored = True
    groups = layout.groups_of_warps[0] * layout.groups_of_warps[1]
    copies = plan.tile.shape[0] // (groups * ROWS)
    panels = layout.tiles[1] * layout.columns // plan.columns
    places = [(tile_row, panel) for tile_row in range(layout.tiles[0]) for panel in range(panels)]
    # The copies of the tile take turns, also from one tile of a persistent block to the next; where that does not come out
    # even, or others use the tile too, a statement begins when all have been read.
    alone = sum(store.tile is plan.tile for store in layouts.hopper.stores.values()) == 1
    even = alone and len(places) % copies == 0
    for number, place in enumerate(places):
        pending = copies - 1 if even or number else 0
        _chunk(context, maps, copy, layout, plan, place, number % copies, copies, pending)


def finish_stores(context: Context) -> None:
    """Shared memory must not go before all of it has been read."""
    if context.stored:
        _by_one(context, lambda: context.emit(tirx.Evaluate(ptx["cp.async.bulk.wait_group.read"](0))))


def _by_one(context: Context, body: Callable[[], None]) -> None:
    """By the first thread of each warp group."""
    operation = context.marked
    with context.nested() as inside:
        context.inherit(operation)
        body()
    context.inherit(operation)
    context.emit(tirx.IfThenElse(tirx.EQ(context.thread % GROUP_THREADS, 0), sequence(inside), None))


def _meet(context: Context) -> None:
    """The threads of a warp group meet, at a barrier of its own."""
    number = tirx.Cast("uint32", context.thread // GROUP_THREADS + (CONSUMER_BARRIER + 1))
    context.emit(tirx.Evaluate(ptx["bar.sync"](number, tirx.IntImm("uint32", GROUP_THREADS))))


def _chunk(
    context: Context,
    maps: TensorMaps,
    copy: Copy,
    layout: WarpgroupLayout,
    plan: StagedStore,
    place: tuple[int, int],
    number: int,
    copies: int,
    pending: int,
) -> None:
    tile_row, panel = place
    group = context.thread // GROUP_THREADS
    first_row = (group * copies + number) * ROWS  # of the group's copy in the staging tile
    _by_one(context, lambda: context.emit(tirx.Evaluate(ptx["cp.async.bulk.wait_group.read"](pending))))
    _meet(context)
    _write(context, copy, layout, plan, place, first_row)
    context.emit(tirx.Evaluate(ptx["fence.proxy.async.shared::cta"]()))
    _meet(context)
    row, column = layout.start(group)
    tensor, region = copy.target.buffer, copy.target
    wide = [axis for axis, extent in enumerate(region.extents) if extent != 1]
    box = [1] * len(tensor.shape)
    offsets = list(region.offsets)
    for axis, extent, offset in zip(
        wide, (ROWS, plan.columns), (row + tile_row * ROWS, column + panel * plan.columns), strict=True
    ):
        box[axis], offsets[axis] = extent, offsets[axis] + offset
    variable = maps.variable(tensor, tuple(box), context.layout_of(plan.tile).swizzle_bytes)

    def send() -> None:
        name = f"cp.async.bulk.tensor.{len(box)}d.global.shared::cta.tile.bulk_group"
        source = context.storage[plan.tile.name].ptr_to([index(context.simplify(first_row * plan.columns))])
        coordinates = [index(context.simplify(item)) for item in reversed(offsets)]
        context.emit(tirx.Evaluate(ptx[name](tirx.address_of(variable), *coordinates, source)))
        context.emit(tirx.Evaluate(ptx["cp.async.bulk.commit_group"]()))

    _by_one(context, send)


def _write(
    context: Context, copy: Copy, layout: WarpgroupLayout, plan: StagedStore, place: tuple[int, int], first_row: Any
) -> None:
    """The thread's elements of the chunk, in pairs of neighbours, converted to the tensor's type."""
    tile_row, panel = place
    dtype, held = copy.target.buffer.tvm_dtype, context.storage[copy.source.buffer.name]
    per_instruction = layout.columns // plan.columns
    tile_column, part = divmod(panel, per_instruction)
    items = ROWS * plan.columns // GROUP_THREADS
    start = layout.register(tile_row, tile_column, part * items)
    own = WarpgroupLayout((ROWS, plan.columns), (1, 1), (1, 1), plan.columns)
    staging = context.storage[plan.tile.name]
    for item in range(0, items, 2):
        pair = context.registers("pair", dtype, 2)
        for side in range(2):
            value = held[start + item + side]
            if copy.source.buffer.dtype != copy.target.buffer.dtype:
                value = tirx.Cast(dtype, value)
            context.emit(tirx.BufferStore(pair, value, [index(side)]))
        row, column = own.position(context.thread % GROUP_THREADS, item)
        element = index(context.element(plan.tile, (first_row + row, column)))
        both = tirx.BufferLoad(pair, [tirx.Ramp(index(0), 1, 2)])
        context.emit(tirx.BufferStore(staging, both, [tirx.Ramp(element, 1, 2)]))
