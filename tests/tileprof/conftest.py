"""Makes ``run_factory`` importable and hands its runs out as fixtures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run_factory import make_run

from tileprof.store.records import Run


@pytest.fixture(scope="session")
def run() -> Run:
    """The synthetic quickstart: 24 cases."""
    return make_run()
