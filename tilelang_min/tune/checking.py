"""Whether configurations compute the same: against a reference, or, where nobody gave one, against one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_PART = 1 << 22
"""Elements that are compared at a time."""


@dataclass(frozen=True)
class Tolerance:
    """Elements may differ by ``atol + rtol * |wanted|``, and a share ``ratio`` of them by more."""

    rtol: float
    atol: float
    ratio: float


@dataclass(frozen=True)
class Difference:
    """How two results differ: the largest difference of an element, the share of elements out of tolerance, and how many are NaN in
    one alone, as what a kernel did not write is: no share of those is tolerated."""

    largest: float
    share: float
    close: bool
    unwritten: int = 0


def compare(found: Sequence[Any], wanted: Sequence[Any], tolerance: Tolerance) -> Difference:
    """All outputs of a kernel against what they should be.  NaN equals NaN, and nothing else."""
    largest, out, count, unwritten = 0.0, 0, 0, 0
    if len(found) != len(wanted):
        return Difference(float("inf"), 1.0, False)
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            return Difference(float("inf"), 1.0, False)
        left, right = one.reshape(-1), other.reshape(-1)
        for start in range(0, left.size, _PART):
            a = left[start : start + _PART].astype(np.float64)
            b = right[start : start + _PART].astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                gap = np.abs(a - b)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                off = ~same & ~((gap <= tolerance.atol + tolerance.rtol * np.abs(b)) & np.isfinite(b))
            out += int(off.sum())
            unwritten += int((np.isnan(a) != np.isnan(b)).sum())
            gaps = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
            largest = max(largest, float(gaps.max(initial=0.0)))
        count += left.size
    share = out / count if count else 0.0
    return Difference(largest, share, share <= tolerance.ratio and not unwritten, unwritten)


@dataclass
class _Group:
    outputs: list[Any]
    members: list[int] = field(default_factory=list)


class Checker:
    """Takes results as they come.  ``wanted`` are those of a reference; ``manual`` compares instead, and raises."""

    def __init__(
        self, tolerance: Tolerance, wanted: list[Any] | None = None, manual: Callable[..., Any] | None = None
    ) -> None:
        self.tolerance = tolerance
        self.wanted = wanted
        self.manual = manual
        self.groups: list[_Group] = []

    def take(self, number: int, outputs: list[Any]) -> tuple[str | None, float | None]:
        """Why a configuration's results are wrong (None where that is not known), and their largest difference."""
        if self.wanted is not None:
            if self.manual is not None:
                try:
                    self.manual(outputs, self.wanted)
                except Exception as error:
                    return f"the check says {type(error).__name__}: {error}", None
                return None, None
            difference = compare(outputs, self.wanted, self.tolerance)
            return (None if difference.close else _words(difference, "the reference")), difference.largest
        for group in self.groups:
            difference = compare(outputs, group.outputs, self.tolerance)
            if difference.close:
                group.members.append(number)
                return None, None
        self.groups.append(_Group(outputs, [number]))
        return None, None

    def outvoted(self) -> tuple[dict[int, str], list[list[int]]]:
        """Configurations that differ from what most compute, with the reason; and numbers of configurations that differ where there
        is no such majority.  Configurations whose outputs have other shapes (a workspace, say) are no judges of one another."""
        wrong: dict[int, str] = {}
        tied: list[list[int]] = []
        alike: dict[Any, list[_Group]] = {}
        for group in self.groups:
            alike.setdefault(tuple(each.shape for each in group.outputs), []).append(group)
        for groups in alike.values():
            first, *others = sorted(groups, key=lambda group: -len(group.members))
            if others and len(first.members) == len(others[0].members):
                tied += [group.members for group in groups]
                continue
            for group in others:
                difference = compare(group.outputs, first.outputs, self.tolerance)
                whose = f"the {len(first.members)} configurations that agree"
                wrong.update(dict.fromkeys(group.members, _words(difference, whose)))
        return wrong, tied


def _words(difference: Difference, whose: str) -> str:
    text = (
        f"{difference.share:.2%} of the elements differ from those of {whose} by more than the tolerance, at most by "
        f"{difference.largest:.3g}"
    )
    return (
        f"{text}; {difference.unwritten} are NaN in one alone, as what is not written is"
        if difference.unwritten
        else text
    )
