"""AMD: formulas from counters to canonical metrics for gfx908, gfx90a, gfx942 and gfx950, and what to doubt about them.

Sources: the panels and ``counter_defs.yaml`` of ROCm's profilers (rocm-systems 1b1610fc), checked against files of known truth
(``tests/tileprof/metrics/test_amd_known_answers.py``): a copy of 2^20 doubles and a matrix product of known size.  Where ROCm's
tools disagree with each other or with the truth, the note of the formula says what was chosen.

Counters are sums over all instances of the device, as rocprofv3 writes them.  ``X_ACCUM`` is the counter X accumulated each
cycle (SQ_ACCUM_PREV_HIRES directly after X in rocprof v1, ``accumulate(X, HIGH_RES)`` in rocprofv3).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from tileprof.metrics.formula import Formula, derive
from tileprof.store.records import Metric, Provenance

EA = ("gfx908", "gfx90a")
"""Architectures whose counters of traffic past L2 are called TCC_EA_*."""
EA0 = ("gfx942", "gfx950")
"""Architectures where they are called TCC_EA0_*."""
CDNA = (*EA, *EA0)

SHORT_NS = 50_000
"""Below this duration GRBM_GUI_ACTIVE is mostly start and drain, and what is divided by it is not to be trusted."""
SHORT = "short launch"

_VALU = " + ".join(
    f"SQ_INSTS_VALU_ADD_{t} + SQ_INSTS_VALU_MUL_{t} + SQ_INSTS_VALU_TRANS_{t} + 2 * SQ_INSTS_VALU_FMA_{t}"
    for t in ("F16", "F32", "F64")
)
_MFMA = "SQ_INSTS_VALU_MFMA_MOPS_F16 + SQ_INSTS_VALU_MFMA_MOPS_BF16 + SQ_INSTS_VALU_MFMA_MOPS_F32 + SQ_INSTS_VALU_MFMA_MOPS_F64"
_F8, _F6F4 = " + SQ_INSTS_VALU_MFMA_MOPS_F8", " + SQ_INSTS_VALU_MFMA_MOPS_F6F4"
_ATOMICS = "TCP_TCC_ATOMIC_WITH_RET_REQ_sum + TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum"
_GUI = "(GRBM_GUI_ACTIVE / xcc * cu)"

FORMULAS: tuple[Formula, ...] = (
    Formula("launch.warps", "SQ_WAVES"),
    Formula("launch.warps", "Wavefronts"),
    Formula("cycles.elapsed", "GRBM_GUI_ACTIVE / xcc", note="GRBM_GUI_ACTIVE is summed over dies; start and drain count"),
    Formula("clock.hz", "1e9 * GRBM_GUI_ACTIVE / xcc / duration_ns", note="implied by cycles and duration"),
    Formula("clock.hz", "1e9 * GRBM_GUI_ACTIVE / duration_ns", note="implied; the dies of the device are not known"),
    Formula("clock.hz", "1e9 * GRBM_COUNT / duration_ns", note="implied; the dies of the device are not known"),
    # FLOPs: 64 lanes whatever the mask, packed instructions counted once; 512 FLOP per MOPS is exact on a known product
    Formula("executed.flop_vector", f"64 * ({_VALU})", CDNA, "masked-off lanes count, packed operations count once"),
    Formula("executed.flop_matrix", f"512 * ({_MFMA})", EA),
    Formula("executed.flop_matrix", f"512 * ({_MFMA}{_F8})", ("gfx942",)),
    Formula("executed.flop_matrix", f"512 * ({_MFMA}{_F8}{_F6F4})", ("gfx950",)),
    Formula("executed.flop_matrix", f"512 * ({_MFMA}{_F8})", ("gfx950",), "6- and 4-bit products not collected", "lower bound"),
    Formula("executed.flop_matrix", f"512 * ({_MFMA})", EA0, "8-bit products not collected", "lower bound"),
    Formula(
        "executed.integer_operations",
        "64 * (SQ_INSTS_VALU_INT32 + SQ_INSTS_VALU_INT64) + 512 * SQ_INSTS_VALU_MFMA_MOPS_I8",
        CDNA,
    ),
    Formula("executed.per_cycle", "SQ_INSTS / SQ_BUSY_CU_CYCLES", CDNA, "peak 5"),
    # traffic past L2
    Formula("fabric.read_bytes", "32 * TCC_EA_RDREQ_32B_sum + 64 * (TCC_EA_RDREQ_sum - TCC_EA_RDREQ_32B_sum)", EA),
    Formula(
        "fabric.read_bytes",
        "128 * TCC_BUBBLE_sum + 64 * (TCC_EA0_RDREQ_sum - TCC_BUBBLE_sum - TCC_EA0_RDREQ_32B_sum)"
        " + 32 * TCC_EA0_RDREQ_32B_sum",
        ("gfx942",),
    ),
    Formula(
        "fabric.read_bytes",
        "32 * TCC_EA0_RDREQ_32B_sum + 64 * TCC_EA0_RDREQ_64B_sum + 128 * TCC_EA0_RDREQ_128B_sum",
        ("gfx950",),
    ),
    Formula(
        "fabric.read_bytes",
        "128 * (TCC_EA0_RDREQ_sum - TCC_EA0_RDREQ_32B_sum) + 32 * TCC_EA0_RDREQ_32B_sum",
        ("gfx950",),
        "TCC_EA0_RDREQ_{64B,128B} not collected: every request counted as 128 bytes; TCC_BUBBLE is 0 here and would give half",
        "upper bound",
    ),
    Formula("fabric.read_bytes", "1024 * FETCH_SIZE", ("gfx950",), "FETCH_SIZE counts 128-byte requests as 64", "may be half"),
    Formula("fabric.read_bytes", "1024 * FETCH_SIZE"),
    Formula("fabric.write_bytes", "64 * TCC_EA_WRREQ_64B_sum + 32 * (TCC_EA_WRREQ_sum - TCC_EA_WRREQ_64B_sum)", EA),
    Formula("fabric.write_bytes", "64 * TCC_EA0_WRREQ_64B_sum + 32 * (TCC_EA0_WRREQ_sum - TCC_EA0_WRREQ_64B_sum)", EA0),
    Formula("fabric.write_bytes", "1024 * WRITE_SIZE"),
    # between the caches: 128-byte reads on gfx942 and later match the truth of a copy; ROCm's roofline counts 64
    Formula("l2.read_bytes", "64 * TCP_TCC_READ_REQ_sum", EA),
    Formula("l2.read_bytes", "128 * TCP_TCC_READ_REQ_sum", EA0, "128 bytes a request; ROCm's roofline counts 64"),
    Formula("l2.write_bytes", f"64 * (TCP_TCC_WRITE_REQ_sum + {_ATOMICS})", CDNA),
    Formula("l2.bytes", "128 * TCC_REQ_sum", CDNA, "every request counted as a line: up to 1.5 times the bytes of a copy"),
    Formula("l1.line_bytes", "64 * TCP_TOTAL_CACHE_ACCESSES_sum", EA, "tag look-ups, not bytes"),
    Formula("l1.line_bytes", "128 * TCP_TOTAL_CACHE_ACCESSES_sum", EA0, "tag look-ups, not bytes"),
    Formula("l2.hit_rate", "TCC_HIT_sum / (TCC_HIT_sum + TCC_MISS_sum)", CDNA),
    Formula("l2.hit_rate", "L2CacheHit / 100"),
    Formula(
        "l1.hit_rate",
        f"1 - (TCP_TCC_READ_REQ_sum + TCP_TCC_WRITE_REQ_sum + {_ATOMICS}) / TCP_TOTAL_CACHE_ACCESSES_sum",
        CDNA,
        "look-ups that cause no request; can come out negative",
    ),
    Formula("l1.scalar_hit_rate", "SQC_DCACHE_HITS / (SQC_DCACHE_HITS + SQC_DCACHE_MISSES)", CDNA),
    Formula("l1.instruction_hit_rate", "SQC_ICACHE_HITS / (SQC_ICACHE_HITS + SQC_ICACHE_MISSES)", CDNA),
    # LDS: a pass is a cycle; a 4-byte access of one wavefront takes two without conflicts
    Formula("shared.requests", "SQ_INSTS_LDS"),
    Formula("shared.transactions", "SQ_LDS_IDX_ACTIVE"),
    Formula("shared.transactions_ideal", "SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT"),
    Formula("shared.conflicts", "SQ_LDS_BANK_CONFLICT"),
    Formula("shared.conflicts_per_access", "SQ_LDS_BANK_CONFLICT / (SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)"),
    Formula(
        "shared.moved_bytes",
        "64 * (SQ_INSTS_LDS_LOAD_BANDWIDTH + SQ_INSTS_LDS_STORE_BANDWIDTH + SQ_INSTS_LDS_ATOMIC_BANDWIDTH)",
        ("gfx950",),
    ),
    Formula("shared.moved_bytes", "128 * (SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)", CDNA, "128 bytes a pass"),
    Formula("shared.latency_cycles", "SQ_INST_LEVEL_LDS_ACCUM / SQ_INSTS_LDS", CDNA),
    # shares of time
    Formula("busy.shared_conflicts", f"SQ_LDS_BANK_CONFLICT / {_GUI}", CDNA),
    Formula("busy.shared_conflicts", "LDSBankConflict / 100"),
    Formula("busy.shared_conflicts", "LdsBankConflict / 100"),
    Formula("busy.memory", "MemUnitBusy / 100"),
    Formula("busy.shared", f"SQ_LDS_IDX_ACTIVE / {_GUI}", CDNA),
    Formula("busy.vector", f"SQ_ACTIVE_INST_VALU / {_GUI}", CDNA),
    Formula("busy.vector", "VALUBusy / 100"),
    Formula("busy.scalar", f"SQ_ACTIVE_INST_SCA / {_GUI}", CDNA),
    Formula("busy.matrix", f"SQ_VALU_MFMA_BUSY_CYCLES / ({_GUI} * simds)", CDNA, "counted in cycles of SIMD units"),
    Formula("busy.matrix", "MfmaUtil / 100"),
    Formula("occupancy.achieved", f"SQ_LEVEL_WAVES_ACCUM / ({_GUI} * wave_slots)", CDNA),
    Formula("occupancy.achieved", "OccupancyPercent / 100"),
    Formula("vector.active_lanes", "SQ_THREAD_CYCLES_VALU / SQ_ACTIVE_INST_VALU", CDNA),
    # SQ counts these in units of four cycles
    Formula("wave.cycles", "4 * SQ_WAVE_CYCLES", CDNA),
    Formula("wave.active_cycles", "4 * SQ_ACTIVE_INST_ANY", CDNA),
    Formula("wave.dependency_cycles", "4 * SQ_WAIT_ANY", CDNA),
    Formula("wave.issue_cycles", "4 * SQ_WAIT_INST_ANY", CDNA),
    Formula("wave.shared_cycles", "4 * SQ_WAIT_INST_LDS", CDNA),
)  # fmt: skip
"""All formulas; of several for one metric on one architecture the first with all inputs counts."""

STALL_REASONS = {
    "NONE": "selected",
    "NO_INSTRUCTION_AVAILABLE": "no_instruction",
    "ALU_DEPENDENCY": "alu_dependency",
    "WAITCNT": "waitcnt",
    "INTERNAL_INSTRUCTION": "internal_instruction",
    "BARRIER_WAIT": "barrier",
    "ARBITER_NOT_WIN": "not_selected",
    "ARBITER_WIN_EX_STALL": "arbiter_stall",
    "OTHER_WAIT": "misc",
    "SLEEP_WAIT": "sleeping",
}
"""Stall reason of stochastic PC sampling (without its prefix) -> detail of ``stall.*``."""


def launch_metrics(
    passes: Sequence[Mapping[str, float]],
    facts: Mapping[str, float],
    arch: str,
    provenance: Provenance,
    launch: int | None = None,
) -> list[Metric]:
    """Canonical metrics of one launch from the counters of its passes.

    ``facts`` are those of :data:`tileprof.metrics.formula.FACTS` that are known of the whole launch; a pass may hold its own.
    A formula whose inputs all come from one pass uses that one; only otherwise are passes mixed, which its provenance says.
    """
    rows: dict[str, Metric] = {}
    for values in passes:
        for row in derive(FORMULAS, {**facts, **values}, arch, provenance, launch):
            rows.setdefault(row.metric, row)
    if len(passes) > 1:
        merged: dict[str, float] = dict(facts)
        for values in reversed(passes):
            merged.update(values)
        mixed = dataclasses.replace(provenance, detail=f"{provenance.detail}, counters of several passes".strip(", "))
        for row in derive(FORMULAS, merged, arch, mixed, launch):
            best = rows.get(row.metric)
            # one pass alone may only have had a formula that is known to be worse
            if best is None or (best.flag is not None and row.flag is None):
                rows[row.metric] = row
    duration = facts.get("duration_ns", 0.0)
    return [_doubt(row, duration) for row in rows.values()]


def _doubt(row: Metric, duration_ns: float) -> Metric:
    """Flag what is divided by the cycles of a launch too short for that."""
    divided = row.metric.startswith(("busy.", "occupancy.achieved")) and "GRBM_GUI_ACTIVE" in row.provenance.detail
    if divided and row.flag is None and 0 < duration_ns < SHORT_NS:
        return dataclasses.replace(row, flag=SHORT)
    return row
