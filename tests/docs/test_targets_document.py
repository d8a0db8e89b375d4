"""The tables of docs/targets.md against what the compiler makes now; times and versions aside."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """benchmarks/targets.py."""
    spec = importlib.util.spec_from_file_location("benchmark_targets", ROOT / "benchmarks" / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_what_each_target_has(script: ModuleType) -> None:
    rows = script.documented("capacities")
    for target in script.TARGETS:
        row = script.capacity_row(target)
        assert rows.get(target) == (row or None)


def test_the_product_on_each_target(script: ModuleType) -> None:
    """What is stable of it.  Compared under the compilers that the document names: under others the figures are others."""
    text = script.DOCUMENT.read_text(encoding="utf-8")
    start, end = script.between(text, "compilers")
    if not text[start:end].startswith(script.compilers()):
        pytest.skip(f"the document was made with {text[start:end].strip()}")
    found = script.differences(script.TARGETS, script.STABLE)
    assert not found, "\n".join([*found, "if this is meant, run python benchmarks/targets.py"])


def test_every_target_has_a_row(script: ModuleType) -> None:
    rows = script.documented()
    assert set(rows) == set(script.TARGETS)
    assert all(set(script.COLUMNS) < set(row) for row in rows.values())


def test_conflicts_are_counted_as_the_document_does(script: ModuleType) -> None:
    found = script.conflicts(script.kernel_for("hip:gfx942"))
    assert re.fullmatch(r"[\d,]+ of [\d,]+", found)
    assert found == script.documented()["hip:gfx942"]["conflicts"]


def test_tables_are_written_between_their_marks(script: ModuleType) -> None:
    text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    table = script.table([{"target": "`t`", "n": "1"}])
    assert table == "| target | n |\n| --- | --- |\n| `t` | 1 |\n"
    assert script.replaced(text, "x", table) == f"a\n<!-- x -->\n{table}<!-- end of x -->\nb\n"
