"""Builds the stand-ins of AMD's libraries with the C compiler of the ``ziglang`` wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_FLAGS = ["-shared", "-fPIC", "-O1", "-fno-sanitize=undefined", "-Wall", "-Werror"]


def compile_library(source: Path, output: Path) -> Path:
    """A shared object of one C file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(output), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return output


def make_rocm(folder: Path) -> Path:
    """A folder that looks like ROCm: ``lib/libamdhip64.so.6``, ``lib/librocprofiler-sdk-roctx.so`` and ``bin/rocprofv3``."""
    compile_library(HERE / "amdhip64.c", folder / "lib" / "libamdhip64.so.6")
    compile_library(HERE / "roctx.c", folder / "lib" / "librocprofiler-sdk-roctx.so")
    tool = folder / "bin" / "rocprofv3"
    tool.parent.mkdir()
    roctx = folder / "lib" / "librocprofiler-sdk-roctx.so"
    tool.write_text(f'#!/bin/sh\nSTAND_IN_ROCTX={roctx} exec {sys.executable} {HERE / "rocprofv3.py"} "$@"\n')
    tool.chmod(0o755)
    return folder
