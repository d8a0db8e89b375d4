"""Products of warp groups: every instruction that may be chosen is one that can be printed."""

from __future__ import annotations

import pytest

from tilelang_min.targets.wgmma import HOPPER, WarpgroupProduct


@pytest.mark.parametrize("product", HOPPER, ids=lambda product: product.types)
def test_every_width_is_an_instruction(product: WarpgroupProduct) -> None:
    from tvm.script.tirx import ptx

    widths = product.columns()
    assert max(widths) == (224 if product.c_dtype == "int32" else 256)
    for columns in widths:
        ptx[product.name(columns)]  # KeyError where TVM's table of PTX has none of that name
