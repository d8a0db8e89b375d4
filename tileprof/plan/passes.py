"""Counters into passes, within what each hardware block can count at once.

A profiler runs a program once a pass.  Counters that one formula needs are kept in one pass where they fit, since clocks and
data may differ between passes; the cycle counter goes into every pass, which shows when they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tileprof.metrics.amd_blocks import BLOCK_LIMITS, CYCLES, places


@dataclass(frozen=True, slots=True)
class PassPlan:
    """``passes`` of counters, each within the limits; ``unknown`` are counters of no known block, each in a pass of its own."""

    passes: tuple[tuple[str, ...], ...]
    unknown: tuple[str, ...] = ()


def plan_passes(groups: Iterable[Sequence[str]], *, everywhere: Sequence[str] = (CYCLES,)) -> PassPlan:
    """Passes for groups of counters that belong together.

    Every counter is in exactly one pass, those of ``everywhere`` in all.  A group that fits into one pass is not torn apart;
    larger groups come first, so that small ones fill what they leave.
    """
    pending = [tuple(dict.fromkeys(name for name in group if name not in everywhere)) for group in groups]
    passes: list[_Pass] = []
    planned: set[str] = set()
    unknown: dict[str, None] = {}
    for group in sorted(pending, key=len, reverse=True):
        new = [name for name in group if name not in planned]
        unknown.update(dict.fromkeys(name for name in new if places(name) is None))
        planned.update(new)
        new = [name for name in new if name not in unknown]
        parts = [new] if new and _Pass(everywhere).fits(new) else [[name] for name in new]
        for part in parts:
            room = next((one for one in passes if one.fits(part)), None)
            if room is None:
                room = _Pass(everywhere)
                passes.append(room)
            room.add(part)
    found = [one.counters for one in passes]
    found += [(*everywhere, name) for name in unknown]
    if not found and everywhere and pending:
        found = [tuple(everywhere)]
    return PassPlan(tuple(found), tuple(unknown))


def over_limit(counters: Iterable[str]) -> dict[str, int]:
    """Blocks of which one pass with these counters asks too much -> counters asked of them."""
    used: dict[str, int] = {}
    for name in dict.fromkeys(counters):
        for block, count in (places(name) or {}).items():
            used[block] = used.get(block, 0) + count
    return {block: count for block, count in used.items() if count > BLOCK_LIMITS[block]}


class _Pass:
    """A pass that is being filled."""

    def __init__(self, everywhere: Sequence[str]) -> None:
        self.counters: tuple[str, ...] = tuple(everywhere)

    def fits(self, names: Sequence[str]) -> bool:
        return not over_limit([*self.counters, *names])

    def add(self, names: Sequence[str]) -> None:
        self.counters = (*self.counters, *names)
