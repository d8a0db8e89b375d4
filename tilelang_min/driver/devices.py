"""Whether a machine can run what is compiled for a target, and what its device is called."""

from __future__ import annotations

from tilelang_min.driver.target_names import gpu_architecture
from tilelang_min.errors import TargetError
from tilelang_min.runtime.cpu_threads import default_workers
from tilelang_min.targets import Target, cpu, processor_name, runs_on


def device_for(target: Target) -> str | None:
    """Name of this machine's device that runs kernels for ``target``; None without one.

    What runs where: :func:`tilelang_min.targets.runs_on`.
    """
    if target.kind == "cpu":
        return _processor(target.arch)
    kind, _, arch = (gpu_architecture() or "").partition(":")
    if kind != target.kind or not runs_on(target.arch, arch):
        return None
    if target.kind == "hip":
        from tilelang_min.runtime import hip

        return hip.device_info().name
    from tilelang_min.runtime import cuda

    return cuda.device_info().name


def _processor(level: str) -> str | None:
    try:
        if cpu.ARCHITECTURES.index(level) > cpu.ARCHITECTURES.index(cpu.detect()):
            return None
    except TargetError:
        return None
    threads = default_workers()
    return f"{processor_name()}, {threads} thread{'' if threads == 1 else 's'}"
