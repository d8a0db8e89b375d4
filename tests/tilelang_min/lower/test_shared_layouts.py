"""Whatever layout a shared tile has, a kernel computes the same: addresses of every family of accesses follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_matmul import matmul, operands, product
from kernel_runs import assert_close, run

from tilelang_min.driver import build
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program.dtypes import dtype_bytes

TARGETS = ["cuda:sm_75", "cuda:sm_80", "hip:gfx90a", "hip:gfx942"]


def _panels(shape: tuple[int, ...], size: int) -> SharedLayout:
    width = next(width for width in (128, 64, 32) if shape[-1] * size % width == 0)
    return SharedLayout.panels(shape, size, width)


LAYOUTS: dict[str, Callable[[tuple[int, ...], int], SharedLayout]] = {
    "padded by 16 bytes": lambda shape, size: SharedLayout.plain(shape, size, 16 // size),
    "padded by one element": lambda shape, size: SharedLayout.plain(shape, size, 1),
    "swizzled rows": lambda shape, size: SharedLayout.swizzled(shape, size, 1, 3),
    "panels": _panels,
}


def laid_out(monkeypatch: pytest.MonkeyPatch, make: Callable[[tuple[int, ...], int], SharedLayout]) -> None:
    """All shared tiles of kernels that are compiled from now lie as ``make`` says."""

    def chosen(program: Any, target: Any, layouts: Any) -> dict[str, SharedLayout]:
        tiles = [buffer for buffer in program.buffers if buffer.scope == "shared"]
        return {tile.name: make(tile.shape, dtype_bytes(tile.dtype)) for tile in tiles}

    monkeypatch.setattr(build, "choose_shared_layouts", chosen)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products(monkeypatch: pytest.MonkeyPatch, name: str, target: str, dtype: str) -> None:
    if name == "padded by one element" and target.startswith("cuda") and dtype == "float16":
        pytest.skip("ldmatrix needs rows on 16 bytes")
    laid_out(monkeypatch, LAYOUTS[name])
    for transposes, stages in (((False, False), 3), ((True, True), 1)):
        a, b = operands(32, 60, 72, dtype, *transposes)
        c = np.full((32, 60), np.nan, np.float32)
        kernel = matmul(32, 60, 72, 32, 32, 32, stages, 64, dtype, *transposes)
        assert_close(run(kernel, target, [a, b, c])["C"], product(a, b, *transposes), f"{name} {transposes} {stages}")


def test_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread program lists the place of each tile, and what it needs."""
    import tilelang_min as tilelang

    laid_out(monkeypatch, _panels)
    kernel = matmul(64, 64, 128, 32, 32, 32, 3)
    tiles = build.thread_program(kernel, tilelang.targets.resolve("cuda:sm_80"))[2].shared
    assert [tile.offset for tile in tiles] == [0, 3 * 2048]
    assert all(tile.bytes == 3 * 2048 and tile.panel == 32 and tile.mask == 3 for tile in tiles)
    assert "swizzled" in tiles[0].layout
