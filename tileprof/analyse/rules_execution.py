"""Rules on execution: blocks that leave units idle, matrix units, conversions.

``docs/diagnosis.md`` documents each, and holds what it promised beside what its advice brought on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tileprof.analyse.bounds import Facts
from tileprof.analyse.figures import static_instructions
from tileprof.analyse.findings import LEAST_GAIN, LIKELY, PERHAPS, Finding, finding
from tileprof.analyse.units import amount, share

IDLE_UNITS = 0.8
"""Share of the units with work, below which the grid does not fill the machine."""

REGAINED = 0.5
"""Share of what stands idle in a last wave that comes back: other tiles, and parts that are added up, cost something themselves
(nothing, 0.4 and 0.6 came back in three products on an H200)."""

WORTHWHILE = 1.5
"""Rate of matrix units over that of vectors, from which they are worth the change."""

MATRIX_SHARE = 0.5
"""Share of the rate of the matrix units that a product reaches once it uses them: 0.2 in tf32, 0.8 in float16 on an H200."""

CONVERTING = 0.25
"""Share of an operation's static instructions, from which conversions dominate it."""

_MATRIX_TYPES = {"float32": ("matrix.tf32",), "float16": ("matrix.float16",), "bfloat16": ("matrix.bfloat16",)}


def few_blocks(facts: Facts) -> Iterator[Finding]:
    """A grid that leaves units idle: too few blocks, or a last wave that is nearly empty."""
    blocks = facts.value("launch.blocks")
    if facts.device is None or facts.use is None or blocks is None or facts.use >= IDLE_UNITS:
        return
    units, product = facts.device.units, any(o["kind"] == "gemm" for o in facts.case.operations)
    evidence = [
        f"{amount(blocks)} blocks on {units} units of {facts.device.name}: {share(facts.use)} of them have work on average"
    ]
    if blocks < units:
        title, basis, gain = (
            "Too few blocks",
            "the work of all blocks on all units, down to the next limit",
            _spread(facts, product),
        )
        advice = "smaller tiles, so that every unit has a block"
        if product:
            advice = (
                "split the reduction along K (split-K), so that every unit has a block, and add the parts up in a second kernel or "
                "by T.atomic_add; smaller tiles bring less, since each block still walks over all of K"
            )
    else:
        title, gain = "Nearly empty last wave", REGAINED * (1 - facts.use)
        basis = f"{share(REGAINED)} of the time of the units that stand idle, as measured on an H200"
        advice = "another tile size, with which the blocks fill whole waves"
        together = _together(facts, blocks / units)
        if product and together is None:
            advice = "share the steps along K of all tiles out evenly between the units (stream-K)"
        if together is not None:
            gain *= together
            evidence.append(
                f"all blocks run at once; where two share a unit, a part of it is busy for {share(together)} of the time"
            )
            basis += ", as far as blocks that share a unit slow each other down"
    if gain is not None and gain < LEAST_GAIN and facts.measured:
        return
    yield finding(facts, "few-blocks", title, evidence, advice, LIKELY, gain, basis)


def _spread(facts: Facts, product: bool) -> float | None:
    """Gain where the work of too few blocks is spread over all units; a split product takes a second launch, which adds up."""
    if facts.time_ns is None or facts.use is None:
        return None
    working = max(0.0, facts.time_ns - facts.launch_ns) if facts.measured else facts.time_ns
    return facts.gain_at((2 if product else 1) * facts.launch_ns + max(facts.bound or 0.0, working * facts.use))


def _together(facts: Facts, each: float) -> float | None:
    """How busy a unit with the most blocks is, where all of them run at once; None where they run one after another.

    Blocks that wait for latency share a unit at no cost, blocks that keep a part of it busy take turns.
    """
    resident = facts.metadata.get("max_blocks_per_unit") or 0
    if resident < math.ceil(each) or not facts.time_ns or not facts.use or not facts.measured:
        return None
    return min(1.0, (facts.bound or 0.0) / (facts.time_ns * facts.use))


def matrix_unused(facts: Facts) -> Iterator[Finding]:
    """A matrix product on vector units, where the machine has matrix units for its type."""
    total = (facts.metadata.get("instructions") or {}).get("total") or {}
    flops = {key: value for key, value in (facts.metadata.get("flops") or {}).items() if value}
    least = facts.metadata.get("bytes_min")
    if facts.device is None or not flops or not least or not total or total.get("matrix"):
        return
    kind = max(flops, key=lambda key: flops[key])
    rates = facts.device.flops_per_clock_per_unit
    names = [name for name in (f"matrix.{kind}", *_MATRIX_TYPES.get(kind, ())) if name in rates]
    # Products have more work than operands; anything with little work a byte has no use for matrix units.
    if not names or sum(flops.values()) / least < 32 or not total.get("fma"):
        return
    gemm = next((o for o in facts.case.operations if o["kind"] == "gemm"), None)
    vector = rates.get(f"vector.{kind}")
    if vector and rates[names[0]] < WORTHWHILE * vector:
        return  # as float32 on CDNA 3, whose matrix units do no more of it than its vectors
    evidence = [
        f"no matrix instruction among {amount(sum(total.values()))}, {amount(total['fma'])} fused multiply-adds (static)"
    ]
    gain = None
    if vector:
        factor = rates[names[0]] / vector
        evidence.append(
            f"{names[0]} works {factor:.3g} times as fast as vector.{kind} on {facts.device.name} (datasheet)"
        )
        if "compute" in facts.bounds and facts.time_ns:
            # what is not the product stays; one that no T.gemm makes is written anew as a whole
            own = None if gemm is None else facts.figures.of_operation("stall.samples", "measured", gemm["id"])
            whole = facts.figures.of_case("stall.samples", "measured")
            rest = 1 - own.value / whole.value if own is not None and whole is not None and whole.value > 0 else 0.0
            product = facts.bounds["compute"] / factor / MATRIX_SHARE + _conflicts_ns(facts, gemm)
            gain = facts.gain_at(max(rest * facts.time_ns + product, facts.bounds.get("dram", 0.0)))
    if gemm is None:
        advice = (
            "write the product as T.gemm of tiles in shared memory, which uses them (with operands of float32 only as tf32: "
            'precision="tf32")'
        )
    elif kind == "float32":
        advice = (
            'T.gemm(..., precision="tf32"), which rounds operands to 10 bits of mantissa; or operands of a narrower type '
            "(float16, bfloat16)"
        )
    else:
        advice = "let the tile be a multiple of the matrix instruction's shape, so that T.gemm uses it"
    basis = f"the product at {share(MATRIX_SHARE)} of the rate of the matrix units, the rest of the kernel as it is"
    where = gemm["id"] if gemm is not None else None
    yield finding(facts, "matrix-unused", "Matrix units unused", evidence, advice, LIKELY, gain, basis, where)


def _conflicts_ns(facts: Facts, gemm: dict[str, Any] | None) -> float:
    """Time of the passes above the ideal in a product: matrix instructions read the same tiles, and leave them where they lie."""
    if gemm is None:
        return 0.0
    kind = "measured" if facts.figures.of_operation("shared.transactions", "measured", gemm["id"]) else "simulated"
    taken, ideal, whole = (
        facts.figures.of_operation("shared.transactions", kind, gemm["id"]),
        facts.figures.of_operation("shared.transactions_ideal", kind, gemm["id"]),
        facts.figures.of_case("shared.transactions", kind),
    )
    if taken is None or ideal is None or whole is None or not whole.value:
        return 0.0
    return facts.bounds.get("shared", 0.0) * (taken.value - ideal.value) / whole.value


def conversions(facts: Facts) -> Iterator[Finding]:
    """Operations that mostly convert types."""
    if facts.device is None:
        return
    executed = facts.value("executed.instructions")
    for operation, classes in static_instructions(facts.case).items():
        whole, converting = sum(classes.values()), classes.get("convert", 0)
        if operation is None or whole < 16 or converting < CONVERTING * whole or not facts.in_loop(operation):
            continue  # outside of loops each element is converted once, as it must be
        own = facts.figures.of_operation("executed.instructions", "measured", operation) or facts.figures.of_operation(
            "executed.instructions", "simulated", operation
        )
        part = None if own is None or not executed else own.value / executed
        if part is not None and part < 0.1:
            continue
        evidence = [f"{converting} of {whole} instructions of the operation convert types (static)"]
        gain = None
        if part is not None:
            evidence.append(
                f"the operation executes {share(part)} of the kernel's instructions ({own.provenance.kind if own else ''})"
            )
            limited = facts.bounds.get("issue")
            if limited is not None and facts.time_ns:
                gain = facts.saving("issue", limited * part * converting / whole)
        wider = facts.gain_at(_loads_in_the_wider_type(facts, operation))
        if wider is not None and wider < LEAST_GAIN:
            continue
        gain = gain if gain is None or wider is None else min(gain, wider)
        advice = "convert once, outside of the loop: keep the tile, or the tensor, in the type in which it is used"
        basis = "the issue slots of the conversions, down to the loads of the wider type"
        yield finding(facts, "conversions", "Conversions dominate", evidence, advice, PERHAPS, gain, basis, operation)


def _loads_in_the_wider_type(facts: Facts, operation: int) -> float:
    """The bound of shared memory, or else of the first cache, once what the operation loads has twice the bytes, ns."""
    shared = facts.figures.of_operation("shared.transactions", "measured", operation) or facts.figures.of_operation(
        "shared.transactions", "simulated", operation
    )
    metric, part = (
        ("shared.transactions", "shared") if shared is not None and shared.value else ("global.sectors", "l1")
    )
    kind = "measured" if facts.figures.of_operation(metric, "measured", operation) else "simulated"
    own, whole = facts.figures.of_operation(metric, kind, operation), facts.figures.of_case(metric, kind)
    bound = facts.bounds.get(part, 0.0)
    return bound if own is None or whole is None or not whole.value else bound * (1 + own.value / whole.value)
