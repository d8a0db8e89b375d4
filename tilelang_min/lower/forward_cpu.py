"""Copies that a CPU does not make: a tile that only products read is read where its tensor lies.

On a GPU a copy into shared memory puts data where all threads reach it.  A CPU's caches do that by themselves, so::

    copy A[rows, k0 : k0 + n] -> tile        ->        product of A[rows, k0 : k0 + n] and ...
    product of tile and ...

holds when nothing else reads or writes the tile, nothing writes the tensor, the copy converts nothing, and the whole box lies
inside the tensor (beyond its edges a tile holds zeros).  What a product needs in another order or type it packs by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilelang_min.ir.expressions import as_int, index, loads
from tilelang_min.ir.nodes import Copy, Expr, Gemm, Region, Statement
from tilelang_min.lower.context import Context


@dataclass(frozen=True)
class Matrix:
    """Elements of a flat buffer: (i, j) is at ``start + i * row + j * column``.

    ``operation`` is the tile operation that instructions which bring the elements elsewhere belong to; None: the user's.
    """

    buffer: Any
    dtype: str
    start: Expr
    row: int
    column: int
    operation: int | None = None

    def at(self, i: Expr, j: Expr) -> Any:
        """Element number of (i, j)."""
        return index(self.start + i * self.row + j * self.column)

    def turned(self) -> Matrix:
        """The same elements with rows and columns exchanged."""
        return Matrix(self.buffer, self.dtype, self.start, self.column, self.row, self.operation)


def forwarded(context: Context, statements: Sequence[Statement]) -> dict[str, Copy]:
    """The copies among ``statements`` that need not be made, by the name of their tile."""
    found: dict[str, Copy] = {}
    for place, copy in enumerate(statements):
        if not isinstance(copy, Copy) or copy.source.buffer.scope != "global" or copy.target.buffer.scope == "global":
            continue
        tile, tensor = copy.target.buffer, copy.source.buffer
        products = {
            item.operation
            for item in statements[place + 1 :]
            if isinstance(item, Gemm) and tile in (item.a.buffer, item.b.buffer) and tile is not item.c.buffer
        }
        operations = context.program.operations[1:]  # without the kernel, which writes its parameters
        users = {item.id for item in operations if tile.name in item.reads or tile.name in item.writes}
        if (
            products
            and users == products | {copy.operation}
            and tile.dtype == tensor.dtype
            and not any(tensor.name in item.writes for item in operations)
            and _whole(context, copy.target)
            and _rows(copy.source) is not None
            and _inside(context, copy.source)
        ):
            found[tile.name] = copy
    return found


def matrix(context: Context, region: Region, copies: dict[str, Copy]) -> Matrix:
    """The operand ``region`` of a product: a tile, or what its copy would have read."""
    tile = region.buffer
    copy = copies.get(tile.name)
    if copy is None:
        start = context.element(tile, region.offsets)
        return Matrix(context.storage[tile.name], tile.dtype, start, tile.shape[-1], 1)
    tensor = copy.source.buffer
    pitch = _rows(copy.source)
    assert pitch is not None  # so it was found
    start = context.element(tensor, copy.source.offsets) + region.offsets[0] * pitch + region.offsets[1]
    return Matrix(context.storage[tensor.name], tensor.dtype, context.simplify(start), pitch, 1, copy.operation)


def _whole(context: Context, region: Region) -> bool:
    """Whether a region is all of a tile with two dimensions, each of several elements."""
    return (
        len(region.extents) == 2
        and region.extents == region.buffer.shape
        and min(region.extents) > 1
        and all(as_int(context.simplify(offset)) == 0 for offset in region.offsets)
    )


def _rows(region: Region) -> int | None:
    """Elements from one row to the next of a region of two wide dimensions whose rows have no gaps; None for any other."""
    wide = [axis for axis, extent in enumerate(region.extents) if extent != 1]
    if len(wide) != 2 or wide[1] != len(region.extents) - 1:
        return None
    return prod(region.buffer.shape[wide[0] + 1 :])


def _inside(context: Context, region: Region) -> bool:
    """Whether a region lies inside its tensor, in every block and iteration, wherever it is read."""
    if any(loads(offset) for offset in region.offsets):
        return False
    last = tuple(offset + (extent - 1) for offset, extent in zip(region.offsets, region.extents, strict=True))
    return context.guard(region.buffer, region.offsets, last) is None


__all__ = ["Matrix", "forwarded", "matrix"]
