"""Whether a machine can run what is compiled for a target, and what its device is called."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tilelang_min.driver.target_names import gpu_architecture
from tilelang_min.errors import TargetError
from tilelang_min.runtime.cpu_threads import default_workers
from tilelang_min.targets import Target, cpu


def device_for(target: Target) -> str | None:
    """Name of this machine's device that runs kernels for ``target``; None without one.

    A cubin runs on GPUs of its compute capability's major number and no lower minor one; that of an architecture with an ``a``
    at its end on no other (CUDA C++ Programming Guide, "Binary Compatibility").
    """
    if target.kind == "cpu":
        return _processor(target.arch)
    here = gpu_architecture()
    if here is None or not _runs(target, here):
        return None
    if target.kind == "hip":
        from tilelang_min.runtime import hip

        return hip.device_info().name
    from tilelang_min.runtime import cuda

    return cuda.device_info().name


def _runs(target: Target, here: str) -> bool:
    if target.kind == "hip" or target.arch.endswith("a"):
        return here == f"{target.kind}:{target.arch}"
    ours, theirs = _capability(target.arch), _capability(here.partition(":")[2])
    return (
        here.startswith("cuda:") and ours is not None and theirs is not None and ours[0] == theirs[0] and ours <= theirs
    )


def _capability(arch: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"sm_(\d+)(\d)a?", arch)
    return None if found is None else (int(found[1]), int(found[2]))


def _processor(level: str) -> str | None:
    try:
        if cpu.ARCHITECTURES.index(level) > cpu.ARCHITECTURES.index(cpu.detect()):
            return None
    except TargetError:
        return None
    threads = default_workers()
    return f"{_model()}, {threads} thread{'' if threads == 1 else 's'}"


@cache
def _model() -> str:
    """What the system calls the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "CPU"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else "CPU"
