"""Access sites: the places in a program that read or write shared or global memory, made ready to run fast.

A site whose addresses are ``base(lane) + offset`` (offset the same for all lanes) keeps the base as an array and shifts
the *memory* by the offset (``memory[offset:].take(base)``), so that an access costs one NumPy call.  Bounds are checked
with two integer comparisons, and what the access costs in transactions depends only on ``offset`` modulo
``PATTERN_BYTES``: it is counted in a table and worked out once at the end (``counting.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.layout import Place

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

PATTERN_BYTES = 256
"""Shifting all addresses of an access by this much changes no count on any target (64 banks of 4 bytes, sectors, lines)."""

WIDE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Types that move that many bytes at once; values are only copied, never computed with."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A place in the program that accesses memory.

    ``kind`` is ``load``, ``store``, ``ldmatrix``, ``cp_async`` or ``cp_async_bypass``; ``lanes`` elements a thread (for
    ldmatrix the number of 8x8 matrices).  ``part`` marks the global side of a cp.async, no instruction of its own.
    """

    number: int
    kind: str
    place: Place
    lanes: int
    operation: int
    part: bool = False

    @property
    def width_bytes(self) -> int:
        """Bytes that one lane moves (for ldmatrix: the row it addresses)."""
        return 16 if self.kind == "ldmatrix" else self.lanes * self.place.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Accesses at ``(base + offset) * unit`` bytes; ``times[offset % period]`` says how often each offset ran.

    ``period`` is ``PATTERN_BYTES // unit``.  Where the cost depends on a second address as well (a cp.async that bypasses
    the cache), ``origin`` is its base and ``times`` is indexed by ``offset % period * period + origin_offset % period``.
    """

    base: Any
    unit: int
    times: list[int]
    origin: Any = None


@dataclass(eq=False)
class SiteCounts:
    """How often each address pattern of a site ran.

    ``masked`` counts accesses that fit no :class:`Pattern`, by lane indices, addresses and second addresses (or nothing),
    as bytes of int64 arrays; addresses are relative to a multiple of ``PATTERN_BYTES``.
    """

    patterns: list[Pattern] = field(default_factory=list)
    masked: dict[tuple[bytes, bytes, bytes], int] = field(default_factory=dict)

    def table(self, base: Any, unit: int, origin: Any = None) -> list[int]:
        """The ``times`` of a new pattern."""
        period = PATTERN_BYTES // unit
        pattern = Pattern(base, unit, [0] * (period if origin is None else period * period), origin)
        self.patterns.append(pattern)
        return pattern.times

    def note(self, lanes: Any, addresses: Any, origin: Any = None) -> None:
        """Counts one access of some lanes at byte addresses."""
        if len(lanes) == 0:
            return
        second = b"" if origin is None else _relative(origin).tobytes()
        key = (lanes.tobytes(), _relative(addresses).tobytes(), second)
        self.masked[key] = self.masked.get(key, 0) + 1


def _relative(addresses: Any) -> Any:
    return addresses - int(addresses.min()) // PATTERN_BYTES * PATTERN_BYTES


def make_site(machine: Machine, site: Site, base: Any) -> Callable[..., Any]:
    """The function ``f(offset[, value])`` that performs an access at ``base + offset`` by all lanes.

    ``base`` is an int64 array of element indices (None: zero).
    """
    lanes = np.zeros(machine.lanes, np.int64) if base is None else np.broadcast_to(base, (machine.lanes,))
    place, count = site.place, site.lanes
    low, high = int(lanes.min()), int(lanes.max())
    least, most = -low, place.buffer.elements - count - high
    flat, shift = machine.memory(place)
    full = lanes + machine.block_base(place)
    start = int(full.min())
    full = full - start
    start += shift
    table, mask = machine.table(site, full, place.itemsize)
    race = machine.race_hook(site, full, place.itemsize)

    def fail(offset: int) -> None:
        machine.out_of_range(site, lanes + offset)

    aligned = count > 1 and count * place.itemsize in WIDE and not (full % count).any()
    if site.kind == "store":
        if aligned:
            return _wide_store(machine, site, flat, full, start, (least, most), (table, mask, race), fail)
        return _plain_store(machine, site, flat, full, start, (least, most), (table, mask, race), fail)
    if aligned and full.any():
        return _wide_load(machine, site, flat, full, start, (least, most), (table, mask, race), fail)
    return _plain_load(machine, site, flat, full, start, (least, most), (table, mask, race), fail)


Limits = tuple[int, int]
Hooks = tuple[Any, int, Any]


def _plain_load(
    machine: Machine, site: Site, flat: Any, full: Any, start: int, limits: Limits, hooks: Hooks, fail: Any
) -> Callable[..., Any]:
    least, most = limits
    table, mask, race = hooks
    count = site.lanes
    same = not full.any()
    index = full if count == 1 else full + np.arange(count)[:, None]
    strict = machine.strict_alignment and count > 1

    def load(offset: int) -> Any:
        if offset < least or offset > most:
            fail(offset)
        at = start + offset
        if strict:
            machine.misaligned(site, full + at)
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        if same:
            return flat[at : at + 1] if count == 1 else flat[at : at + count, None]
        return flat[at:].take(index)

    return load


def _wide_load(
    machine: Machine, site: Site, flat: Any, full: Any, start: int, limits: Limits, hooks: Hooks, fail: Any
) -> Callable[..., Any]:
    least, most = limits
    table, mask, race = hooks
    count, dtype, lanes = site.lanes, flat.dtype, machine.lanes
    wide = flat[: len(flat) // count * count].view(WIDE[count * site.place.itemsize])
    index = full // count
    shift, rest = count.bit_length() - 1, count - 1
    slow = None if machine.strict_alignment else full + np.arange(count)[:, None]

    def load(offset: int) -> Any:
        if offset < least or offset > most:
            fail(offset)
        at = start + offset
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        if at & rest:
            if slow is None:
                machine.misaligned(site, full + at)
            return flat[at:].take(slow)
        return wide[at >> shift :].take(index).view(dtype).reshape(lanes, count).T

    return load


def _plain_store(
    machine: Machine, site: Site, flat: Any, full: Any, start: int, limits: Limits, hooks: Hooks, fail: Any
) -> Callable[..., Any]:
    least, most = limits
    table, mask, race = hooks
    count = site.lanes
    index = full if count == 1 else full + np.arange(count)[:, None]
    strict = machine.strict_alignment and count > 1

    def store(offset: int, value: Any) -> None:
        if offset < least or offset > most:
            fail(offset)
        at = start + offset
        if strict:
            machine.misaligned(site, full + at)
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        flat[at:][index] = value

    return store


def _wide_store(
    machine: Machine, site: Site, flat: Any, full: Any, start: int, limits: Limits, hooks: Hooks, fail: Any
) -> Callable[..., Any]:
    least, most = limits
    table, mask, race = hooks
    count, lanes = site.lanes, machine.lanes
    wide = flat[: len(flat) // count * count].view(WIDE[count * site.place.itemsize])
    index = full // count
    shift, rest = count.bit_length() - 1, count - 1
    slow = None if machine.strict_alignment else full + np.arange(count)[:, None]
    rows = np.empty((lanes, count), flat.dtype)
    columns, packed = rows.T, rows.reshape(-1).view(wide.dtype)

    def store(offset: int, value: Any) -> None:
        if offset < least or offset > most:
            fail(offset)
        at = start + offset
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        if at & rest:
            if slow is None:
                machine.misaligned(site, full + at)
            flat[at:][slow] = value
            return
        columns[...] = value
        wide[at >> shift :][index] = packed

    return store


def make_masked_site(machine: Machine, site: Site) -> Callable[..., Any]:
    """The function ``f(index, mask[, value])`` for any element indices and, unless None, a mask of active lanes."""
    place, count = site.place, site.lanes
    flat, shift = machine.memory(place)
    block = machine.block_base(place) + shift
    steps = np.arange(count)[:, None]
    every = np.arange(machine.lanes)
    counts = machine.counts_of(site)
    races = machine.races

    def locate(index: Any, mask: Any) -> tuple[Any, Any]:
        active = every if mask is None else np.flatnonzero(mask)
        relative = np.broadcast_to(np.asarray(index), (machine.lanes,))[active].astype(np.int64)
        if len(active) and (int(relative.min()) < 0 or int(relative.max()) > place.buffer.elements - count):
            machine.out_of_range(site, relative, active)
        at = relative + block[active]
        if count > 1 and machine.strict_alignment and (at % count).any():
            machine.misaligned(site, at, active)
        if counts is not None:
            counts.note(active, at * place.itemsize)
        if races is not None and place.space == "shared":
            races.note(site, at * place.itemsize, active)
        return active, at

    def load(index: Any, mask: Any) -> Any:
        active, at = locate(index, mask)
        if count == 1:
            result = np.zeros(machine.lanes, flat.dtype)
            result[active] = flat[at]
        else:
            result = np.zeros((count, machine.lanes), flat.dtype)
            result[:, active] = flat[at + steps]
        return result

    def store(index: Any, mask: Any, value: Any) -> None:
        active, at = locate(index, mask)
        if count == 1:
            flat[at] = np.broadcast_to(value, (machine.lanes,))[active]
        else:
            flat[at + steps] = np.broadcast_to(value, (count, machine.lanes))[:, active]

    return store if site.kind == "store" else load
