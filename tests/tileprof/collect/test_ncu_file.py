from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tileprof.collect.ncu_file import KernelProfile, NcuReport, read
from tileprof.errors import ProfileFormatError, ProfilerUnavailable

Sample = Callable[[str], Path]


@pytest.fixture(scope="module")
def h200(ncu_sample: Sample) -> NcuReport:
    return read(ncu_sample("h200_bank_conflicts_2025.3"))


@pytest.fixture(scope="module")
def conf8(h200: NcuReport) -> KernelProfile:
    (kernel,) = h200.of_symbol("_Z11conf_kernelILi8EEvPKfPfi")
    return kernel


def by_line(kernel: KernelProfile, metric: str) -> dict[int | None, float]:
    sums: dict[int | None, float] = defaultdict(float)
    for instruction in kernel.instructions:
        if metric in instruction.values:
            sums[instruction.line] += instruction.values[metric]
    return dict(sums)


def test_version_and_kernels(h200: NcuReport) -> None:
    assert h200.version == "2025.3.1"
    assert [kernel.name.partition("(")[0] for kernel in h200.kernels][-1] == "vec4"
    assert len(h200.kernels) == 5


def test_launch_facts(conf8: KernelProfile) -> None:
    assert (conf8.index, conf8.device, conf8.compute_capability) == (3, "NVIDIA H200", (9, 0))
    assert (conf8.grid, conf8.block, conf8.passes) == ((4096, 1, 1), (256, 1, 1), 38)
    values = {m.metric: m.value for m in conf8.metrics}
    assert values["time.profiled_ns"] == 92192
    assert values["registers.per_thread"] == 23
    assert values["shared.static_bytes"] == 32768
    assert values["launch.blocks"] == 4096
    assert values["dram.read_bytes"] == 4200960
    assert values["occupancy.achieved"] == pytest.approx(0.6886455)
    assert values["occupancy.theoretical"] == pytest.approx(0.75)
    assert values["clock.hz"] == pytest.approx(1.4994346e9)
    assert values["l2.bytes"] == 32 * 423103, "lts__t_bytes.sum was not collected there, but sectors were"
    assert "l1.bytes" not in values, "l1tex__t_bytes.sum was not collected there: missing, not 0"


def test_every_number_says_where_it_comes_from(conf8: KernelProfile) -> None:
    for metric in (*conf8.metrics, *conf8.total_metrics()):
        assert (metric.provenance.tool, metric.provenance.version) == ("ncu", "2025.3.1")
        assert metric.provenance.kind in ("measured", "derived")
        assert "38 passes" in metric.provenance.detail
        assert metric.provenance.kind == "measured" or any(sign in metric.provenance.detail for sign in "+-*/")
        assert metric.launch == 3


def test_bank_conflicts_that_are_known_by_construction(conf8: KernelProfile) -> None:
    assert by_line(conf8, "shared.transactions_ideal") == {5: 32768, 6: 2097152}
    assert by_line(conf8, "shared.transactions") == {5: 262144, 6: 16777216}
    conflicts = next(m for m in conf8.total_metrics() if m.metric == "shared.conflicts")
    assert conflicts.value == 262144 + 16777216 - 32768 - 2097152


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (4, 4), (8, 8)])
def test_conflicts_grow_with_the_stride(h200: NcuReport, stride: int, ways: int) -> None:
    (kernel,) = h200.of_symbol(f"_Z11conf_kernelILi{stride}EEvPKfPfi")
    assert kernel.totals["shared.transactions"] == ways * kernel.totals["shared.transactions_ideal"]


def test_offsets_count_from_the_first_instruction(conf8: KernelProfile) -> None:
    offsets = [instruction.offset for instruction in conf8.instructions]
    assert offsets == [16 * i for i in range(len(offsets))]
    assert conf8.instructions[0].text == "LDC R1, c[0x0][0x28]"
    store = next(i for i in conf8.instructions if i.text.startswith("STS"))
    assert (store.offset, store.line, store.memory) == (0x230, 5, 16)
    assert store.file is not None
    assert store.file.endswith("kernel.py")


def test_totals_are_the_sums_of_the_instructions(h200: NcuReport, ncu_sample: Sample) -> None:
    a100 = read(ncu_sample("a100_imma_gemm_full_source_2024.1"))
    for kernel in (*h200.kernels, *a100.kernels):
        for metric, total in kernel.totals.items():
            assert sum(i.values.get(metric, 0) for i in kernel.instructions) == total, (kernel.name, metric)


def test_older_report_with_asynchronous_copies(ncu_sample: Sample) -> None:
    gemm, reference = read(ncu_sample("a100_imma_gemm_full_source_2024.1")).kernels
    assert (gemm.totals["shared.transactions"], gemm.totals["shared.transactions_ideal"]) == (45312, 34944)
    copies = [i for i in gemm.instructions if "LDGSTS" in i.text]
    assert sum(i.values["shared.transactions"] for i in copies) == 14592
    assert {i.memory for i in copies} == {20}
    assert (reference.totals["global.sectors"], reference.totals["global.sectors_ideal"]) == (31868928, 3548160)
    assert gemm.instructions[0].offset == 0


def test_an_interrupted_profile_is_missing_and_not_zero(ncu_sample: Sample) -> None:
    report = read(ncu_sample("h800_interrupted_nan_2023.3"))
    *good, broken = report.kernels
    assert [kernel.complete for kernel in report.kernels] == [True] * 4 + [False]
    assert broken.symbol.startswith("_Z16flash_fwd_kernel")
    assert (broken.metrics, broken.totals, broken.instructions) == ((), {}, ())
    assert (broken.grid, broken.block) == (None, None)
    assert {"time.profiled_ns", "dram.read_bytes", "occupancy.achieved"} <= set(broken.missing)
    assert all(kernel.totals["executed.instructions"] > 0 for kernel in good)


def test_a_report_without_values_per_instruction(ncu_sample: Sample) -> None:
    report = read(ncu_sample("gtx1660ti_basic_2022.4"))
    assert report.version == "2022.4.0"
    first = report.kernels[0]
    assert (first.instructions, first.totals) == ((), {})
    assert {m.metric: m.value for m in first.metrics}["time.profiled_ns"] == 1600


def test_a_missing_or_damaged_file_is_an_error(tmp_path: Path, ncu_sample: Sample) -> None:
    with pytest.raises(ProfileFormatError, match="there is no report"):
        read(tmp_path / "none.ncu-rep")
    whole = ncu_sample("gtx1660ti_basic_2022.4").read_bytes()
    path = tmp_path / "damaged.ncu-rep"
    for content in (b"", b"==ERROR== no report", whole[:3000], whole[: len(whole) // 4]):
        path.write_bytes(content)
        with pytest.raises(ProfileFormatError):
            read(path)


def test_a_cut_file_keeps_its_whole_launches_and_says_so(tmp_path: Path, ncu_sample: Sample) -> None:
    whole = ncu_sample("gtx1660ti_basic_2022.4")
    assert not read(whole).truncated
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    report = read(path)
    assert report.truncated
    assert [kernel.symbol for kernel in report.kernels] == ["_Z9warmingUpPf"]


def test_without_the_package_the_remedy_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(ProfilerUnavailable, match=r"tileprof\[ncu\]"):
        read(tmp_path / "any.ncu-rep")


def test_counters_that_are_asked_for_by_name(ncu_sample: Sample) -> None:
    report = read(ncu_sample("gtx1660ti_basic_2022.4"), ["gpu__time_duration.sum", "no__such.sum"])
    (row,) = report.kernels[0].raw_metrics()
    assert (row.metric, row.launch) == ("raw.gpu__time_duration.sum", 0)
    assert row.value > 0


def test_values_that_cannot_be_are_flagged_when_they_are_read(ncu_sample: Sample) -> None:
    """A clock above the device's: the sample's maximum is 1.83 GHz."""
    from tileprof.metrics.plausible import CLOCK_RANGE

    for kernel in read(ncu_sample("gtx1660ti_basic_2022.4")).kernels:
        (clock,) = [m for m in kernel.metrics if m.metric == "clock.hz"]
        low, high = (share * 1.83e9 for share in CLOCK_RANGE)
        assert (clock.flag is None) == (low <= clock.value <= high)
