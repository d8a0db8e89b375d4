"""LDS of AMD: phases as measured or documented, counter values of real runs, and what is not known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tilelang_min.access import BankConflicts, bank_conflicts
from tilelang_min.errors import SimulationError, UnknownMemoryRule

LANE = np.arange(64)
CDNA = ("gfx90a", "gfx942", "gfx950")
Ints = npt.NDArray[np.int64]


def count(addresses: Ints, instruction: str, arch: str, mask: npt.NDArray[np.bool_] | None = None) -> BankConflicts:
    """Counts of an LDS instruction given by name, as in ds_read_b64."""
    _, verb, size = instruction.split("_")
    access = {"read": "load", "write": "store"}[verb]
    return bank_conflicts(addresses, access, int(size.lstrip("bu")), f"hip:{arch}", mask=mask)


# Phases of lanes 0 to 31 written out; lanes 32 to 63 go likewise.  Sources: conflict matrices measured on an MI355X
# (HipKittens, MIT) for gfx950 and for ds_read_b96; ROCm and Composable Kernel documentation for the others.
IN_A_ROW = {size: [list(range(first, first + size)) for first in range(0, 32, size)] for size in (8, 16, 32)}
CROSSED = [
    [0, 1, 2, 3, 20, 21, 22, 23],
    [4, 5, 6, 7, 16, 17, 18, 19],
    [8, 9, 10, 11, 28, 29, 30, 31],
    [12, 13, 14, 15, 24, 25, 26, 27],
]
CROSSED_WIDE = [
    [0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27],
    [4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31],
]
PHASES = [
    ("ds_read_b32", CDNA, IN_A_ROW[32]),
    ("ds_write_b32", CDNA, IN_A_ROW[32]),
    ("ds_read_b64", ("gfx90a", "gfx942"), IN_A_ROW[16]),
    ("ds_read_b64", ("gfx950",), IN_A_ROW[32]),
    ("ds_write_b64", CDNA, IN_A_ROW[16]),
    ("ds_read_b96", CDNA, CROSSED),
    ("ds_read_b128", ("gfx90a", "gfx942"), CROSSED),
    ("ds_read_b128", ("gfx950",), CROSSED_WIDE),
    ("ds_write_b128", CDNA, IN_A_ROW[8]),
]


@pytest.mark.parametrize(("instruction", "archs", "groups"), PHASES)
def test_two_lanes_conflict_exactly_within_a_phase(
    instruction: str, archs: tuple[str, ...], groups: list[list[int]]
) -> None:
    """The experiment that measured the phases: two lanes on one bank conflict once if they go together, else not."""
    both_halves = groups + [[lane + 32 for lane in group] for group in groups]
    expected = np.zeros((64, 64), dtype=int)
    for group in both_halves:
        expected[np.ix_(group, group)] = 1
    np.fill_diagonal(expected, 0)
    one, other = (index.reshape(-1, 1) for index in np.indices((64, 64)))
    for arch in archs:
        result = count(np.tile(LANE * 256, (4096, 1)), instruction, arch, (one == LANE) | (other == LANE))
        conflicts = result.per_request - result.per_request_ideal
        assert np.array_equal(conflicts.reshape(64, 64), expected), arch


def test_ds_write_b64_counter_of_an_mi355x() -> None:
    """One wave, byte offset lane * 256: SQ_LDS_BANK_CONFLICT = 60 (rocprofv3, HipKittens, MIT)."""
    result = count(LANE * 256, "ds_write_b64", "gfx950")
    assert (result.transactions, result.transactions_ideal, result.conflicts, result.ways) == (64, 4, 60, 16)


@pytest.mark.parametrize(
    ("instruction", "arch", "banks"),
    [
        ("ds_read_b64", "gfx950", 64),  # bank_results.txt: first conflict at bank 64
        ("ds_read_b128", "gfx950", 64),
        ("ds_read_b96", "gfx950", 32),  # first conflict at bank 32
        ("ds_write_b64", "gfx950", 32),
        ("ds_read_b32", "gfx950", 32),
        ("ds_read_b64", "gfx942", 32),
        ("ds_read_b128", "gfx942", 32),
    ],
)
def test_number_of_banks(instruction: str, arch: str, banks: int) -> None:
    """Lane 0 at byte 0, lane 1 at ever higher banks: the first conflict is at the number of banks."""
    step = {"b32": 1, "b64": 2, "b96": 4, "b128": 4}[instruction.rsplit("_", 1)[1]]
    first = next(
        bank
        for bank in range(step, 129, step)
        if count(np.where(LANE == 1, bank * 4, 0), instruction, arch, LANE < 2).conflicts
    )
    assert first == banks


@pytest.mark.parametrize("arch", CDNA)
def test_contiguous_accesses_take_their_phases(arch: str) -> None:
    wide = 4 if arch == "gfx950" else 8
    expected = {
        "ds_read_b32": 2,  # an uncontended 4-byte load of a wave takes two cycles
        "ds_write_b32": 2,
        "ds_read_b64": 2 if arch == "gfx950" else 4,
        "ds_write_b64": 4,
        "ds_read_b128": wide,
        "ds_write_b128": 8,
    }
    for instruction, cycles in expected.items():
        size = int(instruction.rsplit("b", 1)[1]) // 8
        result = count(LANE * size, instruction, arch)
        assert (result.transactions, result.transactions_ideal, result.rule) == (cycles, cycles, "known"), instruction
    # Every 16 bytes: lanes 0-3 and 20-23 of a phase share no bank.
    assert count(LANE * 16, "ds_read_b96", arch).transactions == 8


@pytest.mark.parametrize("arch", CDNA)
def test_padding_rules(arch: str) -> None:
    """Rows of 32 dwords read down a column collide; one dword of padding (b32), or four (b128), removes it."""
    assert count(LANE * 128, "ds_read_b32", arch).transactions == 64
    assert count(LANE * 132, "ds_read_b32", arch).transactions == 2
    assert count(LANE * 128, "ds_write_b128", arch).transactions == 64
    assert count(LANE * 144, "ds_write_b128", arch).transactions == 8


def test_broadcast_is_free() -> None:
    for instruction, cycles in (("ds_read_b32", 2), ("ds_read_b64", 4), ("ds_read_b128", 8), ("ds_write_b64", 4)):
        assert count(LANE * 0, instruction, "gfx942").transactions == cycles


def test_masked_phases_take_nothing() -> None:
    result = count(LANE * 4, "ds_read_b32", "gfx942", LANE < 32)
    assert (result.transactions, result.transactions_ideal) == (1, 1)


@pytest.mark.parametrize("arch", CDNA)
@pytest.mark.parametrize(("instruction", "size"), [("ds_read_u16", 2), ("ds_read_u8", 1), ("ds_write_b16", 2)])
def test_sub_dword_accesses_are_counted_as_dwords_and_open(arch: str, instruction: str, size: int) -> None:
    result = count(LANE * size, instruction, arch)
    assert (result.transactions, result.rule) == (2, "open")
    conflicting = count(LANE * 128 + LANE % 2 * size, instruction, arch)
    assert conflicting.transactions == 64


def test_dword_aligned_vectors_are_open() -> None:
    """The compiler splits them into other instructions; counted by their dwords."""
    result = count(LANE * 8 + 4, "ds_read_b64", "gfx942")
    assert (result.transactions, result.rule) == (4, "open")
    # Dwords 31 and 32 against 0 and 1: they meet in bank 0.
    assert count(np.where(LANE == 0, 124, 0), "ds_read_b64", "gfx942", LANE < 2).conflicts == 1
    with pytest.raises(SimulationError, match="ds_read_b64 at byte 2"):
        count(LANE * 8 + 2, "ds_read_b64", "gfx942")


@pytest.mark.parametrize(
    ("access", "width", "named"),
    [
        ("store", 96, "ds_write_b96 on gfx942"),
        ("load", 256, "ds_read_b256 on gfx942"),
        ("ldmatrix", 128, "ldmatrix of 128 bits on gfx942"),
        ("cp_async", 32, "cp_async of 32 bits on gfx942"),
        ("cp_async_bypass", 128, "cp_async_bypass of 128 bits on gfx942"),
    ],
)
def test_unknown_instructions_are_named(access: str, width: int, named: str) -> None:
    with pytest.raises(UnknownMemoryRule) as caught:
        bank_conflicts(LANE * 32, access, width, "hip:gfx942")
    assert named in str(caught.value)
