"""Layouts of fragments that meet a reduction or a fragment of lower rank, and questions about any layout.

A row vector of an (M, N) fragment is held by all threads that share the row: the threads that differ in the *replica*
coordinates alone hold the same elements, compute the same and, where something is written to memory, only the first writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tilelang_min.ir.layout import FragmentLayout, GridLayout


def wide(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions of extents other than 1: those by which fragments and nests are matched."""
    return tuple(axis for axis, extent in enumerate(shape) if extent != 1)


@lru_cache(maxsize=64)
def _places(layout: FragmentLayout, dims: tuple[int, ...]) -> tuple[bytes, ...]:
    """For each register, the positions in the wide dimensions ``dims`` of all threads."""
    threads = np.arange(layout.threads)
    axes = [wide(layout.shape)[dim] for dim in dims]
    found = []
    for register in range(layout.registers):
        position = layout.position(threads, register)
        columns = [np.broadcast_to(np.asarray(position[axis], np.int32), threads.shape) for axis in axes]
        found.append(b"".join(column.tobytes() for column in columns))
    return tuple(found)


@lru_cache(maxsize=64)
def register_map(layout: FragmentLayout, dims: tuple[int, ...], lower: FragmentLayout) -> tuple[int, ...] | None:
    """For each register of ``layout`` the register of ``lower`` that every thread holds the same element in.

    ``lower`` is a fragment over the wide dimensions ``dims`` of ``layout``.  None where some thread does not hold the element.
    """
    if layout.threads != lower.threads:
        return None
    held = {place: number for number, place in reversed(list(enumerate(_places(lower, tuple(range(len(dims)))))))}
    numbers = [held.get(place) for place in _places(layout, dims)]
    return None if any(number is None for number in numbers) else tuple(n for n in numbers if n is not None)


def reduced(layout: FragmentLayout, dims: tuple[int, ...], shape: tuple[int, ...]) -> FragmentLayout:
    """Layout of a fragment of ``shape`` over the wide dimensions ``dims`` of ``layout``."""
    if isinstance(layout, GridLayout):
        old, axes = wide(layout.shape), wide(shape)
        lanes: list[tuple[tuple[int, int], ...]] = [()] * len(shape)
        vectors = [1] * len(shape)
        for axis, dim in zip(axes, dims, strict=True):
            lanes[axis], vectors[axis] = layout.lanes[old[dim]], layout.vectors[old[dim]]
        return GridLayout(shape, layout.slots, tuple(lanes), tuple(vectors))
    return ReducedLayout(layout, dims, shape)


@dataclass(frozen=True)
class ReducedLayout:
    """The wide dimensions ``dims`` of ``parent``: every thread holds what its registers of the parent need, once."""

    parent: FragmentLayout
    dims: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.parent.threads

    @property
    def representatives(self) -> tuple[int, ...]:
        """For each register, the parent's first register with that place."""
        return _representatives(self.parent, self.dims)

    @property
    def registers(self) -> int:
        """Registers of each thread."""
        return len(self.representatives)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """One register each."""
        return tuple((register,) for register in range(self.registers))

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Those of the parent."""
        return self.parent.coordinates

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """Coordinates of the parent that change no place."""
        return _replicas(self)

    def position(self, thread: Any, register: int) -> tuple[Any, ...]:
        """The parent's indices in the kept dimensions."""
        place = self.parent.position(thread, self.representatives[register])
        kept = wide(self.parent.shape)
        indices: list[Any] = [0] * len(self.shape)
        for axis, dim in zip(wide(self.shape), self.dims, strict=True):
            indices[axis] = place[kept[dim]]
        return tuple(indices)

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """Every register holds an element."""
        return ()

    def describe(self) -> str:
        """One line for people."""
        kept = " and ".join(str(wide(self.parent.shape)[dim]) for dim in self.dims) or "no"
        return f"dimension {kept} of [{self.parent.describe()}], {prod(c for _, c in self.replicas)} replicas"


@lru_cache(maxsize=64)
def _representatives(parent: FragmentLayout, dims: tuple[int, ...]) -> tuple[int, ...]:
    first: dict[bytes, int] = {}
    for number, place in enumerate(_places(parent, dims)):
        first.setdefault(place, number)
    return tuple(first.values())


@lru_cache(maxsize=64)
def _replicas(layout: ReducedLayout) -> tuple[tuple[int, int], ...]:
    """Coordinates that no place depends on."""
    threads = np.arange(layout.threads)
    found = []
    for stride, count in layout.coordinates:
        first = threads - threads // stride % count * stride
        same = all(
            np.array_equal(np.broadcast_to(here, threads.shape), np.broadcast_to(there, threads.shape))
            for register in range(layout.registers)
            for here, there in zip(layout.position(threads, register), layout.position(first, register), strict=True)
        )
        if count > 1 and same:
            found.append((stride, count))
    return tuple(found)


@dataclass(frozen=True)
class ExtendedLayout:
    """One more dimension over a replicated fragment: its replicas share the elements of the new dimension.

    ``base`` holds the other wide dimensions; the new one is ``axis`` of ``shape``, dealt out to the replicas in chunks of
    ``vector``.
    """

    shape: tuple[int, ...]
    base: FragmentLayout
    axis: int
    vector: int

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.base.threads

    @property
    def lanes(self) -> int:
        """Threads that share one row."""
        return prod(count for _, count in self.base.replicas)

    @property
    def chunks(self) -> int:
        """Chunks of the new dimension a thread holds; the last may lie beyond the end."""
        return -(-self.shape[self.axis] // (self.lanes * self.vector))

    @property
    def registers(self) -> int:
        """Registers of each thread."""
        return self.base.registers * self.chunks * self.vector

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Chunks, where the new dimension is the last."""
        run = self.vector if self.axis == wide(self.shape)[-1] else 1
        return tuple(tuple(range(start, start + run)) for start in range(0, self.registers, run))

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """Those of the base."""
        return self.base.coordinates

    @property
    def replicas(self) -> tuple[tuple[int, int], ...]:
        """None: the replicas of the base hold different elements."""
        return ()

    def position(self, thread: Any, register: int) -> tuple[Any, ...]:
        """The base's indices, and the place in the new dimension."""
        per_row = self.chunks * self.vector
        others = self.base.position(thread, register // per_row)
        places = iter(others[axis] for axis in wide(self.base.shape))
        lane: Any = 0
        for stride, count in reversed(self.base.replicas):
            lane = lane * count + thread // stride % count
        chunk, part = register % per_row // self.vector, register % self.vector
        own = (lane + chunk * self.lanes) * self.vector + part
        axes = wide(self.shape)
        return tuple(
            own if axis == self.axis else next(places) if axis in axes else 0 for axis in range(len(self.shape))
        )

    def limits(self, thread: Any, register: int) -> tuple[tuple[Any, int], ...]:
        """The place in the new dimension, in the last chunk of a ragged row; and what limits the base."""
        per_row = self.chunks * self.vector
        below = self.base.limits(thread, register // per_row)
        if (register % per_row // self.vector + 1) * self.lanes * self.vector <= self.shape[self.axis]:
            return below
        return (*below, (self.position(thread, register)[self.axis], self.shape[self.axis]))

    def describe(self) -> str:
        """One line for people."""
        return f"dimension {self.axis} over the {self.lanes} replicas of [{self.base.describe()}]"


__all__ = ["ExtendedLayout", "ReducedLayout", "reduced", "register_map", "wide"]
