"""The one counting step that every rule is made of: how many passes a group of lanes takes through the banks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilelang_min.access.arguments import Addresses, Mask
from tilelang_min.access.results import Counts

CHUNK = 1 << 12
"""Requests at a time: small enough that what is made of them stays in cache."""

_ONES = np.array([bin(value).count("1") for value in range(1 << 16)], dtype=np.int64)


def phase_passes(
    addresses: Addresses,
    active: Mask,
    phases: tuple[tuple[int, ...], ...],
    *,
    width_bytes: int,
    banks: int,
    merge: bool = True,
) -> Counts:
    """Passes of each phase of each request, shape (requests, phases).

    A pass serves one 4-byte word of each bank, to any number of lanes: a phase takes the largest number of distinct
    words of one bank that its active lanes touch (with ``merge=False``: of words, counted once for each lane).  A
    phase without an active lane takes none.  All phases have equally many lanes.
    """
    words = max(width_bytes // 4, 1)
    # Aligned vectors either share all their words or none, so that a vector counts as one word of a wider bank.
    whole = words & (words - 1) == 0 and not bool(np.any((addresses & (4 * words - 1)) * active))
    order = np.asarray(phases)
    counts = np.empty((len(addresses), len(phases)), dtype=np.int64)
    for first in range(0, len(addresses), CHUNK):
        part = slice(first, first + CHUNK)
        lanes = (addresses[part] // (4 * words if whole else 4))[:, order.ravel()].reshape(-1, order.shape[1])
        on = active[part][:, order.ravel()].reshape(-1, order.shape[1])
        if whole:
            passes = _passes(lanes, on, banks // words, merge)
        else:
            units = (lanes[:, :, None] + np.arange(words)).reshape(len(lanes), -1)
            passes = _passes(units, np.repeat(on, words, axis=1), banks, merge)
        counts[part] = passes.reshape(-1, len(phases))
    return counts


def _passes(units: Addresses, active: Mask, banks: int, merge: bool) -> Counts:
    """Largest number of (distinct) active units in one bank, for each row; ``banks`` is a power of two."""
    counted = active
    if merge:
        ordered = _in_order(units, active)
        units, counted = ordered, _first_of_each(ordered)
    bins = (np.arange(len(units)) * banks)[:, None] + (units & (banks - 1))
    counts = np.bincount(bins[counted], minlength=len(units) * banks)
    passes: Counts = counts.reshape(len(units), banks).max(axis=1)
    return passes


def distinct(values: Addresses, active: Mask) -> Counts:
    """Number of distinct active values in each row."""
    counts = np.zeros(len(values), dtype=np.int64)
    for first in range(0, len(values), CHUNK):
        part = slice(first, first + CHUNK)
        counts[part] = _first_of_each(_in_order(values[part], active[part])).sum(axis=1)
    return counts


def popcount(values: Counts) -> Counts:
    """Number of ones in the lowest 32 bits of each value."""
    ones: Counts = _ONES[values & 0xFFFF] + _ONES[values >> 16 & 0xFFFF]
    return ones


def _in_order(values: Addresses, active: Mask) -> npt.NDArray[np.signedinteger]:
    """Rows in order, with the largest value of the type in place of inactive entries."""
    # Narrow integers sort about twice as fast, and shared memory addresses always are.
    narrow = int(values.max(initial=0)) < np.iinfo(np.int32).max and int(values.min(initial=0)) >= 0
    dtype = np.int32 if narrow else np.int64
    chosen: npt.NDArray[np.signedinteger] = np.where(active, values.astype(dtype), dtype(np.iinfo(dtype).max))
    chosen.sort(axis=1)
    return chosen


def _first_of_each(ordered: npt.NDArray[np.signedinteger]) -> Mask:
    """Where a row of :func:`_in_order` holds a value for the first time."""
    first: Mask = ordered != np.iinfo(ordered.dtype).max
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return first
