"""Occupancy against what Nsight Compute reported for real launches, and against AMD's rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_min.errors import TargetError
from tilelang_min.targets import occupancy, resolve

# Copied from Nsight Compute reports: launch__registers_per_thread, launch__block_size, static and dynamic shared bytes,
# launch__shared_mem_config_size, then launch__occupancy_limit_{blocks,registers,shared_mem,warps} and the theoretical
# occupancy in per cent.  Reports: A100 CUTLASS int8 and float GEMMs (panjd123/cutlass, BSD-3-Clause), A10G matrix
# products (AveryClapp/ESMM-Research, MIT), GTX 1660 Ti (josiahls/cuda_learning_mojo, Apache-2.0), H800
# (flyinglandlord/sglang, Apache-2.0), H200 (our own measurement).
NCU = [
    ("sm_90a", "H200 conf_kernel<1>", 23, 256, 4096, 102400, 32, 10, 20, 8, 100.0),
    ("sm_90a", "H200 conf_kernel<2>", 23, 256, 8192, 135168, 32, 10, 14, 8, 100.0),
    ("sm_90a", "H200 conf_kernel<4>", 23, 256, 16384, 167936, 32, 10, 9, 8, 100.0),
    ("sm_90a", "H200 conf_kernel<8>", 23, 256, 32768, 233472, 32, 10, 6, 8, 75.0),
    ("sm_90a", "H200 vec4", 18, 256, 16384, 167936, 32, 10, 9, 8, 100.0),
    ("sm_90a", "H800 distribution_elementwise", 40, 256, 0, 32768, 32, 6, 32, 8, 75.0),
    ("sm_80", "A100 cutlass Kernel 1", 188, 128, 43008, 102400, 32, 2, 2, 16, 12.5),
    ("sm_80", "A100 cutlass Kernel 2", 254, 128, 92672, 102400, 32, 2, 1, 16, 6.25),
    ("sm_80", "A100 int8 Kernel", 204, 128, 43008, 102400, 32, 2, 2, 16, 12.5),
    ("sm_80", "A100 ReferenceGemm_kernel", 47, 256, 0, 32768, 32, 5, 32, 8, 62.5),
    ("sm_86", "A10G one_blocktiling", 51, 512, 4096, 16384, 16, 2, 3, 3, 66.6667),
    ("sm_86", "A10G two_blocktiling", 150, 256, 8192, 16384, 16, 1, 1, 6, 16.6667),
    ("sm_86", "A10G vectorized_blocktiling", 121, 256, 8192, 65536, 16, 2, 7, 6, 33.3333),
    ("sm_86", "A10G warptiling", 228, 128, 16384, 65536, 16, 2, 3, 12, 16.6667),
]


@pytest.mark.parametrize("row", NCU, ids=[row[1] for row in NCU])
def test_nsight_compute_limits(row: tuple[str, str, int, int, int, int, int, int, int, int, float]) -> None:
    arch, _, registers, threads, shared, carveout, blocks, by_registers, by_shared, by_warps, percent = row
    result = occupancy(
        resolve(f"cuda:{arch}"),
        threads=threads,
        registers_per_thread=registers,
        shared_bytes=shared,
        carveout_bytes=carveout,
    )
    assert result.limits["blocks"] == blocks
    assert result.limits["registers"] == by_registers
    assert result.limits["shared"] == by_shared
    assert result.limits["warps"] == by_warps
    assert result.occupancy is not None
    assert 100 * result.occupancy == pytest.approx(percent, abs=1e-3)


def test_turing_without_shared_memory_reserves_none() -> None:
    """GTX 1660 Ti report: 16 registers, 64 threads, no shared memory: limits 16, 64, (none), 16; 100 %."""
    result = occupancy(resolve("cuda:sm_75"), threads=64, registers_per_thread=16, shared_bytes=0)
    assert (result.limits["blocks"], result.limits["registers"], result.limits["warps"]) == (16, 64, 16)
    assert "shared" not in result.limits
    assert result.occupancy == 1.0
    assert result.limiters == ("warps", "blocks")


def test_the_largest_carveout_is_the_default() -> None:
    # 48 KiB + 1 KiB a block in 164 KiB: three blocks; in the smaller carve-outs fewer.
    result = occupancy(resolve("cuda:sm_80"), threads=128, registers_per_thread=64, shared_bytes=48 * 1024)
    assert (result.max_blocks_per_unit, result.limiters) == (3, ("shared",))
    assert result.occupancy == 12 / 64


def test_named_barriers_limit() -> None:
    assert occupancy(
        resolve("cuda:sm_86"), threads=32, registers_per_thread=16, shared_bytes=0, barriers=4
    ).limiters == ("barriers",)
    assert resolve("cuda:sm_80").limits.barriers == 64  # type: ignore[union-attr]


def test_a_block_that_cannot_be_launched() -> None:
    sm_80 = resolve("cuda:sm_80")
    # 1024 threads of 128 registers need twice the file; 64 fit.
    too_many = occupancy(sm_80, threads=1024, registers_per_thread=128, shared_bytes=0)
    assert (too_many.max_blocks_per_unit, too_many.limiters, too_many.occupancy) == (0, ("registers",), 0.0)
    assert occupancy(sm_80, threads=1024, registers_per_thread=64, shared_bytes=0).max_blocks_per_unit == 1
    assert occupancy(sm_80, threads=32, registers_per_thread=32, shared_bytes=163 * 1024).max_blocks_per_unit == 1
    assert occupancy(sm_80, threads=32, registers_per_thread=32, shared_bytes=163 * 1024 + 1).limiters == ("shared",)
    assert occupancy(sm_80, threads=1025, registers_per_thread=8, shared_bytes=0).limiters == ("warps",)
    assert occupancy(sm_80, threads=32, registers_per_thread=256, shared_bytes=0).limiters == ("registers",)


@pytest.mark.parametrize(
    ("registers", "waves_per_simd"),
    # min(8, floor(512 / round_up(total, 8)))
    [
        (24, 8),
        (64, 8),
        (65, 7),
        (72, 7),
        (73, 6),
        (80, 6),
        (96, 5),
        (97, 4),
        (128, 4),
        (129, 3),
        (168, 3),
        (169, 2),
        (257, 1),
    ],
)
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_amd_waves_by_unified_registers(arch: str, registers: int, waves_per_simd: int) -> None:
    target = resolve(f"hip:{arch}")
    one_wave = occupancy(target, threads=64, registers_per_thread=registers, shared_bytes=0)
    assert one_wave.max_blocks_per_unit == 4 * waves_per_simd
    assert one_wave.occupancy == waves_per_simd / 8
    four_waves = occupancy(target, threads=256, registers_per_thread=registers, shared_bytes=0)
    assert four_waves.max_blocks_per_unit == waves_per_simd


def test_amd_occupancy_counts_accumulation_registers() -> None:
    """128 architected and 128 accumulation registers share one file: 2 waves a SIMD, not the 4 of the larger part."""
    result = occupancy(resolve("hip:gfx942"), threads=256, registers_per_thread=128 + 128, shared_bytes=0)
    assert (result.max_blocks_per_unit, result.limiters) == (2, ("registers",))


def test_amd_lds_and_workgroup_limits() -> None:
    gfx942, gfx950 = resolve("hip:gfx942"), resolve("hip:gfx950")
    # 64 KiB a compute unit in steps of 512 bytes.
    lds = [
        occupancy(gfx942, threads=64, registers_per_thread=32, shared_bytes=size).max_blocks_per_unit
        for size in (65536, 32769, 32768, 21844, 16384, 65537)
    ]
    assert lds == [1, 1, 2, 2, 4, 0]
    # 160 KiB in steps of 1280 bytes: 64 KiB take 52 steps, of which two fit.
    big = occupancy(gfx950, threads=256, registers_per_thread=64, shared_bytes=65536)
    assert (big.max_blocks_per_unit, big.limiters) == (2, ("shared",))
    # 54,000 bytes take 43 steps, 55,040 bytes: two fit, where steps of 512 would let three in.
    assert occupancy(gfx950, threads=64, registers_per_thread=64, shared_bytes=54000).max_blocks_per_unit == 2
    # More than one wave needs one of 16 barriers; a single wave needs none.
    two_waves = occupancy(gfx942, threads=128, registers_per_thread=32, shared_bytes=0)
    assert (two_waves.max_blocks_per_unit, two_waves.limiters) == (16, ("warps", "barriers"))
    assert occupancy(gfx942, threads=64, registers_per_thread=32, shared_bytes=0).max_blocks_per_unit == 32


def test_a_cpu_has_no_occupancy() -> None:
    result = occupancy(resolve("cpu:x86-64-v3"), threads=128, registers_per_thread=None, shared_bytes=4096)
    assert (result.max_blocks_per_unit, result.occupancy, result.limiters) == (None, None, ())


def test_unknown_registers_do_not_limit() -> None:
    result = occupancy(resolve("cuda:sm_80"), threads=256, registers_per_thread=None, shared_bytes=0)
    assert (result.max_blocks_per_unit, result.limiters) == (8, ("warps",))


def test_nonsense_is_refused() -> None:
    with pytest.raises(TargetError, match="threads=0"):
        occupancy(resolve("cuda:sm_80"), threads=0, registers_per_thread=32, shared_bytes=0)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_90a", "hip:gfx942", "hip:gfx950"]),
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    shared=st.integers(0, 48 * 1024),
)
def test_what_fits_really_fits_and_more_never_helps(name: str, threads: int, registers: int, shared: int) -> None:
    target = resolve(name)
    result = occupancy(target, threads=threads, registers_per_thread=registers, shared_bytes=shared)
    blocks = result.max_blocks_per_unit
    assert blocks is not None
    assert result.occupancy is not None
    assert 0 <= result.occupancy <= 1
    assert result.limiters
    warps = -(-threads // target.warp_size)
    assert blocks * warps * target.warp_size * registers <= (target.registers.per_unit or 0)
    assert blocks * (shared + target.shared.reserved_per_block) <= (target.shared.unit_bytes or 0)
    more = occupancy(target, threads=threads, registers_per_thread=registers + 8, shared_bytes=shared + 1024)
    assert more.max_blocks_per_unit is not None
    assert more.max_blocks_per_unit <= blocks
