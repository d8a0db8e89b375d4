"""Shared-memory transactions of the quickstart's products at 1024 cubed, derived by hand.

All use tiles of 64 x 64, 128 threads and 256 blocks.  A step brings 32 float32 or 64 float16 of K, so that a row of A's tile is
128 bytes long: one whole row of the 32 banks of 4 bytes.  *Requests* are warp (wavefront) instructions of the whole launch.

``tiled`` has rows one after another: the same column of all rows lies in the same banks.  ``padded`` has 16 bytes behind every
row, which moves row r by 4 r banks: the 16-byte chunks of eight successive rows cover all 32 banks once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from quickstart_kernels import module

import tilelang_min as tilelang
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program

BLOCKS = 16 * 16
STEPS = {"float32": 32, "float16": 16}
BLOCK_K = {"float32": 32, "float16": 64}

Row = tuple[int, int, int, int]
"""Requests, transactions, ideal transactions, ways."""


@lru_cache
def counted(name: str, dtype: str, target: str, stages: int) -> dict[tuple[str, str, str, int], Row]:
    """(kind of operation, buffer, access, bits) -> figures of the launch."""
    factory = getattr(module("matmul"), name)
    kernel = factory.prim_func(1024, 1024, 1024, dtype=dtype, block_K=BLOCK_K[dtype], num_stages=stages)
    program = thread_program(kernel, tilelang.targets.resolve(target))[2]
    made: dict[tuple[str, str, str, int], Row] = {}
    for count in analyse_program(program).counts:
        if count.space == "shared":
            key = (program.operations[count.operation].kind, count.buffer, count.access, count.width_bits)
            assert count.rule == "known"
            assert key not in made
            made[key] = (count.requests, count.transactions or 0, count.transactions_ideal or 0, count.ways or 0)
    return made


def row(requests: int, each: float, ideal: int, ways: int) -> Row:
    """Figures from those of one request."""
    return requests, int(requests * each), requests * ideal, ways


def copies(dtype: str, warps: int) -> dict[str, int]:
    """Requests that fill the tiles: 16 bytes a lane."""
    size = 4 if dtype == "float32" else 2
    tiles = {"A_shared": 64 * BLOCK_K[dtype] * size, "B_shared": BLOCK_K[dtype] * 64 * size}
    return {name: tile // 16 // 128 * warps * STEPS[dtype] * BLOCKS for name, tile in tiles.items()}


def nvidia_products(dtype: str, padded: bool) -> dict[tuple[str, str, str, int], Row]:
    """What T.gemm reads on sm_80.

    float16: 2 x 2 warps of 32 x 32, in steps of 16 of K.  Two ldmatrix.x4 for A (16 x 16 each), two for B.  Each of the four
    matrices is a phase of eight rows, 128 bytes apart: eight ways without padding, one with.

    float32: 1 x 4 warps of 8 x 4 lanes, each lane with 8 rows and 4 columns.  For four of K every lane reads 16 bytes of each
    of its rows of A: 8 LDS.128.  A phase is 8 lanes, and those have 8 different rows: eight ways, or one.  And of B, for each
    of four k, 16 bytes: 4 LDS.128, in which the 8 lanes of a phase have one address, and lanes come in pairs, so that two phases
    go as one: two passes, ideal as well.
    """
    if dtype == "float16":
        requests = 2 * (1024 // 16) * 4 * BLOCKS
        passes, ways = (4, 1) if padded else (32, 8)
        return {("gemm", name, "ldmatrix", 128): row(requests, passes, 4, ways) for name in ("A_shared", "B_shared")}
    a, b = 8 * (1024 // 4) * 4 * BLOCKS, 4 * (1024 // 4) * 4 * BLOCKS
    return {
        ("gemm", "A_shared", "load", 128): row(a, 4, 4, 1) if padded else row(a, 32, 4, 8),
        ("gemm", "B_shared", "load", 128): row(b, 2, 2, 1),
    }


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["tiled", "padded"])
def test_nvidia_with_asynchronous_copies(name: str, dtype: str) -> None:
    """cp.async.cg fills rows of 128 bytes, four a request.

    A row that keeps its place modulo 128 takes one wavefront: four a request, the ideal.  In ``padded`` row r is moved by r
    chunks of 16 bytes modulo 8, and that takes 1, 3, 2, 4, 2, 4, 2, 3 wavefronts for r = 0 to 7 (docs/memory-model.md): 21 for
    eight rows, 10.5 a request.  What padding saves T.gemm it costs the copies in part.
    """
    padded = name == "padded"
    expected = nvidia_products(dtype, padded)
    found = counted(name, dtype, "cuda:sm_80", 2)
    for buffer, requests in copies(dtype, 4).items():
        key = ("copy", buffer, "cp_async_bypass", 128)
        assert found[key][:3] == row(requests, 10.5 if padded else 4, 4, 0)[:3]
        assert found[key][3] == 1 or padded
        expected[key] = found[key]
    assert found == expected


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["tiled", "padded"])
def test_nvidia_with_stores(name: str, dtype: str) -> None:
    """One stage: the tiles are filled by STS.128.  The 8 lanes of a phase write one row of 128 bytes: no conflict either way."""
    expected = nvidia_products(dtype, name == "padded")
    for buffer, requests in copies(dtype, 4).items():
        expected["copy", buffer, "store", 128] = row(requests, 4, 4, 1)
    assert counted(name, dtype, "cuda:sm_80", 1) == expected


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["tiled", "padded"])
def test_amd(name: str, dtype: str, stages: int) -> None:
    """gfx942: 2 x 1 wavefronts of 32 x 64, MFMAs of 32 x 32; stages make no difference to the number of accesses.

    Fill: ds_write_b128 in phases of 8 successive lanes, which write one row of 128 bytes.

    A: lane l reads 16 bytes of row l % 32 (ds_read_b128): 8 float16 for 16 of K, or 4 float32 for 8 of K.  A phase is 8 lanes of
    different rows: eight ways without padding, one with; there are 8 phases.

    B: for each of these K 32 lanes read the columns of two tiles, two neighbours each, and 32 others the K behind it: 4 bytes a
    lane of float16 in phases of 32 lanes, 8 of float32 in phases of 16, which cover all banks once.  8 values of K a lane of
    float16, 4 of float32.
    """
    padded = name == "padded"
    reads = 2 * BLOCKS * (1024 // (16 if dtype == "float16" else 8))
    expected = {
        ("gemm", "A_shared", "load", 128): row(reads, 8, 8, 1) if padded else row(reads, 64, 8, 8),
    }
    if dtype == "float16":
        expected["gemm", "B_shared", "load", 32] = row(reads * 8, 2, 2, 1)
    else:
        expected["gemm", "B_shared", "load", 64] = row(reads * 4, 4, 4, 1)
    for buffer, requests in copies(dtype, 2).items():
        expected["copy", buffer, "store", 128] = row(requests, 8, 8, 1)
    assert counted(name, dtype, "hip:gfx942", stages) == expected


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_padding_removes_every_conflict_of_loads_and_stores(dtype: str, target: str) -> None:
    """As one sum, for whoever reads the report: all but asynchronous copies."""

    def conflicts(name: str) -> int:
        rows = counted(name, dtype, target, 2)
        return sum(
            transactions - ideal
            for key, (_, transactions, ideal, _) in rows.items()
            if not key[2].startswith("cp_async")
        )

    assert conflicts("padded") == 0
    assert conflicts("tiled") > 0


def test_the_kernels_without_tiles_use_no_shared_memory() -> None:
    for target in ("cuda:sm_80", "hip:gfx942"):
        kernel: Any = module("matmul").naive.prim_func(256, 256, 256)
        program = thread_program(kernel, tilelang.targets.resolve(target))[2]
        assert program.shared == ()
        assert all(count.space == "global" for count in analyse_program(program).counts)
