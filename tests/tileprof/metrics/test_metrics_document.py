from __future__ import annotations

from pathlib import Path

from tileprof.metrics import METRICS, amd, nvidia
from tileprof.metrics.document import GENERATED, render

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_document_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == render(), f"{GENERATED}"


def test_every_metric_and_formula_is_in_it() -> None:
    text = render()
    assert all(f"| `{name}` |" in text for name in METRICS)
    assert all(f"| `{formula.text}` |" in text for formula in (*amd.FORMULAS, *nvidia.FORMULAS))


def test_tables_are_whole() -> None:
    """Every row of a table has as many cells as its head."""
    width = 0
    for line in render().splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = line.replace("\\|", "").count("|")
        width = width or cells
        assert cells == width, line
