"""``T.reduce_sum`` and its relatives: which tiles, which dimension, and what does not fit."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tilelang_min.errors import ShapeError
from tilelang_min.frontend.regions import tile_region
from tilelang_min.frontend.values import Access
from tilelang_min.ir.nodes import Buffer, Reduce, Region

if TYPE_CHECKING:
    from tilelang_min.frontend.statements import StatementParser
    from tilelang_min.language import Construct


def reduction(parser: StatementParser, node: ast.Call, function: Construct) -> Reduce:
    """``T.reduce_<kind>(buffer, out, dim=-1, clear=True)`` over one dimension of a fragment or shared tile.

    ``out`` is a fragment or shared tile without that dimension, or with extent 1 in it.
    """
    given = parser.arguments(node, function, ("buffer", "out", "dim", "clear"), 2)
    source = _tile(parser, given["buffer"], f"the tile of T.{function.name}")
    target = _tile(parser, given["out"], f"the result of T.{function.name}")
    rank = len(source.extents)
    axis = parser.evaluator.integer(given["dim"], "dim") if "dim" in given else -1
    if not -rank <= axis < rank:
        raise parser.error(
            given["dim"],
            f"{source.buffer.name} has {rank} dimension{'s' if rank > 1 else ''}, there is no dimension {axis}",
            f"use dim={-rank} to {rank - 1}",
            ShapeError,
        )
    axis %= rank
    kept = tuple(extent for place, extent in enumerate(source.extents) if place != axis)
    with_one = (*source.extents[:axis], 1, *source.extents[axis + 1 :])
    if target.extents not in (kept or (1,), with_one):
        raise parser.error(
            given["out"],
            f"reducing dimension {axis} of {source.buffer.name} {source.extents} gives {kept or (1,)}, "
            f"{target.buffer.name} is {target.extents}",
            f"allocate {target.buffer.name} with shape {kept or (1,)} or {with_one}",
            ShapeError,
        )
    if source.buffer is target.buffer:
        raise parser.error(given["out"], f"{source.buffer.name} is reduced into itself", "reduce into another tile")
    for name, dtype in (("buffer", source.buffer.dtype), ("out", target.buffer.dtype)):
        if dtype == "bool":
            raise parser.error(given[name], f"T.{function.name} has no meaning for bool", "cast to int32 first")
    clear = parser.evaluator.flag(given["clear"], "clear") if "clear" in given else True
    reads = (source.buffer.name, *(() if clear else (target.buffer.name,)))
    reads += parser.named(*source.offsets, *target.offsets)
    parser.note_reads(node, *source.offsets, *target.offsets)
    operation = parser.operation(node, "reduce", parser.source.segment(node), reads, (target.buffer.name,))
    return Reduce(operation, function.name.removeprefix("reduce_"), source, target, axis, clear)


def _tile(parser: StatementParser, node: ast.expr, what: str) -> Region:
    """A whole fragment, or a shared tile or slice of one."""
    value = parser.evaluator.raw(node)
    buffer = value.buffer if isinstance(value, Access) else value
    if not isinstance(buffer, Buffer) or buffer.scope not in ("fragment", "shared"):
        scope = {"global": "in global memory", "local": "local to each thread"}
        is_what = f"{buffer.name} is {scope[buffer.scope]}" if isinstance(buffer, Buffer) else "this is no tile"
        raise parser.error(
            node,
            f"{what} must be a fragment or a shared tile, {is_what}",
            "T.copy it into a fragment first" if what.startswith("the tile") else "allocate it with T.alloc_fragment",
        )
    region = tile_region(parser.evaluator, node, what, len(buffer.shape))
    if buffer.scope == "fragment" and region.extents != buffer.shape:
        raise parser.error(
            node, f"{what} must be a whole fragment, not a slice of one", "copy the slice through a shared tile"
        )
    return region


__all__ = ["reduction"]
