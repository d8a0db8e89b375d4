"""Matching the two sides of a copy and the three tiles of a matrix product."""

from __future__ import annotations

import ast
from typing import Any

from tvm.sym import Analyzer

from tilelang_min.errors import ShapeError
from tilelang_min.frontend.evaluate import Evaluator
from tilelang_min.frontend.values import Access, constant, is_expression
from tilelang_min.ir.nodes import Buffer, Region


def copy_regions(evaluator: Evaluator, source_node: ast.expr, target_node: ast.expr) -> tuple[Region, Region]:
    """Source and target regions of ``T.copy``.

    A whole tile or a slice brings its extents; a bare index such as ``A[i, j]`` only says where the region starts and takes the
    extents of the other side.  Where both bring extents, the smaller side of each dimension counts.
    """
    source, target = evaluator.raw(source_node), evaluator.raw(target_node)
    for node, side in ((source_node, source), (target_node, target)):
        if not isinstance(side, (Buffer, Access)):
            raise evaluator.error(
                node, "T.copy moves tiles", "give a tile, a slice A[m0:m1, k0:k1] or a start A[m0, k0]"
            )
    source_extents, target_extents = (
        _own_extents(evaluator, source_node, source),
        _own_extents(evaluator, target_node, target),
    )
    if source_extents is None and target_extents is None:
        raise evaluator.error(
            target_node,
            "neither side of this copy says how much to move",
            "give one side as a whole tile or as a slice",
        )
    if source_extents is None:
        assert target_extents is not None
        source_extents = _borrow(evaluator, source_node, source, target_extents)
    elif target_extents is None:
        target_extents = _borrow(evaluator, target_node, target, source_extents)
    source_extents, target_extents = _fit(
        evaluator, source_node, target_node, (source, source_extents), (target, target_extents)
    )
    return (
        _region(evaluator, source_node, source, source_extents),
        _region(evaluator, target_node, target, target_extents),
    )


def tile_region(evaluator: Evaluator, node: ast.expr, what: str, rank: int = 2, *, inside: bool = False) -> Region:
    """A whole tile or a slice of ``rank`` dimensions, for ``what`` (used in messages).

    ``inside``: it may also be a slice of a tile of more dimensions, of extent 1 in the first ones: ``A_shared[stage, :, :]``.
    """
    value = evaluator.raw(node)
    if not isinstance(value, (Buffer, Access)):
        raise evaluator.error(node, f"{what} must be a tile")
    extents = _own_extents(evaluator, node, value)
    if extents is None:
        raise evaluator.error(node, f"{what} is a single element", "give the whole tile or a slice of it")
    region = _region(evaluator, node, value, extents)
    if inside and len(region.extents) >= rank and all(extent == 1 for extent in region.extents[:-rank]):
        return region
    if len(region.extents) != rank:
        raise evaluator.error(
            node, f"{what} must have {rank} dimensions, {region.buffer.name} has {len(region.extents)}", kind=ShapeError
        )
    return region


def _own_extents(evaluator: Evaluator, node: ast.expr, value: Buffer | Access) -> tuple[int, ...] | None:
    if isinstance(value, Buffer):
        if any(not isinstance(extent, int) for extent in value.shape):
            raise evaluator.error(
                node,
                f"{value.name} as a whole has a size that is known at launch alone",
                f"say where the region starts, {value.name}[{', '.join('ijklmn'[: len(value.shape)])}]",
                ShapeError,
            )
        return value.shape
    if not value.has_slice:
        return None
    extents = []
    for index, full in zip(value.indices, value.buffer.shape, strict=True):
        if not isinstance(index, tuple):
            extents.append(1)
            continue
        extent = constant(_difference(index[1], index[0]))
        if not isinstance(extent, int):
            raise evaluator.error(
                node,
                "the extent of a slice must be known at compile time",
                "write A[m0 : m0 + block_M] with a constant block_M",
            )
        if extent <= 0:
            raise evaluator.error(
                node, f"this slice of {value.buffer.name} is empty (extent {extent})", kind=ShapeError
            )
        if value.buffer.scope != "global" and extent > full:
            raise evaluator.error(
                node,
                f"a slice of {extent} elements does not fit dimension {full} of {value.buffer.name}",
                kind=ShapeError,
            )
        extents.append(extent)
    return tuple(extents)


def _difference(stop: Any, start: Any) -> Any:
    difference = stop - start
    return Analyzer().simplify(difference) if is_expression(difference) else difference


def _borrow(evaluator: Evaluator, node: ast.expr, access: Any, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Extents for a start-only access from the other side, aligned at the last dimension."""
    rank = len(access.indices)
    core = tuple(extent for extent in extents if extent != 1) if len(extents) > rank else extents
    if len(core) > rank:
        raise evaluator.error(
            node,
            f"{access.buffer.name} has {rank} dimension{'s' if rank != 1 else ''}, but the other side of the copy has {len(core)}",
            "copy a slice with the same number of dimensions",
            ShapeError,
        )
    return (1,) * (rank - len(core)) + core


def _fit(
    evaluator: Evaluator,
    source_node: ast.expr,
    target_node: ast.expr,
    source: tuple[Any, tuple[int, ...]],
    target: tuple[Any, tuple[int, ...]],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    (source_side, source_extents), (target_side, target_extents) = source, target
    one = [extent for extent in source_extents if extent != 1]
    other = [extent for extent in target_extents if extent != 1]
    if one == other:
        return source_extents, target_extents
    same_rank = len(source_extents) == len(target_extents)
    smaller = all(a <= b for a, b in zip(one, other, strict=False)) or all(
        a >= b for a, b in zip(one, other, strict=False)
    )
    if not same_rank or len(one) != len(other) or not smaller:
        raise evaluator.error(
            target_node,
            f"the two sides of this copy do not fit: {_name(source_side)} is {_times(source_extents)}, "
            f"{_name(target_side)} is {_times(target_extents)}",
            "make the extents equal, or slice the larger side",
            ShapeError,
        )
    extents = tuple(min(a, b) for a, b in zip(source_extents, target_extents, strict=True))
    return extents, extents


def _name(side: Any) -> str:
    return str(side.name if isinstance(side, Buffer) else side.buffer.name)


def _times(extents: tuple[int, ...]) -> str:
    return "x".join(str(extent) for extent in extents)


def _region(evaluator: Evaluator, node: ast.expr, value: Buffer | Access, extents: tuple[int, ...]) -> Region:
    """The box; where it lies in a tile at a place that is known now, it must be inside."""
    if isinstance(value, Buffer):
        return Region(value, (0,) * len(value.shape), extents)
    offsets = tuple(index[0] if isinstance(index, tuple) else index for index in value.indices)
    buffer = value.buffer
    for axis, (offset, extent, full) in enumerate(zip(offsets, extents, buffer.shape, strict=True)):
        start = constant(offset)
        if buffer.scope != "global" and start is not None and not 0 <= start <= full - extent:
            last = f" to {int(start) + extent - 1}" if extent > 1 else ""
            raise evaluator.error(
                node,
                f"{'elements' if last else 'element'} {start}{last} of dimension {axis} of {buffer.name} do not exist: "
                f"it has {full}",
                "slice inside the tile",
                ShapeError,
            )
    return Region(buffer, offsets, extents)
