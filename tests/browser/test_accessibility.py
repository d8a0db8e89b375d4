"""axe-core's rules (WCAG 2.1 A and AA, and best practice) on every page, in both themes; and the keyboard's way through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_factory import make_run
from timeline_factory import clocked, ring, run_of

from tileprof.analyse.compare import compare, difference_trees, pairs_of
from tileprof.report import compare_page
from tileprof.report.html import write
from tileprof.store.reader import read_run

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 180

RUN = """
  const done = arguments[arguments.length - 1];
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
  axe.run(document, { resultTypes: ["violations"], runOnly: { type: "tag", values: tags } }).then(
    (found) => done(found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id} ${node.target}`))),
    (error) => done([String(error)]));"""


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script, as the package axe-core-python carries it."""
    package = pytest.importorskip("axe_core_python")
    (script,) = Path(package.__file__).parent.rglob("axe.min.js")
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of a report and a comparison."""
    folder = tmp_path_factory.mktemp("pages")
    recorded = read_run(ROOT / "reports/h200-quickstart/run.sqlite")
    pairs = pairs_of(recorded, recorded)[:4]
    comparison = folder / "compare.html"
    comparison.write_text(
        compare_page.render(compare(pairs, "a", "b"), difference_trees(pairs, "both"), "0.1.0"), "utf-8"
    )
    return {
        "report": write(make_run(), folder / "report.html").as_uri(),
        "comparison": comparison.as_uri(),
        "timeline": write(run_of(clocked(ring())), folder / "timeline.html").as_uri(),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "comparison", "timeline"])
def test_no_rule_is_broken(chromium: Any, look: Any, axe: str, pages: dict[str, str], name: str, scheme: str) -> None:
    look(chromium, scheme)
    chromium.set_script_timeout(LIMIT_S)
    chromium.get(pages[name])
    chromium.execute_script(axe)
    assert chromium.execute_async_script(RUN) == []


def test_tab_reaches_every_part_and_nothing_twice(chromium: Any, pages: dict[str, str]) -> None:
    """In the order of the page, and without a trap."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    chromium.get(pages["report"])
    order = chromium.execute_script(
        """return [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
             .filter((e) => e.tabIndex >= 0 && !e.disabled && e.getClientRects().length)
             .map((e, i) => { e.dataset.order = i; return i; }).length"""
    )
    seen = []
    for _ in range(12):
        ActionChains(chromium).send_keys(Keys.TAB).perform()
        seen.append(int(chromium.execute_script("return document.activeElement.dataset.order ?? -1")))
    assert seen == list(range(12))
    assert order > 40
