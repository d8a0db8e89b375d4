"""Rules on memory: bank conflicts, uncoalesced accesses, spills, bandwidth at the roof.  ``docs/diagnosis.md`` documents each."""

from __future__ import annotations

from collections.abc import Iterator

from tileprof.analyse.bounds import SECTOR_BYTES, Facts
from tileprof.analyse.conflicts import ConflictRow, Counts, conflict_rows
from tileprof.analyse.figures import static_instructions
from tileprof.analyse.findings import LEAST_GAIN, LIKELY, PERHAPS, SURE, Finding, finding
from tileprof.analyse.units import amount, share

LEAST_CONFLICTS = 0.1
"""Conflicts below this share of the ideal transactions are not worth a line."""

WITHOUT_A_CHANGE = 0.1
"""Share of the time that conflicts must cost to be told where no layout without them is known."""

WASTEFUL = 1.5
"""Sectors over the ideal from which an access counts as uncoalesced."""

SPILLING = 0.05
"""Local-memory instructions of an operation, from which its waits are taken for waits for spilled values."""

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
        waiting = facts.stall_share("short_scoreboard", "mio_throttle")
        if gain is not None and waiting is not None:
            gain = min(gain, waiting)  # passes for which no warp waits cost nothing
        if gain is not None and gain < LEAST_GAIN:
            continue
        buffers = sorted({row.buffer for row in found if row.buffer and _has_conflicts(row)})
        suggested = _suggested(facts, buffers)
        if not suggested and gain is not None and gain < WITHOUT_A_CHANGE:
            continue
        if not suggested and all((row.access or "").startswith("cp_async") for row in found if _has_conflicts(row)):
            continue  # short rows cost asynchronous copies passes in any layout, and nobody waits for them
        evidence = [
            f"{amount(taken)} transactions where {amount(ideal)} would do, {taken / ideal:.1f}× the ideal ({kind})"
        ]
        ways = [row.simulated.ways.value for row in found if row.simulated.ways is not None and row.rule == "known"]
        if ways:
            evidence.append(f"up to {max(ways):.0f} passes for one phase of an access")
        if waiting is not None:
            evidence.append(f"{share(waiting)} of warp samples wait for shared memory (measured)")
        tiles = " and ".join(buffers) or "the tile"
        advice = suggested or (
            f"no padding and no swizzle of {tiles} is known that takes fewer passes: let the lanes of a warp access {tiles} in "
            "another order, or in wider vectors"
        )
        title = f"Bank conflicts on {' and '.join(buffers)}" if buffers else "Bank conflicts"
        confidence = PERHAPS if not suggested else SURE if measured else LIKELY
        gain = gain if suggested else None  # nobody knows a change that saves it
        basis = "passes above the ideal, at one a clock and unit, as far as warps wait for shared memory"
        yield finding(facts, "bank-conflicts", title, evidence, advice, confidence, gain, basis, operation)


def _misread(counts: Counts) -> bool:
    return counts.transactions is not None and counts.transactions.flag == "misread by profiler"


def _has_conflicts(row: ConflictRow) -> bool:
    """Whether this buffer has conflicts of its own; a sum over buffers has no name."""
    for side in (row.measured, row.simulated):
        if side.conflicts is not None and not row.subtotal:
            return side.conflicts.value > 0
    return False


def _suggested(facts: Facts, buffers: list[str], kinds: tuple[str, ...] = ("padding", "swizzle")) -> str:
    """What the compiler found by counting again, for each buffer the change that leaves least and costs least."""
    texts = []
    for buffer in buffers:
        found = [s for s in facts.case.suggestions if s.buffer == buffer and s.kind in kinds]
        if found:
            texts.append(min(found, key=lambda s: (s.conflicts_after, s.extra_bytes)).text)
    return "; ".join(texts)


def uncoalesced(facts: Facts) -> Iterator[Finding]:
    """Global accesses that touch more sectors than their bytes need."""
    kind, whole = _sectors(facts)
    for operation, (taken, ideal) in wasteful_accesses(facts).items():
        excess = taken - ideal
        evidence = [
            f"{amount(taken)} sectors of {SECTOR_BYTES} bytes where {amount(ideal)} would hold the same bytes, "
            f"{taken / ideal:.1f}× ({kind})"
        ]
        gain = _sector_gain(facts, excess, whole)
        copies = _spread_copies(facts, operation)
        basis = "bytes of the sectors above the ideal, over the path of the first cache, or of memory where nothing is reused"
        waiting = _waits_for_global(facts, operation)
        if waiting is not None:
            evidence.append(f"{share(waiting)} of warp samples wait here for global memory (measured)")
            if not copies and facts.time_ns:
                least = facts.bounds.get("dram", 0.0)
                gain = max(gain or 0.0, min(waiting * excess / taken, facts.gain_at(least) or 0.0))
                basis = "the waiting here for global memory, as far as it is for sectors above the ideal"
        staged = _suggested(facts, sorted(_touched(facts, operation)), ("order", "staging"))
        advice = copies or staged or (
            "let neighbouring threads access neighbouring elements: make the last index of the tensor the fastest one of the loop, "
            "or copy a tile with T.copy through shared memory and read it transposed there"
        )  # fmt: skip
        confidence = SURE if kind == "measured" else LIKELY
        yield finding(
            facts, "uncoalesced", "Uncoalesced global access", evidence, advice, confidence, gain, basis, operation
        )


def wasteful_accesses(facts: Facts) -> dict[int, tuple[float, float]]:
    """Sectors taken and ideal ones of the operations that waste them."""
    if facts.device is None:
        return {}
    kind, whole = _sectors(facts)
    found = {}
    atomic = {o["id"] for o in facts.case.operations if "T.atomic_" in str(o.get("label"))}
    for operation in facts.figures.operations_with("global.sectors", kind):
        taken = facts.figures.of_operation("global.sectors", kind, operation)
        # The profiler's ideal is of the addresses asked for; ours, of the bytes if they lay together, says more.
        ideal = facts.figures.of_operation(
            "global.sectors_ideal", "simulated", operation
        ) or facts.figures.of_operation("global.sectors_ideal", kind, operation)
        if taken is None or ideal is None or ideal.value <= 0 or taken.value < WASTEFUL * ideal.value:
            continue
        if operation in atomic:
            continue  # updates of a fragment go where its layout has them
        if taken.value - ideal.value >= 0.05 * whole:
            found[operation] = (taken.value, ideal.value)
    return found


def _sectors(facts: Facts) -> tuple[str, float]:
    """Where sectors of operations are known from, and their sum."""
    kind = "measured" if facts.figures.operations_with("global.sectors", "measured") else "simulated"
    figures = (
        facts.figures.of_operation("global.sectors", kind, operation)
        for operation in facts.figures.operations_with("global.sectors", kind)
    )
    return kind, sum(figure.value for figure in figures if figure is not None)


def _waits_for_global(facts: Facts, operation: int) -> float | None:
    """Share of all warp samples that wait for what an operation asks of global memory; None without samples.

    Where the operation accesses no shared memory, the queue that both share is full of its requests alone; and where it writes a
    tensor, what warps wait for at their end are its stores.
    """
    shared = facts.figures.accesses("shared.transactions", "simulated", operation)
    reasons = ("long_scoreboard", "lg_throttle", *(() if shared else ("mio_throttle", "short_scoreboard")))
    waiting, ending = facts.waits_of(operation, *reasons), facts.stall_share("drain")
    if waiting is None or ending is None:
        return None
    stores = static_instructions(facts.case).get(operation, {}).get("global_store")
    return waiting + (ending if stores else 0.0)


def _touched(facts: Facts, operation: int) -> set[str]:
    """Tensors and tiles of an operation."""
    record = next((o for o in facts.case.operations if o["id"] == operation), None) or {}
    return {str(name) for side in ("reads", "writes") for name in record.get(side) or ()}


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
    waiting, executed = _local_memory(facts)
    gain, basis = None, ""
    if executed is not None:
        gain, basis = executed, "local-memory instructions among those executed"
    if waiting is not None and executed is not None:
        evidence.append(f"{share(waiting)} of warp samples wait in operations that load spilled values (measured)")
        gain = min(waiting + (1 - waiting) * executed, facts.gain_at(facts.others("dram")) or 0.0)
        basis = "the waiting for spilled values, and their instructions among the rest, down to the next limit"
    confidence = LIKELY if waiting is not None else PERHAPS
    advice = _fewer_registers(facts, registers)
    yield finding(facts, "spills", "Registers spill to local memory", evidence, advice, confidence, gain, basis, worst)


def _local_memory(facts: Facts) -> tuple[float | None, float | None]:
    """Share of the warp samples that wait for spilled values, and share of the executed instructions that move them.

    Waits are those of operations that load from local memory and from nothing else that is waited for in the same way.  How often
    instructions ran is counted by operation, or else taken as alike for all.
    """
    waits: list[float | None] = []
    moved = whole = 0.0
    for operation, classes in static_instructions(facts.case).items():
        static = sum(classes.values())
        if operation is None or not static:
            continue
        executed = facts.figures.of_operation("executed.instructions", "measured", operation)
        times = static if executed is None else executed.value
        whole += times
        moved += times * (classes.get("local_load", 0) + classes.get("local_store", 0)) / static
        own = classes.get("local_load", 0) + classes.get("local_store", 0)
        alone = not classes.get("global_load") and not classes.get("wait")
        if classes.get("local_load") and alone and own >= SPILLING * static:
            waits.append(facts.waits_of(operation, "long_scoreboard", "lg_throttle"))
    known = [wait for wait in waits if wait is not None]
    measured = facts.stall_share("long_scoreboard") is not None
    return sum(known) if measured else None, moved / whole if whole else None


def _fewer_registers(facts: Facts, registers: float | None) -> str:
    """What to change: a block of many threads leaves each fewer registers than the architecture allows."""
    threads, limit = facts.metadata.get("threads_per_block"), facts.target.registers.per_thread
    if registers is not None and threads and (facts.target.registers.per_unit or 0) // threads < limit:
        return f"lower the block sizes: {threads} threads a block leave each {amount(registers)} registers, not {limit}"
    return f"a smaller tile a thread: raise threads above {threads}, or lower the block sizes"


def memory_bound(facts: Facts) -> Iterator[Finding]:
    """Device memory is the limit: only fewer bytes help."""
    dram, time_ns = facts.bounds.get("dram"), facts.time_ns
    if dram is None or not time_ns or dram < facts.others("dram"):
        return
    reached = min(1.0, dram / time_ns)
    if reached < AT_THE_ROOF:
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
        kept = ", some of which the cache kept" if moved < least else ""
        evidence.append(f"{amount(moved)}B moved, at least {amount(least)}B needed{kept} (measured, derived)")
        if moved > 1.2 * least:
            gain, basis = facts.saving("dram", dram * (1 - least / moved)), "bytes moved more than once"
            advice = (
                "bytes come from memory more than once: visit tiles in an order that the cache keeps (T.use_swizzle)"
            )
            twice = _read_twice(facts)
            if twice:
                name, lines = twice
                evidence.append(f"{name} is read in lines {' and '.join(map(str, lines))}")
                waiting = facts.stall_share("long_scoreboard", "lg_throttle")
                if waiting is not None:  # once it is kept, all loads of a block are under way at once
                    gain = max(gain or 0.0, min(waiting, facts.gain_at(dram * least / moved) or 0.0))
                    basis += ", or the waiting for loads, down to the bytes needed"
                advice = f"read {name} once: keep what was read in registers or a shared tile, in blocks small enough for that"
    if not facts.measured:
        evidence.append(f"at least {amount(least or 0)}B to move (derived)")
    confidence = SURE if facts.measured else LIKELY
    yield finding(facts, "memory-bound", "Bound by device memory", evidence, advice, confidence, gain, basis)


def _read_twice(facts: Facts) -> tuple[str, list[int]] | None:
    """A tensor that the kernel only reads, in several lines, and these lines; None where there is none."""
    inner = [operation for operation in facts.case.operations if operation["kind"] not in ("kernel", "loop")]
    written = {name for operation in inner for name in operation.get("writes") or ()}
    lines: dict[str, set[int]] = {}
    for operation in inner:
        line = (operation.get("location") or {}).get("line")
        for name in operation.get("reads") or ():
            if line is not None and operation["kind"] in ("copy", "parallel") and name not in written:
                lines.setdefault(name, set()).add(line)
    return next(((name, sorted(found)) for name, found in lines.items() if len(found) > 1), None)
