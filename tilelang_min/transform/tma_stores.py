"""Results that leave by the tensor memory accelerator: fragments of warp group products go through a staging tile.

``T.copy(C_local, C[..])`` from registers would write 4 or 8 bytes a thread, scattered over 8 rows, each under a condition where
the tensor is ragged.  Instead every warp group writes 64 rows by at most 128 bytes into a swizzled tile of its own and asks for
their transport, which checks bounds by itself; meanwhile it goes on with the next columns in a second tile.

Such a copy is the only statement that touches the tensor, and stands in no loop: nothing has to wait until it has arrived.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tvm import tirx

from tilelang_min.analysis.regions import read, written
from tilelang_min.ir.nodes import Buffer, Conditional, Copy, Statement, TileProgram, walk
from tilelang_min.ir.plans import Layouts, StagedStore
from tilelang_min.ir.shared_layout import TMA_SHIFTS, SharedLayout, placed
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target
from tilelang_min.targets.wgmma import ROWS
from tilelang_min.transform.hopper import no_map
from tilelang_min.transform.hopper_products import is_whole

_MOST_COPIES = 2
_WIDTHS = tuple(TMA_SHIFTS)


def stage_stores(program: TileProgram, layouts: Layouts, target: Target, *, allowed: bool) -> TileProgram:
    """The program with the staging tiles it needs; which copies use them stands in ``layouts.hopper.stores``."""
    plan = layouts.hopper
    if not plan.gemms or not allowed:
        return program
    tiles: dict[tuple[str, int], Buffer] = {}
    for copy in _outside_loops(program.body):
        if copy.source.buffer.scope != "fragment" or copy.target.buffer.scope != "global":
            continue
        layout = layouts.fragments.get(copy.source.buffer.name)
        if not isinstance(layout, WarpgroupLayout):
            continue
        reason = _no_store(program, copy, layout)
        label = program.operations[copy.operation].label
        if reason is not None:
            plan.notes.append(f"{label}: stores from registers: {reason}")
            continue
        tensor = copy.target.buffer
        width = next(each for each in _WIDTHS if layout.columns * dtype_bytes(tensor.dtype) % each == 0)
        tile = tiles.get((tensor.dtype, width))
        if tile is None:
            tile = _tile(program, layouts, layout, tensor, width, target, list(tiles.values()))
            if tile is None:
                plan.notes.append(f"{label}: stores from registers: shared memory is full")
                continue
            tiles[tensor.dtype, width] = tile
        plan.stores[id(copy)] = StagedStore(tile, width // dtype_bytes(tensor.dtype))
    return dataclasses.replace(program, buffers=(*program.buffers, *tiles.values()))


def _outside_loops(body: tuple[Statement, ...]) -> Iterator[Copy]:
    for statement in body:
        if isinstance(statement, Copy):
            yield statement
        elif isinstance(statement, Conditional):
            yield from _outside_loops(statement.then)
            yield from _outside_loops(statement.otherwise)


def _no_store(program: TileProgram, copy: Copy, layout: WarpgroupLayout) -> str | None:
    """Why a copy cannot go this way; None: it can."""
    tensor, size = copy.target.buffer, dtype_bytes(copy.target.buffer.dtype)
    if not is_whole(copy.source):
        return f"it writes a part of {copy.source.buffer.name}"
    if size not in (2, 4):
        return f"elements of {tensor.name} have {size} bytes"
    reason = no_map(tensor)
    if reason is not None:
        return reason
    if copy.target.tile_extents != layout.shape or copy.target.extents[-1] != layout.shape[-1]:
        return f"rows of {copy.source.buffer.name} do not run along rows of {tensor.name}"
    if layout.columns * size % _WIDTHS[-1]:
        return f"{layout.columns} columns are no multiple of {_WIDTHS[-1]} bytes"
    touching = [item for item in walk(program.body) if tensor in written(item) or tensor in read(program, item)]
    if touching != [copy]:
        return f"other statements read or write {tensor.name}"
    return None


def _tile(
    program: TileProgram,
    layouts: Layouts,
    layout: WarpgroupLayout,
    tensor: Buffer,
    width: int,
    target: Target,
    others: list[Buffer],
) -> Buffer | None:
    """A tile of two copies for every warp group, or one where no more fit; None where none does."""
    size = dtype_bytes(tensor.dtype)
    alignment = SharedLayout.panels((ROWS, width // size), size, width).alignment
    used = -(-_used(program, layouts, others) // alignment) * alignment
    groups = layout.groups_of_warps[0] * layout.groups_of_warps[1]
    for copies in range(_MOST_COPIES, 0, -1):
        shape = (groups * copies * ROWS, width // size)
        if used + shape[0] * width > target.shared.block_limit:
            continue
        name = program.unused(f"{tensor.name}_staging", others)
        layouts.shared[name] = SharedLayout.panels(shape, size, width)
        return Buffer(
            name, shape, tensor.dtype, "shared", tensor.location, tirx.decl_buffer(shape, tensor.tvm_dtype, name)
        )
    return None


def _used(program: TileProgram, layouts: Layouts, others: list[Buffer]) -> int:
    """Bytes of all tiles with their stages, each where its layout may start."""
    tiles = [tile for tile in (*program.buffers, *others) if tile.scope == "shared"]
    places = [
        layouts.shared.get(tile.name) or SharedLayout.plain(tile.shape, dtype_bytes(tile.dtype)) for tile in tiles
    ]
    _, end = placed((layout, program.stages.get(tile.name, 1)) for tile, layout in zip(tiles, places, strict=True))
    return end
