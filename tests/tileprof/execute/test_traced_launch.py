"""Traces: a stand-in nsys, its export read, and every way in which it can fail."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tileprof.collect import nsys
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.execute.traced import LAUNCHES, WARM_LAUNCHES, trace_kernel
from tileprof.store.directory import RunDirectory
from tileprof.workload.records import Case, KernelEntry, TargetEntry

FAKE = """#!/bin/sh
[ "$1" = --version ] && { echo "NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0"; exit 0; }
printf '%s\\n' "$@" > ARGUMENTS
while [ $# -gt 0 ]; do
  case "$1" in --output) report=$2;; --trace) trace=$2;; esac
  shift
done
BEHAVIOUR
"""


def export(path: Path, kernels: list[tuple[str, int]]) -> None:
    """An export with launches (symbol, nanoseconds), one behind the other."""
    names = sorted({name for name, _ in kernels})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(names)))
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, correlationId INT, globalPid INT, "
            "demangledName INT, shortName INT, mangledName INT, registersPerThread INT, gridX INT, gridY INT, gridZ INT, "
            "blockX INT, blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT)"
        )
        for number, (name, took) in enumerate(kernels):
            at, string = number * 100_000, names.index(name)
            row = (at, at + took, 0, number, 0, string, string, string, 32, 4, 1, 1, 128, 1, 1, 0, 0)
            connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * len(row))})", row)
    connection.close()


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Traces a case under a script that behaves as nsys is told to; gives the builder, the job and what is left behind."""

    def run(behaviour: str, limit_s: float = 20.0) -> Any:
        script = tmp_path / "nsys"
        script.write_text(FAKE.replace("ARGUMENTS", str(tmp_path / "arguments")).replace("BEHAVIOUR", behaviour))
        script.chmod(0o755)
        monkeypatch.setenv("TILEPROF_NSYS", str(script))
        target = TargetEntry("h200", "cuda:sm_90a", "cuda", ("nsys",))
        case = Case("k@h200", "0" * 16, KernelEntry("k"), target, {}, {}, {})
        builder = CaseBuilder(case, 0, Paths(), "kernels/k")
        builder.compiled = {"symbol": "k_kernel"}
        with RunDirectory(tmp_path / "run") as directory:
            trace_kernel(builder, {"do": "case", "bundle": "b", "seed": 0}, directory, limit_s, threading.Event())
            job = json.loads((directory.temporary / f"{case.hash}.nsys.json").read_text())
            left = sorted(path.name for path in directory.raw.iterdir()) if directory.raw.exists() else []
        return SimpleNamespace(builder=builder, job=job, left=left)

    return run


def test_the_times_on_the_device_join_the_case(traced: Any, tmp_path: Path) -> None:
    warm = [("k_kernel", 90_000)] * WARM_LAUNCHES
    export(tmp_path / "good.sqlite", [*warm, ("other", 5), *[("k_kernel", 1000 + n) for n in range(LAUNCHES)]])
    outcome = traced(f'cp {tmp_path}/good.sqlite "$report.sqlite"; : > "$report.nsys-rep"')
    (metric,) = outcome.builder.metrics
    assert (metric.metric, metric.value) == ("time.profiled_ns", 1000 + (LAUNCHES - 1) / 2)
    assert metric.provenance.tool == "nsys"
    assert f"median of {LAUNCHES} launches" in metric.provenance.detail
    assert outcome.job["launches"] == WARM_LAUNCHES + LAUNCHES
    assert outcome.job["name"] == "k@h200"
    assert outcome.left == []  # the trace holds the environment: it is not kept
    arguments = (tmp_path / "arguments").read_text().split("\n")
    assert arguments[:3] == ["profile", "--trace", "cuda,nvtx"]
    assert "tileprof.launcher" in arguments


def test_a_program_that_hangs_with_ranges_is_traced_without(traced: Any, tmp_path: Path) -> None:
    export(tmp_path / "good.sqlite", [("k_kernel", 1000)] * (WARM_LAUNCHES + LAUNCHES))
    hangs = 'case "$trace" in *nvtx*) sleep 100;; esac; '
    outcome = traced(hangs + f'cp {tmp_path}/good.sqlite "$report.sqlite"; : > "$report.nsys-rep"', limit_s=1.0)
    assert [metric.value for metric in outcome.builder.metrics] == [1000.0]
    assert outcome.builder.notes == ["nsys did not end within 1 s: traced again without NVTX ranges"]


def test_ten_thousand_kernels_where_a_few_were_meant(traced: Any, tmp_path: Path) -> None:
    others = [("other", 7), ("k_kernel", 1000)] * 5_000
    export(tmp_path / "many.sqlite", [*[("k_kernel", 90_000)] * WARM_LAUNCHES, *others])
    outcome = traced(f'cp {tmp_path}/many.sqlite "$report.sqlite"; : > "$report.nsys-rep"')
    (metric,) = outcome.builder.metrics
    assert metric.value == 1000.0
    assert "median of 5000 launches" in metric.provenance.detail


@pytest.mark.parametrize(
    ("behaviour", "status", "words"),
    [
        ("echo 'Unable to start: another session runs' >&2; exit 1", "invalid_measurement", "another session runs"),
        ("exit 0", "invalid_measurement", "no trace was written (status 0)"),
        ('cp NONE.sqlite "$report.sqlite"', "invalid_measurement", "recorded no launch of kernel k_kernel"),
        ("echo 'error while loading shared libraries: libdw.so.1' >&2; exit 127", None, "no trace: nsys"),
        (
            "echo \"unrecognised option '--cuda-graph-trace'\"; exit 1",
            None,
            "option '--cuda-graph-trace'\n  help: install a newer",
        ),
        ('echo text > "$report.sqlite"', None, "no trace"),
        ("sleep 100", None, "no trace: nsys did not end within 1 s"),
    ],
)
def test_a_failing_tool_costs_the_trace_and_is_explained(
    traced: Any, tmp_path: Path, behaviour: str, status: str | None, words: str
) -> None:
    export(tmp_path / "none.sqlite", [("other", 5)])
    outcome = traced(behaviour.replace("NONE", str(tmp_path / "none")), limit_s=1.0 if "sleep" in behaviour else 20.0)
    assert outcome.builder.status == status
    assert words in outcome.builder.reason + "".join(outcome.builder.notes)
    assert outcome.builder.metrics == []


def test_found_and_its_version(tmp_path: Path) -> None:
    root = tmp_path / "root"
    place = root / "opt/nvidia/nsight-systems/2025.3.1/bin/nsys"
    place.parent.mkdir(parents=True)
    place.write_text("#!/bin/sh\necho 'NVIDIA Nsight Systems version 2025.3.1.90'\n")
    place.chmod(0o755)
    state = nsys.available({"PATH": ""}, root)
    assert (state.usable, state.version) == (False, "2025.3.1.90")
    assert "no NVIDIA driver" in state.why
    (root / "proc/driver/nvidia").mkdir(parents=True)
    (root / "proc/driver/nvidia/version").write_text("NVRM version: 580\n")
    assert nsys.available({"PATH": ""}, root).usable
    absent = nsys.available({"PATH": ""}, tmp_path)
    assert (absent.usable, absent.why) == (False, "not found")
    assert "TILEPROF_NSYS" in absent.remedy


def test_what_a_missing_export_means(tmp_path: Path) -> None:
    with pytest.raises(ProfilerUnavailable, match="libelf"):
        nsys.check(127, "nsys: error while loading shared libraries: libelf.so.1: cannot open", tmp_path / "none")
    with pytest.raises(MeasurementInvalid, match="no message"):
        nsys.check(1, "", tmp_path / "none")
