"""Which hardware block of an AMD GPU counts what, and how many counters of a block fit into one pass.

The limits are those of ROCm's own planner (rocprof-compute's SoC tables, the same for gfx908, gfx90a, gfx942 and gfx950).  A pass
above a limit is refused by the driver at the first dispatch with error code 38, after the program has started.
"""

from __future__ import annotations

import re

BLOCK_LIMITS = {
    "SQ": 8,
    "TA": 2,
    "TD": 2,
    "TCP": 4,
    "TCC": 4,
    "CPC": 2,
    "CPF": 2,
    "SPI": 6,
    "GRBM": 2,
    "GDS": 4,
    "ACCUM": 1,
}
"""Counters of a block that one pass can collect.  SQC counters are among SQ's eight; ACCUM stands for the one accumulation of a
level counter that ROCm's own planner puts into a pass."""

_SHARED = {"SQC": "SQ"}
"""Blocks whose counters take the places of another one."""

DERIVED = {
    "FETCH_SIZE": ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum"),
    "WRITE_SIZE": ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum"),
    "LdsBankConflict": ("SQ_LDS_BANK_CONFLICT", "GRBM_GUI_ACTIVE"),
    "LDSBankConflict": ("SQ_LDS_BANK_CONFLICT", "GRBM_GUI_ACTIVE"),
    "MfmaUtil": ("SQ_VALU_MFMA_BUSY_CYCLES", "GRBM_GUI_ACTIVE"),
    "OccupancyPercent": ("SQ_WAVE_CYCLES", "GRBM_GUI_ACTIVE"),
    "VALUBusy": ("SQ_ACTIVE_INST_VALU", "GRBM_GUI_ACTIVE"),
    "L2CacheHit": ("TCC_HIT_sum", "TCC_MISS_sum"),
}
"""Metrics that ROCm's profilers derive themselves -> the counters they take for it."""


CYCLES = "GRBM_GUI_ACTIVE"
"""Cycles in which the GPU was busy: the clock of all other counters."""

ACCUMULATE = "SQ_ACCUM_PREV_HIRES"
"""Behind a level counter: that counter added up each cycle (rocprof v1 and rocprof-compute)."""

NOT_IN_V1 = ("SQ_INSTS_VALU_MFMA_MOPS_F8", "SQ_INSTS_VALU_MFMA_MOPS_F6F4")
"""Counters that rocprof v1 and v2 do not know."""


def block_of(counter: str) -> str | None:
    """The block whose places a counter takes; None for one that is not known: ``block_of("SQC_DCACHE_HITS") == "SQ"``."""
    found = re.match(r"[A-Z]+", counter)
    if found is None or "_" not in counter:
        return None
    block = _SHARED.get(found[0], found[0])
    return block if block in BLOCK_LIMITS else None


def places(counter: str) -> dict[str, int] | None:
    """Places that a counter takes in each block, its base counters if it is a derived metric; None where it is not known."""
    counts: dict[str, int] = {}
    # an accumulation takes its counter's place and one more, directly behind it
    base = counter.removesuffix("_ACCUM")
    for name in DERIVED.get(counter, (base,) if base == counter else (base, base)):
        block = block_of(name)
        if block is None:
            return None
        counts[block] = counts.get(block, 0) + 1
    if base != counter:
        counts["ACCUM"] = 1
    return counts
