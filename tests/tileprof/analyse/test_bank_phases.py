"""The lanes, words and banks of one access agree with what is counted for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilelang_min as tilelang
from tileprof.analyse.banks import BankWord, bank_phases


def test_phases_banks_and_words_of_a_broadcast_with_a_conflict() -> None:
    """Lanes 0 to 15 read word 0, lanes 16 to 31 word 32: one bank, two words."""
    addresses = [lane // 16 * 128 for lane in range(32)]
    (phase,) = bank_phases("cuda:sm_80", "load", 32, addresses, [True] * 32)
    assert phase.lanes == tuple(range(32))
    assert phase.passes == 2
    assert phase.banks[0] == (BankWord(0, tuple(range(16))), BankWord(32, tuple(range(16, 32))))
    assert not any(phase.banks[1:])


def test_a_vector_takes_a_word_of_each_of_its_banks() -> None:
    phases = bank_phases("hip:gfx942", "load", 128, [lane * 16 for lane in range(64)], [True] * 64)
    assert len(phases) == 8
    assert phases[0].lanes == (0, 1, 2, 3, 20, 21, 22, 23)
    assert [bank[0].lanes for bank in phases[0].banks] == [(lane,) for lane in phases[0].lanes for _ in range(4)]


def test_lanes_of_a_cp_async_do_not_merge_and_inactive_ones_are_left_out() -> None:
    active = [lane < 4 for lane in range(32)]
    (phase,) = bank_phases("cuda:sm_90a", "cp_async", 128, [0] * 32, active)
    assert phase.passes == 4
    assert [word.lanes for word in phase.banks[0]] == [(0,), (1,), (2,), (3,)]
    assert bank_phases("cuda:sm_90a", "load", 48, [0] * 32, active) == ()


@pytest.mark.parametrize(
    ("target", "access", "width"),
    [
        *(("hip:gfx942", "load", width) for width in (32, 64, 96, 128)),
        *(("hip:gfx950", access, width) for access in ("load", "store") for width in (32, 64, 128)),
        *(("cuda:sm_90a", "store", width) for width in (8, 16, 32, 64, 128)),
        *(("cuda:sm_90a", access, 128) for access in ("ldmatrix", "cp_async")),
        ("cuda:sm_90a", "load", 32),
    ],
)
@given(data=st.data())
def test_passes_add_up_to_the_transactions(target: str, access: str, width: int, data: st.DataObject) -> None:
    machine: Any = tilelang.targets.resolve(target)
    step = width // 8 if width != 96 else 4
    units = data.draw(st.lists(st.integers(0, 80), min_size=machine.warp_size, max_size=machine.warp_size))
    addresses = [unit * step for unit in units]
    counted: Any = tilelang.access.bank_conflicts(addresses, access, width, target)
    phases = bank_phases(target, access, width, addresses, [True] * machine.warp_size)
    assert sum(phase.passes for phase in phases) == counted.transactions
    assert max(phase.passes for phase in phases) == counted.ways
