"""A real counter read on an AMD GPU, with stand-ins of the runtime and of the profiler: what comes of it, and what doctor says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from build import compile_library

import tilelang_min as tilelang
from tileprof.cli import doctor
from tileprof.cli.doctor import LIMITED, OK
from tileprof.collect import rocprofv3, rocprofv3_probe
from tileprof.collect.ncu_probe import FAILED, HUNG, IMPLAUSIBLE, NO_LAUNCH, NOTHING, CounterRead
from tileprof.collect.tool import Availability
from tileprof.execute import preflight
from tileprof.plan.machine import Gpu, Machine

MI300X = tilelang.targets.KfdGpu(4, "gfx942", "AMD Instinct MI300X", "0000:c1:00", "ab", 304, 8)

Read = Callable[..., tuple[Availability, CounterRead]]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel in C, the counters, and a compiler's cache that all tests share."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "copy.c").write_text("void copy(void **a, unsigned x, unsigned y, unsigned z, unsigned threads) {}\n")
    compile_library(folder / "copy.c", folder / "copy.so")
    (folder / "counters.json").write_text(json.dumps({"SQ_WAVES": None, "GRBM_GUI_ACTIVE": 1000}))
    return folder


@pytest.fixture
def read(rocm: Path, host: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads a counter where the profiler has a fault."""
    monkeypatch.setenv("ROCM_PATH", str(rocm))
    monkeypatch.setenv("TILEPROF_ROCPROFV3", str(rocm / "bin" / "rocprofv3"))
    monkeypatch.setenv("FAKE_HIP_KERNELS", str(host / "copy.so"))
    monkeypatch.setenv("STAND_IN_COUNTERS", str(host / "counters.json"))
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(host / "cache"))
    monkeypatch.delenv("STAND_IN_COMMANDS", raising=False)
    monkeypatch.setattr(tilelang.targets.kfd, "trouble", lambda root=None: None)
    monkeypatch.setattr(tilelang.targets, "amd_gpus", lambda root=None: (MI300X,))

    def run(fault: str = "", limit_s: float = 120.0, hip: str = "") -> tuple[Availability, CounterRead]:
        monkeypatch.setenv("STAND_IN_FAULT", fault)
        monkeypatch.setenv("FAKE_HIP_FAIL", hip)
        return rocprofv3_probe.read_counter(rocprofv3.available(), "gfx942", limit_s)

    return run


def test_a_counter_is_read_and_its_value_checked(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "")
    machine = Machine("cpu", "x86-64-v4", 2, 1 << 30, "Linux", "3.11", (Gpu("amd", "MI300X", "gfx942", ""),), {})
    found = {finding.name: finding for finding in doctor._amd(machine)}["rocprofv3"]
    assert (found.state, found.detail.startswith("1.0.0, ")) == (OK, True)
    assert "a counter was read: SQ_WAVES = 32, as launched, in " in found.detail


@pytest.mark.parametrize(
    ("fault", "hip", "outcome", "why", "remedy"),
    [
        (
            "zero",
            "",
            IMPLAUSIBLE,
            "SQ_WAVES reads 0 where 32 wavefronts were launched",
            "end other programs that count",
        ),
        ("denied", "", FAILED, "no access to the GPU", "groups render and video"),
        ("nan", "", NOTHING, "has no value", "ROCM_PATH"),
        ("crash", "", NO_LAUNCH, "the profiled program crashed", "without the profiler"),
        (
            "",
            "hipModuleLaunchKernel=701",
            NOTHING,
            "status 1: help: the block needs more registers",
            "ROCm that rocprofv3 belongs to",
        ),
    ],
)
def test_what_may_come_of_it(read: Read, fault: str, hip: str, outcome: str, why: str, remedy: str) -> None:
    tool, got = read(fault, hip=hip)
    assert (tool.usable, got.outcome) == (False, outcome), got
    assert why in tool.why
    assert remedy in tool.remedy


def test_a_read_that_hangs_is_ended(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocprofv3_probe, "_COMPILE", "")  # what is compiled does not matter
    tool, got = read("hang", limit_s=1.5)
    assert (tool.usable, got.outcome) == (False, HUNG)
    assert "rocprofv3 --pmc SQ_WAVES -- PROGRAM" in tool.remedy
    assert "tileprof-probe" not in tool.remedy, "that folder is gone"


def test_a_kernel_that_cannot_be_compiled(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocprofv3_probe, "_COMPILE", "raise SystemExit('no compiler')")
    tool, got = read()
    assert (tool.usable, got.outcome, "no compiler" in got.text) == (False, NO_LAUNCH, True)
    machine = Machine("cpu", "x86-64-v4", 2, 1 << 30, "Linux", "3.11", (Gpu("amd", "MI300X", "gfx942", ""),), {})
    found = {finding.name: finding for finding in doctor._amd(machine)}
    assert found["rocprofv3"].state == LIMITED


def test_without_a_gpu_nothing_is_tried(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilelang.targets, "amd_gpus", lambda root=None: ())
    tool, got = preflight.read_amd_counter()
    assert (tool.usable, got) == (True, None)
