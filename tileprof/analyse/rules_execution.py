"""Rules on execution: occupancy, tail, exposed latency, matrix units, conversions, depth of the pipeline.

``docs/diagnosis.md`` documents each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tileprof.analyse.bounds import Facts
from tileprof.analyse.figures import static_instructions
from tileprof.analyse.findings import LIKELY, PERHAPS, SURE, Finding, finding
from tileprof.analyse.units import amount, share

LOW_OCCUPANCY = 0.25
LATENCY = ("long_scoreboard", "lg_throttle")
BUSY = 0.6
"""Share of the time that one part accounts for, from which it is the limit and latency is not."""

EXPOSED = 0.3
"""Share of the warp samples that wait for global memory, from which its latency is exposed."""

IDLE_UNITS = 0.8
"""Share of the units with work, below which the grid does not fill the machine."""

WORTHWHILE = 1.5
"""Rate of matrix units over that of vectors, from which they are worth the change."""

CONVERTING = 0.25
"""Share of an operation's static instructions, from which conversions dominate it."""

_MATRIX_TYPES = {"float32": ("matrix.tf32",), "float16": ("matrix.float16",), "bfloat16": ("matrix.bfloat16",)}
_STAGES = re.compile(r"num_stages\s*=\s*(\d+)")


def low_occupancy(facts: Facts) -> Iterator[Finding]:
    """Too few warps on a unit to hide latency, where latency is what is waited for."""
    occupancy, blocks = facts.metadata.get("occupancy"), facts.metadata.get("max_blocks_per_unit")
    if occupancy is None or not blocks or occupancy >= LOW_OCCUPANCY or _busy(facts):
        return
    if "HGMMA" in facts.case.assembly or "UTMALDG" in facts.case.assembly:
        return  # asynchronous units keep a few warps busy
    waiting = facts.stall_share(*LATENCY, "short_scoreboard", "barrier")
    if waiting is not None and waiting < EXPOSED:
        return
    limiters = tuple(facts.metadata.get("occupancy_limiters") or ())
    evidence = [f"{share(occupancy)} of the warps a unit can hold, {blocks} blocks a unit (derived)"]
    if limiters:
        evidence.append("limited by " + " and ".join({"shared": "shared memory"}.get(name, name) for name in limiters))
    if waiting is not None:
        evidence.append(f"{share(waiting)} of warp samples wait for memory or a barrier (measured)")
    gain = None if waiting is None else waiting / (blocks + 1)
    basis = "one more block a unit hides its part of the waiting"
    advice = " ".join(_more_blocks(facts, limiters, int(blocks))) or "smaller blocks, so that more of them fit"
    confidence = LIKELY if waiting is not None else PERHAPS
    yield finding(facts, "low-occupancy", "Low occupancy", evidence, advice, confidence, gain, basis)


def _more_blocks(facts: Facts, limiters: tuple[str, ...], blocks: int) -> Iterator[str]:
    """What one more block a unit needs, for each limiter, by the target's sizes."""
    threads = facts.metadata.get("threads_per_block") or 1
    registers, shared = facts.target.registers, facts.target.shared
    if "registers" in limiters and registers.per_unit and registers.granule:
        fitting = registers.per_unit // (threads * (blocks + 1))
        step = max(1, registers.granule // facts.target.warp_size)
        have = facts.metadata.get("registers_per_thread")
        yield f"One more block needs at most {fitting // step * step} registers a thread, it has {have}: a smaller tile a thread."
    if "shared" in limiters and shared.unit_bytes:
        fitting = shared.unit_bytes // (blocks + 1) - shared.reserved_per_block
        have = (facts.metadata.get("shared_bytes_static") or 0) + (facts.metadata.get("shared_bytes_dynamic") or 0)
        yield (
            f"One more block needs at most {fitting:,} bytes of shared memory a block, it has {have:,}: "
            "a smaller tile or fewer stages."
        )
    if "warps" in limiters or "blocks" in limiters:
        yield "The block size is the limit: blocks of another number of threads fill a unit better."


def few_blocks(facts: Facts) -> Iterator[Finding]:
    """A grid that leaves units idle: too few blocks, or a last wave that is nearly empty."""
    blocks = facts.value("launch.blocks")
    if facts.device is None or facts.use is None or blocks is None or facts.use >= IDLE_UNITS:
        return
    units = facts.device.units
    evidence = [
        f"{amount(blocks)} blocks on {units} units of {facts.device.name}: {share(facts.use)} of them have work on average"
    ]
    if blocks < units:
        title, advice = (
            "Too few blocks",
            "smaller tiles, or split the reduction (split-K) so that every unit has a block",
        )
    else:
        title, advice = (
            "Nearly empty last wave",
            "another tile size, or a persistent kernel whose blocks take tiles in turns",
        )
    gain = 1 - facts.use
    if not _bound_by_units(facts):
        gain *= 0.5
    basis = "the units that stand idle" + ("" if _bound_by_units(facts) else ", by half: the limit is device memory")
    confidence = SURE if facts.measured else LIKELY
    yield finding(facts, "few-blocks", title, evidence, advice, confidence, gain, basis)


def _bound_by_units(facts: Facts) -> bool:
    return facts.bounds.get("dram", 0.0) <= facts.others("dram")


def exposed_latency(facts: Facts) -> Iterator[Finding]:
    """Warps wait for global memory while nothing is at its limit."""
    waiting = facts.stall_share(*LATENCY)
    if waiting is None or waiting < EXPOSED or _busy(facts):
        return
    worst, samples = None, 0.0
    for operation in facts.figures.operations_with("stall.long_scoreboard", "measured"):
        figure = facts.figures.of_operation("stall.long_scoreboard", "measured", operation)
        if figure is not None and figure.value > samples:
            worst, samples = operation, figure.value
    evidence = [f"{share(waiting)} of warp samples wait for global memory (measured)"]
    bound, time_ns = facts.bound, facts.time_ns
    idle = 1.0
    if bound is not None and time_ns:
        idle = max(0.0, 1 - bound / time_ns)
        evidence.append(f"no part of the machine is busy for more than {share(bound / time_ns)} of the time")
    loads = (facts.metadata.get("instructions") or {}).get("total") or {}
    if loads.get("async_copy"):
        advice = "load earlier: one more stage, or more blocks a unit"
    else:
        advice = (
            "copy ahead: T.Pipelined with num_stages of 2 or more around T.copy, or more independent loads a thread"
        )
    gain = waiting * idle
    basis = "the share of waiting, times the share in which no part is at its limit"
    yield finding(facts, "exposed-latency", "Exposed memory latency", evidence, advice, LIKELY, gain, basis, worst)


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
        if "compute" in facts.bounds:
            gain = facts.saving("compute", facts.bounds["compute"] * (1 - 1 / factor))
    if gemm is None:
        advice = "write the product as T.gemm of tiles in shared memory or fragments, which uses them"
    elif kind == "float32":
        advice = (
            "give T.gemm operands of a narrower type (float16, bfloat16): float32 products have matrix units only in "
            "tf32, with 10 bits"
        )
    else:
        advice = "let the tile be a multiple of the matrix instruction's shape, so that T.gemm uses it"
    basis = "vector work replaced by matrix work, down to the next limit"
    where = gemm["id"] if gemm is not None else None
    yield finding(facts, "matrix-unused", "Matrix units unused", evidence, advice, LIKELY, gain, basis, where)


def conversions(facts: Facts) -> Iterator[Finding]:
    """Operations that mostly convert types."""
    if facts.device is None:
        return
    executed = facts.value("executed.instructions")
    for operation, classes in static_instructions(facts.case).items():
        whole, converting = sum(classes.values()), classes.get("convert", 0)
        if operation is None or whole < 16 or converting < CONVERTING * whole:
            continue
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
        advice = "convert once: keep the tile in the type in which it is used, or convert vectors outside the loop"
        basis = "the issue slots of the conversions"
        yield finding(facts, "conversions", "Conversions dominate", evidence, advice, PERHAPS, gain, basis, operation)


def pipeline_depth(facts: Facts) -> Iterator[Finding]:
    """A pipeline of one stage, which copies and computes in turns; or one so deep that its buffers cost occupancy."""
    loop = next((o for o in facts.case.operations if o["kind"] == "loop" and "T.Pipelined" in _text(o)), None)
    stages = stages_of(facts, loop)
    if facts.device is None or loop is None or stages is None:
        return
    inside = [o for o in facts.case.operations if o["parent"] == loop["id"]]
    if not any(o["kind"] == "copy" for o in inside) or not any(o["kind"] != "copy" for o in inside):
        return
    shared = (facts.metadata.get("shared_bytes_static") or 0) + (facts.metadata.get("shared_bytes_dynamic") or 0)
    blocks = facts.metadata.get("max_blocks_per_unit") or 0
    if stages < 2:
        yield from _shallow(facts, loop, stages, shared)
    elif stages >= 3 and "shared" in (facts.metadata.get("occupancy_limiters") or ()) and blocks <= 2:
        fewer = range(stages - 1, 1, -1)
        enough = next((s for s in fewer if _blocks_with(facts, shared * s // stages) > blocks), None)
        if enough is None or _busy(facts):
            return
        fitting = _blocks_with(facts, shared * enough // stages)
        waiting = facts.stall_share(*LATENCY, "barrier", "short_scoreboard")
        evidence = [
            f"{stages} stages take {shared:,} bytes of shared memory a block: {blocks} blocks a unit (static, derived)",
            f"with {enough} stages {fitting} blocks fit",
        ]
        gain = None if waiting is None else waiting * (1 - blocks / fitting) * 0.5
        basis = "half of the waiting that the further blocks would hide"
        advice = f"num_stages={enough}: copies ahead beyond what latency needs only take room from other blocks"
        yield finding(facts, "pipeline-deep", "Pipeline too deep", evidence, advice, PERHAPS, gain, basis, loop["id"])


def _shallow(facts: Facts, loop: dict[str, Any], stages: int, shared: int) -> Iterator[Finding]:
    limit = facts.target.shared.block_limit
    if shared * 2 > limit:
        return
    fitting, blocks = _blocks_with(facts, shared * 2), facts.metadata.get("max_blocks_per_unit") or 0
    evidence = [
        f"num_stages={stages}: each step copies, waits and then computes",
        f"two stages take {shared * 2:,} bytes of shared memory a block, {limit:,} are allowed",
        f"{fitting} blocks a unit would fit, {blocks} do now (derived)",
    ]
    waiting = facts.stall_share(*LATENCY, "barrier")
    gain = None
    if waiting is not None:
        evidence.append(f"{share(waiting)} of warp samples wait for global memory or at a barrier (measured)")
        gain = waiting / 2
    elif facts.bounds:
        copying, computing = facts.bounds.get("dram", 0.0), facts.others("dram")
        if copying + computing > 0:
            gain = min(copying, computing) / (copying + computing)
    basis = "half of the waiting" if waiting is not None else "copying and computing overlapped instead of in turns"
    confidence = LIKELY if waiting is not None else PERHAPS
    yield finding(
        facts,
        "pipeline-shallow",
        "Pipeline too shallow",
        evidence,
        "num_stages=2 or more",
        confidence,
        gain,
        basis,
        loop["id"],
    )


def stages_of(facts: Facts, loop: dict[str, Any] | None) -> int | None:
    """Stages of the pipelined loop: a parameter of that name, or the number in the loop's own line."""
    given = facts.parameter("num_stages")
    if isinstance(given, int):
        return given
    found = _STAGES.search(_text(loop)) if loop is not None else None
    return int(found[1]) if found else None


def _text(operation: dict[str, Any]) -> str:
    return f"{operation.get('label', '')} {(operation.get('location') or {}).get('text', '')}"


def _blocks_with(facts: Facts, shared: int) -> int:
    """Blocks that fit on a unit with so much shared memory a block."""
    import tilelang_min as tilelang

    found = tilelang.targets.occupancy(
        facts.target,
        threads=int(facts.metadata.get("threads_per_block") or 1),
        registers_per_thread=facts.metadata.get("registers_per_thread"),
        shared_bytes=shared,
    )
    return int(found.max_blocks_per_unit or 0)


def _busy(facts: Facts) -> bool:
    """Whether some part is at its limit for most of the measured time, so that latency is hidden well enough."""
    bound = facts.bound
    return facts.measured and bound is not None and facts.time_ns is not None and bound >= BUSY * facts.time_ns
