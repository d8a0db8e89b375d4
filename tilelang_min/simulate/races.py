"""Finds two threads that touch the same shared memory without a barrier between them.

For each granule (the smallest element of any shared buffer) the detector keeps who wrote and who read it last, as a
stamp ``epoch * stride + lane``; a barrier starts the next epoch, which makes all earlier stamps harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_min.simulate.sites import Site

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine


class RaceDetector:
    """Watches the shared memory of all blocks of a machine."""

    def __init__(self, machine: Machine, granule: int) -> None:
        self.machine, self.granule = machine, granule
        size = machine.shared.size // granule
        self.many = machine.lanes  # stands for "several lanes"
        self.stride = machine.lanes + 1
        self.epoch = self.stride  # stamp of lane 0 in the current epoch
        self.writers = np.zeros(size, np.int64)
        self.readers = np.zeros(size, np.int64)
        self.write_sites = np.zeros(size, np.int32)
        self.read_sites = np.zeros(size, np.int32)

    def barrier(self) -> None:
        """All threads of every block have met."""
        self.epoch += self.stride

    def hook(self, site: Site, addresses: Any, lanes: Any, unit: int) -> Callable[[int], None]:
        """A function of an offset in ``unit`` bytes, for accesses at ``addresses + offset * unit`` by ``lanes``."""
        granules, owners = self._granules(site, addresses, lanes)
        scale = unit // self.granule
        check = self._write if site.kind not in ("load", "ldmatrix") else self._read

        def touch(offset: int) -> None:
            check(site, granules, owners, offset * scale)

        return touch

    def note(self, site: Site, addresses: Any, lanes: Any) -> None:
        """One access at byte addresses."""
        if len(lanes):
            granules, owners = self._granules(site, addresses, lanes)
            (self._write if site.kind not in ("load", "ldmatrix") else self._read)(site, granules, owners, 0)

    def _granules(self, site: Site, addresses: Any, lanes: Any) -> tuple[Any, Any]:
        """The distinct granules touched and, for each, its lane or ``many``."""
        steps = np.arange(site.width_bytes // self.granule)
        granules = (addresses[:, None] // self.granule + steps).reshape(-1)
        owners = np.repeat(lanes, len(steps))
        order = np.argsort(granules, kind="stable")
        granules, owners = granules[order], owners[order]
        first = np.concatenate([[True], granules[1:] != granules[:-1]])
        starts = np.flatnonzero(first)
        lowest = np.minimum.reduceat(owners, starts)
        highest = np.maximum.reduceat(owners, starts)
        return granules[starts], np.where(lowest == highest, lowest, self.many)

    def _read(self, site: Site, granules: Any, owners: Any, offset: int) -> None:
        stamps = owners + self.epoch
        written = self.writers[offset:].take(granules)
        bad = (written >= self.epoch) & (written != stamps)
        if bad.any():
            self._report(site, self.write_sites, written, owners, granules + offset, bad, "reads", "wrote")
        readers = self.readers[offset:]
        known = readers.take(granules)
        readers[granules] = np.where((known >= self.epoch) & (known != stamps), self.epoch + self.many, stamps)
        self.read_sites[offset:][granules] = site.number

    def _write(self, site: Site, granules: Any, owners: Any, offset: int) -> None:
        stamps = owners + self.epoch
        written = self.writers[offset:].take(granules)
        bad = ((written >= self.epoch) & (written != stamps)) | (owners == self.many)
        if bad.any():
            self._report(site, self.write_sites, written, owners, granules + offset, bad, "writes", "wrote")
        read = self.readers[offset:].take(granules)
        bad = (read >= self.epoch) & (read != stamps)
        if bad.any():
            self._report(site, self.read_sites, read, owners, granules + offset, bad, "writes", "read")
        self.writers[offset:][granules] = stamps
        self.write_sites[offset:][granules] = site.number

    def _report(
        self, site: Site, sites: Any, stamps: Any, owners: Any, granules: Any, bad: Any, now: str, before: str
    ) -> None:
        machine = self.machine
        i = int(np.flatnonzero(bad)[0])
        granule = int(granules[i])
        earlier = int(stamps[i]) - self.epoch
        other = machine.translation.sites[int(sites[granule])] if earlier >= 0 else site
        byte = granule * self.granule % machine.translation.layout.block_bytes - site.place.offset
        me = "several threads at once" if owners[i] == self.many else machine.thread(int(owners[i]))
        them = "several threads" if earlier < 0 or earlier == self.many else machine.thread(earlier)
        raise machine.error(
            f"race on shared memory: {machine.label(site.operation)} {now} byte {byte} of {site.place.buffer.name} in "
            f"{me}, and {machine.label(other.operation)} {before} it in {them}, with no barrier between",
            site.operation,
            "a barrier is missing between the two operations",
        )
