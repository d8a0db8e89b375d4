"""Command lines and availability of AMD's profilers, against their documentation and with stand-ins: no AMD GPU was at hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tileprof.collect import rocprof, rocprofv3
from tileprof.collect.rocprofv3 import Sampling, Selection, collected, counter_commands, parse_listing
from tileprof.collect.rocprofv3_log import missing_counters, trouble_in
from tileprof.errors import CaseFailed, MeasurementInvalid, ProfilerUnavailable, UsageError
from tileprof.plan.amd_counters import counter_plan
from tileprof.plan.passes import PassPlan, over_limit, plan_passes

# options of rocprofv3 (rocprofiler-sdk 1.0, source/bin/rocprofv3.py)
OPTIONS = {
    "--pmc", "--kernel-include-regex", "--kernel-iteration-range", "--output-format", "-d", "-o", "--extra-counters",
    "--kernel-trace", "--marker-trace", "--hip-runtime-trace", "--pc-sampling-beta-enabled", "--pc-sampling-method",
    "--pc-sampling-unit", "--pc-sampling-interval",
}  # fmt: skip


def stand_in(folder: Path, name: str, script: str) -> Path:
    """An executable that stands in for a profiler."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def root_with(folder: Path, *, kfd: bool = True) -> Path:
    """A file system with or without the driver's device."""
    (folder / "dev").mkdir(parents=True, exist_ok=True)
    if kfd:
        (folder / "dev" / "kfd").touch()
    return folder


VERSION = "echo '    version: 1.0.0'; echo '    git_revision: abc'; echo '    compiler_version: 17.0'"


def test_usable_where_tool_and_device_are(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "rocprofv3", VERSION)
    state = rocprofv3.available({"PATH": str(tmp_path)}, root_with(tmp_path / "root"))
    assert (state.usable, state.path, state.version) == (True, str(path), "1.0.0")


@pytest.mark.parametrize(
    ("script", "kfd", "why", "remedy"),
    [
        (None, True, "not found", "install rocprofiler-sdk"),
        ("echo '  version: 0.4.0'", True, "version 0.4.0 takes no counters", "ROCm 6.3"),
        ("echo hello", True, "says no version", "install rocprofiler-sdk"),
        (VERSION, False, "no AMD GPU with its driver", "a machine with an AMD GPU"),
    ],
)
def test_what_is_missing_comes_with_its_remedy(
    tmp_path: Path, script: str | None, kfd: bool, why: str, remedy: str
) -> None:
    if script is not None:
        stand_in(tmp_path, "rocprofv3", script)
    state = rocprofv3.available({"PATH": str(tmp_path)}, root_with(tmp_path / "root", kfd=kfd))
    assert not state.usable
    assert why in state.why
    assert remedy in state.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every file")
def test_no_access_to_the_device(tmp_path: Path) -> None:
    stand_in(tmp_path, "rocprofv3", VERSION)
    root = root_with(tmp_path / "root")
    (root / "dev" / "kfd").chmod(0)
    state = rocprofv3.available({"PATH": str(tmp_path)}, root)
    assert "render,video" in state.remedy


def test_the_newest_rocm_is_found(tmp_path: Path) -> None:
    for version in ("6.4.1", "7.0.2", "7.10.0"):
        folder = tmp_path / "opt" / f"rocm-{version}" / "bin"
        folder.mkdir(parents=True)
        stand_in(folder, "rocprofv3", VERSION)
        stand_in(folder, "rocprof", "")
    assert "7.10.0" in (rocprofv3.find({"PATH": ""}, tmp_path) or "")
    assert "7.10.0" in (rocprof.find({"PATH": ""}, tmp_path) or "")
    named = stand_in(tmp_path, "mine", VERSION)
    assert rocprofv3.find({"PATH": "", "TILEPROF_ROCPROFV3": str(named)}, tmp_path) == str(named)
    state = rocprof.available({"PATH": "", "TILEPROF_ROCPROF": str(named)}, root_with(tmp_path / "root"))
    assert (state.usable, state.path) == (True, str(named))
    assert "rocprofv3" in rocprof.available({"PATH": ""}, tmp_path / "none").remedy


# --- command lines ---------------------------------------------------------------------------------------------------


def options_of(command: list[str]) -> list[str]:
    """Options before the program's own, which come after ``--``."""
    return [word for word in command[1 : command.index("--")] if word.startswith("-")]


def test_one_command_a_pass_each_within_the_limits(tmp_path: Path) -> None:
    plan = counter_plan("gfx942").passes
    commands = counter_commands("rocprofv3", ["./a.out", "--pmc"], plan, tmp_path)
    assert len(commands) == len(plan.passes) == 4
    for number, command in enumerate(commands, 1):
        assert set(options_of(command)) <= OPTIONS
        assert command[command.index("--") :] == ["--", "./a.out", "--pmc"], "the program's options stay its own"
        counters = command[command.index("--pmc") + 1 : command.index("--output-format")]
        assert not over_limit(counters)
        assert command[command.index("-d") + 1] == str(tmp_path / f"pass_{number}")
        assert "%pid%" in command[command.index("-o") + 1], "else all processes write one file"
        assert command[command.index("--output-format") + 1] == "csv", "the default changed between versions"


def test_a_pass_above_a_limit_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 of block TCC"):
        counter_commands("rocprofv3", ["x"], PassPlan((tuple(f"TCC_C{i}_sum" for i in range(5)),)), tmp_path)


def test_launches_are_selected_by_kernel_and_call(tmp_path: Path) -> None:
    selection = Selection("matmul_kernel", 3, 4)
    (command,) = counter_commands("rocprofv3", ["x"], plan_passes([["SQ_WAVES"]]), tmp_path, selection=selection)
    assert command[command.index("--kernel-include-regex") + 1] == "matmul_kernel"
    assert command[command.index("--kernel-iteration-range") + 1] == "[3-4]"
    assert Selection(first=2).arguments() == ["--kernel-iteration-range", "[2]"]
    assert Selection().arguments() == []


def test_accumulations_bring_their_definitions(tmp_path: Path) -> None:
    plan = plan_passes(
        [["SQ_LEVEL_WAVES_ACCUM", "GRBM_GUI_ACTIVE"], ["SQ_INST_LEVEL_LDS_ACCUM", "SQ_INSTS_LDS"], ["TCC_HIT_sum"]]
    )
    extra = tmp_path / "extra.yaml"
    commands = counter_commands("rocprofv3", ["x"], plan, tmp_path, extra=extra)
    for command in commands:
        assert ("--extra-counters" in command) == any(word.endswith("_ACCUM") for word in command)
        assert sum(word.endswith("_ACCUM") for word in command) <= 1
    counters = [name for one in plan.passes for name in one]
    new = yaml.safe_load(rocprofv3.extra_counters(counters, "1.0.0", ["gfx942"]))
    assert new["rocprofiler-sdk"]["counters-schema-version"] == 1
    definitions = {entry["name"]: entry["definitions"][0] for entry in new["rocprofiler-sdk"]["counters"]}
    assert definitions["SQ_LEVEL_WAVES_ACCUM"] == {
        "architectures": ["gfx942"],
        "expression": "accumulate(SQ_LEVEL_WAVES, HIGH_RES)",
    }
    old = yaml.safe_load(rocprofv3.extra_counters(counters, "0.6.0", ["gfx942", "gfx90a"]))
    assert (
        old["SQ_INST_LEVEL_LDS_ACCUM"]["architectures"]["gfx942/gfx90a"]["expression"]
        == "accumulate(SQ_INST_LEVEL_LDS, HIGH_RES)"
    )


def test_traces_and_sampling(tmp_path: Path) -> None:
    trace = rocprofv3.trace_command("rocprofv3", ["x"], tmp_path)
    assert set(options_of(trace)) == {
        "--kernel-trace",
        "--marker-trace",
        "--hip-runtime-trace",
        "--output-format",
        "-d",
        "-o",
    }
    way = Sampling("stochastic", "cycles", 256, 1 << 20, powers_of_two=True)
    command = rocprofv3.sampling_command("rocprofv3", ["x"], tmp_path, way, 1_000_000)
    for option in ("--pc-sampling-beta-enabled", "--pc-sampling-unit", "--pc-sampling-method"):
        assert option in command, "all three are needed"
    assert command[command.index("--pc-sampling-interval") + 1] == str(1 << 19)
    assert [way.interval(n) for n in (1, 256, 300, 1 << 30)] == [256, 256, 256, 1 << 20]
    assert Sampling("host_trap", "time", 1, 10).interval(99) == 10


def test_what_a_gpu_can_is_listed(profiles: Path) -> None:
    text = (profiles / "amd" / "rocprofv3" / "sdk1.0_rocm7.0_docs" / "list-avail.txt").read_text()
    (gpu,) = parse_listing(text)
    assert (gpu.gpu, gpu.arch) == (0, "gfx90a")
    assert gpu.counters == {"processor_id_low": "", "ALUStalledByLDS": "", "SQ_WAVES": "SQ"}
    assert gpu.sampling == (Sampling("host_trap", "time", 1, 18446744073709551615),)
    two = text.replace("Flags               :\tnone", "Flags               :\tnone\n   Method : stochastic\n   Unit : cycles\n"
                       "   Min_Interval : 256\n   Max_Interval : 2147483648\n   Flags : interval pow2")  # fmt: skip
    assert parse_listing(two)[0].sampling[1] == Sampling("stochastic", "cycles", 256, 2147483648, True)
    assert parse_listing("nothing\nhere: at all\n") == ()


@pytest.mark.parametrize("first", [True, False])
def test_rocm_6_4_lists_ways_of_sampling_by_node(first: bool) -> None:
    """Written after the documentation of rocprofiler-sdk 0.6."""
    ways = (
        "List available PC Sample Configurations for node_id     11\n"
        "Method: ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP\nUnit:   ROCPROFILER_PC_SAMPLING_UNIT_TIME\n"
        "Minimum_Interval:       1\nMaximum_Interval:       18446744073709551615\n"
    )
    counters = "GPU:0\nName:gfx942\nCounter_Name        :\tSQ_WAVES\nBlock               :\tSQ\n"
    (gpu,) = parse_listing(ways + counters if first else counters + ways)
    assert (gpu.arch, gpu.counters) == ("gfx942", {"SQ_WAVES": "SQ"})
    assert gpu.sampling == (Sampling("host_trap", "time", 1, 18446744073709551615),), "in the words that options take"


def test_v1_input_files() -> None:
    plan = plan_passes([["SQ_LEVEL_WAVES_ACCUM", "SQ_WAVES"], ["SQ_INSTS_VALU_MFMA_MOPS_F8", "TCC_HIT_sum"]])
    text = rocprof.input_text(plan, kernel="matmul", first=2, last=3)
    lines = text.splitlines()
    assert lines[-2:] == ["range: 2:4", "kernel: matmul"]
    passes = [line.removeprefix("pmc: ").split() for line in lines if line.startswith("pmc:")]
    (accumulating,) = [one for one in passes if "SQ_ACCUM_PREV_HIRES" in one]
    assert accumulating[accumulating.index("SQ_ACCUM_PREV_HIRES") - 1] == "SQ_LEVEL_WAVES", (
        "directly behind its counter"
    )
    assert "MOPS_F8" not in text, "v1 does not know it"
    with pytest.raises(UsageError):
        rocprof.input_text(PassPlan((tuple(f"SQ_C{i}" for i in range(9)),)))
    command = rocprof.command("rocprof", ["./a.out", "4"], Path("in.txt"), Path("out.csv"))
    assert command == ["rocprof", "-i", "in.txt", "--timestamp", "on", "-o", "out.csv", "./a.out", "4"]


def test_v1_accumulates_a_counter_that_is_also_asked_for() -> None:
    text = rocprof.input_text(PassPlan((("GRBM_GUI_ACTIVE", "SQ_LEVEL_WAVES", "SQ_LEVEL_WAVES_ACCUM", "SQ_WAVES"),)))
    assert text == "pmc: GRBM_GUI_ACTIVE SQ_LEVEL_WAVES SQ_ACCUM_PREV_HIRES SQ_WAVES\n"


# --- what came of it -------------------------------------------------------------------------------------------------


def test_a_stand_in_is_run_pass_by_pass_and_read(profiles: Path, tmp_path: Path) -> None:
    """A stand-in that writes, for each pass, a file of real form into the folder it is given."""
    source = profiles / "amd/rocprofv3/rocm7_mi355x_hipkittens/ds_write_b64/lds_conflict_counter_collection.csv"
    tool = stand_in(
        tmp_path,
        "rocprofv3",
        f'while [ "$1" != "-d" ]; do shift; done; mkdir -p "$2"; cp {source} "$2/tileprof_$$_counter_collection.csv"',
    )
    plan = plan_passes([[f"SQ_C{i}"] for i in range(9)])
    for command in counter_commands(str(tool), ["true"], plan, tmp_path / "out"):
        subprocess.run(command, check=True)
    profile = collected(tmp_path / "out", "", 0)
    assert [launch.values.get("shared.conflicts") for launch in profile.of_kernel("micro_tk")] == [60]


def test_nothing_written_and_only_agent_info(profiles: Path, tmp_path: Path) -> None:
    with pytest.raises(MeasurementInvalid, match="wrote no file and ended with status 1: it broke"):
        collected(tmp_path, "hello\nit broke\n", 1)
    shutil.copy(profiles / "amd/rocprofv3/rocm7_mi355x_hipkittens/ds_read_b128/bank_test_agent_info.csv", tmp_path)
    with pytest.raises(MeasurementInvalid, match="no kernel was seen") as caught:
        collected(tmp_path, "", 0)
    assert "ROCm" in (caught.value.remedy or "")


def test_a_run_that_was_ended_keeps_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "x_kernel_trace.csv").write_text(
        "Kind,Kernel_Name,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,k,1,5\nKERNEL_DISPATCH,k,7"
    )
    profile = collected(
        tmp_path, "Unable to find all counters for agent 1 (gpu-0, gfx950) in [A, B]. Found: [A]. Missing: [B]\n", 3
    )
    assert len(profile.launches) == 1
    assert any("damaged" in note for note in profile.notes)
    assert "counters that this GPU does not have: B" in profile.notes
    assert any("status 3" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("line", "error", "remedy"),
    [
        ("Could not construct profile cfg failed with error code 38: Request exceeds the capabilities of the hardware to collect",
         MeasurementInvalid, "passes are planned"),
        ("No tracing options were enabled", MeasurementInvalid, "fault of tileprof"),
        ("rocprof-trace-decoder library path not found", ProfilerUnavailable, "rocprof-trace-decoder"),
        ("PC sampling is not supported on this device", ProfilerUnavailable, "rocprofv3 -L"),
        ("Permission denied opening /dev/kfd", ProfilerUnavailable, "render and video"),
        ("rocprofv3 caught signal 15", MeasurementInvalid, "rocpd"),
        ("Segmentation fault (core dumped)", CaseFailed, "without the profiler"),
    ],
)  # fmt: skip
def test_known_messages(line: str, error: type[Exception], remedy: str) -> None:
    found = trouble_in(f"before\n\x1b[0;31mE2025 {line}\x1b[m\nafter\n")
    assert type(found) is error
    assert remedy in (found.remedy or "")
    assert "\x1b" not in str(found)
    assert "before" not in str(found)


def test_harmless_output_is_no_trouble(profiles: Path) -> None:
    assert trouble_in("hello\nall is well\n") is None
    log = (profiles / "amd/rocprof_compute/rocprofcompute3.1_vcopy_MI350/log.txt").read_text()
    assert trouble_in(log) is None, "lines marked as errors there only name result files"
    assert "SQ_IFETCH_LEVEL_ACCUM" in missing_counters(log)
    assert all(re.fullmatch(r"\w+(\[\d+\])?", name) for name in missing_counters(log))
