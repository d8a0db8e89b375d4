"""How long a launch should take, from what the simulator counts and what the device can do; nothing is run.

Each part of the machine (matrix units, shared memory, issue, L2, device memory, loads in flight) needs a time for its share of
the work; work that is not spread evenly over the units counts as at the fullest unit.  The parts overlap, though not wholly:
the prediction is the 4-norm of their times, a little more than the largest, which is what a roofline says.  It orders
configurations of one kernel; it is no measurement.  ``docs/tuning.md`` says how well it did where times are known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelang_min.targets import Device, Target
from tilelang_min.targets.peaks import flops_per_second

if TYPE_CHECKING:
    from tilelang_min.driver.simulated import Analysis, SimulatedKernel

SECTOR_BYTES = 32
DRAM_SHARE = 0.85
"""Of the datasheet's bandwidth; a copy reaches 4.05 of 4.8 TB/s on an H200 (benchmarks/results/2026-11-30-h200-ceilings.json)."""

LATENCY_S = 800e-9
"""From a load to its data in device memory, the queue included: what loads in flight have to cover."""

THREAD_BYTES = 64
"""In flight for each thread where no tile is filled ahead: four loads of 16 bytes."""

OVERLAP = 4
"""Exponent of the norm that joins the times of the parts: 1 would be one after another, infinity all at once."""

UNREAD = 1.2
"""How much longer products by ``mma.sync`` take whose operands are not read a step ahead: 1.17 to 1.37 (docs/mma-sync.md)."""

SURE = 0.9
"""Of the work's time at the datasheet's rate and the highest clock: a device may be clocked above its datasheet."""


@dataclass(frozen=True)
class Prediction:
    """Times of one launch in ns.

    ``parts``: what each part needs, work that is spread unevenly counted at the fullest unit; ``time_ns`` is their 4-norm and a
    launch, ``limit`` names the largest.  ``bound_ns`` is a time that cannot be undercut, all units busy (``bound_by`` names the
    part), None where counts depend on data.  ``device`` is the product whose rates were taken.
    """

    time_ns: float
    limit: str
    parts: dict[str, float]
    bound_ns: float | None
    bound_by: str | None
    device: str


def predict(kernel: SimulatedKernel, sizes: Mapping[str, int], device: str | None) -> Prediction | None:
    """The prediction for ``device`` (a name in which that of a known product stands; default: the target's first product).

    None on a CPU, of which no rates are known.
    """
    product = product_of(kernel.target, device)
    if product is None:
        return None
    analysis = kernel.analyse(sizes=sizes) if kernel.sizes else kernel.analyse()
    return _predicted(kernel, kernel.target, product, analysis, sizes)


def product_of(target: Target, name: str | None) -> Device | None:
    """The product that a device's name speaks of: ``NVIDIA H200`` of ``H200 SXM``; else the target's first one."""
    for product in target.devices:
        if name is not None and product.name.split()[0] in name.replace("-", " ").split():
            return product
    return target.devices[0] if target.devices else None


def _predicted(
    kernel: SimulatedKernel, target: Target, product: Device, analysis: Analysis, sizes: Mapping[str, int]
) -> Prediction:
    metadata, record = kernel.metadata_for(sizes), kernel.bundle.record
    blocks, units = math.prod(kernel.grid_for(sizes)), product.units
    matrix_s, matrix_flops = _matrix(record, analysis, target, product)
    shared, known = _shared_cycles(analysis, product)
    loaded, moved = _global_bytes(analysis)
    executed = sum(number for work in analysis.executed.values() for number in work.values())
    cycles_s = units * float(product.clock_hz)
    uneven = _uneven(record, blocks, units)
    waits = target.kind == "cuda" and not _reads_ahead(record)
    per_unit = {
        "matrix": matrix_s * (UNREAD if waits else 1.0),
        "vector": _vector(metadata.flops, matrix_flops, product),
        "shared": shared / cycles_s,
        "issue": executed / (target.registers.partitions or 1) / cycles_s,
    }
    parts = {name: seconds * uneven for name, seconds in per_unit.items()}
    if product.l2_bytes_per_s:
        parts["l2"] = moved / product.l2_bytes_per_s * max(1.0, uneven)
    parts["dram"] = (metadata.bytes_min or 0) / (DRAM_SHARE * product.dram_bytes_per_s)
    ahead = _in_flight(record, metadata.max_blocks_per_unit or 1, blocks, units)
    parts["loads in flight"] = loaded * LATENCY_S / (min(blocks, units) * ahead) if blocks else 0.0
    spilled = (metadata.spill_store_bytes or 0) + (metadata.spill_load_bytes or 0)
    if spilled:  # once a thread at least, by way of the first cache
        bytes_spilled = spilled * blocks * metadata.threads_per_block
        parts["spills"] = bytes_spilled / (cycles_s * product.shared_bytes_per_clock_per_unit) * uneven
    times = {name: seconds * 1e9 for name, seconds in parts.items() if seconds > 0}
    limit = max(times, key=lambda name: times[name], default="launch")
    rated = product.clock_hz_by_rate.get("matrix.float16", product.clock_hz)
    sure = {"matrix": matrix_s * rated / product.clock_hz, "shared": known / cycles_s}
    bound_by = max(sure, key=lambda name: sure[name])
    bound = None if analysis.sampled else sure[bound_by] * 1e9 * SURE
    launch = float(product.launch_ns or 0)
    return Prediction(
        time_ns=float(sum(each**OVERLAP for each in times.values()) ** (1 / OVERLAP)) + launch,
        limit=limit,
        parts=times,
        bound_ns=bound or None,
        bound_by=bound_by if bound else None,
        device=product.name,
    )


def _matrix(record: dict[str, Any], analysis: Analysis, target: Target, product: Device) -> tuple[float, float]:
    """Seconds that the matrix instructions executed take with all units busy, and their operations; padding counts."""
    seconds, flops = 0.0, 0.0
    for each in record["decisions"]["products"]:
        shape = re.search(r"m?(\d+)[xn](\d+)[xk](\d+)", each["instruction"] or "")
        count = analysis.executed.get(each["operation"], {}).get("matrix", 0)
        if shape is None or not count:
            continue
        warps = 4 if each["kind"] == "wgmma" else 1  # that execute an instruction together
        work = 2.0 * math.prod(map(int, shape.groups())) * count / warps
        rate = _matrix_rate(product, each["types"][0], each["kind"], target)
        flops += work
        if rate is not None:
            seconds += work / rate
    return seconds, flops


def _reads_ahead(record: dict[str, Any]) -> bool:
    """Whether products find their operands in registers, or take them from shared memory themselves."""
    decided = record["decisions"]
    notes = [each["operands"] or "" for each in decided["pipelines"]]
    return any("are read a step ahead" in note for note in notes) or any(
        each["kind"] == "wgmma" for each in decided["products"]
    )


def _matrix_rate(product: Device, dtype: str, kind: str, target: Target) -> float | None:
    """Operations a second, at the clock that the datasheet gives the rate for."""
    name = dtype.partition("_")[0] if dtype.startswith("float8") else "int8" if dtype == "uint8" else dtype
    name = {"float32": "tf32" if target.kind == "cuda" else "float32"}.get(name, name)
    full = flops_per_second(product, f"matrix.{name}")
    rates = product.flops_per_clock_per_unit
    if (
        full is not None and kind != "wgmma" and "matrix.float16.mma_sync" in rates
    ):  # Hopper: two thirds, whatever the type
        return full * rates["matrix.float16.mma_sync"] / rates["matrix.float16"]
    return full


def _vector(flops: Mapping[str, int] | None, matrix_flops: float, product: Device) -> float:
    """Seconds of the arithmetic that no matrix instruction does."""
    total = float(sum((flops or {}).values()))
    rest = total - matrix_flops
    if not flops or rest <= 0:
        return 0.0
    most = max(flops, key=lambda name: flops[name])
    rate = flops_per_second(product, f"vector.{most}") or flops_per_second(product, "vector.float32")
    return rest / rate if rate else 0.0


def _shared_cycles(analysis: Analysis, product: Device) -> tuple[float, float]:
    """Clocks of one unit's shared memory for the whole launch, and of those the ones that a known rule gives.

    A transaction a clock; what bulk copies and warp group products move at the memory's full width.
    """
    total, known = 0.0, 0.0
    for count in analysis.counts:
        if count.space != "shared":
            continue
        if count.transactions is None:
            total += count.bytes / product.shared_bytes_per_clock_per_unit
        else:
            total += count.transactions
            known += count.transactions
    return total, known


def _global_bytes(analysis: Analysis) -> tuple[float, float]:
    """Bytes that are loaded from global memory, and loaded or stored, in whole sectors."""
    loaded = moved = 0.0
    for count in analysis.counts:
        if count.space == "global":
            size = count.bytes if count.sectors is None else max(count.bytes, count.sectors * SECTOR_BYTES)
            moved += size
            loaded += 0 if "store" in count.access else size
    return loaded, moved


def _uneven(record: dict[str, Any], blocks: int, units: int) -> float:
    """The fullest unit's share of the work over an even share.  Persistent blocks deal out tiles in place of blocks."""
    if blocks < 1:
        return 1.0
    if any("persistent" in line for line in record["decisions"]["warp_groups"]):
        grid = re.search(r"grid \((\d+), (\d+), (\d+)\)", record["decisions"]["tile_program"])
        if grid is not None:
            tiles = math.prod(map(int, grid.groups()))
            each = max(1.0, tiles / blocks)
            return math.ceil(each) / each * units / min(blocks, units)
    each = blocks / units
    return math.ceil(each) / each


def _in_flight(record: dict[str, Any], resident: int, blocks: int, units: int) -> float:
    """Bytes that a unit has asked for and not got: the stages that run ahead, or a few loads a thread."""
    ahead = sum(
        tile["bytes"] * (tile["stages"] - 1) / tile["stages"] for tile in record["shared"] if tile["stages"] > 1
    )
    together = min(resident, -(-blocks // units))
    return float(together * (ahead or record["threads"] * THREAD_BYTES))
