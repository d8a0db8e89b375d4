"""Atomic updates at run time.

Lanes update in order of their number, instruction by instruction: block after block, thread after thread.  Hardware promises no
order; sums of floats may therefore differ from it in their last bits, and from each other when other blocks are simulated
together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.program.atomics import AtomicCall
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate.narrow import is_narrow
from tilelang_min.simulate.sites import Site

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

UPDATES = {"add": np.add, "max": np.maximum, "min": np.minimum}


def make_atomic(machine: Machine, site: Site, loads: Site | None, name: str) -> Callable[..., None]:
    """``f(address, mask, value, ...)``: every active lane updates the element at ``address`` (bytes from the buffer's start).

    ``loads`` is where the loads of a loop are counted.
    """
    call = AtomicCall.parse(name)
    place, width, size = site.place, site.width_bytes, site.place.itemsize
    flat, _ = machine.memory(place)
    dtype = numpy_dtype(call.dtype)
    memory = flat.view(dtype)
    update = _by_element if is_narrow(call.dtype) else UPDATES[call.operation].at
    most = place.buffer.elements - site.lanes
    every, zeros, steps = np.arange(machine.lanes), np.zeros(machine.lanes, np.int64), np.arange(site.lanes)
    counts = machine.counts_of(site)
    load_counts = None if loads is None else machine.counts_of(loads)
    shared = place.space == "shared"
    warps = machine.lanes_warp() if loads is not None else None
    owners = np.full(len(memory), -1, np.int64) if loads is not None else None

    def run(address: Any, mask: Any, *values: Any) -> None:
        active = every if mask is None else np.flatnonzero(mask)
        if not len(active):
            return
        relative = (zeros + address)[active]
        index = relative // size
        if int(index.min()) < 0 or int(index.max()) > most:
            machine.out_of_range(site, index, active)
        at = relative + machine.shared_base[active] + place.offset if shared else relative
        if machine.strict_alignment and (at % width).any():
            machine.misaligned(site, at // size, active)
        if counts is not None:
            counts.note(active, at)
        if load_counts is not None:
            load_counts.note(active, at)
        if shared and machine.races is not None:
            machine.races.update(site, at, active)
        elements = at // size
        if owners is not None and loads is not None and warps is not None:
            known = owners[elements]
            owners[elements] = warps[active]
            if ((known >= 0) & (known != warps[active])).any() or (owners[elements] != warps[active]).any():
                machine.contended |= {site.number, loads.number}
        operands = np.stack([np.broadcast_to(value, (machine.lanes,))[active] for value in values], axis=1)
        update(memory, (elements[:, None] + steps).reshape(-1), operands.astype(dtype).reshape(-1))

    return run


def _by_element(memory: Any, at: Any, values: Any) -> None:
    """Sums of a type whose arithmetic NumPy does not do in place."""
    for place, value in zip(at.tolist(), values, strict=True):
        memory[place] = memory[place] + value


__all__ = ["make_atomic"]
