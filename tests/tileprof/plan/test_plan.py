"""What is measured where, and what is said about what cannot be."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

import tilelang_min as tilelang
from tileprof.collect import cycles
from tileprof.collect.tool import Availability
from tileprof.errors import ProfilerUnavailable, UsageError
from tileprof.plan.amd_counters import counter_plan
from tileprof.plan.machine import Gpu, Machine, amd_gpus, parse_nvidia_smi, probe, runs_on
from tileprof.plan.passes import over_limit
from tileprof.plan.plan import Plan, make_plan
from tileprof.workload.load import load_workload

H200 = Gpu("nvidia", "NVIDIA H200", "9.0", "580.1")
A100 = Gpu("nvidia", "NVIDIA A100", "8.0", "580.1")
MI300 = Gpu("amd", "MI300X", "gfx942", "6.8")
USABLE = Availability("ncu", True, "/usr/bin/ncu", "2026.3")
DENIED = Availability("ncu", False, "/usr/bin/ncu", "2026.3", "only administrators may", "be one")


def machine(*gpus: Gpu, packages: dict[str, str] | None = None) -> Machine:
    found = {"cuda-bindings": "13.0"} if packages is None else packages
    return Machine("cpu", "x86-64-v3", 2, 1 << 30, "Linux", "3.11", gpus, found)


def plan(
    tmp_path: Path,
    here: Machine,
    *profilers: str,
    ncu: Availability = USABLE,
    a100: str = "auto",
    laptop: str = "auto",
    mi300x: str = "rocprofv3",
    rocprofv3: Availability = USABLE,
) -> Plan:
    file = tmp_path / "w.yaml"
    file.write_text(
        "version: 1\nname: x\ntargets:\n"
        f"  laptop: {{target: cpu, profiler: {laptop}}}\n  a100: {{target: cuda:sm_80, profiler: {a100}}}\n"
        f"  mi300x: {{target: hip:gfx942, profiler: {mi300x}}}\n"
        "  old: {target: cuda:sm_70}\n"
        "kernels: [{name: k, command: [x]}]\n"
    )
    workload = load_workload(file)
    return make_plan(
        workload, tuple(workload.targets), here, profilers, {"ncu": lambda: ncu, "rocprofv3": lambda: rocprofv3}
    )


def test_without_gpus_only_the_processor_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tileprof.workload.targets._missing", lambda name: "CUDA 12" if name == "cuda:sm_70" else None)
    made = plan(tmp_path, machine(), a100="ncu")
    assert {name: p.launches for name, p in made.targets.items()} == {
        "laptop": True, "a100": False, "mi300x": False, "old": False,
    }  # fmt: skip
    assert made.targets["laptop"].timed
    assert made.targets["a100"].reason == "no NVIDIA GPU on this machine"
    assert "CUDA 12" in (made.targets["old"].unsupported or "")
    assert [(u.target, u.what.split(":")[0]) for u in made.unavailable] == [
        ("laptop", "counters"), ("a100", "launches"), ("mi300x", "launches"),
    ]  # fmt: skip


def test_auto_takes_ncu_where_it_may(tmp_path: Path) -> None:
    made = plan(tmp_path, machine(A100))
    assert (made.targets["a100"].launches, made.targets["a100"].counters) == (True, ("ncu",))
    assert (made.targets["a100"].gpu, made.targets["laptop"].gpu) == (A100, None)
    denied = plan(tmp_path, machine(A100), ncu=DENIED)
    assert (denied.targets["a100"].launches, denied.targets["a100"].counters) == (True, ())
    (entry,) = [u for u in denied.unavailable if u.target == "a100"]
    assert (entry.what, entry.why, entry.remedy) == ("counters", "ncu: only administrators may", "be one")


def test_a_profiler_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ProfilerUnavailable, match="only administrators may"):
        plan(tmp_path, machine(A100), ncu=DENIED, a100="ncu")
    with pytest.raises(ProfilerUnavailable, match="no NVIDIA GPU on this machine"):
        plan(tmp_path, machine(), "ncu")
    with pytest.raises(ProfilerUnavailable, match="rocprofv3 cannot measure mi300x: no AMD GPU on this machine"):
        plan(tmp_path, machine(), "rocprofv3")
    with pytest.raises(ProfilerUnavailable, match="perf: not used by this version"):
        plan(tmp_path, machine(), laptop="perf")
    with pytest.raises(UsageError, match="did you mean 'timer'"):
        plan(tmp_path, machine(), "timr")
    with pytest.raises(UsageError, match="none excludes"):
        plan(tmp_path, machine(), "none", "timer")


def test_cycles_are_measured_wherever_kernels_are_launched(tmp_path: Path) -> None:
    tools = {"cycles": cycles.available}
    file = tmp_path / "w.yaml"
    text = "version: 1\nname: x\ntargets: {laptop: {target: cpu, profiler: cycles}, a100: {target: cuda:sm_80}}\n"
    file.write_text(text + "kernels: [{name: k, command: [x]}]\n")
    workload = load_workload(file)
    made = make_plan(workload, tuple(workload.targets), machine(A100), ("cycles",), tools)
    assert {name: p.counters for name, p in made.targets.items()} == {"laptop": ("cycles",), "a100": ("cycles",)}
    assert all(p.timed for p in made.targets.values())  # beside the plain build, whose time is the reference


def test_passes_of_an_amd_gpu_are_planned_also_where_there_is_none(tmp_path: Path) -> None:
    made = plan(tmp_path, machine())
    passes = made.targets["mi300x"].passes
    assert passes is not None
    assert passes.describe() == "4 passes, 38 counters"
    assert not any(over_limit(one) for one in passes.passes.passes)
    assert (made.targets["laptop"].passes, made.targets["a100"].passes) == (None, None)
    assert plan(tmp_path, machine(), "timer").targets["mi300x"].passes is None


def test_passes_follow_the_metrics_that_are_asked_for() -> None:
    plan = counter_plan("gfx942", ["shared.conflicts", "spill.store_bytes", "l2.hit_rate"], ["SQ_BUSY_CYCLES"])
    assert plan.without == ("spill.store_bytes",), "a static fact is no counter's"
    (one,) = plan.passes.passes
    assert set(one) == {"GRBM_GUI_ACTIVE", "SQ_LDS_BANK_CONFLICT", "TCC_HIT_sum", "TCC_MISS_sum", "SQ_BUSY_CYCLES"}
    assert "TCC_EA_RDREQ_sum" in counter_plan("gfx90a", ["fabric.read_bytes"]).passes.passes[0]
    assert "TCC_EA0_RDREQ_128B_sum" in counter_plan("gfx950", ["fabric.read_bytes"]).passes.passes[0]


def test_none_and_timer(tmp_path: Path) -> None:
    none = plan(tmp_path, machine(A100), "none").targets["a100"]
    assert (none.launches, none.timed, none.counters) == (True, False, ())
    timer = plan(tmp_path, machine(A100), "timer").targets["a100"]
    assert (timer.launches, timer.timed, timer.counters) == (True, True, ())


def test_an_amd_gpu_launches_and_auto_takes_rocprofv3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilelang, "hip_library", lambda: "/opt/rocm/lib/libamdhip64.so.6")
    usable = Availability("rocprofv3", True, "/opt/rocm/bin/rocprofv3", "1.0.0")
    denied = usable.denied("no access to /dev/kfd", "join the group render")
    made = plan(tmp_path, machine(MI300), rocprofv3=usable).targets["mi300x"]
    assert (made.launches, made.timed, made.counters, made.gpu) == (True, True, ("rocprofv3",), MI300)
    assert made.passes is not None
    assert plan(tmp_path, machine(MI300), mi300x="auto", rocprofv3=usable).targets["mi300x"].counters == ("rocprofv3",)
    without = plan(tmp_path, machine(MI300), mi300x="auto", rocprofv3=denied)
    assert without.targets["mi300x"].counters == ()
    assert "rocprofv3: no access to /dev/kfd" in [entry.why for entry in without.unavailable]
    with pytest.raises(ProfilerUnavailable, match="rocprofv3: no access to /dev/kfd"):
        plan(tmp_path, machine(MI300), rocprofv3=denied)


def test_reasons_for_not_launching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "do not run on NVIDIA H200" in plan(tmp_path, machine(H200)).targets["a100"].reason
    assert "cuda-bindings" in plan(tmp_path, machine(A100, packages={})).targets["a100"].reason
    monkeypatch.setattr(tilelang, "hip_library", lambda: None)
    assert "libamdhip64, is missing" in plan(tmp_path, machine(MI300)).targets["mi300x"].reason
    mi250 = Gpu("amd", "MI250X", "gfx90a", "6.8")
    assert "do not run on MI250X (gfx90a)" in plan(tmp_path, machine(mi250)).targets["mi300x"].reason


@pytest.mark.parametrize(
    ("arch", "gpu", "runs"),
    [
        ("sm_80", A100, True), ("sm_86", A100, False), ("sm_80", Gpu("nvidia", "", "8.9", ""), True),
        ("sm_80", H200, False), ("sm_90a", H200, True), ("sm_100a", Gpu("nvidia", "", "10.0", ""), True),
        ("sm_100a", Gpu("nvidia", "", "10.3", ""), False), ("gfx942", MI300, True), ("gfx90a", MI300, False),
    ],
)  # fmt: skip
def test_binary_compatibility(arch: str, gpu: Gpu, runs: bool) -> None:
    assert runs_on(arch, gpu) is runs


def test_vendor_listings(tmp_path: Path) -> None:
    text = "NVIDIA H200, 9.0, 580.159.03\nFailed to initialize NVML\n"
    assert parse_nvidia_smi(text) == (Gpu("nvidia", "NVIDIA H200", "9.0", "580.159.03"),)
    for node, version in (("0", 0), ("1", 90402), ("10", 90010)):
        folder = tmp_path / "sys/class/kfd/kfd/topology/nodes" / node
        folder.mkdir(parents=True)
        (folder / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
        (folder / "name").write_text("aqua_vanjaram\n")
    assert [gpu.arch for gpu in amd_gpus(tmp_path)] == ["gfx942", "gfx90a"]


@pytest.mark.parametrize(
    ("board", "version", "units", "name"),
    [
        ("AMD Instinct MI300X OAM", 90402, 304, "AMD Instinct MI300X OAM"),
        ("", 90402, 228, "MI300A"),  # the only one with so many compute units
        ("", 90402, 304, "ip discovery"),  # two have
        ("", 110000, 96, "ip discovery"),
    ],
)
def test_what_an_amd_gpu_is_called(tmp_path: Path, board: str, version: int, units: int, name: str) -> None:
    folder = tmp_path / "sys/class/kfd/kfd/topology/nodes/1"
    folder.mkdir(parents=True)
    (folder / "properties").write_text(f"simd_count {4 * units}\nsimd_per_cu 4\ngfx_target_version {version}\n")
    (folder / "name").write_text("ip discovery\n")
    if board:
        device = tmp_path / "sys/class/drm/renderD0/device"
        device.mkdir(parents=True)
        (device / "product_name").write_text(f"{board}\n")
    (gpu,) = amd_gpus(tmp_path)
    assert gpu.name == name


def test_the_description_names_no_host_and_no_user() -> None:
    text = json.dumps(probe().to_json())
    assert probe().cores == len(os.sched_getaffinity(0))
    assert '"numpy"' in text
    for private in (platform.node(), os.path.expanduser("~"), os.environ.get("USER", "")):
        assert len(private) < 4 or private not in text


def test_raw_counters_are_checked_against_the_chip_at_hand(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(
        "version: 1\nname: x\ntargets: {a100: {target: 'cuda:sm_80'}}\nkernels: [{name: k, command: [x]}]\n"
        "metrics: {raw: {ncu: [dram__byte.sum, dram__bytes.sum]}}\n"
    )
    workload = load_workload(file)
    with pytest.raises(UsageError, match=r"dram__byte\.sum is no counter of sm_80; did you mean dram__bytes"):
        make_plan(workload, ("a100",), machine(A100), (), {"ncu": lambda: USABLE})
    assert make_plan(workload, ("a100",), machine(), (), {"ncu": lambda: USABLE}), "nothing runs where no such GPU is"
