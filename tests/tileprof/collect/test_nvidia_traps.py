"""Traps of NVIDIA's profilers that no other test covers: what they print or write must not be taken at its word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_nvidia_profiles import with_rows

from tileprof.collect import anything, ncu, nsys
from tileprof.collect.ncu_file import load, read
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable
from tileprof.metrics import ncu_names, nvidia

Sample = Callable[[str], Path]


@pytest.fixture(scope="module")
def export(profiles: Path) -> Path:
    """A real export of nsys with ranges."""
    return profiles / "nvidia" / "nsys" / "t4_2025.3.1_schema3.20.2.sqlite"


# --- Nsight Compute --------------------------------------------------------------------------------------------------


def test_a_launch_fact_that_is_a_text_is_no_number(ncu_sample: Sample) -> None:
    wanted = ("launch__func_cache_config", "launch__block_size")
    kernel = read(ncu_sample("h200_bank_conflicts_2025.3"), wanted).kernels[0]
    assert kernel.raw == {"launch__block_size": 256.0}, "integers come as floats, names as texts"


def test_units_of_values_by_instruction_are_not_believed(ncu_sample: Sample) -> None:
    path = ncu_sample("h200_bank_conflicts_2025.3")
    loaded = load(path)
    counter = loaded.actions[0].metric_by_name("smsp__pcsamp_warps_issue_stalled_branch_resolving")
    assert counter.unit() == "branches"
    kernel = read(path).kernels[0]
    (row,) = [row for row in kernel.total_metrics() if row.metric == "stall.branch_resolving"]
    assert (row.value, row.unit) == (counter.value(), "samples")


def test_counters_whose_meaning_changed_are_not_read() -> None:
    """Registers allocated: of a block in old reports, of a thread in new ones.  Peaks of matrix units: sparse without a suffix."""
    read_ones = {*nvidia.INPUTS, *(name for counter in ncu_names.LAUNCH_COUNTERS for name in counter.names())}
    assert "launch__registers_per_thread_allocated" not in read_ones
    assert "derived__memory_l2_theoretical_sectors_global_excessive" not in read_ones
    assert "launch__occupancy_cluster_pct" not in read_ones, "0 there means that no cluster was launched"
    assert not [
        n for n in read_ones if n.startswith("sm__ops_path_tensor_src") and n.endswith("_dst_fp32.sum.peak_sustained")
    ]


PERMISSION = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"


@pytest.mark.parametrize(
    "noise",
    [
        "==ERROR== The application returned an error code (9).",  # nvidia-smi, started by the program, or a compiler
        "==WARNING== No kernels were profiled.",
        "==PROF== Connected to process 51 (/usr/bin/nvidia-smi)",
    ],
)
def test_noise_of_child_processes_does_not_hide_the_cause(noise: str) -> None:
    for text in (f"{noise}\n{PERMISSION}\n", f"{PERMISSION}\n{noise}\n"):
        with pytest.raises(ProfilerUnavailable, match="no permission"):
            ncu.check_log(text, 1, symbol="k")


def test_a_launch_that_fails_is_the_programs_fault_and_not_the_filters() -> None:
    """A kernel that cannot be launched leaves the same warning as a filter that matches nothing."""
    text = "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n"
    with pytest.raises(Exception, match="the profiled program failed"):
        ncu.check_log(text, 1, symbol="k")
    with pytest.raises(MeasurementInvalid, match="no launch of kernel k was recorded"):
        ncu.check_log("==WARNING== No kernels were profiled.\n", 0, symbol="k")


def test_every_process_is_profiled_and_collectives_are_not_replayed() -> None:
    """A program launches from children, too; replaying one rank's part of a collective waits for the others for ever."""
    ours = ncu.command("ncu", ["x"], symbol="k", report=Path("r"), log=Path("l"))
    theirs = ncu.command("ncu", ["x"], symbol=None, report=Path("r"), log=Path("l"))
    for line in (ours, theirs):
        assert line[line.index("--target-processes") + 1] == "all"
    assert theirs[theirs.index("--kernel-name") + 1] == "regex:^(?!nccl)"
    assert ours[ours.index("--kernel-name") + 1] == "k"


# --- Nsight Systems --------------------------------------------------------------------------------------------------


def test_graphs_are_traced_by_node_and_children_from_their_start() -> None:
    line = nsys.command("nsys", ["x"], Path("r.nsys-rep"))
    assert line[line.index("--cuda-graph-trace") + 1] == "node"
    assert line[line.index("--trace-fork-before-exec") + 1] == "true"


def test_texts_of_ranges_stand_in_either_column(export: Path, tmp_path: Path) -> None:
    (plain,) = anything.read(export)
    move = "UPDATE NVTX_EVENTS SET text = (SELECT value FROM StringIds WHERE id = textId), textId = NULL WHERE text IS NULL"
    (moved,) = anything.read(with_rows(export, tmp_path / "text.sqlite", move))
    assert [one.ranges for one in moved.launches] == [one.ranges for one in plain.launches]
    assert any(one.ranges for one in moved.launches)


def test_an_export_without_ranges_has_no_table_of_them(export: Path, tmp_path: Path) -> None:
    (profile,) = anything.read(with_rows(export, tmp_path / "none.sqlite", "DROP TABLE NVTX_EVENTS"))
    assert len(profile.launches) == 3689
    assert not any(one.ranges for one in profile.launches)


def test_statistics_behind_messages_and_without_a_median(tmp_path: Path) -> None:
    """Older releases print no median, and their messages to the same stream; only names with a comma are quoted."""
    path = tmp_path / "gpukernsum.csv"
    path.write_text(
        "Generating SQLite file x.sqlite from x.nsys-rep\n"
        "Processing [x.sqlite] with [/opt/nvidia/nsight-systems/reports/gpukernsum.py]...\n"
        "\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "75.0,3000,2,1500.0,1000,2000,707.1,plain_kernel\n"
        '25.0,1000,1,1000.0,1000,1000,0.0,"void pair<int, float>(int, float)"\n'
    )
    (profile,) = anything.read(path)
    assert [(one.kernel, one.count) for one in profile.launches] == [
        ("plain_kernel", 2),
        ("void pair<int, float>(int, float)", 1),
    ]
    assert profile.launches[0].values["time.profiled_ns"] == 1500
