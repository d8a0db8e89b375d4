"""Shared layouts: every element has a place of its own, and the swizzle is that of the hardware."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_min.ir.shared_layout import SharedLayout


def places(layout: SharedLayout) -> np.ndarray:
    row, column = np.meshgrid(np.arange(layout.rows), np.arange(layout.columns), indexing="ij")
    return np.asarray(layout.element(row, column))


@pytest.mark.parametrize(
    "layout",
    [
        SharedLayout.plain((7, 33), 4),
        SharedLayout.plain((16, 32), 2, 8),
        SharedLayout.swizzled((64, 32), 2, 1, 3),
        SharedLayout.swizzled((2, 16, 64), 2, 0, 7),
        SharedLayout.panels((64, 128), 2, 128),
        SharedLayout.panels((16, 64), 1, 32),
    ],
    ids=str,
)
def test_every_element_has_a_place_of_its_own(layout: SharedLayout) -> None:
    found = places(layout)
    assert len(np.unique(found)) == found.size
    assert found.min() == 0
    assert found.max() < layout.elements
    vector = layout.contiguous
    if layout.columns % vector == 0:
        runs = found.reshape(-1, vector)
        assert (np.diff(runs, axis=1) == 1).all()
        assert layout.mask == 0 or (runs[:, 0] % vector == 0).all()


@pytest.mark.parametrize("swizzle", [128, 64, 32])
def test_tma_swizzle_exchanges_address_bits(swizzle: int) -> None:
    """CUDA Driver API: bits 4.. of the address within 128, 64, 32 bytes are exchanged with the bits from 7 on."""
    layout = SharedLayout.panels((32, swizzle), 2, swizzle)
    panel, rest = np.divmod(np.arange(32 * swizzle), 32 * (swizzle // 2))
    row, column = np.divmod(rest, swizzle // 2)
    linear = rest * 2
    expected = linear ^ ((linear >> 7) & (swizzle // 16 - 1)) << 4
    assert (layout.element(row, panel * (swizzle // 2) + column) * 2 - panel * 32 * swizzle == expected).all()
    assert layout.alignment == 1024
    assert layout.swizzle_bytes == swizzle


def test_layouts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="whole panels"):
        SharedLayout.panels((64, 48), 2, 128)
    with pytest.raises(ValueError, match="groups of 8 units"):
        SharedLayout.swizzled((64, 32), 2, 0, 7)
