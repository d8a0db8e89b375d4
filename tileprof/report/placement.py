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
class Segment:
    """A drawn line that labels had better not cross; ``weight`` says how much worse it is than a place further away."""

    x1: float
    y1: float
    x2: float
    y2: float
    weight: float

    def crosses(self, box: Box) -> bool:
        """Whether any part of the segment lies in the box (clipping after Liang and Barsky)."""
        dx, dy = self.x2 - self.x1, self.y2 - self.y1
        enter, leave = 0.0, 1.0
        for step, room in (
            (-dx, self.x1 - box.left),
            (dx, box.right - self.x1),
            (-dy, self.y1 - box.top),
            (dy, box.bottom - self.y1),
        ):
            if step == 0:
                if room < 0:
                    return False
            elif step < 0:
                enter = max(enter, room / step)
            else:
                leave = min(leave, room / step)
        return enter <= leave


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible place: all boxes that the label would cover, where it is drawn, and what it costs to be there."""

    boxes: tuple[Box, ...]
    x: float
    y: float
    anchor: str = "start"
    cost: float = 0.0


@dataclass(slots=True)
class Layout:
    """What is on the paper so far: boxes that nothing may cover, lines that nothing should cross."""

    area: Box
    taken: list[Box] = field(default_factory=list)
    lines: list[Segment] = field(default_factory=list)

    def block(self, boxes: Iterable[Box]) -> None:
        """Marks boxes as taken."""
        self.taken.extend(boxes)

    def place(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """Takes the cheapest candidate that lies in the area and covers nothing; None when there is none."""
        best: tuple[float, Candidate] | None = None
        for candidate in candidates:
            if not all(box.inside(self.area) for box in candidate.boxes):
                continue
            if any(box.overlap(other) for box in candidate.boxes for other in self.taken):
                continue
            crossed = (s.weight for s in self.lines if any(s.crosses(box) for box in candidate.boxes))
            cost = candidate.cost + sum(crossed)
            if best is None or cost < best[0]:
                best = (cost, candidate)
        if best is None:
            return None
        self.block(best[1].boxes)
        return best[1]


def text_width(text: str, size: float) -> float:
    """A generous estimate of the width of ``text`` in a sans-serif face of ``size`` pixels."""
    return sum(_WIDTHS.get(character, 0.60) for character in text) * size


_WIDTHS = {c: 0.32 for c in "il.,:;|'![]() "} | {c: 0.38 for c in "frtj-/"} | {c: 0.92 for c in "mwMW@%"}
_WIDTHS |= {c: 0.74 for c in "ABCDEFGHIJKLNOPQRSTUVXYZ_"}
