"""Real files of AMD's profilers, with values that their documentation or their programs make known."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tileprof.collect import (
    anything,
    att_file,
    csv_rows,
    rocprof_compute_file,
    rocprof_file,
    rocprofv3_csv,
    rocprofv3_json,
)
from tileprof.collect.profile import ForeignProfile
from tileprof.errors import MeasurementInvalid, ProfileFormatError


@pytest.fixture(scope="module")
def amd(profiles: Path) -> Path:
    return profiles / "amd"


def one(path: Path) -> ForeignProfile:
    (profile,) = anything.read(path)
    return profile


# --- rocprofv3 CSV ---------------------------------------------------------------------------------------------------


def test_old_headers_are_read_by_name(amd: Path) -> None:
    folder = amd / "rocprofv3" / "sdk0.5_rocm6.3_docs"
    counters = one(folder / "counter_collection.csv")
    assert [launch.raw for launch in counters.launches[:2]] == [{"SQ_WAVES": 16384.0}] * 2
    assert counters.launches[0].kernel == "void addition_kernel<float>(float*, float const*, float const*, int, int)"
    assert "registers.agpr" not in counters.launches[0].values, "that version has no such column: missing, not 0"
    trace = one(folder / "kernel_trace.csv")
    first = trace.launches[0]
    assert (first.duration_ns, first.grid, first.block) == (
        8819330200116308 - 8819330200067564,
        (16, 1024, 1),
        (64, 1, 1),
    )
    assert "registers.vgpr" not in first.values


def test_new_headers(amd: Path) -> None:
    trace = one(amd / "rocprofv3" / "sdk1.0_rocm7.0_docs" / "kernel_trace.csv")
    first = trace.launches[0]
    assert first.duration_ns == 1550151853042437 - 1550151853029637
    assert (first.values["registers.vgpr"], first.values["registers.sgpr"]) == (8, 16)
    assert first.values["launch.blocks"] == 16 * 1024, "the grid is in work-items"
    divide = next(launch for launch in trace.launches if launch.kernel.startswith("divide"))
    assert divide.values["registers.vgpr"] == 12 + 4, "arch and accumulation registers share a file"


def test_lds_bank_conflicts_that_are_known(amd: Path) -> None:
    """64 lanes storing 8 bytes 256 bytes apart: 4 phases of 15 conflicts each."""
    folder = amd / "rocprofv3" / "rocm7_mi355x_hipkittens"
    launch = one(folder / "ds_write_b64" / "lds_conflict_counter_collection.csv").of_kernel("micro_tk")[0]
    assert launch.values["shared.conflicts"] == 60
    assert launch.values["shared.requests"] == 1
    for instruction, test, conflicts in (
        ("ds_read_b128", "bank_test", 0), ("ds_read_b128", "phase_test", 1), ("ds_read_b64", "bank_test", 0),
        ("ds_read_b64", "phase_test", 1), ("ds_write_b64", "phase_test", 0),
    ):  # fmt: skip
        (found,) = one(folder / instruction / f"{test}_counter_collection.csv").of_kernel("micro_tk")
        assert found.values["shared.conflicts"] == conflicts, f"{instruction} {test}"


def test_a_folder_has_its_gpu_from_agent_info(amd: Path) -> None:
    profile = rocprofv3_csv.read((amd / "rocprofv3" / "rocm7_mi355x_hipkittens" / "ds_read_b64").glob("*.csv"))
    assert {launch.target for launch in profile.launches} == {"hip:gfx950"}
    assert {launch.max_clock_hz for launch in profile.launches} == {2.4e9}, "the GPU's clock, not the host's"
    # several runs lie in one folder, told apart by the beginning of their names
    assert len(profile.of_kernel("micro_tk")) == 3


def test_names_of_thousands_of_characters(amd: Path) -> None:
    profile = one(amd / "rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/hit_rate_counter_collection.csv")
    assert len(profile.launches) == 241
    assert max(len(launch.kernel) for launch in profile.launches) > 5000


def test_dynamic_lds_does_not_show_in_csv(amd: Path) -> None:
    (kernel,) = one(
        amd / "rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/lds_conflict_counter_collection.csv"
    ).of_kernel("micro_tk")
    (row,) = [m for m in kernel.metrics if m.metric == "shared.static_bytes"]
    assert row.value == 0
    assert "dynamic" in row.provenance.detail


def test_everything_quoted(amd: Path) -> None:
    folder = amd / "rocprofv3" / "rdna35_llamacpp_all_quoted"
    stalls = one(folder / "decode_stall_counter_collection.csv")
    first = stalls.launches[0]
    assert first.raw["GRBM_GUI_ACTIVE"] == 16283
    assert first.values["time.profiled_ns"] == 342343619411517 - 342343619401537
    fetch = one(folder / "decode_fetch_counter_collection.csv")
    assert fetch.launches[0].values["fabric.read_bytes"] == 10.625 * 1024
    assert len(one(folder / "decode_kernel_trace.csv").launches) == 144
    assert len(one(folder / "prefill_kernel_trace_first200.csv").launches) == 200
    calls = one(folder / "decode_hip_api_trace_first200.csv").calls
    assert sum(call.calls for call in calls) == 200


def test_markers_calls_and_copies(amd: Path) -> None:
    folder = amd / "rocprofv3" / "sdk1.0_rocm7.0_docs"
    marks = one(folder / "marker_api_trace.csv").ranges
    assert (marks[0].name, marks[0].start_ns == marks[0].end_ns) == ("before hipLaunchKernel", True)
    python = one(folder / "python_bindings.csv").ranges
    assert python[1].name == "generate_matrix(rows=4, cols=5)"
    assert python[1].end_ns - python[1].start_ns == 1392141765523276 - 1392141765500646
    copies = one(folder / "memory_copy_trace.csv").calls
    assert {copy.name: copy.calls for copy in copies} == {
        "MEMORY_COPY_HOST_TO_DEVICE": 2,
        "MEMORY_COPY_DEVICE_TO_HOST": 2,
    }
    converted = one(folder / "rocpd-to-csv.csv")  # one more column before the others
    assert sum(call.calls for call in converted.calls) == 13
    statistics = one(folder / "hip_api_stats.csv")
    assert statistics.launches == ()
    assert statistics.calls[0].name == "hipStreamCreateWithFlags"


def test_pc_samples(amd: Path) -> None:
    folder = amd / "rocprofv3" / "sdk1.0_rocm7.0_docs"
    (plain,) = one(folder / "pc_sampling_host_trap.csv").launches
    assert sum(line.values["stall.samples"] for line in plain.lines) == 79
    assert plain.lines[0].file is None, "without debug information there are no lines"
    (debug,) = one(folder / "pc_sampling_host_trap_debug.csv").launches
    assert sum(line.values["stall.samples"] for line in debug.lines) == 21
    places = {(line.file or "").rpartition("/")[2] for line in debug.lines}
    assert "MatrixTranspose.cpp" in places
    stochastic = one(folder / "pc_sampling_stochastic_debug.csv")
    total = Counter[str]()
    for launch in stochastic.launches:
        for line in launch.lines:
            total.update({name: int(value) for name, value in line.values.items()})
    assert total["stall.samples"] == 97
    assert (
        total["stall.selected"]
        + sum(v for k, v in total.items() if k.startswith("stall.") and k not in ("stall.samples", "stall.selected"))
        == 97
    )
    assert total["stall.waitcnt"] > 0
    assert all("/home/user" not in (line.file or "") for launch in stochastic.launches for line in launch.lines)


def test_a_summary_on_the_terminal(amd: Path) -> None:
    profile = one(amd / "rocprofv3" / "sdk1.0_rocm7.0_docs" / "summary.txt")
    assert all(launch.values["launch.count"] >= 1 for launch in profile.launches)
    queue = next(call for call in profile.calls if call.name == "hsa_queue_create")
    assert (queue.calls, queue.total_ns) == (4, 280077621)


def test_only_agent_info_means_that_no_kernel_was_seen(amd: Path, tmp_path: Path) -> None:
    source = amd / "rocprofv3" / "rocm7_mi355x_hipkittens" / "ds_read_b128" / "bank_test_agent_info.csv"
    shutil.copy(source, tmp_path)
    profile = one(tmp_path)
    assert profile.launches == ()
    assert any("no kernel was seen" in note for note in profile.notes)
    assert profile.gpus == ({"vendor": "amd", "name": "gfx950", "arch": "gfx950", "units": 256.0},)


HEADER = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name",'
    '"Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name",'
    '"Counter_Value","Start_Timestamp","End_Timestamp"\n'
)


def rows(*entries: tuple[int, int, str, str, str, int]) -> str:
    """(dispatch, process, kernel, counter, value, grid) as a file."""
    lines = [
        f'{d},{d},"Agent 4",1,{p},{p},{g},7,"{k}",64,0,0,8,0,16,"{c}",{v},{1000 * d},{1000 * d + 500}'
        for d, p, k, c, v, g in entries
    ]
    return HEADER + "\n".join(lines) + "\n"


def test_passes_are_joined_by_name_and_call(tmp_path: Path) -> None:
    """Each pass is a process of its own with other dispatch numbers, and its rows come in any order."""
    first = [(2, 10, "b", "SQ_WAVES", "4", 64), (1, 10, "a", "SQ_WAVES", "1", 64), (3, 10, "a", "SQ_WAVES", "2", 64)]
    second = [(11, 20, "a", "LDS", "8", 64), (12, 20, "b", "LDS", "9", 64), (13, 20, "a", "LDS", "7", 64)]
    for number, process, text in ((1, 10, rows(*first)), (2, 20, rows(*second))):
        folder = tmp_path / f"pass_{number}" / "host0"
        folder.mkdir(parents=True)
        (folder / f"{process}_counter_collection.csv").write_text(text)
    found = [(launch.kernel, launch.raw) for launch in one(tmp_path).launches]
    assert found == [
        ("a", {"SQ_WAVES": 1.0, "LDS": 8.0}),
        ("b", {"SQ_WAVES": 4.0, "LDS": 9.0}),
        ("a", {"SQ_WAVES": 2.0, "LDS": 7.0}),
    ]


def test_passes_with_other_grids_are_not_mixed(tmp_path: Path) -> None:
    for number, grid in ((1, 64), (2, 128)):
        (tmp_path / f"pass_{number}").mkdir()
        text = rows((1, 1, "a", f"SQ_C{number}", "5", grid))
        (tmp_path / f"pass_{number}" / "x_counter_collection.csv").write_text(text)
    profile = one(tmp_path)
    assert profile.launches[0].raw == {"SQ_C1": 5.0}
    assert any("different grids" in note for note in profile.notes)


def test_counters_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "counter_collection.csv").write_text(
        rows((1, 10, "a", "SQ_WAVES", "1", 64), (1, 11, "a", "SQ_WAVES", "2", 64))
    )
    assert [launch.raw["SQ_WAVES"] for launch in one(tmp_path).launches] == [1, 2]


def test_a_counter_without_a_number_is_missing(tmp_path: Path) -> None:
    (tmp_path / "counter_collection.csv").write_text(
        rows((1, 1, "a", "SQ_LDS_BANK_CONFLICT", "nan", 64), (1, 1, "a", "SQ_WAVES", "1", 64))
    )
    profile = one(tmp_path)
    assert profile.launches[0].raw == {"SQ_WAVES": 1.0}
    assert "shared.conflicts" not in profile.launches[0].values
    assert any("no numbers" in note for note in profile.notes)


def test_a_file_cut_in_the_middle_of_a_line_keeps_the_rest(amd: Path, tmp_path: Path) -> None:
    source = amd / "rocprofv3" / "rocm7_mi355x_hipkittens" / "ds_read_b64" / "lds_conflict_counter_collection.csv"
    data = source.read_bytes()
    cut = tmp_path / "lds_conflict_counter_collection.csv"
    cut.write_bytes(data[: data.rfind(b",")])  # the last line lacks its last field
    whole, kept = one(source), one(cut)
    assert len(kept.launches) in (len(whole.launches), len(whole.launches) - 1)
    assert any("damaged" in note for note in kept.notes)


def test_headers_in_another_case_and_order(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text(
        "Guid,KIND,Kernel_Name,Vgpr_Count,Lds_Block_Size,End_Timestamp,Start_Timestamp,Grid_Size_X,Grid_Size_Y,Grid_Size_Z,"
        "Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z\n0,KERNEL_DISPATCH,k.kd,8,512,90,40,128,1,1,64,1,1\n"
    )
    (launch,) = one(tmp_path / "k.csv").launches
    assert (launch.kernel, launch.duration_ns, launch.grid, launch.values["shared.static_bytes"]) == (
        "k",
        50,
        (2, 1, 1),
        512,
    )


def test_a_launch_that_ends_before_it_starts_has_no_duration(tmp_path: Path) -> None:
    (tmp_path / "k.csv").write_text("Kind,Kernel_Name,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,k,90,40\n")
    (launch,) = one(tmp_path / "k.csv").launches
    assert launch.duration_ns is None
    assert any("ends before it starts" in note for note in launch.notes)


def test_roctx_ranges_name_the_launches_in_them(tmp_path: Path) -> None:
    (tmp_path / "kernel_trace.csv").write_text(
        "Kind,Kernel_Name,Thread_Id,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,k,5,150,160\nKERNEL_DISPATCH,k,5,250,260\n"
    )
    (tmp_path / "marker_api_trace.csv").write_text(
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
        "MARKER_CORE_API,case a,1,5,1,100,200\nMARKER_CORE_API,repetition 0,1,5,2,140,170\nMARKER_CORE_API,mark,1,5,3,155,155\n"
    )
    assert [launch.ranges for launch in one(tmp_path).launches] == [("case a", "repetition 0"), ()]


# --- rocprofv3 JSON, thread traces -----------------------------------------------------------------------------------


def test_json_of_a_training_step(amd: Path) -> None:
    profile = one(amd / "rocprofv3" / "sdk1.0_rocm7_mi350x_json" / "results_excerpt.json")
    assert len(profile.launches) == 267
    assert profile.gpus[0]["name"] == "AMD Instinct MI350X"
    first = profile.launches[0]
    assert (first.kernel, first.symbol) == ("__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer")
    assert (first.duration_ns, first.target, first.max_clock_hz) == (2840, "hip:gfx950", 2.2e9)
    longest = max(profile.launches, key=lambda launch: launch.duration_ns or 0)
    assert longest.kernel.startswith("ncclDevKernel")
    assert longest.duration_ns == pytest.approx(733e6, rel=0.01)
    assert longest.values["shared.allocated_bytes"] == 37664, "dynamic LDS included"


def counted_json() -> dict[str, object]:
    """One dispatch whose counter comes in two instances, as the tool writes it."""
    info = {
        "agent_id": {"handle": 9}, "kernel_id": 3, "dispatch_id": 1, "private_segment_size": 0, "group_segment_size": 4096,
        "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 100, "y": 2, "z": 1},
    }  # fmt: skip
    entry = {
        "metadata": {"pid": 5, "node": {"hostname": "secret-host"}, "command": ["/home/jane/x"]},
        "agents": [{"id": {"handle": 9}, "type": 2, "name": "gfx942", "cu_count": 304, "num_xcc": 8, "node_id": 4}],
        "counters": [{"id": {"handle": 77}, "name": "SQ_LDS_BANK_CONFLICT"}],
        "strings": {},
        "kernel_symbols": [
            {"kernel_id": 0},
            {"kernel_id": 3, "kernel_name": "k.kd", "formatted_kernel_name": "k(int)"},
        ],
        "callback_records": {
            "counter_collection": [
                {
                    "dispatch_data": {"start_timestamp": 10, "end_timestamp": 40, "dispatch_info": info},
                    "records": [{"counter_id": {"handle": 77}, "value": 3}, {"counter_id": {"handle": 77}, "value": 4}],
                }
            ]
        },
        "buffer_records": {"kernel_dispatch": []},
    }
    return {"rocprofiler-sdk-tool": [entry]}


def test_instances_of_a_counter_add_up(tmp_path: Path) -> None:
    path = tmp_path / "x_results.json"
    path.write_text(json.dumps(counted_json()))
    (launch,) = one(path).launches
    assert launch.values["shared.conflicts"] == 7
    assert (launch.grid, launch.values["launch.blocks"]) == ((2, 2, 1), 4)
    assert launch.values["time.profiled_ns"] == 30
    assert launch.kernel == "k(int)"
    assert "secret" not in repr(one(path))
    assert "jane" not in repr(one(path))


def test_json_that_is_cut_or_of_another_form(tmp_path: Path, amd: Path) -> None:
    text = (amd / "rocprofv3" / "sdk1.0_rocm7_mi350x_json" / "results_excerpt.json").read_text()
    path = tmp_path / "x.json"
    path.write_text(text[:10000])
    with pytest.raises(ProfileFormatError, match="no whole JSON"):
        anything.read(path)
    broken = counted_json()
    broken["rocprofiler-sdk-tool"][0]["callback_records"]["counter_collection"][0]["dispatch_data"] = {}  # type: ignore[index]
    with pytest.raises(ProfileFormatError, match="form that is not known"):
        rocprofv3_json.parse(broken, path)


def test_samples_in_a_thread_trace_view(amd: Path) -> None:
    (launch,) = one(amd / "rocprofv3" / "pcsampling_ui_rocm7.1").launches
    assert launch.symbol == "_Z14reference_gemmILi4EEvPKhS1_P14__hip_bfloat16PKfS5_iii"
    assert launch.values["stall.samples"] - launch.values["stall.selected"] == 3384
    kernel = [line for line in launch.lines if line.file and line.file.endswith("kernel.cpp")]
    assert {line.line for line in kernel} >= {528, 537}


def test_thread_trace_headers_as_text_and_as_list() -> None:
    row = ["v_mov", 0, 1, "/home/jane/k.hip:7", 2, 16, 4, 80, 60, 0]
    columns = ["ISA", "_", "LineNumber", "Source", "Codeobj", "Vaddr", "Hit", "Latency", "Stall", "Idle"]
    for header in (columns, ",".join(columns)):
        code = [["; _Z1k", 0, 0, "k()", 2, 16, 0, 0, 0, 0], row]
        (launch,) = att_file.parse({"code": code, "header": header, "version": "3.0.0"}, Path("code.json")).launches
        assert launch.kernel == "k()"
        assert launch.values == {"executed.instructions": 4, "wave.cycles": 80, "wave.dependency_cycles": 60}
        assert (launch.lines[0].file, launch.lines[0].line) == ("~/k.hip", 7)


def test_no_samples_are_said_to_be_none() -> None:
    code = [["; k", 0, 0, "k()", 0, 0, 0, 0, 0, 0, 0, 0, []], ["s_nop", 0, 1, "", 0, 4, 0, 0, 0, 0, 0, 0, []]]
    header = [
        "ISA",
        "_",
        "LineNumber",
        "Source",
        "Codeobj",
        "Vaddr",
        "Hit",
        "Latency",
        "Stall",
        "Idle",
        "PC_Issued",
        "PC_Stalled",
        "Stall_Reasons",
    ]
    profile = att_file.parse({"code": code, "header": header}, Path("code.json"))
    assert profile.launches == ()
    assert "no instruction was hit" in profile.notes[-1]


# --- rocprof v1, v2, rocprof-compute ---------------------------------------------------------------------------------


def test_v1_table_and_database_agree(amd: Path) -> None:
    folder = amd / "rocprof_v1" / "gunrock_mi300"
    table, database = one(folder / "results.csv"), one(folder / "results.db")
    assert len(table.launches) == 56
    assert table.launches[0].kernel == "__amd_rocclr_copyBuffer"
    assert table.launches[0].duration_ns == 5573
    assert [launch.kernel for launch in table.launches] == [launch.kernel for launch in database.launches]
    assert [launch.duration_ns for launch in table.launches] == [launch.duration_ns for launch in database.launches]
    longest = max(table.launches, key=lambda launch: len(launch.kernel))
    assert 7000 < len(longest.kernel) <= 7071
    assert not longest.kernel.endswith(".kd]")
    # CompleteNs < EndNs in some rows: completion is no part of the duration
    assert all(launch.duration_ns for launch in table.launches)


def test_v1_statistics(amd: Path) -> None:
    profile = one(amd / "rocprof_v1" / "gunrock_mi300" / "results.stats.csv")
    assert profile.tool == "rocprof"
    trace = one(amd / "rocprof_v1" / "gunrock_mi300" / "results.csv")
    by_name = Counter(launch.kernel for launch in trace.launches)
    for launch in profile.launches:
        assert launch.values["launch.count"] == by_name[launch.kernel]
        durations = [one.duration_ns or 0 for one in trace.launches if one.kernel == launch.kernel]
        assert launch.values["time.profiled_ns"] == pytest.approx(sum(durations) / len(durations), abs=1)
    llama = one(amd / "rocprof_v1" / "llamacpp_gfx1201" / "results.stats_excerpt.csv")
    assert llama.launches[0].count == 442
    assert llama.launches[1].kernel.startswith("void unary_gated_op_kernel<&(op_silu(float)), float>")


def test_v2_text(amd: Path) -> None:
    folder = amd / "rocprof_v2" / "goldentraces"
    (launch,) = one(folder / "hip_helloworld_golden_traces.txt").launches
    assert (launch.kernel, launch.raw) == ("helloworld", {"GRBM_COUNT": 14222.0})
    assert launch.values["launch.threads_per_block"] == 10
    ranks = one(folder / "mpi_vectoradd_golden_traces.txt").launches
    assert [launch.process for launch in ranks] == [2185441, 2185436]
    calls = one(folder / "tracer_hip_helloworld_golden_traces.txt").calls
    assert {call.name: call.calls for call in calls}["hipMalloc"] == 2
    ranges = one(folder / "tracer_matrix_transpose_golden_trace.txt").ranges
    assert next(r for r in ranges if r.name == "roctx_range with id").end_ns == 2143674432737213
    with pytest.raises(MeasurementInvalid, match="no kernel"):
        anything.read(folder / "hsa_async_mem_copy_golden_traces.txt")


def test_v2_clock_of_a_kernel_that_took_seconds_for_14000_cycles(amd: Path) -> None:
    from tileprof.metrics.plausible import IMPLAUSIBLE_CLOCK, flag_implausible

    (launch,) = one(amd / "rocprof_v2" / "goldentraces" / "hip_helloworld_golden_traces.txt").launches
    (clock,) = [m for m in flag_implausible(launch.metrics) if m.metric == "clock.hz"]
    assert clock.flag == IMPLAUSIBLE_CLOCK


def test_workloads_name_their_gpu_tool_and_ceilings(amd: Path) -> None:
    folder = amd / "rocprof_compute"
    mi200 = one(folder / "omniperf2.0_vcopy_MI200")
    assert (mi200.version, mi200.gpus[0]["arch"]) == ("2.0.0-RC1", "gfx90a")
    roofs = {(c.quantity, c.unit_class): c.value for c in mi200.ceilings}
    assert roofs["dram.bytes_per_s", ""] == pytest.approx(1389e9, rel=1e-3)
    assert roofs["flops_per_s", "matrix.bfloat16"] == pytest.approx(170.9e12, rel=1e-2)
    assert one(folder / "omniperf2.0_vcopy_MI300X_A1").ceilings == ()
    assert one(folder / "omniperf2.0_vcopy_MI200" / "pmc_perf.csv").launches[0].target == "hip:gfx90a", (
        "its folder knows"
    )


def test_counters_that_a_log_says_are_missing(amd: Path) -> None:
    profile = one(amd / "rocprof_compute" / "rocprofcompute3.1_vcopy_MI350")
    assert profile.version == "3.1.0"
    note = next(note for note in profile.notes if note.startswith("counters that this GPU does not have"))
    assert "SQ_LEVEL_WAVES_ACCUM" in note
    assert "\x1b" not in note
    assert any("SQ_LEVEL_WAVES.csv lacks the accumulated counter" in note for note in profile.notes)


def test_channels_are_summed_only_where_all_are_there() -> None:
    row = {"kernel_name": "k", "tcc_hit[0]": "1", "tcc_hit[1]": "2", "tcc_miss[1]": "4"}
    names = {"tcc_hit[0]": "TCC_HIT[0]", "tcc_hit[1]": "TCC_HIT[1]", "tcc_miss[1]": "TCC_MISS[1]"}
    values = rocprof_file.counters_of(row, names, channels=2)
    assert values["TCC_HIT_sum"] == 3
    assert "TCC_MISS_sum" not in values
    assert "TCC_HIT_sum" not in rocprof_file.counters_of(row, names)


def test_left_overs_of_merging_are_no_counters(amd: Path) -> None:
    launch = rocprof_compute_file.read(amd / "rocprof_compute" / "omniperf2.0_vcopy_MI300A_A1").launches[0]
    strange = [
        name for name in launch.raw if name.lower().startswith(("obj", "wave_size", "correlation", "xcc", "kernel_id"))
    ]
    assert strange == []
    assert "SQC_DCACHE_REQ_READ_16" in launch.raw, "a counter that ends in a number stays"


def test_a_workload_without_counters_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pmc_perf.csv").write_text("Dispatch_ID,Kernel_Name,Grid_Size\n")
    with pytest.raises(ProfileFormatError, match="no counters"):
        anything.read(tmp_path)


def test_every_table_of_counters_is_wide(amd: Path) -> None:
    for path in (amd / "rocprof_compute").rglob("SQ_*.csv"):
        table = csv_rows.read(path)
        assert rocprof_file.is_wide(table.header)
        assert len(rocprof_file.read_table(path, table).launches) == 3
