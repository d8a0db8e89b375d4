"""Several cases in one process under a profiler: a few launches each, of which the last is recorded.

The start of a process, of the driver and of the profiler costs seconds, more than replaying a kernel, so cases share them.  The
profiler is told when to record (``cuProfilerStart``).  While it replays a launch, the next case's arrays are made.
"""

from __future__ import annotations

import ctypes
import json
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tilelang_min as tilelang
from tileprof.launcher.jobs import CaseRunner

WARM_LAUNCHES = 2
"""Launches before the one that is recorded."""


def record_cases(cases: Sequence[dict[str, Any]], journal: Path) -> None:
    """Record one launch of each case, and write to ``journal`` a line when it begins and one when it ended or failed.

    Lines: ``{"case": number, "state": "begun" | "recorded" | "failed", "reason": text}``.  A case that fails costs itself alone,
    unless it takes the process or the device's context with it.
    """
    with journal.open("a", encoding="utf-8") as file, ThreadPoolExecutor(max_workers=1) as maker:

        def tell(number: int, state: str, reason: str = "") -> None:
            file.write(json.dumps({"case": number, "state": state, "reason": reason}) + "\n")
            file.flush()

        coming = maker.submit(CaseRunner, cases[0], checked=False)
        for number in range(len(cases)):
            tell(number, "begun")
            made = coming
            if number + 1 < len(cases):
                coming = maker.submit(CaseRunner, cases[number + 1], checked=False)
            try:
                _record(made.result())
            except (tilelang.errors.TileLangError, OSError, MemoryError) as error:
                tell(number, "failed", str(error) or type(error).__name__)
            else:
                tell(number, "recorded")


def _record(runner: CaseRunner) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arrays are copied to the GPU and back on purpose
        with runner.kernel.get_profiler().launching(*runner.arguments.values()) as launch:
            for _ in range(WARM_LAUNCHES):
                launch()
            with _recording(runner.kind):
                launch()


@contextmanager
def _recording(kind: str) -> Iterator[None]:
    """The profiler records what the block launches, and nothing that was launched before."""
    if kind != "cuda":
        yield
        return
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuCtxSynchronize()
    if driver.cuProfilerStart():
        raise tilelang.errors.LaunchError("the NVIDIA driver cannot start the profiler")
    try:
        yield
        if status := driver.cuCtxSynchronize():
            raise tilelang.errors.LaunchError(f"the launch ended with status {status} of the NVIDIA driver")
    finally:
        driver.cuProfilerStop()
