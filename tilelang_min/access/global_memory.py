"""Coalescing of global memory accesses, given the address of each lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_min.access.arguments import Addresses, Mask, as_requests, check_alignment
from tilelang_min.access.copies import SOURCE, moved_sectors
from tilelang_min.access.passes import distinct
from tilelang_min.access.results import Sectors
from tilelang_min.errors import ShapeError, UnknownMemoryRule
from tilelang_min.targets import GlobalTransfer, Target, resolve

LOADS = ("load", "cp_async", "cp_async_bypass")
STORES = ("store", "atomic")
WIDTHS = (8, 16, 32, 64, 96, 128)


def global_sectors(
    addresses: Any,
    access: str = "load",
    width_bits: int = 128,
    target: str | Target = "cuda:sm_90a",
    mask: Any = None,
    destination: Any = None,
) -> Sectors:
    """Distinct sectors that warp-wide global memory accesses touch.

    ``addresses``: byte addresses, integers of shape (lanes,) or (requests, lanes); ``access``: ``load``, ``store``,
    ``atomic``, ``cp_async`` or ``cp_async_bypass``; ``mask``: active lanes (of a copy: those that read).

    A cp_async_bypass asks for a sector once for every sector of shared memory that it writes from it, so that
    ``destination``, its shared byte addresses, same shape, belongs to the question; without it they are taken to lie as the
    sources do, and the rule is ``open``.

    A sector is 32 bytes on NVIDIA (Nsight Compute's ``memory_l2_theoretical_sectors_global``).  On AMD it is what the
    L1 asks the L2 for: 64 bytes on gfx90a; on gfx942 and gfx950 128 bytes for loads and 64 for stores.  Ideal is the
    least number of sectors that hold the active lanes' bytes, and never more than were touched.

    Raises :class:`UnknownMemoryRule` for a CPU and for accesses that are none of these, :class:`ShapeError` for arrays
    that do not fit and :class:`SimulationError` for misaligned addresses on NVIDIA.
    """
    machine = resolve(target)
    transfer = machine.global_transfer
    vectors = {96} if machine.vendor == "nvidia" else set()
    known = transfer is not None and access in (*LOADS, *STORES) and width_bits in set(WIDTHS) - vectors
    if transfer is None or not known or (access == "cp_async_bypass" and width_bits != 128):
        raise UnknownMemoryRule(
            f'no counting rule is known for a global "{access}" of {width_bits} bits on {machine.name}',
            remedy=f"known on GPUs: {', '.join((*LOADS, *STORES))} of {', '.join(map(str, WIDTHS))} bits (96: AMD only)",
        )
    requests, active = as_requests(addresses, mask, machine.warp_size)
    width = width_bits // 8
    if machine.vendor == "nvidia":
        check_alignment(requests, active, width, f"misaligned global {access} of {width_bits} bits")
    if access == "cp_async_bypass" and machine.vendor == "nvidia":
        return _bypassing(addresses, requests, active, destination, transfer)
    if destination is not None:
        raise ShapeError(f"destination with {access}", remedy="it is for cp_async_bypass on NVIDIA GPUs")
    sector = transfer.store_bytes if access in STORES else transfer.load_bytes
    first = requests // sector
    last = (requests + width - 1) // sector
    if bool(np.any((first != last) & active)):
        first, touched = np.concatenate([first, last], axis=1), np.concatenate([active, active], axis=1)
    else:
        touched = active
    sectors = distinct(first, touched)
    ideal = np.minimum(sectors, -(-active.sum(axis=1) * width // sector))
    return Sectors(
        sectors=int(sectors.sum()),
        sectors_ideal=int(ideal.sum()),
        sector_bytes=sector,
        requests=int(np.count_nonzero(active.any(axis=1))),
        rule="open" if access == "atomic" and machine.vendor != "nvidia" else "known",
        source=transfer.source,
        per_request=sectors,
        per_request_ideal=ideal,
    )


def _bypassing(given: Any, requests: Addresses, active: Mask, destination: Any, transfer: GlobalTransfer) -> Sectors:
    """Sectors of a cp.async.cg."""
    target = requests
    if destination is not None:
        if np.shape(destination) != np.shape(given):
            raise ShapeError(
                f"destination of shape {np.shape(destination)} for addresses of shape {np.shape(given)}",
                remedy="pass one shared address for each global address",
            )
        target, _ = as_requests(destination, None, requests.shape[1])
        check_alignment(target, active, 16, "misaligned destination of a cp.async of 128 bits")
    sectors, ideal = moved_sectors(requests, active, target)
    return Sectors(
        sectors=int(sectors.sum()),
        sectors_ideal=int(ideal.sum()),
        sector_bytes=transfer.load_bytes,
        requests=int(np.count_nonzero(active.any(axis=1))),
        rule="open" if destination is None else "known",
        source=SOURCE,
        per_request=sectors,
        per_request_ideal=ideal,
    )
