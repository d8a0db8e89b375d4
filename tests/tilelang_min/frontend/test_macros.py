"""T.macro, T.Buffer, T.alloc_buffer and T.sync_threads: what they mean, and what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_min.language as T
from tilelang_min.driver.keys import kernel_key
from tilelang_min.errors import LanguageError, TileLangError
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import Barrier, walk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lower"))
from kernel_runs import assert_close, run

FACTOR = 3


@T.macro
def scaled(tile, rows, columns, factor=FACTOR):
    """Multiplies every element."""
    for i, j in T.Parallel(rows, columns):
        tile[i, j] = tile[i, j] * factor


@T.macro
def bumped(counter, by):
    """Changes a variable of the caller."""
    counter += by


@T.macro
def endless(tile):
    endless(tile)


@T.macro
def returning(tile):
    return tile


def kernel(factor: int = 2) -> Any:
    @T.macro
    def load(source, target, offset):
        T.copy(source[offset, 0], target)
        scaled(target, 16, 32)
        scaled(target, columns=32, rows=16, factor=factor)

    @T.prim_func
    def main(A: T.Buffer[(64, 32), T.float32], B: T.Buffer((64, 32), "float32")):
        with T.Kernel(4, threads=64) as bx:
            S = T.alloc_buffer((16, 32), "float32", scope="shared")
            F = T.alloc_buffer((16, 32), "float32", "local.fragment")
            count = T.alloc_var("int32", 1)
            bumped(count, 2)
            bumped(count, by=1)
            load(A, S, bx * 16)
            T.sync_threads()
            T.copy(S, F)
            for i, j in T.Parallel(16, 32):
                F[i, j] += T.cast(count, "float32")
            T.copy(F, B[bx * 16, 0])

    return main


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
def test_macros_stand_for_their_statements(target: str) -> None:
    a = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    made = run(kernel(), target, [a, np.zeros_like(a)])["B"]
    assert_close(made, a.astype(np.float64) * 6 + 4, f"macros on {target}")


def test_operations_of_macros_have_their_own_lines() -> None:
    program = parse(kernel())
    operations = {operation.label: operation for operation in program.operations}
    outer = operations["load(A, S, bx * 16)"]
    inner = [operation for operation in program.operations if operation.parent == outer.id]
    assert [operation.label for operation in inner] == [
        "T.copy(source[offset, 0], target)",
        "scaled(target, 16, 32)",
        "scaled(target, columns=32, rows=16, factor=factor)",
    ]
    nest = next(operation for operation in program.operations if operation.parent == inner[1].id)
    assert "for i, j in T.Parallel(rows, columns)" in nest.location.text
    assert any(isinstance(item, Barrier) for item in walk(program.body))


def test_a_macro_and_what_it_uses_are_part_of_the_key() -> None:
    keys = {kernel_key(kernel(factor), "cpu", {}) for factor in (2, 2, 5)}
    assert len(keys) == 2


def failing(which: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((16, 32), "float32")
            if which == "few":
                scaled(S, 16)
            elif which == "many":
                bumped(S, 1, 2)
            elif which == "name":
                scaled(S, 16, 32, by=3)
            elif which == "endless":
                endless(S)
            elif which == "return":
                returning(S)
            elif which == "inside":
                scaled(S, 32, 32)
            elif which == "expression":
                S[0, 0] = scaled(S, 16, 32) + 1
            elif which == "scope":
                S = T.alloc_buffer((3,), "float32", scope="somewhere")

    return main


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("few", "macro scaled needs columns"),
        ("many", "macro bumped takes 2 arguments, 3 given"),
        ("name", "macro scaled has no argument 'by' left"),
        ("endless", "macro endless calls itself without end"),
        ("return", "a macro gives nothing back"),
        ("expression", "macro scaled was called outside a kernel, or inside an expression"),
        ("scope", "'somewhere' is no scope of a tile"),
    ],
)
def test_errors(which: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse(failing(which))
    assert message in str(caught.value)


def test_macros_outside_of_kernels() -> None:
    with pytest.raises(TileLangError, match="macro scaled was called outside a kernel"):
        scaled(1, 2, 3)
