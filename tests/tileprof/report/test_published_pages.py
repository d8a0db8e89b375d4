"""Pages of the published runs: what has nothing to say takes one line, and what has stands in view."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_html_page import NB, Page
from unpacked import data_of

from tileprof.report.html import render
from tileprof.store.reader import read_run

REPORTS = Path(__file__).resolve().parents[3] / "reports"


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {
        name: render(read_run(REPORTS / name / "run.sqlite"))
        for name in ("h200-gemm", "h200-attention", "h200-quickstart")
    }


def test_cases_without_conflicts_are_one_sentence_and_a_folded_table(texts: dict[str, str]) -> None:
    page = Page(texts["h200-gemm"])
    assert "No conflicts in any of the 14 cases, measured." in page.text_of("conflicts").replace("\n", " ")
    assert len(page.rows("conflicts")) > 14 * 2  # the accesses are still there
    section = texts["h200-gemm"].partition('id="conflicts"')[2].partition("</section>")[0]
    assert "<table" not in section  # folded, and packed
    mixed = Page(texts["h200-quickstart"]).text_of("conflicts").replace("\n", " ")
    assert (
        "No conflicts in padded[float32, block_K=32, num_stages=1], padded[float16, block_K=64, num_stages=1], measured."
        in mixed
    )


def test_cases_that_move_no_byte_in_vain_are_folded(texts: dict[str, str]) -> None:
    gemm = Page(texts["h200-gemm"]).text_of("global").replace("\n", " ")
    assert "No byte of a sector is moved in vain in any of the 10 cases simulated" in gemm
    rows = [row.replace(NB, " ") for row in Page(texts["h200-quickstart"]).rows("global")]
    wasteful = rows[: next(index for index, row in enumerate(rows) if row.startswith("naive"))]
    assert {row for row in wasteful if row.startswith("padded")} == {
        "padded[float32, block_K=32, num_stages=2]", "padded[float16, block_K=64, num_stages=2]",
    }  # fmt: skip
    assert sum("66.7 %" in row for row in wasteful) == 4


def test_what_others_wrote_has_no_column_of_dashes(texts: dict[str, str]) -> None:
    page = Page(texts["h200-attention"])
    (head,) = [row for row in page.rows("variants") if row.startswith("fact ")]
    assert "forward" in head
    assert "torch" not in head
    assert "Nothing static is known of torch[causal=False, dim=128]" in page.text_of("variants").replace("\n", " ")
    assert "no binary of ours" in page.text_of("roofline")


def test_short_pieces_of_a_diagonal_have_their_label(texts: dict[str, str]) -> None:
    labels = Page(texts["h200-attention"]).text_of("roofline").replace(NB, " ").replace("  ", " ")
    assert [label for label in ("shared 28.0 TB/s", "L2 7.38 TB/s", "DRAM 4.09 TB/s") if label not in labels] == []


def test_pages_are_filled_up_with_code(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        code = data_of(text)["code"]
        assert len(text.encode()) > 265_000 or not code["left"], name
        assert sum("assembly" in parts for parts in code["cases"].values()) >= 2, name
