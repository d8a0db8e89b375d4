"""A matrix product in Triton, for comparison: tiles of 128 x 256 x 64, four stages, eight warps."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """One tile of c = a @ b, row-major; tiles are walked in groups of rows so that neighbours share what is in L2."""
    tile = tl.program_id(0)
    wide = tl.cdiv(N, BN)
    group = tile // (GROUP * wide)
    rows = min(tl.cdiv(M, BM) - group * GROUP, GROUP)
    row = group * GROUP + (tile % (GROUP * wide)) % rows
    column = (tile % (GROUP * wide)) // rows
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty))


def matmul(M: int, N: int, K: int, dtype: str = "float16") -> Callable[[], object]:
    """Prepares operands; what it returns launches the kernel.  Sizes must be multiples of the tiles."""
    a = torch.randn(M, K, device="cuda").to(getattr(torch, dtype))
    b = torch.randn(K, N, device="cuda").to(getattr(torch, dtype))
    c = torch.empty(M, N, device="cuda", dtype=a.dtype)
    tile_m, tile_n, tile_k = 128, 256, 64
    grid = (triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)
    return lambda: product[grid](a, b, c, M, N, K, tile_m, tile_n, tile_k, 8, num_warps=8, num_stages=4)
