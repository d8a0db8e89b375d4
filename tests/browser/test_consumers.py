"""Our exports in speedscope itself, which also reads collapsed stacks and Chrome traces.

Needs the npm package ``speedscope`` unpacked (``npm pack speedscope && tar xzf speedscope-*.tgz``) and ``TILEPROF_SPEEDSCOPE``
naming its ``dist/release``; nothing of it is kept here.  Perfetto's trace processor needs no browser: ``report/test_perfetto.py``.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tileprof.report import folded, speedscope, trace
from tileprof.store.reader import read_run

pytestmark = pytest.mark.browser

RECORDED = Path(__file__).resolve().parents[2] / "reports/h200-quickstart/run.sqlite"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("flame.speedscope.json", "h200: time (measured)"),
        ("flame.folded", "flame.folded"),
        ("trace.json", "h200 (cuda:sm_90a)"),
    ],
)
def test_speedscope_opens(chromium: Any, tmp_path: Path, name: str, title: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    place = os.environ.get("TILEPROF_SPEEDSCOPE")
    if not place:
        pytest.skip("speedscope is not here (TILEPROF_SPEEDSCOPE names its dist/release)")
    run = read_run(RECORDED)
    text = {"flame.speedscope.json": speedscope, "flame.folded": folded, "trace.json": trace}[name].render(run)
    script = tmp_path / "profile.js"
    packed = base64.b64encode(text.encode()).decode()
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(name)}, {json.dumps(packed)})")
    chromium.get(f"{(Path(place) / 'index.html').resolve().as_uri()}#localProfilePath={script}")
    WebDriverWait(chromium, 60).until(lambda driver: title in driver.title or title in driver.page_source)
    assert "could not be" not in chromium.page_source.lower()
