"""ldmatrix and cp.async at run time.

A cp.async takes its data when it is issued and writes it when a wait covers its group, so a program that waits too
little computes with what shared memory held before.  Addresses here are bytes from the start of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.matrix import ldmatrix_positions
from tilelang_min.simulate.sites import NOWHERE, WIDE, Site

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine


def make_ldmatrix(machine: Machine, site: Site, transposed: bool, base: Any) -> Callable[[int], Any]:
    """``f(offset)``: all warps load from ``base + offset``; the result is uint32 of shape ``(matrices, threads)``."""
    place, matrices = site.place, site.lanes
    provider, column = ldmatrix_positions(matrices, transposed, machine.lanes, machine.warp_size)
    used = np.unique(provider)
    halves = machine.shared.view(np.uint16)
    relative = np.zeros(machine.lanes, np.int64) + (0 if base is None else base)
    low, high = int(relative[used].min()), int(relative[used].max())
    least, most = -low, place.buffer.elements * place.itemsize - 16 - high
    full = relative + machine.shared_base
    start = int(full[used].min())
    idle = np.ones(machine.lanes, bool)
    idle[used] = False
    full = np.where(idle, 0, full - start)  # addresses of the other lanes are ignored
    start += place.offset
    tilted = bool((full % 16).any())
    table, mask = machine.table(site, full // 2, 2)
    race = machine.race_hook(site, full[used] // 2, 2, used)
    index = full[provider] // 2 + column

    def run(offset: int) -> Any:
        if offset < least or offset > most:
            machine.out_of_range(site, ((relative + offset) // place.itemsize)[used], used)
        at = start + offset
        if tilted or at & 15:
            machine.misaligned(site, (full + at)[used] // place.itemsize, used, 16 // place.itemsize)
        at >>= 1
        if table is not None:
            table[at & mask] += 1
        if race is not None:
            race(at)
        return halves[at:].take(index).view(np.uint32).reshape(matrices, machine.lanes)

    return run


def make_masked_ldmatrix(machine: Machine, site: Site, transposed: bool) -> Callable[[Any, Any], Any]:
    """``f(addresses, mask)`` for any addresses; what inactive warps get means nothing."""
    places = matrix_places(machine, site, transposed)
    halves = machine.shared.view(np.uint16)

    def run(address: Any, mask: Any) -> Any:
        return halves.take(places(address, mask)).view(np.uint32).reshape(site.lanes, machine.lanes)

    return run


def matrix_places(machine: Machine, site: Site, transposed: bool) -> Callable[[Any, Any], Any]:
    """``f(addresses, mask)``: where in shared memory, in 16-bit units, the two halves of each register of ldmatrix or stmatrix lie,
    shape ``(matrices, threads, 2)``; the access is checked and counted.  Of inactive warps the numbers mean nothing."""
    place, matrices = site.place, site.lanes
    provider, column = ldmatrix_positions(matrices, transposed, machine.lanes, machine.warp_size)
    used = np.isin(np.arange(machine.lanes), np.unique(provider))
    counts = machine.counts_of(site)

    def run(address: Any, mask: Any) -> Any:
        active = used if mask is None else used & machine.whole_warps(mask, site.operation)
        relative = np.zeros(machine.lanes, np.int64) + address
        lanes = np.flatnonzero(active)
        wanted = relative[lanes]
        if len(lanes) and (wanted.min() < 0 or wanted.max() > place.buffer.elements * place.itemsize - 16):
            machine.out_of_range(site, wanted // place.itemsize, lanes)
        full = np.where(active, relative + machine.shared_base + place.offset, 0)
        if (full % 16).any():
            machine.misaligned(site, full[lanes] // place.itemsize, lanes, 16 // place.itemsize)
        if counts is not None:
            counts.note(lanes, full[lanes])
        if machine.races is not None:
            machine.races.note(site, full[lanes], lanes)
        return full[provider] // 2 + column

    return run


def make_cp_async(machine: Machine, target: Site, origin: Site, bases: tuple[Any, Any]) -> Callable[..., None]:
    """``f(target_offset, origin_offset, size)``: all lanes copy ``size`` bytes and zero the rest of the width."""
    width = target.width_bytes
    wide = WIDE[width]
    zeros = np.zeros(machine.lanes, np.int64)
    relative, wanted = (zeros if base is None else zeros + base for base in bases)
    memory: Any = machine.shared.view(wide)
    flat, _ = machine.memory(origin.place)
    source = flat[: flat.nbytes // width * width // origin.place.itemsize].view(wide)
    fallback = make_masked_cp_async(machine, target, origin)

    t_low, t_high = int(relative.min()), int(relative.max())
    t_least, t_most = -t_low, target.place.buffer.elements * target.place.itemsize - width - t_high
    full = relative + machine.shared_base
    start = int(full.min())
    full = full - start
    start += target.place.offset
    s_low, s_high = int(wanted.min()), int(wanted.max())
    s_least, s_most = -s_low, origin.place.buffer.elements * origin.place.itemsize - width - s_high
    if (full % width).any() or ((wanted - s_low) % width).any():
        return lambda at, of, size: fallback(relative + at, wanted + of, size, None)
    t_index, s_index = full // width, (wanted - s_low) // width
    # What either side costs depends on the other's addresses too.
    t_table, t_mask = machine.table(target, t_index, width, s_index)
    s_table, s_mask = machine.table(origin, s_index, width, t_index)
    period = s_mask + 1
    races = machine.races
    flight = None if races is None else races.flight(target, full, np.arange(machine.lanes), width)

    def run(target_offset: int, origin_offset: int, size: Any) -> None:
        at, of = start + target_offset, s_low + origin_offset
        if (
            not isinstance(size, int)
            or size != width
            or not t_least <= target_offset <= t_most
            or not s_least <= origin_offset <= s_most
            or at % width
            or of % width
        ):
            fallback(relative + target_offset, wanted + origin_offset, size, None)
            return
        at //= width
        of //= width
        if t_table is not None and s_table is not None:
            t_table[(at & t_mask) * period + (of & s_mask)] += 1
            s_table[(of & s_mask) * period + (at & s_mask)] += 1
        data = source[of:].take(s_index)
        if flight is not None:
            flight[0](at)

        def arrive() -> None:
            if flight is not None:
                flight[1](at)
            memory[at:][t_index] = data

        machine.issue(arrive)

    return run


def make_masked_cp_async(machine: Machine, target: Site, origin: Site) -> Callable[..., None]:
    """``f(target_addresses, origin_addresses, size, mask)`` for any addresses, sizes and mask."""
    width = target.width_bytes
    memory = machine.shared
    flat, _ = machine.memory(origin.place)
    source = flat.view(np.uint8)
    steps = np.arange(width)
    zeros = np.zeros(machine.lanes, np.int64)
    t_counts, s_counts = machine.counts_of(target), machine.counts_of(origin)

    def run(address: Any, wanted: Any, size: Any, mask: Any) -> None:
        lanes = np.arange(machine.lanes) if mask is None else np.flatnonzero(mask)
        relative, of, sizes = ((zeros + x)[lanes] for x in (address, wanted, size))
        t_end = target.place.buffer.elements * target.place.itemsize - width
        if len(lanes) and (relative.min() < 0 or relative.max() > t_end):
            machine.out_of_range(target, relative // target.place.itemsize, lanes)
        at = relative + machine.shared_base[lanes] + target.place.offset
        if (at % width).any():
            machine.misaligned(target, at // target.place.itemsize, lanes)
        reading = sizes > 0
        of, readers = of[reading], lanes[reading]
        past = (of < 0) | (of + sizes[reading] > origin.place.buffer.elements * origin.place.itemsize)
        if past.any():
            machine.out_of_range(origin, of // origin.place.itemsize, readers)
        if (of % width).any():
            machine.misaligned(origin, of // origin.place.itemsize, readers)
        if t_counts is not None and s_counts is not None:
            t_counts.note(lanes, at, np.where(reading, (zeros + wanted)[lanes], NOWHERE))
            s_counts.note(readers, of, at[reading])
        data = np.zeros((len(lanes), width), np.uint8)
        bytes_at = np.minimum(of[:, None] + steps, len(source) - 1)
        data[reading] = np.where(steps < sizes[reading][:, None], source[bytes_at], 0)
        races = machine.races
        flight = None if races is None or not len(lanes) else races.flight(target, at, lanes, races.granule)
        if flight is not None:
            flight[0](0)

        def arrive() -> None:
            if flight is not None:
                flight[1](0)
            memory[at[:, None] + steps] = data

        machine.issue(arrive)

    return run
