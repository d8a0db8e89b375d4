"""Running NVIDIA Nsight Systems: is it here, and its command line.  Reading its exports is in ``nsys_file.py``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tileprof.collect.tool import Availability, find_tool, identified, refused_option, with_nvidia_driver
from tileprof.errors import MeasurementInvalid, ProfilerUnavailable

TOOL = "nsys"
NEWER = "install a newer Nsight Systems and put nsys on PATH, or name it in TILEPROF_NSYS"
INSTALL = "install NVIDIA Nsight Systems and put nsys on PATH, or name it in TILEPROF_NSYS"

_PLACES = (
    "opt/nvidia/nsight-systems/*/bin/nsys",
    "opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
)


def find(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of nsys: TILEPROF_NSYS, then PATH, then the newest of the usual installation folders under ``root``."""
    return find_tool(TOOL, "TILEPROF_NSYS", _PLACES, environment, root)


def parse_version(text: str) -> str:
    """``2025.3.1.90`` from what ``nsys --version`` prints; "" if it says none."""
    found = re.search(r"\d{4}\.\d+(\.\d+)*", text)
    return found[0] if found else ""


def available(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether nsys can trace here, found out without running a kernel; traces of kernels need no permission."""
    found = identified(TOOL, find(environment, root), parse_version, INSTALL)
    return with_nvidia_driver(found, root) if found.usable else found


def command(nsys: str, child: Sequence[str], report: Path, *, nvtx: bool = True) -> list[str]:
    """Command line that traces CUDA (and NVTX ranges) of ``child``, and writes ``report`` with an SQLite export beside it.

    CPU sampling is off: it needs permissions, and says nothing about kernels.  Children that the program forks are traced from
    their start, and graphs by node, so that their kernels are seen.
    """
    traced = "cuda,nvtx" if nvtx else "cuda"
    return [
        nsys, "profile", "--trace", traced, "--sample", "none", "--cpuctxsw", "none", "--cuda-graph-trace", "node",
        "--trace-fork-before-exec", "true",
        "--export", "sqlite", "--force-overwrite", "true", "--output", str(report.with_suffix("")), *child,
    ]  # fmt: skip


def check(status: int, output: str, export: Path) -> None:
    """Raise what a run of nsys without an export means: MeasurementInvalid, or ProfilerUnavailable where it cannot work here."""
    if export.is_file() and export.stat().st_size:
        return
    said = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next((line for line in said if re.search(r"error|fail|cannot|unable", line, re.IGNORECASE)), "")
    shown = reason or (said[-1] if said else "no message")
    if (refused := refused_option(said)) is not None:
        raise ProfilerUnavailable(f"{TOOL}: this release does not know an option: {refused}", remedy=NEWER)
    if re.search(r"not supported|missing|No such file|shared librar", shown, re.IGNORECASE):
        raise ProfilerUnavailable(f"{TOOL}: {shown}", remedy=INSTALL)
    raise MeasurementInvalid(f"{TOOL}: no trace was written (status {status}): {shown}", remedy="try again")
