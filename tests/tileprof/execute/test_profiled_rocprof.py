"""rocprof v1 around a case, with a stand-in that runs the program once a pass and writes one wide row a dispatch."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tileprof.execute import profiled_rocprof
from tileprof.execute.profiled_rocprof import agent_of, profile_with_rocprof
from tileprof.execute.results import CaseBuilder, Paths
from tileprof.execute.traced import trace_kernel
from tileprof.plan.amd_counters import counter_plan
from tileprof.plan.plan import TargetPlan
from tileprof.store.directory import RunDirectory
from tileprof.workload.records import Case, KernelEntry, TargetEntry

TOOL = """#!{python}
import os, subprocess, sys
arguments = sys.argv[1:]
assert arguments[0] == "-i" and arguments[2:4] == ["--timestamp", "on"] and arguments[4] == "-o", arguments
lines = open(arguments[1]).read().splitlines()
passes = [line.removeprefix("pmc: ").split() for line in lines if line.startswith("pmc: ")]
(kernel,) = [line.removeprefix("kernel: ") for line in lines if line.startswith("kernel: ")]
{fault}
for one in passes:
    subprocess.run(arguments[6:], check=True)
values = {{"SQ_WAVES": 8, "SQ_LDS_BANK_CONFLICT": 60, "TCC_HIT_sum": 3, "TCC_MISS_sum": 1}}
names = list(dict.fromkeys(name for one in passes for name in one))
with open(arguments[5], "w") as file:
    file.write("Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,"
               + ",".join(names) + ",DispatchNs,BeginNs,EndNs,CompleteNs\\n")
    for number in range(4):
        counts = ",".join(str(values.get(name, 16000)) for name in names)
        file.write(f'{{number}},"{{kernel}}.kd",0,0,{{number}},1,1,512,128,4096,0,12,4,32,64,0x0,0x7,{{counts}},0,1000,5000,6000\\n')
"""


def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str = "", *, full: bool = False) -> CaseBuilder:
    tool = tmp_path / "rocprof"
    tool.write_text(TOOL.format(python=sys.executable, fault=fault))
    tool.chmod(0o755)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("TILEPROF_ROCPROF", str(tool))
    monkeypatch.setattr(profiled_rocprof, "sys", SimpleNamespace(executable=str(program)))
    target = TargetEntry("mi300x", "hip:gfx942", "hip", ("rocprof",))
    builder = CaseBuilder(Case("k", "0" * 16, KernelEntry("k"), target, {}, {}, {}), 0, Paths(), "kernels/k")
    builder.compiled = {"symbol": "turn"}
    plan = TargetPlan(
        target, launches=True, passes=counter_plan("gfx942", ["launch.warps", "shared.conflicts", "l2.hit_rate"])
    )
    with RunDirectory(tmp_path / "run") as directory:
        if full:  # or gone: nothing can be written there
            directory.temporary.rmdir()
            trace_kernel(builder, {"bundle": "b"}, directory, 20.0, threading.Event())
        profile_with_rocprof(builder, {"bundle": "b"}, directory, 20.0, ("SQ_WAVES",), plan, threading.Event())
    return builder


def test_one_table_holds_all_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = profile(tmp_path, monkeypatch)
    assert (builder.failed, builder.notes) == (False, [])
    found = {metric.metric: metric for metric in builder.metrics}
    assert {name: found[name].value for name in ("launch.warps", "shared.conflicts", "l2.hit_rate", "raw.SQ_WAVES")} == {
        "launch.warps": 8, "shared.conflicts": 60, "l2.hit_rate": 0.75, "raw.SQ_WAVES": 8,
    }  # fmt: skip
    assert found["launch.warps"].provenance.tool == "rocprof"
    assert found["time.profiled_ns"].value == 4000
    assert (tmp_path / "ran").read_text().splitlines() == ["ran"]


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        ("sys.exit('Permission denied: /dev/kfd')", None, "no access to the GPU"),
        ("sys.exit(3)", "invalid_measurement", "wrote no table and ended with status 3"),
        ("kernel = 'another'", "invalid_measurement", "counted no launch of kernel turn; kernels it saw: another"),
        ("open(arguments[5], 'w').close(); sys.exit(1)", None, "no counters"),
    ],
)
def test_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, status: str | None, words: str) -> None:
    builder = profile(tmp_path, monkeypatch, fault)
    assert builder.status == status
    assert words in builder.reason + "".join(builder.notes)
    assert builder.metrics == []


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = profile(tmp_path, monkeypatch, full=True)
    assert [note.partition(": [Errno 2]")[0] for note in builder.notes] == ["no trace", "no counters"]
    assert not builder.failed


def test_what_the_table_does_not_tell_of_the_gpu() -> None:
    agent = agent_of("hip:gfx942")
    assert (agent.arch, agent.simds, agent.wave_slots, agent.wave_size) == ("gfx942", 4, 32, 64)
