"""Tiles by the tensor memory accelerator: one thread asks for boxes of a tensor, described by a map among the kernel's parameters.

A tile in panels travels as one box a panel: a box is at most as wide as its swizzle.  What is outside of the tensor comes as
zeros, and is not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import ir, tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Buffer, Copy, Expr, Region
from tilelang_min.ir.sizes import shape_of
from tilelang_min.lower.context import Context
from tilelang_min.program import TensorMap
from tilelang_min.program.tensor_maps import PROMOTIONS

SWIZZLE_ROWS = 8
"""Rows after which a swizzle repeats."""


class TensorMaps:
    """The maps of one kernel: one for each tensor, box and swizzle."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.maps: dict[TensorMap, Any] = {}
        self._names: dict[tuple[str, tuple[int, ...], int, int], TensorMap] = {}

    def variable(self, tensor: Buffer, box: tuple[int, ...], swizzle: int, promotion: int = PROMOTIONS[0]) -> Any:
        """The parameter that holds the map."""
        key = (tensor.name, box, swizzle, promotion)
        if key not in self._names:
            name = self.context.fresh(f"{tensor.name}_map")
            made = TensorMap(name, tensor.name, tensor.dtype, shape_of(tensor), box, swizzle, promotion)
            self._names[key] = made
            self.maps[made] = tirx.Var(name, ir.PointerType(tirx.type.TensorMapType()))
        return self.maps[self._names[key]]


def tile_bytes(context: Context, tile: Buffer) -> int:
    """Bytes that arrive with one whole tile."""
    layout = context.layout_of(tile)
    return layout.rows * layout.columns * layout.itemsize


def load_tile(
    context: Context,
    maps: TensorMaps,
    copy: Copy,
    offsets: tuple[Expr, ...],
    stage: Expr,
    barrier: Any,
    half: Expr = None,
) -> None:
    """Ask for the tile that ``copy`` brings from ``offsets`` of its tensor; ``barrier`` hears of its bytes.

    ``half`` (0 or 1): ask for that half of its rows, for both blocks of the cluster.
    """
    parts, part = (1, 0) if half is None else (2, half)
    layout = context.layout_of(copy.target.buffer)
    # The rest of what a row's box misses is fetched for the next iteration, unless boxes beside it bring that anyway.
    promotion = PROMOTIONS[1 if layout.columns > layout.panel else 0]
    for box, place, element in _boxes(context, copy.source, offsets, copy.target, stage, parts, part):
        variable = maps.variable(copy.source.buffer, box, layout.swizzle_bytes, promotion)
        name = f"cp.async.bulk.tensor.{len(box)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        target = context.storage[copy.target.buffer.name].ptr_to([index(element)])
        operands = [target, tirx.address_of(variable), *place, barrier]
        if half is not None:
            name += ".multicast::cluster"
            operands.append(tirx.IntImm("uint16", 3))
        context.emit(tirx.Evaluate(ptx[name](*operands)))


def halves(context: Context, copy: Copy) -> bool:
    """Whether the rows of a tile divide into two halves, each of whole swizzles."""
    layout, rows = context.layout_of(copy.target.buffer), copy.source.extents[:-1]
    return sum(extent != 1 for extent in rows) == 1 and layout.rows % (2 * SWIZZLE_ROWS) == 0


def _boxes(
    context: Context,
    tensor: Region,
    offsets: tuple[Expr, ...],
    tile: Region,
    stage: Expr,
    parts: int,
    part: Expr,
) -> Iterator[tuple[tuple[int, ...], list[Any], Expr]]:
    """For each panel of a tile: the box, its place in the tensor (innermost first), and its first element in shared memory."""
    layout = context.layout_of(tile.buffer)
    start = 0 if stage is None else index(stage) * layout.pitch
    box, first = [*tensor.extents[:-1], layout.panel], list(offsets)
    if parts > 1:
        axis = next(axis for axis, extent in enumerate(box[:-1]) if extent != 1)
        box[axis] //= parts
        first[axis] = first[axis] + part * box[axis]
        start = start + part * (box[axis] * layout.row_stride)
    for panel in range(layout.columns // layout.panel):
        place = [*first[:-1], first[-1] + panel * layout.panel]
        coordinates = [index(context.simplify(item)) for item in reversed(place)]
        yield tuple(box), coordinates, context.simplify(start + panel * layout.rows * layout.row_stride)
