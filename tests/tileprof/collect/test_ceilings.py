from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_min.targets as targets
from tileprof.collect import ceilings
from tileprof.store.records import Ceiling


def by_quantity(rows: list[Ceiling]) -> dict[tuple[str, str], Ceiling]:
    return {(row.quantity, row.unit_class): row for row in rows}


def test_datasheet_ceilings_of_the_a100() -> None:
    rows = by_quantity(ceilings.ceilings("cuda:sm_80"))
    assert rows["dram.bytes_per_s", ""].value == pytest.approx(2.039e12)
    assert rows["flops_per_s", "matrix.float16"].value == pytest.approx(312e12, rel=2e-3)
    assert rows["flops_per_s", "vector.float32"].value == pytest.approx(19.5e12, rel=2e-3)
    assert rows["shared.bytes_per_s", ""].value == pytest.approx(108 * 128 * 1.41e9)
    for row in rows.values():
        assert row.target == "cuda:sm_80"
        assert row.provenance.kind == "datasheet"
        assert "A100" in row.provenance.tool
        assert row.provenance.detail, "a datasheet number names its source"


def test_datasheet_ceilings_of_the_mi300x() -> None:
    rows = by_quantity(ceilings.ceilings("hip:gfx942"))
    assert rows["dram.bytes_per_s", ""].value == pytest.approx(5.3e12)
    assert rows["flops_per_s", "matrix.float16"].value == pytest.approx(1307e12, rel=2e-3)


def test_an_architecture_without_a_known_device_has_none() -> None:
    assert ceilings.datasheet("cuda:sm_99", SimpleNamespace(devices=())) == []


def test_measured_cpu_ceilings() -> None:
    begin = time.perf_counter()
    rows = by_quantity(ceilings.ceilings("cpu"))
    seconds = time.perf_counter() - begin
    bandwidth, peak = rows["dram.bytes_per_s", ""], rows["flops_per_s", "vector.float32"]
    # Any x86-64 of this century moves and computes more than that, and none this much.
    assert 5e8 < bandwidth.value < 5e12
    assert 2e9 < peak.value < 1e14
    for row in (bandwidth, peak):
        assert (row.target, row.provenance.kind) == ("cpu", "measured")
    assert peak.provenance.tool == "FMA loop"
    assert "MiB" in bandwidth.provenance.detail
    assert seconds < 15, "meant to take about a second on a quiet machine"


def test_the_loop_computes_what_it_says(tmp_path: Path) -> None:
    bits = targets.resolve("cpu").vector_bits
    assert bits is not None
    loop = ceilings.compile_fma(tmp_path, bits)
    lanes = bits // 32
    # x <- x / 2 + 1, three times, from x = chain number.
    expected = sum(lanes * (((c / 2 + 1) / 2 + 1) / 2 + 1) for c in range(ceilings.CHAINS))
    assert loop(3, 0.5, 1.0) == pytest.approx(expected)


def test_the_loop_is_made_of_multiply_adds_as_wide_as_said(tmp_path: Path) -> None:
    capstone = pytest.importorskip("capstone")
    elffile: Any = pytest.importorskip("elftools.elf.elffile")
    bits = targets.resolve("cpu").vector_bits
    assert bits is not None
    ceilings.compile_fma(tmp_path, bits)
    with (tmp_path / "fma.o").open("rb") as file:
        code = elffile.ELFFile(file).get_section_by_name(".text").data()
    register = {128: "xmm", 256: "ymm", 512: "zmm"}[bits]
    machine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    wide = [i for i in machine.disasm(code, 0) if i.mnemonic.startswith("vfmadd") and register in i.op_str]
    if bits == 128:
        pytest.skip("x86-64-v2 has no fused multiply-add")
    assert len(wide) % ceilings.CHAINS == 0
    assert wide


def test_without_a_compiler_blas_stands_in_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise subprocess.CalledProcessError(1, "clang")

    monkeypatch.setattr(ceilings, "compile_fma", refuse)
    value, how = ceilings.peak_flops(1, 256)
    assert value > 1e8
    assert (how.kind, how.tool, how.version) == ("measured", "BLAS sgemm", np.__version__)
    assert "stand-in" in how.detail


@pytest.mark.parametrize(
    ("cache", "memory", "size"),
    [
        (300 << 20, 24 << 30, 300 << 20),
        (8 << 20, 24 << 30, 64 << 20),
        (None, None, 256 << 20),
        (4 << 30, 512 << 30, 1 << 30),
        (300 << 20, 1 << 30, 128 << 20),
    ],
)
def test_copy_size_exceeds_the_cache_and_fits_the_memory(cache: int | None, memory: int | None, size: int) -> None:
    assert ceilings.copy_size(cache, memory) == size


def test_copy_counts_bytes_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "_best_seconds", lambda run, *_: (run(), 0.5)[1])
    assert ceilings.copy_bandwidth(3, 1 << 20) == (2 * (1 << 20) / 0.5, 1 << 20)


def test_the_system_may_not_say(tmp_path: Path) -> None:
    assert ceilings.last_level_cache_bytes(tmp_path) is None
    assert ceilings.available_memory_bytes(tmp_path / "meminfo") is None
    (tmp_path / "index3").mkdir()
    (tmp_path / "index3/size").write_text("307200K\n")
    assert ceilings.last_level_cache_bytes(tmp_path) == 300 << 20


@pytest.mark.parametrize(
    ("target", "gpu", "device"),
    [
        ("cuda:sm_90a", "NVIDIA H200", "H200 SXM"),
        ("cuda:sm_90a", "NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("cuda:sm_90a", "NVIDIA H100 PCIe", "H100 PCIe"),
        ("cuda:sm_80", "NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"),
        ("cuda:sm_80", "NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("cuda:sm_80", "", "A100 SXM 80GB"),
        ("cuda:sm_80", "NVIDIA A30", "A100 SXM 80GB"),
    ],
)
def test_the_gpu_at_hand_gives_the_ceilings(target: str, gpu: str, device: str) -> None:
    assert {ceiling.provenance.tool for ceiling in ceilings.ceilings(target, gpu)} == {device}
