"""Matrix products in Triton for ``h200.py``: tensor descriptors, grouped blocks, the best of several configurations.

The product is that of Triton's tutorial "persistent matmul" with tensor descriptors, with and without its persistent loop.  Of
few rows it is the transposed product, whose many rows are those of the instructions, or (of one row) dot products; up to 128 rows K
is also split between blocks, whose parts a second kernel adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

THREADS = 14
"""Compilers that run at once."""


class Configuration(NamedTuple):
    """``kind`` is ``product``, ``persistent``, ``few`` or ``dots``."""

    kind: str
    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    split: int = 1


PRODUCTS = (
    Configuration("product", 128, 256, 64, 8, 3),
    Configuration("product", 128, 256, 64, 8, 4),
    Configuration("product", 128, 128, 64, 8, 4),
    Configuration("product", 128, 128, 64, 4, 4),
    Configuration("product", 256, 128, 64, 8, 3),
    Configuration("persistent", 128, 256, 64, 8, 3),
    Configuration("persistent", 128, 128, 64, 8, 4),
)
FLAT = (
    Configuration("product", 128, 32, 128, 4, 4),
    Configuration("product", 128, 64, 64, 4, 6),
    Configuration("product", 128, 64, 128, 4, 4),
    Configuration("product", 128, 128, 64, 4, 4),
    Configuration("product", 128, 128, 64, 8, 5),
    Configuration("product", 128, 256, 64, 8, 4),
    Configuration("product", 128, 64, 64, 4, 6, 2),
    Configuration("product", 128, 128, 64, 8, 5, 2),
    Configuration("product", 128, 128, 64, 8, 5, 4),
)
FEW = (
    Configuration("few", 16, 64, 128, 4, 5),
    Configuration("few", 16, 64, 256, 4, 4),
    Configuration("few", 16, 128, 128, 8, 5),
    Configuration("few", 16, 64, 128, 4, 5, 2),
    Configuration("few", 16, 64, 256, 4, 4, 2),
    Configuration("few", 16, 128, 128, 8, 5, 4),
)
DOTS = (
    Configuration("dots", 1, 4, 1024, 4, 3),
    Configuration("dots", 1, 8, 1024, 8, 2),
    Configuration("dots", 1, 16, 512, 8, 2),
)


def configurations(m: int) -> tuple[Configuration, ...]:
    """What is tried for a product of ``m`` rows."""
    if m <= 16:
        return FEW + (DOTS if m == 1 else ())
    return FLAT if m <= 128 else PRODUCTS


@triton.jit
def _place(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):  # type: ignore[no-untyped-def]
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = tile // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    return first + (tile % (GROUP * columns)) % size, (tile % (GROUP * columns)) // size


@triton.jit
def _product(
    a, b, c, parts, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, NT: tl.constexpr
):  # type: ignore[no-untyped-def]
    row, column = _place(tl.program_id(0), M, N, BM, BN, 8)
    part = tl.program_id(1)
    share = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(part * share, min((part + 1) * share, tl.cdiv(K, BK))):
        left = a.load([row * BM, k * BK])
        if NT:
            total = tl.dot(left, b.load([column * BN, k * BK]).T, total)
        else:
            total = tl.dot(left, b.load([k * BK, column * BN]), total)
    if SPLIT == 1:
        c.store([row * BM, column * BN], total.to(c.dtype))
    else:
        m, n = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        inside = (m[:, None] < M) & (n[None, :] < N)
        tl.store(parts + (part * M + m[:, None]) * N + n[None, :], total, mask=inside)


@triton.jit
def _persistent(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BLOCKS: tl.constexpr, NT: tl.constexpr
):  # type: ignore[no-untyped-def]
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, BLOCKS, flatten=True):
        row, column = _place(tile, M, N, BM, BN, 8)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            left = a.load([row * BM, k * BK])
            if NT:
                total = tl.dot(left, b.load([column * BN, k * BK]).T, total)
            else:
                total = tl.dot(left, b.load([k * BK, column * BN]), total)
        c.store([row * BM, column * BN], total.to(c.dtype))


@triton.jit
def _few(a, b, out, parts, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):  # type: ignore[no-untyped-def]
    column, part = tl.program_id(0), tl.program_id(1)
    share = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    total = tl.zeros((BN, BM), dtype=tl.float32)
    for k in range(part * share, min((part + 1) * share, tl.cdiv(K, BK))):
        total = tl.dot(b.load([column * BN, k * BK]), a.load([0, k * BK]).T, total)
    m, n = tl.arange(0, BM), column * BN + tl.arange(0, BN)
    inside = (n[:, None] < N) & (m[None, :] < M)
    if SPLIT == 1:
        tl.store(out + m[None, :] * N + n[:, None], total.to(out.dtype.element_ty), mask=inside)
    else:
        tl.store(parts + (part * M + m[None, :]) * N + n[:, None], total, mask=inside)


@triton.jit
def _dots(a, b, out, N, K, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    sums = tl.zeros((BN, BK), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + k, mask=k < K, other=0.0).to(tl.float32)
        right = tl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        sums += left[None, :] * right.to(tl.float32)
    tl.store(out + n, tl.sum(sums, axis=1).to(out.dtype.element_ty), mask=n < N)


@triton.jit
def _add_up(parts, out, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * count + at, mask=at < count, other=0.0)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=at < count)


Launches = list[tuple[Any, tuple[int, ...], tuple[Any, ...], dict[str, int]]]
"""Kernel, grid, arguments and options of each launch."""


def launches(a: Any, b: Any, out: Any, turned: bool, configuration: Configuration) -> Launches:
    """What computes ``out = a @ b`` (``a @ b.T``, ``turned``) in a configuration."""
    kind, bm, bn, bk, warps, stages, split = configuration
    (m, k), n = a.shape, out.shape[1]
    options = {"num_warps": warps, "num_stages": stages}
    if kind == "dots":
        return [(_dots, (triton.cdiv(n, bn),), (a, b, out, n, k, bn, bk), options)]
    left = TensorDescriptor.from_tensor(a, [bm, bk])
    right = TensorDescriptor.from_tensor(b, [bn, bk] if turned else [bk, bn])
    parts = torch.empty((split, m, n), dtype=torch.float32, device=a.device) if split > 1 else out
    tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    if kind == "few":
        made: Launches = [(_few, (tiles, split), (left, right, out, parts, m, n, k, bm, bn, bk, split), options)]
    else:
        result = TensorDescriptor.from_tensor(out, [bm, bn])
        if kind == "persistent":
            units = torch.cuda.get_device_properties(a.device).multi_processor_count
            return [
                (_persistent, (min(tiles, units),), (left, right, result, m, n, k, bm, bn, bk, units, turned), options)
            ]
        arguments = (left, right, result, parts, m, n, k, bm, bn, bk, split, turned)
        made = [(_product, (tiles, split), arguments, options)]
    if split > 1:
        made.append((_add_up, (triton.cdiv(m * n, 1024),), (parts, out, m * n, split, 1024), {"num_warps": 4}))
    return made


def compile_ahead(cases: Iterable[tuple[Any, Any, Any, bool]]) -> None:
    """Compile everything that :func:`candidates` will launch for these (a, b, out, turned), several kernels at once."""
    seen: set[Any] = set()
    with ThreadPoolExecutor(THREADS) as pool, triton.AsyncCompileMode(pool, ignore_errors=True):
        for a, b, out, turned in cases:
            for configuration in configurations(a.shape[0]):
                key = (a.dtype, turned, min(a.shape[0], 17), configuration)
                if key in seen:
                    continue
                seen.add(key)
                for kernel, grid, arguments, options in launches(a, b, out, turned, configuration):
                    kernel.warmup(*arguments, grid=grid, **options)


def candidates(a: Any, b: Any, out: Any, turned: bool) -> dict[str, Callable[[], Any]]:
    """A function for each configuration that runs: it computes ``a @ b`` (``a @ b.T``) into ``out``."""
    found: dict[str, Callable[[], Any]] = {}
    for configuration in configurations(a.shape[0]):
        made = launches(a, b, out, turned, configuration)

        def call(made: Launches = made) -> None:
            for kernel, grid, arguments, options in made:
                kernel[grid](*arguments, **options)

        try:
            call()
        except Exception as error:  # too much shared memory, mostly
            print(f"Triton {configuration}: {type(error).__name__} {str(error)[:120]}")
            continue
        found[f"Triton-{configuration.kind}-{'x'.join(map(str, configuration[1:]))}"] = call
    return found
