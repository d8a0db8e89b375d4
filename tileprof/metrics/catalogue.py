"""Canonical metrics: name, unit, meaning, possible range, and whether less is better.

A name is ``group.detail``.  Four groups are families whose details are listed below: ``instructions.<class>`` (static),
``stall.<reason>``, ``flop.<type>`` and ``registers.<kind>``.  Figures are per launch unless the meaning says otherwise.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass

from tileprof.errors import UsageError
from tileprof.store.records import Metric, Provenance


class UnknownMetric(UsageError):
    """A metric that the catalogue does not have; the remedy names the nearest one."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What a metric means.

    ``better`` is ``lower``, ``higher`` or ``""`` where neither is.  ``maximum`` is the largest value that can be (None: no
    limit); the smallest is 0 for every metric.
    """

    name: str
    unit: str
    meaning: str
    better: str = ""
    maximum: float | None = None


INSTRUCTION_CLASSES = {
    "matrix": "matrix products (MMA, MFMA)",
    "fma": "fused multiply-adds",
    "float": "other floating-point arithmetic",
    "integer": "integer, address and logic arithmetic",
    "convert": "conversions between types",
    "special": "transcendental functions and reciprocals",
    "move": "moves, permutes, shuffles and selects",
    "global_load": "loads from global memory",
    "global_store": "stores to global memory",
    "shared_load": "loads from shared memory",
    "shared_store": "stores to shared memory",
    "ldmatrix": "loads of 8x8 matrices from shared memory",
    "async_copy": "asynchronous copies, their commits and waits",
    "local_load": "loads from local or scratch memory: spills and indexed arrays",
    "local_store": "stores to local or scratch memory: spills and indexed arrays",
    "barrier": "barriers of a block",
    "wait": "waits for outstanding memory operations",
    "branch": "branches",
    "constant_load": "loads of constants and kernel arguments",
    "other": "everything else",
}
"""Instruction classes of listings, the same on every target."""

STALL_REASONS = {
    "barrier": "waiting for the other warps of the block at a barrier",
    "branch_resolving": "waiting for a branch target",
    "dispatch_stall": "the dispatcher held the instruction back",
    "drain": "waiting for memory stores to drain before exit",
    "gmma": "waiting for an asynchronous warpgroup matrix product",
    "imc_miss": "waiting for the immediate constant cache",
    "lg_throttle": "the queue for local and global memory instructions is full",
    "long_scoreboard": "waiting for global, local or texture memory",
    "math_pipe_throttle": "waiting for an arithmetic pipe",
    "membar": "waiting at a memory barrier",
    "mio_throttle": "the queue for shared memory and special instructions is full",
    "misc": "another reason",
    "no_instruction": "waiting for an instruction to be fetched",
    "not_selected": "ready, but another warp was chosen",
    "selected": "issuing",
    "short_scoreboard": "waiting for shared memory or a special function",
    "sleeping": "all threads of the warp sleep",
    "tex_throttle": "the queue for texture instructions is full",
    "wait": "waiting a fixed number of cycles for an earlier instruction",
    "warpgroup_arrive": "waiting for the warps of a warpgroup",
}
"""Reasons of stall samples (NVIDIA, Volta to Hopper)."""

FLOP_TYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "tfloat32",
    "float8_e4m3",
    "float8_e5m2",
    "int8",
    "int32",
    "uint32",
)
"""Types by which useful operations are counted."""

_TRANSACTIONS = "passes that shared-memory accesses take (wavefronts on NVIDIA, LDS cycles on AMD)"

_SINGLES = (
    MetricInfo("time.ns", "ns", "time of one launch without a profiler", "lower"),
    MetricInfo("time.profiled_ns", "ns", "time of one launch under a profiler; differs from time.ns", "lower"),
    MetricInfo("clock.hz", "Hz", "mean clock of the units during the launch"),
    MetricInfo("dram.read_bytes", "bytes", "bytes read from device memory", "lower"),
    MetricInfo("dram.write_bytes", "bytes", "bytes written to device memory", "lower"),
    MetricInfo("l2.bytes", "bytes", "bytes moved at the second-level cache", "lower"),
    MetricInfo("l2.hit_rate", "ratio", "share of sector look-ups that hit the second-level cache", "higher", 1.0),
    MetricInfo("l1.bytes", "bytes", "bytes moved at the first-level cache", "lower"),
    MetricInfo("l1.hit_rate", "ratio", "share of sector look-ups that hit the first-level cache", "higher", 1.0),
    MetricInfo("shared.requests", "requests", "warp-wide shared-memory accesses executed"),
    MetricInfo("shared.transactions", "transactions", _TRANSACTIONS, "lower"),
    MetricInfo("shared.transactions_ideal", "transactions", f"{_TRANSACTIONS}, had there been no bank conflicts"),
    MetricInfo("shared.conflicts", "transactions", "transactions above the ideal, caused by bank conflicts", "lower"),
    MetricInfo("shared.ways", "ways", "worst number of passes that one phase of an access takes; 1 is ideal", "lower"),
    MetricInfo("shared.bytes", "bytes", "bytes that shared-memory accesses ask for"),
    MetricInfo("global.requests", "requests", "warp-wide global-memory accesses executed"),
    MetricInfo("global.sectors", "sectors", "32-byte sectors that global accesses touch, before any cache", "lower"),
    MetricInfo("global.sectors_ideal", "sectors", "sectors that the same bytes would take if they were contiguous"),
    MetricInfo("global.bytes", "bytes", "bytes that global accesses ask for"),
    MetricInfo("executed.instructions", "instructions", "instructions executed, counted once a warp"),
    MetricInfo("stall.samples", "samples", "warp samples taken, whatever the warp was doing"),
    MetricInfo(
        "occupancy.theoretical", "ratio", "resident warps that resources allow, of the most a unit holds", "", 1.0
    ),
    MetricInfo(
        "occupancy.achieved", "ratio", "mean of the warps resident while active, of the most a unit holds", "", 1.0
    ),
    MetricInfo("occupancy.blocks_per_unit", "blocks", "blocks that fit on a unit at once"),
    MetricInfo("registers.per_thread", "registers", "registers of one thread", "lower"),
    MetricInfo("registers.vgpr", "registers", "vector registers of one thread, accumulators included (AMD)", "lower"),
    MetricInfo("registers.agpr", "registers", "accumulator registers of one thread (AMD)"),
    MetricInfo("registers.sgpr", "registers", "scalar registers of one wavefront (AMD)"),
    MetricInfo("spill.store_bytes", "bytes", "bytes that one thread's static code spills", "lower"),
    MetricInfo("spill.load_bytes", "bytes", "bytes that one thread's static code loads back", "lower"),
    MetricInfo("spill.vgpr", "registers", "vector registers that were spilled (AMD)", "lower"),
    MetricInfo("spill.sgpr", "registers", "scalar registers that were spilled (AMD)", "lower"),
    MetricInfo("scratch.bytes", "bytes", "stack frame or private memory of one thread", "lower"),
    MetricInfo("shared.static_bytes", "bytes", "shared memory of one block, declared statically"),
    MetricInfo("shared.dynamic_bytes", "bytes", "shared memory of one block, asked for at launch"),
    MetricInfo("launch.threads_per_block", "threads", "threads of one block (tasks on a CPU)"),
    MetricInfo("launch.blocks", "blocks", "blocks of the grid"),
    MetricInfo("code.bytes", "bytes", "machine code of the kernel", "lower"),
    MetricInfo("compile.seconds", "s", "time to compile, all steps", "lower"),
    MetricInfo(
        "listing.attributed", "ratio", "share of static instructions that belong to a tile operation", "higher", 1.0
    ),
    MetricInfo("bytes.min", "bytes", "least bytes a launch must move: every operand once"),
)


def _catalogue() -> dict[str, MetricInfo]:
    entries = list(_SINGLES)
    entries += [
        MetricInfo(f"instructions.{name}", "instructions", f"static instructions: {meaning}")
        for name, meaning in INSTRUCTION_CLASSES.items()
    ]
    entries += [
        MetricInfo(f"stall.{name}", "samples", f"warp samples: {meaning}", "" if name == "selected" else "lower")
        for name, meaning in STALL_REASONS.items()
    ]
    entries += [
        MetricInfo(f"flop.{name}", "FLOP", f"useful {name} operations; a fused multiply-add is 2, a transcendental 1")
        for name in FLOP_TYPES
    ]
    return {entry.name: entry for entry in entries}


METRICS: dict[str, MetricInfo] = _catalogue()
"""Every canonical metric by name."""


def names(group: str | None = None) -> tuple[str, ...]:
    """All canonical names, or those of one group (``names("stall")``)."""
    return tuple(name for name in METRICS if group is None or name.split(".")[0] == group)


def lookup(name: str) -> MetricInfo:
    """The metric of a canonical name; raises :class:`UnknownMetric` with the nearest names."""
    found = METRICS.get(name)
    if found is None:
        raise UnknownMetric(f"unknown metric {name!r}", remedy=_remedy(name, METRICS))
    return found


def _remedy(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if not near:
        near = [other for other in known if other.split(".")[0] == name.split(".")[0]][:6]
    if near:
        return "did you mean " + " or ".join(near) + "?"
    return "groups are " + ", ".join(dict.fromkeys(other.split(".")[0] for other in known))


def make(
    name: str,
    value: float | None,
    provenance: Provenance,
    *,
    operation: int | None = None,
    buffer: str | None = None,
    access: str | None = None,
    launch: int | None = None,
    flag: str | None = None,
) -> Metric | None:
    """A record with the catalogue's unit; None where there is no value, since what is missing is missing.

    None and NaN are no values.  A value that cannot be (negative, infinite, above the maximum) is kept and flagged
    ``out of range``, unless the caller has a flag of its own.
    """
    info = lookup(name)
    if value is None or math.isnan(value):
        return None
    if flag is None and (value < 0 or math.isinf(value) or (info.maximum is not None and value > info.maximum)):
        flag = "out of range"
    return Metric(name, value, info.unit, provenance, operation, buffer, access, launch, flag)
