"""Kernels that strain the code generators, all the way to the binary: tiny and odd tiles, registers indexed by loops."""

from __future__ import annotations

import pytest
from kernel_matmul import matmul
from kernel_zoo import ZOO

import tilelang_min as tilelang

KERNELS = {
    **{
        name: ZOO[name][0]
        for name in ("single_elements", "shared_element[256]", "stencil[256]", "serial_register_index")
    },
    "tiles of primes": matmul(50, 45, 60, bm=17, bn=13, bk=7, dtype="float16"),
    "infinities[256]": ZOO["infinities[256]"][0],
    "math_functions[float16]": ZOO["math_functions[float16]"][0],
}


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", KERNELS)
def test_compiles(name: str, target: str) -> None:
    kernel = tilelang.compile(KERNELS[name], target, cache=False)
    end = max((tile.offset + tile.bytes for tile in kernel.bundle.shared), default=0)
    if target.startswith(
        "hip"
    ):  # at the places that the thread program says; ptxas may split a tile of single elements
        assert kernel.metadata.shared_bytes_static == end
    assert kernel.metadata.instructions["attributed"] >= 0.95
