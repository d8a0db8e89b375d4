"""The report in a real browser, from a file, with the network shut."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageStat
from run_factory import make_case, make_run
from unpacked import unpacked

from tileprof.report.html import render, write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """file:// address of the synthetic quickstart's report."""
    return write(make_run(), tmp_path_factory.mktemp("report") / "index.html").as_uri()


def complaints(driver: Any) -> list[str]:
    """What the console says, and every request that went anywhere but to the file."""
    said = [entry["message"] for entry in driver.get_log("browser")]
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                said.append(f"request to {url}")
    return said


def boxes(driver: Any) -> dict[str, tuple[float, float]]:
    """Label -> (left, width) of the boxes that are drawn, in shares of the graph."""
    script = """
      const graph = document.getElementById("flame-graph"), whole = graph.getBoundingClientRect();
      return [...graph.querySelectorAll("[data-node]")].map((box) => {
        const place = box.getBoundingClientRect();
        return [box.dataset.name, (place.left - whole.left) / whole.width, place.width / whole.width];
      });"""
    return {label: (left, width) for label, left, width in driver.execute_script(script)}


def click(driver: Any, selector: str) -> None:
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def choose(driver: Any, selector: str, text: str) -> None:
    """Chooses the option of a select that reads so, as a user does."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(driver.find_element(By.CSS_SELECTOR, selector)).select_by_visible_text(text)


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def text_of(driver: Any, selector: str) -> str:
    return str(driver.execute_script("return document.querySelector(arguments[0]).innerText", selector))


def tooltip_over(driver: Any, selector: str) -> str:
    """Text of the tooltip once the pointer rests on an element."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    ActionChains(driver).move_to_element(driver.find_element(By.CSS_SELECTOR, selector)).perform()
    WebDriverWait(driver, 5).until(lambda _: text_of(driver, "#tip"))
    return text_of(driver, "#tip")


def brightness(driver: Any, name: str) -> float:
    """Mean brightness of a screenshot, 0 to 255; kept under $TILEPROF_SCREENSHOTS where that is set."""
    png = driver.get_screenshot_as_png()
    if folder := os.environ.get("TILEPROF_SCREENSHOTS"):
        (Path(folder) / f"{name}.png").write_bytes(png)
    return float(ImageStat.Stat(Image.open(io.BytesIO(png)).convert("L")).mean[0])


def test_opens_offline_without_a_word_in_the_console(chromium: Any, address: str) -> None:
    chromium.get(address)
    assert chromium.title == "quickstart · tileprof"
    assert boxes(chromium), "the script did not run"
    assert complaints(chromium) == []


def test_policy_stops_scripts_that_are_not_ours(chromium: Any, address: str) -> None:
    chromium.get(address)
    chromium.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.body.append(s);"
    )
    assert chromium.execute_script("return window.foreign") is None
    assert any("Content Security Policy" in line for line in complaints(chromium))


def test_flame_graph_switches_its_width(chromium: Any, address: str) -> None:
    chromium.get(address)
    choose(chromium, "#flame-case", "matmul_tiled[float16] @ sm80")
    click(chromium, '#flame-modes [data-mode="executed"]')
    before = boxes(chromium)
    click(chromium, '#flame-modes [data-mode="transactions"]')
    after = boxes(chromium)
    assert (
        chromium.execute_script("return document.querySelector('#flame-modes [aria-checked=true]').dataset.mode")
        == "transactions"
    )
    whole = 16 * 4 * 12 + 2 * 8 * 4  # gemm of two buffers and the two copies, by step
    assert after["gemm A_shared, B_shared"][1] == pytest.approx(16 * 4 * 12 / whole, abs=0.005)
    assert after["copy A to A_shared"][1] == pytest.approx(8 * 4 / whole, abs=0.005)
    assert before["gemm A_shared, B_shared"][1] < after["gemm A_shared, B_shared"][1]
    assert "copy C_local to C" in before
    assert "copy C_local to C" not in after  # it touches no shared memory
    assert complaints(chromium) == []


def test_children_lie_below_and_within_their_parent(chromium: Any, address: str) -> None:
    chromium.get(address)
    choose(chromium, "#flame-case", "matmul_padded[float16] @ mi300x")
    drawn = boxes(chromium)
    loop, gemm = drawn["pipelined ko"], drawn["gemm A_shared, B_shared"]
    assert loop[0] <= gemm[0]
    assert gemm[0] + gemm[1] <= loop[0] + loop[1] + 0.002


def test_flame_graph_shows_no_width_that_is_not_known(chromium: Any, address: str) -> None:
    chromium.get(address)
    choose(chromium, "#flame-case", "all cases on cpu")
    disabled = "return [...document.querySelectorAll('#flame-modes :disabled')].map((b) => b.dataset.mode)"
    assert "executed" in chromium.execute_script(disabled)
    click(chromium, '#flame-modes [data-mode="time"]')
    drawn = boxes(chromium)
    assert drawn["matmul_naive[float32]"][1] == pytest.approx(812.4 / 923.421, abs=0.005)
    assert "matmul_naive[float16]" not in drawn  # it ran into its time limit
    choose(chromium, "#flame-case", "matmul_naive[float16] @ cpu")
    assert (
        chromium.execute_script("return document.querySelector('#flame-modes [aria-checked=true]').dataset.mode")
        == "static"
    )


def test_flame_graph_is_usable_by_keyboard(chromium: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    chromium.get(address)
    choose(chromium, "#flame-case", "all cases on sm80")
    chromium.execute_script("document.querySelector('#flame-graph [tabindex=\"0\"]').focus()")
    focused = "return document.activeElement.getAttribute('aria-label')"
    assert chromium.execute_script(focused).startswith("quickstart 287")
    press(chromium, Keys.ARROW_DOWN)
    assert chromium.execute_script(focused).startswith("matmul_naive[float32] 105\u00a0M\u00a0instructions")
    press(chromium, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert chromium.execute_script(focused).startswith("matmul_tiled[float32]")
    assert "matmul_tiled[float32]" in text_of(chromium, "#flame-info")
    press(chromium, Keys.ENTER)
    assert boxes(chromium)["matmul_tiled[float32]"][1] == pytest.approx(1, abs=0.005)
    assert chromium.execute_script(focused).startswith("matmul_tiled[float32]")  # focus survives the redrawing
    press(chromium, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    press(chromium, Keys.ESCAPE)
    assert boxes(chromium)["matmul_tiled[float32]"][1] < 0.3
    assert complaints(chromium) == []


def test_crumbs_lead_back(chromium: Any, address: str) -> None:
    chromium.get(address)
    choose(chromium, "#flame-case", "matmul_tiled[float16] @ sm80")
    click(chromium, "#flame-graph .k-loop")
    assert text_of(chromium, "#flame-crumbs").replace("\n", " ") == "quickstart › matmul_tiled[float16] › pipelined ko"
    click(chromium, "#flame-crumbs button")
    assert boxes(chromium)["quickstart"][1] == pytest.approx(1)
    assert boxes(chromium)["matmul_tiled[float16]"][1] < 0.1


def test_search_marks_and_a_bad_expression_is_no_error(chromium: Any, address: str) -> None:
    from selenium.webdriver.common.by import By

    chromium.get(address)
    search = chromium.find_element(By.ID, "flame-search")
    hits = "return [...document.querySelectorAll('#flame-graph .hit')].map((b) => b.dataset.name)"
    search.send_keys("/^GEMM/")
    assert set(chromium.execute_script(hits)) == {"gemm A_shared, B_shared"}
    search.clear()
    search.send_keys("/(/")
    assert chromium.execute_script(hits) == []
    assert search.get_attribute("aria-invalid") == "true"
    assert complaints(chromium) == []


def test_tooltips_name_figures_and_their_source(chromium: Any, address: str) -> None:
    chromium.get(address)
    choose(chromium, "#flame-case", "matmul_tiled[float16] @ sm80")
    tip = tooltip_over(chromium, "#flame-graph .k-gemm")
    assert "matmul.py:39" in tip
    assert "shared transactions: 6,291,456 (measured" in tip
    assert "shared transactions: 6,291,456 (simulated" in tip
    assert tooltip_over(chromium, ".matrix .big").startswith(
        "812,400,000 ns\nmeasured · monotonic clock · median of 21 launches"
    )


def test_marks_of_the_roofline_speak_on_focus(chromium: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    chromium.get(address)
    chromium.execute_script("const m = document.querySelectorAll('.mark'); m[0].focus();")
    press(chromium, Keys.TAB)
    tip = text_of(chromium, "#tip").replace("\u00a0", " ")
    assert tip.startswith("matmul_tiled[float32]\nintensity 170.7 FLOP/byte")
    assert "achieved 101 GFLOP/s (measured)" in tip


LINE = """
  const rows = [...document.querySelectorAll('.src[data-file="0"] tbody tr')];
  const row = rows.find((candidate) => candidate.cells[0].textContent === arguments[0]);
  return [...row.cells].slice(1, -1).filter((cell) => !cell.hidden).map((cell) => cell.textContent);"""
"""Script: figures on a line of the first source file."""

CELLS = """
  return [...document.querySelectorAll('.src tbody tr.on')].map((row) =>
    [...row.cells].filter((cell) => !cell.hidden && cell.textContent).map((cell) => cell.className + ':' + cell.textContent));"""
"""Script: classes and texts of all lines with figures."""


def test_source_shows_the_figures_of_the_chosen_case(chromium: Any, address: str) -> None:
    chromium.get(address)
    assert chromium.execute_script(LINE, "39")[:3] == ["66", "950\u00a0k", "1.22\u00a0M"]
    choose(chromium, '.source-case[data-file="0"]', "matmul_padded[float16] @ mi300x")
    assert set(chromium.execute_script(LINE, "39")) == {""}  # another kernel's line
    figures = chromium.execute_script(LINE, "60")
    assert figures == [
        "110",
        "950\u00a0k",
        "1.05\u00a0M",
        "0",
        "—",
    ]  # the last: sectors, not known for a matrix product
    assert complaints(chromium) == []


def test_first_view_of_the_source_is_what_the_file_says(chromium: Any, address: str, tmp_path: Path) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    file = tmp_path / "unpacked.html"
    file.write_text(unpacked(render(make_run())), encoding="utf-8")
    chromium.get(file.as_uri())
    plain = chromium.execute_script(CELLS)
    assert plain
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.get(address)
    assert chromium.execute_script(CELLS) == plain


def stands_as_without_scripts(chromium: Any) -> None:
    assert "812.4" in text_of(chromium, "#summary + section")
    assert "109" in text_of(chromium, "#roofline")
    assert "Operations and their figures: packed in this file" in text_of(chromium, "#flame")
    assert chromium.execute_script("return document.getElementById('flame-panel').offsetHeight") == 0
    assert "6,291,456" in text_of(chromium, "#conflicts")
    assert "packed in this file" in text_of(chromium, "#source")
    shown = "return [...document.querySelectorAll('.needs-js')].filter((e) => e.offsetHeight).length"
    assert chromium.execute_script(shown) == 0


def test_without_scripts_the_main_figures_are_there(chromium: Any, address: str) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    chromium.get(address)
    stands_as_without_scripts(chromium)


def test_a_browser_that_cannot_unpack_shows_what_one_without_scripts_does(chromium: Any, address: str) -> None:
    old = {"source": "delete globalThis.DecompressionStream"}
    added = chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", old)
    try:
        chromium.get(address)
        stands_as_without_scripts(chromium)
        assert complaints(chromium) == []
    finally:
        chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_a_damaged_file_shows_what_one_without_scripts_does(chromium: Any, tmp_path: Path) -> None:
    text = render(make_run())
    start = text.index('id="data">') + 1000
    file = tmp_path / "damaged.html"
    file.write_text(text[:start] + text[start + 400 :], encoding="utf-8")
    chromium.get(file.as_uri())
    stands_as_without_scripts(chromium)
    (complaint,) = complaints(chromium)
    assert "cannot be unpacked" in complaint


def test_an_address_leads_to_its_section_behind_what_is_unpacked(chromium: Any, address: str) -> None:
    chromium.get(address + "#source")
    assert abs(chromium.execute_script("return document.getElementById('source').getBoundingClientRect().top")) < 60
    chromium.get("about:blank")
    chromium.get(address + "#%zz")
    assert complaints(chromium) == []


def test_dark_and_light(chromium: Any, address: str, look: Callable[[Any, str], None]) -> None:
    chromium.get(address)
    assert brightness(chromium, "report-light") > 200
    look(chromium, "dark")
    assert brightness(chromium, "report-dark") < 60
    click(chromium, "#theme")  # against the system's wish
    assert brightness(chromium, "report-toggled") > 200
    assert text_of(chromium, "#theme") == "Dark theme"
    chromium.execute_script("localStorage.removeItem('tileprof-theme')")


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_sticks_out_at_any_width(chromium: Any, address: str, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.get(address)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    brightness(chromium, f"report-{width}")


def test_hostile_names_do_nothing(chromium: Any, tmp_path: Path) -> None:
    name = '</script><script>window.bad=1</script><img src=x onerror="window.bad=2">"\'\u202e' + "y" * 10_000
    case = make_case(
        "matmul_tiled", "float16", "sm80", id=name, kernel=name, target_name=name, reason=name, notes=(name,)
    )
    operations = tuple({**operation, "label": name} for operation in case.operations)
    case = make_case("matmul_tiled", "float16", "sm80", id=name, kernel=name, target_name=name, operations=operations)
    chromium.get(write(make_run(name=name, cases=(case,)), tmp_path / "index.html").as_uri())
    assert chromium.execute_script("return window.bad") is None
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 1440
    assert len(boxes(chromium)) > 0
    assert complaints(chromium) == []


def test_an_empty_run_opens(chromium: Any, tmp_path: Path) -> None:
    chromium.get(write(make_run(cases=(), ceilings=()), tmp_path / "index.html").as_uri())
    assert "The run has no cases." in text_of(chromium, "main")
    assert complaints(chromium) == []
