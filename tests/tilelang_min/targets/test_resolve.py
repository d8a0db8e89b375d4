"""Names of targets, what is wrong with misspelt ones, and datasheet ceilings."""

from __future__ import annotations

import pickle

import pytest

from tilelang_min.errors import TargetError
from tilelang_min.targets import (
    Device,
    dram_bytes_per_second,
    flops_per_second,
    names,
    resolve,
    shared_bytes_per_second,
)
from tilelang_min.targets.cpu import detect

V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("asked", "name", "kind", "arch", "vendor", "warp"),
    [
        ("cuda", "cuda:sm_80", "cuda", "sm_80", "nvidia", 32),
        ("cuda:sm_90a", "cuda:sm_90a", "cuda", "sm_90a", "nvidia", 32),
        ("hip", "hip:gfx942", "hip", "gfx942", "amd", 64),
        ("rocm", "hip:gfx942", "hip", "gfx942", "amd", 64),
        ("rocm:gfx90a", "hip:gfx90a", "hip", "gfx90a", "amd", 64),
        ("cpu:x86-64-v3", "cpu:x86-64-v3", "cpu", "x86-64-v3", "cpu", 1),
    ],
)
def test_names(asked: str, name: str, kind: str, arch: str, vendor: str, warp: int) -> None:
    target = resolve(asked)
    assert (target.name, target.kind, target.arch, target.vendor, target.warp_size) == (name, kind, arch, vendor, warp)
    assert resolve(target.name) == target
    assert resolve(target) is target


def test_every_name_resolves_and_travels() -> None:
    for name in names():
        target = resolve(name)
        assert pickle.loads(pickle.dumps(target)) == target
        assert hash(target) == hash(resolve(name))
        assert target.source
        assert target.shared.source
        assert target.registers.source
        assert all(device.source for device in target.devices)
        assert all(each.source for each in target.matrix_instructions)
        assert all(each.source for each in target.shared_phases)
        assert bool(target.devices) == (target.kind != "cpu")


def test_cpu_levels() -> None:
    assert detect(f"processor : 0\nflags : {V2}\n") == "x86-64-v2"
    assert detect(f"flags\t\t: {V3} extra\n") == "x86-64-v3"
    assert detect(f"flags : {V4}\n") == "x86-64-v4"
    # A level needs all below it: AVX-512 without FMA is level 2.
    assert detect(f"flags : {V4}\n".replace(" fma ", " ")) == "x86-64-v2"
    with pytest.raises(TargetError, match="x86-64-v2"):
        detect("processor : 0\nFeatures : fp asimd\n")
    assert [resolve(f"cpu:x86-64-v{level}").vector_bits for level in (2, 3, 4)] == [128, 256, 512]
    here = resolve("cpu")
    assert here.name == "cpu"
    assert here.arch == detect()


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("cuba", "cuda"),
        ("cuda:sm_90", "cuda:sm_90a"),
        ("cuda:sm80", "cuda:sm_80"),
        ("sm_80", "cuda:sm_80"),
        ("gfx950", "hip:gfx950"),
        ("rocm:gfx94", "hip:gfx942"),
        ("hip:sm_86", "cuda:sm_86"),
        ("CPU", "cpu"),
        ("cuda:", "cuda"),
    ],
)
def test_misspelt_targets_name_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve(wrong)
    text = str(caught.value)
    assert f'unknown target "{wrong}"' in text
    assert f'did you mean "{nearest}"?' in text
    assert all(name in text for name in names())


def test_nothing_near_lists_all() -> None:
    with pytest.raises(TargetError) as caught:
        resolve("xyzzy")
    assert "did you mean" not in str(caught.value)
    assert "cuda:sm_120a" in str(caught.value)


def device(target: str, name: str) -> Device:
    return next(each for each in resolve(target).devices if each.name == name)


@pytest.mark.parametrize(
    ("target", "name", "rate", "tera"),
    # What the vendors print, dense.
    [
        ("cuda:sm_75", "T4", "vector.float32", 8.1),
        ("cuda:sm_80", "A100 SXM 80GB", "matrix.float16", 312),
        ("cuda:sm_80", "A100 SXM 80GB", "vector.float32", 19.5),
        ("cuda:sm_80", "A100 SXM 80GB", "matrix.int8", 624),
        ("cuda:sm_80", "A100 SXM 80GB", "vector.float64", 9.7),
        ("cuda:sm_86", "RTX 3090", "vector.float32", 35.6),
        ("cuda:sm_86", "RTX 3090", "matrix.float16", 71),
        ("cuda:sm_89", "RTX 4090", "matrix.float16", 165.2),
        ("cuda:sm_89", "RTX 4090", "matrix.float8", 330.3),
        ("cuda:sm_90a", "H100 SXM", "matrix.float16", 989.4),
        ("cuda:sm_90a", "H100 SXM", "vector.float32", 66.9),
        ("cuda:sm_90a", "H200 SXM", "matrix.float64", 66.9),
        ("cuda:sm_90a", "H200 SXM", "matrix.float8", 1978.9),
        ("cuda:sm_90a", "H100 PCIe", "matrix.float16", 756),
        ("cuda:sm_90a", "H100 PCIe", "vector.float32", 51.2),
        ("cuda:sm_100a", "B200", "matrix.float16", 2250),
        ("hip:gfx90a", "MI210", "matrix.float16", 181),
        ("hip:gfx942", "MI300X", "matrix.float16", 1307),
        ("hip:gfx942", "MI300X", "matrix.float8", 2615),
        ("hip:gfx942", "MI300X", "vector.float64", 81.7),
        ("hip:gfx942", "MI325X", "matrix.float32", 163.4),
        ("hip:gfx950", "MI355X", "matrix.float16", 2517),
        ("hip:gfx950", "MI355X", "matrix.float4", 10066),
        ("hip:gfx950", "MI355X", "matrix.float64", 78.6),
    ],
)
def test_datasheet_peaks(target: str, name: str, rate: str, tera: float) -> None:
    assert flops_per_second(device(target, name), rate) == pytest.approx(tera * 1e12, rel=0.006)


def test_bandwidths_and_unknown_rates() -> None:
    h200 = device("cuda:sm_90a", "H200 SXM")
    assert dram_bytes_per_second(h200) == 4.8e12
    assert shared_bytes_per_second(h200) == 132 * 128 * 1.98e9
    assert flops_per_second(h200, "matrix.float32") is None
    # What mma.sync can reach on Hopper is two thirds of wgmma.
    part, whole = flops_per_second(h200, "matrix.float16.mma_sync"), flops_per_second(h200, "matrix.float16")
    assert part is not None
    assert whole is not None
    assert part / whole == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("target", "static", "block", "unit"),
    [
        ("cuda:sm_75", 48, 64, 64),
        ("cuda:sm_80", 48, 163, 164),
        ("cuda:sm_86", 48, 99, 100),
        ("cuda:sm_89", 48, 99, 100),
        ("cuda:sm_90a", 48, 227, 228),
        ("cuda:sm_100a", 48, 227, 228),
        ("cuda:sm_120a", 48, 99, 100),
        ("hip:gfx90a", 64, 64, 64),
        ("hip:gfx942", 64, 64, 64),
        ("hip:gfx950", 160, 160, 160),
    ],
)
def test_shared_memory_sizes(target: str, static: int, block: int, unit: int) -> None:
    shared = resolve(target).shared
    assert (shared.static_limit, shared.block_limit, shared.unit_bytes) == (static * 1024, block * 1024, unit * 1024)
    if shared.carveouts is not None:
        assert max(shared.carveouts) == shared.unit_bytes


def test_features_say_what_can_be_used() -> None:
    assert resolve("cuda:sm_75").features == {"ldmatrix"}
    for arch in ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"):
        assert {"ldmatrix", "cp_async", "mma_sync"} <= resolve(f"cuda:{arch}").features
    assert "stmatrix" in resolve("cuda:sm_90a").features
    assert "stmatrix" not in resolve("cuda:sm_80").features
    assert resolve("hip:gfx942").features == {"mfma"}
