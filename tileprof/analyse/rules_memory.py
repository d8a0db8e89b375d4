"""Rules on memory: bank conflicts, uncoalesced accesses, spills, bandwidth at the roof.  ``docs/diagnosis.md`` documents each."""

from __future__ import annotations

from collections.abc import Iterator

from tileprof.analyse.bounds import SECTOR_BYTES, Facts
from tileprof.analyse.conflicts import ConflictRow, Counts, conflict_rows
from tileprof.analyse.figures import static_instructions
from tileprof.analyse.findings import LIKELY, PERHAPS, SURE, Finding, finding
from tileprof.analyse.units import amount, share

LEAST_CONFLICTS = 0.1
"""Conflicts below this share of the ideal transactions are not worth a line."""

LEAST_GAIN = 0.01

WASTEFUL = 1.5
"""Sectors over the ideal from which an access counts as uncoalesced."""

AT_THE_ROOF = 0.6
"""Share of the time that the bandwidth of device memory accounts for, from which it is the limit."""


def bank_conflicts(facts: Facts) -> Iterator[Finding]:
    """Accesses to shared memory that take more passes than they need."""
    rows: dict[int, list[ConflictRow]] = {}
    for row in conflict_rows(facts.case):
        if row.operation is not None:
            rows.setdefault(row.operation, []).append(row)
    for operation, found in rows.items():
        measured = [
            row.measured for row in found if row.measured.transactions is not None and not _misread(row.measured)
        ]
        known = [row.simulated for row in found if row.rule == "known" and not row.subtotal]
        chosen, kind = (measured, "measured") if measured else (known, "simulated")
        taken = sum(c.transactions.value for c in chosen if c.transactions is not None)
        ideal = sum(c.ideal.value for c in chosen if c.ideal is not None)
        if ideal <= 0 or taken - ideal < LEAST_CONFLICTS * ideal:
            continue
        gain = None
        if facts.device is not None:
            clock = facts.value("clock.hz") or facts.device.clock_hz
            gain = facts.saving("shared", (taken - ideal) / (facts.device.units * clock) * 1e9)
        if gain is not None and gain < LEAST_GAIN:
            continue
        buffers = sorted({row.buffer for row in found if row.buffer and _has_conflicts(row)})
        evidence = [
            f"{amount(taken)} transactions where {amount(ideal)} would do, {taken / ideal:.1f}× the ideal ({kind})"
        ]
        ways = [row.simulated.ways.value for row in found if row.simulated.ways is not None and row.rule == "known"]
        if ways:
            evidence.append(f"up to {max(ways):.0f} passes for one phase of an access")
        waiting = facts.stall_share("short_scoreboard", "mio_throttle")
        if waiting is not None:
            evidence.append(f"{share(waiting)} of warp samples wait for shared memory (measured)")
        advice = _suggested(facts, buffers) or (
            f"change where the rows of {' and '.join(buffers) or 'the tile'} lie: pad them, or swizzle their columns"
        )
        title = f"Bank conflicts on {' and '.join(buffers)}" if buffers else "Bank conflicts"
        confidence = SURE if measured else LIKELY
        basis = "passes above the ideal, at one a clock and unit"
        yield finding(facts, "bank-conflicts", title, evidence, advice, confidence, gain, basis, operation)


def _misread(counts: Counts) -> bool:
    return counts.transactions is not None and counts.transactions.flag == "misread by profiler"


def _has_conflicts(row: ConflictRow) -> bool:
    """Whether this buffer has conflicts of its own; a sum over buffers has no name."""
    for side in (row.measured, row.simulated):
        if side.conflicts is not None and not row.subtotal:
            return side.conflicts.value > 0
    return False


def _suggested(facts: Facts, buffers: list[str]) -> str:
    """What the compiler found by counting again, for each buffer the change that leaves least and costs least."""
    texts = []
    for buffer in buffers:
        found = [s for s in facts.case.suggestions if s.buffer == buffer]
        if found:
            texts.append(min(found, key=lambda s: (s.conflicts_after, s.extra_bytes)).text)
    return "; ".join(texts)


def uncoalesced(facts: Facts) -> Iterator[Finding]:
    """Global accesses that touch more sectors than their bytes need."""
    if facts.device is None:
        return
    kind = "measured" if facts.figures.operations_with("global.sectors", "measured") else "simulated"
    whole = sum(
        figure.value
        for operation in facts.figures.operations_with("global.sectors", kind)
        if (figure := facts.figures.of_operation("global.sectors", kind, operation)) is not None
    )
    for operation in facts.figures.operations_with("global.sectors", kind):
        taken = facts.figures.of_operation("global.sectors", kind, operation)
        # The profiler's ideal is of the addresses asked for; ours, of the bytes if they lay together, says more.
        ideal = facts.figures.of_operation(
            "global.sectors_ideal", "simulated", operation
        ) or facts.figures.of_operation("global.sectors_ideal", kind, operation)
        if taken is None or ideal is None or ideal.value <= 0 or taken.value < WASTEFUL * ideal.value:
            continue
        excess = taken.value - ideal.value
        if excess < 0.05 * whole:
            continue
        gain = _sector_gain(facts, excess, whole)
        evidence = [
            f"{amount(taken.value)} sectors of {SECTOR_BYTES} bytes where {amount(ideal.value)} would hold the same bytes, "
            f"{taken.value / ideal.value:.1f}× ({kind})"
        ]
        waiting = facts.stall_share("long_scoreboard", "lg_throttle")
        if waiting is not None:
            evidence.append(f"{share(waiting)} of warp samples wait for global memory (measured)")
        advice = _spread_copies(facts, operation) or (
            "let neighbouring threads access neighbouring elements: make the last index of the tensor the fastest one of the loop, "
            "or copy a tile with T.copy through shared memory and read it transposed there"
        )
        basis = "bytes of the sectors above the ideal, over the path of the first cache, or of memory where nothing is reused"
        confidence = SURE if kind == "measured" else LIKELY
        yield finding(
            facts, "uncoalesced", "Uncoalesced global access", evidence, advice, confidence, gain, basis, operation
        )


def _spread_copies(facts: Facts, operation: int) -> str:
    """Advice for asynchronous copies, whose sectors depend on where they go: rows of a shared tile that begin within a line."""
    filled = [access for _, access in facts.figures.accesses("shared.transactions", "simulated", operation)]
    if not any((access or "").startswith("cp_async") for access in filled):
        return ""
    return (
        "these are asynchronous copies, which ask for more sectors where rows of the shared tile begin within a line of 128 bytes: "
        "leave the padding away, and let the compiler place the tile or swizzle it with T.annotate_layout"
    )


def _sector_gain(facts: Facts, excess: float, whole: float) -> float | None:
    """Time of the excess sectors where they are paid for: in device memory as far as they reach it, else at the first cache."""
    if "l1" not in facts.bounds or not whole:
        return None
    cached = facts.saving("l1", facts.bounds["l1"] * excess / whole)
    least, dram = facts.metadata.get("bytes_min"), facts.bounds.get("dram")
    if not least or not dram:
        return cached
    read, written = facts.value("dram.read_bytes"), facts.value("dram.write_bytes")
    if read is not None and written is not None:
        reached = max(0.0, min(excess * SECTOR_BYTES, read + written - least))
        in_memory = facts.saving("dram", dram * reached / (read + written)) if reached else 0.0
    elif whole * SECTOR_BYTES <= 4 * least:  # hardly any reuse: what is asked for comes from memory
        in_memory = facts.saving("l1", facts.bounds["l1"] * excess / whole)
    else:
        in_memory = 0.0
    return max(cached or 0.0, in_memory or 0.0)


def spills(facts: Facts) -> Iterator[Finding]:
    """Values that did not fit into registers."""
    if facts.device is None:
        return
    stored, loaded = facts.value("spill.store_bytes"), facts.value("spill.load_bytes")
    vector = facts.value("spill.vgpr")
    if not stored and not loaded and not vector:
        return
    evidence = []
    if stored or loaded:
        evidence.append(f"{amount(stored or 0)} bytes a thread stored and {amount(loaded or 0)} loaded back (static)")
    if vector:
        evidence.append(f"{amount(vector)} vector registers spilled (static)")
    registers, limit = facts.value("registers.per_thread"), facts.target.registers.per_thread
    if registers is not None:
        evidence.append(f"{amount(registers)} of {limit} registers a thread")
    worst, local, total = None, 0, 0
    for operation, classes in static_instructions(facts.case).items():
        here = classes.get("local_load", 0) + classes.get("local_store", 0)
        if operation is not None and here > local:
            worst, local, total = operation, here, sum(classes.values())
    if worst is not None:
        evidence.append(f"{local} of {total} instructions of the operation access local memory (static)")
    threads = facts.metadata.get("threads_per_block")
    advice = f"a smaller tile a thread: raise threads above {threads}, or lower the block sizes"
    gain = local / total * 0.5 if total else None
    basis = "half the share of local-memory instructions in the operation: they hit the first cache at best"
    yield finding(facts, "spills", "Registers spill to local memory", evidence, advice, PERHAPS, gain, basis, worst)


def memory_bound(facts: Facts) -> Iterator[Finding]:
    """Device memory is the limit: only fewer bytes help."""
    dram, time_ns = facts.bounds.get("dram"), facts.time_ns
    if dram is None or not time_ns or dram < facts.others("dram"):
        return
    reached = dram / time_ns
    if facts.measured and reached < AT_THE_ROOF:
        return
    least = facts.metadata.get("bytes_min")
    read, written = facts.value("dram.read_bytes"), facts.value("dram.write_bytes")
    moved = None if read is None or written is None else read + written
    word = "measured" if facts.measured else "predicted"
    evidence = [f"bandwidth of device memory accounts for {share(reached)} of the time ({word})"]
    gain: float | None = None  # how many bytes a fusion would spare, nobody has counted
    basis = ""
    advice = (
        "move fewer bytes: fuse this kernel with its neighbours, keep a narrower type in memory, reuse what was read"
    )
    if moved is not None and least:
        evidence.append(f"{amount(moved)}B moved, at least {amount(least)}B needed (measured, derived)")
        if moved > 1.2 * least:
            gain, basis = facts.saving("dram", dram * (1 - least / moved)), "bytes moved more than once"
            advice = (
                "bytes come from memory more than once: visit tiles in an order that the cache keeps (T.use_swizzle)"
            )
    if not facts.measured:
        evidence.append(f"at least {amount(least or 0)}B to move (derived)")
    confidence = SURE if facts.measured else LIKELY
    yield finding(facts, "memory-bound", "Bound by device memory", evidence, advice, confidence, gain, basis)
