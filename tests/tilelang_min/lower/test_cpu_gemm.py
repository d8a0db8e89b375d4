"""Matrix products on the CPU: shapes of register blocks, and accumulators that stay in registers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_matmul import quickstart

import tilelang_min as tilelang
from tilelang_min.lower.blocks_cpu import block_shape


@given(st.integers(1, 300), st.integers(1, 40), st.sampled_from([16, 32]))
def test_blocks_fit_the_registers(m: int, vectors: int, registers: int) -> None:
    """Accumulators, a row of B and an element of A; at most three quarters are accumulators, and never more rows than there are."""
    width, height = block_shape(m, vectors, registers)
    assert 1 <= width <= min(4, vectors)
    assert 1 <= height <= m
    assert width * height <= registers * 3 // 4
    assert width * height + width + 1 <= registers


def test_blocks_of_common_tiles() -> None:
    assert block_shape(64, 4, 32) == (4, 6)  # 64 columns of 16 lanes: 24 accumulators
    assert block_shape(64, 2, 32) == (2, 11)
    assert block_shape(64, 8, 16) == (3, 4)  # 64 columns of 8 lanes: 12 accumulators
    assert block_shape(1, 4, 32) == (4, 1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("level", "register"), [("x86-64-v4", "zmm"), ("x86-64-v3", "ymm")])
def test_accumulators_stay_in_registers(level: str, register: str, dtype: str) -> None:
    """The innermost loop of the product has multiply-adds on whole registers, and neither stores nor conversions."""
    kernel = tilelang.compile(
        quickstart("matmul").padded.prim_func(128, 128, 128, dtype=dtype), f"cpu:{level}", cache=False
    )
    product = next(operation.id for operation in kernel.operations if operation.kind == "gemm")
    rows = [item for item in kernel.listing.instructions if item.operation == product]
    runs: list[list[str]] = [[]]
    for item in rows:
        runs[-1].append(item.text)
        if item.klass == "branch":
            runs.append([])
    loop = max(runs, key=lambda run: sum("vfmadd" in text for text in run))
    products = [text for text in loop if "vfmadd" in text]
    # v4: 6 rows of 4 vectors, or the 4 rows at the edge; v3: 4 rows of 3 or, at the edge, of 2; LLVM may write steps of k out.
    assert len(products) % (8 if level == "x86-64-v4" else 4) == 0
    assert len(products) >= 8
    assert all(re.search(rf"vfmadd\d+ps {register}\d+, ", text) for text in products)
    stores = [text for text in loop if re.match(rf"\S*\s*vmov\w+ {register}word ptr", text.strip())]
    assert not stores
    assert not [text for text in loop if "vcvtph2ps" in text]
