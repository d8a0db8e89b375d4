"""The first command of the README, as a reader types it: it succeeds, and its page is of the promised size."""

from __future__ import annotations

import json
from pathlib import Path

from tileprof.cli.main import main

QUICKSTART = Path(__file__).resolve().parents[3] / "workloads/quickstart.yaml"


def test_the_quickstart_runs_and_its_page_is_small(tmp_path: Path) -> None:
    assert main(["run", str(QUICKSTART), "-o", str(tmp_path / "run")]) == 0
    cases = json.loads((tmp_path / "run/result.json").read_text())["run"]["cases"]
    assert [case["status"] for case in cases if case["target_name"] == "cpu"] == ["ok"] * 8
    assert [case["status"] for case in cases if case["target_name"] != "cpu"] == ["not_run"] * 16
    assert (tmp_path / "run/index.html").stat().st_size < 300_000
