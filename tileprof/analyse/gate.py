"""The rule that decides whether a kernel became slower, from rounds of both sides measured in turns.

A comparison with yesterday's figure is a comparison of two days: clocks, temperature and other users of the machine move medians by
more than a change worth catching.  So both kernels are run in turns, a round each, and a round's two medians are compared with
each other only.  What moves both sides cancels; what is left is judged by size (the floor) and by agreement (all rounds).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tileprof.store.records import LEAST_ROUNDS

FLOOR = 0.03
"""Least change that counts, as a share: smaller ones are within what machines of one kind differ by."""

SLOWER, FASTER, SAME, UNCLEAR = "slower", "faster", "same", "unclear"


@dataclass(frozen=True, slots=True)
class TimeChange:
    """Outcome of the rule.

    ``ratio`` is the median over rounds of head's median time over base's; ``slower`` and ``rounds`` count rounds; ``low`` and
    ``high`` are the smallest and the largest ratio of a round.
    """

    outcome: str
    ratio: float
    slower: int
    rounds: int
    low: float
    high: float

    def text(self) -> str:
        """The outcome in a line of words and figures."""
        return (
            f"{(self.ratio - 1) * 100:+.1f} % (median of {self.rounds} rounds in turns, {self.slower} of them slower, "
            f"{(self.low - 1) * 100:+.1f} to {(self.high - 1) * 100:+.1f} %)"
        )


def judge(head: Sequence[Sequence[float]], base: Sequence[Sequence[float]], floor: float = FLOOR) -> TimeChange | None:
    """Whether head is slower than base: every round slower, and the median ratio above ``1 + floor``; faster likewise.

    A median beyond the floor on which the rounds do not agree is ``unclear``: the machine was too noisy, and trying again is
    worth it.  None where there are fewer than LEAST_ROUNDS complete rounds or times that cannot be.
    """
    ratios = []
    for ours, theirs in zip(head, base):
        if not ours or not theirs:
            continue
        above, below = median(ours), median(theirs)
        if not (math.isfinite(above) and math.isfinite(below) and above > 0 and below > 0):
            return None
        ratios.append(above / below)
    if len(ratios) < LEAST_ROUNDS:
        return None
    middle, slower = median(ratios), sum(ratio > 1 for ratio in ratios)
    outcome = SAME
    if middle > 1 + floor:
        outcome = SLOWER if slower == len(ratios) else UNCLEAR
    elif middle < 1 / (1 + floor):
        outcome = FASTER if slower == 0 else UNCLEAR
    return TimeChange(outcome, middle, slower, len(ratios), min(ratios), max(ratios))
