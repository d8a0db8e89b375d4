"""The timeline of a block in Chromium: bars, names, zoom, keyboard, tooltips, and what an older browser sees."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from test_report_page import complaints, text_of, tooltip_over
from timeline_factory import clocked, ring, run_of

from tileprof.report.html import write

pytestmark = pytest.mark.browser

BARS = """return [...document.querySelectorAll(".lanes [data-span]")].map((bar) => {
  const box = bar.getBoundingClientRect(), list = [...bar.classList];
  return { kind: list[0], phase: list[1], left: box.left, right: box.right, top: box.top, height: box.height };
})"""
INFO = "return document.querySelector('#timeline .info').textContent"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(run_of(clocked(ring())), tmp_path_factory.mktemp("timeline") / "page.html").as_uri()


def test_bars_lie_one_after_the_other_in_lanes_of_their_warp_groups(chromium: Any, address: str) -> None:
    chromium.get(address)
    bars = chromium.execute_script(BARS)
    assert len(bars) == 50
    lanes: dict[int, list[Any]] = {}
    for bar in bars:
        lanes.setdefault(int((bar["top"] - min(b["top"] for b in bars)) // 30), []).append(bar)
    assert {lane: len(own) for lane, own in lanes.items()} == {0: 16, 1: 17, 2: 17}
    for own in lanes.values():
        own.sort(key=lambda bar: bar["left"])
        assert all(one["right"] <= next["left"] + 1.5 for one, next in pairwise(own))
    assert {bar["kind"] for bar in lanes[1]} == {"k-gemm", "k-copy"}
    waits = [bar["right"] - bar["left"] for bar in lanes[1] if bar["phase"] == "waiting"]
    runs = [bar["right"] - bar["left"] for bar in lanes[1] if bar["phase"] == "running" and bar["kind"] == "k-gemm"]
    assert runs[0] / waits[0] == pytest.approx(8.5, rel=0.2)
    assert text_of(chromium, ".lanes-who").split("\n") == ["warp group 0", "warp group 1", "warp group 2"]
    assert "61,850 cycles without a record" in chromium.execute_script(
        "return document.querySelector('.lanes .cut').dataset.tip"
    )
    assert complaints(chromium) == []


def test_zoom_widens_bars_and_gives_them_names(chromium: Any, address: str) -> None:
    chromium.get(address)
    width = "return document.querySelector('.lanes svg').getBoundingClientRect().width"
    names = "return [...document.querySelectorAll('.lanes text:not(.tick)')].map((t) => t.textContent)"
    before = chromium.execute_script(width)
    for _ in range(3):
        chromium.execute_script("document.querySelector('[data-zoom=in]').click()")
    assert chromium.execute_script(width) == pytest.approx(8 * before, rel=0.01)
    assert "39 gemm A_shared, B_shared" in chromium.execute_script(names)
    chromium.execute_script("document.querySelector('[data-zoom=whole]').click()")
    assert chromium.execute_script(width) == pytest.approx(before)
    assert (
        chromium.execute_script("const b = document.querySelector('.lanes'); return b.scrollWidth - b.clientWidth") <= 0
    )


def test_keys_go_through_lanes_and_time(chromium: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    chromium.get(address)
    lanes = chromium.find_element("css selector", ".lanes")
    assert "arrow keys" in chromium.execute_script(INFO)
    said = []
    for key in (
        Keys.ARROW_RIGHT,
        Keys.ARROW_RIGHT,
        Keys.ARROW_DOWN,
        Keys.END,
        Keys.ARROW_RIGHT,
        Keys.HOME,
        "+",
        Keys.ARROW_UP,
    ):
        lanes.send_keys(key)
        said.append(chromium.execute_script(INFO))
    assert said[0].startswith(
        "copy A to A_shared · warp group 0, line 37, execution 1: waiting · 900 cycles, from 0 to 900"
    )
    assert "starting · 30 cycles, from 900 to 930" in said[1]
    assert "gemm A_shared, B_shared · warp group 1" in said[2]
    assert said[3] == said[4]
    assert "2,500 cycles, from 70,000 to 72,500" in said[3]
    assert "from 200 to 300" in said[5]
    assert said[6] == said[5]
    assert "warp group 0" in said[7]
    marked = chromium.execute_script("return document.querySelectorAll('.lanes .at').length")
    assert marked == 1


def test_bars_speak_under_the_pointer(chromium: Any, address: str) -> None:
    chromium.get(address)
    chromium.execute_script("document.querySelector('#timeline').scrollIntoView()")
    tip = tooltip_over(chromium, ".lanes .k-gemm.running")
    assert tip.split("\n")[1:] == ["warp group 1, line 39, execution 1: running", "850 cycles, from 300 to 1,150"]


def test_without_scripts_its_place_says_so(chromium: Any, address: str) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    chromium.get(address)
    assert "packed in this file" in text_of(chromium, "#timeline")
    assert chromium.execute_script("return document.querySelector('.zoom').offsetHeight") == 0


def test_dark_bars_can_be_read(chromium: Any, address: str, look: Callable[[Any, str], None]) -> None:
    look(chromium, "dark")
    chromium.get(address)
    fills = chromium.execute_script(
        "return ['.k-gemm.running', 'text:not(.tick)'].map((s) => getComputedStyle(document.querySelector('.lanes ' + s)).fill)"
    )
    assert fills == ["rgb(122, 67, 18)", "rgb(238, 242, 247)"]


def test_lanes_scroll_within_a_narrow_page(chromium: Any, address: str) -> None:
    narrow = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    chromium.get(address)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 380
    assert chromium.execute_script("const b = document.querySelector('.lanes'); return b.scrollWidth > b.clientWidth")
