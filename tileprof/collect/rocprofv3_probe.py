"""A real counter read with rocprofv3: launches a small kernel of ours under it and says what became of one counter.

Files tell only part of it: containers, permissions, a rocprofv3 of another ROCm than the program's.  The counter is that of
wavefronts, whose value is known exactly, so a value that is read is also checked: AMD's counters read zero where they may not be
read.  The kernel is compiled once for an architecture, in a process of its own, and kept in the compiler's cache.  No AMD GPU was
at hand.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import tileprof
from tileprof.collect import rocprofv3
from tileprof.collect.ncu_probe import FAILED, HUNG, IMPLAUSIBLE, NO_LAUNCH, NOTHING, READ, CounterRead
from tileprof.collect.rocprofv3 import Selection
from tileprof.collect.tool import Availability, run_in_group
from tileprof.errors import CaseFailed, MeasurementInvalid, TileprofError
from tileprof.plan.passes import PassPlan

COUNTER = "SQ_WAVES"
KERNEL = "copy"
BLOCKS, THREADS, BLOCK = 8, 256, 1024
WAVES = BLOCKS * THREADS // 64
"""What the counter must say."""
LIMIT_S = 120.0
"""The longest that each of compiling and reading may take."""

_COMPILE = """
import sys
from tileprof.collect.calibration_kernels import copy
copy.for_target(sys.argv[1])({size}, block={block}, threads={threads}).save(sys.argv[2])
"""
_ZERO = (
    "end other programs that count on this GPU; with CAP_PERFMON (as root, or docker run --cap-add=PERFMON) rocprofv3 keeps "
    "it for itself"
)
_OTHER_ROCM = "use the rocprofv3 of the ROCm that the program loads (ROCM_PATH, or the one that torch brings)"


def read_counter(found: Availability, arch: str, limit_s: float = LIMIT_S) -> tuple[Availability, CounterRead]:
    """rocprofv3, ``found`` usable, as a read on a GPU of ``arch`` leaves it, and the read."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tileprof-probe-") as folder:
        read = replace(_read(found, arch, Path(folder), limit_s), seconds=time.monotonic() - began)
    return read.applied(found), read


def _read(found: Availability, arch: str, folder: Path, limit_s: float) -> CounterRead:
    root = str(Path(tileprof.__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))}
    bundle, job, said = folder / "bundle", folder / "job.json", folder / "output"
    code = _COMPILE.format(size=BLOCKS * BLOCK, block=BLOCK, threads=THREADS)
    if run_in_group([sys.executable, "-c", code, f"hip:{arch}", str(bundle)], said, limit_s, environment) != 0:
        return CounterRead(
            NO_LAUNCH, f"the kernel to try it with cannot be compiled: {_last(said)}", "see tileprof doctor"
        )
    job.write_text(json.dumps({"bundle": str(bundle), "inputs": {}, "seed": 0, "launches": 2}), encoding="utf-8")
    child = [sys.executable, "-m", "tileprof.launcher", str(job)]
    (line,) = rocprofv3.counter_commands(
        found.path, child, PassPlan(((COUNTER,),)), folder / "out", selection=Selection(KERNEL, 1, 2)
    )
    try:
        status = run_in_group(line, said, limit_s, environment)
    except OSError as error:
        return CounterRead(FAILED, f"{found.path} cannot be run: {error.strerror}", rocprofv3.INSTALL)
    if status is None:
        remedy = (
            "see whether rocm-smi answers, and whether another program counts; to try it by hand: "
            f"{found.path} --pmc {COUNTER} -- PROGRAM, any that launches a kernel"
        )
        return CounterRead(HUNG, f"a counter read did not end within {limit_s:g} s", remedy)
    return _judge(folder / "out", said.read_text(encoding="utf-8", errors="replace"), status)


def _judge(output: Path, log: str, status: int) -> CounterRead:
    """What the command left behind."""
    try:
        profile = rocprofv3.collected(output, log, status)
    except TileprofError as error:
        kind = (
            NOTHING if isinstance(error, MeasurementInvalid) else NO_LAUNCH if isinstance(error, CaseFailed) else FAILED
        )
        remedy = error.remedy or "run the same command by hand"
        return CounterRead(kind, error.message.removeprefix(f"{rocprofv3.TOOL}: "), remedy)
    values = [launch.raw[COUNTER] for launch in profile.of_kernel(KERNEL) if COUNTER in launch.raw]
    if not values:
        return CounterRead(NOTHING, f"{COUNTER} of the kernel to try it with has no value", _OTHER_ROCM)
    if values[-1] != WAVES:
        text = f"{COUNTER} reads {values[-1]:g} where {WAVES} wavefronts were launched"
        return CounterRead(IMPLAUSIBLE, text, _ZERO if values[-1] == 0 else _OTHER_ROCM, values[-1])
    return CounterRead(READ, f"a counter was read: {COUNTER} = {WAVES}, as launched", value=values[-1])


def _last(output: Path) -> str:
    """The last line that a command printed."""
    lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it says nothing"
