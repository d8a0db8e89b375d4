"""Coalescing of global memory accesses, given the address of each lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_min.access.arguments import as_requests, check_alignment
from tilelang_min.access.passes import distinct
from tilelang_min.access.results import Sectors
from tilelang_min.errors import UnknownMemoryRule
from tilelang_min.targets import Target, resolve

LOADS = ("load", "cp_async", "cp_async_bypass")
WIDTHS = (8, 16, 32, 64, 96, 128)


def global_sectors(
    addresses: Any,
    access: str = "load",
    width_bits: int = 128,
    target: str | Target = "cuda:sm_90a",
    mask: Any = None,
) -> Sectors:
    """Distinct sectors that warp-wide global memory accesses touch.

    ``addresses``: byte addresses, integers of shape (lanes,) or (requests, lanes); ``access``: ``load``, ``store``,
    ``cp_async`` or ``cp_async_bypass`` (the global side of these counts as a load); ``mask``: active lanes.

    A sector is 32 bytes on NVIDIA (Nsight Compute's ``memory_l2_theoretical_sectors_global``).  On AMD it is what the
    L1 asks the L2 for: 64 bytes on gfx90a; on gfx942 and gfx950 128 bytes for loads and 64 for stores.  Ideal is the
    least number of sectors that hold the active lanes' bytes, and never more than were touched.

    Raises :class:`UnknownMemoryRule` for a CPU and for accesses that are none of these, :class:`ShapeError` for arrays
    that do not fit and :class:`SimulationError` for misaligned addresses on NVIDIA.
    """
    machine = resolve(target)
    transfer = machine.global_transfer
    vectors = {96} if machine.vendor == "nvidia" else set()
    if transfer is None or access not in (*LOADS, "store") or width_bits not in set(WIDTHS) - vectors:
        raise UnknownMemoryRule(
            f'no counting rule is known for a global "{access}" of {width_bits} bits on {machine.name}',
            remedy=f"known on GPUs: {', '.join((*LOADS, 'store'))} of {', '.join(map(str, WIDTHS))} bits (96: AMD only)",
        )
    requests, active = as_requests(addresses, mask, machine.warp_size)
    width = width_bits // 8
    if machine.vendor == "nvidia":
        check_alignment(requests, active, width, f"misaligned global {access} of {width_bits} bits")
    sector = transfer.store_bytes if access == "store" else transfer.load_bytes
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
        rule="known",
        source=transfer.source,
        per_request=sectors,
        per_request_ideal=ideal,
    )
