"""Scales and words of a roofline: axis ranges, marks, names of ceilings.

Ranges always come from the points and the ridges, never from constants, so that no line ends short of a point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tileprof.analyse.roofline import Roofline
from tileprof.report import numbers
from tileprof.store.records import Ceiling

LEVEL_WORDS = {"dram": "DRAM", "l2": "L2", "l1": "L1", "shared": "shared"}
"""Levels of memory as they are written on lines and in tables."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Ranges in data units, FLOP/byte and FLOP/s."""

    x0: float
    x1: float
    y0: float
    y1: float


@dataclass(frozen=True, slots=True)
class Mark:
    """One place on the plot: a measured point, or a predicted one that several cases may share.

    ``indices`` are positions in ``Roofline.points``.  ``measured`` False: ``y`` is what is attainable, not what was reached.
    """

    x: float
    y: float
    measured: bool
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PeakLine:
    """Ceilings of equal height drawn as one line."""

    value: float
    names: tuple[str, ...]
    kind: str


def axes(roofline: Roofline) -> Axes | None:
    """Ranges that hold every mark and every ridge with some air; None where there is nothing to plot."""
    if not roofline.points:
        return None
    xs = [point.intensity for point in roofline.points] + [ridge.intensity for ridge in roofline.ridges]
    xs += [level.intensity for point in roofline.points for level in point.levels]
    ys = [mark.y for mark in marks(roofline)] + [peak.value for peak in roofline.peaks]
    if not ys:
        return None
    x0, x1 = min(xs) / 2.5, max(xs) * 8
    low = min(ys)
    for bandwidth in roofline.bandwidths:
        low = min(low, bandwidth.value * min(point.intensity for point in roofline.points))
    return Axes(x0, x1, low / 4, max(ys) * 2.6)


def marks(roofline: Roofline) -> list[Mark]:
    """Measured cases one by one; predicted ones grouped where they fall on the same place."""
    found: list[Mark] = []
    predicted: dict[tuple[float, float], list[int]] = {}
    for index, point in enumerate(roofline.points):
        if point.achieved is not None:
            found.append(Mark(point.intensity, point.achieved, True, (index,)))
        elif point.attainable is not None:
            place = (numbers.round_to(point.intensity, 4), numbers.round_to(point.attainable, 4))
            predicted.setdefault(place, []).append(index)
    for indices in predicted.values():
        first = roofline.points[indices[0]]
        found.append(Mark(first.intensity, first.attainable or 0.0, False, tuple(indices)))
    return found


def peak_lines(roofline: Roofline) -> list[PeakLine]:
    """Compute ceilings, those within 2 % of each other and of the same provenance as one line."""
    lines: list[PeakLine] = []
    for peak in roofline.peaks:
        kind = peak.provenance.kind
        for position, line in enumerate(lines):
            if line.kind == kind and math.isclose(line.value, peak.value, rel_tol=0.02):
                lines[position] = PeakLine(line.value, (*line.names, peak.unit_class), kind)
                break
        else:
            lines.append(PeakLine(peak.value, (peak.unit_class,), kind))
    return lines


def peak_label(line: PeakLine, short: bool = False) -> str:
    """``matrix.float16  312 TFLOP/s · datasheet``; a short one names only the first of equal ceilings."""
    rest = len(line.names) - 1
    names = f"{line.names[0]} and {rest} more" if short and rest else ", ".join(line.names)
    return f"{names}  {numbers.si(line.value, 'FLOP/s')} · {line.kind}"


def bandwidth_label(ceiling: Ceiling) -> str:
    """``DRAM  13.8 GB/s · measured``."""
    level = ceiling.quantity.partition(".")[0]
    return f"{LEVEL_WORDS.get(level, level)}  {numbers.si(ceiling.value, 'B/s')} · {ceiling.provenance.kind}"


def machine_of(ceilings: Sequence[Ceiling]) -> str:
    """Which machines the ceilings belong to: this one, or the datasheet's device."""
    names = {
        "this machine" if ceiling.provenance.kind == "measured" else ceiling.provenance.tool: None
        for ceiling in ceilings
    }
    return ", ".join(name for name in names if name)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten in ``[low, high]``."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**exponent for exponent in range(first, last + 1)]


def minor_lines(low: float, high: float) -> list[float]:
    """Twofold to ninefold powers of ten in ``[low, high]``."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    lines = (digit * 10.0**exponent for exponent in range(first, last + 1) for digit in range(2, 10))
    return [value for value in lines if low <= value <= high]


def mark_names(roofline: Roofline, mark: Mark, labels: dict[str, str]) -> list[str]:
    """Labels of the cases at a mark."""
    return [labels[roofline.points[index].case.id] for index in mark.indices]
