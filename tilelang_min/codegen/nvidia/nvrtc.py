"""CUDA C++ text -> cubin with NVRTC, which needs neither a GPU nor a CUDA toolkit.

The library is called through ctypes, so that compiling depends on NVIDIA's wheel alone.  This module knows nothing of
thread programs; what the ptxas log means stands in :mod:`tilelang_min.codegen.nvidia.ptxas_log`.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilelang_min.codegen.nvidia.wheels import wheel_files
from tilelang_min.errors import CodegenError

_REMEDY = "install NVIDIA's wheels: python -m pip install nvidia-cuda-nvrtc nvidia-cuda-runtime"

SUPPRESSED_DIAGNOSTICS = (
    177,  # a variable or function that is never used
    549,  # a variable used before its value is set: fragments whose first value the matrix instruction ignores
    1444,  # ulonglong4 is deprecated: the printer's name for eight floats
)


@dataclass(frozen=True, slots=True)
class NvrtcResult:
    """A cubin and what the compiler said; ``log`` holds the ptxas report, ``seconds`` wall time."""

    cubin: bytes
    log: str
    seconds: float


OLDEST = 75
"""The first architecture that the newest NVRTC compiles for; CUDA 13 left Volta behind."""

_VOLTA_REMEDY = "install CUDA 12's: python -m pip install 'tileprof[volta]' (the wheel nvidia-cuda-nvrtc-cu12)"


def _is_old(arch: str) -> bool:
    return 50 <= int(re.sub(r"\D", "", arch)) < OLDEST  # what CUDA 12 compiles for and CUDA 13 does not


@cache
def _library(old: bool = False) -> ctypes.CDLL:
    """NVRTC of the newest CUDA, or, ``old``, of CUDA 12."""
    names = [str(path) for path in wheel_files("*/lib/libnvrtc.so.*") if ".alt." not in path.name]
    names += ["libnvrtc.so.13", "libnvrtc.so.12"]
    for name in (name for name in names if not old or name.endswith(".12")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    if old:
        raise CodegenError(
            f"architectures before sm_{OLDEST} need the NVRTC of CUDA 12, which is not installed", remedy=_VOLTA_REMEDY
        )
    raise CodegenError("NVRTC, NVIDIA's run-time compiler, is not installed", remedy=_REMEDY)


@cache
def version(arch: str = f"sm_{OLDEST}") -> str:
    """Version of the NVRTC that compiles for an architecture, such as ``13.5``."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library(_is_old(arch)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


@cache
def include_directory() -> str:
    """The directory that holds ``cuda_fp16.h``."""
    for header in wheel_files("*/include/cuda_fp16.h"):
        return str(header.parent)
    for place in (Path("/usr/local/cuda/include"), Path("/usr/include")):
        if (place / "cuda_fp16.h").is_file():
            return str(place)
    raise CodegenError("the header cuda_fp16.h is not installed", remedy=_REMEDY)


def fixed_options(arch: str, compiler: str) -> list[str]:
    """Options of every compilation for an architecture, by the NVRTC of that version (``13.5``)."""
    # Since 12.9, where a GPU's driver is, NVRTC keeps what it made and then has no report of ptxas, which metadata is read from.
    major, minor = map(int, compiler.split("."))
    return [
        f"--gpu-architecture={arch}",
        "-lineinfo",
        "-default-device",
        "--std=c++17",
        "--ptxas-options=-v",
        *(["--no-cache"] if (major, minor) >= (12, 9) else []),
        *(f"-diag-suppress={number}" for number in SUPPRESSED_DIAGNOSTICS),
    ]


def compile_cubin(source: str, *, arch: str, name: str, options: Sequence[str] = ()) -> NvrtcResult:
    """Compile CUDA C++ for one architecture (``sm_90a``); ``name`` is the kernel's in messages.

    Raises CodegenError with the compiler's log when the source is refused.
    """
    library = _library(_is_old(arch))
    started = time.perf_counter()
    arguments = [f"-I{include_directory()}", *fixed_options(arch, version(arch)), *options]
    program = ctypes.c_void_p()
    # Absolute: the current directory would get into the line table, and make each directory's binary another.
    file = f"/{name}.cu".encode(errors="replace")
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), file, 0, None, None))
    try:
        encoded = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
        status = library.nvrtcCompileProgram(program, len(arguments), encoded)
        log = _read(library, program, "ProgramLog").decode(errors="replace").replace("\0", "").strip()
        if status:
            raise CodegenError(
                f"NVRTC {version(arch)} refused the CUDA C++ of kernel {name} for {arch} ({_reason(library, status)}):\n{log}",
                remedy="this is an error of the compiler, not of the kernel: please report it with the kernel's source",
            )
        cubin = _read(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return NvrtcResult(cubin, log, time.perf_counter() - started)


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw[: size.value]


def _reason(library: ctypes.CDLL, status: int) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    text: bytes = library.nvrtcGetErrorString(status)
    return text.decode()


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise CodegenError(f"NVRTC failed: {_reason(library, status)}", remedy=_REMEDY)
