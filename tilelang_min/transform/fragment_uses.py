"""How nests index their fragments: each by all of the nest's variables, or by some of them in order."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilelang_min.errors import LayoutError
from tilelang_min.ir.expressions import as_int, simplify
from tilelang_min.ir.nodes import Buffer, Statement, TileProgram
from tilelang_min.ir.replicated import wide
from tilelang_min.ir.vectors import Access, Nest, nest_of


@dataclass(frozen=True, eq=False)
class FragmentUse:
    """One nest and its fragments, with the positions of the variables that index them.

    Variables of extent 1 aside: ``extents`` are the others.  A fragment of one element has no positions.
    """

    statement: Statement
    nest: Nest
    extents: tuple[int, ...]
    members: tuple[tuple[Buffer, tuple[int, ...]], ...]

    @property
    def all_dims(self) -> tuple[int, ...]:
        """Positions of all variables."""
        return tuple(range(len(self.extents)))

    @property
    def partial(self) -> bool:
        """Whether a fragment of lower rank, of more than one element, is among them."""
        return any(dims and dims != self.all_dims for _, dims in self.members)


def use_of(program: TileProgram, statement: Statement) -> FragmentUse:
    """The fragments of a copy, fill or element-wise nest.

    Raises LayoutError where one is not indexed by the nest's variables, in order, over its whole extent; where one nest indexes a
    fragment in two ways; and where a fragment of lower rank is written.
    """
    nest = nest_of(program, statement)
    places = wide(nest.extents)
    variables = tuple(nest.variables[place] for place in places)
    extents = tuple(nest.extents[place] for place in places)
    members: dict[str, tuple[Buffer, tuple[int, ...]]] = {}
    for access in nest.accesses:
        if access.buffer.scope != "fragment":
            continue
        dims = _dims(program, statement, access, variables, extents)
        known = members.setdefault(access.buffer.name, (access.buffer, dims))
        if known[1] != dims:
            raise _error(program, statement, f"fragment {access.buffer.name} is indexed in two ways here")
        if access.writes and dims != tuple(range(len(variables))):
            free = ", ".join(str(v.name) for place, v in enumerate(variables) if place not in dims)
            raise _error(
                program,
                statement,
                f"one element of fragment {access.buffer.name} is written by every {free} of this nest",
                "reduce with T.reduce_sum, T.reduce_max, ..., or index it by all loop variables",
            )
    return FragmentUse(statement, nest, extents, tuple(members.values()))


def _dims(
    program: TileProgram, statement: Statement, access: Access, variables: tuple[Any, ...], extents: tuple[int, ...]
) -> tuple[int, ...]:
    """For each dimension of extent other than 1 the position of the variable that is its index."""
    dims: list[int] = []
    for axis in wide(access.buffer.shape):
        found = [
            place
            for place, (variable, extent) in enumerate(zip(variables, extents, strict=True))
            if extent == access.buffer.shape[axis] and as_int(simplify(access.indices[axis] - variable)) == 0
        ]
        if not found or (dims and found[0] <= dims[-1]):
            raise _error(
                program,
                statement,
                f"fragment {access.buffer.name} of shape {access.buffer.shape} is not used element by element here",
            )
        dims.append(found[0])
    return tuple(dims)


def _error(program: TileProgram, statement: Statement, message: str, remedy: str | None = None) -> LayoutError:
    return LayoutError(
        message,
        location=program.operations[statement.operation].location,
        remedy=remedy or "index it by the loop variables in order over its whole shape, or keep it in a shared tile",
    )


def wide_extents(buffer: Buffer) -> tuple[int, ...]:
    """Extents other than 1."""
    return tuple(buffer.shape[axis] for axis in wide(buffer.shape))


def is_scalar(buffer: Buffer) -> bool:
    """Whether a fragment has one element: every thread then holds it."""
    return prod(buffer.shape) == 1


__all__ = ["FragmentUse", "is_scalar", "use_of", "wide_extents"]
