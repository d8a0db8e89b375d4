"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from tileprof.report import numbers

NB = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1_048_576, "1,048,576"), (1536.5, "1,536.5"), (-12, "−12"), (None, "—"),
     (math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "−∞")],
)  # fmt: skip
def test_counts(value: float | None, text: str) -> None:
    assert numbers.count(value) == text


@pytest.mark.parametrize(("value", "text"), [(229_376, "+229,376"), (0, "0"), (-5, "−5"), (None, "—")])
def test_differences_have_a_sign(value: float | None, text: str) -> None:
    assert numbers.difference(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.512e11, f"151{NB}GFLOP/s"), (999.6e9, f"1.00{NB}TFLOP/s"), (12.345e12, f"12.3{NB}TFLOP/s"), (7, f"7{NB}FLOP/s"),
     (0.25, f"0.250{NB}FLOP/s"), (0, f"0{NB}FLOP/s"), (None, "—")],
)  # fmt: skip
def test_si_prefixes(value: float | None, text: str) -> None:
    assert numbers.si(value, "FLOP/s") == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(21.31e6, f"21.31{NB}ms"), (999_960.0, f"1.000{NB}ms"), (41_300, f"41.30{NB}µs"), (812, f"812{NB}ns"),
     (1.9e9, f"1.900{NB}s"), (0, f"0{NB}ns"), (None, "—")],
)  # fmt: skip
def test_durations(nanoseconds: float | None, text: str) -> None:
    assert numbers.duration(nanoseconds) == text


def test_the_rest() -> None:
    assert numbers.percent(0.1234) == f"12.3{NB}%"
    assert numbers.percent(1.5) == f"150{NB}%"
    assert numbers.percent(None) == "—"
    assert numbers.ratio(8.0) == "8×"
    assert numbers.ratio(5.294) == "5.29×"
    assert numbers.intensity(170.6666) == "170.7"
    assert numbers.intensity(1 / 6) == "0.1667"
    assert numbers.byte_count(34_816) == f"34,816{NB}B"
    assert numbers.seconds(0.142) == f"142{NB}ms"
    assert numbers.byte_count(None) == numbers.seconds(None) == numbers.ABSENT


@pytest.mark.parametrize("value", [1e-12, 1e-300, 3.7e-5, 9.9996, 1e15, 1e300])
def test_no_size_breaks_the_format(value: float) -> None:
    for text in (numbers.si(value), numbers.duration(value), numbers.intensity(value), numbers.percent(value)):
        assert text
        assert float(text.split(NB)[0].replace(",", "")) > 0
