"""Size and speed of the HTML report: one kernel, a thousand cases, and a flame graph of 40,000 frames.

    python benchmarks/report.py [--cases 1 1000] [--frames 40000] [--keep DIR]

Cases are those of ``reports/h200-quickstart``, repeated under other tile sizes, with all their counters.  ``rendered``
is the time to make the page; ``usable`` the time in Chromium, headless and without a network, from the start of loading until the
page's script has run and two frames have been painted; ``zoom`` and ``search`` are a click and a search in the flame graph, until
painted.  Medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tileprof.report.html import render
from tileprof.store.reader import read_run
from tileprof.store.records import CaseResult, Run

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "reports/h200-quickstart/run.sqlite"

SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--window-size=1440,1000",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking",
)  # fmt: skip

USABLE = """
  const done = arguments[0];
  const look = () => (document.documentElement.matches(".ready")
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))) : setTimeout(look, 1));
  look();"""
"""Milliseconds since the navigation began, once the page is unpacked and two more frames are painted."""

ACTION = """
  const [selector, text, done] = arguments;
  const start = performance.now(), element = document.querySelector(selector);
  if (text === null) element.click();
  else { element.value = text; element.dispatchEvent(new Event("input")); }
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));"""


def many(count: int) -> Run:
    """A run of so many cases: the recorded ones in turn, each repetition with another block_M."""
    run = read_run(RECORDED)
    cases = [_variant(run.cases[index % len(run.cases)], index // len(run.cases)) for index in range(count)]
    return dataclasses.replace(run, cases=tuple(cases))


def one() -> Run:
    """A run of one kernel in one case: the one with most figures."""
    run = read_run(RECORDED)
    return dataclasses.replace(run, cases=(max(run.cases, key=lambda case: len(case.metrics)),))


def _variant(case: CaseResult, repetition: int) -> CaseResult:
    tiles = {**case.tiles, "block_M": 16 * (repetition + 1)}
    identifier = case.id.replace("]@", f",block_M={tiles['block_M']}]@")
    return dataclasses.replace(case, id=identifier, tiles=tiles, hash=f"{case.hash}{repetition}")


def frames(count: int) -> Run:
    """A run whose flame tree has about so many nodes: cases of 2,000 operations each, for want of a kernel so large."""
    run = one()
    case, operations = run.cases[0], 2000
    sample = case.operations[-1]
    numbers = range(operations)
    made = [{**sample, "id": i, "parent": None if i == 0 else i - 1 - (i - 1) % 10 if i % 10 else 0, "label": f"copy {i}",
             "kind": "kernel" if i == 0 else "copy"} for i in numbers]  # fmt: skip
    example = next(m for m in case.metrics if m.metric == "executed.instructions" and m.operation is not None)
    metrics = tuple(dataclasses.replace(example, operation=i, value=float(100 + i % 97)) for i in numbers)
    cases = [
        dataclasses.replace(
            case, id=f"case {i}@h200", operations=tuple(made), metrics=metrics, metadata=None, tiles={"i": i}
        )
        for i in range(count // operations)
    ]
    return dataclasses.replace(run, cases=tuple(cases))


def start() -> Any:
    """Chromium through its own driver, or None where it is missing."""
    program, browser = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if program is None or browser is None:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for switch in SWITCHES:
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(program))
    driver.set_script_timeout(120)
    return driver


def measure(name: str, run: Run, driver: Any, folder: Path, times: int) -> None:
    """Render, load and use one page; print a row."""
    begin = time.perf_counter()
    text = render(run)
    rendered = time.perf_counter() - begin
    path = folder / f"{name.replace(' ', '-').replace(',', '')}.html"
    path.write_text(text, encoding="utf-8")
    row = f"{name:16} {len(text.encode()) / 1e3:9,.0f} kB  rendered {rendered:6.2f} s"
    if driver is not None:
        usable, zoom, search = [], [], []
        for _ in range(times):
            driver.get(path.as_uri())
            usable.append(driver.execute_async_script(USABLE))
            zoom.append(driver.execute_async_script(ACTION, "#flame-graph [data-node]:nth-child(2)", None))
            search.append(driver.execute_async_script(ACTION, "#flame-search", "copy"))
        nodes = driver.execute_script("return document.querySelectorAll('*').length")
        row += f"  usable {median(usable) / 1e3:5.2f} s  zoom {median(zoom):4.0f} ms  search {median(search):4.0f} ms"
        row += f"  {nodes:,} nodes"
    print(row, flush=True)


def main() -> None:
    """Measure the pages that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="*", default=[12, 1000])
    parser.add_argument("--frames", type=int, default=40000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="keep the pages here")
    options = parser.parse_args()
    driver = start()
    if driver is None:
        print("no Chromium here: sizes and rendering only")
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            measure("one kernel", one(), driver, folder, options.times)
            for count in options.cases:
                measure(f"{count:,} cases", many(count), driver, folder, options.times)
            if options.frames:
                measure(f"{options.frames:,} frames", frames(options.frames), driver, folder, options.times)
    finally:
        if driver is not None:
            driver.quit()


if __name__ == "__main__":
    main()
