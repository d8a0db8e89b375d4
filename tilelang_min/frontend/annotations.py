"""``T.annotate_layout``: shared tiles whose layout the author chooses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tilelang_min.errors import LayoutError
from tilelang_min.ir.nodes import Buffer
from tilelang_min.ir.shared_layout import TMA_SHIFTS, UNIT_BYTES, SharedLayout
from tilelang_min.language import Construct
from tilelang_min.program.dtypes import dtype_bytes

if TYPE_CHECKING:
    from tilelang_min.frontend.statements import StatementParser

_REMEDY = "write T.annotate_layout({A_shared: T.rows()}) or {A_shared: tilelang.layout.make_swizzled_layout(A_shared)}"


def annotate_layout(parser: StatementParser, node: ast.Call, function: Construct) -> None:
    """``T.annotate_layout({tile: layout, ...})``: enters the layouts in ``parser.pinned``."""
    given = parser.arguments(node, function, ("layouts",), 1)
    table = given["layouts"]
    if not isinstance(table, ast.Dict):
        raise parser.error(table, "T.annotate_layout takes a dictionary of tiles and layouts", _REMEDY)
    for key, value in zip(table.keys, table.values, strict=True):
        tile = None if key is None else parser.evaluator.raw(key)
        if key is None or not isinstance(tile, Buffer):
            raise parser.error(key or table, "only tiles have layouts", _REMEDY)
        if tile.scope != "shared":
            raise parser.error(
                key,
                f"{tile.name} is a tensor: its elements lie row by row"
                if tile.scope == "global"
                else f"{tile.name} is a {tile.scope} tile: its layout follows from how it is used",
                "leave it out, here and in the kernel that reads the tensor"
                if tile.scope == "global"
                else "pin shared tiles alone; of a matrix product choose the warps with policy=T.GemmWarpPolicy.FullRow",
            )
        layout = _layout(parser, value, tile)
        known = parser.pinned.setdefault(tile.name, layout)
        if known != layout:
            raise parser.error(
                value,
                f"{tile.name} has been given another layout before: {known.describe()}",
                "give a tile one layout",
                LayoutError,
            )


def _layout(parser: StatementParser, node: ast.expr, tile: Buffer) -> SharedLayout:
    function = parser.evaluator.raw(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, Construct) or function.kind != "layout":
        raise parser.error(node, f"{parser.source.segment(node)} is no layout of a shared tile", _REMEDY)
    size = dtype_bytes(tile.dtype)
    if function.name == "rows":
        given = parser.arguments(node, function, ("padding",), 0)
        padding = parser.evaluator.integer(given["padding"], "padding", 0) if "padding" in given else 0
        return SharedLayout.plain(tile.shape, size, padding)
    given = parser.arguments(node, function, ("tile", "swizzle_bytes"), 1)
    if parser.evaluator.raw(given["tile"]) is not tile:
        raise parser.error(given["tile"], f"this layout is made for another tile than {tile.name}", f"pass {tile.name}")
    row_bytes = tile.shape[-1] * size
    wanted = parser.evaluator.integer(given["swizzle_bytes"], "swizzle_bytes") if "swizzle_bytes" in given else None
    for width, shift in TMA_SHIFTS.items():
        if row_bytes % width == 0 and wanted in (None, width):
            return SharedLayout.swizzled(tile.shape, size, shift, width // UNIT_BYTES - 1)
    raise parser.error(
        node,
        f"rows of {tile.name} are {row_bytes} bytes, a swizzle needs a multiple of {wanted or 32} (32, 64 or 128)",
        "pad it: T.rows(padding=...), or widen its shape",
        LayoutError,
    )


__all__ = ["annotate_layout"]
