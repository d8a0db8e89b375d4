"""Reductions on a CPU: vectors along the last dimension, whichever dimension is reduced.

Along the last dimension, for each row::

    part[0:v] = x[0:v]                                  # v elements, several vector registers
    for chunk: part[0:v] = part[0:v] + x[chunk * v : ...]
    part[0:v/2] += part[v/2:v]; ...; out = part[0]      # then the elements that fill no vector

Along another dimension ``v`` neighbouring results are added up at once.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Expr, Reduce
from tilelang_min.ir.reducing import accumulator_type, combine, operand
from tilelang_min.lower.context import Context

_MOST_VECTORS = 4
"""Vector registers that are added up side by side: one addition waits for the one before it."""


def lower_reduce(context: Context, reduction: Reduce) -> None:
    """One reduction."""
    source = reduction.source
    lanes = (context.target.vector_bits or 256) // 32
    outer = source.extents[: reduction.axis]
    inner = source.extents[reduction.axis + 1 :]
    before, close_before = context.loop("ri", prod(outer))
    with context.nested() as body:
        context.mark(reduction.operation)
        if prod(inner) == 1:
            _along_last(context, reduction, before, lanes)
        else:
            _along_other(context, reduction, before, prod(inner), lanes)
    close_before(body)
    context.mark(reduction.operation)


def _along_last(context: Context, reduction: Reduce, row: Expr, lanes: int) -> None:
    extent = reduction.source.extents[reduction.axis]
    dtype = accumulator_type(reduction.source.buffer.dtype, reduction.target.buffer.dtype)
    width = lanes * _MOST_VECTORS
    while width > 1 and width > extent:
        width //= 2
    part = context.array("part", dtype, width)
    _each(
        context, width, lambda lane: tirx.BufferStore(part, _operand(context, reduction, dtype, row, lane, 0), [lane])
    )
    chunks, rest = divmod(extent, width)
    if chunks > 1:
        chunk, close = context.loop("chunk", chunks - 1)
        with context.nested() as body:
            context.mark(reduction.operation)
            _each(
                context,
                width,
                lambda lane: _add(
                    reduction, part, lane, _operand(context, reduction, dtype, row, (chunk + 1) * width + lane, 0)
                ),
            )
        close(body)
        context.mark(reduction.operation)
    half = width // 2
    while half:
        _halve(context, reduction, part, half)
        half //= 2
    zero = tirx.IntImm("int32", 0)
    if rest:
        item, close = context.loop("rest", rest)
        value = _operand(context, reduction, dtype, row, chunks * width + item, 0)
        close([_add(reduction, part, zero, value)])
    context.emit(_result(context, reduction, part[zero], row, 0))


def _halve(context: Context, reduction: Reduce, part: Any, half: int) -> None:
    """The second half of a vector into the first."""
    _each(context, half, lambda lane: _add(reduction, part, lane, part[lane + half]))


def _along_other(context: Context, reduction: Reduce, before: Expr, inner: int, lanes: int) -> None:
    done, width = 0, lanes * _MOST_VECTORS
    while done < inner:
        count = (inner - done) // width
        if not count:
            width //= 2
            continue
        column, close = context.loop("rj", count)
        with context.nested() as body:
            context.mark(reduction.operation)
            _columns(context, reduction, before, done + column * width, width)
        close(body)
        context.mark(reduction.operation)
        done += count * width


def _columns(context: Context, reduction: Reduce, before: Expr, start: Expr, width: int) -> None:
    """``width`` neighbouring results."""
    extent = reduction.source.extents[reduction.axis]
    dtype = accumulator_type(reduction.source.buffer.dtype, reduction.target.buffer.dtype)
    part = context.array("part", dtype, width)

    def value(lane: Any, at: Expr) -> Any:
        return _operand(context, reduction, dtype, before, at, start + lane)

    _each(context, width, lambda lane: tirx.BufferStore(part, value(lane, 0), [lane]))
    if extent > 1:
        step, close = context.loop("rk", extent - 1)
        with context.nested() as steps:
            _each(context, width, lambda lane: _add(reduction, part, lane, value(lane, step + 1)))
        close(steps)
        context.mark(reduction.operation)
    _each(context, width, lambda lane: _result(context, reduction, part[lane], before, start + lane))


def _each(context: Context, width: int, statement: Any) -> None:
    """``statement(lane)`` for all lanes of a vector."""
    if width == 1:
        context.emit(statement(tirx.IntImm("int32", 0)))
        return
    lane = tirx.Var(context.fresh("lane"), "int32")
    context.emit(tirx.For(lane, 0, width, tirx.ForKind.VECTORIZED, statement(lane)))


def _add(reduction: Reduce, part: Any, lane: Any, value: Any) -> Any:
    return tirx.BufferStore(part, combine(reduction.kind, part[lane], value), [lane])


def _operand(context: Context, reduction: Reduce, dtype: str, before: Expr, at: Expr, behind: Expr) -> Any:
    """Element (before, at, behind): numbers in the dimensions in front of, in, and behind the reduced one."""
    extents, axis = reduction.source.extents, reduction.axis
    indices = (*_unravel(before, extents[:axis]), at, *_unravel(behind, extents[axis + 1 :]))
    places = tuple(offset + item for offset, item in zip(reduction.source.offsets, indices, strict=True))
    buffer = reduction.source.buffer
    return operand(reduction.kind, context.storage[buffer.name][index(context.element(buffer, places))], dtype)


def _result(context: Context, reduction: Reduce, value: Any, before: Expr, behind: Expr) -> Any:
    """The statement that writes one result, with what was there before unless it is cleared."""
    region, extents, axis = reduction.target, reduction.source.extents, reduction.axis
    indices: tuple[Expr, ...] = (*_unravel(before, extents[:axis]), *_unravel(behind, extents[axis + 1 :]))
    if len(region.extents) == len(extents):
        indices = (*indices[:axis], 0, *indices[axis:])
    elif not indices:
        indices = (0,)
    places = tuple(offset + item for offset, item in zip(region.offsets, indices, strict=True))
    storage, place = context.storage[region.buffer.name], index(context.element(region.buffer, places))
    dtype = str(value.ty.dtype)
    if not reduction.clear:
        old = storage[place] if region.buffer.dtype == dtype else tirx.Cast(dtype, storage[place])
        value = combine(reduction.kind, old, value)
    return tirx.BufferStore(
        storage, value if region.buffer.dtype == dtype else tirx.Cast(region.buffer.tvm_dtype, value), [place]
    )


def _unravel(number: Expr, extents: tuple[int, ...]) -> tuple[Expr, ...]:
    """Row-major indices of element ``number``."""
    indices: list[Expr] = []
    for place, extent in enumerate(reversed(extents)):
        indices.append(number if place == len(extents) - 1 else number % extent)
        number = number // extent
    return tuple(reversed(indices))


__all__ = ["lower_reduce"]
