"""The layouts of shared tiles that the compiler chooses: free of conflicts, counted right, and never against the author."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.driver.analysis import analyse_program
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LanguageError, LayoutError, TileLangError
from tilelang_min.program import SharedBuffer
from tilelang_min.targets import occupancy, resolve
from tilelang_min.transform import shared_layouts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lower"))
from kernel_matmul import matmul

TARGETS = ["cuda:sm_75", "cuda:sm_80", "cuda:sm_89", "hip:gfx90a", "hip:gfx942", "hip:gfx950"]
TYPES = ["float16", "float32", "int8", "bfloat16", "float64"]
OUT = {"int8": "int32", "float64": "float64"}


def counted(kernel: Any, target: str) -> tuple[dict[str, SharedBuffer], dict[str, tuple[int, int]]]:
    """Shared tiles by name, and their transactions and conflicts; of asynchronous copies the transactions alone."""
    program = thread_program(kernel, resolve(target))[2]
    figures: dict[str, tuple[int, int]] = {}
    for count in analyse_program(program).counts:
        if count.space == "shared":
            passes, conflicts = figures.get(count.buffer, (0, 0))
            extra = 0 if count.access.startswith("cp_async") else count.conflicts or 0
            figures[count.buffer] = (passes + (count.transactions or 0), conflicts + extra)
    return {tile.name: tile for tile in program.shared}, figures


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
def test_operands_are_free_of_conflicts(target: str, transposes: tuple[bool, bool]) -> None:
    """One type for each target and each pair of transposes, with one stage and with three, rows of different lengths."""
    number = (TARGETS.index(target) + 2 * transposes[0] + transposes[1]) % len(TYPES)
    dtype = TYPES[number]
    block_k = (64, 32)[(number + sum(transposes)) % 2] if dtype != "float64" else 32
    stages = 1 if dtype == "float64" else (3, 1)[number % 2]
    kernel = matmul(64, 64, 128, 64, 64, block_k, stages, 128, dtype, *transposes, out=OUT.get(dtype, "float32"))
    figures = counted(kernel, target)[1]
    assert {name: conflicts for name, (_, conflicts) in figures.items()} == {"A_shared": 0, "B_shared": 0}, dtype


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_choice_counts_what_the_simulator_counts(monkeypatch: pytest.MonkeyPatch, target: str, dtype: str) -> None:
    """One block, one stage: no branch leaves anything out."""
    predicted: dict[str, float] = {}
    search = shared_layouts._Choice.best

    def best(choice: Any) -> Any:
        found = search(choice)
        cost = choice.cost(found or shared_layouts.SharedLayout.plain(choice.tile.shape, choice.itemsize))
        predicted[choice.tile.name] = cost.passes
        return found

    monkeypatch.setattr(shared_layouts._Choice, "best", best)
    for transposes in ((False, False), (True, True)):
        figures = counted(matmul(64, 64, 128, 64, 64, 64, 1, 128, dtype, *transposes), target)[1]
        assert predicted == {name: passes for name, (passes, _) in figures.items()}


def transposed(layout: str = "", pad: int = 0, odd: int = 0) -> Any:
    """A transpose through a shared tile of 32 x 32 floats; rows of the result that are ``odd`` allow no vectors."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64 + odd), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32 + pad), "float32")
            if layout == "rows":
                T.annotate_layout({tile: T.rows()})
            elif layout == "padded":
                T.annotate_layout({tile: T.rows(padding=1)})
            elif layout == "swizzled":
                T.annotate_layout({tile: tilelang.layout.make_swizzled_layout(tile)})
            elif layout == "twice":
                T.annotate_layout({tile: T.rows()})
                T.annotate_layout({tile: T.rows(padding=1)})
            elif layout == "64":
                T.annotate_layout({tile: T.make_swizzled_layout(tile, swizzle_bytes=64)})
            elif layout == "wrong":
                T.annotate_layout({tile: 3})
            elif layout == "expression":
                T.annotate_layout(T.rows())
            T.copy(A[by * 32, bx * 32], tile[:, 0:32])
            for i, j in T.Parallel(32, 32):
                B[bx * 32 + i, by * 32 + j] = tile[j, i]

    return main


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_transpose_finds_its_padding(target: str) -> None:
    """No swizzle of 16 bytes spreads 4-byte elements of a column over all banks; one element behind each row does."""
    tiles, figures = counted(transposed(odd=1), target)
    assert tiles["tile"].row_stride == 33
    assert figures["tile"][1] == 0
    assert counted(transposed("rows"), target)[1]["tile"][1] > 0


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_a_transpose_in_vectors_needs_no_padding(target: str) -> None:
    """Four lanes that write one vector each gather from four rows at a time: a swizzle by groups of rows is enough."""
    tiles, figures = counted(transposed(), target)
    assert (tiles["tile"].shift, tiles["tile"].mask, tiles["tile"].row_stride) == (2, 7, 32)
    assert figures["tile"] == (256, 0)


def test_what_the_author_says_stays() -> None:
    found = {name: counted(transposed(name), "cuda:sm_80")[0]["tile"] for name in ("rows", "padded", "swizzled", "64")}
    assert (found["rows"].row_stride, found["rows"].layout) == (0, "plain rows")
    assert (found["padded"].row_stride, found["padded"].mask) == (33, 0)
    assert (found["swizzled"].shift, found["swizzled"].mask) == (0, 7)
    assert (found["64"].shift, found["64"].mask) == (1, 3)
    assert counted(transposed(pad=2), "cuda:sm_80")[0]["tile"].row_stride == 0


@pytest.mark.parametrize(
    ("layout", "message", "kind"),
    [
        ("twice", "tile has been given another layout before: plain rows", LayoutError),
        ("wrong", "3 is no layout of a shared tile", LanguageError),
        ("expression", "T.annotate_layout takes a dictionary of tiles and layouts", LanguageError),
    ],
)
def test_errors(layout: str, message: str, kind: type[TileLangError]) -> None:
    with pytest.raises(kind, match=message):
        counted(transposed(layout), "cuda:sm_80")


def column_reader(rows: int) -> Any:
    """A tile of 128-byte rows, read by columns, which only a padding could free of conflicts."""

    @T.prim_func
    def main(A: T.Tensor((rows, 32), "float32"), out: T.Tensor((32, rows), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((rows, 32), "float32")
            T.copy(A[0, 0], S)
            for j, i in T.Parallel(32, rows):
                out[j, i] = S[i, j]

    return main


@pytest.mark.parametrize("rows", [128, 512])
def test_padding_never_costs_occupancy(rows: int) -> None:
    """16 KiB are a quarter of a unit's LDS, 64 KiB all of it: a byte more is a block less, or none at all."""
    target = resolve("hip:gfx942")
    (tile,) = thread_program(column_reader(rows), target)[2].shared
    plain = occupancy(target, threads=64, registers_per_thread=None, shared_bytes=rows * 128)
    chosen = occupancy(target, threads=64, registers_per_thread=None, shared_bytes=tile.bytes)
    assert chosen.max_blocks_per_unit == plain.max_blocks_per_unit
    assert tile.mask > 0  # a swizzle costs nothing, and leaves fewer conflicts
