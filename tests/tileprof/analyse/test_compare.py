"""Two runs and two variants: pairing, senses of differences, the verdict, and the differential tree."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run
from unpacked import data_of

from tileprof.analyse.compare import BASE, Pair, compare, difference_trees, find_case, pairs_of
from tileprof.cli.main import main
from tileprof.errors import UsageError
from tileprof.report import compare_page
from tileprof.store.reader import read_run
from tileprof.store.records import LEAST_ROUNDS, CaseResult, Interleaved, Timing

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "reports/h200-quickstart"


def timed(*medians: float, **changes: Any) -> CaseResult:
    samples = tuple(sample * (1 + 0.001 * i) for sample in medians for i in range(5))
    return make_case("matmul_tiled", "float16", "sm80", timing=Timing(samples, "events", 1, True), **changes)


def verdict(base: CaseResult, head: CaseResult) -> tuple[str, str]:
    found = compare([Pair("x", base, head)], "a", "b")
    return found.outcome, found.verdict


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, "same"), (1.02, "same"), (1.2, "slower"), (0.8, "faster")])
def test_verdict_by_the_medians_of_separate_runs(factor: float, outcome: str) -> None:
    found, sentence = verdict(timed(100), timed(100 * factor))
    assert found == outcome
    assert "not in turns" in sentence


def test_medians_apart_and_samples_on_top_of_each_other_are_unclear() -> None:
    assert verdict(timed(90, 100, 110), timed(95, 106, 115))[0] == "unclear"


def test_rounds_in_turns_decide_where_they_are_against_this_base() -> None:
    rounds = Interleaved("b", "base", ((1.1,),) * LEAST_ROUNDS, ((1.0,),) * LEAST_ROUNDS)
    found, sentence = verdict(timed(100, hash="base"), timed(100, interleaved=rounds))
    assert (found, "in turns)" in sentence) == ("slower", True)
    assert verdict(timed(100, hash="another"), timed(100, interleaved=rounds))[0] == "same"


def test_senses_follow_the_catalogue_and_the_tolerance_of_counters() -> None:
    head = timed(100)
    metrics = tuple(
        dataclasses.replace(m, value=m.value * {"dram.read_bytes": 1.01, "dram.write_bytes": 1.5}.get(m.metric, 1))
        for m in head.metrics
    )
    (result,) = compare([Pair("x", head, dataclasses.replace(head, metrics=metrics))], "a", "b").results
    senses = {d.metric: d.sense for d in result.differences}
    assert senses["measured:dram.read_bytes"] == "equal"
    assert senses["measured:dram.write_bytes"] == "worse"


def test_runs_are_paired_by_what_cases_are() -> None:
    one, other = make_run(), make_run(cases=make_run().cases[3:])
    pairs = pairs_of(one, other)
    assert sum(pair.base is not None and pair.head is not None for pair in pairs) == 21
    assert [pair.head for pair in pairs[-3:]] == [None, None, None]


def test_a_case_is_found_by_enough_of_its_id() -> None:
    run = make_run()
    assert find_case(run, "scale_add[float32,N=1048576]@cpu").target_name == "cpu"
    with pytest.raises(UsageError, match="fits 24 cases"):
        find_case(run, "@")


def test_the_differential_tree_pairs_operations_of_variants() -> None:
    run = read_run(RECORDED / "run.sqlite")
    base, head = (
        find_case(run, f"{name}[float16,M=1024,N=1024,K=1024,block_K=64,num_stages=1") for name in ("tiled", "padded")
    )
    (tree,) = difference_trees([Pair("tiled → padded @ h200", base, head)], "both")
    gemm = next(node for node in tree.root.walk() if node.kind == "gemm")
    assert gemm.figures[BASE + "conflicts"].value == 7_340_032
    assert gemm.figures["conflicts"].value == 0
    assert tree.root.figures[BASE + "time"].value == pytest.approx(51_568, abs=1)


def test_what_is_gone_stays_in_the_tree() -> None:
    base = timed(100)
    head = dataclasses.replace(base, operations=base.operations[:-1])
    (tree,) = difference_trees([Pair("x @ sm80", base, head)], "both")
    gone = [node for node in tree.root.walk() if node.name == "copy C_local to C"]
    assert len(gone) == 1
    assert "executed" not in gone[0].figures
    assert gone[0].figures[BASE + "executed"].value > 0


def test_the_page_is_small_and_its_data_whole() -> None:
    run = read_run(RECORDED / "run.sqlite")
    pairs = pairs_of(run, run)
    text = compare_page.render(compare(pairs, "a", "b"), difference_trees(pairs, "both"), "0.1.0")
    assert len(text.encode()) < 300_000
    for tree in data_of(text)["flame"]:
        for _, _, number, figures, _, _, bases in tree["cases"]:
            places = tree["shapes"][number]["h"]
            assert [len(column) for column in bases] == [len(column) for column in figures] == [len(p) for p in places]


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    sides = [f"{RECORDED}#{name}[float16,M=1024,N=1024,K=1024,block_K=64,num_stages=1" for name in ("tiled", "padded")]
    assert main(["compare", *sides, "-o", str(page)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Faster: -50.9 % of the time")
    assert "shared.conflicts (measured)" in out
    assert page.read_text().startswith("<!doctype html>")
    assert main(["compare", *sides, "-o", str(page)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["compare", sides[0], str(RECORDED)]) == 2


def test_runs_without_a_common_case_are_told_and_no_page_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["compare", str(RECORDED), str(ROOT / "reports/h200-gemm"), "-o", str(page)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no case is on both sides: " in captured.err
    assert "h200-quickstart has naive[float32,M=1024,N=1024,K=1024]@h200, " in captured.err
    assert "help: name the cases to compare: RUN_DIR#CASE twice" in captured.err
    assert not page.exists()


def test_an_unknown_case_is_told_with_the_nearest_or_with_what_there_is() -> None:
    run = make_run()
    with pytest.raises(UsageError, match=r"did you mean 'scale_add\[float32,N=1048576\]@cpu'\?"):
        find_case(run, "scale_ad[float32,N=1048576]@cpu")
    with pytest.raises(UsageError, match=r"unknown case of quickstart 'nothing'; known: matmul_naive\["):
        find_case(run, "nothing")


@pytest.mark.parametrize("name", ["</script><script>x</script>", "\u202e" * 40, "x" * 10_000, "a\"\n'b", ""])
def test_hostile_names_stay_text(name: str) -> None:
    case = make_case("matmul_tiled", "float16", "sm80", id=name, kernel=name, target_name=name)
    pairs = pairs_of(make_run(name=name, cases=(case,)), make_run(name=name, cases=(case,)))
    text = compare_page.render(compare(pairs, name, name), difference_trees(pairs, name), name)
    assert text.count("<script") == 3
    assert len(text) < 300_000


def test_nothing_and_nonsense_compare() -> None:
    empty = make_run(cases=())
    assert compare(pairs_of(empty, empty), "a", "b").outcome == "untimed"
    odd = timed(float("nan"), float("inf"))
    assert verdict(odd, timed(100))[0] in ("same", "unclear", "untimed", "slower", "faster")
    compare_page.render(compare(pairs_of(empty, empty), "a", "b"), difference_trees([], "both"), "0")
