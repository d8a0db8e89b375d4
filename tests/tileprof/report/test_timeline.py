"""The timeline of a block: what clocks say is what the page's data hold, and stretches without a record are cut out."""

from __future__ import annotations

import dataclasses
from typing import Any

from run_factory import make_case, make_run
from timeline_factory import COPY, GEMM, clocked, event, ring, run_of
from unpacked import data_of, unpacked

from tileprof.analyse.timeline import timelines
from tileprof.report.html import render
from tileprof.report.timeline_view import MOST_SPANS, gaps, timeline_figures
from tileprof.store.records import CaseResult, Metric, Provenance


def figures_of(case: CaseResult) -> Any:
    return timeline_figures(run_of(case), {case.id: "one"})


def test_spans_are_the_events_of_the_first_warp_of_each_group() -> None:
    events = ring()
    spans = timelines(clocked(events))
    phases = {(s.operation, s.phase, s.group, s.start, s.end) for s in spans}
    assert phases == {(e["operation"], e["phase"], e["worker"] // 4, e["begin"], e["end"]) for e in events}
    assert [s.iteration for s in spans if (s.operation, s.phase, s.group) == (GEMM, "run", 2)] == list(range(8))
    assert {s.who for s in spans} == {"warp group 0", "warp group 1", "warp group 2"}


def test_few_warps_and_blocks_of_a_cpu_are_called_what_they_are() -> None:
    assert {s.who for s in timelines(clocked([event(COPY, "run", 1, 0, 9)]))} == {"warp 1"}
    assert {s.who for s in timelines(clocked([event(COPY, "run", 0, 0, 9)], "block"))} == {"block 0"}


def test_stores_without_phases_are_still_read() -> None:
    clock = Provenance("measured", "cycles", "0.1.0")
    stamps = [(COPY, 0, 0, 5), (GEMM, 0, 5, 9)]
    rows = [
        Metric(f"cycles.{end}", value, "cycles", clock, operation, access=f"group {group}", launch=0)
        for operation, group, begin, stop in stamps
        for end, value in (("begin", begin), ("end", stop))
    ]
    case = dataclasses.replace(make_case("matmul_tiled", "float16", "sm80"), metrics=tuple(rows))
    assert [(s.phase, s.who, s.start, s.end) for s in timelines(case)] == [
        ("", "warp group 0", 0, 5), ("", "warp group 0", 5, 9),
    ]  # fmt: skip
    assert figures_of(case)[0].rows[0].phases == ("5", "—", "—")


def test_the_page_holds_every_span_from_the_first_on() -> None:
    (figure,) = data_of(render(run_of(clocked(ring()))))["timelines"]
    assert figure["who"] == ["warp group 0", "warp group 1", "warp group 2"]
    assert [kind for _, kind, _ in figure["operations"]] == ["copy", "gemm", "copy"]
    assert len(figure["spans"]) == 8 * (2 + 2 + 2) + 2
    assert [0, 0, 2, 0, 0, 900] in figure["spans"]
    assert figure["gaps"] == [[8150, 70_000 - 8150]]


def test_only_long_stretches_without_a_record_are_cut() -> None:
    close = timelines(clocked([event(COPY, "run", 0, 0, 100), event(GEMM, "run", 0, 150, 100)]))
    assert gaps(close) == []
    far = timelines(clocked([event(COPY, "run", 0, 0, 100), event(GEMM, "run", 0, 1500, 100)]))
    assert gaps(far) == [(100, 1400)]


def test_the_table_sums_up_by_worker_and_operation() -> None:
    rows = figures_of(clocked(ring()))[0].rows
    assert [(row.who, row.executions, row.phases, row.mean) for row in rows] == [
        ("warp group 0", "8", ("—", "240", "7,200"), "930"),
        ("warp group 1", "8", ("6,800", "—", "800"), "950"),
        ("warp group 1", "1", ("2,500", "—", "—"), "2,500"),
        ("warp group 2", "8", ("6,800", "—", "800"), "950"),
        ("warp group 2", "1", ("2,500", "—", "—"), "2,500"),
    ]
    page = unpacked(render(run_of(clocked(ring()))))
    assert "Cycles by operation as a table" in page
    assert 'id="timeline"' not in render(make_run())


def test_of_too_many_the_earliest_of_all_workers_are_drawn() -> None:
    events = [event(COPY, "run", worker, 10 * k, 9) for worker in range(4) for k in range(MOST_SPANS)]
    (figure,) = figures_of(clocked(events))
    assert len(figure.data["spans"]) == MOST_SPANS
    assert figure.hidden == 3 * MOST_SPANS
    assert figure.data["who"] == ["warp 0", "warp 1", "warp 2", "warp 3"]


def test_clocks_that_ran_backwards_are_no_spans() -> None:
    assert timelines(clocked([event(COPY, "run", 0, 10, -5)])) == []
    assert figures_of(clocked([event(COPY, "run", 0, 10, -5)])) == []
