"""NVTX ranges around launches, where the package ``nvtx`` is there: profilers then show which launch belongs to what."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _library() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


@contextmanager
def named(name: str) -> Iterator[None]:
    """A range called ``name`` around the block."""
    library = _library()
    if library is None:
        yield
        return
    library.push_range(name)
    try:
        yield
    finally:
        library.pop_range()
