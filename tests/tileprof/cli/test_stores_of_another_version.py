"""Every verb that reads a run says the same of one that a later version wrote, and touches nothing."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tileprof.cli.main import main

RECORDED = Path(__file__).resolve().parents[3] / "reports/h200-quickstart/run.sqlite"


@pytest.mark.parametrize(
    "arguments", [["report", "{run}"], ["check", "{run}"], ["compare", "{run}", "{run}"]], ids=lambda a: str(a[0])
)
def test_a_newer_store_is_refused(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(RECORDED, tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (tmp_path / "run.sqlite").read_bytes()
    assert main([argument.format(run=tmp_path) for argument in arguments]) == 2
    assert "version 99 of the store" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]
    assert (tmp_path / "run.sqlite").read_bytes() == before
