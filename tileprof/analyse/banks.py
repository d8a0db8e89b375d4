"""Which lane of a warp hits which bank of shared memory, phase by phase: what a picture of one access shows.

Counting is ``tilelang_min.access``'s affair; here are only the lanes, words and banks that it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tilelang_min as tilelang


@dataclass(frozen=True, slots=True)
class BankWord:
    """A 4-byte word (``word`` counts from the start of shared memory) and the lanes that access it together."""

    word: int
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BankPhase:
    """Lanes that go together, and for each bank the distinct words they access there, by lowest lane.

    A pass serves one word of each bank, so the phase takes as many as the busiest bank has words.
    """

    lanes: tuple[int, ...]
    banks: tuple[tuple[BankWord, ...], ...]

    @property
    def passes(self) -> int:
        """Passes that the phase takes."""
        return max(len(words) for words in self.banks)


def bank_phases(
    target: str, access: str, width_bits: int, addresses: Sequence[int], active: Sequence[bool]
) -> tuple[BankPhase, ...]:
    """The phases of one warp-wide access, those without an active lane left out; empty where they are not known.

    ``addresses``: byte offsets by lane.  A cp.async that bypasses the cache is drawn by the phases of one that does not.
    """
    machine: Any = tilelang.targets.resolve(target)
    matrix = access in ("ldmatrix", "stmatrix")
    width_bits = 128 if matrix else width_bits
    rule = machine.phases_of("cp_async" if access == "cp_async_bypass" else access, width_bits)
    if rule is None:
        return ()
    merges = not access.startswith("cp_async")  # two lanes of a cp.async that write one word take a pass each
    found = []
    for phase in rule.phases:
        lanes = tuple(lane for lane in phase if lane < len(addresses) and active[lane])
        if not lanes:
            continue
        banks: list[dict[tuple[int, int], list[int]]] = [{} for _ in range(rule.banks)]
        for lane in sorted(lanes):
            first = addresses[lane] // 4
            for word in range(first, first + max(1, width_bits // 32)):
                banks[word % rule.banks].setdefault((word, 0 if merges else lane), []).append(lane)
        words = tuple(tuple(BankWord(word, tuple(who)) for (word, _), who in bank.items()) for bank in banks)
        found.append(BankPhase(tuple(sorted(phase)), words))
    return tuple(found)
