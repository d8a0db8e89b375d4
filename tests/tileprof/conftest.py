"""Makes ``run_factory`` importable and hands its runs out as fixtures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run_factory import make_run  # noqa: E402

from tileprof.store.records import Run  # noqa: E402


@pytest.fixture(scope="session")
def run() -> Run:
    """The synthetic quickstart: 24 cases."""
    return make_run()
