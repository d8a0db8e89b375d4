"""The result of a case from messages, without processes."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tileprof.execute.results import CaseBuilder, Paths
from tileprof.workload.records import Case, KernelEntry, TargetEntry


@pytest.fixture
def builder() -> CaseBuilder:
    target = TargetEntry("laptop", "cpu", "cpu", ("auto",))
    case = Case("k@laptop", "0" * 16, KernelEntry("k"), target, {}, {}, {})
    return CaseBuilder(case, 0, Paths(Path("/home/ann/work")), "kernels/k")


def test_paths_lose_the_folder_and_nothing_else() -> None:
    paths = Paths(Path("/home/ann/work"), Path("/home/ann/work/deep"), Path("/"))
    text = 'File "/home/ann/work/deep/k.py", .file 1 "/home/ann/work" "k.py" /home/ann/workshop/x /home/ann/work'
    assert paths.clean(text) == 'File "k.py", .file 1 "." "k.py" /home/ann/workshop/x .'
    assert Paths().clean(f"{Path.home()}/secret/x") == "~/secret/x"
    assert Paths(Path("/")).clean("/usr/lib") == "/usr/lib"


def test_the_first_failure_counts_and_later_ones_are_notes(builder: CaseBuilder) -> None:
    builder.fail("incorrect", "first at /home/ann/work/k.py:3")
    builder.fail("crashed", "second")
    result = builder.build()
    assert (result.status, result.reason, result.notes) == ("incorrect", "first at k.py:3", ("crashed: second",))


def test_no_failure_is_ok_and_missing_things_are_absent(builder: CaseBuilder) -> None:
    result = builder.build()
    assert (result.status, result.metadata, result.bundle, result.timing, result.check) == (
        "ok",
        None,
        None,
        None,
        None,
    )
    assert result.metrics == ()


def test_metrics_that_were_asked_for_and_are_missing_are_named(builder: CaseBuilder) -> None:
    kernel = replace(builder.case.kernel, metrics=("dram.read_bytes", "time.ns", "l2.bytes"))
    builder.case = replace(builder.case, kernel=kernel)
    message = {"type": "timed", "samples_ns": [1.0], "method": "clock", "warmup": 0, "flushed": True}
    builder.take(message)
    assert builder.build().notes == ("asked for and not measured here: dram.read_bytes, l2.bytes",)


def test_a_simulation_that_takes_too_long_is_forgiven_only_there(builder: CaseBuilder) -> None:
    builder.take({"type": "stage", "stage": "compiling"})
    builder.fail("timeout", "too long")
    builder.forgive_simulation()
    assert builder.failed
    builder.status = None
    builder.take({"type": "stage", "stage": "simulating"})
    builder.fail("timeout", "too long")
    builder.forgive_simulation()
    assert not builder.failed
    assert builder.notes == ["not simulated: too long"]


def test_timing_becomes_the_median(builder: CaseBuilder) -> None:
    samples = [5.0, 1.0, 9.0, 3.0]
    message = {"type": "timed", "samples_ns": samples, "method": "clock", "warmup": 2, "flushed": False}
    builder.take(message)
    result = builder.build()
    assert result.timing is not None
    assert (result.timing.samples_ns, result.timing.warmup, result.timing.flush_l2) == (tuple(samples), 2, False)
    (metric,) = result.metrics
    assert (metric.metric, metric.value, metric.unit, metric.provenance.kind) == ("time.ns", 4.0, "ns", "measured")
    assert "median of 4 launches, warm cache, clock" in metric.provenance.detail


def test_suggestions_are_kept_without_what_they_were_proved_with(builder: CaseBuilder) -> None:
    kept = {"buffer": "A", "kind": "padding", "text": "pad A", "proof": "1: no", "extra_bytes": 64}
    kept |= {"conflicts_before": 9, "conflicts_after": 0}
    builder.take({"type": "suggested", "suggestions": [{**kept, "padding": 8, "tried": [], "accesses": []}]})
    assert [asdict(suggestion) for suggestion in builder.build().suggestions] == [{**kept, "sample": None}]


def test_a_wrong_launch_replaces_the_check_of_the_simulation(builder: CaseBuilder) -> None:
    builder.take({"type": "reference", "outputs": ["C"], "rtol": 0.1, "atol": 0.0})
    base = {"max_abs_error": 0.5, "max_rel_error": 0.25, "worst": "C[0] is 1, the reference 2"}
    builder.take({"type": "checked", "ok": True, "rtol": 0.1, "atol": 0.0, "scope": "simulated blocks", **base})
    builder.take({"type": "check", "ok": False, **base})
    result = builder.build()
    assert result.status == "incorrect"
    differs = "the launch differs from the reference by up to 0.5 (allowed 0 + 0.1 |reference|)"
    assert result.reason == f"{differs}: C[0] is 1, the reference 2"
    assert result.check is not None
    assert (result.check.scope, result.check.ok) == ("all", False)
