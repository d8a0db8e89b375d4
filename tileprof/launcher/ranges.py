"""Ranges around launches, by which profilers show which launch belongs to what: NVTX and ROCTX.

NVTX where the package ``nvtx`` is there.  ROCTX where a profiler is listening: rocprofv3 loads its library into the program, whose
functions are then among the program's own.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


@cache
def _roctx() -> Any:
    """The program's functions, where those of ROCTX are among them."""
    program = ctypes.CDLL(None)
    return program if hasattr(program, "roctxRangePushA") and hasattr(program, "roctxRangePop") else None


@contextmanager
def named(name: str) -> Iterator[None]:
    """A range called ``name`` around the block."""
    nvtx, roctx = _nvtx(), _roctx()
    if nvtx is not None:
        nvtx.push_range(name)
    if roctx is not None:
        roctx.roctxRangePushA(ctypes.c_char_p(name.encode()))
    try:
        yield
    finally:
        if roctx is not None:
            roctx.roctxRangePop()
        if nvtx is not None:
            nvtx.pop_range()
