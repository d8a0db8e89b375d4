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

AMD_STALL_REASONS = {
    "alu_dependency": "waiting for the result of an earlier arithmetic instruction",
    "arbiter_stall": "chosen, but the execution unit held the instruction back",
    "internal_instruction": "busy with an instruction that the hardware handles itself",
    "waitcnt": "waiting for outstanding memory operations (s_waitcnt)",
}
"""Further reasons of stall samples on AMD, beside those of above that it has, too."""

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
    MetricInfo("clock.memory_hz", "Hz", "mean clock of device memory during the launch"),
    MetricInfo("device.power", "W", "mean power of the device while the case was timed"),
    MetricInfo("device.temperature", "°C", "temperature of the device when the timing ended"),
    MetricInfo(
        "cycles.begin", "cycles", "when an operation of one block began, from the block's start (instrumented build)"
    ),
    MetricInfo(
        "cycles.end", "cycles", "when an operation of one block ended, from the block's start (instrumented build)"
    ),
    MetricInfo("cycles.elapsed", "cycles", "cycles of the units' clock from first to last work of the launch", "lower"),
    MetricInfo(
        "cycles.sum", "cycles", "cycles of all warps (wavefronts; blocks of a CPU): in an operation, or start to end"
    ),
    MetricInfo("cycles.run", "cycles", "of cycles.sum: in the operation's own work, with what it waits for on the way"),
    MetricInfo("cycles.issue", "cycles", "of cycles.sum: starting work that goes on by itself"),
    MetricInfo(
        "cycles.wait", "cycles", "of cycles.sum: waiting for such work, at a barrier, or for another role", "lower"
    ),
    MetricInfo("cycles.count", "executions", "how often warps (wavefronts, blocks of a CPU) came to the operation"),
    MetricInfo(
        "cycles.longest", "cycles", "cycles of the longest warp (wavefront, block of a CPU), start to end", "lower"
    ),
    MetricInfo("cycles.slowdown", "ratio", "time of the build with clock reads, of the plain one's", "lower"),
    MetricInfo("dram.read_bytes", "bytes", "bytes read from device memory", "lower"),
    MetricInfo("dram.write_bytes", "bytes", "bytes written to device memory", "lower"),
    MetricInfo(
        "fabric.read_bytes",
        "bytes",
        "bytes read past the second-level cache: memory, memory-side cache, remote",
        "lower",
    ),
    MetricInfo(
        "fabric.write_bytes",
        "bytes",
        "bytes written past the second-level cache: memory, memory-side cache, remote",
        "lower",
    ),
    MetricInfo("l2.bytes", "bytes", "bytes moved at the second-level cache", "lower"),
    MetricInfo("l2.read_bytes", "bytes", "bytes that first-level caches read from the second level", "lower"),
    MetricInfo("l2.write_bytes", "bytes", "bytes that first-level caches write to the second level", "lower"),
    MetricInfo("l2.hit_rate", "ratio", "share of sector look-ups that hit the second-level cache", "higher", 1.0),
    MetricInfo("l1.bytes", "bytes", "bytes moved at the first-level cache", "lower"),
    MetricInfo("l1.hit_rate", "ratio", "share of sector look-ups that hit the first-level cache", "higher", 1.0),
    MetricInfo(
        "l1.line_bytes", "bytes", "look-ups of the vector first-level cache times its line: an upper bound of bytes"
    ),
    MetricInfo("l1.instruction_hit_rate", "ratio", "share of look-ups that hit the instruction cache", "higher", 1.0),
    MetricInfo("l1.scalar_hit_rate", "ratio", "share of look-ups that hit the scalar cache", "higher", 1.0),
    MetricInfo("shared.requests", "requests", "warp-wide shared-memory accesses executed"),
    MetricInfo("shared.transactions", "transactions", _TRANSACTIONS, "lower"),
    MetricInfo("shared.transactions_ideal", "transactions", f"{_TRANSACTIONS}, had there been no bank conflicts"),
    MetricInfo("shared.conflicts", "transactions", "transactions above the ideal, caused by bank conflicts", "lower"),
    MetricInfo("shared.ways", "ways", "worst number of passes that one phase of an access takes; 1 is ideal", "lower"),
    MetricInfo("shared.bytes", "bytes", "bytes that shared-memory accesses ask for"),
    MetricInfo(
        "shared.moved_bytes",
        "bytes",
        "bytes that the passes of shared-memory accesses can have moved, conflicts left out",
    ),
    MetricInfo(
        "shared.conflicts_hardware",
        "transactions",
        "conflicts as the hardware counts them, arbitration with other traffic included: no sign of a conflict when small",
        "lower",
    ),
    MetricInfo(
        "shared.conflicts_per_access",
        "transactions",
        "conflicts of one conflict-free pass; undefined without any",
        "lower",
    ),
    MetricInfo("shared.latency_cycles", "cycles", "mean cycles that a shared-memory access is under way", "lower"),
    MetricInfo("global.requests", "requests", "warp-wide global-memory accesses executed"),
    MetricInfo("global.sectors", "sectors", "32-byte sectors that global accesses touch, before any cache", "lower"),
    MetricInfo("global.sectors_ideal", "sectors", "sectors that the same bytes would take if they were contiguous"),
    MetricInfo("global.bytes", "bytes", "bytes that global accesses ask for"),
    MetricInfo("executed.instructions", "instructions", "instructions executed, counted once a warp"),
    MetricInfo("executed.flop_vector", "FLOP", "floating-point operations of vector units; a fused multiply-add is 2"),
    MetricInfo(
        "executed.flop_matrix", "FLOP", "floating-point operations of matrix units, executed whether useful or not"
    ),
    MetricInfo("executed.integer_operations", "operations", "integer operations, those of matrix units included"),
    MetricInfo("executed.integer_matrix", "operations", "integer operations of matrix units"),
    MetricInfo(
        "executed.per_cycle", "instructions/cycle", "instructions issued a cycle while a unit was active", "higher"
    ),
    MetricInfo(
        "local.requests",
        "requests",
        "loads and stores of local memory executed: spills, indexed arrays, stacks",
        "lower",
    ),
    MetricInfo("local.sectors", "sectors", "32-byte sectors of local memory touched before any cache", "lower"),
    MetricInfo("stall.samples", "samples", "warp samples taken, whatever the warp was doing"),
    MetricInfo(
        "occupancy.theoretical", "ratio", "resident warps that resources allow, of the most a unit holds", "", 1.0
    ),
    MetricInfo(
        "occupancy.achieved", "ratio", "mean of the warps resident while active, of the most a unit holds", "", 1.0
    ),
    MetricInfo("occupancy.blocks_per_unit", "blocks", "blocks that fit on a unit at once"),
    MetricInfo("occupancy.warps", "warps", "mean of the warps resident on a unit while it was active"),
    MetricInfo("busy.compute", "ratio", "busiest part of the units, of its peak", "", 1.0),
    MetricInfo("busy.memory", "ratio", "busiest part of the memory system, of its peak", "", 1.0),
    MetricInfo("busy.dram", "ratio", "device memory traffic, of its peak", "", 1.0),
    MetricInfo("busy.l2", "ratio", "second-level cache, of its peak", "", 1.0),
    MetricInfo("busy.l1", "ratio", "first-level caches, of their peak", "", 1.0),
    MetricInfo("busy.shared", "ratio", "share of time in which shared memory served accesses", "", 1.0),
    MetricInfo(
        "busy.shared_conflicts", "ratio", "share of time that bank conflicts of shared memory took", "lower", 1.0
    ),
    MetricInfo("busy.matrix", "ratio", "share of time in which matrix units worked", "", 1.0),
    MetricInfo("busy.vector", "ratio", "share of time in which vector units issued", "", 1.0),
    MetricInfo("busy.scalar", "ratio", "share of time in which scalar units issued", "", 1.0),
    MetricInfo(
        "vector.active_lanes", "threads", "mean of the lanes that a vector instruction has switched on", "higher"
    ),
    MetricInfo("cpu.cycles", "cycles", "cycles of all threads of the launch in user mode", "lower"),
    MetricInfo("cpu.task_ns", "ns", "time that all threads of the launch ran on a core, together", "lower"),
    MetricInfo("cpu.cache_references", "requests", "accesses that reached the last-level cache", "lower"),
    MetricInfo("cpu.cache_misses", "requests", "accesses that missed the last-level cache", "lower"),
    MetricInfo("cpu.branches", "instructions", "branches executed"),
    MetricInfo("cpu.branch_misses", "instructions", "branches predicted wrong", "lower"),
    MetricInfo("cpu.page_faults", "faults", "page faults: memory touched for the first time", "lower"),
    MetricInfo("cpu.context_switches", "switches", "times that a thread of the launch had to leave its core", "lower"),
    MetricInfo("wave.cycles", "cycles", "cycles of all wavefronts together, from start to end"),
    MetricInfo("wave.active_cycles", "cycles", "of wave.cycles: an instruction was executing"),
    MetricInfo("wave.dependency_cycles", "cycles", "of wave.cycles: waiting for an earlier result or memory", "lower"),
    MetricInfo("wave.issue_cycles", "cycles", "of wave.cycles: ready, and waiting for a unit to issue to", "lower"),
    MetricInfo("wave.shared_cycles", "cycles", "of wave.cycles: waiting to issue to shared memory", "lower"),
    MetricInfo("registers.per_thread", "registers", "registers of one thread", "lower"),
    MetricInfo("registers.vgpr", "registers", "vector registers of one thread, accumulators included (AMD)", "lower"),
    MetricInfo("registers.agpr", "registers", "accumulator registers of one thread (AMD)"),
    MetricInfo("registers.sgpr", "registers", "scalar registers of one wavefront (AMD)"),
    MetricInfo("spill.store_bytes", "bytes", "bytes that one thread's static code spills", "lower"),
    MetricInfo("spill.load_bytes", "bytes", "bytes that one thread's static code loads back", "lower"),
    MetricInfo("spill.executed", "instructions", "spills and reloads executed, counted once a warp", "lower"),
    MetricInfo("spill.vgpr", "registers", "vector registers that were spilled (AMD)", "lower"),
    MetricInfo("spill.sgpr", "registers", "scalar registers that were spilled (AMD)", "lower"),
    MetricInfo("scratch.bytes", "bytes", "stack frame or private memory of one thread", "lower"),
    MetricInfo("shared.static_bytes", "bytes", "shared memory of one block, declared statically"),
    MetricInfo("shared.dynamic_bytes", "bytes", "shared memory of one block, asked for at launch"),
    MetricInfo("shared.allocated_bytes", "bytes", "shared memory of one block, static and dynamic, as allocated"),
    MetricInfo("launch.threads_per_block", "threads", "threads of one block (tasks on a CPU)"),
    MetricInfo("launch.blocks", "blocks", "blocks of the grid"),
    MetricInfo("launch.warps", "warps", "warps that were started"),
    MetricInfo("launch.count", "launches", "launches that a summary stands for"),
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
        for name, meaning in {**STALL_REASONS, **AMD_STALL_REASONS}.items()
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
