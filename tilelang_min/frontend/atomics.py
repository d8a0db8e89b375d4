"""``T.atomic_add`` and its relatives: of one element inside a nest, of one element for the block, of a whole region."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tvm import tirx

from tilelang_min.frontend.regions import copy_regions, tile_region
from tilelang_min.frontend.values import Access, as_expression, convert
from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Assign, Buffer, Expr, Parallel, Region, Statement

if TYPE_CHECKING:
    from tilelang_min.frontend.statements import StatementParser
    from tilelang_min.language import Construct

TYPES = {
    "add": ("int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"),
    "max": ("int32", "uint32", "int64", "float32", "float64"),
    "min": ("int32", "uint32", "int64", "float32", "float64"),
}
"""Types whose elements can be updated, by operation."""


def atomic(parser: StatementParser, node: ast.Call, function: Construct) -> Statement:
    """``T.atomic_<operation>(target, value)``.

    Inside T.Parallel ``target`` is an element, updated by each point of the nest.  Outside, an element is updated once for the
    block, and a region (or the start of one, where ``value`` is a tile) with the elements of a tile or with one number.
    """
    operation = function.name.removeprefix("atomic_")
    given = parser.arguments(node, function, ("target", "value", "memory_order", "return_prev"), 2)
    if "memory_order" in given and parser.evaluator.raw(given["memory_order"]) not in (None, "relaxed"):
        raise parser.error(
            given["memory_order"],
            "updates here are in no order with other accesses",
            "leave it out, or write 'relaxed'",
        )
    if "return_prev" in given and parser.evaluator.flag(given["return_prev"], "return_prev"):
        raise parser.error(
            given["return_prev"], f"T.{function.name} gives nothing back", "count places in a pass of their own"
        )
    target = parser.evaluator.raw(given["target"])
    buffer = target.buffer if isinstance(target, Access) else target
    _check(parser, given["target"], buffer, operation, function)
    value = parser.evaluator.raw(given["value"])
    tile = isinstance(value, Buffer) or (isinstance(value, Access) and value.has_slice)
    whole = isinstance(target, Buffer) or target.has_slice
    if parser.parallel_operation is not None:
        if tile or whole:
            raise parser.error(
                node,
                f"inside T.Parallel T.{function.name} updates one element",
                "index it by the nest's variables, or move it out of the nest",
            )
        indices = parser.evaluator.element(given["target"], target)
        made = parser.assign(node, buffer, indices, parser.evaluator.as_value(given["value"], value))
        return replace(made, atomic=operation)
    if not tile and not whole:
        return _element(parser, node, given, target, value, operation)
    if tile:
        source, region = copy_regions(parser.evaluator, given["value"], given["target"])
        if source.buffer is buffer:
            raise parser.error(node, f"{buffer.name} is updated with itself", "copy it into another tile first")
        if source.buffer.scope == "local":
            raise parser.error(given["value"], "a local tile belongs to one thread", "use T.alloc_fragment")
        return _nest(parser, node, region, source, None, operation)
    region = tile_region(parser.evaluator, given["target"], f"the target of T.{function.name}", len(buffer.shape))
    return _nest(parser, node, region, None, parser.evaluator.as_value(given["value"], value), operation)


def _check(parser: StatementParser, node: ast.expr, buffer: Any, operation: str, function: Construct) -> None:
    if not isinstance(buffer, Buffer) or buffer.scope not in ("global", "shared"):
        what = f"{buffer.name} is {buffer.scope}" if isinstance(buffer, Buffer) else "this is no tile"
        raise parser.error(
            node,
            f"T.{function.name} updates a tensor or a shared tile, {what}",
            "what belongs to one thread needs no atomic: write x[i] += value",
        )
    if buffer.dtype not in TYPES[operation]:
        raise parser.error(
            node,
            f"there is no T.{function.name} of {buffer.dtype}",
            f"it works on {', '.join(TYPES[operation])}; collect in one of those and convert at the end",
        )


def _element(
    parser: StatementParser, node: ast.Call, given: dict[str, ast.expr], target: Any, value: Any, operation: str
) -> Assign:
    """One element, updated by one thread of the block."""
    indices = parser.evaluator.element(given["target"], target)
    made = parser.assign(node, target.buffer, indices, parser.evaluator.as_value(given["value"], value))
    reads = tuple(sorted({*parser.operations[made.operation].reads, target.buffer.name}))
    parser.set_buffers(made.operation, reads, (target.buffer.name,))
    return replace(made, atomic=operation)


def _nest(
    parser: StatementParser, node: ast.Call, region: Region, source: Region | None, value: Any, operation: str
) -> Parallel:
    """A region as a nest over its elements."""
    extents = region.tile_extents or (1,)
    variables = tuple(tirx.Var(parser.unique("i"), "int32") for _ in extents)
    used = variables if region.tile_extents else ()
    places = _indices(region, used)
    if source is not None:
        value = source.buffer.var[_indices(source, used)]
    converted = convert(value, region.buffer.dtype)
    parser.note_reads(node, converted, *places)
    reads = tuple(sorted({*parser.named(converted, *places), region.buffer.name}))
    label = parser.source.segment(node)
    number = parser.operation(node, "parallel", label, reads, (region.buffer.name,))
    body = Assign(number, region.buffer, places, converted, {}, operation)
    return Parallel(number, variables, extents, (body,))


def _indices(region: Region, variables: tuple[Any, ...]) -> tuple[Expr, ...]:
    remaining = iter(variables)
    return tuple(
        as_expression(offset) if extent == 1 else index(offset) + next(remaining)
        for offset, extent in zip(region.offsets, region.extents, strict=True)
    )


__all__ = ["atomic"]
