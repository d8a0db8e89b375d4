"""Layouts: which thread holds which element of every fragment, and how each matrix product is carried out.

The accumulator of a matrix product gets the layout of its instruction.  Fragments that meet in one nest or copy must agree, so
they form a component and share a layout; a component without a matrix product is dealt out in the widest vectors that all its
memory accesses allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelang_min.errors import LayoutError
from tilelang_min.ir.expressions import as_int, simplify
from tilelang_min.ir.layout import BlockedLayout, FragmentLayout
from tilelang_min.ir.nodes import Buffer, Copy, Fill, Gemm, Parallel, Statement, TileProgram, walk
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.vectors import Access, nest_of, vector_of
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target
from tilelang_min.transform.gemm_plans import plan_gemm


def choose_layouts(program: TileProgram, target: Target) -> Layouts:
    """Layouts of all fragments and nests, and plans of all matrix products.

    Raises LayoutError, naming both users and their lines, when two uses of one fragment disagree.
    """
    result = Layouts()
    pinned: dict[str, tuple[FragmentLayout, int]] = {}
    for gemm in _statements(program, Gemm):
        plan = plan_gemm(gemm, program.threads, target)
        result.gemms[gemm.operation] = plan
        _pin(program, pinned, gemm.c.buffer, plan.layout, gemm.operation)
    nests = [statement for statement in walk(program.body) if isinstance(statement, (Copy, Fill, Parallel))]
    for component in _components(program, nests):
        _spread(program, component, nests, pinned)
        vector = _common_vector(program, component, nests, target)
        for buffer in component:
            if buffer.name in pinned:
                result.fragments[buffer.name] = pinned[buffer.name][0]
            else:
                result.fragments[buffer.name] = BlockedLayout(buffer.shape, program.threads, vector)
    for statement in nests:
        fragments = _fragments(program, statement)
        if fragments:
            layouts = [result.fragments[buffer.name] for buffer in fragments]
            result.nests[id(statement)] = layouts[0]
        else:
            nest = nest_of(program, statement)
            vector = vector_of(nest, program, _widest(program, nest))
            result.nests[id(statement)] = BlockedLayout(nest.extents, program.threads, vector)
    return result


def _statements(program: TileProgram, kind: type[Gemm]) -> Iterator[Gemm]:
    return (statement for statement in walk(program.body) if isinstance(statement, kind))


def _pin(
    program: TileProgram,
    pinned: dict[str, tuple[FragmentLayout, int]],
    buffer: Buffer,
    layout: FragmentLayout,
    operation: int,
) -> None:
    known = pinned.get(buffer.name)
    if known is None:
        pinned[buffer.name] = (layout, operation)
    elif known[0] != layout:
        raise _conflict(program, buffer, known, (layout, operation))


def _conflict(
    program: TileProgram, buffer: Buffer, first: tuple[FragmentLayout, int], second: tuple[FragmentLayout, int]
) -> LayoutError:
    one, other = program.operations[first[1]], program.operations[second[1]]
    return LayoutError(
        f"two uses of fragment {buffer.name} need different layouts: line {one.location.line} ({one.label}) needs "
        f"[{first[0].describe()}], line {other.location.line} ({other.label}) needs [{second[0].describe()}]",
        location=other.location,
        remedy="copy one of them through a shared tile: T.copy(fragment, shared); T.copy(shared, other_fragment)",
    )


def _fragments(program: TileProgram, statement: Statement) -> list[Buffer]:
    nest = nest_of(program, statement)
    found: list[Buffer] = []
    for access in nest.accesses:
        if access.buffer.scope == "fragment" and access.buffer not in found:
            _check_identity(program, statement, access, nest.variables, nest.extents)
            found.append(access.buffer)
    return found


def _check_identity(
    program: TileProgram, statement: Statement, access: Access, variables: tuple[Any, ...], extents: tuple[int, ...]
) -> None:
    """A fragment is indexed by exactly the nest's variables over its whole extent."""
    kept = [(position, extent) for position, extent in enumerate(access.buffer.shape) if extent != 1]
    same = len(kept) == len(variables) and all(
        as_int(simplify(access.indices[position] - variable)) == 0 and extent == nest_extent
        for (position, extent), variable, nest_extent in zip(kept, variables, extents, strict=True)
    )
    if not same and access.buffer.elements > 1:
        operation = program.operations[statement.operation]
        raise LayoutError(
            f"fragment {access.buffer.name} of shape {access.buffer.shape} is not used element by element here",
            location=operation.location,
            remedy="index it by the loop variables in order over its whole shape, or keep it in a shared tile",
        )


def _components(program: TileProgram, nests: list[Any]) -> list[list[Buffer]]:
    fragments = [buffer for buffer in program.buffers if buffer.scope == "fragment"]
    group = {buffer.name: {buffer.name} for buffer in fragments}
    for statement in nests:
        names = [buffer.name for buffer in _fragments(program, statement)]
        for name in names[1:]:
            merged = group[names[0]] | group[name]
            for member in merged:
                group[member] = merged
    seen: list[set[str]] = []
    for members in group.values():
        if members not in seen:
            seen.append(members)
    return [[buffer for buffer in fragments if buffer.name in members] for members in seen]


def _spread(
    program: TileProgram, component: list[Buffer], nests: list[Any], pinned: dict[str, tuple[FragmentLayout, int]]
) -> None:
    """Give every fragment of a component the layout of the pinned one; two different pinned ones are a conflict."""
    owners = [buffer for buffer in component if buffer.name in pinned]
    if not owners:
        return
    layout, operation = pinned[owners[0].name]
    for buffer in component:
        _pin(program, pinned, buffer, layout, operation)
        if buffer.shape != layout.shape:
            used = next(s.operation for s in nests if buffer in _fragments(program, s))
            other = BlockedLayout(buffer.shape, program.threads, 1)
            raise _conflict(program, buffer, (layout, operation), (other, used))


def _common_vector(program: TileProgram, component: list[Buffer], nests: list[Any], target: Target) -> int:
    """The widest vector that every nest touching the component can use."""
    widths = []
    for statement in nests:
        if any(buffer in component for buffer in _fragments(program, statement)):
            nest = nest_of(program, statement)
            widths.append(vector_of(nest, program, _widest(program, nest)))
    return min(widths, default=1)


def _widest(program: TileProgram, nest: Any) -> int:
    """Elements in 16 bytes of the largest type the nest moves, never so many that threads would be idle."""
    sizes = [
        dtype_bytes(access.buffer.dtype) for access in nest.accesses if access.buffer.scope in ("global", "shared")
    ]
    width = 16 // max(sizes, default=4)
    elements = 1
    for extent in nest.extents:
        elements *= extent
    while width > 1 and elements % (width * program.threads) and elements < width * program.threads:
        width //= 2
    return width
