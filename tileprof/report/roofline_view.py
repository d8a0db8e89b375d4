"""The roofline as shapes of an inline SVG.  Places labels; colours are the style sheet's, the table is ``roofline_table.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tileprof.analyse.roofline import LevelPoint, Point, Roofline
from tileprof.report import numbers
from tileprof.report.placement import Box, Candidate, Layout, Segment, text_width
from tileprof.report.roofline_axes import (
    LEVEL_WORDS,
    Axes,
    Mark,
    PeakLine,
    axes,
    bandwidth_label,
    decades,
    machine_of,
    mark_names,
    marks,
    minor_lines,
    peak_label,
    peak_lines,
)

WIDTH, HEIGHT = 860.0, 430.0
LEFT, RIGHT, TOP, BOTTOM = 84.0, 16.0, 16.0, 50.0
FONT = 11.5
BOLD = 1.1  # how much wider the labels of ceilings are set
LONGEST_LABEL = 34
MOST_MARKS = 150
"""Marks that can be pointed at, those that take the most time; the rest are dots."""

MOST_LABELS = 40
"""Marks that get a label; of more, those that take the most time do, and the table tells the rest."""


def px(value: float) -> str:
    """Pixels, to a tenth."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line in pixels; ``kind`` is a CSS class."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str

    @property
    def path(self) -> str:
        """The line as an SVG path, upright and level ones in its short forms."""
        if self.x1 == self.x2:
            return f"M{px(self.x1)} {px(self.y1)}V{px(self.y2)}"
        if self.y1 == self.y2:
            return f"M{px(self.x1)} {px(self.y1)}H{px(self.x2)}"
        return f"M{px(self.x1)} {px(self.y1)}L{px(self.x2)} {px(self.y2)}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text in pixels, turned by ``angle`` degrees around its anchor."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "start"
    angle: float = 0.0


@dataclass(frozen=True, slots=True)
class LevelShape:
    """The mark's place at another level of memory, joined to it by a tie-line; ``level`` is a CSS class."""

    x: float
    y: float
    level: str
    title: str


@dataclass(frozen=True, slots=True)
class MarkShape:
    """A mark with its label and what a reader learns on hover or focus."""

    x: float
    y: float
    measured: bool
    title: str
    label: Text | None
    leader: Line | None
    roof_y: float | None
    floor_y: float
    levels: tuple[LevelShape, ...] = ()


@dataclass(frozen=True, slots=True)
class RoofFigure:
    """Everything that the SVG of one target holds."""

    width: float
    height: float
    plot: Box
    grid: tuple[Line, ...]
    ceilings: tuple[Line, ...]
    texts: tuple[Text, ...]
    ridges: tuple[tuple[float, float, str], ...]
    marks: tuple[MarkShape, ...]
    description: str
    dots: tuple[tuple[float, float], ...] = ()


class _Paper:
    """Data to pixels on logarithmic axes."""

    def __init__(self, ranges: Axes) -> None:
        self.ranges = ranges
        self.plot = Box(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)
        self.per_x = (self.plot.right - self.plot.left) / math.log10(ranges.x1 / ranges.x0)
        self.per_y = (self.plot.bottom - self.plot.top) / math.log10(ranges.y1 / ranges.y0)

    def x(self, value: float) -> float:
        return self.plot.left + math.log10(value / self.ranges.x0) * self.per_x

    def y(self, value: float) -> float:
        return self.plot.bottom - math.log10(value / self.ranges.y0) * self.per_y


def roof_figure(roofline: Roofline, labels: dict[str, str]) -> RoofFigure | None:
    """The figure of one target, or None where nothing can be plotted."""
    ranges = axes(roofline)
    if ranges is None:
        return None
    paper = _Paper(ranges)
    layout = Layout(paper.plot)
    places = marks(roofline)
    dots: tuple[tuple[float, float], ...] = ()
    if len(places) > MOST_MARKS:
        slowest = sorted(places, key=lambda mark: -(roofline.points[mark.indices[0]].time_ns or 0.0))
        dots = tuple((paper.x(mark.x), paper.y(mark.y)) for mark in slowest[MOST_MARKS:])
        places = slowest[:MOST_MARKS]
    labelled = _labelled(roofline, places)
    for mark in places:
        x, y = paper.x(mark.x), paper.y(mark.y)
        layout.block([Box(x - 7, y - 7, x + 7, y + 7)])
        others = [paper.x(level.intensity) for level in _levels_of(roofline, mark)]
        layout.block([Box(at - 5, y - 5, at + 5, y + 5) for at in others])
        if others:
            layout.lines.append(Segment(min(x, *others), y, max(x, *others), y, 8))
        roof = roofline.points[mark.indices[0]].attainable if mark.measured else None
        end = paper.plot.bottom if not mark.measured else (paper.y(roof) if roof is not None else y)
        layout.lines.append(Segment(x, y, x, end, 6))
    lines, texts = _ceilings(roofline, paper, layout)
    shapes = tuple(
        _shape(roofline, mark, paper, layout, mark_names(roofline, mark, labels), mark in labelled) for mark in places
    )
    grid, ticks = _grid(paper)
    # A ridge belongs to a roof; of several bandwidths of one level the preferred one's are enough.
    first = (*roofline.bandwidths[:1], *roofline.level_bandwidths)
    ridges = tuple(
        (
            paper.x(r.intensity),
            paper.y(r.compute.value),
            f"ridge of {r.compute.unit_class} and {LEVEL_WORDS.get(r.bandwidth.quantity.partition('.')[0], '')}: "
            f"{numbers.intensity(r.intensity)} FLOP/byte",
        )
        for r in roofline.ridges
        if r.bandwidth in first
    )
    measured = sum(shape.measured for shape in shapes)
    description = (
        f"Roofline of {roofline.target_name}: {len(roofline.points)} cases, {measured} measured, "
        f"{len(roofline.points) - measured} predicted. The table below holds the same numbers."
    )
    return RoofFigure(WIDTH, HEIGHT, paper.plot, grid, lines, texts + ticks, ridges, shapes, description, dots)


def _labelled(roofline: Roofline, places: list[Mark]) -> set[Mark]:
    """The marks that get a label: those that take most time; fewer where there are many, or labels would only hide them."""
    slowest = sorted(places, key=lambda mark: -(roofline.points[mark.indices[0]].time_ns or 0.0))
    return set(slowest[: MOST_LABELS if len(places) < MOST_MARKS else MOST_LABELS // 4])


def _grid(paper: _Paper) -> tuple[tuple[Line, ...], tuple[Text, ...]]:
    plot, ranges = paper.plot, paper.ranges
    lines: list[Line] = []
    texts: list[Text] = []
    # Lines closer than a few pixels are grey paste: over many decades minor ones are left out and major ones thinned.
    if paper.per_x > 60:
        for value in minor_lines(ranges.x0, ranges.x1):
            lines.append(Line(paper.x(value), plot.top, paper.x(value), plot.bottom, "minor"))
    if paper.per_y > 25:
        for value in minor_lines(ranges.y0, ranges.y1):
            lines.append(Line(plot.left, paper.y(value), plot.right, paper.y(value), "minor"))
    for value in decades(ranges.x0, ranges.x1)[:: max(1, math.ceil(34 / paper.per_x))]:
        x = paper.x(value)
        lines.append(Line(x, plot.top, x, plot.bottom, "major"))
        text = f"{value:g}" if value < 1e4 or value >= 1e18 else numbers.si(value)
        texts.append(Text(x, plot.bottom + 18, text, "tick", "middle"))
    for value in decades(ranges.y0, ranges.y1)[:: max(1, math.ceil(20 / paper.per_y))]:
        y = paper.y(value)
        lines.append(Line(plot.left, y, plot.right, y, "major"))
        texts.append(Text(plot.left - 8, y + 4, numbers.si(value), "tick", "end"))
    texts.append(Text((plot.left + plot.right) / 2, HEIGHT - 10, "arithmetic intensity, FLOP/byte", "axis", "middle"))
    texts.append(Text(18, (plot.top + plot.bottom) / 2, "work per second, FLOP/s", "axis", "middle", -90))
    return tuple(lines), tuple(texts)


def _ceilings(roofline: Roofline, paper: _Paper, layout: Layout) -> tuple[tuple[Line, ...], tuple[Text, ...]]:
    """Lines of the roof and their labels, clipped to the plot; a peak starts at its first ridge."""
    plot, ranges = paper.plot, paper.ranges
    peaks = peak_lines(roofline)
    highest = max((line.value for line in peaks), default=ranges.y1)
    slanted = (*roofline.bandwidths, *roofline.level_bandwidths)
    widest = max((c.value for c in slanted), default=None)
    lines: list[Line] = []
    for peak in peaks:
        start = max(ranges.x0, peak.value / widest) if widest else ranges.x0
        y = paper.y(peak.value)
        lines.append(Line(paper.x(start), y, plot.right, y, f"roof {peak.kind}"))
    slopes: list[Line | None] = []
    for ceiling in slanted:
        start = max(ranges.x0, ranges.y0 / ceiling.value)
        end = min(ranges.x1, highest / ceiling.value)
        slope = Line(
            paper.x(start),
            paper.y(start * ceiling.value),
            paper.x(end),
            paper.y(end * ceiling.value),
            f"roof {ceiling.provenance.kind}",
        )
        slopes.append(slope if end > start else None)
    drawn = lines + [slope for slope in slopes if slope is not None]
    layout.lines.extend(Segment(line.x1, line.y1, line.x2, line.y2, 90) for line in drawn)
    texts = [_peak_text(peak, line, plot.right, layout) for peak, line in zip(peaks, lines)]
    angle = math.degrees(math.atan2(-paper.per_y, paper.per_x))
    for ceiling, line in zip(slanted, slopes):
        if line is not None:
            whole, length = bandwidth_label(ceiling), math.hypot(line.x2 - line.x1, line.y2 - line.y1)
            least = whole.split()[0]
            for text in dict.fromkeys((whole, whole.partition(" · ")[0], least)):
                if text != least and text_width(text, FONT) * BOLD > length:
                    continue  # less on a short piece of line, beyond which it would cross others
                chosen = layout.place(_bandwidth_places(line, text, angle))
                if chosen is not None:
                    texts.append(Text(chosen.x, chosen.y, text, line.kind, "middle", angle))
                    break
    return tuple(drawn), tuple(texts)


def _peak_text(peak: PeakLine, line: Line, right: float, layout: Layout) -> Text:
    """The label of a horizontal: above it at the right edge, or as near to that as there is room; shorter where that helps."""
    short = peak_label(peak, short=True)
    texts = dict.fromkeys((peak_label(peak), short, short.partition(" · ")[0]))  # the line's dashes tell the kind too
    candidates: list[tuple[Candidate, str]] = []
    for dearer, text in enumerate(texts):
        width = text_width(text, FONT) * BOLD
        for rank, (dy, shift) in enumerate(
            (dy, shift) for shift in range(6, 660, 24) for dy in (-6, -13, FONT + 4, FONT + 9)
        ):
            box = Box(right - shift - width, line.y1 + dy - FONT, right - shift, line.y1 + dy + 3)
            place = Candidate((box,), right - shift, line.y1 + dy, "end", rank + 20.0 * dearer)
            candidates.append((place, text))
    found = layout.place([candidate for candidate, _ in candidates])
    chosen, text = next(((c, t) for c, t in candidates if c is found), candidates[0])
    return Text(chosen.x, chosen.y, text, line.kind, "end")


def _bandwidth_places(line: Line, text: str, angle: float) -> list[Candidate]:
    """Where the label of a diagonal may stand: above it, or else below."""
    shares = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1)
    return [
        _along(line, share, text, angle, rank + 10 * side, below=bool(side))
        for side in (0, 1)
        for rank, share in enumerate(shares)
    ]


def _along(line: Line, share: float, text: str, angle: float, rank: float, below: bool = False) -> Candidate:
    """A label centred ``share`` along a line and 7 pixels above it, or as far below it, as a row of small boxes."""
    radians = math.radians(angle)
    across, up = math.cos(radians), math.sin(radians)
    away = -(FONT + 4) if below else 7
    x = line.x1 + (line.x2 - line.x1) * share + away * up
    y = line.y1 + (line.y2 - line.y1) * share - away * across
    half = text_width(text, FONT) * BOLD / 2
    steps = max(2, int(half / 5))
    boxes = []
    for step in range(-steps, steps + 1):
        along = half * step / steps
        cx, cy = x + along * across + 4 * up, y + along * up - 4 * across
        boxes.append(Box(cx - 5, cy - 5, cx + 5, cy + 5))
    return Candidate(tuple(boxes), x, y, "middle", rank)


def _shape(
    roofline: Roofline, mark: Mark, paper: _Paper, layout: Layout, names: list[str], labelled: bool
) -> MarkShape:
    x, y = paper.x(mark.x), paper.y(mark.y)
    title = _title(roofline.points[mark.indices[0]], names, mark.measured)
    short = ", ".join(str(index + 1) for index in mark.indices)
    texts = [short] if len(names) > 1 else [f"{short}  {_cut(names[0])}", short]
    label = leader = None
    for text in texts if labelled else ():
        chosen = layout.place(_around(x, y, text))
        if chosen is not None:
            label = Text(chosen.x, chosen.y, text, "label", chosen.anchor)
            if math.hypot(chosen.x - x, chosen.y - 4 - y) > 24:
                leader = Line(x, y, chosen.x, chosen.y - 4, "leader")
            break
    attainable = roofline.points[mark.indices[0]].attainable if mark.measured else None
    roof = paper.y(attainable) if attainable is not None and attainable > mark.y * 1.05 else None
    levels = tuple(
        LevelShape(paper.x(level.intensity), y, level.level, _level_title(level, names[0]))
        for level in _levels_of(roofline, mark)
    )
    return MarkShape(x, y, mark.measured, title, label, leader, roof, paper.plot.bottom, levels)


def _levels_of(roofline: Roofline, mark: Mark) -> tuple[LevelPoint, ...]:
    """Places of a mark at the levels of memory; none where several cases share it."""
    return roofline.points[mark.indices[0]].levels if len(mark.indices) == 1 else ()


def _level_title(level: LevelPoint, name: str) -> str:
    lines = [name, f"{LEVEL_WORDS[level.level]}: {numbers.intensity(level.intensity)} FLOP/byte, "
                   f"{numbers.si(level.moved, 'B')} moved ({level.kind})"]  # fmt: skip
    if level.share is not None:
        lines.append(f"{numbers.percent(level.share)} of the level's bandwidth")
    return "\n".join(lines)


def _around(x: float, y: float, text: str) -> list[Candidate]:
    """Places around a mark; the further away, the dearer."""
    width, found = text_width(text, FONT), []
    for distance in (12.0, 18.0, 26.0, 38.0, 52.0, 70.0):
        for rank, (across, down, anchor) in enumerate(
            ((1, 0, "start"), (-1, 0, "end"), (0.8, -0.8, "start"), (0.8, 0.8, "start"), (-0.8, -0.8, "end"),
             (-0.8, 0.8, "end"), (0, -1, "middle"), (0, 1.2, "middle"))
        ):  # fmt: skip
            at, base = x + across * distance, y + 4 + down * distance
            left = {"start": at, "end": at - width, "middle": at - width / 2}[anchor]
            box = Box(left - 2, base - FONT, left + width + 2, base + 3)
            found.append(Candidate((box,), at, base, anchor, distance - 12 + rank * 0.5))
    return found


def _title(point: Point, names: list[str], measured: bool) -> str:
    lines = ["\n".join(names[:6]) + (f"\nand {len(names) - 6} more" if len(names) > 6 else "")]
    lines.append(f"intensity {numbers.intensity(point.intensity)} FLOP/byte (derived)")
    if measured:
        lines.append(f"achieved {numbers.si(point.achieved, 'FLOP/s')} (measured)")
    if point.attainable is not None:
        lines.append(f"attainable {numbers.si(point.attainable, 'FLOP/s')}, {point.bound} bound (derived)")
    lines.append(
        f"{numbers.percent(point.share)} of attainable" if measured else "predicted: the case was not run here"
    )
    return "\n".join(lines)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"


def roof_source(roofline: Roofline) -> str:
    """What the ceilings are and of which machine: for the heading of a figure."""
    ceilings = [*roofline.bandwidths, *roofline.peaks]
    kinds = sorted({ceiling.provenance.kind for ceiling in ceilings})
    if not ceilings:
        return "no ceilings are known for this target"
    return f"ceilings: {' and '.join(kinds)}, {machine_of(ceilings)}".rstrip(", ")
