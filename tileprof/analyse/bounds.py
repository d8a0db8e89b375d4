"""What a case must take at least, part by part: the times below which no part of the machine can do its share of the work.

A part's bound is the work it is given over the rate at which it works, all units busy.  The largest is the case's own bound; how
far the measured time is above it, and what the bound would be without a fault, is what the diagnosis estimates gains from.  Sources
of the formulas stand at each part.  What is not known gives no bound; it is not zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import tilelang_min as tilelang
from tileprof.analyse.figures import CaseFigures, Figure, case_figures
from tileprof.analyse.roofline import COMPUTE, compute_ceiling
from tileprof.store.records import CaseResult, Ceiling

SECTOR_BYTES = 32
"""Unit of the metric ``global.sectors``."""


@dataclass(frozen=True)
class Facts:
    """A case with everything that the rules ask for.

    Times in ns.  ``bounds`` maps a part (``dram``, ``shared``, ``l1``, ``compute``, ``issue``) to its bound; ``use`` is the
    share of the units that have work on average; ``time_ns`` is measured, or else predicted as the largest bound over ``use``
    (``measured`` says which), or None where neither is known.
    """

    case: CaseResult
    figures: CaseFigures
    target: Any
    device: Any
    bounds: dict[str, float]
    compute: Ceiling | None
    use: float | None
    time_ns: float | None
    measured: bool

    @property
    def metadata(self) -> dict[str, Any]:
        """The compiler's static facts; empty where the case was not compiled."""
        return self.case.metadata or {}

    @property
    def bound(self) -> float | None:
        """The largest bound."""
        return max(self.bounds.values(), default=None)

    def others(self, part: str) -> float:
        """The largest bound but that of ``part``, 0 where there is none."""
        return max((value for name, value in self.bounds.items() if name != part), default=0.0)

    def saving(self, part: str, less_ns: float) -> float | None:
        """Share of the time that is saved when the bound of a part shrinks by ``less_ns``.

        Measured: what the part takes away, down to where the next part is the limit.  Predicted: the same of the prediction.
        None where no time is known.
        """
        if not self.time_ns or self.time_ns <= 0:
            return None
        before = self.bounds.get(part, 0.0)
        use = 1.0 if self.measured or not self.use else self.use
        floor = max(self.others(part), before - less_ns) / use
        saved = min(less_ns / use, max(0.0, self.time_ns - floor))
        return max(0.0, min(1.0, saved / self.time_ns))

    @property
    def launch_ns(self) -> float:
        """What a launch takes that does next to nothing, 0 where nobody measured it on this device."""
        return float(getattr(self.device, "launch_ns", None) or 0.0)

    @property
    def floor_ns(self) -> float:
        """Below this no change of this kernel's schedule gets: its largest bound, and a launch."""
        return max(self.bound or 0.0, self.launch_ns)

    def gain_at(self, after_ns: float) -> float | None:
        """Share of the time that is saved if the kernel then takes ``after_ns``, at least a launch; None without a time.

        A prediction of the time has no launch in it, which is added.
        """
        if not self.time_ns or self.time_ns <= 0:
            return None
        before = self.time_ns if self.measured else self.time_ns + self.launch_ns
        return max(0.0, 1 - max(after_ns, self.launch_ns) / before)

    def figure(self, metric: str) -> Figure | None:
        """A figure of the whole kernel, from where it is most trusted."""
        found = self.figures.best_of_case(metric)
        return None if found is None else found[0]

    def value(self, metric: str) -> float | None:
        """The value of :meth:`figure`."""
        figure = self.figure(metric)
        return None if figure is None else figure.value

    def stall_share(self, *reasons: str) -> float | None:
        """Share of the warp samples that waited for these reasons; None without samples."""
        whole = self.figures.of_case("stall.samples", "measured")
        if whole is None or whole.value <= 0:
            return None
        found = [self.figures.of_case(f"stall.{reason}", "measured") for reason in reasons]
        return sum(figure.value for figure in found if figure is not None) / whole.value

    def waits_of(self, operation: int, *reasons: str) -> float | None:
        """Warp samples of one operation that waited for these reasons, as a share of all samples; None without samples."""
        whole = self.figures.of_case("stall.samples", "measured")
        if whole is None or whole.value <= 0:
            return None
        found = [self.figures.of_operation(f"stall.{reason}", "measured", operation) for reason in reasons]
        return sum(figure.value for figure in found if figure is not None) / whole.value

    def in_loop(self, operation: int | None) -> bool:
        """Whether the operation is, or stands in, a loop of the kernel."""
        known = {record["id"]: record for record in self.case.operations}
        record = known.get(operation)
        while record is not None and record["kind"] != "loop":
            record = known.get(record.get("parent"))
        return record is not None

    def parameter(self, name: str) -> Any:
        """A tile parameter, argument or extent of the case by name, or None."""
        return self.case.parameters.get(name)


@cache
def _resolve(target: str) -> Any:
    try:
        return tilelang.targets.resolve(target)
    except Exception:  # a target that this version does not know has no facts, and no diagnosis
        return None


def facts_of(case: CaseResult, ceilings: Sequence[Ceiling]) -> Facts:
    """The facts of a case under the ceilings of its target."""
    target = _resolve(case.target)
    own = [
        c for c in ceilings if c.target in (case.target, case.target_name) and math.isfinite(c.value) and c.value > 0
    ]
    figures = case_figures(case)
    device = _device(target, own)
    compute = _compute(case, own)
    bounds = _bounds(case, figures, target, device, own, compute)
    use = _use(case, figures, device)
    measured = case.timing is not None and bool(case.timing.samples_ns) and case.timing.median_ns > 0
    time_ns: float | None = None
    if measured and case.timing is not None:
        time_ns = case.timing.median_ns
    elif bounds:
        time_ns = max(bounds.values()) / (use or 1.0)
    return Facts(case, figures, target, device, bounds, compute, use, time_ns, measured)


def _device(target: Any, ceilings: Sequence[Ceiling]) -> Any:
    """The product whose ceilings the run has, else the first one of the architecture; None for a CPU."""
    if target is None or not target.devices:
        return None
    named = {ceiling.provenance.tool for ceiling in ceilings}
    return next((device for device in target.devices if device.name in named), target.devices[0])


def _compute(case: CaseResult, ceilings: Sequence[Ceiling]) -> Ceiling | None:
    flops = {key: value for key, value in ((case.metadata or {}).get("flops") or {}).items() if value}
    if not flops or case.metadata is None:
        return None
    peaks = [c for c in ceilings if c.quantity == COMPUTE]
    return compute_ceiling(case.metadata, max(flops, key=lambda key: flops[key]), peaks, case.assembly)


def _bounds(
    case: CaseResult,
    figures: CaseFigures,
    target: Any,
    device: Any,
    ceilings: Sequence[Ceiling],
    compute: Ceiling | None,
) -> dict[str, float]:
    metadata = case.metadata or {}
    bounds: dict[str, float | None] = {}
    dram = next((c.value for c in ceilings if c.quantity == "dram.bytes_per_s"), None)
    moved = _sum(figures, "measured", "dram.read_bytes", "dram.write_bytes")
    bounds["dram"] = _over(moved if moved else metadata.get("bytes_min"), dram)
    flops = sum((metadata.get("flops") or {}).values())
    bounds["compute"] = _over(flops or None, compute.value if compute else None)
    if device is not None:
        clock = figures.of_case("clock.hz", "measured")
        hertz = clock.value if clock is not None and clock.value > 0 else float(device.clock_hz)
        # One transaction a clock and unit: a bank serves one word a pass (targets/memory.py and its sources).
        bounds["shared"] = _over(_either(figures, "shared.transactions"), device.units * hertz)
        if case.target.startswith("cuda"):
            # L1 and shared memory are one data path (CUDA C++ Programming Guide, compute capability 7.x and later).
            path = device.units * hertz * device.shared_bytes_per_clock_per_unit
            sectors = _either(figures, "global.sectors")
            bounds["l1"] = _over(None if sectors is None else sectors * SECTOR_BYTES, path)
            # Each partition of a unit issues one instruction of a warp a clock.
            executed, partitions = figures.of_case("executed.instructions", "measured"), target.registers.partitions
            if executed is not None and partitions:
                bounds["issue"] = _over(executed.value, device.units * partitions * hertz)
    return {name: value * 1e9 for name, value in bounds.items() if value is not None and math.isfinite(value)}


def _use(case: CaseResult, figures: CaseFigures, device: Any) -> float | None:
    """Share of the units with work: blocks are dealt out evenly, and the fullest unit decides."""
    blocks = figures.of_case("launch.blocks", "static") or figures.of_case("launch.blocks", "measured")
    if device is None or blocks is None or blocks.value < 1:
        return None
    each = blocks.value / device.units
    return float(each / math.ceil(each))


def _either(figures: CaseFigures, metric: str) -> float | None:
    for kind in ("measured", "simulated"):
        found = figures.of_case(metric, kind)
        if found is not None:
            return found.value
    return None


def _sum(figures: CaseFigures, kind: str, *metrics: str) -> float | None:
    found = [figures.of_case(metric, kind) for metric in metrics]
    return None if any(figure is None for figure in found) else sum(figure.value for figure in found if figure)


def _over(work: float | None, rate: float | None) -> float | None:
    return None if not work or not rate or work < 0 else work / rate
