"""Groups of elements of a nest, and where in memory they lie as one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tilelang_min.ir.expressions import index, loads, substitute
from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.ir.nodes import Expr
from tilelang_min.ir.replicated import wide
from tilelang_min.ir.vectors import Access, Nest, contiguous
from tilelang_min.lower.context import Context
from tilelang_min.program.dtypes import dtype_bytes

MOST_BYTES = 16
"""Bytes of the widest access of a thread."""


@dataclass(frozen=True, eq=False)
class Point:
    """One element of a group: values of the nest's variables, and its register, which fragments in ``registers`` hold elsewhere."""

    values: tuple[tuple[Any, Expr], ...]
    register: int
    registers: dict[str, int]

    def of(self, fragment: str) -> int:
        """Register of a fragment."""
        return self.registers.get(fragment, self.register)


def points_of(
    context: Context,
    nest: Nest,
    layout: FragmentLayout,
    group: tuple[int, ...],
    maps: dict[str, tuple[int, ...]],
) -> list[Point]:
    """The elements of one group of registers."""
    points = []
    variables = [nest.variables[place] for place in wide(nest.extents)]
    for register in group:
        position = layout.position(context.thread, register)
        used = [context.simplify(position[axis]) for axis in wide(layout.shape)]
        known = dict(zip((id(variable) for variable in variables), used, strict=True))
        values = tuple((variable, known.get(id(variable), 0)) for variable in nest.variables)
        points.append(Point(values, register, {name: registers[register] for name, registers in maps.items()}))
    return points


def in_memory(access: Access) -> bool:
    """Whether an access is one of memory that threads share."""
    return access.buffer.scope in ("global", "shared")


def vector_bases(context: Context, nest: Nest, access: Access, points: list[Point]) -> list[Expr] | None:
    """Element numbers at which the group's elements lie as aligned vectors: one, or several of two elements at least."""
    size = len(points)
    while size > 1:
        found = []
        for place in range(0, len(points), size):
            base = vector_base(context, nest, access, points[place : place + size])
            if base is None:
                break
            found.append(base)
        else:
            return found
        size //= 2
    return None


def vector_base(context: Context, nest: Nest, access: Access, points: list[Point]) -> Expr | None:
    """Element number at which the group's elements lie as one aligned vector, or None."""
    if len(points) == 1:
        indices = tuple(substitute(index(item), points[0].values) for item in access.indices)
        return context.element(access.buffer, indices, nest.stages.get(access.buffer.name))
    if any(loads(item) for item in access.indices) or len(points) * dtype_bytes(access.buffer.dtype) > MOST_BYTES:
        return None
    inner = max(wide(nest.extents), default=-1)
    last = nest.variables[inner]
    outer = [(variable, value) for variable, value in points[0].values if not variable.same_as(last)]
    shifted = Access(access.buffer, tuple(substitute(index(item), outer) for item in access.indices), access.writes)
    start = points[0].values[inner][1]
    if contiguous(shifted, last, start, len(points), context.analyzer) is not True:
        return None
    if not context.whole(access.buffer, len(points)):
        return None
    indices = tuple(substitute(index(item), points[0].values) for item in access.indices)
    return context.element(access.buffer, indices, nest.stages.get(access.buffer.name))


def in_range(context: Context, access: Access, point: Point) -> Any:
    """Guard for a vector: it is in range as a whole, so its first element decides."""
    indices = tuple(substitute(index(item), point.values) for item in access.indices)
    return context.guard(access.buffer, indices)


def load_vector(buffer: Any, base: Expr, width: int) -> Any:
    """``width`` elements from element ``base`` on."""
    return buffer[index(base)] if width == 1 else tirx.BufferLoad(buffer, [ramp(base, width)])


def ramp(base: Expr, width: int) -> Any:
    """The index of ``width`` elements from ``base`` on."""
    return index(base) if width == 1 else tirx.Ramp(index(base), 1, width)


def zeros(dtype: str, width: int) -> Any:
    """A vector of ``width`` zeros."""
    zero = tirx.const(0, dtype)
    return zero if width == 1 else tirx.Broadcast(zero, width)
