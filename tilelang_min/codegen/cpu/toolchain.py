"""LLVM text -> shared object, with the clang and ld.lld of the ``ziglang`` package: no system compiler is needed.

Each step is a process of its own, so that a failing compiler is an error message and not the end of this process.  Measured
for a matrix product of 130 machine-loop statements: clang -O3 0.09 s, ld.lld 0.01 s (starting Python's ``python -m ziglang``
instead of the program itself would add 0.03 s to each).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from tilelang_min.errors import CodegenError

_TIME_LIMIT_S = 300
_UNDEFINED = re.compile(r"undefined symbol: (\S+)")


@cache
def program() -> str:
    """Path of ziglang's program.  Raises :class:`CodegenError` where the package is missing."""
    spec = importlib.util.find_spec("ziglang")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("zig", "zig.exe"):
            path = Path(place) / name
            if path.is_file():
                return str(path)
    raise CodegenError(
        "the package ziglang, whose clang and ld.lld make CPU kernels, is not installed",
        remedy="python -m pip install 'ziglang>=0.17,<0.18'",
    )


@cache
def versions() -> dict[str, str]:
    """Versions of the tools used here."""
    return {"ziglang": importlib.metadata.version("ziglang")}


def build_shared_object(text: str, symbol: str, *, level: int = 3) -> tuple[bytes, str, dict[str, float]]:
    """(shared object, log, seconds by step) from LLVM text.

    ``level`` is clang's optimisation level, 0 to 3.  The object has no undefined symbol: :class:`CodegenError` names those
    that it would have, as it holds the compiler's log where clang refuses the text.
    """
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="tilelang-") as folder:
        source, middle, result = (os.path.join(folder, f"kernel.{kind}") for kind in ("ll", "o", "so"))
        Path(source).write_text(text, encoding="utf-8")
        start = time.perf_counter()
        compile_line = ["clang", "-x", "ir", "--target=x86_64-linux-gnu", f"-O{level}", "-ffp-contract=fast", "-fPIC"]
        compile_line.append("-fno-slp-vectorize")  # vectors are explicit; address arithmetic in vectors costs more
        compile_line += ["-fstack-size-section", "-c", source, "-o", middle]
        log = _run(compile_line, f"clang refused the LLVM text of kernel {symbol}", folder)
        seconds["clang"] = time.perf_counter() - start
        start = time.perf_counter()
        link_line = ["ld.lld", "-shared", "-z", "defs", "-z", "now", "-soname", f"{symbol}.so", middle, "-o", result]
        log += _run(link_line, f"ld.lld refused the object of kernel {symbol}", folder)
        seconds["link"] = time.perf_counter() - start
        return Path(result).read_bytes(), log, seconds


def _run(arguments: list[str], failure: str, folder: str) -> str:
    """Runs one tool and returns what it wrote; the file names in it are without their folder."""
    try:
        done = subprocess.run(
            [program(), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CodegenError(
            f"{failure}: not done after {_TIME_LIMIT_S} s", remedy="use smaller tiles or unroll less"
        ) from None
    except OSError as error:
        raise CodegenError(f"{failure}: {error}", remedy="reinstall the package ziglang") from error
    log = (done.stdout + done.stderr).replace(folder + os.sep, "")
    if done.returncode:
        missing = sorted(set(_UNDEFINED.findall(log)))
        if missing:
            raise CodegenError(
                f"{failure}: it needs functions that no library provides here: {', '.join(missing)}",
                remedy="use elementary functions that the CPU code generator has (exp, exp2, log, log2, pow, tanh, ...)",
            )
        raise CodegenError(
            f"{failure} (status {done.returncode}):\n{log}",
            remedy="this is an error of the compiler, not of the kernel: please report it with the kernel's source",
        )
    return log
