"""What the overview says of a figure that cannot be as it stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tileprof.collect.noise import NOISY
from tileprof.report.cells import ProvenanceTable
from tileprof.report.overview import attained, matrix
from tileprof.store.reader import read_run

RECORDED = Path(__file__).resolve().parents[3] / "reports/h200-quickstart/run.sqlite"


def test_more_than_the_roof_allows_is_said() -> None:
    assert attained(0.5).endswith("% of attainable")
    assert attained(1.0).endswith("% of attainable")
    assert "above the roof, so its data stays in a cache or the ceiling is too low" in attained(1.77)


@pytest.mark.parametrize("noisy", [False, True])
def test_a_noisy_time_is_no_best_one(noisy: bool) -> None:
    """Beside the figure itself, not in a note elsewhere."""
    run = read_run(RECORDED)
    flag = NOISY if noisy else None
    cases = [
        replace(case, metrics=[replace(m, flag=flag) if m.metric == "time.ns" else m for m in case.metrics])
        for case in run.cases
    ]
    labels = {case.id: case.id for case in cases}
    _, rows = matrix(replace(run, cases=cases), labels, {}, ProvenanceTable())
    facts = [fact for _, cells in rows for cell in cells if cell is not None for fact in cell.lines]
    assert any("fastest of" in fact.text for fact in facts)
    assert any(fact.mark == "best" for fact in facts if "fastest of" in fact.text) is not noisy
    assert any(fact.text.startswith("noisy") for fact in facts) is noisy
