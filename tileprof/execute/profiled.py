"""Launches a case once more under a counter tool, and joins what it counts to the tile operations.

A tool that fails costs the counters of the case, never its time: that comes from the unprofiled launches before.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tileprof.analyse.join import join_bundle
from tileprof.collect import ncu, ncu_file
from tileprof.errors import MeasurementInvalid, TileprofError
from tileprof.execute.child import ChildTimeout, run_command
from tileprof.execute.results import CaseBuilder
from tileprof.metrics import nvidia
from tileprof.plan.machine import Gpu
from tileprof.store.directory import RunDirectory

_WARM_LAUNCHES = 2


def _arch(gpu: Gpu | None) -> str:
    """``sm_90`` of a GPU of compute capability 9.0; "" where there is none."""
    return f"sm_{gpu.arch.replace('.', '')}" if gpu is not None else ""


def profile_with_ncu(
    builder: CaseBuilder,
    request: dict[str, Any],
    directory: RunDirectory,
    limit_s: float,
    raw: Sequence[str],
    gpu: Gpu | None,
    stop: threading.Event,
) -> None:
    """Run the launcher under Nsight Compute on ``gpu`` and add the measured metrics of the case to ``builder``.

    ``request`` is what the launcher was asked, ``raw`` names further counters.  Setting ``stop`` ends it early.
    """
    compiled = builder.compiled or {}
    job = directory.temporary / f"{builder.case.hash}.json"
    report = directory.raw / f"{builder.case.hash}.ncu-rep"
    log = directory.raw / f"{builder.case.hash}.ncu.log"
    job.write_text(json.dumps({**request, "launches": _WARM_LAUNCHES + 1}), encoding="utf-8")
    builder.begin()
    try:
        path = ncu.find()
        if path is None:
            builder.note("no counters: ncu is gone")
            return
        command = ncu.command(
            path,
            [sys.executable, "-m", "tileprof.launcher", str(job)],
            symbol=compiled["symbol"],
            report=report,
            log=log,
            major=int(gpu.arch.partition(".")[0]) if gpu is not None else None,
            launch_skip=_WARM_LAUNCHES,
            raw=[*raw, *nvidia.requested_for(builder.case.kernel.metrics, _arch(gpu))],
        )
        output = directory.temporary / f"{builder.case.hash}.ncu.out"
        status = run_command(command, limit_s, output, stop)
        if status is None:
            return
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        ncu.check_log(text, status, symbol=compiled["symbol"])
        profiled = ncu_file.read(report, raw)
        for kernel in profiled.of_symbol(compiled["symbol"]):
            builder.metrics += kernel.raw_metrics()
        for joined in join_bundle(profiled, Path(request["bundle"])):
            builder.metrics += joined.metrics
            for note in joined.notes:
                builder.note(note)
    except ChildTimeout:
        builder.note(f"no counters: ncu did not end within {limit_s:g} s")
    except MeasurementInvalid as error:
        builder.fail("invalid_measurement", str(error))
    except TileprofError as error:
        builder.note(f"no counters: {error}")
    finally:
        builder.end()
