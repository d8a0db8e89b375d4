"""Layouts: which thread holds which element of every fragment, and how each matrix product is carried out.

The accumulator of a matrix product gets the layout of its instruction.  Fragments that meet in one nest or copy must agree, so
they form a component and share a layout; a component without a matrix product is dealt out in the widest vectors that all its
memory accesses allow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeVar

from tilelang_min.analysis.limits import require_accumulator
from tilelang_min.errors import LayoutError
from tilelang_min.ir.hopper import ClusterSum
from tilelang_min.ir.layout import BlockedLayout, FragmentLayout, GridLayout
from tilelang_min.ir.nodes import Buffer, Copy, Fill, Gemm, Parallel, Reduce, Statement, TileProgram, walk
from tilelang_min.ir.operand_layout import operand_layout
from tilelang_min.ir.plans import HopperPlan, Layouts
from tilelang_min.ir.replicated import reduced, register_map, wide
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.ir.vectors import Nest, nest_of, vector_of
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target
from tilelang_min.transform.fragment_uses import FragmentUse, is_scalar, use_of
from tilelang_min.transform.gemm_plans import plan_gemm
from tilelang_min.transform.grids import Component, scalar_layout, with_shape

_Kind = TypeVar("_Kind", bound=Statement)


def choose_layouts(program: TileProgram, target: Target, hopper: HopperPlan | None = None) -> Layouts:
    """Layouts of all fragments and nests, and plans of all matrix products.

    Raises LayoutError, naming both users and their lines, when two uses of one fragment disagree.
    """
    hopper = hopper or HopperPlan()
    result = Layouts(shared=dict(hopper.shared), hopper=hopper)
    pinned: dict[str, tuple[FragmentLayout, int]] = {}
    for gemm in _statements(program, Gemm):
        require_accumulator(target, gemm, program.operations[gemm.operation].location)
        plan = hopper.gemms.get(gemm.operation) or plan_gemm(gemm, program.threads, target, program.pinned)
        result.gemms[gemm.operation] = plan
        if plan.kind == "wgmma":
            for buffer in (item.buffer for item in (gemm.a, gemm.b) if item.buffer.scope == "shared"):
                panels = SharedLayout.widest_panels(buffer.shape, dtype_bytes(buffer.dtype))
                result.shared.setdefault(buffer.name, panels)
        _pin(program, pinned, gemm.c.buffer, plan.layout, gemm.operation)
    for total in _statements(program, ClusterSum):
        whole = pinned[total.source.name][0]
        if total.target is not total.source and isinstance(whole, WarpgroupLayout):
            _pin(program, pinned, total.target, whole.part(total.split.parts), total.operation)
    nests = [statement for statement in walk(program.body) if isinstance(statement, (Copy, Fill, Parallel))]
    uses = [use for use in (use_of(program, statement) for statement in nests) if use.members]
    reductions = list(_statements(program, Reduce))
    components = _components(program, uses, reductions)
    _pin_operands(program, result, components, pinned)
    for component in components:
        own = [use for use in uses if any(buffer in component for buffer, _ in use.members)]
        reducing = [item for item in reductions if item.source.buffer in component]
        if is_scalar(component[0]):
            result.fragments[component[0].name] = scalar_layout(component[0], program.threads)
        elif reducing or any(use.partial for use in own):
            _part_layouts(program, target, result, component, own, reducing, pinned)
        else:
            _spread(program, component, own, pinned)
            vector = min((_vector(program, use) for use in own), default=1)
            for buffer in component:
                if buffer.name in pinned:
                    result.fragments[buffer.name] = pinned[buffer.name][0]
                else:
                    result.fragments[buffer.name] = BlockedLayout(buffer.shape, program.threads, vector)
    for use in uses:
        _nest_layout(program, result, use)
    for reduction in reductions:
        _check_reduction(program, result, reduction)
    for statement in nests:
        if id(statement) not in result.nests:
            result.nests[id(statement)] = _blocked(program, nest_of(program, statement))
    return result


def _part_layouts(
    program: TileProgram,
    target: Target,
    result: Layouts,
    buffers: list[Buffer],
    uses: list[FragmentUse],
    reductions: list[Reduce],
    pinned: dict[str, tuple[FragmentLayout, int]],
) -> None:
    """Layouts of fragments that are reduced, or meet others of lower rank."""
    component = Component(program, buffers, uses, reductions)
    for buffer in component.buffers:
        if buffer.name in pinned and not isinstance(pinned[buffer.name][0], BlockedLayout):
            layout, operation = pinned[buffer.name]
            place = component.by_node[buffer.name]
            if place.layout is not None and place.layout != layout:
                raise _conflict(program, buffer, (place.layout, place.origin), (layout, operation))
            place.layout, place.origin = layout, operation
    if any(place.layout is not None for place in component.classes):
        component.follow(lambda use: _vector(program, use))
    else:
        component.deal(
            target.warp_size, lambda use: _vector(program, use), lambda use: _vector(program, use, idle=True)
        )
    for buffer in component.buffers:
        result.fragments[buffer.name] = with_shape(component.layout_of(buffer.name), buffer.shape)
        result.origins[buffer.name] = component.origin_of(buffer.name)
    for use in uses:
        result.nests[id(use.statement)] = component.layout_of(id(use.statement))
    for operation, plan in result.gemms.items():  # one element at a time works in every layout
        owner = next(gemm.c.buffer for gemm in _statements(program, Gemm) if gemm.operation == operation)
        found = result.fragments.get(owner.name)
        if isinstance(plan.layout, BlockedLayout) and isinstance(found, GridLayout):
            result.gemms[operation] = dataclasses.replace(plan, layout=found)


def _nest_layout(program: TileProgram, result: Layouts, use: FragmentUse) -> None:
    """The layout of a nest with fragments, and where it finds their elements.  Raises LayoutError where it does not."""
    number = id(use.statement)
    if number not in result.nests:
        whole = [buffer for buffer, dims in use.members if dims == use.all_dims]
        # Fragments of one element alone do not say how a nest is dealt out, but all its elements find theirs in register 0.
        result.nests[number] = result.fragments[whole[0].name] if whole else _blocked(program, use.nest)
    layout = result.nests[number]
    for buffer, dims in use.members:
        held = result.fragments[buffer.name]
        if held == layout or (isinstance(held, BlockedLayout) and isinstance(layout, BlockedLayout)):
            continue
        registers = register_map(layout, dims, held)
        if registers is None:
            extents = tuple(use.extents[dim] for dim in dims)
            needed = reduced(layout, dims, extents)
            operation = result.origins.get(buffer.name, use.statement.operation)
            raise _conflict(program, buffer, (held, operation), (needed, use.statement.operation))
        result.registers[number, buffer.name] = registers


def _check_reduction(program: TileProgram, result: Layouts, reduction: Reduce) -> None:
    """The result of a reduction is held by the threads that hold the row."""
    source, target = reduction.source.buffer, reduction.target.buffer
    dims = tuple(place for place, axis in enumerate(wide(source.shape)) if axis != reduction.axis)
    layout, held = result.fragments[source.name], result.fragments[target.name]
    if register_map(layout, dims, held) is None:
        operation = result.origins.get(target.name, reduction.operation)
        raise _conflict(program, target, (held, operation), (reduced(layout, dims, target.shape), reduction.operation))


def _statements(program: TileProgram, kind: type[_Kind]) -> Iterator[_Kind]:
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
        remedy="copy one of them through a shared tile: T.copy(fragment, shared); T.copy(shared, other_fragment); or give the "
        "products that meet here one policy, T.gemm(..., policy=T.GemmWarpPolicy.FullRow)",
    )


def _components(program: TileProgram, uses: list[FragmentUse], reductions: list[Reduce]) -> list[list[Buffer]]:
    """Fragments in groups that share nests or reductions; one of a single element is a group of its own."""
    fragments = [buffer for buffer in program.buffers if buffer.scope == "fragment"]
    group = {buffer.name: {buffer.name} for buffer in fragments}
    together = [[buffer for buffer, _ in use.members] for use in uses]
    together += [[item.source.buffer, item.target.buffer] for item in reductions]
    for members in together:
        names = [buffer.name for buffer in members if not is_scalar(buffer)]
        for name in names[1:]:
            merged = group[names[0]] | group[name]
            for member in merged:
                group[member] = merged
    seen: list[set[str]] = []
    for found in group.values():
        if found not in seen:
            seen.append(found)
    return [[buffer for buffer in fragments if buffer.name in members] for members in seen]


def _pin_operands(
    program: TileProgram,
    result: Layouts,
    components: list[list[Buffer]],
    pinned: dict[str, tuple[FragmentLayout, int]],
) -> None:
    """Fragments that a product reads lie as its instruction takes them, where no accumulator decides otherwise."""
    for gemm in _statements(program, Gemm):
        for side, region in (("a", gemm.a), ("b", gemm.b)):
            if region.buffer.scope != "fragment":
                continue
            component = next(group for group in components if region.buffer in group)
            layout = operand_layout(gemm, result.gemms[gemm.operation], side)
            if layout is not None and not any(buffer.name in pinned for buffer in component):
                pinned[region.buffer.name] = (layout, gemm.operation)


def _spread(
    program: TileProgram,
    component: list[Buffer],
    uses: list[FragmentUse],
    pinned: dict[str, tuple[FragmentLayout, int]],
) -> None:
    """Give every fragment of a component the layout of the pinned one; two different pinned ones are a conflict."""
    owners = [buffer for buffer in component if buffer.name in pinned]
    if not owners:
        return
    layout, operation = pinned[owners[0].name]
    for buffer in component:
        _pin(program, pinned, buffer, layout, operation)
        if buffer.shape != layout.shape:
            used = next(use.statement.operation for use in uses if any(buffer is other for other, _ in use.members))
            other = BlockedLayout(buffer.shape, program.threads, 1)
            raise _conflict(program, buffer, (layout, operation), (other, used))


def _blocked(program: TileProgram, nest: Nest) -> BlockedLayout:
    """The layout of a nest that no fragment decides: the widest vectors that its accesses allow."""
    return BlockedLayout(nest.extents, program.threads, vector_of(nest, program, _widest(program, nest)))


def _vector(program: TileProgram, use: FragmentUse, *, idle: bool = False) -> int:
    """The widest vector that a nest can use; with ``idle`` even where some threads then have nothing to do."""
    return vector_of(use.nest, program, _widest(program, use.nest, idle=idle))


def _widest(program: TileProgram, nest: Any, *, idle: bool = False) -> int:
    """Elements in 16 bytes of the largest type the nest moves, never so many that threads would be idle.

    Atomics go element by element, neighbours in neighbouring threads; of 16-bit types two by two.
    """
    if any(access.atomic for access in nest.accesses):
        return 2 if any(access.atomic and dtype_bytes(access.buffer.dtype) == 2 for access in nest.accesses) else 1
    sizes = [
        dtype_bytes(access.buffer.dtype) for access in nest.accesses if access.buffer.scope in ("global", "shared")
    ]
    width = 16 // max(sizes, default=4)
    elements = 1
    for extent in nest.extents:
        elements *= extent
    while not idle and width > 1 and elements % (width * program.threads) and elements < width * program.threads:
        width //= 2
    return width
