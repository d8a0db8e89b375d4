"""What the counting rules answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """What a rule says of requests, an entry each: transactions, ideals, most passes of a phase, and which follow no certain
    rule."""

    transactions: Counts
    ideal: Counts
    ways: Counts
    uncertain: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Passes that shared memory accesses take, summed over requests.

    ``transactions`` are wavefronts on NVIDIA, LDS cycles on AMD; ``transactions_ideal`` what the same accesses would
    take without conflicts, ``conflicts`` the difference, ``ways`` the most passes of any phase.  ``requests`` counts
    requests with an active lane.  ``rule`` is ``known``, or ``open`` where the counts are a best guess because the
    hardware's rule is not known; ``source`` says where the rule is from.  ``per_request`` holds the transactions of
    each request, ``per_request_ideal`` and ``per_request_ways`` likewise; shape (requests,).
    """

    transactions: int
    transactions_ideal: int
    conflicts: int
    ways: int
    requests: int
    rule: str
    source: str
    per_request: Counts = field(repr=False, compare=False)
    per_request_ideal: Counts = field(repr=False, compare=False)
    per_request_ways: Counts = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Sectors:
    """Units of ``sector_bytes`` bytes that global memory accesses touch, summed over requests.

    ``sectors_ideal`` is the least that could hold the bytes of the active lanes.  Other fields as in
    :class:`BankConflicts`.
    """

    sectors: int
    sectors_ideal: int
    sector_bytes: int
    requests: int
    rule: str
    source: str
    per_request: Counts = field(repr=False, compare=False)
    per_request_ideal: Counts = field(repr=False, compare=False)
