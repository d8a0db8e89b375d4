"""Matrix products and element-wise kernels of every size, pipeline depth, type and target, against float64.

The CPU runs the whole launch; for GPUs the corner blocks and an inner one are simulated over all of K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_matmul import matmul, operands, product, quickstart
from kernel_runs import assert_close, check_blocks, run

SIZES = (1, 7, 129, 1000, 1024)
GPUS = ("cuda:sm_80", "hip:gfx942")


def nan(*shape: int, dtype: str = "float32") -> Any:
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "stages"), [("tiled", 2), ("padded", 1), ("padded", 2), ("padded", 3)])
def test_tiled_products_on_gpus(name: str, size: int, stages: int, dtype: str) -> None:
    block_k = 32 if dtype == "float32" else 64
    kernel = getattr(quickstart("matmul"), name).prim_func(
        size, size, size, block_K=block_k, num_stages=stages, dtype=dtype
    )
    a, b = operands(size, size, size, dtype)
    expected = product(a, b)
    for target in GPUS:
        program = check_blocks(kernel, target, [a, b, nan(size, size)], expected, (64, 64), f"{name} {size}")
        # A loop of fewer iterations than stages has as many stages as iterations.
        steps = -(-size // block_k)
        assert {tile.stages for tile in program.shared} == {min(stages, steps)}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["tiled", "padded", "naive"])
def test_products_on_the_cpu(name: str, size: int, dtype: str) -> None:
    kernel = getattr(quickstart("matmul"), name).prim_func(size, size, size, dtype=dtype)
    a, b = operands(size, size, size, dtype)
    assert_close(run(kernel, "cpu", [a, b, nan(size, size)])["C"], product(a, b), f"{name} {size}")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", SIZES)
def test_naive_products_on_gpus(size: int, dtype: str) -> None:
    kernel = quickstart("matmul").naive.prim_func(size, size, size, dtype=dtype)
    a, b = operands(size, size, size, dtype)
    for target in GPUS:
        check_blocks(kernel, target, [a, b, nan(size, size)], product(a, b), (16, 16), f"naive {size}")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", SIZES)
def test_element_wise(size: int, dtype: str) -> None:
    module = quickstart("elementwise")
    kernel = module.scale_add_relu.prim_func(size, size, dtype=dtype)
    a, b = operands(size, size, size, dtype)
    expected = module.reference(a, b)
    assert_close(run(kernel, "cpu", [a, b, nan(size, size, dtype=dtype)])["C"], expected, f"{size} on the CPU")
    for target in GPUS:
        check_blocks(kernel, target, [a, b, nan(size, size, dtype=dtype)], expected, (32, 128), f"{size}")


@pytest.mark.parametrize("target", ["cuda:sm_90a", "hip:gfx90a", "hip:gfx950"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_further_architectures(dtype: str, target: str) -> None:
    size = 129
    kernel = quickstart("matmul").padded.prim_func(size, size, size, num_stages=3, dtype=dtype)
    a, b = operands(size, size, size, dtype)
    check_blocks(kernel, target, [a, b, nan(size, size)], product(a, b), (64, 64))


# M, N, K and what differs from 32x32x16 tiles of 64 threads in two stages.
VARIANTS: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "transposed A": ((70, 50, 90), {"transpose_a": True}),
    "transposed B": ((70, 50, 90), {"transpose_b": True}),
    "both transposed": ((70, 50, 90), {"transpose_a": True, "transpose_b": True, "pad": 8}),
    "half output": ((70, 50, 90), {"out": "float16"}),
    "padded, half output": ((64, 64, 64), {"out": "float16", "pad": 8, "bm": 64, "bn": 64, "threads": 128}),
    "odd tiles": ((50, 45, 60), {"bm": 24, "bn": 20, "bk": 12, "threads": 64}),
    "tiles of primes": ((50, 45, 60), {"bm": 17, "bn": 13, "bk": 7, "threads": 64}),
    "one row": ((1, 64, 64), {"bm": 1, "bn": 64, "bk": 32}),
    "one column": ((64, 1, 64), {"bm": 64, "bn": 1, "bk": 32}),
    "thin K": ((64, 64, 3), {"bk": 4}),
    "rows that are not aligned": ((64, 64, 64), {"pad": 3, "bm": 64, "bn": 64, "bk": 32, "threads": 128}),
    "wide tiles": ((128, 256, 64), {"bm": 64, "bn": 128, "bk": 32, "threads": 256}),
    "many warps in a small tile": ((64, 64, 64), {"bm": 16, "bn": 16, "bk": 16, "threads": 512}),
    "more than 48 KiB": ((128, 128, 128), {"bm": 128, "bn": 128, "bk": 64, "stages": 3, "threads": 256}),
    "ragged in everything": ((131, 77, 203), {"bm": 48, "bn": 40, "bk": 24, "stages": 3, "threads": 192}),
    "one stage": ((70, 50, 90), {"stages": 1}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name: str, dtype: str) -> None:
    (m, n, k), options = VARIANTS[name]
    options = {"dtype": dtype, **options}
    if dtype == "float32" and "more than" in name:
        options["bk"] = 32
    kernel = matmul(m, n, k, **options)
    a_t, b_t = options.get("transpose_a", False), options.get("transpose_b", False)
    a, b = operands(m, n, k, dtype, a_t, b_t)
    expected = product(a, b, a_t, b_t)
    tile = (options.get("bm", 32), options.get("bn", 32))
    out = options.get("out", "float32")
    assert_close(run(kernel, "cpu", [a, b, nan(m, n, dtype=out)])["C"], expected, f"{name} on the CPU")
    for target in GPUS:
        if target.startswith("hip") and "more than" in name:
            continue  # a compute unit has 64 KiB
        program = check_blocks(kernel, target, [a, b, nan(m, n, dtype=out)], expected, tile, name)
        dynamic = target.startswith("cuda") and "more than" in name
        total = sum(tile.bytes for tile in program.shared)
        assert program.shared_bytes_dynamic == (total if dynamic else 0)
        assert (total > 48 * 1024) == ("more than" in name)
