"""What doctor says of AMD GPUs: from files that stand in for a machine that has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tilelang_min as tilelang
from tileprof.cli import doctor
from tileprof.cli.calibrate import default_target
from tileprof.cli.doctor import LIMITED, MISSING, OK, Finding, abilities
from tileprof.plan.machine import Gpu, Machine

MI300X = Gpu("amd", "AMD Instinct MI300X", "gfx942", "6.12.12")


def findings(
    root: Path, monkeypatch: pytest.MonkeyPatch, *gpus: Gpu, library: str | None = "/opt/rocm/lib/libamdhip64.so.6"
) -> dict[str, Finding]:
    monkeypatch.setattr(tilelang, "hip_library", lambda: library)
    monkeypatch.delenv("TILEPROF_ROCPROFV3", raising=False)
    monkeypatch.setenv("PATH", "")
    machine = Machine("cpu", "x86-64-v4", 16, 1 << 37, "Linux 6.1", "3.12.1", gpus, {})
    return {finding.name: finding for finding in doctor._amd(machine, root)}


def machine_root(root: Path) -> Path:
    (root / "dev" / "dri").mkdir(parents=True)
    (root / "dev" / "kfd").touch()
    (root / "dev" / "dri" / "renderD128").touch()
    (root / "opt" / "rocm" / ".info").mkdir(parents=True)
    (root / "opt" / "rocm" / ".info" / "version").write_text("6.4.1-83\n")
    tool = root / "opt" / "rocm" / "bin" / "rocprofv3"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '  version: 0.6.0'\n")
    tool.chmod(0o755)
    return root


def test_a_machine_with_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(machine_root(tmp_path), monkeypatch, MI300X)
    assert {name: found[name].state for name in ("GPU", "ROCm", "HIP runtime", "rocprofv3")} == dict.fromkeys(
        ("GPU", "ROCm", "HIP runtime", "rocprofv3"), OK
    )
    assert found["GPU"].detail == "AMD Instinct MI300X, gfx942, driver 6.12.12"
    assert found["ROCm"].detail == "6.4.1-83"
    assert found["rocprofv3"].detail.startswith("0.6.0, ")
    assert "tileprof[rocm]" in found["amdsmi"].remedy or found["amdsmi"].state == OK
    assert abilities(list(found.values()))[-1] == "run and time on the AMD GPU, with counters"


def test_what_is_missing_comes_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(tmp_path, monkeypatch, library=None)
    assert (found["GPU"].state, found["HIP runtime"].state, found["rocprofv3"].state) == (MISSING,) * 3
    assert "--device=/dev/kfd" in found["GPU"].remedy
    assert "ROCM_PATH" in found["HIP runtime"].remedy
    assert "AMD" not in abilities(list(found.values()))[-1].replace("AMD GPUs", "")


def test_a_gpu_that_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine_root(tmp_path)
    radeon = findings(root, monkeypatch, Gpu("amd", "Radeon RX 7900", "gfx1100", ""))["GPU"]
    assert (radeon.state, "the compiler has no target" in radeon.detail) == (LIMITED, True)
    assert "hip:gfx942" in radeon.remedy
    (root / "dev" / "kfd").unlink()
    hidden = findings(root, monkeypatch, MI300X)
    assert (hidden["GPU"].state, hidden["rocprofv3"].state) == (LIMITED, LIMITED)
    assert "there is no /dev/kfd" in hidden["GPU"].detail


def test_what_falsifies_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine_root(tmp_path)
    for number, line in (
        ("31", b"/usr/bin/python3\0/opt/rocm/bin/rocprofv3\0--pmc\0SQ_WAVES\0--\0./a.out\0"),
        ("32", b"vim\0notes-on-rocprofv3\0"),
        ("33", b""),
    ):
        (root / "proc" / number).mkdir(parents=True)
        (root / "proc" / number / "cmdline").write_bytes(line)
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "9.4.2")
    found = findings(root, monkeypatch, MI300X)
    assert "other profilers are running (rocprofv3 (31))" in found["counters"].detail
    assert found["override"].state == LIMITED
    (root / "proc" / "31" / "cmdline").write_bytes(b"bash\0")
    assert "counters" not in findings(root, monkeypatch, MI300X)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every file")
def test_a_user_outside_the_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine_root(tmp_path)
    (root / "dev" / "kfd").chmod(0)
    gpu = findings(root, monkeypatch, MI300X)["GPU"]
    assert (gpu.state, "render,video" in gpu.remedy) == (LIMITED, True)


def test_calibrate_takes_the_gpu_that_is_there() -> None:
    assert default_target(()) == "cpu"
    assert default_target((MI300X,)) == "hip:gfx942"
    assert default_target((Gpu("amd", "Radeon", "gfx1100", ""), MI300X)) == "hip:gfx942"
    assert default_target((Gpu("nvidia", "H200", "9.0", ""), MI300X)) == "cuda:sm_90a"
