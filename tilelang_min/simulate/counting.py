"""From recorded address patterns to transactions and sectors, by the rules of ``access``.

Sites record how often each pattern ran; here every distinct pattern is worked out once.  Patterns repeat between sites,
chunks of blocks and loop iterations, so the outcomes are kept by content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.errors import UnknownMemoryRule
from tilelang_min.simulate.machine import Machine
from tilelang_min.simulate.result import AccessCount
from tilelang_min.simulate.sites import NOWHERE, PATTERN_BYTES, Site, SiteCounts, relative

CLASSES = {
    ("shared", "load"): "shared_load",
    ("shared", "store"): "shared_store",
    ("shared", "atomic"): "shared_store",
    ("global", "atomic"): "global_store",
    ("shared", "ldmatrix"): "ldmatrix",
    ("shared", "stmatrix"): "shared_store",
    ("global", "load"): "global_load",
    ("global", "store"): "global_store",
}

MATRIX_KINDS = ("ldmatrix", "stmatrix")


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
            for pattern, n in patterns(machine, site, recorded):
                count = _count(site, self._outcome(machine, site, pattern), n)
                if site.number in machine.contended and count.rule == "known":
                    count = replace(count, rule="open")
                result.append((site, count))
        return result

    def _outcome(self, machine: Machine, site: Site, pattern: Addresses) -> Outcome:
        matrices = site.lanes if site.kind in MATRIX_KINDS else None
        shape = (machine.lanes, machine.threads)
        key = (
            site.place.space,
            site.kind,
            site.part,
            site.width_bytes,
            matrices,
            *shape,
            pattern.digest,
            pattern.offsets,
        )
        known = self.outcomes.get(key)
        if known is None:
            known = self.outcomes[key] = _work_out(machine, site, pattern)
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Addresses:
    """Addresses of one access: ``(base + offsets[0]) * unit`` by lane, for ``lanes``; ``origin`` likewise with
    ``offsets[1]``.  ``digest`` identifies base, unit, lanes and origin by content."""

    base: Any
    unit: int
    lanes: Any
    digest: bytes
    offsets: tuple[int, ...] = (0, 0)
    origin: Any = None


def patterns(
    machine: Machine, site: Site, recorded: SiteCounts, *, exact: bool = False
) -> Iterator[tuple[Addresses, int]]:
    """Every distinct pattern of a site and how often it ran.

    Distinct in what decides the cost, or in its very addresses with ``exact`` (which must have been recorded).
    """
    for entry in recorded.patterns:
        period = PATTERN_BYTES // entry.unit
        times: Counter[tuple[int, int]] = Counter()
        for (first, second), n in entry.offsets():
            times[first if exact else first % period, second] += n
        if not times:
            continue
        lanes = np.arange(machine.lanes) if entry.lanes is None else entry.lanes
        base = np.zeros(machine.lanes, np.int64)
        base[lanes] = entry.base
        if site.kind in MATRIX_KINDS:  # the addresses of further lanes are ignored
            lanes = lanes[lanes % machine.warp_size < 8 * site.lanes]
        digest = _digest(base, entry.origin, bytes([entry.unit]) + lanes.tobytes())
        for offsets, n in times.items():
            yield Addresses(base, entry.unit, lanes, digest, offsets, entry.origin), n
    for (lane_bytes, address_bytes, origin_bytes), n in recorded.masked.items():
        lanes = np.frombuffer(lane_bytes, np.int64)
        addresses = np.frombuffer(address_bytes, np.int64)
        base = np.zeros(machine.lanes, np.int64)
        base[lanes] = addresses if exact else relative(addresses)
        origin = None
        if origin_bytes:
            origin = np.zeros(machine.lanes, np.int64)
            origin[lanes] = np.frombuffer(origin_bytes, np.int64)
        yield Addresses(base, 1, lanes, _digest(base, origin, lane_bytes), origin=origin), n


def _digest(base: Any, origin: Any, rest: bytes) -> bytes:
    state = blake2b(rest, digest_size=16)
    state.update(np.ascontiguousarray(base).tobytes())
    if origin is not None:
        state.update(np.ascontiguousarray(origin).tobytes())
    return state.digest()


def executed(
    machine: Machine, regions: list[int], counts: list[tuple[Site, AccessCount]]
) -> Iterator[dict[int, dict[str, int]]]:
    """Instructions by operation and class: those of the regions that ran, and the accesses."""
    for (operation, work), times in zip(machine.translation.regions, regions, strict=True):
        if times:
            yield {operation: {klass: n * times for klass, n in work.items()}}
    for site, count in counts:
        klass = CLASSES.get((count.space, count.access))
        if klass is not None and (not site.part or site.kind == "atomic") and count.requests:
            yield {count.operation: {klass: count.requests}}


def by_warp(machine: Machine, values: Any) -> Any:
    """Values by lane as ``(warps, warp_size)``; a block's last warp is filled up with zeros."""
    rows = values.reshape(-1, machine.threads)
    rest = -machine.threads % machine.warp_size
    if rest:
        rows = np.pad(rows, ((0, 0), (0, rest)))
    return rows.reshape(-1, machine.warp_size)


def second_addresses(machine: Machine, pattern: Addresses) -> Any:
    """Second addresses of a pattern by warp, :data:`NOWHERE` for lanes without one; None where it has none."""
    if pattern.origin is None:
        return None
    there = (pattern.origin + pattern.offsets[1]) * pattern.unit
    return by_warp(machine, np.where(pattern.origin == NOWHERE, NOWHERE, there))


def reads_of(second: Any) -> Any:
    """The lanes of a cp.async that read, or None where all do."""
    if second is None or bool((second != NOWHERE).all()):
        return None
    return second != NOWHERE


def _work_out(machine: Machine, site: Site, pattern: Addresses) -> Outcome:
    addresses = by_warp(machine, (np.broadcast_to(pattern.base, (machine.lanes,)) + pattern.offsets[0]) * pattern.unit)
    active = np.zeros(machine.lanes, bool)
    active[pattern.lanes] = True
    mask = by_warp(machine, active)
    requests, lanes = int(mask.any(axis=1).sum()), int(mask.sum())
    target, width = machine.program.target, site.width_bytes * 8
    if target.kind == "cpu":
        return Outcome(requests, lanes)
    second = second_addresses(machine, pattern)
    try:
        if site.place.space == "global":
            destination = None
            if site.part == "cp_async_bypass" and target.vendor == "nvidia":
                destination = second
            sectors = global_sectors(addresses, site.part or site.kind, width, target, mask, destination)
            return Outcome(
                requests, lanes, sectors=sectors.sectors, sectors_ideal=sectors.sectors_ideal, rule=sectors.rule
            )
        matrices = site.lanes if site.kind in MATRIX_KINDS else None
        passes = bank_conflicts(addresses, shared_rule(site), width, target, mask, second, matrices, reads_of(second))
    except UnknownMemoryRule:
        return Outcome(requests, lanes)
    return Outcome(requests, lanes, passes.transactions, passes.transactions_ideal, passes.ways, rule=passes.rule)


def shared_rule(site: Site) -> str:
    """What ``access`` calls the rule of a shared access."""
    if site.part == "atomic_increment":
        return site.part
    if site.part == "atomic_loop":
        return "atomic_loop" if site.kind == "atomic" else "atomic_loop_load"
    return site.kind


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
