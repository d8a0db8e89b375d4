"""Which target a user means: ``auto``, ``cpu``, ``cuda``, ``cuda:sm_90a``, ``hip``, ``hip:gfx942``."""

from __future__ import annotations

import os
import sys
from functools import cache

from tilelang_min.targets import Target, amd, resolve


@cache
def gpu_architecture() -> str | None:
    """Target name of the GPU of this machine (``cuda:sm_90a``, ``hip:gfx942``), or None.

    Asks a driver only where one is installed, NVIDIA's first; an AMD GPU that the compiler has no target for counts as none.
    """
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/nvidia0"):
        from tilelang_min.runtime import cuda

        working, _ = cuda.available()
        if working:
            major, minor = cuda.device_info().compute_capability
            suffix = "a" if major >= 9 else ""
            return f"cuda:sm_{major}{minor}{suffix}"
    if os.path.exists("/dev/kfd"):
        from tilelang_min.runtime import hip

        working, _ = hip.available()
        if working and (arch := hip.device_info().arch) in amd.ARCHITECTURES:
            return f"hip:{arch}"
    return None


def launching_kind() -> str | None:
    """``cuda`` or ``hip``: the kind of GPU of this machine that work can be launched on; None without one.

    torch decides where it is in use: on a machine with GPUs of both vendors its build is for one of them.
    """
    from tilelang_min.runtime import gpu

    kinds = ("cuda", "hip") if os.path.exists("/dev/kfd") else ("cuda",)
    in_torch = next((kind for kind in ("cuda", "hip") if gpu.torch_on(kind) is not None), None)
    return in_torch or next((kind for kind in kinds if gpu.runtime(kind).available()[0]), None)


def choose_target(name: str | Target | None) -> Target:
    """The target record for ``name``; None is ``auto``.  Raises TargetError for a name that does not exist."""
    if isinstance(name, Target):
        return name
    if name is None or name == "auto":
        return resolve(gpu_architecture() or "cpu")
    if name in ("cuda", "hip", "rocm"):
        found = gpu_architecture()
        if found is not None and found.startswith("cuda:" if name == "cuda" else "hip:"):
            return resolve(found)
        if name == "cuda":
            _say_once("no NVIDIA GPU here: target 'cuda' means cuda:sm_80")
    return resolve(name)


@cache
def _say_once(message: str) -> None:
    print(f"tilelang: {message}", file=sys.stderr)


def get_backend() -> str:
    """``"cuda"``, ``"hip"`` or ``"cpu"``: where ``target="auto"`` runs."""
    return choose_target(None).kind


def get_target_arch() -> str:
    """Architecture of the ``auto`` target, such as ``"sm_90a"`` or ``"x86-64-v4"``."""
    return choose_target(None).arch
