"""Every part of the page that reacts: the table of cases and its plots, search in the flame graph, large trees, the comparison."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from run_factory import make_case, make_run
from test_report_page import boxes, choose, click, complaints, text_of, tooltip_over

from tileprof.analyse.compare import Pair, compare, difference_trees, find_case
from tileprof.report import compare_page
from tileprof.report.html import write
from tileprof.store.reader import read_run

pytestmark = pytest.mark.browser

RECORDED = Path(__file__).resolve().parents[2] / "reports/h200-quickstart/run.sqlite"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def recorded(folder: Path) -> str:
    return write(read_run(RECORDED), folder / "recorded.html").as_uri()


@pytest.fixture(scope="module")
def comparison(folder: Path) -> str:
    run = read_run(RECORDED)
    end = "[float16,M=1024,N=1024,K=1024,block_K=64,num_stages=1"
    pairs = [Pair("tiled → padded @ h200", find_case(run, "tiled" + end), find_case(run, "padded" + end))]
    path = folder / "comparison.html"
    path.write_text(compare_page.render(compare(pairs, "base", "head"), difference_trees(pairs, "both"), "0"), "utf-8")
    return path.as_uri()


def type_into(driver: Any, selector: str, text: str) -> None:
    script = (
        "const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'))"
    )
    driver.execute_script(script, selector, text)


def column(driver: Any, name: str) -> list[str]:
    """Texts of a column of the table of cases."""
    script = """
      const is = (cell) => cell.innerText.replace(/[▲▼]/, "").trim() === arguments[0];
      const index = [...document.querySelectorAll("#cases-head th")].findIndex(is);
      return [...document.querySelectorAll("#cases-body tr")].map((row) => row.cells[index].textContent);"""
    return list(driver.execute_script(script, name))


def sort_by(driver: Any, name: str) -> str:
    """Click on a heading; returns its aria-sort."""
    script = """
      const is = (cell) => cell.innerText.replace(/[▲▼]/, "").trim() === arguments[0];
      const find = () => [...document.querySelectorAll("#cases-head th")].find(is);
      find().firstChild.click();
      return find().getAttribute("aria-sort");"""
    return str(driver.execute_script(script, name))


def test_the_table_of_cases_sorts_with_what_is_not_known_last(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    assert column(chromium, "time")[0].startswith("6.320")
    assert sort_by(chromium, "registers") == "ascending"
    known = [int(text) for text in column(chromium, "registers")]
    assert known == sorted(known)
    assert sort_by(chromium, "registers") == "descending"
    assert [int(text) for text in column(chromium, "registers")] == sorted(known, reverse=True)
    sort_by(chromium, "num_stages")
    stages = column(chromium, "num_stages")
    assert stages == ["1"] * 4 + ["2"] * 4 + [""] * 4
    assert chromium.execute_script("return document.activeElement.textContent").startswith("num_stages")
    assert complaints(chromium) == []


def test_the_table_of_cases_filters_by_all_words(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    type_into(chromium, "#cases-filter", "padded NUM_STAGES=2")
    assert set(column(chromium, "kernel")) == {"padded"}
    assert text_of(chromium, "#cases-shown") == "2 of 2 (12 in all)"
    type_into(chromium, "#cases-filter", "nowhere")
    assert column(chromium, "kernel") == []
    assert "No two of these cases" in text_of(chromium, "#cases-plots")


def test_the_fastest_of_each_problem_is_marked(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    best = dict(
        zip(
            zip(column(chromium, "kernel"), column(chromium, "dtype"), column(chromium, "num_stages")),
            column(chromium, "best"),
        )
    )
    assert best["padded", "float16", "2"] == "fastest"
    assert best["padded", "float32", "1"] == "fastest"
    assert best["naive", "float16", ""] == "Pareto-best"  # it needs no shared memory
    assert best["tiled", "float32", "2"] == ""


def test_plots_over_a_parameter(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    captions = "return [...document.querySelectorAll('#cases-plots figcaption')].map((e) => e.textContent)"
    assert chromium.execute_script(captions) == ["time", "registers", "shared bytes", "occupancy", "conflicts"]
    lines = "return document.querySelectorAll('#cases-plots figure:first-child path.line').length"
    assert chromium.execute_script(lines) == 4
    tip = tooltip_over(chromium, "#cases-plots figure:first-child .dot.best2")
    assert "fastest" in tip
    assert "time: " in tip


def test_rows_are_copied_as_csv(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    type_into(chromium, "#cases-filter", "padded")
    chromium.execute_script(
        "window.copied = null; document.execCommand = () => { window.copied = document.activeElement.value; return true; };"
        "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    )
    click(chromium, "#cases-copy")
    text = chromium.execute_script("return window.copied")
    lines = text.strip().split("\n")
    assert lines[0].startswith("case,kernel,dtype,K") or lines[0].startswith("case,kernel")
    assert len(lines) == 5
    assert lines[1].startswith('"padded[')
    assert text_of(chromium, "#cases-copy") == "Copied"


def test_many_cases_are_shown_a_hundred_at_a_time_and_stand_in_boxes_of_their_kernel(
    chromium: Any, folder: Path
) -> None:
    cases = tuple(
        dataclasses.replace(make_case(kernel, "float16", "sm80"), id=f"{kernel}[i={i}]@sm80", tiles={"i": i})
        for kernel in ("matmul_tiled", "matmul_padded")
        for i in range(80)
    )
    chromium.get(write(make_run(cases=cases), folder / "many.html").as_uri())
    assert len(column(chromium, "kernel")) == 100
    click(chromium, "#cases-more")
    assert len(column(chromium, "kernel")) == 160
    drawn = boxes(chromium)
    assert {"matmul_tiled", "matmul_padded"} <= set(drawn)
    click(chromium, "#flame-graph .k-group[data-name=matmul_tiled]")
    assert boxes(chromium)["matmul_tiled"][1] == pytest.approx(1, abs=0.01)
    assert complaints(chromium) == []


def test_what_is_too_narrow_is_counted(chromium: Any, folder: Path) -> None:
    case = make_case("matmul_tiled", "float16", "sm80")
    cases = tuple(dataclasses.replace(case, id=f"{i}@sm80", args={"i": i}) for i in range(2000))
    chromium.get(write(make_run(cases=cases), folder / "narrow.html").as_uri())
    chromium.execute_script("document.querySelector('#flame').scrollIntoView()")  # laid out when it comes into view
    assert wait_for(chromium, "return document.querySelector('#flame-graph .more')?.innerText").endswith(" more")


def test_the_search_sums_up_topmost_matches(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    choose(chromium, "#flame-case", "tiled[float16, block_K=64, num_stages=1] @ h200")
    type_into(chromium, "#flame-search", "/copy/")
    assert text_of(chromium, "#flame-found").startswith("3 found, ")
    type_into(chromium, "#flame-search", "/(/")
    assert text_of(chromium, "#flame-found") == "not a regular expression"
    type_into(chromium, "#flame-search", "quux")
    assert text_of(chromium, "#flame-found") == "nothing found"


def test_operations_open_into_stall_reasons(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    choose(chromium, "#flame-case", "tiled[float16, block_K=64, num_stages=1] @ h200")
    click(chromium, '#flame-modes [data-mode="samples"]')
    assert "short scoreboard" in boxes(chromium)
    click(chromium, '#flame-modes [data-mode="static"]')
    assert {"matrix", "ldmatrix"} <= set(boxes(chromium))


def test_findings_are_there_with_their_line(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    gains = chromium.execute_script(
        "return [...document.querySelectorAll('.finding .gain b')].map((b) => parseInt(b.textContent))"
    )
    assert gains[0] > 50
    known = [gain for gain in gains if gain]
    assert known == sorted(known, reverse=True)
    conflicts = text_of(chromium, ".finding[data-rule='bank-conflicts']")
    assert "kernels/matmul.py:43" in conflicts
    assert "swizzle A_shared" in conflicts


def test_points_of_the_levels_of_memory_speak(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    assert "of the level's bandwidth" in tooltip_over(chromium, ".roofplot .level.shared")


def test_a_comparison_colours_what_changed(chromium: Any, comparison: str) -> None:
    chromium.get(comparison)
    assert text_of(chromium, "h1") == "Faster"
    chosen = chromium.execute_script("return document.querySelector('#flame-modes [aria-checked=true]').dataset.mode")
    assert chosen.startswith("transactions")  # what has changed most and is still there
    click(chromium, '#flame-modes [data-mode="transactions_measured"]')
    gemm = "#flame-graph [data-name^='T.gemm']"
    assert "better4" in chromium.execute_script("return document.querySelector(arguments[0]).className", gemm)
    assert "−87.5\u00a0%" in text_of(chromium, gemm)
    assert "in the base" in tooltip_over(chromium, gemm) or "−87.5" in tooltip_over(chromium, gemm)
    click(chromium, '#flame-modes [data-mode="conflicts_measured"]')
    assert "No figure" in text_of(chromium, "#flame-graph")  # the head has none left
    choose(chromium, "#flame-side", "the base")
    assert "gone" in text_of(chromium, gemm)
    assert complaints(chromium) == []


def wait_for(driver: Any, script: str) -> Any:
    """The value of a script once it is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30).until(lambda _: driver.execute_script(script))


def test_a_line_opens_into_its_generated_code_and_assembly(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    choose(chromium, '.source-case[data-file="0"]', "tiled[float16, block_K=64, num_stages=1] @ h200")
    script = """
      const row = [...document.querySelectorAll(".src[data-file='0'] tr.on")].find((r) => r.dataset.line === "43");
      row.querySelector(".open").click();"""
    chromium.execute_script(script)
    text = wait_for(chromium, "return document.querySelector('.src .below')?.innerText")
    assert "assembly, " in text
    assert "HMMA" in text
    assert "LDSM" in text
    chromium.execute_script(script)
    assert chromium.execute_script("return document.querySelector('.src .below')") is None
    assert complaints(chromium) == []


def test_code_stands_side_by_side_and_a_line_is_marked_on_both(chromium: Any, recorded: str) -> None:
    chromium.get(recorded)
    chromium.execute_script("document.querySelector('#code-panel').scrollIntoView()")
    wait_for(chromium, "return document.querySelectorAll('.listing li').length > 100")
    type_into(chromium, "#code-line", "64")
    marked = "return [...document.querySelectorAll('.listing')].map((l) => l.querySelectorAll('.marked').length)"
    assert all(count > 20 for count in chromium.execute_script(marked))
    choose(chromium, "#code-part", "generated code")
    wait_for(chromium, "return document.querySelector('.listing').innerText.includes('__launch_bounds__')")
    assert complaints(chromium) == []
