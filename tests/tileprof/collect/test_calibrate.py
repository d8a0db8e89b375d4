"""Calibration: its kernels compute what they say and move what is counted; ceilings are kept by machine and used by runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tilelang_min as tilelang
from tilelang_min.runtime import hip_library
from tileprof.cli.calibrate import COMMAND, gpu_target
from tileprof.collect import calibrate, calibration_kernels
from tileprof.errors import ProfileFormatError
from tileprof.store.records import Ceiling, Provenance

TARGETS = ("cuda:sm_90a", "hip:gfx942")
HOW = Provenance("measured", "tileprof calibrate", "0", "best of 10 launches")


def simulated(kernel: Any, *arguments: Any, output: str) -> Any:
    return kernel.simulate(*arguments).outputs[output]


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_compute_what_they_say(target: str) -> None:
    chance = np.random.default_rng(0)
    a = chance.standard_normal((3, 512)).astype(np.float32)
    kernel = calibration_kernels.read_around.for_target(target)(3, 2, 5, chunk=512)
    got = simulated(kernel, a, np.zeros((2, 512), np.float32), output="B")
    expected = [sum(a[(b + r * 7) % 3].astype(np.float64) for r in range(5)) for b in range(2)]
    assert np.allclose(got, expected, atol=1e-5)
    rows = chance.standard_normal((8, 1024)).astype(np.float32)
    kernel = calibration_kernels.shared_reads.for_target(target)(1, 16)
    result = kernel.simulate(rows, np.zeros((1, 1024), np.float32))
    assert np.allclose(result.outputs["B"][0], 2 * rows.astype(np.float64).sum(0), atol=1e-4)
    (read,) = [count for count in result.counts if count.space == "shared" and count.access == "load"]
    assert read.transactions == read.transactions_ideal == 16 * 1024 * 4 // 128
    x = chance.standard_normal(1024).astype(np.float32)
    kernel = calibration_kernels.multiply_adds.for_target(target)(1, 2, width=1024, unroll=2)
    got = simulated(kernel, x, np.array([0.5, 1], np.float32), np.zeros((1, 1024), np.float32), output="B")
    assert np.allclose(got[0], x / 16 + 1.875, atol=1e-6)
    kernel = calibration_kernels.paired_multiply_adds.for_target(target)(1, 2, width=1024, unroll=2)
    factors = np.array([[0.5] * 1024, [1] * 1024], np.float16)
    got = simulated(kernel, x.astype(np.float16), factors, np.zeros((1, 1024), np.float16), output="B")
    assert np.allclose(got[0], x / 16 + 1.875, atol=4e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_the_work_of_a_probe_is_what_the_compiler_counts(target: str) -> None:
    probes = list(calibrate.probes(target, 2, 1 << 20))
    found = {probe.name: probe for probe in reversed(probes)}
    assert {"dram", "l2", "shared", "vector.float32", "vector.float16", "matrix.float16", "matrix.int8"} <= set(found)
    for name in ("vector.float32", "vector.float16", "matrix.float16"):
        kernel = found[name].compile(target)
        assert sum((kernel.metadata.flops or {}).values()) == found[name].work
        assert not kernel.metadata.spill_store_bytes
    (whole,) = [probe for probe in probes if probe.name == "matrix.float16" and probe.kernel == "streamed_products"]
    assert sum((whole.compile(target).metadata.flops or {}).values()) == whole.work
    l2 = found["l2"]
    assert l2.values["chunks"] * l2.values["chunk"] * 4 <= 1 << 20


def test_halves_are_multiplied_in_pairs_on_both_kinds_of_units() -> None:
    probes = calibrate.probes("cuda:sm_90a", 132, 50 << 20)
    (probe,) = [probe for probe in probes if probe.kernel == "paired_multiply_adds"]
    listing = probe.compile("cuda:sm_90a").assembly()
    kinds = [listing.count(f" {name} R") for name in ("HFMA2", "HFMA2.MMA")]
    elements, unroll = probe.values["width"] // 256, probe.values["unroll"]
    assert sum(kinds) >= elements * unroll // 2
    assert sum(kinds) % (elements * unroll // 2) <= 2  # two halves each; a few set registers to zero
    assert min(kinds) > 0.4 * sum(kinds)


def test_a_rate_is_the_best_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        def get_profiler(self) -> Kernel:
            return self

        def samples(self, **_: Any) -> list[float]:
            return [4000.0, 2000.0, 3000.0]

    monkeypatch.setattr(calibrate.Probe, "compile", lambda self, target: Kernel())
    probe = calibrate.Probe("flops_per_s", "vector.float32", "multiply_adds", {}, 1e6, "work")
    ceiling = calibrate.measure(probe, "cuda:sm_90a")
    assert ceiling.value == pytest.approx(1e6 / 2e-6)
    assert ceiling.provenance.detail == "work; best of 3 launches"


def test_products_that_miss_the_matrix_units_are_no_ceiling_of_them() -> None:
    probe = next(probe for probe in calibrate.probes("cuda:sm_90a", 2, 1 << 20) if probe.name == "matrix.float32")
    with pytest.raises(tilelang.errors.LaunchError, match="multiply-add units"):
        calibrate.measure(probe, "cuda:sm_90a")


def test_what_cannot_be_measured_is_said_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(probe: calibrate.Probe, target: str) -> Ceiling:
        if probe.name.startswith("matrix") and probe.name != "matrix.int8":
            raise tilelang.errors.LaunchError("no such instruction here")
        value = 3.0 if probe.kernel == "streamed_products" else 2.0
        return Ceiling(target, probe.quantity, probe.unit_class, value, HOW)

    monkeypatch.setattr(calibrate, "measure", measure)
    heard: dict[str, str] = {}
    found = calibrate.calibrate_gpu("cuda:sm_90a", 132, 50 << 20, lambda name, ceiling, why: heard.update({name: why}))
    assert len(found) == 7
    assert {ceiling.value for ceiling in found if ceiling.unit_class == "matrix.int8"} == {3.0}  # the better of two
    assert heard["matrix.float16"] == "no such instruction here"
    assert heard["dram"] == ""


def test_ceilings_are_kept_by_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEPROF_DATA_DIR", str(tmp_path / "data"))
    assert calibrate.kept("NVIDIA H200 (sm_90a)", "cuda:sm_90a") == []
    path = calibrate.save(
        "NVIDIA H200 (sm_90a)", [Ceiling("cuda:sm_90a", "dram.bytes_per_s", "", 4.2e12, HOW)], "2026-01-02"
    )
    calibrate.save("other (sm_80)", [], "2026-01-03")
    (ceiling,) = calibrate.kept("NVIDIA H200 (sm_90a)", "cuda:sm_90")
    assert (ceiling.target, ceiling.value) == ("cuda:sm_90", 4.2e12)
    assert ceiling.provenance.detail == "best of 10 launches; 2026-01-02"
    assert [file.name for file in path.parent.iterdir()] == ["ceilings.json"]
    path.write_text("{")
    with pytest.raises(ProfileFormatError, match="delete it and run tileprof calibrate"):
        calibrate.kept("NVIDIA H200 (sm_90a)", "cuda:sm_90a")


def test_a_run_on_that_gpu_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from tileprof.execute.runner import _datasheet_ceilings
    from tileprof.plan.machine import Gpu

    monkeypatch.setenv("TILEPROF_DATA_DIR", str(tmp_path))
    calibrate.save("NVIDIA H200 (sm_90a)", [Ceiling("cuda:sm_90a", "dram.bytes_per_s", "", 4.2e12, HOW)], "2026-01-02")
    gpu = Gpu("nvidia", "NVIDIA H200", "9.0", "580")
    target = SimpleNamespace(target="cuda:sm_90a", kind="cuda", unsupported=None)
    here: Any = SimpleNamespace(gpu_for=lambda kind, arch: gpu)
    rows = _datasheet_ceilings([SimpleNamespace(target=target)], here)  # type: ignore[list-item]
    memory = [row for row in rows if row.quantity == "dram.bytes_per_s"]
    assert [(row.value, row.provenance.kind) for row in memory] == [(4.2e12, "measured")]
    assert any(row.provenance.kind == "datasheet" for row in rows)
    nowhere: Any = SimpleNamespace(gpu_for=lambda kind, arch: None)
    rows = _datasheet_ceilings([SimpleNamespace(target=target)], nowhere)  # type: ignore[list-item]
    assert {row.provenance.kind for row in rows} == {"datasheet"}


def test_the_verb_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEPROF_DATA_DIR", str(tmp_path))
    result = CliRunner().invoke(COMMAND, ["--target", "cpu"], standalone_mode=False)
    assert result.exception is None
    kept = json.loads((tmp_path / "ceilings.json").read_text())["machines"]
    (entry,) = kept.values()
    assert {record["quantity"] for record in entry["ceilings"]} == {"dram.bytes_per_s", "flops_per_s"}
    refused = CliRunner().invoke(COMMAND, ["--target", "hip:gfx942"], standalone_mode=False)
    assert "cannot be calibrated" in str(refused.exception)


def test_the_architecture_of_a_gpu() -> None:
    assert (gpu_target("9.0"), gpu_target("8.0"), gpu_target("12.0")) == ("sm_90a", "sm_80", "sm_120a")


def test_an_amd_gpu_is_measured_like_any(rocm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in of the HIP runtime, on which every launch takes 10 us: no AMD GPU was at hand."""
    monkeypatch.setenv("ROCM_PATH", str(rocm))
    for name in ("FAKE_HIP_KERNELS", "FAKE_HIP_ARCHS", "FAKE_HIP_FAIL", "HIP_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    hip_library.library.cache_clear()
    probe = next(p for p in calibrate.probes("hip:gfx942", 304, 4 << 20) if p.name == "shared")
    with pytest.warns(UserWarning, match="NumPy arrays are copied"):
        ceiling = calibrate.measure(probe, "hip:gfx942")
    assert (ceiling.quantity, ceiling.provenance.kind) == ("shared.bytes_per_s", "measured")
    assert ceiling.value == pytest.approx(probe.work / 10e-6)
    hip_library.library.cache_clear()
