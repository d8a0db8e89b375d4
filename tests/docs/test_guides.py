"""Examples in the guides say what really comes out."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tileprof.cli.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("name", ["bank-conflicts.md"])
def test_sessions_of_python(name: str) -> None:
    result = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 5
    assert result.failed == 0


def test_the_picture_of_banks(capsys: pytest.CaptureFixture[str]) -> None:
    """Up to the bank at which the guide breaks lines off."""
    text = (DOCS / "bank-conflicts.md").read_text()
    (command, shown), *rest = re.findall(r"```console\n\$ tileprof (.*)\n((?:.*\n)*?)```", text)
    assert not rest
    arguments = [part.strip('"') for part in re.findall(r'"[^"]*"|\S+', command)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    for line, real in zip(shown.splitlines(), printed):
        assert real.startswith(line.removesuffix(" ...").rstrip()), line
