"""rocprofv3 around a case: what it tells becomes metrics; what goes wrong costs what it would have told, and nothing else.

The tool is the stand-in of tests/stand_ins, the program a shell script that says what it launches."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tileprof.collect.rocprofv3 import Listed, Sampling
from tileprof.errors import ProfileFormatError
from tileprof.execute import profiled_amd, rocprofv3_run
from tileprof.execute.foreign import recorded
from tileprof.execute.profiled import Waiting
from tileprof.execute.profiled_amd import RocprofPhase, interval_for
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.execute.rocprofv3_run import known_counters
from tileprof.launcher import ranges
from tileprof.plan.amd_counters import counter_plan
from tileprof.plan.machine import Gpu
from tileprof.plan.passes import PassPlan, plan_passes
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory
from tileprof.workload.records import Case, KernelEntry, TargetEntry

MI300X = Gpu("amd", "AMD Instinct MI300X", "gfx942", "6.12.12")
COUNTERS = {
    "GRBM_GUI_ACTIVE": 160_000,
    "SQ_WAVES": 8,
    "SQ_LDS_BANK_CONFLICT": 60,
    "SQ_LDS_IDX_ACTIVE": 100,
    "SQ_INSTS_LDS": 9,
}

# a program that launches kernel turn as often as the job says, and another one before it; ranges as the launcher makes them
PROGRAM = """#!/bin/sh
for job in "$@"; do :; done
launches=$(sed 's/.*"launches": \\([0-9]*\\).*/\\1/' "$job")
echo "$$ $$ 1 other 128 1 1 64 1 1 0 1000 2000" >> "$FAKE_HIP_TRACE"
i=0
while [ $i -lt $launches ]; do
  start=$((i * 100000 + 10000))
  echo "$$ $$ $((i + 2)) turn 256 2 1 128 1 1 0 $start $((start + 4000 + i * 10))" >> "$FAKE_HIP_TRACE"
  [ -n "$RANGES" ] && echo "$$ $$ $((i * 100000)) $((i * 100000 + 90000)) k[N=64]@mi300x #$i" >> "$FAKE_ROCTX_TRACE"
  i=$((i + 1))
done
exit 0
"""

Profile = Callable[..., CaseBuilder]


@pytest.fixture
def profile(rocm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Profiles a case of kernel turn under the stand-in; gives the builder."""
    program = tmp_path / "program"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (tmp_path / "counters.json").write_text(json.dumps(COUNTERS))
    monkeypatch.setenv("TILEPROF_ROCPROFV3", str(rocm / "bin" / "rocprofv3"))
    monkeypatch.setenv("STAND_IN_COUNTERS", str(tmp_path / "counters.json"))
    monkeypatch.setenv("STAND_IN_COMMANDS", str(tmp_path / "commands"))
    monkeypatch.setattr(profiled_amd, "sys", SimpleNamespace(executable=str(program)))
    for module in (profiled_amd, rocprofv3_run):
        monkeypatch.setattr(module, "listing", lambda tool: ())

    def run(
        fault: str = "",
        *,
        metrics: tuple[str, ...] = ("launch.warps",),
        raw: tuple[str, ...] = (),
        passes: PassPlan | None = None,
        limit_s: float = 30.0,
        stop: threading.Event | None = None,
    ) -> CaseBuilder:
        monkeypatch.setenv("STAND_IN_FAULT", fault)
        target = TargetEntry("mi300x", "hip:gfx942", "hip", ("rocprofv3",))
        case = Case("k[N=64]@mi300x", "0" * 16, KernelEntry("k"), target, {}, {}, {})
        builder = CaseBuilder(case, 0, Paths(), "kernels/k")
        builder.compiled = {"symbol": "turn"}
        planned = counter_plan("gfx942", metrics, raw)
        if passes is not None:
            planned = SimpleNamespace(passes=passes)  # type: ignore[assignment]
        plan = TargetPlan(target, launches=True, gpu=MI300X, passes=planned)
        request = {"do": "case", "bundle": str(tmp_path / "bundle"), "seed": 0}
        with RunDirectory(tmp_path / "run", force=True) as directory:
            phase = RocprofPhase(directory, limit_s, raw, plan, stop or threading.Event())
            phase.profile([Waiting(builder, request)])
        return builder

    return run


def measured(builder: CaseBuilder) -> dict[str, float]:
    return {metric.metric: metric.value for metric in builder.metrics}


def commands(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "commands").read_text().splitlines()]


def test_counters_of_one_launch_and_the_time_of_a_trace(profile: Profile, tmp_path: Path) -> None:
    builder = profile(metrics=("launch.warps", "shared.conflicts", "l2.hit_rate"), raw=("SQ_INSTS_LDS",))
    found = measured(builder)
    assert (found["launch.warps"], found["shared.conflicts"], found["raw.SQ_INSTS_LDS"]) == (8, 60, 9)
    assert "l2.hit_rate" not in found, "missing is not zero"
    assert any("does not have: TCC_HIT_sum, TCC_MISS_sum" in note for note in builder.notes)
    times = [4000 + 10 * i for i in range(2, 22)]
    assert found["time.profiled_ns"] == sum(times) / len(times), "the median of the 20 behind the warm ones"
    assert found["launch.blocks"] == 2 * 2
    counted, traced = commands(tmp_path)
    assert counted[counted.index("--kernel-include-regex") + 1] == "turn"
    assert counted[counted.index("--kernel-iteration-range") + 1] == "[3]"
    assert {"--kernel-trace", "--marker-trace"} <= set(counted) & set(traced)
    assert not builder.failed


def test_ranges_say_which_launches_are_the_cases(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANGES", "yes")
    script = tmp_path / "program"
    # somebody else launches a kernel of the same name, inside no range of ours
    script.write_text(script.read_text().replace("1 other 128", "1 turn 128"))
    found = measured(profile())
    assert found["launch.blocks"] == 4, "of the case's launch, not of the other one"
    assert found["time.profiled_ns"] == sum(4000 + 10 * i for i in range(2, 22)) / 20


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("denied", None, "no counters: rocprofv3: no access to the GPU"),
        ("killed", "invalid_measurement", "wrote no file and ended with status -9"),
        ("half", None, "it ended with status -9"),
        ("empty", "invalid_measurement", "rocprofv3: "),
        ("truncated", None, "damaged rows were left out"),
        ("nan", "invalid_measurement", "counted nothing"),
        ("nothing", "invalid_measurement", "no kernel was recorded: only agent_info was written"),
        ("crash", None, "no counters: rocprofv3: the profiled program crashed"),
        ("colours", None, ""),
        ("many", None, ""),
        ("zero-based", None, ""),
    ],
)
def test_faults(profile: Profile, fault: str, status: str | None, words: str) -> None:
    builder = profile(fault, metrics=("launch.warps", "shared.conflicts"))
    assert builder.status == status, builder.reason
    assert words in builder.reason + "\n".join(builder.notes)
    found = measured(builder)
    good = fault in ("half", "colours", "many", "zero-based")
    if good:
        assert (found["launch.warps"], found["shared.conflicts"]) == (8, 60), (
            "of one launch, however many were recorded"
        )
    elif fault != "truncated":
        assert "launch.warps" not in found


def test_a_pass_above_a_limit_would_abort_at_the_first_dispatch(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans never have one; a GPU with smaller limits than those known here would still end so."""
    monkeypatch.setattr("tileprof.collect.rocprofv3.over_limit", lambda counters: {})
    builder = profile(passes=PassPlan((tuple(f"TCC_C{i}_sum" for i in range(5)),)))
    assert builder.status == "invalid_measurement"
    assert "more counters of one block than the hardware has" in builder.reason
    assert "error code 38" in builder.reason


def test_a_pass_that_fails_costs_its_counters_only(profile: Profile) -> None:
    plan = plan_passes([["SQ_WAVES"], [f"TCC_C{i}_sum" for i in range(4)], ["SQ_LDS_BANK_CONFLICT", "TCC_HIT_sum"]])
    assert len(plan.passes) == 2
    builder = profile("second-pass", passes=plan)
    assert not builder.failed
    assert "pass 2 of 2 wrote nothing (status 1)" in builder.notes
    assert "it ended with status 1: it broke" in builder.notes


def orphan(place: Path) -> bool:
    """Whether a process is the child that the stand-in left behind, in a session of its own."""
    with suppress(OSError):
        return b"STAND_IN_FAULT=orphan" in place.read_bytes() and b"sleep" in place.with_name("cmdline").read_bytes()
    return False


def test_a_tool_that_hangs_is_ended_with_its_children(profile: Profile) -> None:
    start = time.monotonic()
    builder = profile("orphan", limit_s=1.0)
    assert time.monotonic() - start < 15
    assert (builder.failed, builder.notes[0]) == (False, "no counters: rocprofv3 did not end within 1 s")
    assert not [place for place in Path("/proc").glob("[0-9]*/environ") if orphan(place)]


def test_the_end_of_the_sweep_ends_the_tool(profile: Profile) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    builder = profile("hang", stop=stop)
    assert (builder.failed, builder.notes) == (False, [])


def test_a_kernel_that_is_not_launched_is_invalid(profile: Profile, tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text(script.read_text().replace(" turn 256", " turned_away 256"))
    builder = profile()
    assert builder.status == "invalid_measurement"
    assert (
        "recorded no launch of kernel turn; kernels it saw: __amd_rocclr_fillBufferAligned, other, turned_away"
        in builder.reason
    )


def test_a_tool_that_is_gone(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEPROF_ROCPROFV3", "/nowhere/rocprofv3")
    builder = profile()
    assert (builder.failed, builder.notes) == (False, ["no counters: rocprofv3 is gone"])


# --- several cases in one process -----------------------------------------------------------------------------------

SEQUENCE = """#!{python}
import json, os, sys
job = json.load(open(sys.argv[-1]))
trace, ranges = (open(os.environ[name], "a") for name in ("FAKE_HIP_TRACE", "FAKE_ROCTX_TRACE"))
now = number = 0
for place, one in enumerate(job.get("sequence", [job])):
    if "journal" in job:
        open(job["journal"], "a").write("begun\\n")
    if {fails}:
        print("tileprof: a case of the sequence failed", file=sys.stderr)
        continue
    for i in range(one["launches"]):
        now, number = now + 100000, number + 1
        blocks = 2 + int(one["name"][2])
        print(os.getpid(), os.getpid(), number, "turn", 128 * blocks, 1, 1, 128, 1, 1, 0, now, now + 1000 * blocks, file=trace)
        print(os.getpid(), os.getpid(), now - 10, now + 90000, one["name"] + f" #{{i}}", file=ranges)
"""


def together(tmp_path: Path, fails: str = "False", count: int = 3) -> list[CaseBuilder]:
    """Profiles cases of one kernel's name, whose grids differ, in a phase."""
    (tmp_path / "program").write_text(SEQUENCE.format(python=sys.executable, fails=fails))
    target = TargetEntry("mi300x", "hip:gfx942", "hip", ("rocprofv3",))
    plan = TargetPlan(
        target, launches=True, gpu=MI300X, passes=counter_plan("gfx942", ["launch.warps", "shared.conflicts"])
    )
    waiting = []
    for number in range(count):
        case = Case(f"k[{number}]", f"{number:016x}", KernelEntry("k"), target, {}, {}, {})
        builder = CaseBuilder(case, number, Paths(), "kernels/k")
        builder.compiled = {"symbol": "turn"}
        waiting.append(Waiting(builder, {"bundle": str(tmp_path / "bundle")}))
    with RunDirectory(tmp_path / "run", force=True) as directory:
        RocprofPhase(directory, 30.0, (), plan, threading.Event()).profile(waiting)
    return [one.builder for one in waiting]


def test_cases_share_processes_and_are_told_apart_by_ranges(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "")
    builders = together(tmp_path)
    assert not any(builder.failed for builder in builders)
    assert [measured(builder)["launch.warps"] for builder in builders] == [4, 6, 8], (
        "2, 3 and 4 blocks of two wavefronts"
    )
    assert [measured(builder)["time.profiled_ns"] for builder in builders] == [2000, 3000, 4000]
    assert len(commands(tmp_path)) == 2, "one pass and one trace for all"
    assert [len([m for m in builder.metrics if m.metric == "shared.conflicts"]) for builder in builders] == [1, 1, 1]


def test_a_case_that_fails_costs_the_others_nothing(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "")
    builders = together(tmp_path, "place == 1")  # of several
    assert [measured(builder)["launch.warps"] for builder in builders] == [4, 6, 8]
    assert len(commands(tmp_path)) == 1 + 2 * 3, "each alone after the one that did not work"


def test_a_case_that_hangs_costs_the_time_of_one(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "")
    asked: list[tuple[float, int]] = []
    run_command = rocprofv3_run.run_command

    def run(command: Any, limit_s: float, *arguments: Any, journal: Path, **options: Any) -> int | None:
        status = run_command(command, limit_s, *arguments, journal=journal, **options)
        asked.append((limit_s, len(journal.read_text().splitlines()) if journal.exists() else 0))
        return status

    monkeypatch.setattr(rocprofv3_run, "run_command", run)
    together(tmp_path)
    assert asked == [(30.0, 3)] * 2, "the limit begins anew with each of three cases"


def test_what_holds_for_all_is_tried_once(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "denied")
    builders = together(tmp_path)
    assert all("no counters: rocprofv3: no access to the GPU" in builder.notes[0] for builder in builders)
    assert len(commands(tmp_path)) == 1


def test_files_of_samples_name_the_host_and_are_deleted(
    rocm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEPROF_ROCPROFV3", str(rocm / "bin" / "rocprofv3"))
    target = TargetEntry("mi300x", "hip:gfx942", "hip", ("rocprofv3",))
    plan = TargetPlan(target, launches=True, gpu=MI300X)
    directory: Any = SimpleNamespace(raw=tmp_path / "raw", temporary=tmp_path / "temporary")
    tool = rocprofv3_run.Rocprofv3("k", plan, directory, 1.0, threading.Event(), lambda launches: ["true"])

    def run(command: Any, name: str) -> tuple[str, int]:
        (tool.temporary / name / "1_results.json").write_text('{"rocprofiler-sdk-tool": [')
        return "", 0

    monkeypatch.setattr(tool, "_run", run)
    with pytest.raises(ProfileFormatError, match=r"1_results\.json"):
        tool.samples(10, Sampling("host_trap", "time", 1, 10, False), 5, "turn")
    assert list(tool.temporary.iterdir()) == []


# --- what the GPU lists ----------------------------------------------------------------------------------------------


def test_counters_that_the_gpu_does_not_list_are_not_asked_for() -> None:
    plan = plan_passes([["SQ_WAVES", "SQ_LEVEL_WAVES_ACCUM"], ["TCC_HIT_sum", "TCC_MISS_sum"], ["SQ_LDS_NEW"]])
    counters = dict.fromkeys(("SQ_WAVES", "SQ_LEVEL_WAVES", "TCC_HIT", "TCC_MISS_sum", "GRBM_GUI_ACTIVE"), "")
    gpu = Listed(0, "gfx942", counters, ())
    kept, lacking = known_counters(plan, "gfx942", [gpu, Listed(1, "gfx90a", {"SQ_LDS_NEW": ""}, ())])
    assert lacking == ("SQ_LDS_NEW",)
    names = {name for one in kept.passes for name in one}
    assert names == {"SQ_WAVES", "SQ_LEVEL_WAVES_ACCUM", "TCC_HIT_sum", "TCC_MISS_sum", "GRBM_GUI_ACTIVE"}
    assert known_counters(plan, "gfx942", []) == (plan, ())
    alone = plan_passes([["SQ_LDS_NEW"], [f"TCC_C{i}" for i in range(4)]])
    kept, _ = known_counters(alone, "gfx942", [gpu])
    assert kept.passes in ((), (("GRBM_GUI_ACTIVE",),)), "a pass of nothing but cycles is no pass"


def test_where_the_gpu_lists_none_of_the_counters_the_rest_is_measured(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Listed(0, "gfx942", {"GRBM_GUI_ACTIVE": "", "SQ_NEW": ""}, ())
    monkeypatch.setattr(rocprofv3_run, "listing", lambda tool: (gpu,))
    builder = profile()
    assert builder.notes[0].startswith("no counters: rocprofv3 lists none of the planned counters for this GPU")
    assert "counters that this GPU does not have: SQ_WAVES" in builder.notes
    assert (builder.failed, list(measured(builder))) == (False, ["time.profiled_ns"])
    assert len(commands(tmp_path)) == 1, "the trace"


def test_the_sampling_interval_follows_the_time_of_the_kernel() -> None:
    stochastic = Sampling("stochastic", "cycles", 256, 1 << 31, True)
    trap = Sampling("host_trap", "time", 1, 1 << 40)
    # 5 ms on 304 units, 200,000 samples: one every 7.6 us of a unit, 15,960 cycles
    assert interval_for(stochastic, 5e6, "gfx942") == 8192
    assert interval_for(trap, 5e6, "gfx942") == 8
    assert interval_for(trap, 1e3, "gfx942") == 1


# --- ranges and foreign work -----------------------------------------------------------------------------------------


def test_the_launcher_pushes_ranges_where_a_profiler_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    roctx = SimpleNamespace(
        roctxRangePushA=lambda name: seen.append(name.value.decode()), roctxRangePop=lambda: seen.append("pop")
    )
    monkeypatch.setattr(ranges, "_roctx", lambda: roctx)
    monkeypatch.setattr(ranges, "_nvtx", lambda: None)
    with ranges.named("k[N=64] #3"):
        seen.append("inside")
    assert seen == ["k[N=64] #3", "inside", "pop"]
    monkeypatch.setattr(ranges, "_roctx", lambda: None)
    with ranges.named("nobody listens"):
        pass
    assert len(seen) == 3


def test_of_foreign_work_what_it_says_is_recorded(profile: Profile) -> None:
    from tileprof.collect.profile import ForeignLaunch, ForeignProfile

    def launch(index: int, *names: str) -> ForeignLaunch:
        return ForeignLaunch(index, "k", "hip:gfx942", ranges=names)

    builder = profile("denied")
    marked = ForeignProfile("x", "rocprofv3", "", (launch(0), launch(1, "tileprof: recorded")))
    assert [one.index for one in recorded(marked, builder).launches] == [1]
    many = ForeignProfile("x", "rocprofv3", "", tuple(launch(i) for i in range(10_000)))
    assert len(recorded(many, builder).launches) == 200
    assert "it launches more than 200 kernels: counters are of the first 200" in builder.notes
