"""Counters: what a counter tool tells becomes metrics; a tool that fails costs the counters and nothing else."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tileprof.execute.profiled as profiled
from tileprof.collect.ncu_file import KernelProfile, NcuReport
from tileprof.execute.profiled import RECORD, NcuPhase, Waiting, symbols_pattern
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
            phase = NcuPhase(directory, limit_s, ("raw__counter",), H200, stop or threading.Event())
            phase.profile([Waiting(builder, request)])
            builder.job = json.loads((directory.temporary / f"{case.hash}.json").read_text())  # type: ignore[attr-defined]
        return builder

    return run


def test_measured_metrics_join_the_case(profile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    counter = Metric("raw.raw__counter", 7.0, "", MEASURED.provenance, launch=0)
    kernel = SimpleNamespace(raw_metrics=lambda: (counter,))
    report = SimpleNamespace(of_symbol=lambda symbol: (kernel,) if symbol == "k_kernel" else (), kernels=(kernel,))

    def read(path: Path, raw: tuple[str, ...], every: int) -> SimpleNamespace:
        seen.append(path)
        assert raw == ("raw__counter",)
        return report

    joined = SimpleNamespace(metrics=(MEASURED,), notes=("joined by offset",))
    monkeypatch.setattr(profiled.ncu_file, "read", read)
    monkeypatch.setattr(profiled, "join_bundle", lambda given, bundle, grid: [joined] if given is report else [])
    builder = profile('echo "==PROF== Profiling \\"k_kernel\\" - 0: 0%....100% - 9 passes" > "$log"; touch "$report"')
    assert (builder.metrics, builder.notes, builder.failed) == ([counter, MEASURED], ["joined by offset"], False)
    assert seen == [tmp_path / "run" / "raw" / f"{'0' * 16}.ncu-rep"]
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("--kernel-name") + 1] == "k_kernel"
    assert arguments[arguments.index("--launch-skip") + 1] == "0"
    assert arguments[arguments.index("--profile-from-start") + 1] == "off"  # the launcher says when
    asked = arguments[arguments.index("--metrics") + 1].split(",")
    assert {"raw__counter", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"} <= set(asked)
    assert arguments[-3:-1] == ["-m", "tileprof.launcher"]
    (request,) = builder.job["cases"]
    assert request["bundle"] == str(tmp_path / "bundle")


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


# -- several cases in one process --------------------------------------------------------------------------------------

TOGETHER = """#!{python}
import json, os, signal, sys, time
arguments = sys.argv[1:]
job = json.load(open(arguments[-1]))
numbers = [int(request["bundle"][-1]) for request in job["cases"]]
with open({runs!r}, "a") as file:
    print(json.dumps(dict(cases=numbers, symbol=arguments[arguments.index("--kernel-name") + 1])), file=file)
log = open(arguments[arguments.index("--log-file") + 1], "w")

def tell(case, state, reason=""):
    with open(job["journal"], "a") as file:
        print(json.dumps(dict(case=case, state=state, reason=reason)), file=file)

recorded = []
for place, number in enumerate(numbers):
    tell(place, "begun")
    {behaviour}
    tell(place, "recorded")
    recorded.append(number)
    print('==PROF== Profiling "k" - 0: 0%....100% - 9 passes', file=log)
json.dump(recorded, open(arguments[arguments.index("-o") + 1], "w"))
"""


class Together:
    """Cases 0, 1, 2 and a stand-in for ncu that does something to some of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(profiled.ncu_file, "read", self.read)
        monkeypatch.setattr(profiled, "join_bundle", self.join)
        self.order: Any = list  # how the report puts the launches

    def read(self, path: Path, raw: Any, every: int) -> NcuReport:
        numbers = self.order(json.loads(path.read_text()))
        return NcuReport("2026.3", tuple(launch_of(number, index) for index, number in enumerate(numbers)))

    def join(self, report: NcuReport, bundle: Path, grid: Any) -> list[Any]:
        (launch,) = report.kernels
        assert (launch.index, launch.symbol) == (0, f"k{bundle.name[-1]}_kernel")
        return [SimpleNamespace(metrics=launch.metrics, notes=())]

    def profile(self, behaviour: str, limit_s: float = 20.0) -> list[CaseBuilder]:
        script = self.folder / "ncu"
        runs = str(self.folder / "runs.jsonl")
        script.write_text(TOGETHER.format(python=sys.executable, runs=runs, behaviour=behaviour))
        script.chmod(0o755)
        self.monkeypatch.setenv("TILEPROF_NCU", str(script))
        target = TargetEntry("h200", "cuda:sm_90a", "cuda", ("ncu",))
        builders = []
        for number in range(3):
            case = Case(f"k{number}@h200", f"{number:016}", KernelEntry(f"k{number}"), target, {}, {}, {})
            builder = CaseBuilder(case, number, Paths(), f"kernels/k{number}")
            builder.compiled = {"symbol": f"k{number}_kernel"}
            builders.append(builder)
        waiting = [Waiting(builder, {"bundle": str(self.folder / f"b{n}")}) for n, builder in enumerate(builders)]
        with RunDirectory(self.folder / "run") as directory:
            NcuPhase(directory, limit_s, (), H200, threading.Event()).profile(waiting)
        return builders

    @property
    def runs(self) -> list[list[int]]:
        """Which cases each process had."""
        return [json.loads(line)["cases"] for line in (self.folder / "runs.jsonl").read_text().splitlines()]


def launch_of(number: int, index: int) -> KernelProfile:
    metric = Metric("time.profiled_ns", 100.0 + number, "ns", MEASURED.provenance, launch=index)
    symbol = f"k{number}_kernel"
    return KernelProfile(
        index, symbol, symbol, "NVIDIA H200", (9, 0), None, None, 9, MEASURED.provenance, (metric,), {}, (), ()
    )


def values(builder: CaseBuilder) -> list[float]:
    return [metric.value for metric in builder.metrics]


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Together:
    return Together(tmp_path, monkeypatch)


def test_cases_share_a_process_and_get_their_own_launch(together: Together, tmp_path: Path) -> None:
    builders = together.profile("pass")
    assert together.runs == [[0, 1, 2]]
    assert [values(builder) for builder in builders] == [[100.0], [101.0], [102.0]]
    assert {metric.launch for builder in builders for metric in builder.metrics} == {0}
    assert all(builder.seconds > 0 and not builder.notes for builder in builders)
    (phase,) = json.loads((tmp_path / "run" / "raw" / RECORD).read_text())
    assert phase["cases"] == ["k0@h200", "k1@h200", "k2@h200"]
    assert 0 < phase["process_s"] <= phase["wall_s"]
    line = json.loads((tmp_path / "runs.jsonl").read_text())
    assert line["symbol"] == "regex:^(k0_kernel|k1_kernel|k2_kernel)$"


def test_ten_thousand_launches_where_one_was_meant(together: Together) -> None:
    """A tool that passes over its limit: cases of one process are told apart alone, and the first launch is the case's."""
    together.order = lambda numbers: [number for number in numbers for _ in range(10_000)]
    start = time.monotonic()
    builders = together.profile("pass")
    assert time.monotonic() - start < 20
    assert together.runs == [[0, 1, 2], [0], [1], [2]]
    assert [values(builder) for builder in builders] == [[100.0], [101.0], [102.0]]
    for number, builder in enumerate(builders):
        told = f"ncu recorded 10,000 launches of k{number}_kernel where one was meant: the first is used"
        assert (builder.failed, builder.notes) == (False, [told])


def test_a_tool_that_does_not_know_an_option_is_too_old(profile: Any) -> None:
    builder = profile("echo \"==ERROR== unrecognised option '--replay-mode'\"; exit 1")  # before it has a log
    assert not builder.failed
    assert builder.notes[0].startswith("no counters: ncu: this release does not know an option: unrecognised option")
    assert "install Nsight Compute 2022.3 or later" in builder.notes[0]


@pytest.mark.parametrize(
    ("behaviour", "note"),
    [
        ("if number == 1: time.sleep(600)", "no counters: ncu did not end within 3 s"),
        (
            "if number == 1: print('==ERROR== The application returned an error code (11).', file=log, flush=True); os._exit(1)",
            "no counters: ncu: the profiled program failed: The application returned an error code (11).",
        ),
        (
            'if number == 1: tell(place, "failed", "the tensor is too large"); continue',
            "no counters: the tensor is too large",
        ),
    ],
)
def test_one_that_hangs_crashes_or_fails_costs_itself_alone(together: Together, behaviour: str, note: str) -> None:
    start = time.monotonic()
    builders = together.profile(behaviour, limit_s=3.0)
    assert time.monotonic() - start < 30
    assert [values(builder) for builder in builders] == [[100.0], [], [102.0]]
    assert [len(builder.notes) for builder in builders] == [0, 1, 0]
    assert builders[1].notes[0].startswith(note)
    assert not any(builder.failed for builder in builders)
    again = {"sleep": [[0, 2]], "print": [[1], [0, 2]], "tell(": []}
    assert together.runs == [[0, 1, 2], *next(runs for word, runs in again.items() if word in behaviour)]


def test_one_that_dies_while_the_next_is_made_is_tried_alone(together: Together) -> None:
    """As where memory runs out for two cases, and suffices for each."""
    died = "print('==ERROR== The application returned an error code (9).', file=log, flush=True); os._exit(1)"
    builders = together.profile(f"if number == 1 and 2 in numbers: {died}")
    assert [values(builder) for builder in builders] == [[100.0], [101.0], [102.0]]
    assert together.runs == [[0, 1, 2], [1], [0, 2]]
    assert not any(builder.notes for builder in builders)


def test_what_fails_behind_another_failure_is_tried_again(together: Together) -> None:
    builders = together.profile('if 1 in numbers and number > 0: tell(place, "failed", f"{number} fails"); continue')
    assert [values(builder) for builder in builders] == [[100.0], [], [102.0]]
    assert builders[1].notes == ["no counters: 1 fails"]
    assert together.runs == [[0, 1, 2], [2]]


@pytest.mark.parametrize("behaviour", ["if len(numbers) > 1: os.kill(os.getpid(), signal.SIGKILL)", "pass"])
def test_where_nobody_is_to_blame_each_is_tried_alone(together: Together, behaviour: str) -> None:
    """Killed half-way; and a report whose launches are not those that were made."""
    if behaviour == "pass":
        together.order = lambda numbers: numbers[::-1]
    builders = together.profile(behaviour)
    assert together.runs == [[0, 1, 2], [0], [1], [2]]
    assert [values(builder) for builder in builders] == [[100.0], [101.0], [102.0]]


def test_a_denied_profiler_is_started_once(together: Together) -> None:
    denied = (
        "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission', file=log, flush=True); os._exit(1)"
    )
    builders = together.profile(denied)
    assert together.runs == [[0, 1, 2]]
    assert all("no permission to read the GPU's counters" in builder.notes[0] for builder in builders)


def test_one_that_hangs_before_any_case_is_not_waited_for_again(together: Together) -> None:
    start = time.monotonic()
    script = 'open(job["journal"], "w").close(); time.sleep(600)'
    builders = together.profile(script, limit_s=0.5)
    assert time.monotonic() - start < 10
    assert all(builder.notes == ["no counters: ncu did not end within 0.5 s"] for builder in builders)


def test_what_the_system_refuses_costs_the_counters_only(together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(profiled, "run_ncu", refused)
    builders = together.profile("pass")
    assert all(builder.notes == ["no counters: [Errno 28] No space left on device"] for builder in builders)
    assert not any(builder.failed for builder in builders)


def test_time_alone_is_not_counted_as_time_together_too(together: Together) -> None:
    together.order = lambda numbers: numbers[::-1]  # not as launched: each is tried alone
    began = time.monotonic()
    builders = together.profile("time.sleep(0.2)")
    assert together.runs == [[0, 1, 2], [0], [1], [2]]
    assert all(values(builder) for builder in builders)
    assert sum(builder.seconds for builder in builders) <= time.monotonic() - began


def test_a_record_that_was_cut_off_is_begun_anew(together: Together) -> None:
    raw = together.folder / "run" / "raw"
    raw.mkdir(parents=True)
    (raw / RECORD).write_text('[{"report": "0')
    assert all(values(builder) for builder in together.profile("pass"))
    assert len(json.loads((raw / RECORD).read_text())) == 1


def test_the_filter_names_one_kernel_or_all_of_them() -> None:
    assert symbols_pattern(["a", "a"]) == "a"
    assert symbols_pattern(["b", "a", "b"]) == "regex:^(a|b)$"
