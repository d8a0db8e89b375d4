"""Shared memory on NVIDIA: known answers, mostly from per-instruction counters of real reports, and the measured
rules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tilelang_min.access import BankConflicts, bank_conflicts, global_sectors
from tilelang_min.errors import ShapeError, SimulationError, UnknownMemoryRule

LANE = np.arange(32)
Ints = npt.NDArray[np.int64]


def counts(result: BankConflicts) -> tuple[int, int]:
    assert result.conflicts == result.transactions - result.transactions_ideal
    return result.transactions, result.transactions_ideal


@pytest.mark.parametrize("access", ["load", "store"])
@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_word_strides(access: str, stride: int) -> None:
    """H200, LDS and STS of 32 bits, lane stride 1, 2, 4, 8 words: 1, 2, 4, 8 wavefronts."""
    result = bank_conflicts(LANE * 4 * stride, access, 32)
    assert counts(result) == (stride, 1)
    assert (result.ways, result.rule, result.requests) == (stride, "known", 1)


@pytest.mark.parametrize(
    ("addresses", "access", "width", "expected"),
    [
        (LANE * 32, "store", 128, (8, 4)),  # H200: STS.128, lane stride 32 bytes
        (LANE * 80, "load", 128, (4, 4)),  # H200: LDS.128, lane stride 80 bytes
        (LANE * 8, "store", 64, (2, 2)),  # A100: STS.64 of an epilogue
        (LANE * 128, "load", 128, (32, 4)),  # forum thread 359822: LDS.128, 32 wavefronts, 28 conflicts
        (LANE * 2, "store", 16, (1, 1)),  # STS.U16
        (LANE * 0, "load", 32, (1, 1)),  # broadcast
        (LANE // 2 * 4, "load", 32, (1, 1)),
        (LANE, "load", 8, (1, 1)),
        (LANE * 4 * 33, "load", 32, (1, 1)),  # a column of a tile with rows of 33 words
        (LANE * 4 * 34, "load", 32, (2, 1)),
        (LANE * 256, "load", 64, (32, 2)),
    ],
)
@pytest.mark.parametrize("target", ["cuda:sm_75", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_120a"])
def test_known_answers(addresses: Ints, access: str, width: int, expected: tuple[int, int], target: str) -> None:
    result = bank_conflicts(addresses, access, width, target)
    assert counts(result) == expected
    assert result.rule == "known"


def conf_kernel(stride: int) -> tuple[Ints, Ints, int]:
    """Addresses of the stores and loads of one block of `conf_kernel<STRIDE>` in our H200 measurement."""
    words = 32 * stride * 32 // (4 if stride > 8 else 1)
    warp = np.arange(8)[:, None]
    stores = (LANE * stride + warp) % words * 4
    i = np.arange(64)[:, None, None]
    loads = ((LANE * stride + (warp + i)) % words * 4).reshape(-1, 32)
    return stores, loads, 4096


@pytest.mark.parametrize(
    ("stride", "store", "load"),
    # memory_l1_wavefronts_shared and _ideal of the STS and of the 64 LDS, from bank_conflicts.ncu-rep (H200).
    [
        (1, (32768, 32768), (2097152, 2097152)),
        (2, (65536, 32768), (4194304, 2097152)),
        (4, (131072, 32768), (8388608, 2097152)),
        (8, (262144, 32768), (16777216, 2097152)),
    ],
)
def test_h200_conf_kernel(stride: int, store: tuple[int, int], load: tuple[int, int]) -> None:
    stores, loads, blocks = conf_kernel(stride)
    stored, loaded = bank_conflicts(stores, "store", 32), bank_conflicts(loads, "load", 32)
    assert (stored.transactions * blocks, stored.transactions_ideal * blocks) == store
    assert (loaded.transactions * blocks, loaded.transactions_ideal * blocks) == load


def test_h200_vec4() -> None:
    """STS.128: 262144 wavefronts, 131072 ideal; LDS.128: 131072 and 131072, in 4096 blocks of 256 threads."""
    thread = np.arange(256).reshape(8, 32)
    stored = bank_conflicts((thread * 2 & 1023) * 16, "store", 128)
    loaded = bank_conflicts((thread * 5 & 1023) * 16, "load", 128)
    assert (stored.transactions * 4096, stored.transactions_ideal * 4096) == (262144, 131072)
    assert (loaded.transactions * 4096, loaded.transactions_ideal * 4096) == (131072, 131072)
    assert stored.ways == 2


# --- predicated accesses: ideal = ceil(active lanes x width / 128 bytes), measured on an H200 ---


@pytest.mark.parametrize("access", ["load", "store"])
@pytest.mark.parametrize(
    ("width", "active", "ideal"), [(128, 11, 2), (64, 11, 1), (128, 1, 1), (64, 17, 2), (128, 25, 4)]
)
def test_predicated_ideal(access: str, width: int, active: int, ideal: int) -> None:
    mask = np.zeros(32, dtype=bool)
    mask[np.random.default_rng(active).permutation(32)[:active]] = True
    result = bank_conflicts(LANE * (width // 8), access, width, mask=mask)
    assert result.transactions_ideal == ideal
    # Wavefronts of stores follow the phases; phases of loads may go two at a time.
    lanes = 1024 // width
    phases = len(set((LANE[mask] // lanes).tolist()))
    assert result.transactions == phases if access == "store" else ideal <= result.transactions <= phases


def test_predicated_narrow_accesses_are_one_phase() -> None:
    assert counts(bank_conflicts(LANE * 8, "load", 32, mask=LANE < 11)) == (1, 1)
    assert counts(bank_conflicts(LANE * 8, "load", 32, mask=LANE % 16 == 0)) == (2, 1)


@pytest.mark.parametrize(
    ("lanes", "width", "expected"),
    # Lanes without an active partner stop no joining of phases, except that of lanes 0 to 15 where lane 31 is active.
    [
        ([0, 9], 128, 1),
        ([0, 8], 128, 2),  # one bank
        ([0, 17], 128, 2),  # phases 0 and 1 join, and 2 and 3, but not 0 and 2
        ([17, 31], 128, 1),
        ([3, 5, 12], 128, 1),
        ([4, 7, 14, 26, 31], 128, 3),
        ([7, 11, 13, 16, 21, 31], 128, 3),
        ([2, 6, 15, 17, 28], 128, 2),
        ([0, 1, 2, 3, 12], 128, 1),  # lane 31 is off: lanes 0 to 15 need no pairs
        ([16, 17, 18, 19, 28], 128, 2),
        ([0, 17], 64, 1),
        ([0, 16], 64, 2),
        ([0, 1, 2, 3, 20], 64, 2),
    ],
)
def test_predicated_loads_join_phases(lanes: list[int], width: int, expected: int) -> None:
    mask = np.isin(LANE, lanes)
    load, store = (bank_conflicts(LANE * (width // 8), access, width, mask=mask) for access in ("load", "store"))
    assert (load.transactions, load.rule) == (expected, "known")
    assert store.transactions == len({lane // (1024 // width) for lane in lanes})


@pytest.mark.parametrize(("active", "expected"), [(1, 1), (16, 1), (17, 2), (32, 2)])
def test_one_address_by_any_lanes(active: int, expected: int) -> None:
    mask = np.random.default_rng(active).permutation(32) < active
    assert counts(bank_conflicts(LANE * 0, "load", 128, mask=mask)) == (expected, expected)
    assert counts(bank_conflicts(LANE * 0, "load", 64, mask=mask)) == (1, 1)


def test_no_lane_active_takes_nothing() -> None:
    result = bank_conflicts(np.stack([LANE * 16, LANE * 16]), "load", 128, mask=np.stack([LANE < 0, LANE < 32]))
    assert result.per_request.tolist() == [0, 4]
    assert result.per_request_ideal.tolist() == [0, 4]
    assert result.requests == 1


# --- pairs of equal addresses in 64- and 128-bit loads, measured on an H200 ---


@pytest.mark.parametrize(
    ("index", "width", "expected"),
    [
        (LANE * 0, 64, (1, 1)),  # all lanes equal
        (LANE * 0, 128, (2, 2)),
        (LANE // 4, 128, (2, 2)),  # groups of four: still two
        (LANE // 2, 128, (2, 2)),  # T(n) == T(n^1)
        (LANE // 2, 64, (1, 1)),
        ((LANE & 1) | (LANE >> 2 << 1), 128, (2, 2)),  # T(n) == T(n^2)
        ((LANE & 1) | (LANE >> 2 << 1), 64, (1, 1)),
        (LANE % 16, 128, (4, 4)),  # equal, but not neighbours: no pairs
        (LANE % 16, 64, (2, 2)),
    ],
)
def test_pairs_merge_in_loads(index: Ints, width: int, expected: tuple[int, int]) -> None:
    result = bank_conflicts(index * (width // 8), "load", width)
    assert counts(result) == expected
    assert result.rule == "known"


@pytest.mark.parametrize(("width", "phases"), [(64, 2), (128, 4)])
@pytest.mark.parametrize("group", [2, 4, 32])
def test_pairs_do_not_merge_in_stores(width: int, phases: int, group: int) -> None:
    assert counts(bank_conflicts(LANE // group * (width // 8), "store", width)) == (phases, phases)


def test_halves_of_a_warp_merge_on_their_own() -> None:
    index = LANE // 2
    index[31] = 16
    assert counts(bank_conflicts(index * 16, "load", 128)) == (3, 3)
    assert counts(bank_conflicts(index * 8, "load", 64)) == (2, 2)


def test_an_inactive_lane_is_no_obstacle() -> None:
    assert counts(bank_conflicts(LANE // 2 * 16, "load", 128, mask=LANE % 2 == 0)) == (2, 2)
    assert counts(bank_conflicts(LANE // 2 * 16, "load", 128, mask=LANE // 2 % 2 == 0)) == (2, 2)


def test_pairs_that_conflict_do_not_merge() -> None:
    """Measured: as if no lanes were paired, and then the ideal is not halved either."""
    result = bank_conflicts(LANE // 2 * 128, "load", 128)
    assert (result.transactions, result.transactions_ideal, result.ways, result.rule) == (16, 4, 4, "known")


# --- ldmatrix, stmatrix ---


def rows(stride: int, count: int = 32) -> Ints:
    return np.arange(count) * stride


@pytest.mark.parametrize("access", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrices_are_phases(access: str, matrices: int) -> None:
    assert counts(bank_conflicts(rows(16), access, matrices=matrices)) == (matrices, matrices)
    assert counts(bank_conflicts(rows(80), access, matrices=matrices)) == (matrices, matrices)  # padded rows
    assert counts(bank_conflicts(rows(128), access, matrices=matrices)) == (8 * matrices, matrices)
    assert counts(bank_conflicts(rows(64), access, matrices=matrices)) == (4 * matrices, matrices)
    assert counts(bank_conflicts(rows(0), access, matrices=matrices)) == (matrices, matrices)  # equal rows are free


def test_matrices_come_from_the_lanes() -> None:
    assert counts(bank_conflicts(rows(16, 16), "ldmatrix")) == (2, 2)
    assert counts(bank_conflicts(rows(16), "ldmatrix")) == (4, 4)
    # Lanes beyond the last matrix are not read: their addresses may be anything.
    addresses = rows(16)
    addresses[8:] = 3
    assert counts(bank_conflicts(addresses, "ldmatrix", matrices=1)) == (1, 1)
    for lanes, matrices in ((32, 3), (8, 2), (24, None)):
        with pytest.raises(ShapeError, match="matrices"):
            bank_conflicts(rows(16, lanes), "ldmatrix", matrices=matrices)
    with pytest.raises(ShapeError, match="matrices is for"):
        bank_conflicts(rows(16), "load", matrices=4)


def test_a100_swizzled_ldmatrix() -> None:
    """LDSM.16.M88.4 of a swizzled tile with rows of 128 bytes: 4 wavefronts; the same tile without swizzle: 32."""
    row, chunk = LANE % 8, LANE // 8
    assert counts(bank_conflicts(row * 128 + (chunk ^ row) * 16, "ldmatrix", target="cuda:sm_80")) == (4, 4)
    assert counts(bank_conflicts(row * 128 + chunk * 16, "ldmatrix", target="cuda:sm_80")) == (32, 4)


# --- cp.async through the L1 cache ---


@pytest.mark.parametrize(
    ("addresses", "source", "width", "expected"),
    [
        (LANE * 0, LANE * 4, 32, (32, 1)),  # 32 lanes to one word
        (LANE * 4, LANE * 4, 32, (1, 1)),
        (LANE * 4, LANE * 0, 32, (32, 1)),  # from one word
        (LANE * 4, LANE * 128, 32, (32, 1)),  # from one bank
        (LANE * 8, LANE * 8, 64, (2, 2)),
        (LANE * 16, LANE * 16, 128, (4, 4)),
        (LANE // 2 * 4, LANE * 4, 32, (2, 1)),
        (LANE * 80, LANE * 16, 128, (4, 4)),
        (LANE * 32, LANE * 16, 128, (8, 4)),
        (LANE * 16, LANE * 32, 128, (8, 4)),
    ],
)
def test_cp_async_conflicts_on_both_sides(addresses: Ints, source: Ints, width: int, expected: tuple[int, int]) -> None:
    result = bank_conflicts(addresses, "cp_async", width, "cuda:sm_80", source=source + (1 << 40))
    assert counts(result) == expected
    assert result.rule == "known"


def test_cp_async_passes_are_those_of_the_lane_with_most_in_its_way() -> None:
    """Measured: chunks 5, 0 and 5 to 0, 0 and 7.  Two passes would do, but lane 0 conflicts with both others."""
    mask = np.isin(LANE, [0, 1, 5])
    addresses, source = np.zeros((2, 32), dtype=int)
    addresses[5], source[0], source[5] = 7 * 16, 5 * 16, 5 * 16
    assert counts(bank_conflicts(addresses, "cp_async", 128, mask=mask, source=source)) == (3, 1)


def test_lanes_that_fill_with_zeros_have_no_source() -> None:
    reads = LANE < 4
    source = np.where(reads, 0, -1)
    assert bank_conflicts(LANE * 4, "cp_async", 32, source=source, reads=reads).transactions == 4
    assert bank_conflicts(LANE * 4, "cp_async", 32, source=source * 0).transactions == 32


def test_cp_async_without_sources_is_open() -> None:
    result = bank_conflicts(LANE // 2 * 4, "cp_async", 32)
    assert (*counts(result), result.rule) == (2, 1, "open")


# --- cp.async past the L1 cache ---

ROW, COLUMN = LANE // 8, LANE % 8


@pytest.mark.parametrize(
    ("addresses", "source", "transactions", "sectors"),
    [
        # H200, single patterns.
        (LANE * 16, LANE * 16, 4, 16),
        (LANE * 32, LANE * 16, 32, 32),
        (LANE * 80, LANE * 16, 32, 32),
        (LANE * 0, LANE * 0, 1, 1),
        (LANE * 0, LANE * 16, 1, 1),  # of lanes that write one place only the lowest counts
        (LANE % 8 * 16, LANE % 8 * 16, 1, 4),
        (LANE * 16, LANE * 0, 32, 32),
        # A100: a swizzled tile with rows of one line takes 4; rows of half a line from lines far apart take 8.
        (ROW * 128 + (COLUMN ^ ROW) * 16, ROW * 4096 + COLUMN * 16, 4, 16),
        (LANE * 16, LANE // 4 * 4096 + LANE % 4 * 16, 8, 16),
    ],
)
def test_cp_async_bypass(addresses: Ints, source: Ints, transactions: int, sectors: int) -> None:
    result = bank_conflicts(addresses, "cp_async_bypass", 128, "cuda:sm_80", source=source + (1 << 40))
    moved = global_sectors(source + (1 << 40), "cp_async_bypass", 128, "cuda:sm_80", destination=addresses)
    assert (result.transactions, moved.sectors) == (transactions, sectors)
    chunks = len(set((addresses // 16).tolist()))
    assert (result.transactions_ideal, moved.sectors_ideal) == (-(-chunks // 8), -(-chunks // 2))
    assert (result.rule, moved.rule) == ("known", "known")


@pytest.mark.parametrize(
    ("shift", "transactions", "sectors"),
    # Measured: a row of 128 bytes, from a line, to so many chunks behind the start of a line.
    [(0, 1, 4), (1, 3, 8), (2, 2, 4), (3, 4, 8), (4, 2, 4), (5, 4, 8), (6, 2, 4), (7, 3, 8)],
)
def test_a_row_shifted_against_its_source(shift: int, transactions: int, sectors: int) -> None:
    addresses = (np.arange(8) + shift) * 16
    source = np.arange(8) * 16
    assert counts(bank_conflicts(addresses, "cp_async_bypass", source=source)) == (transactions, 1)
    result = global_sectors(source, "cp_async_bypass", destination=addresses)
    assert (result.sectors, result.sectors_ideal) == (sectors, 4)


def test_rows_with_padding_of_one_chunk() -> None:
    """The padded products of the quickstart: rows of 144 bytes take 10.5 wavefronts and 24 sectors a request."""
    rows = np.arange(8).repeat(8).reshape(2, 32)
    addresses, source = rows * 144 + COLUMN * 16, rows * 2048 + COLUMN * 16
    assert bank_conflicts(addresses, "cp_async_bypass", source=source).per_request.sum() == 21
    assert global_sectors(source, "cp_async_bypass", destination=addresses).sectors == 48


def test_a_copy_with_zeros_counts_twice() -> None:
    """Nsight Compute counts an instruction with lanes that fill as going past the cache and as going through it."""
    reads, source = LANE < 16, np.where(LANE < 16, LANE * 16, -1)
    assert counts(bank_conflicts(LANE * 16, "cp_async_bypass", source=source, reads=reads)) == (2 + 4, 2 + 4)
    everyone = bank_conflicts(LANE * 16, "cp_async_bypass", source=LANE * 16, reads=LANE >= 0)
    assert counts(everyone) == (4, 4)
    nobody = bank_conflicts(LANE * 32, "cp_async_bypass", source=LANE * 0 - 1, reads=LANE < 0)
    assert counts(nobody) == (8, 4)


def test_cp_async_bypass_without_source() -> None:
    """Taken to lie as the destinations do: rows of whole lines cost nothing extra."""
    result = bank_conflicts(LANE * 16, "cp_async_bypass")
    assert (*counts(result), result.rule) == (4, 4, "open")
    moved = global_sectors(LANE * 16, "cp_async_bypass")
    assert (moved.sectors, moved.sectors_ideal, moved.rule) == (16, 16, "open")


# --- what is refused ---


@pytest.mark.parametrize(
    ("access", "width", "target", "named"),
    [
        ("load", 96, "cuda:sm_90a", "load of 96 bits on sm_90a"),
        ("load", 256, "cuda:sm_90a", "load of 256 bits on sm_90a"),
        ("stmatrix", 128, "cuda:sm_80", "stmatrix of 128 bits on sm_80"),
        ("cp_async", 128, "cuda:sm_75", "cp_async of 128 bits on sm_75"),
        ("cp_async", 16, "cuda:sm_80", "cp_async of 16 bits on sm_80"),
        ("cp_async_bypass", 64, "cuda:sm_80", "cp_async_bypass of 64 bits on sm_80"),
        ("laod", 128, "cuda:sm_80", 'did you mean "load"'),
        ("load", 128, "cpu:x86-64-v3", "has no banks"),
    ],
)
def test_unknown_rules_name_the_instruction(access: str, width: int, target: str, named: str) -> None:
    with pytest.raises(UnknownMemoryRule) as caught:
        bank_conflicts(LANE * 32, access, width, target)
    assert named in str(caught.value)


def test_misaligned_and_misshapen_arguments() -> None:
    with pytest.raises(SimulationError, match=r"LDS\.128 at byte 24 \(request 0, lane 3\)"):
        bank_conflicts(LANE * 8 + (LANE < 3) * LANE * 8, "load", 128)
    # An inactive lane's address does not matter.
    assert bank_conflicts(np.where(LANE < 8, LANE * 16, -1), "load", 128, mask=LANE < 8).transactions == 1
    with pytest.raises(SimulationError, match="negative"):
        bank_conflicts(LANE * 4 - 4, "load", 32)
    for wrong in (LANE * 1.0, np.zeros((2, 2, 32), dtype=int), np.zeros(33, dtype=int), np.int64(3)):
        with pytest.raises(ShapeError, match="addresses are"):
            bank_conflicts(wrong, "load", 32)
    for mask in (np.ones(31, dtype=bool), np.ones(32, dtype=int)):
        with pytest.raises(ShapeError, match="mask is"):
            bank_conflicts(LANE * 4, "load", 32, mask=mask)
    with pytest.raises(ShapeError, match="source"):
        bank_conflicts(LANE * 16, "cp_async_bypass", source=LANE[:16])
    with pytest.raises(ShapeError, match="source"):
        bank_conflicts(LANE * 16, "load", source=LANE)


def test_per_request_adds_up() -> None:
    strides = np.array([1, 2, 4, 8, 3])[:, None]
    result = bank_conflicts(LANE * 4 * strides, "load", 32)
    assert result.per_request.tolist() == [1, 2, 4, 8, 1]
    assert result.per_request_ways.tolist() == [1, 2, 4, 8, 1]
    assert (result.transactions, result.transactions_ideal, result.conflicts, result.ways) == (16, 5, 11, 8)
    assert isinstance(result.transactions, int)
    empty = bank_conflicts(np.zeros((0, 32), dtype=int), "load", 128)
    assert (empty.transactions, empty.ways, empty.requests, empty.rule) == (0, 0, 0, "known")
