"""`tileprof run` on a machine with an MI300X, from the workload file to the report: with stand-ins of the HIP runtime, which runs a
C function in place of the kernel, and of rocprofv3, which runs the program for real.  No AMD GPU was at hand."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from build import compile_library
from unpacked import data_of, unpacked

import tilelang_min as tilelang
from tileprof.analyse.agreement import comparisons
from tileprof.cli.main import main
from tileprof.execute import rocprofv3_run, runner
from tileprof.plan.machine import Gpu, probe
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Metric

MI300X = Gpu("amd", "AMD Instinct MI300X", "gfx942", "6.12.12")

KERNELS = """\
import numpy as np
import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def turn(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(N, 32), threads=threads) as (bx, by):
            tile = T.alloc_shared((32, 32), "float32")
            T.annotate_layout({tile: T.rows()})
            T.copy(A[by * 32, bx * 32], tile)
            for j, i in T.Parallel(32, 32):
                B[bx * 32 + j, by * 32 + i] = tile[i, j]

    return main


def turned(A):
    return {"B": A.T}
"""

ON_THE_HOST = """
void turn(void **arguments, unsigned x, unsigned y, unsigned z, unsigned threads) {
  const float *a = *(const float **)arguments[0];
  float *b = *(float **)arguments[1];
  int n = (int)x * 32;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) b[j * n + i] = a[i * n + j];
}
void copy(void **arguments, unsigned x, unsigned y, unsigned z, unsigned threads) {}
"""

WORKLOAD = """\
version: 1
name: turning
defaults: {timeout: 60s, timing: {warmup: 1, samples: 4}}
targets:
  mi300x: {target: "hip:gfx942"}
metrics:
  raw: {rocprofv3: [SQ_BUSY_CYCLES]}
kernels:
  - {name: turn, source: "kernels.py:turn", shapes: [{N: [64, 96]}], reference: "kernels.py:turned"}
"""

COUNTERS = {
    "GRBM_GUI_ACTIVE": 8 * 20_000, "SQ_WAVES": 8, "SQ_BUSY_CYCLES": 777,
    "TCC_HIT_sum": 300, "TCC_MISS_sum": 100, "TCC_EA0_RDREQ_sum": 128, "TCC_EA0_RDREQ_32B_sum": 0, "TCC_BUBBLE_sum": 128,
    "TCC_EA0_WRREQ_sum": 256, "TCC_EA0_WRREQ_64B_sum": 256, "SQ_WAVE_CYCLES": 5000, "SQ_WAIT_ANY": 3000,
    "SQ_INSTS_LDS": 80, "SQ_LDS_BANK_CONFLICT": 896, "SQ_LDS_IDX_ACTIVE": 1152,
}  # fmt: skip


@pytest.fixture
def amd(rocm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A folder with a workload on a machine with an MI300X; a function that runs it and gives status, case and directory."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "host.c").write_text(ON_THE_HOST)
    counters = tmp_path / "counters.json"
    counters.write_text(json.dumps(COUNTERS))
    for name, value in (
        ("ROCM_PATH", rocm),
        ("TILEPROF_ROCPROFV3", rocm / "bin" / "rocprofv3"),
        ("FAKE_HIP_KERNELS", compile_library(tmp_path / "host.c", tmp_path / "host.so")),
        ("STAND_IN_COUNTERS", counters),
        ("STAND_IN_COMMANDS", tmp_path / "commands"),
        ("TILELANG_CACHE_DIR", tmp_path / "cache"),
    ):
        monkeypatch.setenv(name, str(value))
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "FAKE_HIP_FAIL", "STAND_IN_FAULT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tilelang.targets.kfd, "trouble", lambda root=None: None)
    monkeypatch.setattr(runner, "probe", lambda: replace(probe(), gpus=(MI300X,)))
    before = signal.getsignal(signal.SIGTERM)

    (tmp_path / "w.yaml").write_text(WORKLOAD)

    def run(*arguments: str) -> tuple[int, CaseResult, Path]:
        rocprofv3_run.listing.cache_clear()
        status = main(["run", "w.yaml", "-o", "run", "--force", *arguments])
        case, *_ = read_run(tmp_path / "run" / "run.sqlite").cases
        return status, case, tmp_path / "run"

    yield run
    signal.signal(signal.SIGTERM, before)
    rocprofv3_run.listing.cache_clear()


def commands(place: Path) -> list[list[str]]:
    return [json.loads(line) for line in (place / "commands").read_text().splitlines()]


def values(case: CaseResult, *kinds: str) -> dict[str, Metric]:
    """Figures of the whole kernel of some provenance, measured ones and what is derived from them if none is named."""
    wanted = kinds or ("measured", "derived")
    return {
        m.metric: m for m in case.metrics if m.provenance.kind in wanted and m.operation is None and m.access is None
    }


def test_everything_is_measured_and_stands_beside_what_was_simulated(amd: Any, tmp_path: Path) -> None:
    status, case, directory = amd("--profiler", "auto", "--profiler", "cycles")
    assert (status, case.status, case.reason) == (0, "ok", "")
    assert case.check is not None
    assert (case.check.ok, case.check.scope) == (True, "all"), "the launch's outputs were compared, not the simulator's"
    assert case.timing is not None
    assert case.timing.method == "events around single launches"
    assert case.timing.samples_ns == pytest.approx((10_000.0,) * 4)

    measured = values(case)
    assert measured["shared.conflicts"].value == 896
    source = measured["shared.conflicts"].provenance
    assert (source.tool, source.version) == ("rocprofv3", "1.0.0")
    assert measured["fabric.read_bytes"].value == 128 * 128
    assert measured["fabric.write_bytes"].value == 64 * 256
    assert measured["l2.hit_rate"].value == 0.75
    assert measured["launch.warps"].value == 8
    assert measured["registers.vgpr"].value == 16
    assert measured["raw.SQ_BUSY_CYCLES"].value == 777
    assert "median of 20 launches in a trace" in measured["time.profiled_ns"].provenance.detail
    assert [m.metric for m in case.metrics].count("time.profiled_ns") == 1
    assert values(case, "simulated")["shared.conflicts"].value == 896, (
        "of 4 blocks: what the stand-in was told to count"
    )
    judged = {item.metric: item for item in comparisons(case) if item.operation is None}
    assert {"shared.conflicts", "shared.requests", "registers.vgpr", "shared.static_bytes"} <= set(judged)

    # PC samples by tile operation: every instruction was sampled once a launch, s_waitcnt five times
    samples = {m.operation: m.value for m in case.metrics if m.metric == "stall.samples" and m.operation is not None}
    waiting = {m.operation: m.value for m in case.metrics if m.metric == "stall.waitcnt" and m.operation is not None}
    assert case.metadata is not None
    listing = json.loads((directory / str(case.bundle) / "listing.json").read_text())
    operation, opcode = (listing["columns"].index(name) for name in ("operation", "opcode"))
    launches = 100
    for number in samples:
        own = [row[opcode] for row in listing["rows"] if row[operation] == number]
        waits = own.count("s_waitcnt")
        assert samples[number] == launches * (len(own) + 4 * waits)
        assert waiting.get(number, 0) == launches * 5 * waits
    assert len(samples) >= 2
    assert measured["stall.samples"].value == pytest.approx(
        sum(m.value for m in case.metrics if m.metric == "stall.samples") / 2
    )

    # the cycles build was launched too, whose clock the stand-in does not have
    assert any("cycles" in note for note in case.notes)

    asked = commands(tmp_path)
    counted = [command for command in asked if "--pmc" in command]
    assert len(counted) == 4
    for command in counted:
        assert command[command.index("--kernel-include-regex") + 1] == "turn"
        assert "--kernel-iteration-range" not in command, "of two cases all launches; their ranges tell them apart"
        assert command[-3:-1] == ["-m", "tileprof.launcher"]
    assert ["--pc-sampling-method" in command for command in asked[4:]] == [False, True, True], (
        "a trace, samples of each case"
    )
    _, other = read_run(directory / "run.sqlite").cases
    assert (other.status, values(other)["launch.warps"].value, values(other)["launch.blocks"].value) == ("ok", 18, 9)

    page = (directory / "index.html").read_text()
    assert "rocprofv3" in unpacked(page)
    assert "secret-host" not in unpacked(page) + str(data_of(page)), "the JSON names the host"
    for file in directory.rglob("*"):
        if file.is_file():
            assert b"secret-host" not in file.read_bytes()


def test_a_launch_that_fails_is_a_result(amd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_HIP_FAIL", "hipModuleLaunchKernel=701")
    status, case, _ = amd("--profiler", "timer")
    assert (status, case.status) == (4, "crashed")
    assert "hipErrorLaunchOutOfResources" in case.reason
    assert not (tmp_path / "commands").exists(), "timing alone takes no profiler"


CALLABLE = """\
import warnings
import numpy as np
import kernels


def work(N):
    warnings.simplefilter("ignore")
    kernel = kernels.turn.for_target("hip:gfx942")(N)
    a, b = np.ones((N, N), np.float32), np.zeros((N, N), np.float32)
    return lambda: kernel(a, b)
"""

FOREIGN = """\
version: 1
name: foreign
defaults: {timeout: 60s, timing: {warmup: 1, samples: 4}}
targets:
  mi300x: {target: "hip:gfx942", profiler: rocprofv3}
kernels:
  - {name: work, callable: "work.py:work", shapes: [{N: 64}], metrics: [shared.conflicts, launch.warps]}
"""


def test_work_that_is_not_compiled_here(amd: Any, tmp_path: Path) -> None:
    """A callable without torch: timed by events of the runtime that it loads, counted where it says."""
    (tmp_path / "work.py").write_text(CALLABLE)
    (tmp_path / "w.yaml").write_text(FOREIGN)
    status, case, _ = amd()
    assert (status, case.status, case.reason) == (0, "ok", "")
    assert case.timing is not None
    assert case.timing.method.startswith("driver events")
    assert case.timing.samples_ns == pytest.approx((10_000.0,) * 4)
    counted = [m for m in case.metrics if m.metric == "shared.conflicts"]
    assert [m.value for m in counted] == [896], "of the one launch that it said is to be recorded"
    assert values(case)["launch.warps"].value == 8


def test_sizes_that_are_known_at_launch(amd: Any, tmp_path: Path) -> None:
    """One code object, launched and counted at each size."""
    text = WORKLOAD.replace("shapes: [{N: [64, 96]}]", "sizes: [{N: [64, 96]}]")
    (tmp_path / "w.yaml").write_text(text)
    status, _, directory = amd()
    first, second = read_run(directory / "run.sqlite").cases
    assert (status, first.id, second.id) == (0, "turn[N=64]@mi300x", "turn[N=96]@mi300x")
    assert first.bundle == second.bundle
    for found, blocks in ((first, 4), (second, 9)):
        assert (found.status, found.reason) == ("ok", "")
        assert found.check is not None
        assert (found.check.ok, found.check.scope) == (True, "all")
        assert found.timing is not None
        assert found.timing.samples_ns == pytest.approx((10_000.0,) * 4)
        measured = values(found)
        assert (measured["launch.blocks"].value, measured["launch.warps"].value) == (blocks, 2 * blocks)
        assert values(found, "static")["launch.blocks"].value == blocks
        assert values(found, "simulated")["shared.conflicts"].value == 992 * blocks
        assert any(m.metric == "stall.samples" and m.operation is not None for m in found.metrics)
