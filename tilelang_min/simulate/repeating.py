"""Iterations that stand for others: what a run of them counts is multiplied, and the loop goes on behind those it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tilelang_min.simulate.machine import Machine

Repeat = tuple[int, int, int]
"""First iteration of a run, iterations in it, and how many such runs, one after the other, it stands for."""


class Chosen(Protocol):
    """Iterations of an outer loop that run, each with how many it stands for, and by iteration what repeats in inner loops."""

    @property
    def iterations(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def inner(self) -> Mapping[int, Mapping[int, Repeat]]: ...


Schedule = Mapping[int, Repeat | Chosen]
"""What of a loop runs, by the key of its variable; all of it where it is not named."""


def scheduled(machine: Machine, key: int, start: int, end: int) -> Iterator[int]:
    """The iterations of a loop from ``start`` to ``end`` that run."""
    entry = machine.within.get(key) or machine.schedule.get(key)
    if entry is None:
        yield from range(start, end)
    elif isinstance(entry, tuple):
        yield from repeated(machine, entry, start, end)
    else:
        outer = machine.within
        for iteration, times in entry.iterations:
            if not start <= iteration < end:
                continue
            machine.within = entry.inner.get(iteration, {})
            before = _state(machine)
            yield iteration
            if times != 1:
                _multiply(machine, before, times - 1)
        machine.within = outer


def repeated(machine: Machine, repeat: Repeat, start: int, end: int) -> Iterator[int]:
    """As :func:`scheduled`, where runs of iterations repeat."""
    first, period, times = repeat
    yield from range(start, first)
    before = _state(machine)
    yield from range(first, first + period)
    _multiply(machine, before, times - 1)
    yield from range(first + period * times, end)


State = tuple[list[int], dict[int, tuple[list[Any], Counter[Any]]], list[Counter[Any]]]


def _state(machine: Machine) -> State:
    """What has been counted."""
    sites = {}
    for number, counts in (machine.counts or {}).items():
        tables = [dict(one.times) if isinstance(one.times, dict) else list(one.times) for one in counts.patterns]
        sites[number] = (tables, Counter(counts.masked))
    return list(machine.regions), sites, [Counter(tally) for tally in machine.tallies()]


def _multiply(machine: Machine, before: State, more: int) -> None:
    """Counts ``more`` times again what was counted since (never, with -1)."""
    regions, sites, tallies = before
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
        _multiply_tally(counts.masked, masked, more)
    for tally, known_tally in zip(machine.tallies(), tallies, strict=True):
        _multiply_tally(tally, known_tally, more)


def _multiply_tally(tally: dict[Any, int], before: Counter[Any], more: int) -> None:
    for key, value in list(tally.items()):
        tally[key] = value + more * (value - before[key])
        if not tally[key]:
            del tally[key]


__all__ = ["Chosen", "Repeat", "Schedule", "scheduled"]
