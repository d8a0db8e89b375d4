"""Results compared with a reference, and with one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang_min.tune.checking import Checker, Tolerance, compare

EXACT = Tolerance(0.0, 0.0, 0.0)
USUAL = Tolerance(1e-2, 1e-2, 0.01)


def test_differences_are_counted_and_the_largest_is_said() -> None:
    wanted = np.arange(1000, dtype=np.float32)
    found = wanted.copy()
    found[3] += 5.0
    assert compare([wanted], [wanted], EXACT).close
    difference = compare([found], [wanted], USUAL)
    assert (difference.largest, difference.share, difference.close) == (
        5.0,
        0.001,
        True,
    )  # one in a thousand is allowed
    assert not compare([found], [wanted], EXACT).close
    assert not compare([found[:999]], [wanted], USUAL).close


def test_nan_equals_nan_and_nothing_else() -> None:
    wanted = np.array([np.nan, 1.0, np.inf], np.float32)
    assert compare([wanted], [wanted], EXACT).close
    assert not compare([np.array([0.0, 1.0, np.inf], np.float32)], [wanted], USUAL).close
    assert not compare([np.array([np.nan, 1.0, -np.inf], np.float32)], [wanted], USUAL).close


def test_no_share_of_what_is_not_written_is_tolerated() -> None:
    """A row of two hundred that a configuration leaves out would be within the ratio."""
    wanted = np.ones((200, 8), np.float32)
    found = wanted.copy()
    found[-1] = np.nan
    difference = compare([found], [wanted], USUAL)
    assert (difference.share, difference.unwritten, difference.close) == (0.005, 8, False)
    checker = Checker(USUAL, wanted=[wanted])
    assert "; 8 are NaN in one alone" in str(checker.take(0, [found])[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "bool", "int32"])
def test_every_type_is_compared(dtype: str) -> None:
    wanted = np.array([0, 1, 1, 0] * 50).astype(dtype)
    assert compare([wanted], [wanted], EXACT).close
    assert compare([wanted[::-1].copy()], [1 - wanted.astype("int8")], EXACT).share == 1.0


def outputs(value: float) -> list[Any]:
    return [np.full((4, 4), value, np.float32)]


def test_the_majority_is_right_whoever_came_first() -> None:
    checker = Checker(USUAL)
    for number, value in enumerate([3.0, 1.0, 1.001, 2.0, 1.0]):
        assert checker.take(number, outputs(value)) == (None, None)
    wrong, tied = checker.outvoted()
    assert tied == []
    assert sorted(wrong) == [0, 3]
    assert "100.00% of the elements differ from those of the 3 configurations that agree" in wrong[0]


def test_no_majority_is_said() -> None:
    checker = Checker(USUAL)
    checker.take(0, outputs(1.0))
    assert checker.outvoted() == ({}, [])
    checker.take(1, outputs(2.0))
    assert checker.outvoted() == ({}, [[0], [1]])


def test_outputs_of_other_shapes_are_not_compared_with_one_another() -> None:
    checker = Checker(USUAL)
    for number in range(2):
        checker.take(number, [np.ones((4, 4 + number), np.float32)])
    checker.take(2, [*outputs(1.0), *outputs(1.0)])
    assert checker.outvoted() == ({}, [])


def test_a_reference_or_the_authors_own_check_decides() -> None:
    checker = Checker(USUAL, outputs(1.0))
    assert checker.take(0, outputs(1.0)) == (None, 0.0)
    wrong, error = checker.take(1, outputs(2.0))
    assert error == 1.0
    assert wrong is not None
    assert "the reference" in wrong

    def close(found: list[Any], wanted: list[Any]) -> None:
        assert abs(found[0] - wanted[0]).max() < 0.5, "too far off"

    checker = Checker(EXACT, outputs(1.0), close)
    assert checker.take(0, outputs(1.25)) == (None, None)
    wrong, _ = checker.take(1, outputs(2.0))
    assert wrong is not None
    assert "too far off" in wrong
