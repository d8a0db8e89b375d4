from __future__ import annotations

import pytest

from tileprof.metrics import nvidia
from tileprof.metrics.ncu_chips import OF_NCU, base_names, problem, problems
from tileprof.store.records import Provenance

TOOL = Provenance("measured", "ncu", "2025.3.1")


@pytest.fixture(scope="module")
def chips() -> dict[str, frozenset[str]]:
    """Base metric names of each architecture, as nvperf_host of CUDA 13.4 lists them."""
    return {arch: base_names(arch) for arch in nvidia.ARCHITECTURES}


def test_every_counter_that_is_named_for_an_architecture_is_on_its_chip(chips: dict[str, frozenset[str]]) -> None:
    wrong = [
        (arch, name)
        for formula in nvidia.FORMULAS
        if formula.arches
        for arch in formula.arches
        for name in formula.counters
        if not name.startswith(OF_NCU) and name.partition(".")[0] not in chips[arch]
    ]
    assert wrong == []


def test_every_metric_has_a_formula_with_names_of_each_chip(chips: dict[str, frozenset[str]]) -> None:
    """For what hardware counts, each architecture from sm_75 to sm_120 has a formula all of whose names it has."""
    metrics = {f.metric for f in nvidia.FORMULAS if not all(name.startswith(OF_NCU) for name in f.counters)}
    for arch in nvidia.ARCHITECTURES:
        known = chips[arch]
        for metric in metrics:
            usable = [
                f
                for f in nvidia.FORMULAS
                if f.metric == metric and f.holds_on(arch)
                and all(name.startswith(OF_NCU) or name.partition(".")[0] in known for name in f.counters)
            ]  # fmt: skip
            assert usable, f"{metric} on {arch}"


def test_dram_names_follow_the_chip() -> None:
    new = {"dram__bytes_op_read.sum": 64.0}
    assert [m.value for m in nvidia.launch_metrics(new, "sm_120", TOOL)] == [64]
    assert nvidia.launch_metrics(new, "sm_90", TOOL) == []
    # ncu 2025 shows the old name on sm_120, too
    assert [m.value for m in nvidia.launch_metrics({"dram__bytes_read.sum": 32.0}, "sm_120", TOOL)] == [32]


def test_both_spellings_of_the_stall_without_instructions() -> None:
    (row,) = nvidia.launch_metrics({"smsp__pcsamp_warps_issue_stalled_no_instructions": 5.0}, "sm_90", TOOL)
    assert row.metric == "stall.no_instruction"


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("HMMA.16816.F32", ("executed.flop_matrix", 2 * 16 * 8 * 16)),
        ("HMMA.16816.F32.BF16", ("executed.flop_matrix", 4096)),
        ("HMMA.1688.F32.TF32", ("executed.flop_matrix", 2 * 16 * 8 * 8)),
        ("IMMA.16832.S8.S8.SAT", ("executed.integer_matrix", 2 * 16 * 8 * 32)),
        ("DMMA.8x8x4", None),
        ("DMMA.884", ("executed.flop_matrix", 2 * 8 * 8 * 4)),
        ("HGMMA.64x256x16.F32.BF16", ("executed.flop_matrix", 2 * 64 * 256 * 16 / 4)),
        ("HMMA.884.F32.F32", None),
        ("FFMA", None),
        ("HADD2.F32", None),
    ],
)
def test_operations_of_matrix_instructions(opcode: str, expected: tuple[str, float] | None) -> None:
    assert nvidia.matrix_operations(opcode) == expected


def test_matrix_instructions_of_unknown_shape_make_a_lower_bound() -> None:
    (row,) = nvidia.opcode_metrics({"HMMA.16816.F32": 2.0, "HMMA.884.F32": 1.0, "FADD": 9.0}, TOOL)
    assert (row.value, row.flag) == (8192, "lower bound")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (6.75, "us", 6750),
        (2.33, "Mbyte", 2.33e6),
        (13.72, "Ghz", 13.72e9),
        (345.14, "Gbyte/s", 345.14e9),
        (19.66, "%", 19.66),
        (5.0, "", 5),
        (1.5, "msecond", 1.5e6),
        (1.2, "cycle/nsecond", 1.2e9),
        (7.0, "Kbyte/block", 7000),
    ],
)
def test_scaled_units(value: float, unit: str, expected: float) -> None:
    assert nvidia.base_value(value, unit) == pytest.approx(expected)


def test_dense_peaks_of_a_report() -> None:
    values = {
        "dram__bytes.sum.peak_sustained": 1504.0,
        "dram__cycles_elapsed.avg.per_second": 3.184e9,
        "sm__cycles_elapsed.avg.per_second": 1.51e9,
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained": 540672.0,
        "sm__ops_path_tensor_op_hgmma_src_fp16.sum.peak_sustained": 1081344.0,
    }
    roofs = {(c.quantity, c.unit_class): c.value for c in nvidia.ceilings(values, "cuda:sm_90", "ncu")}
    assert roofs["dram.bytes_per_s", ""] == pytest.approx(4.79e12, rel=1e-3)
    assert roofs["flops_per_s", "matrix.float16"] == pytest.approx(816e12, rel=1e-3), "not the sparse peak"


@pytest.mark.parametrize(
    ("name", "arch", "says"),
    [
        ("dram__bytes.sum.per_second", "sm_90a", None),
        ("lts__t_sector_hit_rate.pct", "sm_80", None),
        ("launch__grid_size", "sm_80", None),
        ("memory_l1_wavefronts_shared_ideal", "sm_90", None),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm_120", None),
        ("anything__at_all", "sm_999", None),
        ("dram__bytes_read.sum", "sm_120", "it is on"),
        ("sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm_90", "is no counter of sm_90"),
        ("dram__byte.sum", "sm_80", "did you mean dram__bytes"),
        ("dram__bytes", "sm_80", "lacks its end: a counter takes .sum"),
        ("dram__bytes.total", "sm_80", "ends in .total"),
        ("lts__t_sector_hit_rate.sum", "sm_80", "a ratio takes .ratio, .pct"),
    ],
)
def test_names_are_checked_before_anything_runs(name: str, arch: str, says: str | None) -> None:
    found = problem(name, arch)
    assert (found is None) if says is None else (found is not None and says in found)


def test_all_names_that_we_ask_for_are_on_their_chip() -> None:
    from tileprof.metrics.catalogue import METRICS
    from tileprof.metrics.ncu_names import requested

    for arch in nvidia.ARCHITECTURES:
        major = int(arch.removeprefix("sm_")[:-1])
        assert problems(requested(major), arch) == [], arch
        assert problems(nvidia.requested_for(METRICS, arch), arch) == [], arch


def test_counters_for_metrics_that_a_workload_asks_for() -> None:
    assert nvidia.requested_for(["busy.matrix", "stall.barrier", "spill.store_bytes"], "sm_90") == (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    )
    assert nvidia.requested_for(["dram.read_bytes"], "sm_120") == ("dram__bytes_op_read.sum",)
