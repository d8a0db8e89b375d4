"""Where labels go on a plot so that none covers another: boxes, and a greedy search over candidate places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on paper: left, top, right, bottom, in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Shared area in square pixels."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0

    def inside(self, other: Box) -> bool:
        """Whether this box lies within ``other``."""
        return (
            self.left >= other.left
            and self.top >= other.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible place: all boxes that the label would cover, and what the caller needs to draw it."""

    boxes: tuple[Box, ...]
    x: float
    y: float
    anchor: str = "start"
    cost: float = 0.0


@dataclass(slots=True)
class Layout:
    """What is on the paper so far."""

    area: Box
    taken: list[Box] = field(default_factory=list)

    def block(self, boxes: Iterable[Box]) -> None:
        """Marks boxes as taken."""
        self.taken.extend(boxes)

    def place(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """Takes the first candidate that lies in the area and covers nothing; None when there is none."""
        for candidate in candidates:
            if all(box.inside(self.area) for box in candidate.boxes) and not any(
                box.overlap(other) for box in candidate.boxes for other in self.taken
            ):
                self.block(candidate.boxes)
                return candidate
        return None


def text_width(text: str, size: float) -> float:
    """A generous estimate of the width of ``text`` in a sans-serif face of ``size`` pixels."""
    return sum(_WIDTHS.get(character, 0.60) for character in text) * size


_WIDTHS = {c: 0.32 for c in "il.,:;|'![]() "} | {c: 0.38 for c in "frtj-/"} | {c: 0.92 for c in "mwMW@%"}
_WIDTHS |= {c: 0.74 for c in "ABCDEFGHIJKLNOPQRSTUVXYZ_"}
