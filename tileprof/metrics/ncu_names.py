"""Raw counter names of NVIDIA Nsight Compute, per chip where they differ, and the canonical metric each gives.

Two kinds: counters of a whole launch, and values per machine instruction (section SourceCounters).  Units of the second kind
are not to be trusted (sectors labelled ``byte``, samples labelled ``branches``), so none are read there.  Sources: reports of
ncu 2022.4 to 2025.3 and the metric lists of the chips GV100 to GB202.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tileprof.metrics.catalogue import STALL_REASONS


@dataclass(frozen=True, slots=True)
class LaunchCounter:
    """Counter of a whole launch: ``raw`` on most chips, ``by_major`` where a compute capability's major differs.

    ``derived`` counters belong to ncu's own sections and cannot be asked for with ``--metrics`` alone.
    """

    canonical: str
    raw: str
    by_major: Mapping[int, str] = field(default_factory=dict)
    derived: bool = False

    def names(self) -> tuple[str, ...]:
        """Every spelling, the common one first."""
        return (self.raw, *self.by_major.values())

    def name_on(self, major: int | None) -> str:
        """The spelling on a chip of this compute capability."""
        return self.raw if major is None else self.by_major.get(major, self.raw)


LAUNCH_COUNTERS = (
    LaunchCounter("time.profiled_ns", "gpu__time_duration.sum"),
    LaunchCounter("clock.hz", "gpc__cycles_elapsed.avg.per_second"),
    LaunchCounter("dram.read_bytes", "dram__bytes_read.sum", {12: "dram__bytes_op_read.sum"}),
    LaunchCounter("dram.write_bytes", "dram__bytes_write.sum", {12: "dram__bytes_op_write.sum"}),
    LaunchCounter("l2.bytes", "lts__t_bytes.sum"),
    LaunchCounter("l2.hit_rate", "lts__t_sector_hit_rate.pct"),
    LaunchCounter("l1.bytes", "l1tex__t_bytes.sum"),
    LaunchCounter("l1.hit_rate", "l1tex__t_sector_hit_rate.pct"),
    LaunchCounter("occupancy.achieved", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    LaunchCounter("occupancy.theoretical", "sm__maximum_warps_per_active_cycle_pct", derived=True),
    LaunchCounter("registers.per_thread", "launch__registers_per_thread", derived=True),
    LaunchCounter("shared.static_bytes", "launch__shared_mem_per_block_static", derived=True),
    LaunchCounter("shared.dynamic_bytes", "launch__shared_mem_per_block_dynamic", derived=True),
    LaunchCounter("launch.threads_per_block", "launch__block_size", derived=True),
    LaunchCounter("launch.blocks", "launch__grid_size", derived=True),
)
"""Counters of a whole launch that we read."""

SECTIONS = ("LaunchStats", "Occupancy", "SourceCounters")
"""Sections that hold the derived launch counters and the values per instruction."""

INSTRUCTION_COUNTERS = {
    "executed.instructions": "inst_executed",
    "shared.transactions": "memory_l1_wavefronts_shared",
    "shared.transactions_ideal": "memory_l1_wavefronts_shared_ideal",
    "global.sectors": "memory_l2_theoretical_sectors_global",
    "global.sectors_ideal": "memory_l2_theoretical_sectors_global_ideal",
    "stall.samples": "smsp__pcsamp_sample_count",
}
"""Canonical metric -> raw name, one value per machine instruction."""

STALL_PREFIX = "smsp__pcsamp_warps_issue_stalled_"
_STALL_SPELLING = {"no_instruction": "no_instructions"}

STALL_COUNTERS = {f"stall.{reason}": STALL_PREFIX + _STALL_SPELLING.get(reason, reason) for reason in STALL_REASONS}
"""Canonical stall metric -> raw name, one value per sampled machine instruction."""

MEMORY_TYPE = "memory_type"
"""Per instruction: bit mask of the memories it reaches."""
MEMORY_GLOBAL, MEMORY_SHARED = 4, 16

FUNCTION_START = "launch__function_pcs"
"""Address of the kernel's first instruction: in instance 0; in the scalar value, too, before ncu 2025."""

DEVICE_NAME = "device__attribute_display_name"
COMPUTE_CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
GRID = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")
BLOCK = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
PASSES = "profiler__replayer_passes"


def requested(major: int | None = None) -> list[str]:
    """Raw names to ask ncu for on a chip of this compute capability's major (None: unknown); sections bring the rest."""
    launch = [counter.name_on(major) for counter in LAUNCH_COUNTERS if not counter.derived]
    return [*launch, *INSTRUCTION_COUNTERS.values()]
