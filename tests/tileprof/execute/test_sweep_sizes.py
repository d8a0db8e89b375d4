"""Kernels with runtime dimensions as cases of a workload: compiled once, and everything else at the sizes of each case."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sweep_folder import Folder, Outcome, make_folder

import tilelang_min as tilelang
import tileprof.execute.sizes as sizes_module
from tileprof.execute.sizes import SizesProblem, check_memory, free_memory, parameters_of
from tileprof.store.baselines import BaselineStore, key_of
from tileprof.store.records import CaseResult

WORKLOAD = """\
version: 1
name: sizes
defaults: {timeout: 60s, timing: {warmup: 1, samples: 3}}
targets:
  cpu: {target: cpu, profiler: timer}
  a100: {target: "cuda:sm_80"}
  clocks: {target: cpu, profiler: cycles}
kernels:
  - name: rows
    source: kernels.py:noted
    shapes: [{N: 96}]
    sizes: [{m: [1, 7, 300]}]
    exclude: [{m: 1, target: clocks}]
    reference: kernels.py:double_rows
    inputs: {A: "kernels.py:ramp"}
  - {name: fixed, source: "kernels.py:product", shapes: [{M: 33, N: 64, K: 96}], targets: [a100]}
  - name: any
    source: kernels.py:product
    shapes: [{N: 64, K: 96}]
    sizes: [{M: 33}, {M: 128}]
    reference: kernels.py:multiplied
    targets: [cpu, a100]
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return make_folder(tmp_path_factory.mktemp("sizes")).run(WORKLOAD, "--executor", "local:2")


def figures(case: CaseResult, kind: str) -> dict[tuple[str, int | None, str | None, str | None], float]:
    """All figures of a kind, without those that are never the same."""
    return {
        (m.metric, m.operation, m.buffer, m.access): m.value
        for m in case.metrics
        if m.provenance.kind == kind and m.metric != "compile.seconds"
    }


def test_all_sizes_are_right_and_compiled_once(outcome: Outcome) -> None:
    assert outcome.status == 0, outcome.err
    run = outcome.run
    assert [case.id for case in run.cases if case.target_name == "cpu"] == [
        "rows[N=96,m=1]@cpu",
        "rows[N=96,m=7]@cpu",
        "rows[N=96,m=300]@cpu",
        "any[N=64,K=96,M=33]@cpu",
        "any[N=64,K=96,M=128]@cpu",
    ]
    for case in run.cases:
        assert case.status == ("not_run" if case.target_name == "a100" else "ok")
        assert case.kernel == "fixed" or (case.check is not None and case.check.ok)
    # by two lanes at once, the factory was called for each build, and for no size
    assert (outcome.directory.parent / "compiled.txt").read_text() == "96 64\n" * 5
    bundles = {(case.kernel, case.target_name): case.bundle for case in run.cases}
    assert {case.bundle for case in run.cases} == set(bundles.values())
    assert len(bundles) == 6
    assert len(list((outcome.directory / "kernels").iterdir())) == 6 + 2  # with clock reads of two kinds


def test_everything_is_that_of_the_sizes(outcome: Outcome) -> None:
    rows = [outcome.case(f"rows[N=96,m={m}]@a100") for m in (1, 7, 300)]
    for case, m in zip(rows, (1, 7, 300), strict=True):
        assert case.sizes == {"m": m}
        assert case.shape == {"N": 96}
        assert case.metadata is not None
        assert case.metadata["grid"] == [2, -(-m // 4), 1]
        simulated = figures(case, "simulated")
        assert simulated["global.bytes", None, None, None] == 2 * m * 96 * 4
        static = figures(case, "static")
        assert static["launch.blocks", None, None, None] == 2 * -(-m // 4)
        assert static["flop.float32", None, None, None] == m * 96
        assert static["bytes.min", None, None, None] == 2 * m * 96 * 4


def test_clocks_were_read_at_each_size(outcome: Outcome) -> None:
    for m in (7, 300):
        measured = figures(outcome.case(f"rows[N=96,m={m}]@clocks"), "measured")
        counts = {operation: value for (name, operation, *_), value in measured.items() if name == "cycles.count"}
        assert counts == {1: 2 * -(-m // 4)}


def test_figures_are_those_of_the_kernel_with_numbers(outcome: Outcome) -> None:
    fixed, sized = (outcome.case(f"{name}@a100") for name in ("fixed[M=33,N=64,K=96]", "any[N=64,K=96,M=33]"))
    ours, theirs = figures(sized, "simulated"), figures(fixed, "simulated")
    counted = {key for key in theirs if key[0] != "executed.instructions"}  # the index arithmetic is another
    assert counted
    work = {"flop.float16": 2 * 33 * 64 * 96, "bytes.min": 2 * (33 * 96 + 96 * 64) + 4 * 33 * 64, "launch.blocks": 4}
    for name, value in work.items():
        assert (
            figures(sized, "static")[name, None, None, None]
            == value
            == figures(fixed, "static")[name, None, None, None]
        )
    assert {key: ours[key] for key in counted} == {key: theirs[key] for key in counted}


def test_the_record_for_programs(outcome: Outcome) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    record = json.loads((outcome.directory / "result.json").read_text())
    from tileprof.report.result import result_json_schema

    jsonschema.validate(record, result_json_schema())
    found = {case["id"]: case["sizes"] for case in record["run"]["cases"]}
    assert found["any[N=64,K=96,M=128]@cpu"] == {"M": 128}
    assert found["fixed[M=33,N=64,K=96]@a100"] == {}
    assert "m=300" in (outcome.directory / "summary.md").read_text()
    assert "rows[N=96,m=300]@a100" in (outcome.directory / "metrics.csv").read_text()


def test_a_script_sees_the_same_figures(outcome: Outcome) -> None:
    case = outcome.case("any[N=64,K=96,M=33]@a100")
    kernel = tilelang.load(outcome.directory / str(case.bundle))
    arrays = np.ones((33, 96), np.float16), np.ones((96, 64), np.float16), np.zeros((33, 64), np.float32)
    report = tilelang.profile(kernel, *arrays, profiler="none")
    assert report.case.sizes == case.sizes
    for kind in ("static", "simulated"):
        assert figures(report.case, kind) == figures(case, kind)
    assert report.case.metadata == case.metadata
    assert report.case.suggestions == case.suggestions


MISTAKES = """\
version: 1
name: mistakes
defaults: {timeout: 60s, timing: {warmup: 1, samples: 3}}
targets: {cpu: {target: cpu}}
kernels:
  - {name: none, source: "kernels.py:imported", shapes: [{N: 8}]}
  - name: other
    source: kernels.py:imported
    shapes: [{N: 8}]
    sizes: [{n: 4}, {m: [4, 2e9]}]
  - name: floored
    source: kernels.py:floored
    sizes: [{m: [8, 128]}]
    reference: kernels.py:double
  - {name: constant, source: "kernels.py:opaque", shapes: [{N: 8}], sizes: [{m: 4}]}
  - {name: broken, source: "kernels.py:raising", args: {M: 3}, sizes: [{m: [4, 5]}]}
"""


def test_what_only_the_compiler_sees(folder: Folder) -> None:
    outcome = folder.run(MISTAKES, "--profiler", "none")
    assert outcome.status == 4
    reasons = {case.id.removesuffix("@cpu"): (case.status, case.reason) for case in outcome.run.cases}
    status, text = reasons["none[N=8]"]
    assert status == "compile_error"
    assert "m of noted_rows is known at launch alone (T.dynamic): say how large, sizes: [{m: [1, 128]}]" in text
    status, text = reasons["other[N=8,n=4]"]
    assert (status, text) == ("compile_error", "w.yaml:10:17: unknown runtime dimension of noted_rows 'n'; known: m")
    status, text = reasons["other[N=8,m=2000000000]"]
    assert status == "unsupported"
    assert text.startswith("w.yaml:10:21: parameter A of shape (2000000000, 8) has 16,000,000,000 elements")
    assert reasons["other[N=8,m=4]"][0] == "ok"
    status, text = reasons["constant[N=8,m=4]"]
    assert text == "w.yaml:15:81: unknown runtime dimension of scale 'm'; none is defined"
    assert reasons["floored[m=8]"] == (
        "incorrect",
        "no block is launched at m=8: the grid is 0 x 1 x 1, and nothing is written",
    )
    assert reasons["floored[m=128]"][0] == "ok"
    # a kernel that cannot be compiled is not tried again for its other sizes
    assert reasons["broken[m=4]"] == reasons["broken[m=5]"]
    assert "does not like you" in reasons["broken[m=5]"][1]


def test_resuming_and_other_runs_go_by_sizes(outcome: Outcome, tmp_path: Path) -> None:
    shutil.copytree(outcome.directory.parent, tmp_path / "again")
    folder = Folder(tmp_path / "again")
    place = folder.path / "run"
    with sqlite3.connect(place / "run.sqlite") as store:  # as if it had been killed before one size
        store.execute("PRAGMA foreign_keys = ON")
        store.execute("DELETE FROM cases WHERE id = 'rows[N=96,m=7]@cpu'")
        store.execute("DELETE FROM run WHERE key = 'finished'")
    more = WORKLOAD.replace("[1, 7, 300]", "[7, 300, 50]").replace("{m: 1, ", "{m: 50, ")
    (folder.path / "compiled.txt").unlink()
    resumed = folder.run(more, "--resume", "--target", "cpu", "--against", str(outcome.directory))
    assert resumed.status == 0, resumed.err
    assert "2 finished cases are not kept: no longer in the workload: rows[N=96,m=1]@" in resumed.err
    assert "[5/5]" in resumed.err
    assert "[3/5]" not in resumed.err
    assert (folder.path / "compiled.txt").read_text() == "96 64\n"
    cases = {
        case.sizes["m"]: case for case in resumed.run.cases if case.id.startswith("rows[") and case.target_name == "cpu"
    }
    assert sorted(cases) == [7, 50, 300]
    assert [cases[m].interleaved is not None for m in (7, 50, 300)] == [True, False, False]  # other sizes are no base
    assert all((place / str(case.bundle)).exists() for case in resumed.run.cases), "also those of cases that went"


def test_baselines_go_by_sizes_and_share_a_bundle(outcome: Outcome, tmp_path: Path) -> None:
    run = outcome.run
    cases = [case for case in run.cases if case.kernel in ("any", "rows") and case.target_name == "cpu"]
    assert len({key_of(case) for case in cases}) == len(cases) == 5
    store = BaselineStore(tmp_path)
    store.save(replace(run, cases=tuple(cases)), outcome.directory)
    assert len(list(tmp_path.glob("*/bundles/*"))) == 2
    assert set(store.bundles(run.name)) == {key_of(case) for case in cases}
    assert {baseline.figures["bytes.min"] for baseline in store.load(run.name) if "bytes.min" in baseline.figures} == {
        static["bytes.min", None, None, None] for static in (figures(case, "static") for case in cases)
    }


def test_dry_run_names_sizes(folder: Folder) -> None:
    listed = folder.run(WORKLOAD, "--dry-run")
    assert listed.out.splitlines()[2].startswith("rows[N=96,m=7]@cpu  compile, simulate, launch")
    assert not (folder.path / "compiled.txt").exists()


def test_tensors_that_do_not_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sweep_kernels as kernels

    monkeypatch.chdir(tmp_path)
    kernel = tilelang.compile(kernels.noted(96), "cpu")
    places = {"": "w.yaml:3:9", "m": "w.yaml:3:13"}
    parameters = parameters_of(kernel, {"m": 1000}, places)
    size = 1000 * 96 * 4
    check_memory(parameters, {}, places, free=3 * size)  # A, B and what the simulator writes to it
    text = r"w.yaml:3:9: too large .* least 1.15\sMB are needed.*\n.*B, 1000 x 96 float32: 768\skB with"
    with pytest.raises(SizesProblem, match=text) as told:
        check_memory(parameters, {}, places, free=3 * size - 1)
    assert told.value.status == "unsupported"
    check_memory(parameters, {"A": "zeros"}, places, free=2 * size)
    with pytest.raises(SizesProblem, match="too large"):
        check_memory(parameters, {"A": "zeros"}, places, free=2 * size, reference=True)
    monkeypatch.setattr(sizes_module, "free_memory", lambda: 1000)
    with pytest.raises(SizesProblem, match="too large"):
        check_memory(parameters, {}, places)

    memory, group = tmp_path / "meminfo", tmp_path / "group"
    assert free_memory(memory, group) is None
    memory.write_text("MemTotal:  100 kB\nMemAvailable:   50 kB\n")
    assert free_memory(memory, group) == 50 * 1024
    group.mkdir()
    for name, text in {
        "memory.max": "4000\n",
        "memory.current": "3000\n",
        "memory.stat": "inactive_file 500\n",
    }.items():
        (group / name).write_text(text)
    assert free_memory(memory, group) == 1500
    (group / "memory.max").write_text("max\n")
    assert free_memory(memory, group) == 50 * 1024
