"""One lock per GPU, so that two runs on a machine take turns instead of measuring each other.

A lock is a file in the machine's temporary folder, held with flock(2): the kernel lets go of it when its holder ends, however
that happens.  The file says who holds it, for the message of those who wait.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from tilelang_min import targets
from tileprof.errors import MeasurementInvalid
from tileprof.launcher.telemetry import first_visible

POLL_S = 0.2
LONGEST_WAIT_S = 6 * 3600.0
"""After so long the holder is taken for hung, and the case ends as invalid: it can be resumed."""

_ASK_SECONDS = 20.0


def first_device(vendor: str, environment: Mapping[str, str] | None = None) -> str:
    """A name for the GPU that launches use: what its chip is called by where that is told, else vendor and number.

    It is the first that the vendor's environment variables leave visible.  NVIDIA's UUID comes from nvidia-smi, AMD's unique number
    from the kernel; partitions of one AMD GPU share it, and take turns.
    """
    if vendor == "amd" and (seen := targets.kfd.visible(targets.amd_gpus(), environment)):
        return f"amd-{seen[0].unique_id or seen[0].node}"
    variable = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES"}.get(vendor, "")
    chosen = first_visible(variable, environment)
    if vendor == "nvidia" and chosen.isdigit():
        chosen = _nvidia_uuids().get(int(chosen), chosen)
    return re.sub(r"[^A-Za-z0-9.-]", "_", f"{vendor}-{chosen}")


@cache
def _nvidia_uuids() -> dict[int, str]:
    """UUIDs by number, as nvidia-smi lists them; CUDA counts in that order where CUDA_DEVICE_ORDER says so or all are alike."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = re.findall(r"^(\d+), *(GPU-[0-9a-f-]+)", answer.stdout, re.MULTILINE)
    return {int(number): uuid for number, uuid in found}


@contextmanager
def held(
    device: str,
    stop: threading.Event,
    waiting: Callable[[str], None] = lambda _: None,
    folder: Path | None = None,
    longest_s: float = LONGEST_WAIT_S,
) -> Iterator[bool]:
    """Hold the lock of ``device`` inside the block; yields False, without the lock, once ``stop`` is set while waiting.

    ``waiting`` hears once who holds it.  Raises MeasurementInvalid after ``longest_s`` seconds.
    """
    path = (folder or Path(tempfile.gettempdir())) / f"tileprof-{device}.lock"
    handle = _open(path)
    if handle is None:  # nowhere to put a lock: measuring without one is better than not at all
        waiting(f"{path} cannot be written, so other runs on this GPU are not kept away")
        yield True
        return
    try:
        end = time.monotonic() + longest_s
        told = False
        while not _take(handle):
            if not told:
                told = True
                waiting(f"another run measures on this GPU (process {_holder(path)}): waiting for it")
            if stop.wait(POLL_S):
                yield False
                return
            if time.monotonic() > end:
                raise MeasurementInvalid(
                    f"the GPU was held by process {_holder(path)} for {longest_s:g} s",
                    remedy="end that process, then continue with --resume",
                )
        with suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield True
    finally:
        os.close(handle)


def _open(path: Path) -> int | None:
    """The lock file for reading and writing; another user's may refuse to be created again, and is then opened as it is.

    The folder is everybody's, so no link is followed: it could lead to a file of ours.
    """
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError:
            continue
        with suppress(OSError):
            os.fchmod(handle, 0o666)
        return handle
    return None


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _holder(path: Path) -> str:
    with suppress(OSError):
        if found := re.match(r"\d+", path.read_text(errors="replace")):
            return found[0]
    return "unknown"
