"""What the compiler makes of ten kernels, stage by stage, as text: a refactor must not change it unnoticed.

``tests/golden/<kernel>/``: the tile program as parsed and after the transforms, the thread program, the CUDA C++, the GCN listing
with the operation of each instruction, and static metadata.  What a vendor's compiler decides (listing, metadata) is compared only
under the versions that the file names.  ``pytest tests/tilelang_min/driver/test_golden.py --update-golden`` writes them anew; read
the difference before committing it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden_kernels import KERNELS

import tilelang_min as tilelang
from tilelang_min.driver.build import thread_program
from tilelang_min.driver.versions import tool_versions
from tilelang_min.frontend import parse
from tilelang_min.ir.printer import describe

ROOT = str(Path(__file__).resolve().parents[3])
GOLDEN = Path(ROOT) / "tests" / "golden"
TARGETS = ("cuda:sm_80", "hip:gfx942", "cpu:x86-64-v3")
COMPILERS = ("apache-tvm", "nvidia-cuda-nvrtc", "ziglang")
Golden = Callable[[str, str], None]


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


@cache
def compiled(name: str, target: str) -> Any:
    return tilelang.compile(KERNELS[name](), target, cache=False)


def versions() -> dict[str, str]:
    """Of the compilers that decide about listings and metadata."""
    return {name: tool_versions()[name] for name in COMPILERS}


def compare_under_its_versions(request: pytest.FixtureRequest, golden: Golden, name: str, text: str, head: str) -> None:
    """Compare, unless the file was made by other compilers; ``head`` names those of now."""
    path = GOLDEN / name
    if not request.config.getoption("--update-golden") and path.exists() and head not in path.read_text():
        pytest.skip(f"{name} was made by other versions than {versions()}")
    golden(name, text)


def test_there_are_ten() -> None:
    assert len(KERNELS) == 10
    assert {path.name for path in GOLDEN.iterdir() if path.is_dir()} == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_tile_program(name: str, golden: Golden) -> None:
    golden(f"{name}/tile_program.txt", describe(parse(KERNELS[name]())) + "\n")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_thread_program(name: str, target: str, golden: Golden) -> None:
    resolved = tilelang.targets.resolve(target)
    program, _, thread = thread_program(KERNELS[name](), resolved)
    golden(f"{name}/{resolved.arch}_tile_program.txt", describe(program) + "\n")
    golden(f"{name}/{resolved.arch}_thread_program.txt", relative(str(thread.function.script())) + "\n")


@pytest.mark.parametrize("name", KERNELS)
def test_cuda_text(name: str, golden: Golden) -> None:
    """The kernel alone: the header in front of it has its own tests."""
    source = compiled(name, "cuda:sm_80").source()
    start = re.search(r'^extern "C" __global__', source, re.MULTILINE)
    assert start is not None
    golden(f"{name}/sm_80.cu", relative(shorter(source[start.start() :])))


@pytest.mark.parametrize("name", KERNELS)
def test_gcn_listing(name: str, golden: Golden, request: pytest.FixtureRequest) -> None:
    """Every instruction behind the number of its tile operation."""
    head = f"; {json.dumps(versions())}"
    lines = [
        f"{'-' if item.operation is None else item.operation:>3}  {item.text}"
        for item in compiled(name, "hip:gfx942").listing.instructions
    ]
    compare_under_its_versions(request, golden, f"{name}/gfx942.gcn", "\n".join([head, *lines]) + "\n", head)


@pytest.mark.parametrize("name", KERNELS)
def test_metadata(name: str, golden: Golden, request: pytest.FixtureRequest) -> None:
    record: dict[str, Any] = {}
    for target in TARGETS:
        record[target] = compiled(name, target).metadata.to_json()
        del record[target]["compile_seconds"], record[target]["toolchain"]
    head = f'"compilers": {json.dumps(versions())}'
    text = "{\n" + head + ",\n" + json.dumps(record, indent=1, sort_keys=True).removeprefix("{\n") + "\n"
    json.loads(text)
    compare_under_its_versions(request, golden, f"{name}/metadata.json", text, head)
