"""Reductions on GPUs: operands in fragments, and an exchange through shared memory where several warps share an element.

:func:`fragment_reductions`, before layouts are chosen.  Before::

    reduce out = sum over 1 of S          # S, out shared tiles

After::

    copy S -> S_tile                      # a fragment
    reduce out_tile = sum over 1 of S_tile
    copy out_tile -> out

:func:`exchange_reductions`, when they are.  Before::

    reduce out = sum over 1 of F          # two warps hold parts of each row of F

After (barriers come between by their own pass)::

    reduce (partial) out = sum over 1 of F      # the first thread of each warp writes scratch[warp, row]
    reduce (finish) out = sum over 1 of F       # all threads read scratch[0, row] and scratch[1, row], in this order
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import prod

from tvm import tirx

from tilelang_min.ir.nodes import Buffer, Copy, Reduce, Region, Statement, TileProgram, replaced
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.reducing import accumulator_type, combined, warp_parts
from tilelang_min.program.dtypes import DATA_TYPES
from tilelang_min.targets import Target

_Statements = tuple[Statement, ...]


def fragment_reductions(program: TileProgram) -> TileProgram:
    """Shared operands of reductions go through fragments."""
    pass_ = _Pass(program)
    body = pass_.block(program.body, pass_.through_fragments)
    return dataclasses.replace(program, body=body, buffers=(*program.buffers, *pass_.made))


def exchange_reductions(program: TileProgram, layouts: Layouts, target: Target) -> TileProgram:
    """Reductions across warps in two steps, each with its scratch tile."""
    pass_ = _Pass(program)

    def split(reduction: Reduce) -> _Statements:
        source, out = reduction.source.buffer, reduction.target.buffer
        coordinates = combined(layouts.fragments[source.name], layouts.fragments[out.name])
        parts = prod(count for _, count in warp_parts(coordinates, target.warp_size))
        if parts == 1:
            return (reduction,)
        name = f"{out.name}_parts"
        scratch = pass_.buffer(name, (parts, *out.shape), accumulator_type(source.dtype, out.dtype), "shared", out)
        return (
            dataclasses.replace(reduction, step="partial", scratch=scratch),
            dataclasses.replace(reduction, step="finish", scratch=scratch),
        )

    body = pass_.block(program.body, split)
    return dataclasses.replace(program, body=body, buffers=(*program.buffers, *pass_.made))


class _Pass:
    """Replaces every reduction by statements; ``made`` are the tiles that these need."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.made: list[Buffer] = []

    def block(self, statements: _Statements, replace: Callable[[Reduce], _Statements]) -> _Statements:
        """The statements with ``replace(reduction)`` for every reduction; all others stay the same objects."""
        return replaced(statements, lambda one: replace(one) if isinstance(one, Reduce) else (one,))

    def buffer(self, name: str, shape: tuple[int, ...], dtype: str, scope: str, like: Buffer) -> Buffer:
        """A new tile, told to be at the place of ``like``."""
        taken = {item.name for item in (*self.program.parameters, *self.program.buffers, *self.made)}
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        made = Buffer(
            candidate, shape, dtype, scope, like.location, tirx.decl_buffer(shape, DATA_TYPES[dtype].tvm, candidate)
        )
        self.made.append(made)
        return made

    def through_fragments(self, reduction: Reduce) -> _Statements:
        """Copies of shared operands around the reduction."""
        source, target = reduction.source, reduction.target
        before: list[Statement] = []
        behind: list[Statement] = []
        if source.buffer.scope == "shared":
            tile = self.buffer(
                f"{source.buffer.name}_tile", source.extents, source.buffer.dtype, "fragment", source.buffer
            )
            whole = Region(tile, (0,) * len(tile.shape), tile.shape)
            before.append(Copy(reduction.operation, source, whole))
            source = whole
        if target.buffer.scope == "shared":
            tile = self.buffer(
                f"{target.buffer.name}_tile", target.extents, target.buffer.dtype, "fragment", target.buffer
            )
            whole = Region(tile, (0,) * len(tile.shape), tile.shape)
            if not reduction.clear:
                before.append(Copy(reduction.operation, target, whole))
            behind.append(Copy(reduction.operation, whole, target))
            target = whole
        return (*before, dataclasses.replace(reduction, source=source, target=target), *behind)


__all__ = ["exchange_reductions", "fragment_reductions"]
