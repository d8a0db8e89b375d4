"""``run --against``, ``check`` and ``--update-baseline``, from the command line to the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sweep_folder import Folder, make_folder

SMALL = """\
version: 1
name: gate
defaults: {timeout: 60s, timing: {warmup: 1, samples: 5}}
targets: {cpu: {target: cpu}}
kernels:
  - {name: scale, source: "kernels.py:scale", shapes: [{N: 4000}], reference: "kernels.py:double"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder with a finished run ``run``, kept as the baseline ``baselines``."""
    made = make_folder(tmp_path_factory.mktemp("against"))
    assert made.run(SMALL).status == 0
    outcome = made.tileprof("check", "run", "--update-baseline")
    assert outcome.status == 0, outcome.err
    assert "2 baselines are kept in baselines" in outcome.err
    return made


def test_both_kernels_are_timed_in_turns(folder: Folder) -> None:
    outcome = folder.run(SMALL, "--against", "baselines", directory="next")
    assert outcome.status == 0, outcome.err
    rounds = outcome.case("scale[N=4000]@cpu").interleaved
    assert rounds is not None
    assert [len(side) for side in (rounds.head_ns, rounds.base_ns)] == [5, 5]
    assert {len(one) for one in (*rounds.head_ns, *rounds.base_ns)} == {5}
    assert rounds.base.startswith("the baseline of 20")
    checked = folder.tileprof("check", "next", "--json", directory="next")
    record = json.loads(checked.out)
    assert record["exit_status"] == checked.status
    times = [verdict for verdict in record["verdicts"] if verdict["metric"] == "time.ns"]
    assert len(times) == 1  # noise of a busy machine may make it any outcome but an open one
    assert times[0]["outcome"] != "open"
    exact = [verdict for verdict in record["verdicts"] if verdict["kind"] == "exact"]
    assert len(exact) > 10
    assert {verdict["outcome"] for verdict in exact} == {"pass"}
    assert {"junit.xml", "check.md", "check.json"} <= {path.name for path in (folder.path / "next").iterdir()}


def test_a_limit_of_the_workload_fails(folder: Folder) -> None:
    text = SMALL.replace("shapes: [{N: 4000}]", "shapes: [{N: 4000}], checks: {launch.blocks: {max: 1}}")
    outcome = folder.run(text, directory="limited")
    assert outcome.status == 0, outcome.err
    checked = folder.tileprof("check", "limited")
    assert checked.status == 1
    assert "launch.blocks" in checked.out
    assert (folder.path / "limited/check.md").read_text().startswith("# gate: failed")


def test_other_runs_are_baselines_too(folder: Folder) -> None:
    checked = folder.tileprof("check", "run", "--baseline", "run")
    assert checked.status == 0
    assert "as before or within limits" in checked.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "run", "--baseline", "none"), "there is no baseline none"),
        (("check", "run", "--floor", "much"), "is no percentage"),
        (("check", "run", "--baseline", "run", "--update-baseline"), "is a run, not a folder of baselines"),
        (("run", "w.yaml", "-o", "x", "--against", "none"), "there is no none"),
        (("run", "w.yaml", "-o", "run", "--force", "--against", "run"), "names the directory that is written"),
    ],
)
def test_wrong_usage(folder: Folder, arguments: tuple[str, ...], message: str) -> None:
    folder.write(SMALL)
    outcome = folder.tileprof(*arguments)
    assert outcome.status == 2
    assert message in outcome.err


def test_a_baseline_of_other_cases_is_said(folder: Folder) -> None:
    outcome = folder.run(SMALL.replace("N: 4000", "N: 5000"), "--against", "baselines", directory="other")
    assert outcome.status == 2
    assert "has bundles of none of these 1 cases" in outcome.err


def test_nothing_names_this_place(folder: Folder) -> None:
    kept = [path for path in (folder.path / "baselines").rglob("*.json") if "bundles" not in path.parts]
    assert kept
    assert not any(str(Path.home()) in path.read_text() for path in kept)
