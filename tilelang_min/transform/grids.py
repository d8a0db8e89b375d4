"""Layouts of fragments that meet fragments of lower rank, or are reduced.

Fragments and nests that need one layout form a class; a class may be a part of another: the row vector of a tile.  Where a matrix
product fixes one layout the others follow from it, row vectors as its replicated parts and further tiles as extensions of those.
Otherwise all dimensions of the classes that belong together become axes, and the threads a grid over them: a dimension that two
classes share has the same threads in both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import prod

from tilelang_min.errors import LayoutError
from tilelang_min.ir.layout import FragmentLayout, GridLayout
from tilelang_min.ir.nodes import Buffer, Reduce, TileProgram
from tilelang_min.ir.replicated import ExtendedLayout, ReducedLayout, reduced, wide
from tilelang_min.transform.fragment_uses import FragmentUse, is_scalar, wide_extents

Node = Hashable
"""A fragment (its name) or a nest (its statement's id)."""
Slots = tuple[tuple[int, int], ...]


@dataclass(eq=False)
class _Class:
    """Fragments and nests with one layout.  ``origin`` is the operation that decided it."""

    extents: tuple[int, ...]
    layout: FragmentLayout | None = None
    origin: int = 0
    nodes: list[Node] = field(default_factory=list)
    uses: list[FragmentUse] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Part:
    """``lower`` holds dimensions ``dims`` of ``upper``; ``operation`` says so."""

    upper: _Class
    dims: tuple[int, ...]
    lower: _Class
    operation: int


class Component:
    """Fragments, nests and reductions that belong together."""

    def __init__(
        self, program: TileProgram, buffers: list[Buffer], uses: list[FragmentUse], reductions: list[Reduce]
    ) -> None:
        self.program = program
        self.buffers = [buffer for buffer in buffers if not is_scalar(buffer)]
        self.by_node: dict[Node, _Class] = {}
        for buffer in self.buffers:
            self.by_node[buffer.name] = _Class(wide_extents(buffer), nodes=[buffer.name])
        parts: list[tuple[Node, tuple[int, ...], Node, int]] = []
        for use in uses:
            node = id(use.statement)
            self.by_node[node] = _Class(use.extents, nodes=[node], uses=[use])
            for buffer, dims in use.members:
                if dims == use.all_dims:
                    self._join(node, buffer.name)
                elif dims:
                    parts.append((node, dims, buffer.name, use.statement.operation))
        for reduction in reductions:
            source, target = reduction.source.buffer, reduction.target.buffer
            axes = wide(source.shape)
            dims = tuple(place for place, axis in enumerate(axes) if axis != reduction.axis)
            if len(dims) == len(axes) and dims:
                self._join(source.name, target.name)
            elif dims:
                parts.append((source.name, dims, target.name, reduction.operation))
        self.parts = [_Part(self.by_node[a], dims, self.by_node[b], operation) for a, dims, b, operation in parts]
        self.classes = list({id(one): one for one in self.by_node.values()}.values())

    def _join(self, first: Node, second: Node) -> None:
        one, other = self.by_node[first], self.by_node[second]
        if one is other:
            return
        one.nodes += other.nodes
        one.uses += other.uses
        for node in other.nodes:
            self.by_node[node] = one

    def layout_of(self, node: Node) -> FragmentLayout:
        """The layout of a fragment or nest, once it is decided."""
        layout = self.by_node[node].layout
        assert layout is not None
        return layout

    def origin_of(self, node: Node) -> int:
        """The operation that decided a layout."""
        return self.by_node[node].origin

    # -- from matrix products --------------------------------------------------------------------------------------

    def follow(self, vector: Callable[[FragmentUse], int]) -> None:
        """Layouts that follow from those that classes have already."""
        while True:
            below = self._open(lambda part: part.upper.layout is not None and part.lower.layout is None)
            for part in below:
                assert part.upper.layout is not None
                part.lower.layout = reduced(part.upper.layout, part.dims, part.lower.extents)
                part.lower.origin = part.operation
            if below:
                continue
            missing = self._open(lambda part: part.lower.layout is not None and part.upper.layout is None)
            if not missing:
                return
            self._extend(missing[0], vector)

    def _open(self, wanted: Callable[[_Part], bool]) -> list[_Part]:
        found = [part for part in self.parts if wanted(part)]
        unique = {id(part.lower) if part.lower.layout is None else id(part.upper): part for part in reversed(found)}
        return list(unique.values())

    def _extend(self, part: _Part, vector: Callable[[FragmentUse], int]) -> None:
        base, upper = part.lower.layout, part.upper
        new = [place for place in range(len(upper.extents)) if place not in part.dims]
        assert base is not None
        if len(new) != 1 or not base.replicas:
            raise LayoutError(
                "this nest has more dimensions than a fragment that a matrix product fixes can be spread over",
                location=self.program.operations[part.operation].location,
                remedy="copy the fragment through a shared tile: T.copy(fragment, shared)",
            )
        width = min([vector(use) for use in upper.uses], default=1) if new[0] == len(upper.extents) - 1 else 1
        while width > 1 and prod(count for _, count in base.replicas) * width > upper.extents[new[0]]:
            width //= 2
        upper.layout = ExtendedLayout(upper.extents, base, new[0], width)
        upper.origin = part.operation

    # -- from nothing ----------------------------------------------------------------------------------------------

    def deal(self, warp_size: int, vector: Callable[[FragmentUse], int], widest: Callable[[FragmentUse], int]) -> None:
        """A grid of threads for all classes.  ``widest`` is the vector of a nest that may leave threads idle: of row vectors, so
        that they do not narrow the reads of their tiles."""
        threads = self.program.threads
        axes = self._axes()
        inner = {axes[id(one)][-1] for one in self.classes}
        outer = {axis for one in self.classes for axis in axes[id(one)][:-1]}
        widths = dict.fromkeys(inner | outer, 1)
        for axis in inner - outer:
            having = [one for one in self.classes if axes[id(one)][-1] == axis]
            rank = max(len(one.extents) for one in having)
            found = [(vector if len(one.extents) == rank else widest)(use) for one in having for use in one.uses]
            widths[axis] = min(found, default=1)
        order = sorted(self.classes, key=lambda one: (-len(one.extents), -prod(one.extents)))
        lanes: dict[int, Slots] = {}
        slots: Slots = ()
        for one in order:
            mine = axes[id(one)]
            if not slots:
                slots = thread_grid(one.extents, widths[mine[-1]], threads, warp_size)
                lanes = {axis: (slot,) for axis, slot in zip(mine, slots, strict=True)}
                continue
            new = [axis for axis in mine if axis not in lanes]
            if new:
                used = {slot for axis in mine for slot in lanes.get(axis, ())}
                lanes.update(dict.fromkeys(new, ()))
                lanes[new[-1]] = tuple(sorted(slot for slot in slots if slot not in used))
        for one in self.classes:
            mine = axes[id(one)]
            one.layout = GridLayout(
                one.extents, slots, tuple(lanes[axis] for axis in mine), tuple(widths[axis] for axis in mine)
            )
            one.origin = next((part.operation for part in self.parts if one in (part.upper, part.lower)), 0)

    def _axes(self) -> dict[int, tuple[int, ...]]:
        """For each class (by id) its axes: dimensions that a part shares with the whole are one axis."""
        names: dict[tuple[int, int], int] = {}
        for one in self.classes:
            for place in range(len(one.extents)):
                names[id(one), place] = len(names)
        for part in self.parts:
            for place, dim in enumerate(part.dims):
                old, new = names[id(part.lower), place], names[id(part.upper), dim]
                names = {key: new if name == old else name for key, name in names.items()}
        axes = {id(one): tuple(names[id(one), place] for place in range(len(one.extents))) for one in self.classes}
        for one in self.classes:
            if len(set(axes[id(one)])) < len(one.extents):
                part = next(part for part in self.parts if one in (part.upper, part.lower))
                raise LayoutError(
                    "one fragment is used along two different dimensions of a tile here",
                    location=self.program.operations[part.operation].location,
                    remedy="copy it through a shared tile into a second fragment for the other dimension",
                )
        return axes


def thread_grid(extents: tuple[int, ...], vector: int, threads: int, warp_size: int) -> Slots:
    """Coordinates (stride, count) for each dimension: the last has up to a warp, so that rows are reduced in a warp; more
    only where threads would be idle otherwise.

    >>> thread_grid((64, 128), 4, 128, 32)
    ((32, 4), (1, 32))
    """
    if len(extents) == 1:
        return ((1, threads),)
    need = -(-extents[-1] // vector)
    lanes = min(1 << (need - 1).bit_length(), warp_size)
    rest = threads // lanes
    others = prod(extents[:-1])
    while rest > others and lanes < need:
        factor = next(factor for factor in range(2, rest + 1) if rest % factor == 0)
        lanes, rest = lanes * factor, rest // factor
    found = [(1, lanes)]
    stride = lanes
    for extent in reversed(extents[1:-1]):
        count = 1
        while count * 2 <= extent and rest % (count * 2) == 0:
            count *= 2
        found.append((stride, count))
        stride, rest = stride * count, rest // count
    found.append((stride, rest))
    return tuple(reversed(found))


def with_shape(layout: FragmentLayout, shape: tuple[int, ...]) -> FragmentLayout:
    """The same layout for a fragment with other dimensions of extent 1."""
    if layout.shape == shape:
        return layout
    dims = tuple(range(len(wide(layout.shape))))
    if isinstance(layout, ReducedLayout):
        return ReducedLayout(layout.parent, layout.dims, shape)
    if isinstance(layout, ExtendedLayout):
        return ExtendedLayout(shape, layout.base, wide(shape)[wide(layout.shape).index(layout.axis)], layout.vector)
    return reduced(layout, dims, shape)


def scalar_layout(buffer: Buffer, threads: int) -> FragmentLayout:
    """A fragment of one element: every thread holds it."""
    rank = len(buffer.shape)
    return GridLayout(buffer.shape, ((1, threads),), ((),) * rank, (1,) * rank)


__all__ = ["Component", "scalar_layout", "thread_grid", "with_shape"]
