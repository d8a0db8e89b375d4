"""The roofline for papers and slides: matplotlib to PNG, SVG or PDF.

Draws the very shapes that the page shows (:mod:`tileprof.report.roofline_view` places lines, marks and labels once, in pixels), so
that both agree.  Importing this module imports no matplotlib; drawing does, and never opens a window.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tileprof.analyse.labels import variant_labels
from tileprof.analyse.roofline import Roofline, rooflines
from tileprof.errors import StoreError, UsageError
from tileprof.report.roofline_axes import marks
from tileprof.report.roofline_view import FONT, HEIGHT, WIDTH, RoofFigure, Text, roof_figure, roof_source
from tileprof.store.records import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
"""File endings that can be written."""

COLOURS = {"measured": "#00609c", "datasheet": "#a12e6a", "derived": "#865400", "label": "#151a21"}
LEVEL_MARKS = {"dram": ("s", "#00609c"), "l2": ("^", "#2f9bb3"), "l1": ("v", "#0a7547"), "shared": ("D", "#7d5bd0")}
"""Shape and colour of a case's place at a level of memory."""

_GREY = "#56616f"
_GRID = {"major": ("#d5dae1", 0.7), "minor": ("#eceff3", 0.5)}
_POINTS_A_PIXEL = 0.72  # at 100 pixels an inch
_TITLE, _KEY = 26.0, 17.0  # pixels above the plot, and for each line of the key below it


def draw(run: Run, target_name: str | None = None) -> Figure:
    """A figure with one panel for each target (or only for ``target_name``), below each other.

    Measured cases are filled dots at achieved FLOP/s; cases that were not run are hollow diamonds at what is attainable.  Raises
    UsageError for an unknown target.
    """
    from matplotlib.figure import Figure

    roofs = [roof for roof in rooflines(run) if target_name in (None, roof.target_name, roof.target)]
    if target_name is not None and not roofs:
        known = ", ".join(dict.fromkeys(case.target_name for case in run.cases)) or "none"
        raise UsageError(f"the run has no target {target_name!r}", remedy=f"targets of this run: {known}")
    labels = variant_labels(run.cases)
    keys = [_key(roof, labels) for roof in roofs]
    heights = [_TITLE + HEIGHT + _KEY * (1 + len(key)) for key in keys]
    whole = sum(heights) or HEIGHT
    figure = Figure(figsize=(WIDTH / 100, whole / 100), facecolor="white")
    top = whole
    for roof, key, height in zip(roofs, keys, heights):
        area = figure.add_axes((0, (top - height) / whole, 1, height / whole))
        area.set(xlim=(0, WIDTH), ylim=(height - _TITLE, -_TITLE))
        area.set_axis_off()
        _panel(area, roof, labels, key)
        top -= height
    return figure


def save(run: Run, path: str | Path, target_name: str | None = None) -> Path:
    """Draws and writes; the file's ending chooses the format.  Raises UsageError for another ending, StoreError on failure.

    Text stays text in SVG and PDF; no date is written, so that equal runs give equal files.
    """
    from matplotlib import rc_context

    place = Path(path)
    ending = place.suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise UsageError(
            f"cannot write a roofline as {place.suffix or 'a file without ending'!r}", remedy="use .png, .svg or .pdf"
        )
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending, {})
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "tileprof", "pdf.fonttype": 42}):
        figure = draw(run, target_name)
        try:
            figure.savefig(place, format=ending, dpi=160, metadata=metadata)
        except OSError as error:
            raise StoreError(f"cannot write {place}: {error.strerror}", remedy="choose another place") from error
    return place


def _key(roof: Roofline, labels: dict[str, str]) -> list[str]:
    """Lines that say which cases stand behind the numbers of shared marks, and how the two kinds of mark read."""
    shared = [index for mark in marks(roof) if len(mark.indices) > 1 for index in mark.indices]
    names = "; ".join(f"{index + 1} {labels[roof.points[index].case.id][:40]}" for index in sorted(shared))
    lines = [
        "filled dot: achieved, from measured time. hollow diamond: predicted, attainable at this intensity, not run"
    ]
    if roof.level_bandwidths:
        lines.append(
            "square, triangles, small diamond: the same work over the bytes of DRAM, L2 (up), L1 (down) and shared memory"
        )
    return lines + textwrap.wrap(names, 130)[:3]


def _panel(area: Any, roof: Roofline, labels: dict[str, str], key: list[str]) -> None:
    _text(area, Text(16, -8, f"{roof.target_name}   {roof_source(roof)}", "label"), FONT + 1)
    figure = roof_figure(roof, labels)
    if figure is None:
        _text(area, Text(WIDTH / 2, HEIGHT / 2, "nothing to plot on this target", "label", "middle"))
        return
    _lines(area, figure)
    _marks(area, figure)
    for text in figure.texts:
        _text(area, text)
    for number, line in enumerate(key):
        _text(area, Text(figure.plot.left, HEIGHT + _KEY * (number + 0.6), line, "axis"), FONT - 2)


def _lines(area: Any, figure: RoofFigure) -> None:
    plot = figure.plot
    for line in figure.grid:
        colour, width = _GRID[line.kind]
        area.plot([line.x1, line.x2], [line.y1, line.y2], color=colour, linewidth=width, zorder=1)
    frame_x = [plot.left, plot.right, plot.right, plot.left, plot.left]
    area.plot(
        frame_x, [plot.top, plot.top, plot.bottom, plot.bottom, plot.top], color="#aab4c0", linewidth=0.8, zorder=1
    )
    for line in figure.ceilings:
        kind = line.kind.removeprefix("roof ")
        style = "-" if kind == "measured" else "--"
        ends = ([line.x1, line.x2], [line.y1, line.y2])
        area.plot(*ends, color=COLOURS.get(kind, _GREY), linestyle=style, linewidth=1.4, zorder=2)
    for x, y, _ in figure.ridges:
        area.plot([x], [y], "o", mfc="white", mec=_GREY, ms=4.5, mew=0.9, zorder=3)


def _marks(area: Any, figure: RoofFigure) -> None:
    if figure.dots:
        area.plot(
            [x for x, _ in figure.dots],
            [y for _, y in figure.dots],
            ".",
            color=COLOURS["measured"],
            alpha=0.4,
            zorder=3,
        )
    for mark in figure.marks:
        if mark.levels:
            places = [mark.x, *(level.x for level in mark.levels)]
            area.plot([min(places), max(places)], [mark.y] * 2, color=_GREY, linewidth=0.7, alpha=0.7, zorder=3)
        for level in mark.levels:
            shape, colour = LEVEL_MARKS[level.level]
            area.plot([level.x], [level.y], shape, mfc=colour, mec="white", ms=5.5, mew=0.7, zorder=4)
        if mark.measured:
            if mark.roof_y is not None:
                area.plot([mark.x] * 2, [mark.y, mark.roof_y], color=_GREY, linestyle=":", linewidth=0.8, zorder=2)
            area.plot([mark.x], [mark.y], "o", mfc=COLOURS["measured"], mec="white", ms=8, mew=1, zorder=5)
        else:
            area.plot(
                [mark.x] * 2, [mark.y, mark.floor_y], color=COLOURS["derived"], linestyle=":", linewidth=0.8, zorder=2
            )
            area.plot([mark.x], [mark.y], "D", mfc="white", mec=COLOURS["derived"], ms=7, mew=1.3, zorder=5)
        if mark.leader is not None:
            ends = ([mark.leader.x1, mark.leader.x2], [mark.leader.y1, mark.leader.y2])
            area.plot(*ends, color=_GREY, linewidth=0.6, zorder=4)
        if mark.label is not None:
            _text(area, mark.label)


def _text(area: Any, text: Text, size: float = FONT - 1) -> None:
    """One label where the page has it; dollars are dollars, not mathematics."""
    kind = text.kind.removeprefix("roof ")
    area.text(
        text.x,
        text.y,
        text.text.replace("$", r"\$"),
        ha={"start": "left", "middle": "center", "end": "right"}[text.anchor],
        va="baseline",
        rotation=-text.angle,
        rotation_mode="anchor",
        fontsize=size * _POINTS_A_PIXEL,
        color=COLOURS.get(kind, _GREY),
        zorder=6,
    )
