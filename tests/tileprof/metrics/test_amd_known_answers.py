"""AMD's formulas against kernels whose truth is known, in real files and in counters that were published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tileprof.collect import rocprof_compute_file
from tileprof.collect.profile import ForeignLaunch
from tileprof.metrics import amd
from tileprof.metrics.plausible import IMPLAUSIBLE_CLOCK, flag_implausible
from tileprof.store.records import Metric, Provenance

TRUTH = 8 * 2**20  # a copy of 2^20 doubles: bytes read, and bytes written
TOOL = Provenance("measured", "rocprof-compute", "")
FOLDERS = {
    "gfx908": "omniperf2.0_vcopy_MI100",
    "gfx90a": "omniperf2.0_vcopy_MI200",
    "mi300a": "omniperf2.0_vcopy_MI300A_A1",
    "gfx942": "omniperf2.0_vcopy_MI300X_A1",
    "gfx950": "rocprofcompute3.1_vcopy_MI350",
}


@pytest.fixture(scope="module")
def vcopy(profiles: Path) -> dict[str, ForeignLaunch]:
    """The third launch of the copy on each GPU."""
    folder = profiles / "amd" / "rocprof_compute"
    return {arch: rocprof_compute_file.read(folder / name).launches[2] for arch, name in FOLDERS.items()}


@pytest.mark.parametrize("arch", FOLDERS)
def test_waves_are_exact(vcopy: dict[str, ForeignLaunch], arch: str) -> None:
    assert vcopy[arch].values["launch.warps"] == 16384
    assert vcopy[arch].values["launch.blocks"] == 4096
    assert vcopy[arch].values["launch.threads_per_block"] == 256


@pytest.mark.parametrize(
    ("arch", "bytes_read", "bytes_written"),
    [
        ("gfx90a", 64 * 131087, 64 * 91113),
        ("gfx942", 128 * 65536 + 64 * 222, 64 * 131072),
        ("gfx950", 128 * 65612, 64 * 131072),
    ],
)
def test_traffic_past_l2(vcopy: dict[str, ForeignLaunch], arch: str, bytes_read: float, bytes_written: float) -> None:
    values = vcopy[arch].values
    assert values["fabric.read_bytes"] == bytes_read
    assert values["fabric.read_bytes"] == pytest.approx(TRUTH, rel=2e-3)
    assert values["fabric.write_bytes"] == bytes_written


def test_reads_on_gfx950_are_flagged_where_request_sizes_were_not_collected(vcopy: dict[str, ForeignLaunch]) -> None:
    (row,) = [m for m in vcopy["gfx950"].metrics if m.metric == "fabric.read_bytes"]
    assert row.flag == "upper bound"
    assert "TCC_BUBBLE" in row.provenance.detail
    # what the formula of gfx942 would have given: half the truth
    raw = vcopy["gfx950"].raw
    assert 128 * raw["TCC_BUBBLE_sum"] + 64 * (raw["TCC_EA0_RDREQ_sum"] - raw["TCC_BUBBLE_sum"]) == 64 * 65612


def test_gfx950_takes_request_sizes_where_they_are() -> None:
    values = {"TCC_EA0_RDREQ_32B_sum": 2.0, "TCC_EA0_RDREQ_64B_sum": 10.0, "TCC_EA0_RDREQ_128B_sum": 65536.0}
    (row,) = amd.launch_metrics([values], {}, "gfx950", TOOL)
    assert (row.value, row.flag) == (2 * 32 + 10 * 64 + 65536 * 128, None)


@pytest.mark.parametrize("arch", FOLDERS)
def test_between_the_caches_both_ways_are_exact(vcopy: dict[str, ForeignLaunch], arch: str) -> None:
    assert vcopy[arch].values["l2.read_bytes"] == TRUTH
    assert vcopy[arch].values["l2.write_bytes"] == TRUTH


def test_a_request_of_the_second_level_cache_is_no_line(vcopy: dict[str, ForeignLaunch]) -> None:
    for arch, expected in (("gfx90a", 25.7e6), ("gfx942", 25.2e6), ("gfx950", 25.3e6)):
        assert vcopy[arch].values["l2.bytes"] == pytest.approx(expected, rel=5e-3)
        (row,) = [m for m in vcopy[arch].metrics if m.metric == "l2.bytes"]
        assert "1.5 times" in row.provenance.detail


def test_look_ups_of_the_first_level_cache_are_no_bytes(vcopy: dict[str, ForeignLaunch]) -> None:
    assert vcopy["gfx90a"].values["l1.line_bytes"] == 4 * TRUTH
    assert vcopy["gfx942"].values["l1.line_bytes"] == 8 * TRUTH
    assert "l1.bytes" not in vcopy["gfx942"].values


def test_shader_engines_follow_from_two_cycle_counters(vcopy: dict[str, ForeignLaunch]) -> None:
    for arch, engines in (("gfx908", 8), ("gfx90a", 8), ("gfx942", 4)):
        raw = vcopy[arch].raw
        assert raw["SQ_CYCLES"] / raw["GRBM_GUI_ACTIVE"] == pytest.approx(engines, rel=1e-3)


def test_rounded_times_give_no_duration(vcopy: dict[str, ForeignLaunch]) -> None:
    values = vcopy["gfx942"].values
    assert "time.profiled_ns" not in values, "8.1097E+14 twice is not 0 ns"
    assert "clock.hz" not in values
    assert any("rounded" in note for note in vcopy["gfx942"].notes)


def test_the_implied_clock_of_short_launches_is_flagged(vcopy: dict[str, ForeignLaunch]) -> None:
    def clock(arch: str) -> Metric:
        launch = vcopy[arch]
        (row,) = [m for m in flag_implausible(launch.metrics, launch.max_clock_hz) if m.metric == "clock.hz"]
        return row

    assert clock("gfx90a").value == pytest.approx(41603 / 15520 * 1e9)
    assert clock("gfx90a").flag == IMPLAUSIBLE_CLOCK, "2.7 GHz on a GPU of 1.7 GHz"
    gfx950 = vcopy["gfx950"]
    assert gfx950.max_clock_hz is None, "max_sclk is 0 there, which is no clock"
    assert 0.45e9 < gfx950.values["clock.hz"] < 0.48e9
    (row,) = [m for m in flag_implausible(gfx950.metrics, 2.4e9) if m.metric == "clock.hz"]
    assert row.flag == IMPLAUSIBLE_CLOCK


def test_shares_of_time_of_short_launches_are_flagged(vcopy: dict[str, ForeignLaunch]) -> None:
    busy = [m for m in vcopy["gfx90a"].metrics if m.metric.startswith("busy.")]
    assert {m.flag for m in busy} == {amd.SHORT}


def test_occupancy_takes_both_counters_from_one_pass(vcopy: dict[str, ForeignLaunch]) -> None:
    (row,) = [m for m in vcopy["gfx90a"].metrics if m.metric == "occupancy.achieved"]
    assert row.value == pytest.approx(79703012 / (40812 * 104 * 32))
    assert "several passes" not in row.provenance.detail


def test_an_accumulated_counter_that_is_not_there_leaves_occupancy_missing(vcopy: dict[str, ForeignLaunch]) -> None:
    assert "occupancy.achieved" not in vcopy["gfx950"].values


# batched matrix product on an MI300X: 2 * 128 * 512 * 128 * 128 operations (rocprof-compute 3.3.1 sample)
BATCHED = {
    "SQ_INSTS_VALU_MFMA_MOPS_F16": 0.0,
    "SQ_INSTS_VALU_MFMA_MOPS_BF16": 4194304.0,
    "SQ_INSTS_VALU_MFMA_MOPS_F32": 0.0,
    "SQ_INSTS_VALU_MFMA_MOPS_F64": 0.0,
    "SQ_INSTS_VALU_MFMA_MOPS_F8": 0.0,
    "SQ_VALU_MFMA_BUSY_CYCLES": 4194304.0,
    "SQ_LDS_BANK_CONFLICT": 1835008.0,
    "SQ_LDS_IDX_ACTIVE": 2621440.0,
}


def batched(**facts: float) -> dict[str, float]:
    return {row.metric: row.value for row in amd.launch_metrics([BATCHED], facts, "gfx942", TOOL)}


def test_512_operations_a_mops_are_exact() -> None:
    assert batched()["executed.flop_matrix"] == 2 * 128 * 512 * 128 * 128 == 2_147_483_648


def test_busy_cycles_are_those_of_simd_units() -> None:
    # 2048 FLOP a clock and CU: the units were busy exactly as long as the work takes on one CU's four
    assert BATCHED["SQ_VALU_MFMA_BUSY_CYCLES"] == batched()["executed.flop_matrix"] / 2048 * 4


def test_lds_figures() -> None:
    values = batched()
    assert values["shared.transactions_ideal"] == 786432
    assert values["shared.conflicts"] == 1835008
    assert values["shared.conflicts_per_access"] == pytest.approx(2.3333, abs=1e-4)
    assert 3.125 * values["shared.conflicts_per_access"] == pytest.approx(7.29, abs=5e-3)
    assert values["shared.moved_bytes"] == pytest.approx(100.7e6, rel=1e-3)


def test_conflicts_per_access_without_accesses_are_undefined() -> None:
    values = {"SQ_LDS_BANK_CONFLICT": 0.0, "SQ_LDS_IDX_ACTIVE": 0.0}
    rows = {row.metric: row.value for row in amd.launch_metrics([values], {}, "gfx942", TOOL)}
    assert rows["shared.conflicts"] == 0
    assert "shared.conflicts_per_access" not in rows


def test_without_8_bit_counters_the_sum_is_a_lower_bound() -> None:
    values = {name: value for name, value in BATCHED.items() if not name.endswith("_F8")}
    rows = {row.metric: row for row in amd.launch_metrics([values], {}, "gfx942", TOOL)}
    assert rows["executed.flop_matrix"].flag == "lower bound"


def test_flops_of_vector_units_count_a_fused_multiply_add_twice() -> None:
    names = [f"SQ_INSTS_VALU_{op}_{t}" for t in ("F16", "F32", "F64") for op in ("ADD", "MUL", "TRANS", "FMA")]
    values = dict.fromkeys(names, 0.0) | {"SQ_INSTS_VALU_FMA_F32": 10.0, "SQ_INSTS_VALU_ADD_F64": 1.0}
    (row,) = amd.launch_metrics([values], {}, "gfx90a", TOOL)
    assert (row.metric, row.value) == ("executed.flop_vector", 64 * 21)


def test_cycles_are_divided_by_the_dies() -> None:
    rows = {
        row.metric: row.value
        for row in amd.launch_metrics([{"GRBM_GUI_ACTIVE": 8000.0}], {"xcc": 8.0, "duration_ns": 500.0}, "gfx942", TOOL)
    }
    assert rows["cycles.elapsed"] == 1000
    assert rows["clock.hz"] == 2e9


def test_ratios_of_several_passes_are_kept_and_flagged_above_one() -> None:
    passes = [{"SQ_ACTIVE_INST_VALU": 2000.0}, {"GRBM_GUI_ACTIVE": 10.0}]
    facts = {"xcc": 1.0, "cu": 100.0, "duration_ns": 1e6}
    rows = {row.metric: row for row in amd.launch_metrics(passes, facts, "gfx90a", TOOL)}
    assert rows["busy.vector"].value == 2.0
    assert rows["busy.vector"].flag == "out of range"
    assert "several passes" in rows["busy.vector"].provenance.detail


def test_a_negative_hit_rate_is_flagged() -> None:
    values = {
        "TCP_TCC_READ_REQ_sum": 30.0, "TCP_TCC_WRITE_REQ_sum": 0.0, "TCP_TCC_ATOMIC_WITH_RET_REQ_sum": 0.0,
        "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum": 0.0, "TCP_TOTAL_CACHE_ACCESSES_sum": 20.0,
    }  # fmt: skip
    rows = {row.metric: row for row in amd.launch_metrics([values], {}, "gfx942", TOOL)}
    assert (rows["l1.hit_rate"].value, rows["l1.hit_rate"].flag) == (-0.5, "out of range")


def test_names_follow_the_architecture() -> None:
    old = {"TCC_EA_RDREQ_sum": 10.0, "TCC_EA_RDREQ_32B_sum": 0.0}
    assert [row.value for row in amd.launch_metrics([old], {}, "gfx90a", TOOL)] == [640]
    assert amd.launch_metrics([old], {}, "gfx942", TOOL) == []
