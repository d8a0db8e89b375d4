"""Rules on hidden and exposed latency: occupancy, waiting for global memory, depth of the pipeline.

``docs/diagnosis.md`` documents each, and holds what it promised beside what its advice brought on an H200.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tileprof.analyse.bounds import SECTOR_BYTES, Facts
from tileprof.analyse.figures import static_instructions
from tileprof.analyse.findings import LIKELY, PERHAPS, Finding, finding
from tileprof.analyse.rules_memory import wasteful_accesses
from tileprof.analyse.units import share

LOW_OCCUPANCY = 0.25
LATENCY = ("long_scoreboard", "lg_throttle")
BUSY = 0.6
"""Share of the time that one part accounts for, from which it is the limit and more warps do not help."""

AT_THE_LIMIT = 0.8
"""The same for waiting that earlier loads would take away: products of warp groups that wait have matrix units busy for 0.7."""

STARVED = 0.5
"""Share of the warp samples that wait for memory or barriers, from which more warps have something to hide: with 0.3, more threads
for the same tile made a product on an H200 slower."""

TWICE = 0.4
"""Share of the waiting that twice the warps take away: 0.33 and 0.42 in two products on an H200."""

EXPOSED = 0.3
"""Share of the warp samples that wait for global memory, from which its latency is exposed."""

REUSED = 4.0
"""Bytes asked for over the bytes of the operands, from which a shared tile would serve most of the loads."""

HIDDEN = 0.6
"""Share of the waiting that a second stage takes away: 0.4 to 0.8 in seven kernels on an H200 (``docs/diagnosis.md``)."""

RING_STAGES = 4
"""Stages that a ring wants which a producer fills: with two, a product of warp groups was slower on an H200 than without a ring."""

_STAGES = re.compile(r"num_stages\s*=\s*(\d+)")


def low_occupancy(facts: Facts) -> Iterator[Finding]:
    """Too few warps on a unit to hide latency, where latency is what is waited for."""
    occupancy, blocks = facts.metadata.get("occupancy"), facts.metadata.get("max_blocks_per_unit")
    if occupancy is None or not blocks or occupancy >= LOW_OCCUPANCY or _busy(facts):
        return
    if "HGMMA" in facts.case.assembly or "UTMALDG" in facts.case.assembly:
        return  # asynchronous units keep a few warps busy
    waiting = facts.stall_share(*LATENCY, "short_scoreboard", "barrier")
    if waiting is not None and waiting < STARVED:
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
    if _one_wave(facts):
        evidence.append("all blocks run at once: room for one more would stay empty")
        threads = facts.metadata.get("threads_per_block") or 0
        advice = f"more warps for the same tile, so that each thread has less of it: threads={2 * threads}"
        if waiting is not None:
            gain, basis = TWICE * waiting, f"{share(TWICE)} of the waiting, which twice the warps took away on an H200"
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


def exposed_latency(facts: Facts) -> Iterator[Finding]:
    """Warps wait for global memory while nothing is at its limit."""
    waiting = facts.stall_share(*LATENCY) if facts.measured else None
    if (
        waiting is None
        or waiting < EXPOSED
        or _busy(facts, AT_THE_LIMIT)
        or stages_of(facts, pipelined_loop(facts)) == 1
    ):
        return  # of a single stage ``pipeline-shallow`` tells
    worst, samples = None, 0.0
    for operation in facts.figures.operations_with("stall.long_scoreboard", "measured"):
        found = facts.waits_of(operation, *LATENCY)
        if found is not None and found > samples:
            worst, samples = operation, found
    if _told_elsewhere(facts, worst) or (_one_wave(facts) and not facts.in_loop(worst)):
        return
    evidence = [f"{share(waiting)} of warp samples wait for global memory (measured)"]
    idle = 1.0
    if facts.time_ns:
        idle = max(0.0, 1 - facts.floor_ns / facts.time_ns)
        evidence.append(f"no part of the machine is busy for more than {share(1 - idle)} of the time")
    gain, basis = waiting * idle, "the share of waiting, times the share in which no part is at its limit"
    classes = (facts.metadata.get("instructions") or {}).get("total") or {}
    sectors, least = facts.value("global.sectors"), facts.metadata.get("bytes_min")
    if classes.get("async_copy") or "UTMALDG" in facts.case.assembly:
        advice = "load earlier: one more stage"
    elif sectors and least and sectors * SECTOR_BYTES >= REUSED * least and not classes.get("shared_load"):
        evidence.append(f"loads ask for {sectors * SECTOR_BYTES / least:.0f} times the bytes of the operands")
        advice = (
            "copy tiles that are used again into shared memory, ahead: T.Pipelined with num_stages of 2 around T.copy"
        )
        left = max(facts.bounds.get("dram", 0.0), facts.bounds.get("compute", 0.0))
        gain = min(waiting, facts.gain_at(left) or 0.0)
        basis = "the waiting, which goes with loads that a shared tile serves"
    else:
        advice = "more independent loads a thread, or more warps a unit"
        if facts.in_loop(worst):
            advice = (
                "copy ahead: T.Pipelined with num_stages of 2 or more around T.copy, or more independent loads a thread"
            )
    yield finding(facts, "exposed-latency", "Exposed memory latency", evidence, advice, LIKELY, gain, basis, worst)


def _told_elsewhere(facts: Facts, operation: int | None) -> bool:
    """Whether the waiting has another name: sectors that nobody needs, or registers that come back from local memory."""
    if operation is None:
        return False
    classes = static_instructions(facts.case).get(operation, {})
    spilled = classes.get("local_load", 0) > 0 and not classes.get("global_load") and not classes.get("wait")
    return spilled or operation in wasteful_accesses(facts)


def _one_wave(facts: Facts) -> bool:
    """Whether all blocks run at once, so that none is left whose work could hide another's waiting."""
    blocks, resident = facts.value("launch.blocks"), facts.metadata.get("max_blocks_per_unit")
    return facts.device is not None and bool(blocks and resident) and blocks <= facts.device.units * resident


def pipelined_loop(facts: Facts) -> dict[str, Any] | None:
    """The first loop that the author pipelines."""
    return next((o for o in facts.case.operations if o["kind"] == "loop" and "T.Pipelined" in _text(o)), None)


def pipeline_depth(facts: Facts) -> Iterator[Finding]:
    """A pipeline of one stage, which copies and computes in turns; or one so deep that its buffers cost occupancy."""
    loop = pipelined_loop(facts)
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
        gain = None if waiting is None else waiting * (1 - blocks / fitting)
        basis = "the waiting that the further blocks hide"
        advice = f"num_stages={enough}: copies ahead beyond what latency needs only take room from other blocks"
        yield finding(facts, "pipeline-deep", "Pipeline too deep", evidence, advice, PERHAPS, gain, basis, loop["id"])


def _shallow(facts: Facts, loop: dict[str, Any], stages: int, shared: int) -> Iterator[Finding]:
    limit = facts.target.shared.block_limit
    ring = "HGMMA" in facts.case.assembly
    more = RING_STAGES if ring else 2
    if shared * 2 > limit:
        return
    fitting, blocks = _blocks_with(facts, min(limit, shared * more)), facts.metadata.get("max_blocks_per_unit") or 0
    evidence = [
        f"num_stages={stages}: each step copies, waits and then computes",
        f"{more} stages take {'at most ' if ring else ''}{shared * more:,} bytes of shared memory a block, {limit:,} are allowed",
        f"{fitting} blocks a unit would fit, {blocks} do now (derived)",
    ]
    waiting = facts.stall_share(*LATENCY, "barrier")
    gain, basis = None, "copying and computing overlapped instead of in turns"
    if waiting is not None and facts.time_ns:
        evidence.append(f"{share(waiting)} of warp samples wait for global memory or at a barrier (measured)")
        gain = min(HIDDEN * waiting, max(0.0, 1 - facts.floor_ns / facts.time_ns))
        basis = f"{share(HIDDEN)} of the waiting, as measured on an H200, down to the next limit"
    elif facts.bounds:
        copying, computing = facts.bounds.get("dram", 0.0), facts.others("dram")
        if copying + computing > 0:
            gain = min(copying, computing) / (copying + computing)
    advice = f"num_stages={more}"
    if ring:
        advice += ": copies then run ahead in a ring that a producer fills; with two stages it is slower than without"
    confidence = LIKELY if waiting is not None else PERHAPS
    title = "Pipeline too shallow"
    yield finding(facts, "pipeline-shallow", title, evidence, advice, confidence, gain, basis, loop["id"])


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


def _busy(facts: Facts, least: float = BUSY) -> bool:
    """Whether some part is at its limit for most of the measured time, so that latency is hidden well enough."""
    bound = facts.bound
    return facts.measured and bound is not None and facts.time_ns is not None and bound >= least * facts.time_ns
