"""Real files of NVIDIA's profilers, with values that are known from their programs or from the reports themselves."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tileprof.collect import anything, ncu_csv, nsys_file
from tileprof.collect.profile import ForeignLaunch, ForeignProfile
from tileprof.collect.ranges import RangeIndex
from tileprof.errors import MeasurementInvalid, ProfileFormatError

Sample = Callable[[str], Path]


@pytest.fixture(scope="module")
def nvidia(profiles: Path) -> Path:
    return profiles / "nvidia"


@cache
def one(path: Path) -> ForeignProfile:
    """The profile in a file that no test changes."""
    (profile,) = anything.read(path)
    return profile


# --- ncu CSV ---------------------------------------------------------------------------------------------------------


def test_details_page_with_separators_and_brackets_in_a_name(nvidia: Path) -> None:
    profile = one(nvidia / "ncu-csv" / "t4_details_numba_kernel.csv")
    (launch,) = profile.launches
    assert profile.format == "ncu CSV, details page"
    assert launch.kernel.startswith(
        "copy_blocked[v1,cw51cXTLSUwv1sDUaKthrqNgqqmjgOR3W3CwAkMXLaJtQYkOIgxJU0gCqOkEJoHkbttqdVhoqlspQGNFHSgJ5BnXagIA](Array<"
    )
    assert (launch.target, launch.grid, launch.block) == ("cuda:sm_75", (1024, 1, 1), (256, 1, 1))
    values = launch.values
    assert values["time.profiled_ns"] == 21_058_944
    assert values["cycles.elapsed"] == 12_319_469
    assert values["clock.memory_hz"] == 4_963_609_951.19
    assert values["executed.instructions"] == 16_105_472
    assert values["occupancy.achieved"] == pytest.approx(0.9626)
    # "Memory Throughput" is a share in one section and bytes a second in another
    assert values["busy.memory"] == pytest.approx(0.6184)


def test_scaled_units_and_names_that_a_chip_does_not_have(nvidia: Path) -> None:
    profile = one(nvidia / "ncu-csv" / "rtx5090_details_mixed_na.csv")
    (launch,) = profile.launches
    values = launch.values
    assert launch.target == "cuda:sm_120"
    assert values["time.profiled_ns"] == 6750
    assert values["dram.read_bytes"] == pytest.approx(2.33e6)
    assert values["dram.write_bytes"] == 0
    assert values["clock.hz"] == pytest.approx(1.99e9)
    assert values["occupancy.theoretical"] == pytest.approx(0.1667)
    assert "executed.flop_matrix" not in values, "one type of several is no sum"
    assert "flop_count_hp.sum" in profile.notes[0]
    assert "0 % occupancy" not in repr(profile.notes), "no cluster was launched: that is not 0 %"
    metrics_only = one(nvidia / "ncu-csv" / "rtx5090_metrics_only.csv").launches[0].values
    assert {name: values[name] for name in metrics_only} == metrics_only


def test_roofs_of_the_roofline_section(nvidia: Path) -> None:
    profile = one(nvidia / "ncu-csv" / "rtx5090_roofline_section_body_items.csv")
    roofs = {(c.quantity, c.unit_class): c.value for c in profile.ceilings}
    assert roofs["dram.bytes_per_s", ""] == pytest.approx(1756e9, rel=1e-3)
    assert roofs["flops_per_s", "vector.float32"] == pytest.approx(43520 * 2.15e9)
    assert roofs["flops_per_s", "vector.float64"] == pytest.approx(680 * 2.15e9)


def known(launches: tuple[ForeignLaunch, ...]) -> ForeignLaunch:
    """The launch of conf_kernel<8>, whatever the tool calls it."""
    (found,) = [one for one in launches if "conf_kernel<8>" in one.kernel.replace("(int)", "")]
    return found


def test_raw_page_agrees_with_the_report(nvidia: Path, ncu_sample: Sample) -> None:
    table = known(one(nvidia / "h200-measured" / "bank_conflicts.ncu-raw.csv").launches)
    report = known(one(ncu_sample("h200_bank_conflicts_2025.3")).launches)
    assert table.values["shared.transactions"] == 262_144 + 16_777_216
    assert table.values["shared.transactions_ideal"] == 32_768 + 2_097_152
    assert table.values["shared.conflicts"] == 14_909_440
    # the hardware's counter has arbitration in it, and is a metric of its own
    assert table.values["shared.conflicts_hardware"] > table.values["shared.conflicts"]
    assert table.max_clock_hz == report.max_clock_hz == 1.98e9
    for name, value in report.values.items():
        if name in table.values:
            assert table.values[name] == pytest.approx(value, rel=1e-4), name
    assert len(set(report.values) & set(table.values)) > 40
    assert table.values["executed.flop_vector"] == pytest.approx(2**27, rel=1e-6), "a multiply-add for each element"


def test_source_page_has_values_by_instruction(nvidia: Path) -> None:
    profile = one(nvidia / "h200-measured" / "bank_conflicts.ncu-source.csv")
    launch = known(profile.launches)
    stores = [line for line in launch.lines if line.text.startswith("STS") or " STS" in line.text]
    loads = [line for line in launch.lines if line.text.startswith("LDS")]
    assert sum(line.values["shared.transactions"] for line in stores) == 262_144
    assert sum(line.values["shared.transactions"] for line in loads) == 16_777_216
    assert launch.values["executed.instructions"] == 9_043_968


def test_output_of_the_program_before_and_between_rows() -> None:
    text = (
        "==PROF== Connected to process 7\nhello, \"world\"\n==WARNING== careful\n"
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","7","a.out","box","k(int)","s","gpu__time_duration.sum","us","1.50"\n'
        "==PROF== Profiling\n"
        '"1","7","a.out","box","k(int)","s","gpu__time_duration.sum","nsecond","2,000"\n'
    )  # fmt: skip
    path = Path("x.csv")
    table = ncu_csv.csv_rows.parse(ncu_csv._from_header(text), path, starts=("id",), pad=True)
    launches, _ = ncu_csv._details(table)
    assert [launch.values["time.profiled_ns"] for launch in launches] == [1500, 2000]


def test_ncu_says_nothing_was_profiled_and_ends_with_status_0(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("==PROF== Connected\n==WARNING== No kernels were profiled.\n")
    with pytest.raises(MeasurementInvalid, match="profiled no kernel"):
        anything.read(path)


def test_a_table_without_rows_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('"ID","Process ID","Kernel Name","Metric Name","Metric Value"\n')
    with pytest.raises(ProfileFormatError, match="no launch"):
        anything.read(path)


# --- ncu reports -----------------------------------------------------------------------------------------------------


def test_operations_of_matrix_units_are_exact(ncu_sample: Sample) -> None:
    gemm = one(ncu_sample("a100_imma_gemm_full_source_2024.1")).launches[0]
    assert gemm.values["executed.integer_matrix"] == 2 * 384**3
    assert gemm.ranges == ("NCUTEST",)
    assert gemm.values["shared.transactions"] == 45312
    assert gemm.values["shared.conflicts"] == 45312 - 34944


def test_sources_and_lines_without_anybodys_home(ncu_sample: Sample) -> None:
    profile = one(ncu_sample("a100_imma_gemm_full_source_2024.1"))
    assert "~/cutlass/examples/00_basic_gemm/s8_gemm.cu" in profile.sources
    files = {line.file for launch in profile.launches for line in launch.lines if line.file}
    assert files <= {*profile.sources, *files}
    assert not any(name.startswith(("/home/", "/Users/")) for name in (*profile.sources, *files))


def test_local_memory_is_not_only_spills(ncu_sample: Sample) -> None:
    third = one(ncu_sample("a100_cutlass_gemm_full_local_mem_2024.1")).launches[2]
    assert third.values["local.requests"] == 384 + 384
    assert "spill.executed" not in third.values, "ncu 2024.1 does not tell spills"
    assert third.ranges == ("Fused-GEMM",)


def test_kernels_that_share_a_function_name_are_told_apart(ncu_sample: Sample) -> None:
    profile = one(ncu_sample("a100_cutlass_gemm_full_local_mem_2024.1"))
    assert len({launch.kernel for launch in profile.launches}) == 2
    assert all(launch.kernel.startswith("void cutlass::Kernel<") for launch in profile.launches)


def test_peaks_of_the_device_that_was_profiled(ncu_sample: Sample) -> None:
    a10g = {(c.quantity, c.unit_class): c.value for c in one(ncu_sample("a10g_roofline_set_templates_2023.1")).ceilings}
    assert a10g["dram.bytes_per_s", ""] == pytest.approx(598e9, rel=1e-3)
    h800 = {(c.quantity, c.unit_class): c.value for c in one(ncu_sample("h800_interrupted_nan_2023.3")).ceilings}
    assert h800["dram.bytes_per_s", ""] == pytest.approx(3.34e12, rel=1e-3)
    assert h800["flops_per_s", "vector.float64"] < h800["flops_per_s", "vector.float32"] / 30, (
        "not GH100's nominal FP64"
    )


def test_an_interrupted_launch_keeps_nothing_that_is_nan(ncu_sample: Sample) -> None:
    profile = one(ncu_sample("h800_interrupted_nan_2023.3"))
    assert [launch.complete for launch in profile.launches] == [True] * 4 + [False]
    broken = profile.launches[-1]
    assert "registers.per_thread" not in broken.values
    assert all(value == value for value in broken.raw.values())
    assert any("broke off" in note for note in broken.notes)


def test_old_reports_without_sections_still_give_their_metrics(ncu_sample: Sample) -> None:
    profile = one(ncu_sample("gtx1660ti_basic_2022.4"))
    assert {launch.target for launch in profile.launches} == {"cuda:sm_75"}
    assert all(launch.values["time.profiled_ns"] > 0 for launch in profile.launches)


def test_a_report_cut_in_the_middle(ncu_sample: Sample, tmp_path: Path) -> None:
    data = ncu_sample("h200_bank_conflicts_2025.3").read_bytes()
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(data[: len(data) * 2 // 3])
    (profile,) = anything.read(path)
    assert 0 < len(profile.launches) < 5
    path.write_bytes(data[:4096])
    with pytest.raises(ProfileFormatError):
        anything.read(path)


# --- nsys ------------------------------------------------------------------------------------------------------------


def test_launches_of_an_export(nvidia: Path) -> None:
    profile = one(nvidia / "h200-measured" / "bank_conflicts.nsys.sqlite")
    assert (profile.version, len(profile.launches)) == ("2025.3.2.0", 10)
    first = profile.launches[0]
    assert (first.duration_ns, first.device, first.target) == (12608, "NVIDIA H200", "cuda:sm_90")
    assert (first.grid, first.block) == ((4096, 1, 1), (256, 1, 1))
    assert first.values["registers.per_thread"] == 23
    assert first.symbol == "_Z11conf_kernelILi1EEvPKfPfi"
    assert any("No NVTX events" in note for note in profile.notes)
    assert profile.ceilings[0].value == 4814304000000


def test_nvtx_ranges_name_step_and_operation(nvidia: Path) -> None:
    profile = one(nvidia / "nsys" / "t4_2025.3.1_schema3.20.2.sqlite")
    assert len(profile.launches) == 3689
    assert profile.launches[100].ranges == ("Loop", "Step 10 to 20", "Compute & Residual 10", "cub::DeviceReduce::Sum")
    reduced = [launch for launch in profile.launches if launch.ranges[-1:] == ("cub::DeviceReduce::Sum",)]
    assert all("cub" in launch.kernel for launch in reduced)
    assert len(reduced) > 565
    assert any("Not all CUDA events" in note for note in profile.notes)
    calls = {(call.domain): call.calls for call in profile.calls if call.domain == "MEMCPY"}
    assert calls


def test_process_and_thread_of_a_global_id() -> None:
    assert nsys_file.process_of(281641842910938) == 281641842910938 // 0x1000000 % 0x1000000 == 9946
    assert nsys_file.process_of(None) is None


def test_ranges_of_other_threads_do_not_count() -> None:
    from tileprof.collect.profile import Range

    ranges = [Range("mine", 0, 100, 1, 7), Range("other thread", 0, 100, 1, 8), Range("other process", 0, 100, 2, 7),
              Range("all threads", 10, 90, 1, None), Range("over", 0, 20, 1, 7), Range("mark", 50, 50, 1, 7)]  # fmt: skip
    index = RangeIndex(ranges)
    assert index.around(50, 1, 7) == ("mine", "all threads")
    assert index.around(5, 1, 7) == ("mine", "over")
    assert index.around(200, 1, 7) == ()
    assert RangeIndex([]).around(1, 1, 1) == ()


def with_rows(source: Path, target: Path, *statements: str) -> Path:
    """A copy of an export, changed."""
    shutil.copy(source, target)
    connection = sqlite3.connect(target)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return target


def test_correlation_ids_repeat_between_processes(nvidia: Path, tmp_path: Path) -> None:
    """A call of another process with the same correlation id must not name the launch's range."""
    source = nvidia / "nsys" / "t4_2025.3.1_schema3.20.2.sqlite"
    other = (5 << 24) | 3
    path = with_rows(
        source,
        tmp_path / "t.sqlite",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 0, 1, eventClass, {other}, correlationId, nameId, 0, NULL "
        "FROM CUPTI_ACTIVITY_KIND_RUNTIME",
    )
    assert [launch.ranges for launch in one(path).launches] == [launch.ranges for launch in one(source).launches]


def test_columns_that_an_older_schema_lacks(nvidia: Path, tmp_path: Path) -> None:
    path = with_rows(
        nvidia / "h200-measured" / "bank_conflicts.nsys.sqlite",
        tmp_path / "old.sqlite",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN mangledName",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN localMemoryPerThread",
        "DROP TABLE TARGET_INFO_GPU",
    )
    launch = one(path).launches[0]
    assert (launch.symbol, launch.target, launch.duration_ns) == ("", "cuda", 12608)
    assert "scratch.bytes" not in launch.values


def test_an_export_without_kernels(nvidia: Path, tmp_path: Path) -> None:
    source = nvidia / "h200-measured" / "bank_conflicts.nsys.sqlite"
    path = with_rows(source, tmp_path / "none.sqlite", "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    with pytest.raises(MeasurementInvalid, match="holds no kernel"):
        anything.read(path)
    graph = with_rows(path, tmp_path / "graph.sqlite", "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end)")
    with pytest.raises(MeasurementInvalid, match="graphs as a whole") as caught:
        anything.read(graph)
    assert "--cuda-graph-trace=node" in (caught.value.remedy or "")


def test_a_damaged_database(nvidia: Path, tmp_path: Path) -> None:
    data = (nvidia / "h200-measured" / "bank_conflicts.nsys.sqlite").read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(data[: len(data) // 3])
    with pytest.raises(ProfileFormatError) as caught:
        anything.read(path)
    assert caught.value.remedy


def test_statistics_on_the_terminal(nvidia: Path) -> None:
    profile = one(nvidia / "h200-measured" / "bank_conflicts.nsys-stats.csv")
    export = one(nvidia / "h200-measured" / "bank_conflicts.nsys.sqlite")
    key = lambda launch: (launch.kernel, launch.duration_ns, launch.grid, launch.block)  # noqa: E731
    assert sorted(map(key, profile.launches)) == sorted(map(key, export.launches))
    sums = one(nvidia / "nsys" / "rtx5090_cuda_gpu_kern_sum.csv")
    assert len(sums.launches) == 113
    assert (sums.launches[0].count, sums.launches[0].values["time.profiled_ns"]) == (329035, 3712)
    assert "2079 to 5856 ns" in sums.launches[0].metrics[0].provenance.detail
    assert sums.launches[2].kernel.startswith("void cutlass::Kernel2<cutlass_80_wmma"), "a name without quotes"
    assert len(one(nvidia / "nsys" / "rtx5090_cuda_gpu_kern_sum_small.csv").launches) == 19
