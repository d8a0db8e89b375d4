"""Headless Chromium with the network shut, driven through its own WebDriver."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tileprof"))

# Everything is refused before it leaves: no name resolves, no proxy answers.  The other switches keep Chromium from trying.
SWITCHES = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
    "--hide-scrollbars", "--window-size=1440,1000", "--force-device-scale-factor=1", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
)  # fmt: skip


@pytest.fixture(scope="session")
def drivers() -> Iterator[list[Any]]:
    """WebDrivers that this session started; all end with it."""
    started: list[Any] = []
    yield started
    for driver in started:
        driver.quit()


@pytest.fixture
def chromium(browser: str, drivers: list[Any]) -> Any:
    """A WebDriver, started once a session and reset for each test; scripts run, the system prefers light colours."""
    if not drivers:
        drivers.append(_start(browser))
    driver = drivers[0]
    driver.get("about:blank")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    prefer(driver, "light")
    for log in ("browser", "performance"):
        driver.get_log(log)
    return driver


@pytest.fixture
def look() -> Callable[[Any, str], None]:
    """``prefers-color-scheme`` as if the system had it."""
    return prefer


def prefer(driver: Any, scheme: str) -> None:
    """Makes the page believe that the system prefers ``light`` or ``dark``."""
    # Without motion, for a smooth scroll would carry elements away from under the pointer.
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _start(browser: str) -> Any:
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.support.ui import WebDriverWait
    except ImportError:
        wanted = os.environ.get("TILEPROF_REQUIRE_BROWSER") == "1"
        (pytest.fail if wanted else pytest.skip)("selenium is not installed (pip install selenium)")

    program = shutil.which("chromedriver")
    if program is None:
        pytest.fail("Chromium is here and chromedriver is not (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for switch in SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(program))
    load = driver.get

    def get(url: str) -> None:
        """Loads a page, and waits for ours until it has unpacked itself."""
        load(url)
        waiting = "return document.documentElement.matches('.js:not(.ready)')"
        WebDriverWait(driver, 30, 0.02).until(lambda _: not driver.execute_script(waiting))

    driver.get = get
    return driver
