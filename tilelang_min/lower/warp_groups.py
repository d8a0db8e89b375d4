"""Kernels with a producer: the prologue, the two roles, and persistent blocks.

The thread program (for two consumer groups)::

    if threadIdx.x == 0: initialise the mbarriers of all rings
    barrier
    if threadIdx.x // 128 == 2:             # the producer, behind the author's threads
        give registers away
        if threadIdx.x % 128 == 0: ask for the tiles of all iterations
    else:
        take registers
        everything else, with barriers among the consumers alone

A persistent block runs both bodies for tile after tile of the grid; the producer is ahead, so that the loads of the next tile
overlap the end of this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import MOST, as_int, bind_range, index, uses
from tilelang_min.ir.hopper import RingLoop
from tilelang_min.ir.nodes import Copy, Gemm, TileProgram, walk
from tilelang_min.ir.plans import Layouts
from tilelang_min.lower.cluster_sum import begin, come_along
from tilelang_min.lower.context import Context, sequence
from tilelang_min.lower.overlap import overlap_of
from tilelang_min.lower.rings import Block, Pairs, Rings, initialise, produce, ring_loops, ring_of
from tilelang_min.lower.tma import TensorMaps, halves
from tilelang_min.lower.tma_store import finish_stores
from tilelang_min.targets.wgmma import GROUP_THREADS, register_shares

Tiles = Callable[[Context, Any], tuple[Any, Any, Any]]


def lower_roles(context: Context, layouts: Layouts, maps: TensorMaps, block: Block, tiles: Tiles | None) -> None:
    """The whole body of a kernel with rings; ``tiles`` (persistent blocks) gives the block indices of a number of the grid."""
    program = context.program
    loops = ring_loops(program.body)
    consumers = program.threads
    context.emit(tirx.IfThenElse(tirx.EQ(context.thread, 0), _initialised(context, loops, consumers), None))
    _all_meet(context)
    if context.split > 1:
        begin(context)
    registers = register_shares(context.target.registers, consumers // GROUP_THREADS)
    with context.nested() as producer:
        context.mark(0)
        if registers is not None:
            context.emit(tirx.Evaluate(ptx["setmaxnreg.dec.sync.aligned.u32"](registers[0])))
        with context.nested() as elected:
            rings = Rings(context, loops, "producer", 1, set())
            if context.cluster > 1:
                rings.together = {id(copy) for copy in _common(context, loops, layouts.hopper.panel)}
            rings.start()
            _for_tiles(context, tiles, lambda renamed: produce(context, rings, maps, program.body, renamed), fresh=True)
        context.emit(tirx.IfThenElse(tirx.EQ(context.thread % GROUP_THREADS, 0), sequence(elected), None))
        if context.split > 1:
            come_along(context)
    with context.nested() as consumer:
        context.mark(0)
        if registers is not None:
            context.emit(tirx.Evaluate(ptx["setmaxnreg.inc.sync.aligned.u32"](registers[1])))
        context.rings = Rings(context, loops, "consumer", 0, _overlapped(context, layouts, loops))
        context.rings.start()
        context.consumers = consumers

        def work(renamed: Pairs) -> None:
            block(context, layouts, program.body)
            if layouts.hopper.persistent and _shares(context, layouts):
                context.mark(0)
                context.barrier()

        _for_tiles(context, tiles, work, fresh=False)
        finish_stores(context)
        context.rings, context.consumers = None, None
    group = tirx.floordiv(context.thread, GROUP_THREADS)
    condition = tirx.EQ(group, consumers // GROUP_THREADS)
    context.emit(tirx.IfThenElse(condition, sequence(producer), sequence(consumer)))
    if context.cluster > 1:  # the other block may still write, and arrive, here
        context.mark(0)
        _all_meet(context)


def _all_meet(context: Context) -> None:
    """All threads of the block, or of the cluster."""
    if context.cluster == 1:
        context.emit(tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared")))
        return
    context.emit(tirx.Evaluate(ptx["barrier.cluster.arrive.release"]()))
    context.emit(tirx.Evaluate(ptx["barrier.cluster.wait.acquire"]()))


def _overlapped(context: Context, layouts: Layouts, loops: list[RingLoop]) -> set[int]:
    """Loops of which one arrival is taken a stage ahead of the other."""
    return {loop.operation for loop in loops if overlap_of(context.program, layouts, loop) is not None}


def _common(context: Context, loops: list[RingLoop], panel: tuple[int, str] | None) -> list[Copy]:
    """Loads that are the same for the blocks of a cluster, which differ in one index of the grid."""
    bx, by, _ = context.program.block_variables
    variable = by if panel is None or panel[1] == "row" else bx
    return [
        copy
        for loop in loops
        for copy in ring_of(loop).loads
        if halves(context, copy) and not any(uses(item, variable) for item in copy.source.offsets)
    ]


def needs_fences(program: TileProgram, layouts: Layouts) -> bool:
    """Whether products of warp groups read tiles that ordinary stores write: those of no ring."""
    own = _ring_tiles(ring_loops(program.body))
    products = [
        item for item in walk(program.body) if isinstance(item, Gemm) and layouts.gemms[item.operation].kind == "wgmma"
    ]
    return any(region.buffer.name not in own for item in products for region in (item.a, item.b))


def _ring_tiles(loops: list[RingLoop]) -> set[str]:
    """Names of the tiles that rings fill."""
    return {copy.target.buffer.name for loop in loops for copy in ring_of(loop).loads}


def _initialised(context: Context, loops: list[RingLoop], consumers: int) -> Any:
    with context.nested() as body:
        for loop in loops:
            initialise(context, ring_of(loop), consumers)
        context.emit(tirx.Evaluate(ptx["fence.mbarrier_init.release.cluster"]()))
    return sequence(body)


def _shares(context: Context, layouts: Layouts) -> bool:
    """Whether there are tiles, other than those of rings and stores, that the next turn of a persistent block writes again."""
    loops = ring_loops(context.program.body)
    own = _ring_tiles(loops) | {ring_of(loop).barriers.name for loop in loops}
    own |= {store.tile.name for store in layouts.hopper.stores.values()}
    return any(buffer.scope == "shared" and buffer.name not in own for buffer in context.program.buffers)


def _for_tiles(context: Context, tiles: Tiles | None, body: Callable[[Pairs], None], *, fresh: bool) -> None:
    """``body`` for the block's own place in the grid, or for all tiles of a persistent block.

    ``fresh``: under other names of the block indices, which ``body`` gets as pairs.
    """
    if tiles is None:
        body([])
        return
    renamed: Pairs = []
    count, blocks = context.tiles, context.launched[0]
    known = as_int(count)
    if known is not None and blocks == known * context.split:
        tile = context.block if context.split == 1 else tirx.truncdiv(context.block, index(context.split))
        _place(context, tiles, tile, renamed, fresh=fresh)
        body(renamed)
        return
    turn = tirx.Var(context.fresh("turn"), "int32")
    bind_range(context.analyzer, turn, 0, MOST if known is None else -(-known // blocks))
    with context.nested() as inner:
        context.mark(0)
        tile = tirx.Var(context.fresh("tile"), "int32")
        bind_range(context.analyzer, tile, 0, MOST if known is None else known)
        context.emit(tirx.Bind(tile, context.block + turn * blocks))
        _place(context, tiles, tile, renamed, fresh=fresh)
        body(renamed)
    turns = tirx.truncdiv(index(count + blocks - 1) - context.block, index(blocks))
    context.emit(tirx.For(turn, index(0), turns, tirx.ForKind.SERIAL, sequence(inner)))


def _place(context: Context, tiles: Tiles, tile: Any, renamed: Pairs, *, fresh: bool) -> None:
    """Name the block indices of a tile."""
    program = context.program
    for variable, extent, value in zip(program.block_variables, program.grid, tiles(context, tile), strict=True):
        name = variable
        if fresh:
            name = tirx.Var(context.fresh(f"{variable.name}_ahead"), "int32")
            bind_range(context.analyzer, name, 0, extent)
            renamed.append((variable, name))
        context.emit(tirx.Bind(name, index(value)))
