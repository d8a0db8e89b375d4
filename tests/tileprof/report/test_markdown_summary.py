"""The Markdown summary: what it says, escaping, and how it is cut."""

from __future__ import annotations

from run_factory import make_case, make_run

from tileprof.report.summary import LONGEST, escape, render
from tileprof.store.records import Run

NB = "\N{NO-BREAK SPACE}"


def test_summary_of_the_quickstart(run: Run) -> None:
    text = render(run).replace(NB, " ")
    assert text.startswith("# quickstart\n")
    assert "**8 ran, 14 not run, 1 compile error, 1 time limit** · 38 s" in text
    assert (
        "| matmul\\_tiled\\[float32\\] | **21.31 ms**, 101 GFLOP/s, 66.6 % of attainable | not run | not run |" in text
    )
    row = next(line for line in text.splitlines() if "all buffers" in line)
    assert row.endswith("| all buffers | ldmatrix | 5,242,880 | 5,242,880 | 0 |")
    assert "cp.async.cg, rule open | 0 | 1,835,008 | +1,835,008 |" in text
    assert "B\\_shared (LDS) | load | 22,020,096 | — | — |" in text
    assert "## Failed" in text
    assert "no NVIDIA GPU in this machine" in text


def test_padded_tiles_are_not_listed_among_conflicts(run: Run) -> None:
    conflicts = render(run).partition("## Shared-memory conflicts")[2].partition("## Failed")[0]
    assert "matmul\\_tiled" in conflicts
    assert "padded" not in conflicts


def test_nothing_found_nothing_said() -> None:
    text = render(make_run(cases=(make_case("scale_add", "float32", "cpu"),), unavailable=()))
    assert "## Failed" not in text
    assert "conflicts" not in text
    assert "## Not measured" not in text


def test_names_mean_nothing_to_markdown() -> None:
    assert escape("a|b\n<script>*x*_[y](z)`") == "a\\|b &lt;script&gt;\\*x\\*\\_\\[y\\](z)\\`"
    assert len(escape("x" * 999, 50)) == 50
    case = make_case("scale_add", "float32", "cpu", id="i", kernel="k|\n<img>")
    rows = [line for line in render(make_run(cases=(case,))).splitlines() if line.startswith("| k")]
    assert rows[0].count(" | ") == 1
    assert "<img>" not in rows[0]


def test_long_runs_are_cut_and_say_so() -> None:
    cases = tuple(make_case("matmul_tiled", "float16", "mi300x", id=f"{i}@mi300x", args={"i": i}) for i in range(400))
    text = render(make_run(cases=cases))
    assert len(text) <= LONGEST
    assert "and 360 more rows" in text


def test_an_enormous_text_ends_with_a_note() -> None:
    cases = tuple(
        make_case("scale_add", "float32", f"{kind}", id=f"{i}", args={f"parameter{j}": f"{i}" for j in range(30)})
        for i in range(40)
        for kind in ("cpu",)
    )
    text = render(make_run(cases=cases, description="d" * 500))
    assert len(text) <= LONGEST


def test_an_empty_run() -> None:
    assert "**no cases**" in render(make_run(cases=(), unavailable=()))
