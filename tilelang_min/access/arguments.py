"""From what a caller passes to arrays of one shape: addresses and active lanes, a warp wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilelang_min.errors import ShapeError, SimulationError

Addresses = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def as_requests(addresses: Any, mask: Any, warp_size: int) -> tuple[Addresses, Mask]:
    """Byte addresses and active lanes, both (requests, warp_size).

    ``addresses`` is (lanes,) or (requests, lanes) with at most ``warp_size`` lanes, missing lanes being inactive;
    ``mask`` has that shape or (lanes,).  Raises :class:`ShapeError` for other shapes and types,
    :class:`SimulationError` for negative addresses of active lanes.
    """
    given = np.asarray(addresses)
    if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or not 1 <= given.shape[-1] <= warp_size:
        raise ShapeError(
            f"addresses are {given.dtype} of shape {given.shape}",
            remedy=f"pass integers of shape (lanes,) or (requests, lanes) with 1 to {warp_size} lanes",
        )
    requests = np.atleast_2d(given).astype(np.int64, copy=False)
    lanes = requests.shape[1]
    if lanes < warp_size:
        requests = np.pad(requests, ((0, 0), (0, warp_size - lanes)))
    active = as_lanes(mask, given.shape, requests.shape)
    if requests.size and bool(np.any(requests[active] < 0)):
        raise SimulationError("an active lane has a negative address", remedy="mask lanes that access nothing")
    return requests, active


def as_lanes(mask: Any, given: tuple[int, ...], shape: tuple[int, ...], name: str = "mask") -> Mask:
    """Booleans of ``shape`` (requests, warp_size) from a mask for addresses of shape ``given``; missing lanes are off.

    Raises :class:`ShapeError`, which calls the argument ``name``.
    """
    lanes = given[-1]
    if mask is None:
        active = np.ones(lanes, dtype=np.bool_)
    else:
        active = np.asarray(mask)
        if active.dtype != np.bool_ or active.shape not in (given, given[-1:]):
            raise ShapeError(
                f"{name} is {active.dtype} of shape {active.shape}, addresses have shape {given}",
                remedy="pass booleans, one for each address or one for each lane",
            )
    if lanes < shape[-1]:
        active = np.pad(np.atleast_2d(active), ((0, 0), (0, shape[-1] - lanes)))
    return np.broadcast_to(active, shape)


def check_alignment(addresses: Addresses, active: Mask, alignment: int, what: str) -> None:
    """Raise :class:`SimulationError` where an active lane's address is not a multiple of ``alignment`` bytes."""
    wrong = active & (addresses % alignment != 0)
    if bool(wrong.any()):
        request, lane = (int(index) for index in np.argwhere(wrong)[0])
        raise SimulationError(
            f"{what} at byte {int(addresses[request, lane])} (request {request}, lane {lane})",
            remedy=f"its address must be a multiple of {alignment} bytes",
        )
