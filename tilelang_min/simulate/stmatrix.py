"""stmatrix at run time: the inverse of ldmatrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.matrix import ldmatrix_positions
from tilelang_min.simulate.sites import Site

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine


def make_stmatrix(machine: Machine, site: Site, transposed: bool) -> Callable[..., None]:
    """``f(addresses, values, mask)``: warps store rows of 16 bytes at the byte addresses that their lanes give.

    ``values`` are uint32 of shape ``(matrices, lanes)``.
    """
    place, matrices = site.place, site.lanes
    provider, column = ldmatrix_positions(matrices, transposed, machine.lanes, machine.warp_size)
    used = np.isin(np.arange(machine.lanes), np.unique(provider))
    halves = machine.shared.view(np.uint16)
    counts = machine.counts_of(site)

    def run(address: Any, values: Any, mask: Any) -> None:
        whole = np.ones(machine.lanes, bool) if mask is None else machine.whole_warps(mask, site.operation)
        active = used & whole
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
        items = np.ascontiguousarray(np.broadcast_to(values, (matrices, machine.lanes))).astype(np.uint32)
        words = items.view(np.uint16).reshape(matrices, machine.lanes, 2)
        at = full[provider] // 2 + column
        writing = whole[None, :, None] & np.ones(at.shape, bool)
        halves[at[writing]] = words[writing]

    return run
