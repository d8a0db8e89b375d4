"""Running NVIDIA Nsight Systems: is it here, and its command line.  Reading its exports is in ``nsys_file.py``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tileprof.collect.tool import Availability
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable

TOOL = "nsys"
INSTALL = "install NVIDIA Nsight Systems and put nsys on PATH, or name it in TILEPROF_NSYS"

_PLACES = (
    "opt/nvidia/nsight-systems/*/bin/nsys",
    "opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
)


def find(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of nsys: TILEPROF_NSYS, then PATH, then the newest of the usual installation folders under ``root``."""
    environment = os.environ if environment is None else environment
    if named := environment.get("TILEPROF_NSYS"):
        return shutil.which(named)
    if path := shutil.which("nsys", path=environment.get("PATH", "")):
        return path
    runnable = [place for pattern in _PLACES for place in root.glob(pattern) if os.access(place, os.X_OK)]
    return str(max(runnable, key=lambda place: [int(n) for n in re.findall(r"\d+", str(place))])) if runnable else None


def available(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether nsys can trace here, found out without running a kernel; traces of kernels need no permission."""
    path = find(environment, root)
    if path is None:
        return Availability(TOOL, False, why="not found", remedy=INSTALL)
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(TOOL, False, path, why=f"{path} --version does not run: {error}", remedy=INSTALL)
    found = re.search(r"\d{4}\.\d+(\.\d+)*", answer.stdout)
    if found is None:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        why = f"{path} --version says no version" + (f": {said[-1]}" if said else "")
        return Availability(TOOL, False, path, why=why, remedy=INSTALL)
    if not (root / "proc/driver/nvidia/version").exists() and not any(root.glob("dev/nvidia[0-9]*")):
        return Availability(TOOL, False, path, found[0], "no NVIDIA driver or GPU here", "use a machine that has both")
    return Availability(TOOL, True, path, found[0])


def command(nsys: str, child: Sequence[str], report: Path, *, nvtx: bool = True) -> list[str]:
    """Command line that traces CUDA (and NVTX ranges) of ``child``, and writes ``report`` with an SQLite export beside it.

    CPU sampling is off: it needs permissions, and says nothing about kernels.
    """
    traced = "cuda,nvtx" if nvtx else "cuda"
    return [
        nsys, "profile", "--trace", traced, "--sample", "none", "--cpuctxsw", "none", "--cuda-graph-trace", "node",
        "--export", "sqlite", "--force-overwrite", "true", "--output", str(report.with_suffix("")), *child,
    ]  # fmt: skip


def check(status: int, output: str, export: Path) -> None:
    """Raise what a run of nsys without an export means: MeasurementInvalid, or ProfilerUnavailable where it cannot work here."""
    if export.is_file() and export.stat().st_size:
        return
    said = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next((line for line in said if re.search(r"error|fail|cannot|unable", line, re.IGNORECASE)), "")
    shown = reason or (said[-1] if said else "no message")
    if re.search(r"not supported|missing|No such file|shared librar", shown, re.IGNORECASE):
        raise ProfilerUnavailable(f"{TOOL}: {shown}", remedy=INSTALL)
    raise MeasurementInvalid(f"{TOOL}: no trace was written (status {status}): {shown}", remedy="try again")
