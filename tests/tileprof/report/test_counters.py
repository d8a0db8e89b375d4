"""The counters section: what profilers counted, side by side with what compiler and simulator say of the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_factory import make_case, make_run
from unpacked import unpacked

from tileprof.metrics import lookup
from tileprof.report.cells import ProvenanceTable
from tileprof.report.counters_view import MOST_CASES, MOST_ROWS, CounterTarget, counter_targets
from tileprof.report.html import render
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Metric, Provenance, Run

H200 = Path(__file__).parents[3] / "reports" / "h200-quickstart" / "run.sqlite"
PROFILER = Provenance("measured", "rocprofv3", "1.0")
DERIVED = Provenance("derived", "rocprof-compute", "2.0")
STATIC = Provenance("static", "tilelang_min", "")


def row(metric: str, value: float, source: Provenance = PROFILER, **more: object) -> Metric:
    return Metric(metric, value, lookup(metric).unit, source, **more)  # type: ignore[arg-type]


def case(id: str, *metrics: Metric, target: str = "hip:gfx90a") -> CaseResult:
    return CaseResult(id, "h", id, "gpu", target, {}, {}, {}, "ok", metrics=metrics)


def targets(*cases: CaseResult) -> list[CounterTarget]:
    run = make_run(cases=cases)
    return counter_targets(run, {one.id: one.id for one in cases}, ProvenanceTable())


def cells(target: CounterTarget, metric: str) -> list[str]:
    return next([cell.text.replace("\xa0", " ") for cell in row.cells] for row in target.rows if row.metric == metric)


@pytest.fixture(scope="module")
def recorded() -> Run:
    return read_run(H200)


def test_what_an_h200_counted(recorded: Run) -> None:
    labels = {one.id: one.kernel for one in recorded.cases}
    (target,) = counter_targets(recorded, labels, ProvenanceTable())
    assert len(target.columns) == len(recorded.cases) == 12
    assert cells(target, "shared.transactions")[2:4] == ["70,254,592", "70,254,592"]
    assert cells(target, "occupancy.theoretical")[0] == "100 %"
    assert cells(target, "shared.requests")[:2] == ["—", "—"]  # no shared memory: nothing was counted, which is not 0
    assert (sum(c.count for c in target.compared), sum(c.agree for c in target.compared)) == (180, 180)
    (kernel, *operations) = target.compared[2].groups
    assert kernel.title == ""
    assert {one.metric for one in kernel.rows} >= {"registers.per_thread", "launch.blocks"}
    assert all(one.place and one.title for one in operations)
    assert {one.difference for group in target.compared[2].groups for one in group.rows} == {"0"}


def test_rare_reasons_to_wait_are_left_to_the_flame_graph(recorded: Run) -> None:
    (target,) = counter_targets(recorded, {one.id: one.kernel for one in recorded.cases}, ProvenanceTable())
    names = {one.metric for one in target.rows}
    assert {"stall.short_scoreboard", "stall.long_scoreboard", "stall.samples"} <= names
    assert not {"stall.membar", "stall.sleeping", "stall.tex_throttle"} & names


def test_runs_without_a_profiler_have_no_such_section() -> None:
    run = make_run(cases=(make_case("matmul_tiled", "float32", "sm80"),))
    assert counter_targets(run, {one.id: one.id for one in run.cases}, ProvenanceTable()) == []
    page = unpacked(render(run))
    assert 'id="counters"' not in page
    assert "#counters" not in page


def test_values_that_a_profiler_calculated_are_shown_beside_those_it_counted() -> None:
    (target,) = targets(case("k", row("busy.vector", 0.0379, DERIVED), row("launch.blocks", 4096)))
    assert cells(target, "busy.vector") == ["3.79 %"]
    assert cells(target, "launch.blocks") == ["4,096"]
    assert [one.cells[0].kind for one in target.rows] == ["derived", "measured"]


def test_a_counted_value_goes_before_a_calculated_one() -> None:
    (target,) = targets(case("k", row("l2.bytes", 10, DERIVED), row("l2.bytes", 12)))
    assert cells(target, "l2.bytes") == ["12"]


def test_doubtful_values_carry_their_flag() -> None:
    (target,) = targets(case("k", row("clock.hz", 2.55e9, flag="implausible clock")))
    (cell,) = target.rows[0].cells
    assert (cell.mark, cell.exact) == ("flagged", "flagged: implausible clock")


def test_a_disagreement_is_open_with_its_difference() -> None:
    one = case("k", row("registers.vgpr", 64, STATIC), row("registers.vgpr", 96))
    (target,) = targets(one)
    (compared,) = target.compared
    (line,) = compared.groups[0].rows
    assert (compared.disagree, line.verdict, line.difference.replace("\xa0", " ")) == (1, "disagree", "+32 (50 %)")
    page = unpacked(render(make_run(cases=(one,))))
    assert '<details class="compared" open>' in page
    assert "1 disagree" in page


def test_long_runs_show_the_slowest_and_say_what_is_missing() -> None:
    cases = [case(f"k{i}", row("time.profiled_ns", 1000.0 + i)) for i in range(MOST_CASES + 5)]
    (target,) = targets(*cases)
    assert [id for _, id in target.columns] == [f"k{i}" for i in range(5, MOST_CASES + 5)]
    assert target.hidden == 5
    assert "5 more cases are in metrics.csv" in render(make_run(cases=tuple(cases)))


def test_raw_counters_by_the_thousand_are_cut() -> None:
    raw = [Metric(f"SQ_COUNTER_{i:04}", i, "", PROFILER) for i in range(MOST_ROWS + 100)]
    (target,) = targets(case("k", *raw))
    assert (len(target.rows), target.dropped) == (MOST_ROWS, 100)


def test_units_are_not_said_twice() -> None:
    (target,) = targets(
        case("k", row("l2.bytes", 1), row("launch.threads_per_block", 64), row("time.profiled_ns", 1e3))
    )
    assert [(one.metric, one.unit) for one in target.rows] == [
        ("l2.bytes", ""),
        ("launch.threads_per_block", "threads"),
        ("time.profiled_ns", ""),
    ]
    assert cells(target, "time.profiled_ns") == ["1 µs"]


def test_names_that_look_like_markup_stay_text() -> None:
    page = unpacked(render(make_run(cases=(case("k", Metric("<b>x</b>", 1, "<i>u</i>", PROFILER)),))))
    assert "<b>x" not in page
    assert "<i>u" not in page
    assert "&lt;b&gt;x" in page
