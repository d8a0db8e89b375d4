"""Limits and regressions: what is judged, what is refused, and what that makes of the exit status."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run

from tileprof.analyse.verdicts import Baselines, Policy, Verdict, exit_status, verdicts
from tileprof.errors import StoreError
from tileprof.report.check_text import headline
from tileprof.store.baselines import BaselineStore, baselines_of, case_key, figures_of, key_of
from tileprof.store.records import CaseResult, Interleaved, Metric, Provenance, Run

STATIC = Provenance("static", "tilelang_min", "0.1.0")
NCU = Provenance("measured", "ncu", "2025.3.1")
MACHINE = {
    "cpu": "A",
    "cpu_level": "x86-64-v3",
    "cores": 8,
    "gpus": [{"vendor": "nvidia", "name": "NVIDIA A100", "arch": "8.0", "driver": "1"}],
}


def case(registers: float = 96, conflicts: float = 1000, **changes: Any) -> CaseResult:
    metrics = (
        Metric("registers.per_thread", registers, "registers", STATIC),
        Metric("spill.store_bytes", 0, "bytes", STATIC),
        Metric("code.bytes", 4096 + registers, "bytes", STATIC),
        Metric("instructions.fma", registers * 2, "instructions", STATIC),
        Metric("shared.conflicts", conflicts, "transactions", NCU),
    )
    return make_case("matmul_tiled", "float16", "sm80", **{"metrics": metrics, "hash": "0" * 16, **changes})


def run(*cases: CaseResult, **changes: Any) -> Run:
    return make_run(**{"cases": cases, "machine": MACHINE, **changes})


def judged(head: Run, base: Run | None = None, policy: Policy | None = None) -> dict[str, Verdict]:
    known = None if base is None else Baselines.of(b for c in base.cases for b in baselines_of(c, base))
    return {verdict.metric: verdict for verdict in verdicts(head, known, policy or Policy())}


def test_limits_take_the_measured_figure_first() -> None:
    found = judged(run(case(checks={"shared.conflicts": {"max": 999}, "registers.per_thread": {"min": 10, "max": 96}})))
    assert (found["shared.conflicts"].outcome, found["shared.conflicts"].head) == ("fail", 1000)
    assert found["registers.per_thread"].outcome == "pass"


def test_a_limit_without_a_figure_is_open_not_passed() -> None:
    found = verdicts(run(case(checks={"l2.hit_rate": {"min": 0.5}})))
    assert [v.outcome for v in found if v.metric == "l2.hit_rate"] == ["open"]
    assert exit_status(found) == 0
    assert exit_status(found, strict=True) == 3


def test_exact_figures_must_not_get_worse() -> None:
    worse, better = judged(run(case(registers=97)), run(case())), judged(run(case(registers=95)), run(case()))
    assert worse["registers.per_thread"].outcome == "fail"
    assert worse["registers.per_thread"].message == "96 -> 97 (+1.0 %)"
    assert better["registers.per_thread"].outcome == "better"
    assert worse["instructions.fma"].outcome == "changed"  # neither more nor less is better
    assert worse["code.bytes"].outcome == "changed"  # said, and no fault
    assert worse["spill.store_bytes"].outcome == "pass"


def test_a_regression_that_the_workload_allows() -> None:
    allowed = case(registers=97, checks={"registers.per_thread": {"max_regression": 0.05}})
    assert judged(run(allowed), run(case()))["registers.per_thread"].outcome == "pass"


@pytest.mark.parametrize(("conflicts", "outcome"), [(1019, "pass"), (1021, "fail"), (985, "pass"), (900, "better")])
def test_counters_have_a_tolerance(conflicts: float, outcome: str) -> None:
    assert judged(run(case(conflicts=conflicts)), run(case()))["measured:shared.conflicts"].outcome == outcome


def test_a_figure_that_appears_from_zero_is_a_regression() -> None:
    assert judged(run(case()), run(case(conflicts=0)))["measured:shared.conflicts"].outcome == "fail"


def test_other_machines_are_refused_for_what_they_decide() -> None:
    other = {**MACHINE, "gpus": [{"vendor": "nvidia", "name": "NVIDIA H200", "arch": "9.0", "driver": "1"}]}
    found = judged(run(case(conflicts=5000, registers=97)), run(case(), machine=other))
    assert "measured:shared.conflicts" not in found
    assert "refused: the baseline is of NVIDIA H200" in found["baseline"].message
    assert found["registers.per_thread"].outcome == "fail"  # no machine decides it
    asked = judged(run(case(conflicts=5000)), run(case(), machine=other), Policy(other_machines=True))
    assert asked["measured:shared.conflicts"].outcome == "fail"
    assert "NVIDIA H200" in asked["measured:shared.conflicts"].message


def test_another_toolchain_is_compared_only_when_asked() -> None:
    base, head = run(case()), run(case(registers=97), version="0.2.0")
    assert "another toolchain (tileprof 0.1.0 -> 0.2.0)" in judged(head, base)["baseline"].message
    assert judged(head, base, Policy(across_toolchains=True))["registers.per_thread"].outcome == "fail"


def interleaved(factor: float) -> Interleaved:
    base = tuple((100.0, 101.0, 99.0) for _ in range(5))
    return Interleaved("the base", "1" * 16, tuple(tuple(s * factor for s in one) for one in base), base)


@pytest.mark.parametrize(("factor", "outcome", "status"), [(1.0, "pass", 0), (1.05, "fail", 1), (0.9, "better", 0)])
def test_times_are_judged_from_rounds_in_turns(factor: float, outcome: str, status: int) -> None:
    found = verdicts(run(case(interleaved=interleaved(factor))))
    assert [v.outcome for v in found if v.metric == "time.ns"] == [outcome]
    assert exit_status(found) == status


def test_a_workload_may_allow_more_time_but_not_less_than_the_floor() -> None:
    for allowed, outcome in ((0.10, "pass"), (0.01, "fail")):
        checked = case(interleaved=interleaved(1.05), checks={"time.ns": {"max_regression": allowed}})
        assert judged(run(checked))["time.ns"].outcome == outcome


def test_stored_times_are_never_compared() -> None:
    slow = case(timing=dataclasses.replace(case().timing, samples_ns=(1e9,)))  # type: ignore[type-var]
    assert "time.ns" not in judged(run(slow), run(case()))
    asked = judged(run(case(checks={"time.ns": {"max_regression": 0.05}})), run(case()))
    assert asked["time.ns"].outcome == "open"
    assert "--against" in asked["time.ns"].message


def test_exit_statuses_in_their_order() -> None:
    noisy = Interleaved("b", "", ((1.1,), (1.1,), (1.1,), (1.1,), (0.9,)), ((1.0,),) * 5)
    assert exit_status(verdicts(run(case(interleaved=noisy)))) == 3
    failed = case(status="crashed", reason="signal 11")
    assert exit_status(verdicts(run(failed, case(checks={"registers.per_thread": {"max": 1}})))) == 4


def test_the_key_of_a_case_ignores_its_source_and_the_order_of_its_arguments() -> None:
    assert key_of(case(hash="a" * 16)) == key_of(case())
    assert case_key("k", {"a": 1, "b": 2}, {}, {}, "cpu") == case_key("k", {"b": 2, "a": 1}, {}, {}, "cpu")
    assert case_key("k", {"a": 1}, {}, {}, "cpu") != case_key("k", {}, {"a": 1}, {}, "cpu")


def test_baselines_survive_the_disk(tmp_path: Path) -> None:
    bundle = tmp_path / "run" / "kernels" / "x"
    bundle.mkdir(parents=True)
    (bundle / "kernel.json").write_text("{}")
    one, store = run(case(bundle="kernels/x")), BaselineStore(tmp_path / "base")
    assert len(store.save(one, tmp_path / "run")) == 2
    kept = list(store.load(one.name))
    assert {name: value for b in kept for name, value in b.figures.items()} == {
        name: value for name, (value, _) in figures_of(one.cases[0]).items()
    }
    assert list(store.bundles(one.name)) == [key_of(one.cases[0])]
    store.save(one, tmp_path / "run")  # again: replaced, not doubled
    assert len(list(store.load(one.name))) == 2


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": 1}'])
def test_damaged_baselines_are_errors(tmp_path: Path, damage: str) -> None:
    store = BaselineStore(tmp_path)
    (path,) = [p for p in store.save(run(case()), tmp_path) if "any" in p.parts]
    path.write_text(damage)
    with pytest.raises(StoreError, match="is no baseline"):
        list(store.load("quickstart"))


def test_a_baseline_of_a_later_version_is_refused(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    path = store.save(run(case()), tmp_path)[0]
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="version 99"):
        list(store.load("quickstart"))


def test_names_make_no_paths(tmp_path: Path) -> None:
    hostile = run(case(), name="../../etc/\u202epasswd\n" + "x" * 10_000)
    (path, *_) = BaselineStore(tmp_path).save(hostile, tmp_path)
    assert tmp_path in path.resolve().parents


def test_nothing_compared_is_said() -> None:
    """Cases that ended well are no comparison: without limits and baseline there is nothing that could fail."""
    alone = headline(verdicts(run(case())))
    assert alone == "nothing to compare: the workload has no checks, and there is no baseline; 1 case ended well"
    limited = headline(verdicts(run(case(checks={"registers.per_thread": {"max": 999}}))))
    assert limited == "1 as before or within limits; 1 case ended well"
