"""Access patterns for ``h200_access.py``: what each lane of one warp-wide instruction reads and writes.

A pattern is four rows of 32 integers: destination offset, source offset (bytes), bytes to read and whether the lane is active.
Families go from simple to random, so that a rule can be read off the first and refuted by the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
LANE = np.arange(32)
SHARED_BYTES = 1 << 15
SOURCE_BYTES = 1 << 20


@dataclass(frozen=True)
class Pattern:
    """Byte offsets of the two sides, bytes to read and active lanes, each (32,)."""

    family: str
    target: Ints
    source: Ints
    size: Ints
    active: Ints

    def all_active(self) -> Pattern:
        """The same with every lane."""
        return replace(self, active=np.ones(32, np.int64))


def make(
    family: str, unit: int, target: Ints, source: Ints, active: npt.NDArray[Any] | None = None, size: Ints | None = None
) -> Pattern:
    """A pattern from offsets in units of the access width, wrapped into the memory there is."""
    on = np.ones(32, np.int64) if active is None else active.astype(np.int64)
    sizes = np.full(32, unit) if size is None else size
    return Pattern(family, target * unit % SHARED_BYTES, source * unit % SOURCE_BYTES, sizes, on)


def pick(rng: np.random.Generator, count: int, of: int) -> Ints:
    """A mask of ``count`` random lanes among the first ``of``."""
    mask = np.zeros(32, np.int64)
    mask[rng.permutation(of)[:count]] = 1
    return mask


def shifts(unit: int) -> Iterator[Pattern]:
    """One row of 128 bytes by shifts of either side; then four such rows far apart."""
    n = min(128 // unit, 32)
    row = LANE % n
    for j in range(n):
        for k in range(n):
            if unit < 16 and j not in (0, 1, 2, 3, 4, 8, 9) and k not in (0, 1, 2, 3, 5):
                continue
            yield make("row shift", unit, row + k, row + j, n > LANE)
            if unit == 16:
                yield make("four rows shifted", unit, row + k + LANE // n * 4 * n, row + j + LANE // n * 64 * n)


def pairs(unit: int, rng: np.random.Generator) -> Iterator[Pattern]:
    """Two lanes, near each other in both memories; lanes 0 and 1, and any two."""
    line = 128 // unit
    near = sorted({0, 1, 2, 3, line // 2, line - 1, line, line + 1, 4 * line})
    for a in (0, 1):
        for b in near:
            for c in (0, 1):
                for d in near:
                    for lanes in ((0, 1), tuple(rng.permutation(32)[:2].tolist())):
                        target, source, mask = np.zeros((3, 32), np.int64)
                        target[list(lanes)], source[list(lanes)], mask[list(lanes)] = (c, d), (a, b), 1
                        yield make("pair", unit, target, source, mask)


def strides(unit: int) -> Iterator[Pattern]:
    """Lanes a constant distance apart on either side."""
    line = 128 // unit
    for t in (*range(13), line, line + 1, 2 * line):
        for s in (0, 1, 2, 3, 4, line // 2, line, line + 1, 2 * line):
            yield make("stride", unit, LANE * t, LANE * s)


def within(unit: int, rng: np.random.Generator, count: int) -> Iterator[Pattern]:
    """A few lanes inside one or two lines: permutations and any functions."""
    line = min(128 // unit, 32)
    for _ in range(count):
        yield make("permuted line", unit, rng.permutation(32) % line, rng.permutation(32) % line, line > LANE)
        lanes = int(rng.integers(2, line + 1))
        yield make("permuted part", unit, rng.permutation(line)[LANE % line], LANE % line, pick(rng, lanes, line))
        yield make("line to line", unit, rng.integers(0, line, 32), rng.integers(0, line, 32), pick(rng, lanes, 32))
        lanes = int(rng.integers(3, 33))
        yield make(
            "two lines", unit, rng.integers(0, 2 * line, 32), rng.integers(0, 2 * line, 32), pick(rng, lanes, 32)
        )
        few = rng.integers(0, int(rng.integers(1, 5)), 32) * int(rng.choice([1, 2, 3, line]))
        yield make("few sources", unit, rng.integers(0, int(rng.choice([1, 2, 4])) * line, 32), few)
        spread = rng.permutation(2 * line)[LANE % (2 * line)]
        yield make("two lines permuted", unit, spread, LANE % (2 * line), 2 * line > LANE)


def anywhere(unit: int, rng: np.random.Generator, count: int) -> Iterator[Pattern]:
    """Random targets and sources in ranges of several sizes, some lanes off."""
    line = 128 // unit
    for t in (1, 2, 4, 8, 32, 250):
        for s in (1, 2, 4, 8, 32, 8000):
            for _ in range(count):
                target, source = rng.integers(0, t * line, 32), rng.integers(0, s * line, 32)
                yield make("random", unit, target, source)
                yield make("random masked", unit, target, source, (rng.random(32) < rng.random()).astype(np.int64))


def rows(unit: int, rng: np.random.Generator, count: int) -> Iterator[Pattern]:
    """Tiles as kernels copy them: rows with padding or a swizzle, sources with any row stride."""
    line = 128 // unit
    for _ in range(count):
        lanes = int(rng.choice([2, 4, 8, 16, 32]))
        row, column = LANE // lanes + int(rng.integers(0, 64)), LANE % lanes
        pad = int(rng.integers(0, line + 1))
        pitch = int(rng.choice([lanes, 4 * lanes, 16 * lanes + int(rng.integers(0, line)), 8 * line]))
        base = int(rng.integers(0, 3 * line)) if rng.random() < 0.5 else 0
        yield make("padded rows", unit, row * (lanes + pad) + column, row * pitch + column + base)
        period, shift = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2, 4, 8]))
        turned = column ^ (row // period * shift % lanes)
        yield make("swizzled rows", unit, row * lanes + turned, row * pitch + column + base)
        mask = (column < rng.integers(1, lanes + 1)) & (LANE // lanes <= rng.integers(0, 32 // lanes + 1))
        yield make(
            "masked rows", unit, row * (lanes + pad) + column, row * pitch + column + base, mask.astype(np.int64)
        )
        other = int(rng.choice([1, 2, 4, 8]))
        yield make("column to row", unit, column * other * line + row, row * pitch + column)


def symmetric(unit: int, rng: np.random.Generator, count: int) -> Iterator[Pattern]:
    """A random pattern, then the same moved by lines, by sectors, and with its lanes permuted: what may not matter."""
    line = 128 // unit
    for _ in range(count):
        t, s = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2, 4]))
        target, source, mask = (
            rng.integers(0, t * line, 32),
            rng.integers(0, s * line, 32),
            pick(rng, int(rng.integers(2, 33)), 32),
        )
        yield make("symmetry: base", unit, target, source, mask)
        for moves in ((1, 0), (0, 1), (3, 5), (64, 1024), (31, 333)):
            yield make("symmetry: by lines", unit, target + moves[0] * line, source + moves[1] * line, mask)
        yield make("symmetry: by sectors", unit, target + line // 4, source + 3 * line // 4, mask)
        for _ in range(2):
            order = rng.permutation(32)
            yield make("symmetry: lanes", unit, target[order], source[order], mask[order])


def copies(unit: int, seed: int, count: int) -> list[Pattern]:
    """Patterns of cp.async; ``count`` scales the random families."""
    rng = np.random.default_rng([seed, unit])
    made = [*shifts(unit), *pairs(unit, rng), *strides(unit)]
    made += [*within(unit, rng, 4 * count), *anywhere(unit, rng, count)]
    made += [*rows(unit, rng, 6 * count), *symmetric(unit, rng, count)]
    return made


def zero_filled(unit: int, seed: int, count: int, *, whole: bool = False) -> list[Pattern]:
    """The random families again, with lanes that read nothing or (unless ``whole``) a part."""
    rng = np.random.default_rng([seed, unit, 1])
    base = [*list(strides(unit))[::3], *within(unit, rng, count)]
    base += [*anywhere(unit, rng, count // 4 + 1), *rows(unit, rng, 2 * count)]
    made = []
    for index, p in enumerate(base):
        chosen = rng.random(32) < rng.random()
        if index % 4 < 2:
            chosen[:] = index % 4 == 0
        partly = not (whole or index % 3)
        part = rng.integers(0, unit, 32) if partly else np.zeros(32, np.int64)
        family = f"{p.family}, {'parts' if partly else 'zeros'}"
        made.append(Pattern(family, p.target, p.source, np.where(chosen, part, unit), p.active))
    return made


def accesses(unit: int, seed: int, count: int) -> list[Pattern]:
    """Patterns of loads and stores: both sides have the same addresses (shared and global)."""
    rng = np.random.default_rng([seed, unit, 2])
    line = 128 // unit
    made: list[Pattern] = []

    def add(family: str, index: Ints, active: Ints | None = None) -> None:
        made.append(make(family, unit, index, index, active))

    for a in range(32):  # which two lanes go together
        for b in range(a + 1, 32):
            if count > 8 or rng.random() < 0.1:
                mask = np.zeros(32, np.int64)
                mask[[a, b]] = 1
                add("two lanes", LANE, mask)
    for stride in (*range(10), 12, 16, 31, 32, 33, 64):
        add("stride", LANE * stride)
        add("stride masked", LANE * stride, (rng.random(32) < 0.5).astype(np.int64))
    for _ in range(count * 8):
        density = rng.random()
        mask = (rng.random(32) < density).astype(np.int64)
        add("contiguous masked", LANE + int(rng.integers(0, 4)), mask)
        add("first lanes", LANE, (int(rng.integers(1, 33)) > LANE).astype(np.int64))
        lines = int(rng.choice([1, 2, 4, 8, 64]))
        index = rng.integers(0, lines * line, 32)
        add("random", index)
        add("random masked", index, mask)
        one, two = LANE >> 1 << 1, (LANE & 1) | (LANE >> 2 << 2)
        four = LANE >> 2 << 2
        for name, leader in (("pairs n^1", one), ("pairs n^2", two), ("fours", four)):
            add(name, index[leader])
            add(f"{name} masked", index[leader], mask)
            add(f"{name} masked together", index[leader], mask[leader])
            broken = index[leader].copy()
            broken[int(rng.integers(0, 32))] += 1
            add(f"{name} but one", broken)
        mixed = np.where(rng.random(8)[LANE // 4] < 0.5, one, two)
        add("pairs mixed", index[mixed])
        half = np.where(LANE < 16, one, two)
        add("pairs by halves", index[half])
        part = np.where(rng.random(4)[LANE // 8] < 0.5, one, LANE)
        add("pairs in some phases", index[part])
        add("pairs in some phases masked", index[part], mask)
        add("equal all", index * 0 + index[0], mask)
    return made


def atomics(unit: int, seed: int, count: int) -> list[Pattern]:
    """Patterns of atomics: both sides have the same addresses, of which many lanes may share one."""
    rng = np.random.default_rng([seed, unit, 3])
    line = 128 // unit
    made: list[Pattern] = []

    def add(family: str, index: Ints, active: Ints | None = None) -> None:
        made.append(make(family, unit, index, index, active))

    for stride in (0, 1, 2, 3, 4, 8, 16, 31, 32, 33, 64):
        add("stride", LANE * stride)
    for group in (2, 4, 8, 16):
        add("groups", LANE // group)
        add("groups a line apart", LANE // group * line)
        add("turns", LANE % group)
        add("turns a line apart", LANE % group * line)
    for _ in range(count):
        mask = (rng.random(32) < rng.random()).astype(np.int64)
        bins = int(rng.choice([1, 2, 3, 4, 8, 16, 32, 64, 256]))
        apart = int(rng.choice([1, 2, line // 2, line, line + 1]))
        add("bins", rng.integers(0, bins, 32) * apart)
        add("bins masked", rng.integers(0, bins, 32) * apart, mask)
        first = int(rng.integers(1, 33))
        add("one address", np.zeros(32, np.int64) + int(rng.integers(0, 4 * line)), (first > LANE).astype(np.int64))
        add("random", rng.integers(0, int(rng.choice([1, 2, 4, 8, 64])) * line, 32))
        add("random masked", rng.integers(0, int(rng.choice([1, 2, 4, 8, 64])) * line, 32), mask)
        add("permuted", rng.permutation(32) + int(rng.integers(0, line)))
        skewed = np.minimum(rng.geometric(0.3, 32), 32) * int(rng.choice([1, line]))
        add("skewed bins", skewed)
        two = rng.integers(0, 2, 32) * int(rng.integers(1, 3)) * line + rng.integers(0, 2, 32)
        add("two words of two banks", two, mask)
    return made
