"""Launches a case once more under Nsight Systems: the times of its launches on the device's own timeline.

They stand beside the timer's: a trace adds work to each call, and none to the kernel itself.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tileprof.collect import nsys, nsys_file
from tileprof.collect.profile import ForeignProfile
from tileprof.execute.child import ChildTimeout, run_command
from tileprof.execute.measuring import measuring
from tileprof.execute.results import CaseBuilder
from tileprof.metrics import make
from tileprof.store.directory import RunDirectory
from tileprof.store.records import Provenance

WARM_LAUNCHES, LAUNCHES = 3, 20


def trace(
    builder: CaseBuilder,
    child: Sequence[str],
    directory: RunDirectory,
    limit_s: float,
    stop: threading.Event,
    cwd: Path | None = None,
) -> ForeignProfile | None:
    """Run ``child`` under nsys and read what it recorded; None where the builder was told why there is nothing, or on ``stop``."""
    report = directory.raw / f"{builder.case.hash}.nsys-rep"
    output = directory.temporary / f"{builder.case.hash}.nsys.out"
    export = report.with_suffix(".sqlite")
    path = nsys.find()
    if path is None:
        builder.note("no trace: nsys is gone")
        return None
    try:
        with measuring(builder, nsys.TOOL, "trace", limit_s):
            try:
                status = run_command(nsys.command(path, child, report), limit_s, output, stop, cwd=cwd)
            except ChildTimeout:  # programs that import some versions of Triton hang while their ranges are recorded
                builder.note(f"{nsys.TOOL} did not end within {limit_s:g} s: traced again without NVTX ranges")
                status = run_command(nsys.command(path, child, report, nvtx=False), limit_s, output, stop, cwd=cwd)
            if status is None:
                return None
            nsys.check(status, output.read_text(encoding="utf-8", errors="replace"), export)
            return nsys_file.read(export)
    finally:
        report.unlink(missing_ok=True)  # it holds the whole environment
        export.unlink(missing_ok=True)  # and so does its export
    return None


def trace_kernel(
    builder: CaseBuilder, request: dict[str, Any], directory: RunDirectory, limit_s: float, stop: threading.Event
) -> None:
    """Trace launches of one of our kernels; its median time on the device joins the case."""
    job = directory.temporary / f"{builder.case.hash}.nsys.json"
    named = {**request, "launches": WARM_LAUNCHES + LAUNCHES, "name": builder.case.id}
    try:
        job.write_text(json.dumps(named), encoding="utf-8")
    except OSError as error:
        builder.note(f"no trace: {error}")
        return
    profile = trace(builder, [sys.executable, "-m", "tileprof.launcher", str(job)], directory, limit_s, stop)
    if profile is None:
        return
    symbol = (builder.compiled or {})["symbol"]
    own = [launch for launch in profile.launches if symbol in (launch.symbol, launch.kernel)]
    times = [launch.duration_ns for launch in own[WARM_LAUNCHES:] if launch.duration_ns is not None]
    if not times:
        seen = ", ".join(sorted({launch.kernel for launch in profile.launches})) or "none"
        builder.fail("invalid_measurement", f"nsys recorded no launch of kernel {symbol}; kernels it saw: {seen}")
        return
    detail = f"median of {len(times)} launches in a trace, {min(times):.0f} to {max(times):.0f} ns, warm cache"
    record = make("time.profiled_ns", statistics.median(times), Provenance("measured", "nsys", profile.version, detail))
    if record is not None:
        builder.metrics.append(record)
