"""Finds two threads that touch the same shared memory without a barrier between them.

For each granule (the smallest element of any shared buffer) the detector keeps who wrote and who read it last, as a
stamp: epoch, lane and access site packed into one integer, epoch highest.  A barrier starts the next epoch, which makes
all earlier stamps harmless; so the usual answer, that nobody touched the granules in this epoch, takes one maximum.

Atomic updates of one element by several threads are no race among themselves; with plain accesses they are.

The target of a cp.async is nobody's from its issue until the wait that lets it arrive: touching it in between is an
error too (the wait covers too little); then it counts as a write by its thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.sites import Site

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

SITE_BITS = 20
LANE_BITS = 18
MANY = (1 << LANE_BITS) - 1
"""Stands for several lanes."""
EPOCH = 1 << (SITE_BITS + LANE_BITS)
IN_FLIGHT = ((1 << (62 - SITE_BITS - LANE_BITS)) - 1) * EPOCH
"""Epoch of granules that a cp.async is still writing: later than all others."""


class RaceDetector:
    """Watches the shared memory of all blocks of a machine."""

    def __init__(self, machine: Machine, granule: int) -> None:
        self.machine, self.granule = machine, granule
        size = machine.shared.size // granule
        self.epoch = EPOCH
        self.writers = np.zeros(size, np.int64)
        self.readers = np.zeros(size, np.int64)
        self.updaters: Any = None  # by atomics: made when the first one comes

    def barrier(self) -> None:
        """All threads of every block have met."""
        self.epoch += EPOCH

    def hook(self, site: Site, addresses: Any, lanes: Any, unit: int) -> Callable[[int], None]:
        """A function of an offset in ``unit`` bytes, for accesses at ``addresses + offset * unit`` by ``lanes``."""
        granules, owners = self._granules(site, addresses, lanes)
        check = self._write if site.kind not in ("load", "ldmatrix") else self._read

        def touch(offset: int) -> None:  # ldmatrix counts in 2 bytes, also where each element has 4
            check(site, granules, owners, offset * unit // self.granule)

        return touch

    def flight(self, site: Site, addresses: Any, lanes: Any, unit: int) -> tuple[Callable[[int], None], ...]:
        """Two functions of an offset for a cp.async: one for its issue, one for its arrival."""
        granules, owners = self._granules(site, addresses, lanes)
        scale = unit // self.granule
        stamp = IN_FLIGHT + (MANY << SITE_BITS) + site.number

        def issue(offset: int) -> None:
            self._write(site, granules, owners, offset * scale)
            self.writers[offset * scale :][granules] = stamp

        def arrive(offset: int) -> None:
            self.writers[offset * scale :][granules] = owners + self.epoch

        return issue, arrive

    def note(self, site: Site, addresses: Any, lanes: Any) -> None:
        """One access at byte addresses."""
        if len(lanes):
            granules, owners = self._granules(site, addresses, lanes)
            (self._write if site.kind not in ("load", "ldmatrix") else self._read)(site, granules, owners, 0)

    def update(self, site: Site, addresses: Any, lanes: Any) -> None:
        """One atomic at byte addresses."""
        if not len(lanes):
            return
        if self.updaters is None:
            self.updaters = np.zeros(len(self.writers), np.int64)
        granules, owners = self._granules(site, addresses, lanes)
        for stamps, before in ((self.writers, "wrote"), (self.readers, "read")):
            known = stamps.take(granules)
            if known.max() >= self.epoch:
                self._compare(site, known, owners, granules, "updates", before)
        known = self.updaters.take(granules)
        stamps = owners + self.epoch
        several = (known >= self.epoch) & (known >> SITE_BITS != stamps >> SITE_BITS)
        self.updaters[granules] = np.where(several, self.epoch + (MANY << SITE_BITS) + site.number, stamps)

    def _after_updates(self, site: Site, granules: Any, owners: Any, now: str) -> None:
        """Raises where another lane has updated one of the granules in this epoch."""
        if self.updaters is not None:
            updated = self.updaters.take(granules)
            if updated.max() >= self.epoch:
                self._compare(site, updated, owners, granules, now, "updated")

    def _granules(self, site: Site, addresses: Any, lanes: Any) -> tuple[Any, Any]:
        """The distinct granules touched and, for each, its lane or ``MANY``, shifted as in a stamp."""
        steps = np.arange(site.width_bytes // self.granule)
        granules = (addresses[:, None] // self.granule + steps).reshape(-1)
        owners = np.repeat(lanes, len(steps))
        order = np.argsort(granules, kind="stable")
        granules, owners = granules[order], owners[order]
        starts = np.flatnonzero(np.concatenate([[True], granules[1:] != granules[:-1]]))
        lowest = np.minimum.reduceat(owners, starts)
        highest = np.maximum.reduceat(owners, starts)
        lane = np.where(lowest == highest, lowest, MANY)
        return granules[starts], (lane << SITE_BITS) + site.number

    def _read(self, site: Site, granules: Any, owners: Any, offset: int) -> None:
        stamps = owners + self.epoch
        written = self.writers[offset:].take(granules)
        if written.max() >= self.epoch:
            self._compare(site, written, owners, granules + offset, "reads", "wrote")
        self._after_updates(site, granules + offset, owners, "reads")
        readers = self.readers[offset:]
        known = readers.take(granules)
        if known.max() >= self.epoch:
            several = (known >= self.epoch) & (known >> SITE_BITS != stamps >> SITE_BITS)
            stamps = np.where(several, self.epoch + (MANY << SITE_BITS) + site.number, stamps)
        readers[granules] = stamps

    def _write(self, site: Site, granules: Any, owners: Any, offset: int) -> None:
        if (owners >> SITE_BITS).max() == MANY:
            clash = np.where(owners >> SITE_BITS == MANY, self.epoch + owners, 0)
            self._compare(site, clash, owners, granules + offset, "writes", "wrote")
        written = self.writers[offset:].take(granules)
        if written.max() >= self.epoch:
            self._compare(site, written, owners, granules + offset, "writes", "wrote")
        self._after_updates(site, granules + offset, owners, "writes")
        read = self.readers[offset:].take(granules)
        if read.max() >= self.epoch:
            self._compare(site, read, owners, granules + offset, "writes", "read")
        self.writers[offset:][granules] = owners + self.epoch

    def _compare(self, site: Site, stamps: Any, owners: Any, granules: Any, now: str, before: str) -> None:
        """Raises if any stamp of this epoch is another lane's."""
        flying = stamps >= IN_FLIGHT
        since = np.where(flying, IN_FLIGHT, self.epoch)
        mine, theirs = owners >> SITE_BITS, (stamps - since) >> SITE_BITS
        bad = (stamps >= self.epoch) & ((mine != theirs) | (mine == MANY))
        if not bad.any():
            return
        machine = self.machine
        i = int(np.flatnonzero(bad)[0])
        other = machine.translation.sites[(int(stamps[i]) - int(since[i])) & ((1 << SITE_BITS) - 1)]
        byte = int(granules[i]) * self.granule % machine.translation.layout.block_bytes - site.place.offset
        here, there = (
            "several threads" if lane == MANY else machine.thread(int(lane)) for lane in (mine[i], theirs[i])
        )
        access = f"{machine.label(site.operation)} {now} byte {byte} of {site.place.buffer.name} in {here}"
        if flying[i]:
            raise machine.error(
                f"race on shared memory: {access}, while the cp.async of {machine.label(other.operation)} may still be "
                "writing it",
                site.operation,
                "the wait before it must cover that copy's group (and a barrier must follow the wait)",
            )
        raise machine.error(
            f"race on shared memory: {access}, and {machine.label(other.operation)} {before} it in {there}, "
            "with no barrier between",
            site.operation,
            "a barrier is missing between the two operations",
        )
