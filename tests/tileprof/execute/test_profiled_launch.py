"""Counters: what a counter tool tells becomes metrics; a tool that fails costs the counters and nothing else."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tileprof.execute.profiled as profiled
from tileprof.execute.profiled import profile_with_ncu
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.plan.machine import Gpu
from tileprof.store.directory import RunDirectory
from tileprof.store.records import Metric, Provenance
from tileprof.workload.records import Case, KernelEntry, TargetEntry

H200 = Gpu("nvidia", "NVIDIA H200", "9.0", "580.1")
MEASURED = Metric("shared.transactions", 96.0, "transactions", Provenance("measured", "ncu", "2026.3"), 1, "A", "load")

FAKE_NCU = """#!/bin/sh
[ "$1" = --version ] && { echo "Version 2026.3.1.0"; exit 0; }
printf '%s\\n' "$@" > ARGUMENTS
log=; report=
while [ $# -gt 0 ]; do
  case "$1" in --log-file) log=$2;; -o) report=$2;; esac
  shift
done
BEHAVIOUR
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Profiles a case under a shell script that behaves as ncu is told to; gives the builder."""

    def run(behaviour: str, limit_s: float = 20.0, stop: threading.Event | None = None) -> CaseBuilder:
        script = tmp_path / "ncu"
        text = FAKE_NCU.replace("ARGUMENTS", str(tmp_path / "arguments")).replace("BEHAVIOUR", behaviour)
        script.write_text(text)
        script.chmod(0o755)
        monkeypatch.setenv("TILEPROF_NCU", str(script))
        target = TargetEntry("h200", "cuda:sm_90a", "cuda", ("ncu",))
        case = Case("k@h200", "0" * 16, KernelEntry("k", metrics=("busy.matrix",)), target, {}, {}, {})
        builder = CaseBuilder(case, 0, Paths(), "kernels/k")
        builder.compiled = {"symbol": "k_kernel"}
        request = {"do": "case", "bundle": str(tmp_path / "bundle"), "seed": 0}
        with RunDirectory(tmp_path / "run") as directory:
            profile_with_ncu(builder, request, directory, limit_s, ("raw__counter",), H200, stop or threading.Event())
            builder.job = json.loads((directory.temporary / f"{case.hash}.json").read_text())  # type: ignore[attr-defined]
        return builder

    return run


def test_measured_metrics_join_the_case(profile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    counter = Metric("raw.raw__counter", 7.0, "", MEASURED.provenance, launch=0)
    kernel = SimpleNamespace(raw_metrics=lambda: (counter,))
    report = SimpleNamespace(of_symbol=lambda symbol: (kernel,) if symbol == "k_kernel" else ())

    def read(path: Path, raw: tuple[str, ...]) -> SimpleNamespace:
        seen.append(path)
        assert raw == ("raw__counter",)
        return report

    joined = SimpleNamespace(metrics=(MEASURED,), notes=("joined by offset",))
    monkeypatch.setattr(profiled.ncu_file, "read", read)
    monkeypatch.setattr(profiled, "join_bundle", lambda given, bundle: [joined] if given is report else [])
    builder = profile('echo "==PROF== Profiling \\"k_kernel\\" - 0: 0%....100% - 9 passes" > "$log"; touch "$report"')
    assert (builder.metrics, builder.notes, builder.failed) == ([counter, MEASURED], ["joined by offset"], False)
    assert seen == [tmp_path / "run" / "raw" / f"{'0' * 16}.ncu-rep"]
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("--kernel-name") + 1] == "k_kernel"
    assert arguments[arguments.index("--launch-skip") + 1] == "2"
    asked = arguments[arguments.index("--metrics") + 1].split(",")
    assert {"raw__counter", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"} <= set(asked)
    assert arguments[-3:-1] == ["-m", "tileprof.launcher"]
    assert builder.job["launches"] == 3


def test_a_denied_tool_costs_the_counters_only(profile: Any) -> None:
    builder = profile('echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" > "$log"; exit 1')
    assert not builder.failed
    assert builder.metrics == []
    assert "no counters: ncu: no permission to read the GPU's counters" in builder.notes[0]


def test_nothing_recorded_is_an_invalid_measurement(profile: Any) -> None:
    builder = profile('echo "==WARNING== No kernels were profiled." > "$log"')
    assert (builder.status, "no launch of kernel k_kernel was recorded" in builder.reason) == (
        "invalid_measurement",
        True,
    )


def test_a_tool_that_hangs_is_ended(profile: Any) -> None:
    start = time.monotonic()
    builder = profile("sleep 600 & sleep 600", limit_s=0.5)
    assert time.monotonic() - start < 10
    assert (builder.failed, builder.notes) == (False, ["no counters: ncu did not end within 0.5 s"])


def test_the_end_of_the_sweep_ends_the_tool(profile: Any) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    start = time.monotonic()
    builder = profile("sleep 600", stop=stop)
    assert time.monotonic() - start < 10
    assert (builder.failed, builder.notes) == (False, [])


def test_a_tool_that_leaves_a_child_behind_in_a_session_of_its_own(profile: Any, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    profile(f"setsid sh -c 'echo $$ > {note}; exec sleep 600' & while [ ! -s {note} ]; do sleep 0.05; done; exit 1")
    process = Path("/proc") / note.read_text().strip()
    end = time.monotonic() + 5
    while process.exists() and "Z" not in (process / "stat").read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert not process.exists() or "Z" in (process / "stat").read_text()


GOOD_LOG = 'echo "==PROF== Profiling \\"k_kernel\\" - 0: 0%....100% - 9 passes" > "$log"'


@pytest.mark.parametrize(
    ("behaviour", "status", "words"),
    [
        ("kill -9 $$", "invalid_measurement", "status -9"),
        (f"{GOOD_LOG}; kill -9 $$", "invalid_measurement", "status -9"),
        (GOOD_LOG, None, "no counters: there is no report"),
        (f'{GOOD_LOG}; : > "$report"', None, "no counters"),
        (f'{GOOD_LOG}; head -c 5000 SAMPLE > "$report"', None, "no counters"),
        (f'{GOOD_LOG}; cp SAMPLE "$report"', None, "has no complete launch of kernel k_kernel"),
        (f'{GOOD_LOG}; echo "{{}}" > "$report"', None, "no counters"),
    ],
)
def test_a_tool_that_breaks_off_costs_the_counters_and_says_why(
    profile: Any, ncu_sample: Any, tmp_path: Path, behaviour: str, status: str | None, words: str
) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "kernel.json").write_text(json.dumps({"symbol": "k_kernel"}))
    (tmp_path / "bundle" / "listing.json").write_text("{}")
    builder = profile(behaviour.replace("SAMPLE", str(ncu_sample("h200_bank_conflicts_2025.3"))))
    assert builder.status == status
    assert words in builder.reason + "".join(builder.notes)
    assert builder.metrics == []
