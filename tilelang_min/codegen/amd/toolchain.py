"""LLVM text -> assembly -> object -> code object, by the clang and ld.lld that the ``ziglang`` wheel carries.

Each step is a process of its own: an instruction that LLVM cannot select aborts the process it runs in, and becomes a
:class:`CodegenError` with LLVM's message here.  The object is assembled from the very text that the listing is read
from, so the two cannot differ.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tilelang_min.codegen.amd.llvm_text import TRIPLE
from tilelang_min.errors import CodegenError

TIME_LIMIT_S = 300.0
"""One step takes longer than this only when LLVM is caught in a loop."""

_FATAL = re.compile(r"(?:fatal error: )?error(?: in backend)?: (?P<message>[^\n]+)|LLVM ERROR: (?P<abort>[^\n]+)")
_INTRINSIC = re.compile(r"llvm\.[\w.]+")


@functools.cache
def zig() -> str:
    """Path of the zig executable, whose ``clang`` and ``ld.lld`` subcommands are LLVM's programs.

    Raises :class:`CodegenError` where the wheel is missing.
    """
    found = importlib.util.find_spec("ziglang")
    for place in (found.submodule_search_locations or ()) if found else ():
        for name in ("zig", "zig.exe"):
            if (Path(place) / name).exists():
                return str(Path(place) / name)
    raise CodegenError(
        "no LLVM tools for AMD targets: the ziglang package is not installed", remedy="python -m pip install ziglang"
    )


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what makes the binary."""
    answer = subprocess.run([zig(), "clang", "--version"], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    clang = re.search(r"clang version (\S+)", answer.stdout)
    return {
        "apache-tvm": importlib.metadata.version("apache-tvm"),
        "ziglang": importlib.metadata.version("ziglang"),
        "clang": clang[1] if clang else "unknown",
    }


def compile_to_assembly(llvm: str, arch: str) -> tuple[str, str]:
    """Optimises LLVM text at -O3; returns AMDGPU assembly with ``.loc`` directives, and what clang said.

    ``-use-unknown-locations`` writes line 0 for an instruction without location, which otherwise would silently count
    to the one before it.
    """
    flags = ["-O3", "-nogpulib", "-fno-crash-diagnostics", "-mllvm", "-use-unknown-locations=Enable"]
    done = _run("clang", ["-x", "ir", f"--target={TRIPLE}", f"-mcpu={arch}", *flags, "-S", "-", "-o", "-"], llvm)
    return done.stdout, done.stderr


def assemble(assembly: str, arch: str, output: Path) -> str:
    """Assembles text to a relocatable object; returns what clang said."""
    arguments = ["-x", "assembler", f"--target={TRIPLE}", f"-mcpu={arch}", "-c", "-", "-o", str(output)]
    return _run("clang", arguments, assembly).stderr


def link(objects: Sequence[Path], output: Path) -> str:
    """Links a code object that the loader takes (ET_DYN); returns what the linker said."""
    return _run("ld.lld", ["-shared", "--no-undefined", *map(str, objects), "-o", str(output)], "").stderr


def _run(tool: str, arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    """Runs one tool; raises :class:`CodegenError` with its log."""
    try:
        done = subprocess.run(
            [zig(), tool, *arguments], input=text, capture_output=True, text=True, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise CodegenError(f"{tool} did not end within {TIME_LIMIT_S:.0f} s", remedy="use smaller tiles") from error
    if done.returncode != 0:
        raise CodegenError(_refusal(tool, done), remedy="see the log below\n" + done.stderr.strip())
    return done


def _refusal(tool: str, done: subprocess.CompletedProcess[str]) -> str:
    """First line of a message: what LLVM says is wrong, with the intrinsic's name where it has one."""
    found = _FATAL.search(done.stderr)
    if found is None:
        return f"{tool} failed with status {done.returncode}"
    message = (found["message"] or found["abort"]).strip()
    names = _INTRINSIC.findall(message)
    return f"{tool} refused {names[0]}: {message}" if names else f"{tool}: {message}"
