from __future__ import annotations

from pathlib import Path

import pytest

from tileprof.collect import ncu
from tileprof.errors import CaseFailed, MeasurementInvalid, ProfilerUnavailable

GOOD = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "matmul" - 0: 0%....50%....100% - 12 passes
the program says hello ==ERROR== in the middle of a line
==PROF== Disconnected from process 4711
==PROF== Report: /tmp/out.ncu-rep
"""
NOTHING = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Disconnected from process 4711
==WARNING== No kernels were profiled.
Available Kernels:
  1. matmul_kernel
  2. void fill<float>(float *)
"""


def fake_machine(
    root: Path, *, version: str | None = "2025.3.1.0", admin_only: int = 0, capabilities: int = 0, driver: bool = True
) -> dict[str, str]:
    """A file tree that looks like a machine's, and an environment whose PATH leads to an ncu that answers."""
    if version is not None:
        tool = root / "opt/nvidia/nsight-compute/2025.3.1/ncu"
        tool.parent.mkdir(parents=True)
        tool.write_text(
            f"#!/bin/sh\necho 'NVIDIA (R) Nsight Compute Command Line Profiler'\necho 'Version {version} (build 1)'\n"
        )
        tool.chmod(0o755)
    if driver:
        proc = root / "proc/driver/nvidia"
        proc.mkdir(parents=True)
        (proc / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04\n")
        (proc / "params").write_text(f"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {admin_only}\n")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")
    return {"PATH": str(root / "empty")}


def test_found_and_allowed(tmp_path: Path) -> None:
    answer = ncu.available(fake_machine(tmp_path), tmp_path)
    assert answer.usable
    assert answer.version == "2025.3.1"


def test_the_newest_installation_is_taken(tmp_path: Path) -> None:
    fake_machine(tmp_path)
    for version in ("2024.1.1", "2025.10.0"):
        other = tmp_path / f"opt/nvidia/nsight-compute/{version}/ncu"
        other.parent.mkdir()
        other.touch(mode=0o755)
    assert ncu.find({"PATH": ""}, tmp_path) == str(other)


def test_tileprof_ncu_names_it(tmp_path: Path) -> None:
    fake_machine(tmp_path)
    mine = tmp_path / "mine"
    mine.touch(mode=0o755)
    assert ncu.find({"PATH": "", "TILEPROF_NCU": str(mine)}, tmp_path) == str(mine)
    assert ncu.find({"PATH": "", "TILEPROF_NCU": str(tmp_path / "wrong")}, tmp_path) is None


def test_not_installed(tmp_path: Path) -> None:
    answer = ncu.available(fake_machine(tmp_path, version=None), tmp_path)
    assert (answer.usable, answer.why) == (False, "not found")
    assert "TILEPROF_NCU" in answer.remedy


@pytest.mark.parametrize(("version", "usable"), [("2019.5.1", False), ("2022.2.1", False), ("2022.3.0", True)])
def test_too_old(tmp_path: Path, version: str, usable: bool) -> None:
    answer = ncu.available(fake_machine(tmp_path, version=version), tmp_path)
    assert answer.usable is usable
    if not usable:
        assert answer.why == f"version {version} is too old: reports of releases before 2022.3 are not known"
        assert "install Nsight Compute 2022.3 or later" in answer.remedy


def test_no_driver(tmp_path: Path) -> None:
    answer = ncu.available(fake_machine(tmp_path, driver=False), tmp_path)
    assert not answer.usable
    assert "no NVIDIA driver" in answer.why


@pytest.mark.parametrize(
    ("admin_only", "capabilities", "usable"),
    [(0, 0, True), (1, 0, False), (1, 1 << 21, True), (1, 1 << 38, True), (1, 0x00000000A80425FB, False)],
)
def test_permission(tmp_path: Path, admin_only: int, capabilities: int, usable: bool) -> None:
    """The last row is root in a container without further rights."""
    answer = ncu.available(fake_machine(tmp_path, admin_only=admin_only, capabilities=capabilities), tmp_path)
    assert answer.usable is usable
    if not usable:
        assert "NVreg_RestrictProfilingToAdminUsers=0" in answer.remedy
        assert "administrators" in answer.why


def test_command_line() -> None:
    line = ncu.command(
        "/opt/ncu",
        ["python", "-m", "child", "x"],
        symbol="matmul",
        report=Path("r.v1"),
        log=Path("l.txt"),
        launch_skip=3,
    )
    text = " ".join(line)
    assert line[0] == "/opt/ncu"
    assert line[-4:] == ["python", "-m", "child", "x"]
    assert "--section SourceCounters" in text
    assert "--clock-control none" in text
    assert "--kernel-name-base mangled --kernel-name matmul --launch-skip 3 --launch-count 1" in text
    assert "--log-file l.txt -f -o r.v1.ncu-rep" in text
    wanted = line[line.index("--metrics") + 1].split(",")
    assert {"memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal", "inst_executed"} <= set(wanted)
    assert {"memory_l2_theoretical_sectors_global", "smsp__pcsamp_sample_count", "gpu__time_duration.sum"} <= set(
        wanted
    )
    assert len(wanted) == len(set(wanted))


def test_a_good_log() -> None:
    log = ncu.check_log(GOOD)
    assert (log.profiled, log.errors) == (1, ())


def test_no_kernel_recorded_is_an_error_although_the_status_is_0() -> None:
    with pytest.raises(
        MeasurementInvalid, match=r"no launch of kernel matmul was recorded.*matmul_kernel, void fill<float>"
    ):
        ncu.check_log(NOTHING, 0, symbol="matmul")


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
            ProfilerUnavailable,
            "NVreg_RestrictProfilingToAdminUsers",
        ),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", ProfilerUnavailable, "sandbox"),
        (
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM)",
            MeasurementInvalid,
            "dcgmi",
        ),
        ("==ERROR== The application returned an error code (1).", CaseFailed, "without the profiler"),
        (
            "==ERROR== unrecognised option '--replay-mode'",
            ProfilerUnavailable,
            "does not know an option.*\n.*2022.3 or later",
        ),
        ("==ERROR== Failed to find metric foo__bar.sum", ProfilerUnavailable, "query-metrics"),
        ("==ERROR== An error of tomorrow", MeasurementInvalid, "An error of tomorrow"),
    ],
)
def test_errors_in_the_log(line: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ncu.check_log(GOOD + line + "\n", 0)


def test_a_bad_status_without_a_message() -> None:
    with pytest.raises(MeasurementInvalid, match="status 9"):
        ncu.check_log(GOOD, 9)
