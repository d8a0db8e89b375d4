"""Roofline on paper: scales, labels that do not collide, files that matplotlib writes."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
from run_factory import CALIBRATED, make_case, make_run

from tileprof.analyse.labels import variant_labels
from tileprof.analyse.roofline import Roofline, rooflines
from tileprof.errors import StoreError, UsageError
from tileprof.report import roofline_axes, roofline_figure
from tileprof.report.placement import Box, Candidate, Layout, Segment, text_width
from tileprof.report.roofline_view import FONT, Text, roof_figure
from tileprof.store.records import Ceiling, Run, Timing


def box_of(text: Text) -> Box:
    width = text_width(text.text, FONT)
    left = {"start": text.x, "middle": text.x - width / 2, "end": text.x - width}[text.anchor]
    return Box(left, text.y - FONT, left + width, text.y + 3)


def crowded() -> Run:
    """Forty cases at nearly the same place."""
    cases = tuple(
        make_case(
            "matmul_tiled",
            "float32",
            "cpu",
            id=f"{i}@cpu",
            args={"n": i},
            timing=Timing((2e7 * (1 + i / 200),), "c", 1, False),
        )
        for i in range(40)
    )
    return make_run(cases=cases)


@pytest.mark.parametrize("target", [0, 1, 2, "crowded"])
def test_no_label_covers_another_or_a_mark(run: Run, target: int | str) -> None:
    source = crowded() if target == "crowded" else run
    roof = rooflines(source)[0 if target == "crowded" else int(target)]
    figure = roof_figure(roof, variant_labels(source.cases))
    assert figure is not None
    labels = [mark.label for mark in figure.marks if mark.label is not None]
    level = [text for text in figure.texts if text.kind.startswith("roof") and not text.angle]
    boxes = [box_of(text) for text in [*labels, *level]]
    assert all(a.overlap(b) == 0 for a, b in combinations(boxes, 2))
    for mark in figure.marks:
        assert all(box.overlap(Box(mark.x - 5, mark.y - 5, mark.x + 5, mark.y + 5)) == 0 for box in boxes)
    assert all(box.inside(figure.plot) for box in boxes)
    if target != "crowded":
        assert len(labels) == len(figure.marks)  # here there is room for every label


@pytest.mark.parametrize("target", [0, 1, 2])
def test_no_label_of_a_ceiling_lies_across_the_roof(run: Run, target: int) -> None:
    figure = roof_figure(rooflines(run)[target], variant_labels(run.cases))
    assert figure is not None
    for text in figure.texts:
        if text.kind.startswith("roof") and not text.angle:
            assert not any(Segment(c.x1, c.y1, c.x2, c.y2, 1).crosses(box_of(text)) for c in figure.ceilings), text.text


def test_positions_are_logarithmic(run: Run) -> None:
    roof = rooflines(run)[0]
    figure, ranges = roof_figure(roof, variant_labels(run.cases)), roofline_axes.axes(roof)
    assert figure is not None
    assert ranges is not None
    first = figure.marks[0]
    point = roof.points[0]
    share = math.log(point.intensity / ranges.x0) / math.log(ranges.x1 / ranges.x0)
    assert first.x == pytest.approx(figure.plot.left + share * (figure.plot.right - figure.plot.left))
    assert point.achieved is not None
    share = math.log(point.achieved / ranges.y0) / math.log(ranges.y1 / ranges.y0)
    assert first.y == pytest.approx(figure.plot.bottom - share * (figure.plot.bottom - figure.plot.top))


def test_roof_lines_meet_at_the_ridge(run: Run) -> None:
    figure = roof_figure(rooflines(run)[0], variant_labels(run.cases))
    assert figure is not None
    flat, slope = figure.ceilings
    assert (flat.x1, flat.y1) == pytest.approx((slope.x2, slope.y2))
    assert figure.ridges[0][:2] == pytest.approx((flat.x1, flat.y1))


def test_every_point_and_ridge_lies_within_the_ranges(run: Run) -> None:
    for roof in rooflines(run):
        ranges = roofline_axes.axes(roof)
        assert ranges is not None
        for mark in roofline_axes.marks(roof):
            assert ranges.x0 < mark.x < ranges.x1
            assert ranges.y0 < mark.y < ranges.y1
        assert all(ranges.x0 < ridge.intensity < ranges.x1 for ridge in roof.ridges)


def test_predicted_cases_on_one_place_share_a_mark(run: Run) -> None:
    amd = rooflines(run)[2]
    found = {mark.indices for mark in roofline_axes.marks(amd)}
    assert (0, 2, 4) in found  # the three float32 products
    assert not any(mark.measured for mark in roofline_axes.marks(amd))


def test_equal_peaks_are_one_line(run: Run) -> None:
    lines = roofline_axes.peak_lines(rooflines(run)[2])
    assert [line.names for line in lines] == [("matrix.float16",), ("vector.float32", "matrix.float32")]


def test_nothing_to_plot() -> None:
    roof = Roofline("x", "cpu", (), (), (), (), (), ())
    assert roofline_axes.axes(roof) is None
    assert roof_figure(roof, {}) is None


def test_decades_and_minor_lines() -> None:
    assert roofline_axes.decades(0.07, 1200) == [0.1, 1, 10, 100, 1000]
    assert roofline_axes.minor_lines(8, 31) == [8, 9, 20, 30]


def test_segments_cross_boxes() -> None:
    box = Box(10, 10, 20, 20)
    assert Segment(0, 0, 30, 30, 1).crosses(box)
    assert Segment(15, 15, 16, 16, 1).crosses(box)
    assert Segment(0, 15, 30, 15, 1).crosses(box)
    assert not Segment(0, 5, 30, 5, 1).crosses(box)
    assert not Segment(0, 0, 9, 9, 1).crosses(box)
    assert not Segment(0, 30, 30, 21, 1).crosses(box)


def test_placement_prefers_cheap_free_places() -> None:
    layout = Layout(Box(0, 0, 100, 100), lines=[Segment(0, 5, 100, 5, 50)])
    near, far = Candidate((Box(0, 0, 10, 10),), 0, 0), Candidate((Box(0, 40, 10, 50),), 0, 40, cost=3)
    outside = Candidate((Box(-5, 40, 5, 50),), -5, 40)
    assert layout.place([outside, near, far]) is far
    assert layout.place([outside, far, near]) is near  # the far place is taken now
    assert layout.place([outside, far, near]) is None


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_figures_are_written(run: Run, tmp_path: Path, ending: str, magic: bytes) -> None:
    path = roofline_figure.save(run, tmp_path / f"roof.{ending}")
    assert path.read_bytes().startswith(magic)


def test_svg_keeps_text_and_is_repeatable(run: Run, tmp_path: Path) -> None:
    texts = [roofline_figure.save(run, tmp_path / name, "sm80").read_text() for name in ("a.svg", "b.svg")]
    assert texts[0] == texts[1]
    assert "matmul_tiled[float16]" in texts[0]
    assert "matrix.float16" in texts[0]
    assert "predicted" in texts[0]
    assert "mi300x" not in texts[0]


def test_dollars_are_no_mathematics(tmp_path: Path) -> None:
    case = make_case("scale_add", "float32", "cpu", kernel="$x^$", id="c")
    assert roofline_figure.save(make_run(cases=(case,)), tmp_path / "a.svg").exists()


def test_a_run_without_cases_draws_an_empty_figure(tmp_path: Path) -> None:
    assert roofline_figure.save(make_run(cases=()), tmp_path / "a.png").exists()


def test_wrong_target_and_ending_name_the_remedy(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'h200'") as caught:
        roofline_figure.draw(run, "h200")
    assert "sm80" in str(caught.value.remedy)
    with pytest.raises(UsageError, match=r"\.jpg"):
        roofline_figure.save(run, tmp_path / "roof.jpg")
    with pytest.raises(StoreError):
        roofline_figure.save(run, tmp_path / "missing" / "roof.png", "cpu")


def test_measured_and_datasheet_ceilings_of_one_target_are_both_drawn() -> None:
    nominal = Ceiling("cpu", "dram.bytes_per_s", "", 40e9, CALIBRATED)
    run = make_run()
    both = make_run(ceilings=(nominal, *run.ceilings))
    figure = roof_figure(rooflines(both)[0], variant_labels(run.cases))
    assert figure is not None
    assert len(figure.ceilings) == 3
