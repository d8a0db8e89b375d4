"""Counting points at which conditions hold: against looking at every one, and where there are too many to look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_min.program import counting
from tilelang_min.program.counting import count_where


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
@settings(max_examples=80, deadline=None)
def test_as_many_as_are_found_one_by_one(extents: list[int], data: Any) -> None:
    tables = []
    for _ in range(data.draw(st.integers(0, 5))):
        shape = tuple(extent if data.draw(st.booleans()) else 1 for extent in extents)
        chance = np.random.default_rng(data.draw(st.integers(0, 2**31)))
        tables.append(chance.random(shape) < 0.7)
    if data.draw(st.booleans()):
        tables.append(np.asarray(data.draw(st.booleans())))
    holds = np.ones(extents, bool)
    for table in tables:
        holds = holds & table
    assert count_where(extents, tables) == int(holds.sum())


def test_billions_of_points_are_not_looked_at() -> None:
    """Rows and columns of ragged tiles of which only those on and below the diagonal are computed."""
    blocks, tile, length = 1000, 64, 999 * 64 + 40
    i, j, m, n = np.ogrid[:blocks, :blocks, :tile, :tile]
    tables = [j <= i, i * tile + m < length, j * tile + n < length]
    whole, ragged = 999, 40
    expected = (whole * (whole + 1) // 2 + 0) * tile * tile + whole * ragged * tile + ragged * ragged
    assert count_where([blocks, blocks, tile, tile], tables) == expected


def test_where_too_many_points_meet_the_widest_condition_holds_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_POINTS", 100)
    a, b, c = np.ogrid[:10, :10, :10]
    assert count_where([10, 10, 10], [a + b < 3, b + c < 3]) == 14  # b = 0, 1, 2: 3 * 3 + 2 * 2 + 1
    assert count_where([10, 10, 10], [a < 5, a + b + c < 3]) == 500
