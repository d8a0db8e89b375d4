"""Access sites: the places in a program that read or write shared or global memory, made ready to run fast.

A site whose addresses are ``base(lane) + offset`` (offset the same for all lanes) keeps the base as an array and shifts
the *memory* by the offset (``memory[offset:].take(base)``), so that an access costs one NumPy call.  Bounds are checked
with two integer comparisons, and what the access costs in transactions depends only on ``offset`` modulo
``PATTERN_BYTES``: it is counted in a table and worked out once at the end (``counting.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.layout import Place

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

PATTERN_BYTES = 256
"""Shifting all addresses of an access by this much changes no count on any target (64 banks of 4 bytes, sectors, lines)."""

EXACT = 1 << 40
"""Takes the place of the period where addresses are recorded exactly: more than any offset."""

NOWHERE = -1
"""Second address of a lane of a cp.async that reads nothing and fills with zeros."""

MASKS = 256
"""Masks that a site remembers."""

WIDE = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Types that move that many bytes at once; values are only copied, never computed with."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A place in the program that accesses memory.

    ``kind`` is ``load``, ``store``, ``atomic``, ``ldmatrix``, ``stmatrix``, ``cp_async`` or ``cp_async_bypass``, or for messages
    alone ``tma_load``, ``tma_store``, ``wgmma`` or ``remote_store``;
    ``lanes`` elements a thread (for ldmatrix the number of 8x8 matrices).
    ``part`` is the kind of copy whose global side this is, no instruction of its own; or what an atomic is made of:
    ``atomic_increment``, or ``atomic_loop`` for a loop and the loads in it.
    """

    number: int
    kind: str
    place: Place
    lanes: int
    operation: int
    part: str = ""

    @property
    def width_bytes(self) -> int:
        """Bytes that one lane moves (for ldmatrix: the row it addresses)."""
        return 16 if self.kind in ("ldmatrix", "stmatrix") else self.lanes * self.place.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Accesses at ``(base + offset) * unit`` bytes; ``times[offset % period]`` says how often each offset ran.

    ``base`` is by lane, of ``lanes`` where that is not None.  ``period`` is ``PATTERN_BYTES // unit``, or :data:`EXACT`
    where ``times`` is a dictionary.  Where the cost depends on a second address as well (of a cp.async, that of the other
    side), ``origin`` is its base and ``times`` is indexed by ``offset % period * second + origin_offset % second``,
    ``second`` being ``PATTERN_BYTES // unit``.
    """

    base: Any
    unit: int
    times: list[int] | dict[int, int]
    origin: Any = None
    lanes: Any = None

    def offsets(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Every offset (and offset of the second address) that ran, and how often."""
        second = PATTERN_BYTES // self.unit
        for k, n in self.times.items() if isinstance(self.times, dict) else enumerate(self.times):
            if n:
                yield ((k, 0) if self.origin is None else divmod(k, second)), n


@dataclass(eq=False)
class SiteCounts:
    """How often each address pattern of a site ran.

    ``masked`` counts accesses that fit no :class:`Pattern`, by lane indices, addresses and second addresses (or nothing;
    :data:`NOWHERE` for lanes that have none), as bytes of int64 arrays; addresses are relative to a multiple of
    ``PATTERN_BYTES``.  With ``exact`` nothing is reduced: offsets and addresses are those in the memory of all simulated
    blocks.
    """

    exact: bool = False
    patterns: list[Pattern] = field(default_factory=list)
    masked: dict[tuple[bytes, bytes, bytes], int] = field(default_factory=dict)

    def table(
        self, base: Any, unit: int, origin: Any = None, lanes: Any = None
    ) -> tuple[list[int] | dict[int, int], int]:
        """The ``times`` of a new pattern, and its period."""
        period = PATTERN_BYTES // unit
        times: list[int] | dict[int, int] = defaultdict(int)
        if not self.exact:
            times = [0] * (period if origin is None else period * period)
        pattern = Pattern(base, unit, times, origin, lanes)
        self.patterns.append(pattern)
        return pattern.times, EXACT if self.exact else period

    def note(self, lanes: Any, addresses: Any, origin: Any = None) -> None:
        """Counts one access of some lanes at byte addresses."""
        if len(lanes) == 0:
            return
        second = b"" if origin is None else relative(origin).tobytes()
        key = (lanes.tobytes(), (addresses if self.exact else relative(addresses)).tobytes(), second)
        self.masked[key] = self.masked.get(key, 0) + 1


@dataclass(frozen=True, slots=True, eq=False)
class TracedAccess:
    """One executed access: byte addresses in its memory of ``lanes`` (None: of all)."""

    site: Site
    lanes: Any
    addresses: Any


def relative(addresses: Any) -> Any:
    """Addresses less a multiple of ``PATTERN_BYTES``: those of all that cost the same are equal."""
    somewhere = addresses != NOWHERE
    if not somewhere.any():
        return addresses
    least = int(addresses.min(where=somewhere, initial=np.iinfo(np.int64).max))
    return np.where(somewhere, addresses - least // PATTERN_BYTES * PATTERN_BYTES, NOWHERE)


def prepare(machine: Machine, site: Site, base: Any, lanes: Any) -> tuple[Any, Any, Callable[[int], int]]:
    """What all accesses of a site at ``base + offset`` by ``lanes`` (None: all) share.

    Returns the flat memory, the index of each of those lanes relative to the lowest, and the function that checks and
    counts an access and returns where in memory the lowest lane's is.
    """
    place, width = site.place, site.lanes
    every = np.zeros(machine.lanes, np.int64) + (0 if base is None else base)
    relative = every if lanes is None else every[lanes]
    flat, shift = machine.memory(place)
    low, high = int(relative.min()), int(relative.max())
    least, most = -low, place.buffer.elements - width - high
    block = machine.block_base(place)
    full = relative + (block if lanes is None else block[lanes])
    start = int(full.min())
    full = full - start
    start += shift
    table, mask = machine.table(site, full, place.itemsize, lanes=lanes)
    race = machine.race_hook(site, full, place.itemsize, lanes)
    tilted = machine.strict_alignment and width > 1 and bool((full % width).any())
    rest = width if machine.strict_alignment else 1

    def enter(offset: int) -> int:
        if offset < least or offset > most:
            machine.out_of_range(site, relative + offset, lanes)
        at = start + offset
        if tilted or at % rest:
            machine.misaligned(site, full + at, lanes)
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        return at

    if site.operation not in machine.traced:
        return flat, full, enter

    def traced(offset: int) -> int:
        at = enter(offset)
        machine.trace.append(TracedAccess(site, lanes, (full + at) * place.itemsize))
        return at

    return flat, full, traced


def make_site(machine: Machine, site: Site, base: Any, lanes: Any = None) -> Callable[..., Any]:
    """The function ``f(offset[, value])`` that performs an access at ``base + offset``.

    ``base`` is an int64 array of element indices by lane (None: zero).  Without ``lanes`` all lanes take part and a load
    returns a value for all (or one that broadcasts); with ``lanes``, an array of some of them, results and values have one
    entry for each of those.
    """
    flat, full, enter = prepare(machine, site, base, lanes)
    width, count = site.lanes, len(full)
    packed = width > 1 and width * site.place.itemsize in WIDE and not (full % width).any()
    if site.kind == "store":
        return _wide_store(flat, full, enter, width) if packed else _plain_store(flat, full, enter, width)
    if not full.any() and lanes is None:
        return _uniform_load(flat, enter, width)
    return _wide_load(flat, full, enter, width, count) if packed else _plain_load(flat, full, enter, width)


Enter = Callable[[int], int]


def _uniform_load(flat: Any, enter: Enter, width: int) -> Callable[..., Any]:
    """All lanes read the same place: a view."""
    if width == 1:

        def load_one(offset: int) -> Any:
            at = enter(offset)
            return flat[at : at + 1]

        return load_one

    def load(offset: int) -> Any:
        at = enter(offset)
        return flat[at : at + width, None]

    return load


def _plain_load(flat: Any, full: Any, enter: Enter, width: int) -> Callable[..., Any]:
    index = full if width == 1 else full + np.arange(width)[:, None]

    def load(offset: int) -> Any:
        return flat[enter(offset) :].take(index)

    return load


def _wide_load(flat: Any, full: Any, enter: Enter, width: int, count: int) -> Callable[..., Any]:
    """Aligned vectors, moved as one wide element each."""
    dtype = flat.dtype
    wide = flat[: len(flat) // width * width].view(WIDE[width * dtype.itemsize])
    index = full // width
    elements = full + np.arange(width)[:, None]

    def load(offset: int) -> Any:
        at = enter(offset)
        if at % width:  # possible on a CPU alone
            return flat[at:].take(elements)
        return wide[at // width :].take(index).view(dtype).reshape(count, width).T

    return load


def _plain_store(flat: Any, full: Any, enter: Enter, width: int) -> Callable[..., Any]:
    index = full if width == 1 else full + np.arange(width)[:, None]

    def store(offset: int, value: Any) -> None:
        flat[enter(offset) :][index] = value

    return store


def _wide_store(flat: Any, full: Any, enter: Enter, width: int) -> Callable[..., Any]:
    wide = flat[: len(flat) // width * width].view(WIDE[width * flat.dtype.itemsize])
    index = full // width
    elements = full + np.arange(width)[:, None]
    rows = np.empty((len(full), width), flat.dtype)
    columns, packed = rows.T, rows.reshape(-1).view(wide.dtype)

    def store(offset: int, value: Any) -> None:
        at = enter(offset)
        if at % width:
            flat[at:][elements] = value
            return
        columns[...] = value
        wide[at // width :][index] = packed

    return store


def make_masked_site(machine: Machine, site: Site, base: Any) -> Callable[..., Any]:
    """The function ``f(offset, mask[, value])`` for lanes of a mask; what a mask needs is prepared when it first appears."""
    shape = (machine.lanes,) if site.lanes == 1 else (site.lanes, machine.lanes)
    dtype = machine.memory(site.place)[0].dtype
    ready: dict[bytes, tuple[Any, Callable[..., Any]]] = {}

    def find(mask: Any) -> tuple[Any, Any]:
        key = mask.tobytes()
        known = ready.get(key)
        if known is None:
            lanes = np.flatnonzero(mask)
            if len(ready) >= MASKS:
                ready.clear()
            known = ready[key] = (lanes, make_site(machine, site, base, lanes) if len(lanes) else _nothing)
        return known

    def load(offset: int, mask: Any) -> Any:
        lanes, access = find(mask)
        result = np.zeros(shape, dtype)
        result[..., lanes] = access(offset)
        return result

    def store(offset: int, mask: Any, value: Any) -> None:
        lanes, access = find(mask)
        if getattr(value, "shape", ()) and value.shape[-1] != 1:
            value = value[..., lanes]
        access(offset, value)

    return store if site.kind == "store" else load


def _nothing(offset: int, value: Any = None) -> Any:
    """An access by no lane."""
    return ()


def make_general_site(machine: Machine, site: Site) -> Callable[..., Any]:
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
