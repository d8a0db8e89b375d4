"""Files for other programs: valid by their owners' schemas, whatever the run holds."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import jsonschema
import pytest
from run_factory import make_case, make_run

from tileprof.analyse.diagnosis import diagnose
from tileprof.analyse.flame import flame_trees
from tileprof.report import folded, sarif, speedscope, trace
from tileprof.store.reader import read_run
from tileprof.store.records import Metric, Provenance, Run

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "tests/data/schemas"
RECORDED = ROOT / "reports/h200-quickstart/run.sqlite"
HOSTILE = '</script>";\n&\u202e\x00' + "y" * 10_000


def hostile() -> Run:
    case = make_case("matmul_tiled", "float16", "sm80", id=HOSTILE, kernel=HOSTILE, target_name=HOSTILE)
    where = {"file": HOSTILE, "line": 3, "column": 0, "text": HOSTILE}
    operations = tuple({**o, "label": HOSTILE, "location": where} for o in case.operations)
    odd = [dataclasses.replace(case.metrics[0], value=value) for value in (math.nan, math.inf, -1.0)]
    return make_run(
        name=HOSTILE, cases=(dataclasses.replace(case, operations=operations, metrics=(*case.metrics, *odd)),)
    )


RUNS = {
    "quickstart": make_run(),
    "recorded": read_run(RECORDED),
    "empty": make_run(cases=(), ceilings=()),
    "hostile": hostile(),
}


def schema(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((SCHEMAS / name).read_text())
    return found


@pytest.mark.parametrize("name", RUNS)
def test_sarif_is_valid(name: str) -> None:
    record = json.loads(sarif.render(RUNS[name], diagnose(RUNS[name])))
    validator = jsonschema.Draft4Validator(schema("sarif-2.1.0-rtm.4.json"))
    assert [error.message for error in validator.iter_errors(record)] == []


def test_sarif_names_line_and_rule_once() -> None:
    run = RUNS["recorded"]
    (one,) = json.loads(sarif.render(run, diagnose(run)))["runs"]
    assert one["results"][0]["ruleId"] == "matrix-unused"
    first = next(result for result in one["results"] if result["ruleId"] == "bank-conflicts")
    assert first["level"] == "warning"
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "kernels/matmul.py"}, "region": {"startLine": 43}}
    prints = [result["partialFingerprints"]["tileprof/v1"] for result in one["results"]]
    assert len(prints) == len(set(prints))
    assert [rule["id"] for rule in one["tool"]["driver"]["rules"]] == sorted({r["ruleId"] for r in one["results"]})


@pytest.mark.parametrize("name", RUNS)
def test_speedscope_is_valid_and_adds_up(name: str) -> None:
    record = json.loads(speedscope.render(RUNS[name]))
    jsonschema.validate(record, schema("speedscope.json"))
    trees = [(tree, mode) for tree in flame_trees(RUNS[name]) for mode in tree.modes]
    for (tree, mode), profile in zip(trees, record["profiles"]):
        assert len(profile["samples"]) == len(profile["weights"])
        whole = tree.root.weight(mode.id)
        if whole is not None and math.isfinite(whole) and name in ("quickstart", "recorded"):
            assert sum(profile["weights"]) == pytest.approx(whole)


@pytest.mark.parametrize("name", RUNS)
def test_folded_stacks_have_the_form_that_readers_expect(name: str) -> None:
    for line in folded.render(RUNS[name]).splitlines():
        stack, _, count = line.rpartition(" ")
        assert stack
        assert int(count) > 0
        assert all(stack.split(";"))


def test_folded_stacks_add_up() -> None:
    run = RUNS["recorded"]
    (tree,) = flame_trees(run)
    whole = sum(int(line.rpartition(" ")[2]) for line in folded.render(run).splitlines())
    assert whole == tree.root.weight("samples")


@pytest.mark.parametrize("name", RUNS)
def test_traces_have_whole_events(name: str) -> None:
    record = json.loads(trace.render(RUNS[name]), parse_constant=pytest.fail)
    for event in record["traceEvents"]:
        assert event["ph"] in ("X", "M")
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["ts"] >= 0


def test_operations_of_an_instrumented_block_are_laid_on_its_warp_groups() -> None:
    clock = Provenance("measured", "cycles", "0.1.0")
    case = make_case("matmul_tiled", "float16", "sm80")
    reads = [(3, 0, 100, 180), (5, 0, 180, 400), (3, 1, 100, 190)]
    metrics = tuple(
        Metric(f"cycles.{end}", value, "cycles", clock, operation, access=f"group {group}", launch=0)
        for operation, group, begin, stop in reads
        for end, value in (("begin", begin), ("end", stop))
    )
    events = json.loads(trace.render(make_run(cases=(dataclasses.replace(case, metrics=metrics),))))["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and "operation" in e["args"]]
    assert [(e["tid"], e["args"]["operation"], e["ts"], e["dur"]) for e in spans] == [
        (10, 3, 0.1, 0.08), (10, 5, 0.18, 0.22), (11, 3, 0.1, 0.09),
    ]  # fmt: skip


def test_a_trace_has_no_text_that_perfetto_would_cut() -> None:
    assert "\\u0000" in json.dumps(HOSTILE)
    record = json.loads(trace.render(RUNS["hostile"]))
    texts = [text for e in record["traceEvents"] for text in (e["name"], *map(str, e["args"].values()))]
    assert not any("\0" in text for text in texts)
    assert any("\N{SYMBOL FOR NULL}yyy" in text for text in texts)
