"""Coalescing of global accesses: known answers from reports, and what a sector is on each architecture."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tilelang_min.access import global_sectors
from tilelang_min.errors import ShapeError, SimulationError, UnknownMemoryRule

LANE = np.arange(32)
WAVE = np.arange(64)


@pytest.mark.parametrize(
    ("width", "sectors"),
    # H200: LDG.32 4 sectors an instruction, LDG.128 16.
    [(8, 1), (16, 2), (32, 4), (64, 8), (128, 16)],
)
@pytest.mark.parametrize("access", ["load", "store", "cp_async"])
def test_full_aligned_warps(width: int, sectors: int, access: str) -> None:
    result = global_sectors(LANE * (width // 8), access, width)
    assert (result.sectors, result.sectors_ideal, result.sector_bytes) == (sectors, sectors, 32)
    assert result.rule == "known"


def test_h200_report() -> None:
    """conf_kernel and vec4 of bank_conflicts.ncu-rep: 131072 and 524288 sectors in 32768 instructions."""
    thread = np.arange(8 * 32).reshape(8, 32)
    assert global_sectors(thread * 4, "load", 32).sectors * 4096 == 131072
    assert global_sectors(thread * 16, "store", 128).sectors * 4096 == 524288


def test_misaligned_strided_and_broadcast() -> None:
    assert (
        global_sectors(LANE * 4 + 4, "load", 32).sectors,
        global_sectors(LANE * 4 + 4, "load", 32).sectors_ideal,
    ) == (
        5,
        4,
    )
    strided = global_sectors(LANE * 4096, "load", 32)
    assert (strided.sectors, strided.sectors_ideal) == (32, 4)
    # Ideal is never more than what was touched.
    same = global_sectors(LANE * 0, "load", 128)
    assert (same.sectors, same.sectors_ideal) == (1, 1)


@pytest.mark.parametrize(
    ("active", "width", "ideal"),
    # ideal = ceil(active lanes x width / 32 bytes)
    [(11, 128, 6), (11, 32, 2), (1, 64, 1), (0, 128, 0), (9, 32, 2), (8, 32, 1)],
)
def test_predicated(active: int, width: int, ideal: int) -> None:
    result = global_sectors(LANE * 4096, "load", width, mask=active > LANE)
    assert (result.sectors, result.sectors_ideal) == (active, ideal)
    assert result.requests == int(active > 0)


@pytest.mark.parametrize(
    ("target", "access", "unit"),
    # A copy of 2^20 doubles (8 MiB each way): TCP_TCC_READ_REQ = 131072 on MI200, 65536 on MI300X and MI350;
    # TCP_TCC_WRITE_REQ = 131072 on all.
    [
        ("hip:gfx90a", "load", 64),
        ("hip:gfx942", "load", 128),
        ("hip:gfx950", "load", 128),
        ("hip:gfx90a", "store", 64),
        ("hip:gfx942", "store", 64),
        ("hip:gfx950", "store", 64),
    ],
)
def test_amd_copy_of_known_size(target: str, access: str, unit: int) -> None:
    result = global_sectors(np.arange(1 << 20).reshape(-1, 64) * 8, access, 64, target)
    assert result.sector_bytes == unit
    assert result.sectors == (8 << 20) // unit
    assert result.sectors == result.sectors_ideal


def test_amd_accesses_may_straddle() -> None:
    result = global_sectors(WAVE[:1] + 124, "load", 128, "hip:gfx942")
    assert (result.sectors, result.sectors_ideal) == (2, 1)
    assert global_sectors(WAVE * 12, "load", 96, "hip:gfx942").sectors == 6


def test_refusals() -> None:
    with pytest.raises(SimulationError, match="misaligned global load of 128 bits at byte 8"):
        global_sectors(LANE * 16 + 8, "load", 128)
    for access, width, target in (
        ("load", 32, "cpu:x86-64-v3"),
        ("ldmatrix", 128, "cuda:sm_80"),
        ("load", 96, "cuda:sm_80"),
        ("increment", 32, "cuda:sm_80"),
    ):
        with pytest.raises(UnknownMemoryRule) as caught:
            global_sectors(LANE * 16, access, width, target)
        assert f'global "{access}" of {width} bits on {target}' in str(caught.value)
    with pytest.raises(ShapeError):
        global_sectors(WAVE * 4, "load", 32, "cuda:sm_80")


def test_per_request() -> None:
    addresses = np.stack([LANE * 4, LANE * 8, LANE * 64])
    result = global_sectors(addresses, "load", 32)
    assert result.per_request.tolist() == [4, 8, 32]
    assert result.per_request_ideal.tolist() == [4, 4, 4]
    assert (result.sectors, result.sectors_ideal, result.requests) == (44, 12, 3)


def test_a_hundred_thousand_requests_take_well_under_a_second() -> None:
    addresses = np.random.default_rng(1).integers(0, 1 << 30, (100_000, 32)) * 16
    seconds = []
    for _ in range(3):
        start = time.process_time()
        global_sectors(addresses)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.8
