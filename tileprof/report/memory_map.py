"""The memory map: which lane of a warp is served by which bank in which pass, before a suggestion and after it.

A picture holds the phase of the costliest request that takes most passes; a row is a pass, a column a bank, a number the lane.
What the pictures show is counted by the rules that count conflicts, from the very addresses that the simulator recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from tileprof.analyse.banks import BankPhase, bank_phases
from tileprof.report.words import ACCESSES
from tileprof.store.records import CaseResult, Suggestion

MOST_PASSES = 16
CELL = 18


@dataclass(frozen=True, slots=True)
class MapCell:
    """A word that a bank serves in a pass: the lowest of its lanes, and whether the bank has more than one word to serve."""

    x: int
    y: int
    lane: int
    collides: bool


@dataclass(frozen=True, slots=True)
class BankMap:
    """One phase of a request.  ``passes`` it takes; ``title`` says the same in words."""

    passes: int
    banks: int
    width: int
    height: int
    cells: tuple[MapCell, ...]
    hidden: int
    title: str


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Before and after a suggestion."""

    buffer: str
    kind: str
    access: str
    line: int | None
    before: BankMap
    after: BankMap
    text: str


def memory_maps(case: CaseResult) -> list[MemoryMap]:
    """A map for each buffer, of the first suggestion for it that has a sample and whose rule is known."""
    found: dict[str, MemoryMap] = {}
    for suggestion in case.suggestions:
        made = None if suggestion.buffer in found else _map(case, suggestion)
        if made is not None:
            found[suggestion.buffer] = made
    return list(found.values())


def _map(case: CaseResult, suggestion: Suggestion) -> MemoryMap | None:
    sample = suggestion.sample
    if not sample:
        return None
    sides = []
    for side in ("before", "after"):
        phases = _phases(case.target, sample, sample[side])
        if not phases:
            return None
        sides.append(_picture(max(phases, key=lambda phase: phase.passes), side))
    operation = next((o for o in case.operations if o["id"] == sample["operation"]), None)
    line = (operation or {}).get("location", {}).get("line")
    access = ACCESSES.get(sample["access"], sample["access"])
    return MemoryMap(suggestion.buffer, suggestion.kind, access, line, sides[0], sides[1], suggestion.text)


def _phases(target: str, sample: dict[str, object], offsets: object) -> tuple[BankPhase, ...]:
    lanes, places = sample["lanes"], offsets
    if not isinstance(lanes, (list, tuple)) or not isinstance(places, (list, tuple)) or not lanes:
        return ()
    size = max(lanes) + 1
    addresses, active = [0] * size, [False] * size
    for lane, place in zip(lanes, places):
        addresses[lane], active[lane] = int(place), True
    try:
        return bank_phases(target, str(sample["access"]), int(str(sample["width_bits"])), addresses, active)
    except Exception:  # a target of another version: no picture
        return ()


def _picture(phase: BankPhase, side: str) -> BankMap:
    shown = min(phase.passes, MOST_PASSES)
    cells = tuple(
        MapCell(bank * CELL, row * CELL, words[row].lanes[0], len(words) > 1)
        for bank, words in enumerate(phase.banks)
        for row in range(min(len(words), shown))
    )
    busy = sum(bool(words) for words in phase.banks)
    lanes = f"lanes {phase.lanes[0]} to {phase.lanes[-1]}" if len(phase.lanes) > 1 else f"lane {phase.lanes[0]}"
    plural = "pass" if phase.passes == 1 else "passes"
    title = f"{side}: {lanes} take {phase.passes} {plural} over {busy} of {len(phase.banks)} banks"
    return BankMap(
        phase.passes, len(phase.banks), len(phase.banks) * CELL, shown * CELL, cells, phase.passes - shown, title
    )
