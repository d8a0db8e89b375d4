"""Counting rules of NVIDIA shared memory, sm_75 and later: loads, stores, ldmatrix and stmatrix.  cp.async is in ``copies.py``.

The model of the programming guide: lanes go in phases of 128 bytes, and a phase takes as many wavefronts as distinct
words of one bank.  Beyond it Nsight Compute counts on an H200 as follows (docs/memory-model.md: how that is known):

* two phases of a 64- or 128-bit load go as one, in one wavefront, where together they have no conflict and their lanes come
  in pairs: every active lane n has the address of lane n^1, or every one that of n^2; a lane whose partner is inactive does
  not stop that.  Lanes 0 to 15 of a 128-bit load have a condition of their own: partners must be active, unless lane 31 is
  inactive, when lanes 0 to 15 need not be in pairs at all;
* a 128-bit load of one address by all its active lanes takes a wavefront for each 16 of them;
* the ideal of a 64- or 128-bit access is its active bytes over 128; of a load never more than its wavefronts.
"""

from __future__ import annotations

import numpy as np

from tilelang_min.access.arguments import Addresses, Mask
from tilelang_min.access.passes import phase_passes
from tilelang_min.access.results import Counted, Counts
from tilelang_min.targets import SharedPhases

LINE = 128
"""Bytes that one wavefront moves at most."""


def count_phases(addresses: Addresses, active: Mask, rule: SharedPhases) -> Counted:
    """Loads, stores, ldmatrix and stmatrix by their phases."""
    width = rule.width_bits // 8
    passes = phase_passes(addresses, active, rule.phases, width_bytes=width, banks=rule.banks)
    certain = np.zeros(len(addresses), dtype=np.bool_)
    if rule.access not in ("load", "store") or width < 8:
        ideal = np.count_nonzero(passes, axis=1).astype(np.int64)
        return Counted(passes.sum(axis=1), ideal, passes.max(axis=1, initial=0), certain)
    if rule.access == "load":
        _join_phases(addresses, active, rule, passes)
    transactions, ideal = passes.sum(axis=1), -(-active.sum(axis=1) * width // LINE)
    if rule.access == "load":
        ideal = np.minimum(ideal, transactions)
    return Counted(transactions, ideal, passes.max(axis=1, initial=0), certain)


def _join_phases(addresses: Addresses, active: Mask, rule: SharedPhases, passes: Counts) -> None:
    """Count again, in place, phases of a 64- or 128-bit load that go two at a time; the second of the two takes none."""
    width = rule.width_bits // 8
    together = 2 * len(rule.phases[0])
    paired = _paired(addresses, active, together, strict=False)
    if width == 16:
        strict = _paired(addresses, active, together, strict=True)
        paired[:, 0] = strict[:, 0] | ~active[:, 31]
    which = np.flatnonzero(paired.any(axis=1))
    if len(which):
        wide = tuple(rule.phases[i] + rule.phases[i + 1] for i in range(0, len(rule.phases), 2))
        joined = phase_passes(addresses[which], active[which], wide, width_bytes=width, banks=rule.banks)
        rows, groups = np.nonzero(paired[which] & (joined == 1))
        passes[which[rows], 2 * groups], passes[which[rows], 2 * groups + 1] = 1, 0
    if width == 16:
        lanes = active.sum(axis=1)
        lowest = np.min(addresses, axis=1, where=active, initial=np.iinfo(np.int64).max)
        uniform = (lanes > 0) & ((addresses == lowest[:, None]) | ~active).all(axis=1)
        passes[uniform] = 0
        passes[uniform, 0] = 1
        passes[uniform, 1] = lanes[uniform] > 16


def _paired(addresses: Addresses, active: Mask, together: int, *, strict: bool) -> Mask:
    """Whether the active lanes of each group of ``together`` lanes have their partners' addresses: (requests, groups).

    All partners at a distance of one, or all at two.  ``strict``: an inactive lane is no partner.
    """
    lane = np.arange(addresses.shape[1])
    groups = (len(addresses), len(lane) // together)
    paired = np.zeros(groups, dtype=np.bool_)
    for distance in (1, 2):
        partner = lane ^ distance
        same, there = addresses == addresses[:, partner], active[:, partner]
        alike = same & there if strict else same | ~there
        paired |= (alike | ~active).reshape(*groups, together).all(axis=2)
    return paired
