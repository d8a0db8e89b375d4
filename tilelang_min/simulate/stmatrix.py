"""stmatrix at run time: the inverse of ldmatrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.sites import Site
from tilelang_min.simulate.transfers import matrix_places

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine


def make_stmatrix(machine: Machine, site: Site, transposed: bool) -> Callable[..., None]:
    """``f(addresses, values, mask)``: warps store rows of 16 bytes at the byte addresses that their lanes give.

    ``values`` are uint32 of shape ``(matrices, lanes)``.
    """
    places = matrix_places(machine, site, transposed)
    halves = machine.shared.view(np.uint16)

    def run(address: Any, values: Any, mask: Any) -> None:
        items = np.ascontiguousarray(np.broadcast_to(values, (site.lanes, machine.lanes))).astype(np.uint32)
        words = items.view(np.uint16).reshape(site.lanes, machine.lanes, 2)
        at = places(address, mask)
        if mask is not None:
            at, words = at[:, mask], words[:, mask]
        halves[at] = words

    return run
