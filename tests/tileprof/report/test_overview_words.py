"""What the overview says of a figure that cannot be as it stands."""

from __future__ import annotations

from tileprof.report.overview import attained


def test_more_than_the_roof_allows_is_said() -> None:
    assert attained(0.5).endswith("% of attainable")
    assert attained(1.0).endswith("% of attainable")
    assert "above the roof, so its data stays in a cache or the ceiling is too low" in attained(1.77)
