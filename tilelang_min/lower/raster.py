"""The order in which the blocks of a grid start, so that those that run together share rows and columns in the cache.

For panels of p rows of a grid gx wide, block number b stands at::

    panel = b // (p * gx);  place = b % (p * gx);  rows = min(p, gy - panel * p)
    bx = place // rows;  by = panel * p + place % rows
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx

from tilelang_min.ir.expressions import as_int, index
from tilelang_min.lower.context import Context


def in_panels(block: Any, grid: tuple[int, int], panel: tuple[int, str]) -> tuple[Any, Any]:
    """(bx, by) of a block of a two-dimensional grid; ``panel`` as TileProgram's: its size, ``row`` or ``column``."""
    size, order = panel
    length, extent = grid if order == "row" else (grid[1], grid[0])
    known = as_int(extent)
    size = size if known is None else min(size, known)
    number, place = block // (size * length), block % (size * length)
    rows = size if known is not None and known % size == 0 else tirx.Min(size, extent - number * size)
    along, across = tirx.floordiv(place, rows), number * size + tirx.floormod(place, rows)
    return (along, across) if order == "row" else (across, along)


def tile_of(context: Context, tile: Any, *, panel: tuple[int, str] | None) -> tuple[Any, Any, Any]:
    """Block indices of tile number ``tile`` of the program's grid."""
    gx, gy, gz = context.program.grid
    bz: Any = index(0)
    if as_int(gz) != 1:
        bz, tile = tirx.truncdiv(tile, index(gx * gy)), tirx.truncmod(tile, index(gx * gy))
    if as_int(gx) == 1 or as_int(gy) == 1:
        return (index(0), tile, bz) if as_int(gx) == 1 else (tile, index(0), bz)
    if panel is None:
        return tirx.truncmod(tile, index(gx)), tirx.truncdiv(tile, index(gx)), bz
    bx, by = in_panels(tile, (gx, gy), panel)
    if context.program.sizes:  # of a grid that is known at launch these take divisions
        bx, by = truncated(bx), truncated(by)
    return bx, by, bz


def truncated(value: Any) -> Any:
    """A value that is never negative, in none of its parts, with the divisions of the machine."""
    exchange = [
        (tirx.FloorDiv, lambda node: tirx.truncdiv(node.a, node.b)),
        (tirx.FloorMod, lambda node: tirx.truncmod(node.a, node.b)),
    ]
    return tvm_ffi.structural_map(index(value), exchange)
