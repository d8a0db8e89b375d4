"""Triton's matrix product for ``h200_mma_sync.py``: no masks, blocks in groups of eight rows, sums in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

GROUP = 8


@triton.jit
def _product(
    a, b, c, M, N, K, stride_k, stride_n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr
):
    number = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = number // (G * columns) * G
    group = min(rows - first, G)
    row = first + number % group
    column = number % (G * columns) // group
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left, right = a + m[:, None] * K + k[None, :], b + k[:, None] * stride_k + n[None, :] * stride_n
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BK)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * stride_k
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16))


def product(
    a: Any, b: Any, c: Any, rows: int, columns: int, depth: int, stages: int, warps: int
) -> tuple[Any, Callable[[], None]]:
    """The compiled kernel, and what launches it; sizes must be multiples of the tiles."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)

    def launch() -> Any:
        return _product[grid](
            a, b, c, m, n, k, *b.stride(), rows, columns, depth, GROUP, num_stages=stages, num_warps=warps
        )

    return launch(), launch
