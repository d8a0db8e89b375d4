"""What to run of a program whose roles run side by side, so that its counts are those of the whole launch.

Of a launch only those blocks, tiles and iterations run that differ in what they count (``nests.py`` gathers what decides that,
``labels.py`` compares it):

* **Tiles.**  Where blocks stay and take tile after tile, all tiles of all blocks are compared with one another: one of each kind
  runs, and counts for all of its kind.  What stands outside of the loop over tiles counts once for each block.
* **Iterations.**  In a ring's loops all roles leave out the same iterations.  Stages and parities are registers, or the same again
  after a period; so producers and consumers meet as they would.

A few more iterations and tiles run than counts need: enough for every stage to be used again, so that what overwrites a stage too
early is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm_ffi
from tvm import tirx

from tilelang_min.analysis.blocks import BlockClass, block_classes
from tilelang_min.analysis.labels import label
from tilelang_min.analysis.nests import LONGEST, Family, Nests
from tilelang_min.analysis.points import NotCountable, evaluate, handle_of
from tilelang_min.program import ThreadProgram

Block = tuple[int, int, int]
Repeat = tuple[int, int, int]
"""First iteration, period, and how many periods the one that begins there stands for."""

TILES = 3
"""Tiles that one block takes in turn, for what may go wrong between them."""
MOST_TILES = 1 << 20
"""Tiles of all blocks up to which they are compared."""


@dataclass(frozen=True)
class Chosen:
    """Iterations of an outer loop that run, each with how many it stands for, and what repeats within each of them."""

    iterations: tuple[tuple[int, int], ...]
    inner: Mapping[int, Mapping[int, Repeat]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """A block that runs, and counts ``count`` times; ``schedule`` says, by handle of the loop variable, what of a loop runs."""

    block: Block
    count: int
    schedule: Mapping[int, Repeat | Chosen]


class Samples:
    """What to run of one program."""

    def __init__(self, program: ThreadProgram) -> None:
        self.program = program
        self.nests = Nests(program)
        self.stages = _barriers(program.function.body) // 2
        self.tiles = self._tile_loop()
        self.shown: set[Family] = set()
        """Loops of which enough iterations are to run, in one block, for every stage to be used again."""

    def all(self, classes: Sequence[BlockClass] | None = None) -> list[Sample]:
        """Blocks to run; what they count, scaled, adds up to the launch.  ``classes`` are those of the program, if known."""
        found = None if self.tiles is None else self._by_tiles(self.tiles)
        if found is not None:
            return found
        return [
            Sample(each.representative, each.count, self._schedule(each.representative))
            for each in (block_classes(self.program) if classes is None else classes)
        ]

    def first_tiles(self, number: int) -> dict[int, Chosen]:
        """A schedule by which every block takes its first tiles alone; empty where blocks do not take tile after tile."""
        if self.tiles is None:
            return {}
        try:
            start = int(evaluate(self.tiles.start, {}))
        except NotCountable:
            return {}
        return dict.fromkeys(self.tiles.loops, Chosen(tuple((start + turn, 1) for turn in range(number))))

    def _tile_loop(self) -> Family | None:
        """The loop over tiles of blocks that stay: an outer one whose iterations use the same shared memory, around others."""
        found = [each for each in self.nests.outer if each.period == 1 and each.inner]
        return found[0] if len(found) == 1 else None

    # ---- tiles ----------------------------------------------------------------------------------------------------------

    def _by_tiles(self, tiles: Family) -> list[Sample] | None:
        outside = self.nests.outside(tiles)
        gx, gy, gz = self.program.grid
        count = gx * gy * gz
        if outside is None or count > MOST_TILES:
            return None
        linear = np.arange(count)
        blocks = {0: linear % gx, 1: linear // gx % gy, 2: linear // (gx * gy)}
        values = self._values(blocks, {})
        try:
            start = np.broadcast_to(evaluate(tiles.start, values), (count,))
            extent = np.maximum(np.broadcast_to(evaluate(tiles.extent, values), (count,)), 0)
        except NotCountable:
            return None
        total = int(extent.sum())
        if not 0 < total <= MOST_TILES:
            return None
        owner = np.repeat(linear, extent)
        turn = np.arange(total) - np.repeat(np.cumsum(extent) - extent, extent) + start[owner]
        values = self._values({axis: one[owner] for axis, one in blocks.items()}, {tiles: turn})
        kinds = label(tiles.facts, values, self.nests.ranges, total)
        values = self._values(blocks, {})
        ends = label(
            [fact for fact in outside if not _is(fact.expression, tiles.extent)], values, self.nests.ranges, count
        )
        return self._cover(tiles, owner, turn, kinds, ends)

    def _cover(self, tiles: Family, owner: Any, turn: Any, kinds: Any, ends: Any) -> list[Sample]:
        """Few blocks that together take a tile of each kind; and for the blocks that are left, one of each kind without tiles."""
        left = np.bincount(kinds).astype(np.int64)
        begins = np.searchsorted(owner, np.arange(len(ends) + 1))
        runs: list[Sample] = []
        remaining = np.bincount(ends)
        open_ = np.ones(len(left), bool)
        while open_.any():
            fresh = np.unique(np.stack([owner, kinds])[:, open_[kinds]], axis=1)[0]
            number = int(np.bincount(fresh).argmax())
            mine = slice(int(begins[number]), int(begins[number + 1]))
            chosen: list[tuple[int, int]] = []
            for place, (iteration, kind) in enumerate(zip(turn[mine].tolist(), kinds[mine].tolist(), strict=True)):
                if open_[kind]:
                    chosen.append((iteration, int(left[kind])))
                    open_[kind] = False
                elif not runs and place < TILES:
                    chosen.append((iteration, 0))
            runs.append(Sample(self._block(number), 1, self._schedule(self._block(number), {tiles: tuple(chosen)})))
            remaining[ends[number]] -= 1
        for kind in np.flatnonzero(remaining):
            number = int(np.flatnonzero(ends == kind)[0])
            block = self._block(number)
            runs.append(Sample(block, int(remaining[kind]), self._schedule(block, {tiles: ()})))
        return runs

    def _block(self, number: int) -> Block:
        gx, gy, _ = self.program.grid
        return number % gx, number // gx % gy, number // (gx * gy)

    def _values(self, blocks: Mapping[int, Any], loops: Mapping[Family, Any]) -> dict[int, Any]:
        """Values of block indices, of the variables of loops, and of the names that are computed from these."""
        values: dict[int, Any] = {handle: blocks[axis] for handle, axis in self.nests.blocks.items()}
        values |= {handle_of(family.variable): value for family, value in loops.items()}
        for handle, value in self.nests.names.items():
            try:
                values[handle] = evaluate(value, values)
            except NotCountable:
                continue
        return values

    # ---- iterations ------------------------------------------------------------------------------------------------------

    def _schedule(
        self, block: Block, chosen: Mapping[Family, tuple[tuple[int, int], ...]] | None = None
    ) -> dict[int, Repeat | Chosen]:
        """For every loop of which not all iterations run."""
        found: dict[int, Repeat | Chosen] = {}
        cluster = self._cluster(block)
        plain = [family for family in self.nests.outer if chosen is None or family not in chosen]
        repeats = self._repeats(plain, [self._values(fixed, {}) for fixed in cluster])
        for family in self.nests.outer:
            entry: Repeat | Chosen | None = repeats.get(family)
            if chosen is not None and family in chosen:
                iterations = chosen[family]
                entry = Chosen(iterations, self._inner(family, cluster, [number for number, _ in iterations]))
            elif entry is None and family.inner:
                entry = self._whole(family, cluster)
            if entry is not None:
                found |= dict.fromkeys(family.loops, entry)
        return found

    def _cluster(self, block: Block) -> list[dict[int, Any]]:
        """Block indices by axis of all blocks that run together with one, itself the first."""
        sizes = self.program.cluster
        ranges = [range(at // size * size, at // size * size + size) for at, size in zip(block, sizes, strict=True)]
        others = [(x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0] if (x, y, z) != block]
        return [{axis: np.int64(each[axis]) for axis in range(3)} for each in (block, *others)]

    def _whole(self, family: Family, cluster: list[dict[int, Any]]) -> Chosen | None:
        """All iterations of an outer loop, with what repeats in each."""
        values = self._values(cluster[0], {})
        try:
            start, extent = int(evaluate(family.start, values)), int(evaluate(family.extent, values))
        except NotCountable:
            return None
        numbers = list(range(start, start + extent))
        inner = self._inner(family, cluster, numbers) if len(numbers) <= 1 << 8 else {}
        return Chosen(tuple((number, 1) for number in numbers), inner) if inner else None

    def _inner(self, family: Family, cluster: list[dict[int, Any]], numbers: list[int]) -> dict[int, dict[int, Repeat]]:
        result: dict[int, dict[int, Repeat]] = {}
        for number in numbers:
            values = [self._values(fixed, {family: np.int64(number)}) for fixed in cluster]
            for inner, repeat in self._repeats(family.inner, values).items():
                result.setdefault(number, {}).update(dict.fromkeys(inner.loops, repeat))
        return result

    def _repeats(self, families: list[Family], values: list[dict[int, Any]]) -> dict[Family, Repeat]:
        """What repeats in loops beside one another: those that use the same mbarriers leave out equally many iterations.

        ``values`` are those of each block of the cluster; all leave out the same.
        """
        result: dict[Family, Repeat] = {}
        groups: list[list[Family]] = []
        for family in families:
            joined = [each for each in groups if any(family.barriers & other.barriers for other in each)]
            groups = [each for each in groups if each not in joined] + [[family, *(one for g in joined for one in g)]]
        for group in groups:
            warm = 2 if self.shown.issuperset(group) else self.stages + 2
            runs = [(family, self._common_run(family, values, warm)) for family in group]
            known = [(family, run) for family, run in runs if run is not None]
            if len(known) < len(group):
                continue
            common = math.lcm(*(period for _, (_, period, _) in known))
            left_out = min((times - 1) * period for _, (_, period, times) in known) // common * common
            if left_out:
                self.shown.update(group)
                result |= {family: (first, period, left_out // period + 1) for family, (first, period, _) in known}
        return result

    def _common_run(self, family: Family, values: list[dict[int, Any]], warm: int) -> Repeat | None:
        """A run of iterations that repeats in every block of the cluster."""
        runs = [self._run(family, each, warm) for each in values]
        known = [run for run in runs if run is not None]
        if len(known) < len(runs):
            return None
        first, period = max(run[0] for run in known), math.lcm(*(run[1] for run in known))
        times = (min(run[0] + run[1] * run[2] for run in known) - first) // period
        return (first, period, times) if times >= 2 else None

    def _run(self, family: Family, values: Mapping[int, Any], warm: int) -> Repeat | None:
        """A run of iterations that repeats for long enough, behind the first ``warm``."""
        if family.period is None:
            return None
        try:
            start, count = int(evaluate(family.start, values)), int(evaluate(family.extent, values))
        except NotCountable:
            return None
        if count < warm + 2 * family.period:
            return None
        variable = handle_of(family.variable)
        points = {**values, variable: np.arange(start, start + count)}
        for handle, value in self.nests.names.items():
            if handle not in values:
                try:
                    points[handle] = evaluate(value, points)
                except NotCountable:
                    continue
        labels = label(family.facts, points, self.nests.ranges, count)
        best: Repeat | None = None
        saved = 0
        for period in range(family.period, LONGEST + 1, family.period):
            alike = np.concatenate([[False], labels[period:] == labels[:-period], [False]])
            runs = np.flatnonzero(alike[1:] != alike[:-1]).reshape(-1, 2)
            if not len(runs):
                continue
            begin, end = max(runs.tolist(), key=lambda run: run[1] - run[0])
            first = begin + -(-max(warm - begin, period) // period) * period
            times = (end + period - first) // period
            if times >= 2 and (times - 1) * period > saved:
                best, saved = (start + first, period, times), (times - 1) * period
        return best


def _is(first: Any, second: Any) -> bool:
    return bool(str(first) == str(second))


def _barriers(body: Any) -> int:
    """mbarriers that the program initialises: a ring has two for each stage and arrival."""
    found = []

    def call(node: Any) -> None:
        if str(getattr(getattr(node.value, "op", None), "name", "")).startswith("tirx.ptx.mbarrier") and any(
            str(getattr(arg, "value", "")) == "init" for arg in node.value.args
        ):
            found.append(node)

    tvm_ffi.structural_walk(body, (tirx.Evaluate, call))
    return len(found)


__all__ = ["Chosen", "Repeat", "Sample", "Samples"]
