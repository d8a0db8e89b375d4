"""Iterations that stand for others: what a run of them counts is multiplied, and the loop goes on behind those it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

Repeat = tuple[int, int, int]
"""First iteration of a run, iterations in it, and how many such runs, one after the other, it stands for."""


def repeated(machine: Machine, repeat: Repeat, start: int, end: int) -> Iterator[int]:
    """The iterations of a loop from ``start`` to ``end`` that run."""
    first, period, times = repeat
    yield from range(start, first)
    before = _state(machine)
    yield from range(first, first + period)
    _multiply(machine, before, times - 1)
    yield from range(first + period * times, end)


State = tuple[list[int], dict[int, tuple[list[Any], Counter[Any]]]]


def _state(machine: Machine) -> State:
    """What has been counted."""
    sites = {}
    for number, counts in (machine.counts or {}).items():
        tables = [dict(one.times) if isinstance(one.times, dict) else list(one.times) for one in counts.patterns]
        sites[number] = (tables, Counter(counts.masked))
    return list(machine.regions), sites


def _multiply(machine: Machine, before: State, more: int) -> None:
    """Counts ``more`` times again what was counted since."""
    regions, sites = before
    for number, value in enumerate(machine.regions):
        machine.regions[number] = value + more * (value - regions[number])
    for number, counts in (machine.counts or {}).items():
        tables, masked = sites.get(number, ([], Counter()))
        for place, pattern in enumerate(counts.patterns):
            old = tables[place] if place < len(tables) else {}
            for key, value in (
                list(pattern.times.items()) if isinstance(pattern.times, dict) else enumerate(pattern.times)
            ):
                if value:
                    known = old.get(key, 0) if isinstance(old, dict) else old[key]
                    pattern.times[key] = value + more * (value - known)
        for pattern_key, seen in counts.masked.items():
            counts.masked[pattern_key] = seen + more * (seen - masked[pattern_key])


__all__ = ["Repeat", "repeated"]
