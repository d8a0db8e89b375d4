"""Prefetching on a CPU: while a product runs, the tensors that the next iteration copies are fetched into the second cache.

A pipelined loop says that its copies may run ahead of its products.  A GPU copies into another stage; on a CPU, where one thread
does both, the copy stays where it is, and the lines it is going to read are asked for during the product before it::

    for k:                                   for k:
        copy A[.., k] -> tile                    copy A[.., k] -> tile          # from the second cache
        copy B[k, ..] -> tile         ->         copy B[k, ..] -> tile
        product                                  product, and with every few steps of it prefetch A[.., k + 1], B[k + 1, ..]

The last iteration fetches what the first iteration of the next block will copy.  A block without such a loop fetches what the
next block copies during the nest with most elementary functions, if it has any.  A prefetch changes no value and cannot fault,
so it needs no guards: an address outside of a tensor costs a look-up and is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.ir.expressions import divides, index, loads, substitute, uses
from tilelang_min.ir.nodes import Copy, Expr, Gemm, Loop, Parallel, Statement
from tilelang_min.lower.context import Context
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets.cpu import LINE_BYTES

_LOCALITY = 2
"""``prefetcht1``: into the second cache, since tiles of one step fill the first many times over."""


@dataclass(frozen=True)
class Stream:
    """Lines of a box of a tensor: ``rows`` rows of ``lines`` lines, ``pitch`` elements apart, from element ``start``."""

    operation: int
    buffer: Any
    start: Any
    pitch: int
    rows: int
    lines: int
    line_elements: int

    @property
    def total(self) -> int:
        """Lines in all."""
        return self.rows * self.lines


class Ahead:
    """The streams to fetch during one product, in as many equal portions as the product has steps for them."""

    def __init__(self, context: Context, streams: Sequence[Stream], portions: int) -> None:
        self._context = context
        self._streams = [(stream, -(-stream.total // portions)) for stream in streams]
        if streams:
            self._place = context.array("ahead", "int32", len(self._streams))
        for number in range(len(self._streams)):
            context.emit(tirx.BufferStore(self._place, index(0), [index(number)]))

    def __bool__(self) -> bool:
        """Whether there is anything to fetch."""
        return bool(self._streams)

    def portion(self, operation: int) -> None:
        """Fetch the next portion of each stream; afterwards ``operation`` goes on."""
        context = self._context
        for number, (stream, count) in enumerate(self._streams):
            context.mark(stream.operation)
            at = self._place[index(number)]
            for step in range(count):
                line = tirx.Min(at + step, index(stream.total - 1))
                row, column = _divided(line, stream.lines)
                place = stream.start + row * stream.pitch + column * stream.line_elements
                address = tirx.address_of(stream.buffer[place])
                fetch = tirx.call_llvm_intrin("void", "llvm.prefetch", address, 0, _LOCALITY, 1)
                context.emit(tirx.Evaluate(fetch))
            context.emit(tirx.BufferStore(self._place, at + count, [index(number)]))
        context.mark(operation)


def _divided(number: Any, divisor: int) -> tuple[Any, Any]:
    """Quotient and rest of a number that is never negative; shifts where they will do."""
    if divisor & (divisor - 1) == 0:
        return number >> (divisor.bit_length() - 1), number & (divisor - 1)
    return tirx.truncdiv(number, index(divisor)), tirx.truncmod(number, index(divisor))


def product_of(loop: Loop) -> Gemm | None:
    """The product of the loop's body during which copies are fetched: the one with the most work."""
    products = [item for item in loop.body if isinstance(item, Gemm)]
    return max(products, key=lambda item: item.m * item.n * item.k, default=None)


def streams_of(context: Context, loop: Loop, block: tuple[Sequence[Any], Sequence[Expr]]) -> list[Stream]:
    """What the iteration after the present one copies from tensors; ``block``: block variables and their next values."""
    variable = loop.variable
    following = index(variable) + 1
    start = context.bound(loop.start)
    last = tirx.EQ(following, start + context.bound(loop.extent))
    found: list[Stream] = []
    for copy in loop.body:
        number = _moving(context, copy, [variable])
        if number is None:
            continue
        after = substitute(number, [(variable, following)])
        first = substitute(substitute(number, [(variable, start)]), list(zip(*block, strict=True)))
        found += _stream(context, copy, tirx.Select(last, index(first), index(after)))
    return found


def block_streams(
    context: Context, statements: Sequence[Statement], block: tuple[Sequence[Any], Sequence[Expr]]
) -> tuple[Parallel | None, list[Stream]]:
    """The nest of a block's statements that computes most, and what the next block copies from tensors before it."""
    weights = [_functions(item) if isinstance(item, Parallel) else 0 for item in statements]
    heaviest = max(range(len(weights)), key=weights.__getitem__, default=0)
    if not weights or not weights[heaviest]:
        return None, []
    found: list[Stream] = []
    for copy in statements[:heaviest]:
        number = _moving(context, copy, block[0])
        if number is not None:
            found += _stream(context, copy, index(substitute(number, list(zip(*block, strict=True)))))
    nest = statements[heaviest]
    return (nest if isinstance(nest, Parallel) else None), found


def _functions(nest: Parallel) -> int:
    """How many elementary functions a nest computes: these take long enough to fetch lines meanwhile."""
    found: list[Any] = []

    def note(call: Any) -> None:
        name = str(getattr(call.op, "name", ""))
        if not name.endswith(("if_then_else", "likely")):
            found.append(call)

    for assign in nest.body:
        if not isinstance(assign.value, (int, float)):
            tvm_ffi.structural_walk(assign.value, (ir.Call, note))
    return len(found) * prod(nest.extents)


def _moving(context: Context, copy: Statement, variables: Sequence[Any]) -> Expr | None:
    """Number of the first element that a copy reads from a tensor, where it depends on one of ``variables``; None otherwise."""
    if not isinstance(copy, Copy) or copy.source.buffer.scope != "global":
        return None
    offsets = copy.source.offsets
    if any(loads(offset) for offset in offsets) or not any(uses(item, var) for item in offsets for var in variables):
        return None
    return context.element(copy.source.buffer, offsets)


def _stream(context: Context, copy: Statement, start: Any) -> list[Stream]:
    """The lines of the box that ``copy`` would read from element ``start``: one stream, or none for a box of several planes."""
    assert isinstance(copy, Copy)
    region = copy.source
    box = _box(region.extents)
    if box is None:
        return []
    axis, rows, columns = box
    first = tirx.Var(context.fresh("next"), "int32")
    context.mark(copy.operation)
    context.emit(tirx.Bind(first, start))
    elements = LINE_BYTES // dtype_bytes(region.buffer.dtype)
    pitch = 0 if axis is None else prod(region.buffer.shape[axis + 1 :])
    # A row that does not start with a line may touch one more.
    lines = -(-columns // elements)
    if columns % elements or not divides(elements, pitch):
        lines += 1
    storage = context.storage[region.buffer.name]
    return [Stream(copy.operation, storage, first, pitch, rows, lines, elements)]


def _box(extents: tuple[int, ...]) -> tuple[int | None, int, int] | None:
    """(axis of the rows, rows, columns) of a region of one row, or of rows along one axis; None for any other."""
    wide = [axis for axis, extent in enumerate(extents[:-1]) if extent != 1]
    if len(wide) > 1:
        return None
    return (wide[0], extents[wide[0]], extents[-1]) if wide else (None, 1, extents[-1])


def portions(k: int) -> int:
    """Into how many parts of at least 8 steps a sum over ``k`` is cut, evenly."""
    return next(count for count in range(max(1, k // 8), 0, -1) if k % count == 0)


__all__ = ["Ahead", "Stream", "block_streams", "portions", "product_of", "streams_of"]
