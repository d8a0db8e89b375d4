"""tilelang_min: a minimal but full tile compiler.

Python kernels in TileLang's language become binaries for CPUs, NVIDIA and AMD GPUs, with everything known about them at compile
time attached to the tile operations that caused it.

>>> import tilelang_min as tilelang
>>> import tilelang_min.language as T

Importing this package imports no TVM, no torch and no pandas; compiling and simulating import TVM when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_min import errors, language, layout, targets
from tilelang_min.driver.foreign_options import PassConfigKey
from tilelang_min.driver.jit import compile, jit
from tilelang_min.driver.kernel import Kernel, load
from tilelang_min.driver.simulated import Analysis
from tilelang_min.driver.target_names import get_backend, get_target_arch
from tilelang_min.language.types import ceildiv as cdiv
from tilelang_min.tune.decorator import autotune
from tilelang_min.tune.given import TensorSupplyType

if TYPE_CHECKING:
    from tilelang_min import access

__version__ = "0.1.0"

JITKernel = Kernel
"""TileLang's name of a compiled kernel."""

__all__ = [
    "Analysis",
    "JITKernel",
    "Kernel",
    "PassConfigKey",
    "TensorSupplyType",
    "access",
    "autotune",
    "cdiv",
    "compile",
    "device_info",
    "errors",
    "get_backend",
    "get_target_arch",
    "hip_library",
    "jit",
    "language",
    "layout",
    "load",
    "next_power_of_2",
    "profile",
    "targets",
]


def profile(kernel: Kernel, *args: Any, profiler: str = "auto") -> Any:
    """A tileprof ``Report`` of ``kernel``: static and simulated facts, and times when ``args`` are given.

    This is the one door from the compiler to the profiler; it opens when called.
    """
    from importlib import import_module

    return import_module("tileprof.session").profile(kernel, *args, profiler=profiler)


def next_power_of_2(number: int) -> int:
    """The smallest power of two that is at least ``number`` (1 for what is below)."""
    return 1 << max(0, number - 1).bit_length()


def device_info() -> Any:
    """Facts about the GPU that launches use: name, multiprocessors or compute units, sizes.  Raises LaunchError without one."""
    from tilelang_min.driver.target_names import launching_kind
    from tilelang_min.runtime import cuda, hip

    return hip.device_info() if launching_kind() == "hip" else cuda.device_info()


def hip_library() -> str | None:
    """Path of the library by which kernels are launched on AMD GPUs, or None.  Nothing is loaded."""
    from tilelang_min.runtime.hip_library import library_path

    return library_path()


def __getattr__(name: str) -> Any:
    if name == "access":
        from importlib import import_module

        return import_module("tilelang_min.access")
    raise AttributeError(f"module 'tilelang_min' has no attribute {name!r}")
