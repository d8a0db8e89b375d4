"""Choosing how a matrix product is carried out: matrix instructions where shapes, types and alignment allow, FMA otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from tilelang_min.ir.layout import BlockedLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.nodes import Gemm, Region
from tilelang_min.ir.plans import GemmPlan, ldmatrix_brings
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import MatrixInstruction, Target

_WIDE_BYTES = 16
"""Widest shared-memory access of one lane."""


def plan_gemm(gemm: Gemm, threads: int, target: Target, pinned: Mapping[str, SharedLayout] | None = None) -> GemmPlan:
    """The fastest plan that fits the product's extents, types and alignment; ``pinned`` are layouts that tiles must keep."""
    aligned = partial(_aligned, pinned or {})
    reasons: list[str] = []
    refused: list[str] = []
    if threads % target.warp_size == 0:
        types = (gemm.a.buffer.dtype, gemm.b.buffer.dtype, gemm.c.buffer.dtype)
        suited = [
            each
            for each in target.instruction_set
            if (each.a_dtype, each.b_dtype, each.c_dtype) == types and (not each.lossy or gemm.precision == "tf32")
        ]
        suited.sort(key=lambda each: not each.lossy)
        if gemm.agree is not None:
            suited = [each for each in suited if each.m == gemm.agree[0]]
        if gemm.precision == "tf32" and not any(each.lossy for each in suited):
            reasons.append(f"{target.name} has no tf32: the product is exact")
        if not suited and types[0] != "float32":
            reasons.append(f"{target.name} multiplies no matrices of {_named(types)} into {types[2]}")
            refused.append(reasons[-1])
        refused += [
            f"{each.name}: it cuts {types[0]} down to {each.input_format}"
            for each in target.instruction_set
            if (each.a_dtype, each.b_dtype, each.c_dtype) == types and each.lossy and gemm.precision != "tf32"
        ]
        for instruction in suited:
            plan = (
                _mma(gemm, threads, target, instruction, aligned)
                if target.kind == "cuda"
                else _mfma(gemm, threads, target, instruction, aligned)
            )
            if isinstance(plan, GemmPlan):
                return replace(plan, refused=tuple(refused))
            reasons.append(plan)
            refused.append(f"{instruction.name}: {plan}")
        outer = _outer(gemm, threads, target)
        if outer is not None:
            return GemmPlan("outer", outer, note="; ".join(reasons), refused=tuple(refused))
    vector = 1
    layout = BlockedLayout((gemm.m, gemm.n), threads, vector)
    reasons.append(f"{gemm.m}x{gemm.n} does not divide into register blocks of {threads} threads")
    return GemmPlan("plain", layout, note="; ".join(reasons), refused=(*refused, reasons[-1]))


def _named(types: tuple[str, str, str]) -> str:
    return types[0] if types[0] == types[1] else f"{types[0]} and {types[1]}"


def _splits(warps: int) -> Iterator[tuple[int, int]]:
    """All grids of ``warps`` warps."""
    for rows in range(1, warps + 1):
        if warps % rows == 0:
            yield rows, warps // rows


_Aligned = Callable[[Region, int], bool]


def _aligned(pinned: Mapping[str, SharedLayout], region: Region, unit_bytes: int) -> bool:
    """Whether rows, and the first column of the region, lie on multiples of ``unit_bytes``."""
    offset, size = region.offsets[-1], dtype_bytes(region.buffer.dtype)
    layout = pinned.get(region.buffer.name)
    return (
        region.buffer.shape[-1] * size % unit_bytes == 0
        and isinstance(offset, int)
        and offset * size % unit_bytes == 0
        and (layout is None or unit_bytes < size or layout.whole(unit_bytes // size))
    )


def _best_split(gemm: Gemm, warps: int, unit_m: int, unit_n: int) -> tuple[int, int] | None:
    """The warp grid that reads the fewest operand elements a warp: the squarest tile that divides.

    Of two equally square ones the wider tile wins: B is then read several columns at a time.  A policy of rows (columns) takes as
    many warps one above the other (side by side) as divide.
    """
    fitting = [
        (r, c)
        for r, c in _splits(warps)
        if gemm.m % (r * unit_m) == 0 and gemm.n % (c * unit_n) == 0 and (gemm.agree is None or r == gemm.agree[1])
    ]
    if gemm.policy in ("rows", "columns"):
        return max(fitting, key=lambda grid: grid[0 if gemm.policy == "rows" else 1], default=None)
    return min(fitting, key=lambda grid: (gemm.m // grid[0] + gemm.n // grid[1], -grid[0])) if fitting else None


def _mma(gemm: Gemm, threads: int, target: Target, instruction: MatrixInstruction, aligned: _Aligned) -> GemmPlan | str:
    """mma.sync with operands through ldmatrix, which needs rows that lie on 16 bytes."""
    if gemm.k % instruction.k:
        return f"K = {gemm.k} of a tile is not a multiple of {instruction.k}"
    sides = ((gemm.a, not gemm.transpose_a), (gemm.b, gemm.transpose_b))
    through_ldmatrix = [
        region
        for region, along_k in sides
        if region.buffer.scope == "shared" and ldmatrix_brings(region.buffer.dtype, along_k)
    ]
    if not all(aligned(region, _WIDE_BYTES) for region in through_ldmatrix):
        return "rows of the shared tiles are not 16-byte aligned, which ldmatrix needs"
    # Two column tiles share one ldmatrix.x4, so a warp is at least 16 columns wide.
    split = _best_split(gemm, threads // target.warp_size, instruction.m, 2 * instruction.n)
    if split is None:
        return f"{gemm.m}x{gemm.n} does not divide into {threads // target.warp_size} warps of {instruction.m}x{2 * instruction.n}"
    tiles = (gemm.m // split[0] // instruction.m, gemm.n // split[1] // instruction.n)
    layout = MatrixLayout(
        (gemm.m, gemm.n),
        target.warp_size,
        split,
        tiles,
        instruction.m,
        instruction.n,
        instruction.c_map.items,
        instruction.c_map,
    )
    return GemmPlan("mma", layout, instruction)


def _mfma(
    gemm: Gemm, threads: int, target: Target, instruction: MatrixInstruction, aligned: _Aligned
) -> GemmPlan | str:
    """MFMA; lanes read 16 bytes of K at a time where alignment allows and use them in several instructions.

    The order in which K is visited is free as long as A and B agree, so a lane's contiguous elements serve consecutive MFMAs.
    """
    split = _best_split(gemm, threads // target.warp_size, instruction.m, instruction.n)
    if split is None:
        return f"{gemm.m}x{gemm.n} does not divide into {threads // target.warp_size} wavefronts of {instruction.m}x{instruction.n}"
    size = dtype_bytes(gemm.a.buffer.dtype)
    items = instruction.a_map.items
    pack = 1
    along_k = [region for region, along in ((gemm.a, not gemm.transpose_a), (gemm.b, gemm.transpose_b)) if along]
    fragments = "fragment" in (
        gemm.a.buffer.scope,
        gemm.b.buffer.scope,
    )  # which lie in the order of single instructions
    while (
        not fragments
        and pack * 2 * items * size <= _WIDE_BYTES
        and gemm.k % (pack * 2 * instruction.k) == 0
        and any(aligned(region, pack * 2 * items * size) for region in along_k)
    ):
        pack *= 2
    if gemm.k % (pack * instruction.k):
        return f"K = {gemm.k} of a tile is not a multiple of {instruction.k}"
    tiles = (gemm.m // split[0] // instruction.m, gemm.n // split[1] // instruction.n)
    column_pack = 1
    if not gemm.transpose_b and gemm.b.buffer.scope == "shared":
        most = _WIDE_BYTES // size
        fitting = (p for p in (8, 4, 2) if p <= most and p * size >= 4 and tiles[1] % p == 0)
        column_pack = next((p for p in fitting if aligned(gemm.b, p * size)), 1)
    layout = MatrixLayout(
        (gemm.m, gemm.n),
        target.warp_size,
        split,
        tiles,
        instruction.m,
        instruction.n,
        instruction.c_map.items,
        instruction.c_map,
        column_pack,
    )
    return GemmPlan("mfma", layout, instruction, pack)


def _outer(gemm: Gemm, threads: int, target: Target) -> OuterProductLayout | None:
    """Register blocks for FMA: lanes 8 apart in rows, so that padded rows of A are read without conflicts; at most 8x8 a thread."""
    lanes_m, lanes_n = 8, target.warp_size // 8
    best: OuterProductLayout | None = None
    for rows_of_warps, columns_of_warps in _splits(threads // target.warp_size):
        if gemm.m % (rows_of_warps * lanes_m) or gemm.n % (columns_of_warps * lanes_n):
            continue
        if gemm.agree is not None and gemm.agree[1] != rows_of_warps:
            continue
        rows = gemm.m // (rows_of_warps * lanes_m)
        columns = gemm.n // (columns_of_warps * lanes_n)
        vector = next(width for width in (4, 2, 1) if columns % width == 0)
        if rows * columns > 128:
            continue
        layout = OuterProductLayout(
            (gemm.m, gemm.n), (rows_of_warps, columns_of_warps), lanes_m, lanes_n, rows, columns, vector
        )
        # Fewest shared reads a product: rows from A, columns from B in vectors.
        if best is None or _reads(gemm, layout) < _reads(gemm, best):
            best = layout
    return best


def _reads(gemm: Gemm, layout: OuterProductLayout) -> tuple[int, int]:
    if gemm.policy in ("rows", "columns"):
        return -layout.warps[0 if gemm.policy == "rows" else 1], 0
    return layout.rows + layout.columns, -layout.vector
