"""Where each case stands below the roof: arithmetic intensity, ceilings, ridge points, attainable and achieved work.

The model is the classic one (Williams, Waterman, Patterson 2009) at the level of device memory:
``attainable = min(peak, intensity * bandwidth)`` with ``intensity = useful FLOPs / least bytes``, where the least bytes move
every operand once.  A case also has a point at every other level whose traffic is known (Yang, Kurth, Williams 2019): the same
work over the bytes that this level moved, measured or simulated.  FLOPs are useful ones, not executed ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tileprof.analyse.figures import case_figures
from tileprof.store.records import CaseResult, Ceiling, Provenance, Run

BANDWIDTH = "dram.bytes_per_s"
COMPUTE = "flops_per_s"


LEVELS = {
    "dram": ("dram.bytes_per_s", (("dram.read_bytes", 1.0), ("dram.write_bytes", 1.0))),
    "l2": ("l2.bytes_per_s", (("l2.bytes", 1.0),)),
    "l1": ("l1.bytes_per_s", (("l1.bytes", 1.0),)),
    "shared": ("shared.bytes_per_s", (("shared.transactions", 128.0),)),
}
"""Level -> the quantity of its ceiling, and the metrics that add up to its traffic with the bytes of one unit of each.

A shared-memory transaction takes the banks for a clock, 32 banks of 4 bytes, whatever part of them is used.
"""


@dataclass(frozen=True, slots=True)
class LevelPoint:
    """Traffic of one level of the memory hierarchy: ``moved`` bytes, ``intensity`` in FLOP/byte at this level.

    ``kind`` is where the traffic comes from; ``share`` is of the level's bandwidth, where time and ceiling are known.
    """

    level: str
    moved: float
    intensity: float
    kind: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """One case.  ``intensity`` in FLOP/byte, ``achieved`` and ``attainable`` in FLOP/s, ``share`` of attainable 0 to 1.

    ``achieved`` is None where the case was not run; its place on the roof is then only a prediction.  ``share`` above 1 is
    kept: it says that the ceiling belongs to another device or is too low.
    """

    case: CaseResult
    flops: float
    flops_type: str
    bytes_min: float
    intensity: float
    time_ns: float | None
    achieved: float | None
    attainable: float | None
    share: float | None
    bound: str | None
    bandwidth: Ceiling | None
    compute: Ceiling | None
    levels: tuple[LevelPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Unplotted:
    """A case that has no place on log axes, and why."""

    case: CaseResult
    reason: str


@dataclass(frozen=True, slots=True)
class Ridge:
    """Where a bandwidth meets a peak: ``intensity`` in FLOP/byte above which the peak is the limit."""

    bandwidth: Ceiling
    compute: Ceiling
    intensity: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """Everything about one target of a run.

    ``peaks`` are those that a case is held to (all, where no case is held to one); ``level_bandwidths`` those of levels above
    device memory at which a case has a point; the rest is among ``other_ceilings``.
    """

    target_name: str
    target: str
    bandwidths: tuple[Ceiling, ...]
    peaks: tuple[Ceiling, ...]
    other_ceilings: tuple[Ceiling, ...]
    ridges: tuple[Ridge, ...]
    points: tuple[Point, ...]
    unplotted: tuple[Unplotted, ...]
    level_bandwidths: tuple[Ceiling, ...] = ()


def rooflines(run: Run) -> list[Roofline]:
    """One roofline a target, in the order in which targets appear."""
    names = {case.target_name: case.target for case in run.cases}
    return [roofline(run, name, target) for name, target in names.items()]


def roofline(run: Run, target_name: str, target: str) -> Roofline:
    """The roofline of one target: ceilings that name it (or its machine form), and all of its cases."""
    ceilings = [c for c in run.ceilings if c.target in (target_name, target) and _positive(c.value)]
    bandwidths = tuple(c for c in ceilings if c.quantity == BANDWIDTH)
    peaks = tuple(sorted((c for c in ceilings if c.quantity == COMPUTE), key=lambda c: -c.value))
    points: list[Point] = []
    unplotted: list[Unplotted] = []
    for case in run.cases:
        if case.target_name == target_name:
            found = point(case, bandwidths, peaks, ceilings)
            if isinstance(found, Point):
                points.append(found)
            else:
                unplotted.append(found)
    used = [point.compute for point in points if point.compute is not None]
    drawn = tuple(peak for peak in peaks if peak in used) or peaks
    seen = {LEVELS[level.level][0] for point in points for level in point.levels}
    above = tuple(c for c in ceilings if c.quantity in seen and c.quantity != BANDWIDTH)
    others = tuple(c for c in ceilings if c not in bandwidths and c not in drawn and c not in above)
    ridges = tuple(Ridge(b, p, ridge_intensity(b.value, p.value)) for b in bandwidths for p in drawn)
    ridges += tuple(Ridge(b, p, ridge_intensity(b.value, p.value)) for b in above for p in drawn)
    return Roofline(target_name, target, bandwidths, drawn, others, ridges, tuple(points), tuple(unplotted), above)


def ridge_intensity(bytes_per_s: float, flops_per_s: float) -> float:
    """Intensity in FLOP/byte at which ``bytes_per_s * intensity == flops_per_s``."""
    return flops_per_s / bytes_per_s


def attainable(intensity: float, bytes_per_s: float, flops_per_s: float) -> float:
    """``min(peak, intensity * bandwidth)`` in FLOP/s."""
    return min(flops_per_s, intensity * bytes_per_s)


def level_points(
    case: CaseResult, flops: float, time_ns: float | None, ceilings: Sequence[Ceiling]
) -> list[LevelPoint]:
    """The points of a case at each level whose traffic is known, measured before simulated; device memory first."""
    figures, found = case_figures(case), []
    for level, (quantity, parts) in LEVELS.items():
        for kind in ("measured", "simulated"):
            values = [figures.of_case(metric, kind) for metric, _ in parts]
            moved = sum(figure.value * size for figure, (_, size) in zip(values, parts) if figure is not None)
            if any(figure is None for figure in values) or not _positive(moved):
                continue
            ceiling = _preferred([c for c in ceilings if c.quantity == quantity])
            share = moved / (ceiling.value * time_ns / 1e9) if ceiling is not None and time_ns else None
            found.append(LevelPoint(level, moved, flops / moved, kind, share))
            break
    return found


def point(
    case: CaseResult, bandwidths: Sequence[Ceiling], peaks: Sequence[Ceiling], ceilings: Sequence[Ceiling] = ()
) -> Point | Unplotted:
    """The place of a case, or the reason why it has none."""
    metadata = case.metadata
    if not metadata:
        failed = "" if case.status in ("ok", "not_run") else f"{case.status}: "
        return Unplotted(case, f"{failed}no binary of ours, so no FLOPs or bytes are known")
    flops_by_type = {key: value for key, value in (metadata.get("flops") or {}).items() if value}
    flops, bytes_min = float(sum(flops_by_type.values())), metadata.get("bytes_min")
    if not flops_by_type or not _positive(flops):
        return Unplotted(case, "no floating-point operations: intensity 0 has no place on a logarithmic axis")
    if bytes_min is None or not _positive(bytes_min):
        return Unplotted(case, "the least number of bytes is not known")
    time_ns = case.timing.median_ns if case.timing is not None and case.timing.samples_ns else None
    if time_ns is None and case.status not in ("ok", "not_run"):
        return Unplotted(case, f"{case.status}: {_first_line(case.reason) or 'no measured time'}")
    if time_ns is not None and not _positive(time_ns):
        return Unplotted(case, f"the measured time is {time_ns} ns, which cannot be")
    intensity = flops / bytes_min
    flops_type = max(flops_by_type, key=lambda key: flops_by_type[key])
    bandwidth, compute = _preferred(bandwidths), compute_ceiling(metadata, flops_type, peaks, case.assembly)
    roof = bound = None
    if bandwidth is not None and compute is not None:
        roof = attainable(intensity, bandwidth.value, compute.value)
        bound = "compute" if intensity >= ridge_intensity(bandwidth.value, compute.value) else "memory"
    achieved = None if time_ns is None else flops / time_ns * 1e9
    if achieved is None and roof is None:
        return Unplotted(case, f"not run, and no ceilings to predict from; intensity {intensity:.4g} FLOP/byte")
    share = achieved / roof if achieved is not None and roof is not None else None
    return Point(
        case=case,
        flops=flops,
        flops_type=flops_type,
        bytes_min=float(bytes_min),
        intensity=intensity,
        time_ns=time_ns,
        achieved=achieved,
        attainable=roof,
        share=share,
        bound=bound,
        bandwidth=bandwidth,
        compute=compute,
        levels=tuple(level_points(case, flops, time_ns, ceilings)),
    )


def compute_ceiling(
    metadata: dict[str, Any], flops_type: str, peaks: Sequence[Ceiling], assembly: str = ""
) -> Ceiling | None:
    """The peak a kernel is held to: matrix units when its listing uses them, else vector units, in its own type.

    Where that ceiling is not known: another matrix ceiling (an accumulator's type names the work, the operands' type the
    unit), then the vector units in the same type, then in float32 for types narrower than it, which are widened.  None for
    anything else; the caller sees from ``unit_class`` which one it got.  Where warp-wide products (HMMA) are slower than
    those of a warp group (HGMMA), as on Hopper, a kernel whose ``assembly`` has none of the latter is held to their rate.
    """
    total = (metadata.get("instructions") or {}).get("total") or {}
    names = [flops_type] if "." in flops_type else []
    kind = flops_type.rpartition(".")[2]
    if total.get("matrix"):
        slower = [f"matrix.{kind}.mma_sync"] if "HGMMA" not in assembly and "QGMMA" not in assembly else []
        names += [*slower, f"matrix.{kind}", "matrix.float16"]
    names.append(f"vector.{kind}")
    if kind != "float64":
        names.append("vector.float32")
    for name in names:
        found = _preferred([peak for peak in peaks if peak.unit_class == name])
        if found is not None:
            return found
    return None


def ceiling_provenance(point: Point) -> Provenance:
    """Provenance of an attainable figure: derived from the two ceilings."""
    bandwidth, compute = point.bandwidth, point.compute
    if bandwidth is None or compute is None:
        return Provenance("derived", "roofline", "", "no ceilings")
    kinds = f"{compute.unit_class} ({compute.provenance.kind}), {bandwidth.quantity} ({bandwidth.provenance.kind})"
    return Provenance("derived", "roofline", "", f"min(peak, intensity x bandwidth) from {kinds}")


def _preferred(ceilings: Sequence[Ceiling]) -> Ceiling | None:
    """A measured ceiling before a datasheet one: what code has reached before what none does."""
    ordered = sorted(ceilings, key=lambda c: (c.provenance.kind != "measured", -c.value))
    return ordered[0] if ordered else None


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
