"""Kernels written by a test into a file of their own, because the front end reads files."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import textwrap
from pathlib import Path
from types import ModuleType

_numbers = itertools.count()

HEAD = """\
import math
import tilelang_min.language as T

bm, bn, bk = 16, 32, 8


@T.prim_func
def main(A: T.Tensor((64, 96), "float32"), I: T.Tensor((64,), "int32"), C: T.Tensor((64, 96), "float32")):
    with T.Kernel(3, 4, threads=64) as (bx, by):
        S = T.alloc_shared((bm, bn), "float32")
        R = T.alloc_shared((bn, bm), "float32")
        F = T.alloc_fragment((bm, bn), "float32")
        G = T.alloc_fragment((bm, bm), "float32")
        x = T.alloc_local((4,), "float32")
"""
MARK = "«"
"""Stands before the character under which the caret must be."""


def load(folder: Path, text: str) -> ModuleType:
    """The module with this source."""
    path = folder / f"kernel_{next(_numbers)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def body(text: str) -> str:
    """A module with one kernel that has tiles of all kinds and ``text`` as the rest of its body."""
    return HEAD + textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8) + "\n"


def take_mark(text: str) -> tuple[str, int, int]:
    """Text without its mark, and the line (from 1) and column (from 1) where it stood."""
    before, found, after = text.partition(MARK)
    assert found, "the expected place is not marked"
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")
