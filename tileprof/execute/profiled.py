"""Launches a case once more under Nsight Compute, and joins what it counts to the tile operations."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tileprof.analyse.join import join_bundle
from tileprof.collect import ncu, ncu_file
from tileprof.execute.measuring import measuring, run_ncu
from tileprof.execute.results import CaseBuilder
from tileprof.metrics import nvidia
from tileprof.plan.machine import Gpu
from tileprof.store.directory import RunDirectory

_WARM_LAUNCHES = 2


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
    symbol = (builder.compiled or {})["symbol"]
    job = directory.temporary / f"{builder.case.hash}.json"
    job.write_text(json.dumps({**request, "launches": _WARM_LAUNCHES + 1}), encoding="utf-8")
    arch = gpu.binary_arch if gpu is not None else ""
    with measuring(builder, ncu.TOOL, "counters", limit_s):
        found = run_ncu(
            builder,
            [sys.executable, "-m", "tileprof.launcher", str(job)],
            directory,
            limit_s,
            gpu,
            stop,
            symbol=symbol,
            launch_skip=_WARM_LAUNCHES,
            raw=[*raw, *nvidia.requested_for(builder.case.kernel.metrics, arch)],
        )
        if found is None:
            return
        profiled = ncu_file.read(found[0], raw)
        for kernel in profiled.of_symbol(symbol):
            builder.metrics += kernel.raw_metrics()
        for joined in join_bundle(profiled, Path(request["bundle"])):
            builder.metrics += joined.metrics
            for note in joined.notes:
                builder.note(note)
