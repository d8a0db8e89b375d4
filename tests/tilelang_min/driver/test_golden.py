"""What the compiler makes of the quickstart's kernels, stage by stage, as text: a refactor must not change it unnoticed.

``tests/golden/<kernel>-<type>/``: the tile program as parsed and after the transforms, the thread program, and what the code
generator prints.  ``pytest --update-golden`` writes them anew; read the difference before committing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from quickstart_kernels import kernel

import tilelang_min as tilelang
from tilelang_min.codegen import nvidia
from tilelang_min.driver.build import thread_program
from tilelang_min.frontend import parse
from tilelang_min.ir.printer import describe

ROOT = str(Path(__file__).resolve().parents[3])
TILE = {"block_M": 32, "block_N": 32, "block_K": 16, "threads": 64}
CASES: dict[tuple[str, str], dict[str, int]] = {
    ("tiled", "float16"): TILE,
    ("padded", "float16"): TILE,
    ("padded", "float32"): TILE,
    ("naive", "float32"): {},
    ("scale_add_relu", "float16"): {"block_M": 4, "block_N": 64, "threads": 64},
}
SIZE = 44
"""Ragged in every dimension."""


def relative(text: str) -> str:
    """Text without the place of this checkout."""
    return text.replace(ROOT + "/", "")


def shorter(text: str) -> str:
    """CUDA text without ``#line`` directives that repeat the one before."""
    lines: list[str] = []
    current = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("#line"):
            if line == current:
                continue
            current = line
        lines.append(line)
    return "".join(lines)


def small(name: str, dtype: str) -> Any:
    return kernel(name, dtype, size=SIZE, **CASES[name, dtype])


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_tile_program(name: str, dtype: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}-{dtype}/tile_program.txt", describe(parse(small(name, dtype))) + "\n")


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942", "cpu:x86-64-v3"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_thread_program(name: str, dtype: str, target: str, golden: Callable[[str, str], None]) -> None:
    resolved = tilelang.targets.resolve(target)
    program, _, thread = thread_program(small(name, dtype), resolved)
    arch = resolved.arch
    golden(f"{name}-{dtype}/{arch}_tile_program.txt", describe(program) + "\n")
    golden(f"{name}-{dtype}/{arch}_thread_program.txt", relative(str(thread.function.script())) + "\n")


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_cuda_text(name: str, dtype: str, golden: Callable[[str, str], None]) -> None:
    """The kernel alone: the header in front of it has its own tests."""
    generated = nvidia.generate(thread_program(small(name, dtype), tilelang.targets.resolve("cuda:sm_80"))[2])
    start = re.search(r'^extern "C" __global__', generated.source, re.MULTILINE)
    assert start is not None
    golden(f"{name}-{dtype}/sm_80.cu", relative(shorter(generated.source[start.start() :])))
