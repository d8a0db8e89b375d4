"""A matrix product in Triton for ``h200.py``: tensor descriptors, grouped blocks, the best of a few configurations.

After Triton's tutorial "persistent matmul" (its variant with tensor descriptors), without its persistent loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIGURATIONS = (
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (128, 128, 64, 8, 4),
    (128, 128, 64, 4, 4),
    (256, 128, 64, 8, 3),
)
"""block_M, block_N, block_K, warps, stages."""


@triton.jit
def _product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, NT: tl.constexpr
):  # type: ignore[no-untyped-def]
    block = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = block // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    row = first + (block % (GROUP * columns)) % size
    column = (block % (GROUP * columns)) // size
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        left = a.load([row * BM, k * BK])
        if NT:
            total = tl.dot(left, b.load([column * BN, k * BK]).T, total)
        else:
            total = tl.dot(left, b.load([k * BK, column * BN]), total)
    c.store([row * BM, column * BN], total.to(c.dtype))


def candidates(a: Any, b: Any, transpose_b: bool) -> dict[str, Callable[[], Any]]:
    """A function for each configuration that compiles and is right: it computes ``a @ b`` (``a @ b.T``)."""
    m, k = a.shape
    n = b.shape[0] if transpose_b else b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device="cuda")
    expected = a @ (b.t() if transpose_b else b)
    found: dict[str, Callable[[], Any]] = {}
    for bm, bn, bk, warps, stages in CONFIGURATIONS:
        maps = (
            TensorDescriptor.from_tensor(a, [bm, bk]),
            TensorDescriptor.from_tensor(b, [bn, bk] if transpose_b else [bk, bn]),
            TensorDescriptor.from_tensor(out, [bm, bn]),
        )
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)

        def call(
            maps: Any = maps, grid: Any = grid, sizes: Any = (bm, bn, bk), warps: int = warps, stages: int = stages
        ) -> Any:
            _product[grid](*maps, m, n, k, *sizes, 8, transpose_b, num_warps=warps, num_stages=stages)

        try:
            call()
        except Exception as error:  # too much shared memory, mostly
            print(f"Triton {bm}x{bn}x{bk}: {type(error).__name__}")
            continue
        if torch.allclose(out, expected, rtol=2e-2, atol=2e-1):
            found[f"Triton-{bm}x{bn}x{bk}x{stages}x{warps}"] = call
    return found
