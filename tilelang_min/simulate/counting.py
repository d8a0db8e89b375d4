"""From recorded address patterns to transactions and sectors, by the rules of ``access``.

Sites record how often each pattern ran; here every distinct pattern is worked out once.  Patterns repeat between sites,
chunks of blocks and loop iterations, so the outcomes are kept by content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.errors import UnknownMemoryRule
from tilelang_min.simulate.machine import Machine
from tilelang_min.simulate.result import AccessCount
from tilelang_min.simulate.sites import Site

CLASSES = {
    ("shared", "load"): "shared_load",
    ("shared", "store"): "shared_store",
    ("shared", "ldmatrix"): "ldmatrix",
    ("global", "load"): "global_load",
    ("global", "store"): "global_store",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one execution of a pattern costs, over all its warps."""

    requests: int
    lanes: int
    transactions: int | None = None
    ideal: int | None = None
    ways: int | None = None
    sectors: int | None = None
    sectors_ideal: int | None = None
    rule: str = "unknown"


@dataclass
class Counting:
    """Works out patterns, remembering those it has seen."""

    outcomes: dict[tuple[Any, ...], Outcome] = field(default_factory=dict)

    def counts(self, machine: Machine) -> list[tuple[Site, AccessCount]]:
        """All accesses of a machine that has run, with the site of each."""
        result = []
        for number, recorded in sorted((machine.counts or {}).items()):
            site = machine.translation.sites[number]
            for base, unit, table in recorded.affine:
                times = [(k, n) for k, n in enumerate(table) if n]
                if times:
                    digest = blake2b(np.ascontiguousarray(base).tobytes(), digest_size=16).digest()
                    lanes = self._lanes(machine, site)
                    for k, n in times:
                        outcome = self._outcome(machine, site, (digest, unit, k), lanes, base, unit, k)
                        result.append((site, _count(site, outcome, n)))
            for (lane_bytes, address_bytes), n in recorded.masked.items():
                lanes = np.frombuffer(lane_bytes, np.int64)
                every = np.zeros(machine.lanes, np.int64)
                every[lanes] = np.frombuffer(address_bytes, np.int64)
                digest = blake2b(lane_bytes + b"|" + address_bytes, digest_size=16).digest()
                outcome = self._outcome(machine, site, (digest, 1, 0), lanes, every, 1, 0)
                result.append((site, _count(site, outcome, n)))
        return result

    @staticmethod
    def _lanes(machine: Machine, site: Site) -> Any:
        lanes = np.arange(machine.lanes)
        return lanes[lanes % machine.warp_size < 8 * site.lanes] if site.kind == "ldmatrix" else lanes

    def _outcome(
        self, machine: Machine, site: Site, pattern: tuple[Any, ...], lanes: Any, base: Any, unit: int, offset: int
    ) -> Outcome:
        matrices = site.lanes if site.kind == "ldmatrix" else None
        key = (site.place.space, site.kind, site.width_bytes, matrices, machine.lanes, machine.threads, *pattern)
        known = self.outcomes.get(key)
        if known is None:
            addresses = (np.broadcast_to(base, (machine.lanes,)) + offset) * unit
            mask = np.zeros(machine.lanes, bool)
            mask[lanes] = True
            known = self.outcomes[key] = _work_out(machine, site, _warps(machine, addresses), _warps(machine, mask))
        return known


def executed(
    machine: Machine, regions: list[int], counts: list[tuple[Site, AccessCount]]
) -> Iterator[dict[int, dict[str, int]]]:
    """Instructions by operation and class: those of the regions that ran, and the accesses."""
    for (operation, work), times in zip(machine.translation.regions, regions, strict=True):
        if times:
            yield {operation: {klass: n * times for klass, n in work.items()}}
    for site, count in counts:
        klass = CLASSES.get((count.space, count.access))
        if klass is not None and not site.part and count.requests:
            yield {count.operation: {klass: count.requests}}


def _warps(machine: Machine, values: Any) -> Any:
    """Values by lane as ``(warps, warp_size)``; a block's last warp is filled up with zeros."""
    rows = values.reshape(-1, machine.threads)
    rest = -machine.threads % machine.warp_size
    if rest:
        rows = np.pad(rows, ((0, 0), (0, rest)))
    return rows.reshape(-1, machine.warp_size)


def _work_out(machine: Machine, site: Site, addresses: Any, mask: Any) -> Outcome:
    requests, lanes = int(mask.any(axis=1).sum()), int(mask.sum())
    target, width = machine.program.target, site.width_bytes * 8
    if target.kind == "cpu":
        return Outcome(requests, lanes)
    try:
        if site.place.space == "global":
            sectors = global_sectors(addresses, site.kind, width, target, mask)
            return Outcome(
                requests, lanes, sectors=sectors.sectors, sectors_ideal=sectors.sectors_ideal, rule=sectors.rule
            )
        matrices = site.lanes if site.kind == "ldmatrix" else None
        passes = bank_conflicts(addresses, site.kind, width, target, mask, matrices=matrices)
    except UnknownMemoryRule:
        return Outcome(requests, lanes)
    return Outcome(requests, lanes, passes.transactions, passes.transactions_ideal, passes.ways, rule=passes.rule)


def _count(site: Site, outcome: Outcome, times: int) -> AccessCount:
    one = AccessCount(
        operation=site.operation,
        buffer=site.place.buffer.name,
        space=site.place.space,
        access=site.kind,
        width_bits=site.width_bytes * 8,
        requests=outcome.requests,
        transactions=outcome.transactions,
        transactions_ideal=outcome.ideal,
        ways=outcome.ways,
        sectors=outcome.sectors,
        sectors_ideal=outcome.sectors_ideal,
        bytes=outcome.lanes * site.width_bytes,
        rule=outcome.rule,
    )
    return one.scaled(times)
