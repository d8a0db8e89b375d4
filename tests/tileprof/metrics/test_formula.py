from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tileprof.metrics import UnknownMetric
from tileprof.metrics.formula import Formula, derive, needed
from tileprof.store.records import Provenance

TOOL = Provenance("measured", "rocprofv3", "1.0", "counters")


def test_a_formula_is_evaluated_and_knows_its_inputs() -> None:
    formula = Formula("l2.hit_rate", "TCC_HIT_sum / (TCC_HIT_sum + TCC_MISS_sum)")
    assert formula.names == ("TCC_HIT_sum", "TCC_MISS_sum")
    assert formula.evaluate({"TCC_HIT_sum": 3.0, "TCC_MISS_sum": 1.0}) == 0.75


def test_dotted_names_are_single_counters() -> None:
    formula = Formula("busy.l2", "lts__throughput.avg.pct_of_peak_sustained_elapsed / 100")
    assert formula.counters == ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)
    assert formula.evaluate({"lts__throughput.avg.pct_of_peak_sustained_elapsed": 25.0}) == 0.25


def test_facts_are_no_counters() -> None:
    assert Formula("cycles.elapsed", "GRBM_GUI_ACTIVE / xcc").counters == ("GRBM_GUI_ACTIVE",)


@pytest.mark.parametrize(
    "values",
    [{}, {"A": 1.0}, {"A": 1.0, "B": math.nan}, {"A": 1.0, "B": math.inf}, {"A": 1.0, "B": 0.0}],
)
def test_what_is_missing_stays_missing_and_nothing_is_divided_by_zero(values: dict[str, float]) -> None:
    assert Formula("l2.hit_rate", "A / B").evaluate(values) is None


@pytest.mark.parametrize("text", ["A ** B", "f(A)", "A if B else C", "'x'", "A[0]", "True + 1", "A and B"])
def test_only_arithmetic_may_stand_in_a_formula(text: str) -> None:
    with pytest.raises(ValueError):
        Formula("l2.hit_rate", text)


def test_a_formula_for_no_metric_is_refused() -> None:
    with pytest.raises(UnknownMetric, match=r"l2\.hit_rate"):
        Formula("l2.hitrate", "A")


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_evaluation_is_python_arithmetic(a: float, b: float, c: float) -> None:
    formula = Formula("l2.bytes", "2 * (A - B) / C + -A")
    assert formula.evaluate({"A": a, "B": b, "C": c}) == 2 * (a - b) / c + -a


def test_derive_takes_the_first_formula_that_has_its_inputs() -> None:
    formulas = (
        Formula("dram.read_bytes", "NEW", ("sm_120",)),
        Formula("dram.read_bytes", "OLD"),
        Formula("l2.bytes", "32 * SECTORS", note="a sector is 32 bytes", flag="upper bound"),
    )
    rows = {row.metric: row for row in derive(formulas, {"NEW": 1.0, "OLD": 2.0, "SECTORS": 3.0}, "sm_120", TOOL, 7)}
    assert rows["dram.read_bytes"].value == 1.0
    assert rows["dram.read_bytes"].provenance.kind == "measured", "one counter as it is: a measurement"
    assert rows["l2.bytes"].value == 96.0
    assert (rows["l2.bytes"].flag, rows["l2.bytes"].launch) == ("upper bound", 7)
    assert rows["l2.bytes"].provenance == Provenance(
        "derived", "rocprofv3", "1.0", "counters; 32 * SECTORS (a sector is 32 bytes)"
    )
    (row,) = derive(formulas, {"OLD": 2.0}, "sm_120", TOOL)
    assert row.value == 2.0
    assert derive(formulas[:1], {"NEW": 1.0}, "", TOOL) == [], "of an unknown architecture only what holds for all"


def test_counters_that_are_needed() -> None:
    formulas = (Formula("l2.bytes", "A + B", ("gfx942",)), Formula("l2.hit_rate", "A / xcc"))
    assert needed(formulas, ["l2.bytes", "l2.hit_rate"], "gfx942") == (("A", "B"), ())
    assert needed(formulas, ["l2.bytes"], "gfx90a") == ((), ("l2.bytes",))
