"""``--profiler cycles`` from a workload file to the report, on this machine's processor; records from a launcher's message."""

from __future__ import annotations

from typing import Any

import pytest
from unpacked import data_of

from tileprof.analyse.timeline import timelines
from tileprof.cli.progress import outcome as told
from tileprof.collect.cycles import cycles_metrics, overhead_note, timeline_metrics

WORKLOAD = """\
version: 1
name: cycles
defaults: {timeout: 60s, timing: {warmup: 1, samples: 3, rounds: 1}}
targets:
  cpu: {target: cpu, profiler: cycles}
kernels:
  - {name: scale, source: "kernels.py:scale", shapes: [{N: 100000}], reference: "kernels.py:double"}
"""
ALONE = """\
kernels:
  - {{name: bundled, bundle: {bundle}}}
  - {{name: program, command: ["true"]}}
"""


def test_a_run_measures_operations_and_says_what_that_cost(folder: Any) -> None:
    outcome = folder.run(WORKLOAD)
    assert outcome.status == 0, outcome.err
    case = outcome.case("scale[N=100000]@cpu")
    assert case.status == "ok"
    found = {(m.metric, m.operation): m for m in case.metrics if m.metric.startswith("cycles.")}
    (nest,) = [operation["id"] for operation in case.operations if operation["kind"] == "parallel"]
    blocks = -(-100000 // 64)
    assert found["cycles.count", nest].value == blocks
    assert 0 < found["cycles.sum", nest].value == found["cycles.run", nest].value <= found["cycles.sum", None].value
    assert ("cycles.wait", nest) not in found  # it has no such phase, which is not the same as 0
    assert found["cycles.sum", nest].provenance.tool == "cycles"
    assert f"{blocks} blocks" in found["cycles.sum", nest].provenance.detail
    slowdown = found["cycles.slowdown", None]
    cost, note = f"{slowdown.value - 1:+.1%} with clock reads", "cycles: the build with clock reads took"
    if slowdown.flag:  # this machine has other work
        cost, note = "too noisy to say what clock reads cost", "cycles: too noisy to say"
    assert any(text.startswith(note) for text in case.notes)
    assert cost in outcome.err
    assert cost in told(case)
    spans = timelines(case)
    assert [(span.operation, span.group, span.iteration) for span in spans] == [(nest, 0, 0)]
    assert 0 == spans[0].start < spans[0].end
    assert case.timing is not None  # of the plain build
    page = data_of((outcome.directory / "index.html").read_text())
    assert "cycles of all warps, by clock reads" in str(page["flame"])  # a way to weigh the flame graph

    bundle = f"run/{case.bundle}"
    text = WORKLOAD[: WORKLOAD.index("kernels:")] + ALONE.format(bundle=bundle)
    again = folder.run(text, directory="again")
    assert again.status == 0, again.err
    bundled, program = again.run.cases
    assert "no cycles: what is not compiled here cannot be built with clock reads" in program.notes
    assert any("no cycles: a bundle is already compiled" in note for note in bundled.notes)
    assert not [m for m in bundled.metrics if m.metric.startswith("cycles.")]


def message(**changes: Any) -> dict[str, Any]:
    operation = {
        "operation": 3,
        "label": "T.copy",
        "kind": "copy",
        "run": None,
        "issue": 40,
        "wait": 60,
        "count": 8,
        "workers": 4,
    }
    cycles = {
        "operations": [operation], "worker": "warp", "workers": 400, "elapsed": 1000, "longest": 30,
        "blocks": 100, "recorded": 100, "stride": 1,
    }  # fmt: skip
    events = [
        {"operation": 3, "phase": phase, "worker": worker, "begin": begin, "end": begin + 5}
        for worker in range(8)
        for phase, begin in (("wait", 20 + worker), ("issue", worker))
    ]
    return {
        "events": events,
        "plain_ns": [100.0, 100.0, 90.0],
        "clocked_ns": [104.0, 105.0, 110.0],
        "cycles": {**cycles, **changes},
    }


def test_records_of_a_message() -> None:
    rows = {(row.metric, row.operation): row for row in cycles_metrics(message())}
    assert {key: row.value for key, row in rows.items()} == {
        ("cycles.sum", None): 1000, ("cycles.longest", None): 30, ("cycles.slowdown", None): pytest.approx(1.05),
        ("cycles.sum", 3): 100, ("cycles.issue", 3): 40, ("cycles.wait", 3): 60, ("cycles.count", 3): 8,
    }  # fmt: skip
    assert rows["cycles.slowdown", None].provenance.kind == "derived"
    assert rows["cycles.sum", 3].provenance.detail == "sum over 400 warps of one launch"
    assert "+5.0%" in overhead_note(message())


def test_a_sample_of_blocks_is_called_one() -> None:
    rows = cycles_metrics(message(recorded=50, stride=2))
    assert "scaled up from 50 of 100 blocks" in rows[0].provenance.detail


def test_events_become_the_spans_of_warp_groups() -> None:
    rows = timeline_metrics(message())
    assert [(row.metric, row.access, row.launch, row.value) for row in rows if row.metric == "cycles.begin"] == [
        ("cycles.begin", "group 0 issue", 0, 0), ("cycles.begin", "group 1 issue", 0, 4),
        ("cycles.begin", "group 0 wait", 0, 20), ("cycles.begin", "group 1 wait", 0, 24),
    ]  # fmt: skip
    few = message() | {"events": [event for event in message()["events"] if event["worker"] < 4]}
    assert {row.access for row in timeline_metrics(few)} == {
        f"warp {number} {phase}" for number in range(4) for phase in ("issue", "wait")
    }
