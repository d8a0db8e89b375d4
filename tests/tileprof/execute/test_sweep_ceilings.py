"""The processor's ceilings are no step of a case: the time limit of cases is not theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tileprof.cli.main import main
from tileprof.store.reader import read_run

WORKLOAD = """\
version: 1
name: short
defaults: {timeout: 250ms, timing: {warmup: 0, samples: 1}}
targets: {here: {target: cpu}}
kernels:
  - {name: ends, command: ["true"]}
  - {name: stays, command: ["sleep", "60"]}
"""


def test_a_short_limit_leaves_the_roofline_its_roof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    assert main(["run", "w.yaml", "-o", "run"]) == 4
    run = read_run(tmp_path / "run/run.sqlite")
    assert {case.id: case.status for case in run.cases}["stays@here"] == "timeout"
    found = {ceiling.quantity: ceiling.value for ceiling in run.ceilings if ceiling.provenance.kind == "measured"}
    assert found["dram.bytes_per_s"] > 0
    assert found["flops_per_s"] > 0
    assert not [entry for entry in run.unavailable if "ceilings" in entry.what]
