"""Proved suggestions for global memory: another order of a nest's elements, or a detour through a shared tile, that lets the
threads of a warp ask for whole sectors.

The accesses of the operation are recorded in one block, element by element.  An element-wise nest may give its elements to
threads in any order; each order that suits one of its buffers is counted again, for all of them, by the very rules that counted
the access.  Where no order suits all, every buffer is counted in its own, with a shared tile in between whose bank conflicts are
counted too, and the smallest padding that removes them is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelang_min.access import bank_conflicts, global_sectors
from tilelang_min.driver.suggestion_records import AccessChange, Suggestion
from tilelang_min.driver.suggestions import zeros_by_name
from tilelang_min.errors import UnknownMemoryRule
from tilelang_min.program import ThreadProgram, TileOperation
from tilelang_min.simulate import AccessCount, simulate
from tilelang_min.targets import occupancy

WASTE = 1.3
"""Sectors over their ideal from which on an access is looked at."""
GAIN = 0.7
"""What a change must leave at most of the passes and sectors."""
MOST_ELEMENTS = 1 << 16
PADDINGS = range(33)


@dataclass(frozen=True, eq=False)
class _Group:
    """All accesses of the operation to one buffer, in one manner: byte addresses of its elements (elements,), in the order in
    which they are executed, ``now`` what they take."""

    buffer: str
    space: str
    access: str
    itemsize: int
    addresses: Any
    now: int


def coalescing(
    program: ThreadProgram, counts: Sequence[AccessCount], registers_per_thread: int | None = None
) -> list[Suggestion]:
    """Suggestions for every nest whose global accesses waste sectors, those that save most first.  ``counts`` are a launch's."""
    if program.target.kind == "cpu":
        return []
    wasteful = {
        count.operation
        for count in counts
        if count.space == "global"
        and count.access in ("load", "store")
        and count.sectors is not None
        and count.sectors > WASTE * (count.sectors_ideal or 0)
    }
    chosen = [o for o in program.operations if o.id in wasteful and o.kind in ("parallel", "copy")]
    if not chosen or program.tensor_maps:
        return []
    from tilelang_min.analysis.blocks import block_classes

    item = max(block_classes(program), key=lambda one: one.count)
    values = zeros_by_name(program)
    result = simulate(
        program, values, blocks=[item.representative], check=False, trace=[operation.id for operation in chosen]
    )
    found: list[Suggestion] = []
    for operation in chosen:
        groups = _groups(program, operation, result.trace)
        if groups:
            found += _suggest(program, operation, groups, item.count, registers_per_thread)
    return sorted(found, key=lambda one: one.conflicts_after - one.conflicts_before)


def _groups(program: ThreadProgram, operation: TileOperation, trace: Sequence[Any]) -> list[_Group]:
    """The first execution of an operation; empty where its accesses are not one to an element."""
    seen: set[int] = set()
    parts: dict[tuple[str, str, str], list[Any]] = {}
    facts: dict[tuple[str, str, str], tuple[int, int]] = {}
    threads, warp = program.threads, program.target.warp_size
    for access in trace:
        site = access.site
        if site.operation != operation.id or site.part or site.kind not in ("load", "store"):
            continue
        if site.number in seen:
            break
        seen.add(site.number)
        if access.lanes is not None and len(access.lanes) != threads:
            return []  # a ragged edge
        key = (site.place.buffer.name, site.place.space, site.kind)
        size = site.place.itemsize
        lanes = np.broadcast_to(access.addresses, (threads,))
        parts.setdefault(key, []).append(lanes[None, :] + np.arange(site.lanes)[:, None] * size)
        now = _passes(program, key[1], key[2], site.lanes * size, lanes, warp)
        if now is None:
            return []
        facts[key] = (size, facts.get(key, (0, 0))[1] + now)
    made = []
    for key, arrays in parts.items():
        # Elements in the order (register, lane): a vector's one after the other.
        elements = np.concatenate([row for array in arrays for row in array])
        made.append(_Group(*key, facts[key][0], elements, facts[key][1]))
    sizes = {len(group.addresses) for group in made}
    if len(sizes) != 1 or sizes.pop() > MOST_ELEMENTS or len(made) < 2:
        return []
    return made


def _passes(program: ThreadProgram, space: str, access: str, width: int, addresses: Any, warp: int) -> int | None:
    """Sectors or transactions of accesses, a lane each; None where no rule is known."""
    rest = -len(addresses) % warp
    mask = np.pad(np.ones(len(addresses), bool), (0, rest)).reshape(-1, warp)
    rows = np.pad(addresses, (0, rest)).reshape(-1, warp)
    try:
        if space == "global":
            return global_sectors(rows, access, width * 8, program.target, mask).sectors
        return bank_conflicts(rows, access, width * 8, program.target, mask).transactions
    except UnknownMemoryRule:
        return None


def _suggest(
    program: ThreadProgram, operation: TileOperation, groups: list[_Group], blocks: int, registers: int | None
) -> Iterator[Suggestion]:
    before = sum(group.now for group in groups)
    named = {parameter.name for parameter in program.parameters} | {tile.name for tile in program.shared}
    free = {*operation.reads, *operation.writes} <= named  # no registers whose layout something else decides
    orders = {}
    for group in groups if free else ():
        if group.space == "global":
            order = np.argsort(group.addresses, kind="stable")
            costs = [
                _passes(program, g.space, g.access, g.itemsize, g.addresses[order], program.target.warp_size)
                for g in groups
            ]
            if None not in costs:
                orders[group.buffer] = [cost or 0 for cost in costs]
    best = min(orders, key=lambda name: sum(orders[name]), default=None)
    if best is not None and sum(orders[best]) <= GAIN * before:
        yield _suggestion(program, operation, groups, orders[best], blocks, "order", best, (0, 0, 0), registers)
        return
    outside = [group for group in groups if group.space == "global"]
    loads, stores = ([g for g in outside if g.access == access] for access in ("load", "store"))
    if len(stores) != 1 or not loads or len(outside) != len(groups):
        return
    read = max(loads, key=lambda group: group.now)
    own = [_own(program, group) for group in groups]
    tile = _tile(program, read, stores[0])
    if tile is not None and None not in own and sum(cost or 0 for cost in own) + 2 * tile[3] <= GAIN * before:
        taken = [cost or 0 for cost in own]
        yield _suggestion(program, operation, groups, taken, blocks, "staging", read.buffer, tile[:3], registers)


def _own(program: ThreadProgram, group: _Group) -> int | None:
    """What a group takes in the order of its own addresses."""
    return _passes(
        program, group.space, group.access, group.itemsize, np.sort(group.addresses), program.target.warp_size
    )


def _least(program: ThreadProgram, group: _Group) -> int:
    """The fewest sectors, or transactions, that move the group's bytes."""
    transfer = program.target.global_transfer
    if group.space == "shared" or transfer is None:
        return -(-len(group.addresses) * group.itemsize // 128)
    unit = transfer.load_bytes if group.access == "load" else transfer.store_bytes
    return -(-len(group.addresses) * group.itemsize // unit)


def _tile(program: ThreadProgram, read: _Group, write: _Group) -> tuple[int, int, int, int] | None:
    """Rows, row length and padding of a shared tile filled in the order of ``read`` and emptied in that of ``write``, without
    bank conflicts, and the requests of each; None where there is none."""
    filled = np.argsort(read.addresses, kind="stable")
    ordered = read.addresses[filled]
    breaks = np.flatnonzero(np.diff(ordered) != read.itemsize) + 1
    lengths = np.diff(np.concatenate([[0], breaks, [len(ordered)]]))
    if len(np.unique(lengths)) != 1 or len(lengths) < 2:
        return None
    rows, length = len(lengths), int(lengths[0])
    place = np.empty(len(ordered), np.int64)
    place[filled] = np.arange(len(ordered))
    emptied = np.argsort(write.addresses, kind="stable")
    warp = program.target.warp_size
    for padding in PADDINGS:
        at = (place // length * (length + padding) + place % length) * read.itemsize
        total = rows * (length + padding) * read.itemsize
        if total + sum(tile.bytes for tile in program.shared) > program.target.shared.block_limit:
            return None
        conflicts = 0
        for access, order in (("store", filled), ("load", emptied)):
            try:
                addresses = at[order][: len(order) // warp * warp].reshape(-1, warp)
                conflicts += bank_conflicts(addresses, access, read.itemsize * 8, program.target).conflicts
            except UnknownMemoryRule:
                return None
        if not conflicts:
            return rows, length, padding, -(-len(ordered) // warp)
    return None


def _suggestion(
    program: ThreadProgram,
    operation: TileOperation,
    groups: list[_Group],
    after: list[int],
    blocks: int,
    kind: str,
    buffer: str,
    tile: tuple[int, int, int],
    registers: int | None,
) -> Suggestion:
    rows, length, padding = tile
    itemsize = next(group.itemsize for group in groups if group.buffer == buffer)
    extra = rows * (length + padding) * itemsize
    shared = sum(item.bytes for item in program.shared)
    before_occupancy, after_occupancy = (
        occupancy(program.target, threads=program.threads, registers_per_thread=registers, shared_bytes=size).occupancy
        for size in (shared, shared + extra)
    )
    least = {id(group): _least(program, group) for group in groups}
    excess = [
        sum(max(0, n - least[id(g)]) for g, n in zip(groups, figures, strict=True))
        for figures in ([g.now for g in groups], after)
    ]
    changes = tuple(
        AccessChange(operation.id, g.access, g.itemsize * 8, g.now * blocks, n * blocks, "known")
        for g, n in zip(groups, after, strict=True)
    )
    units = {"global": "sectors", "shared": "transactions"}
    figures = ", ".join(
        f"{g.buffer} {g.access} {g.now:,} -> {n:,} {units[g.space]}" for g, n in zip(groups, after, strict=True)
    )
    where = f"line {operation.location.line}"
    if kind == "order":
        what = f"{where}: order the loops so that neighbouring threads take neighbouring elements of {buffer}"
        cost = "no more memory"
        proof = "every buffer of the nest was counted again in that order, by the rules that counted it before"
    else:
        store = next(group.buffer for group in groups if group.access == "store")
        pad = f"{length} + {padding}" if padding else f"{length}"
        what = (
            f"{where}: go through a shared tile, T.alloc_shared(({rows}, {pad}), ...): fill it along the rows of {buffer}, then "
            f"write {store} along its own rows"
        )
        cost = f"{extra:,} bytes more a block"
        proof = (
            "no order of the nest suits both sides; each was counted in its own, and the tile's accesses have no bank conflicts"
            + (f" from a padding of {padding} on, and have with less" if padding else "")
        )
    return Suggestion(
        buffer=buffer,
        kind=kind,
        padding=padding,
        swizzle_bytes=0,
        extra_bytes=extra,
        conflicts_before=excess[0] * blocks,
        conflicts_after=excess[1] * blocks,
        occupancy_before=before_occupancy,
        occupancy_after=after_occupancy,
        accesses=changes,
        tried=(),
        text=f"{what}; in a block {figures}; {cost}",
        proof=proof,
    )


__all__ = ["coalescing"]
