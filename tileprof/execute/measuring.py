"""A case once more under a measuring tool: what goes wrong costs what the tool would have told, never the case's time.

The time comes from the unprofiled launches before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tileprof.collect import ncu
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable, TileprofError
from tileprof.execute.child import ChildTimeout, run_command
from tileprof.execute.results import CaseBuilder
from tileprof.plan.machine import Gpu
from tileprof.store.directory import RunDirectory


@contextmanager
def measuring(builder: CaseBuilder, tool: str, what: str, limit_s: float) -> Iterator[None]:
    """Inside the block ``tool`` measures ``what`` (``counters``) of the case; its failures end the block and go to the builder.

    A measurement that is invalid makes the case so; without the tool, out of time, or where the system refuses, there is a note.
    """
    builder.begin()
    try:
        yield
    except ChildTimeout:
        builder.note(f"no {what}: {tool} did not end within {limit_s:g} s")
    except MeasurementInvalid as error:
        builder.fail("invalid_measurement", str(error))
    except (TileprofError, OSError) as error:
        builder.note(f"no {what}: {error}")
    finally:
        builder.end()


def run_ncu(
    name: str,
    child: Sequence[str],
    directory: RunDirectory,
    limit_s: float,
    gpu: Gpu | None,
    stop: threading.Event,
    cwd: Path | None = None,
    *,
    symbol: str | None = None,
    journal: Path | None = None,
    **selection: Any,
) -> tuple[Path, ncu.Log] | None:
    """Run ``child`` under Nsight Compute on ``gpu``: the report, and what the log says; None once ``stop`` is set.

    ``name`` is that of the files.  ``symbol`` and ``selection`` are those of :func:`tileprof.collect.ncu.command`, ``journal`` that
    of :func:`tileprof.execute.child.timed_command`.  Raises what :func:`tileprof.collect.ncu.check_log` and that function raise,
    and ProfilerUnavailable where ncu is gone: to be called while :func:`measuring`.
    """
    report = directory.raw / f"{name}.ncu-rep"
    log = directory.raw / f"{name}.ncu.log"
    path = ncu.find()
    if path is None:
        raise ProfilerUnavailable("ncu is gone")
    major = int(gpu.arch.partition(".")[0]) if gpu is not None else None
    command = ncu.command(path, child, symbol=symbol, report=report, log=log, major=major, **selection)
    output = directory.temporary / f"{name}.ncu.out"
    status = run_command(command, limit_s, output, stop, cwd=cwd, journal=journal)
    if status is None:
        return None
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if status and not text:  # it refused its command line before it had a log
        text = output.read_text(encoding="utf-8", errors="replace")
    return report, ncu.check_log(text, status, symbol=symbol or "")
