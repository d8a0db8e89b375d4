"""Which products take warp group instructions (wgmma), with what accumulators, and how their operands lie.

A product that does not fit is noted, with the reason.  Types and shapes of the instructions are in ``targets/wgmma.py``.
"""

from __future__ import annotations

from tilelang_min.analysis.limits import registers_available
from tilelang_min.ir.expressions import as_int
from tilelang_min.ir.nodes import Buffer, Gemm, Region, TileProgram, walk
from tilelang_min.ir.plans import GemmPlan, HopperPlan
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.ir.warpgroup_layout import WarpgroupLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target
from tilelang_min.targets.wgmma import GROUP_THREADS, OPERAND_BYTES, ROWS, WarpgroupProduct, warpgroup_products


def plan_products(program: TileProgram, target: Target, plan: HopperPlan) -> None:
    """Plans of all products that fit, and the layouts of their tiles; products that share an accumulator agree."""
    gemms = [statement for statement in walk(program.body) if isinstance(statement, Gemm)]
    refused: dict[str, str] = {}
    found: dict[int, GemmPlan] = {}
    accumulators: dict[str, WarpgroupLayout] = {}
    for gemm in gemms:
        made = _pinned(program, gemm) or _product(gemm, program.threads, target)
        name = gemm.c.buffer.name
        if isinstance(made, GemmPlan) and isinstance(made.layout, WarpgroupLayout):
            known = accumulators.setdefault(name, made.layout)
            if known == made.layout:
                found[gemm.operation] = made
                continue
            made = "another product into the same fragment needs another layout"
        refused[name] = str(made)
        plan.notes.append(f"{program.operations[gemm.operation].label}: no wgmma: {made}")
    for gemm in gemms:
        if gemm.operation in found and gemm.c.buffer.name not in refused:
            plan.gemms[gemm.operation] = found[gemm.operation]
            for region in (item for item in (gemm.a, gemm.b) if item.buffer.scope == "shared"):
                plan.shared[region.buffer.name] = _panels(region.buffer)


def _pinned(program: TileProgram, gemm: Gemm) -> str | None:
    """Why the author's layouts forbid wgmma; None: they do not."""
    names = [region.buffer.name for region in (gemm.a, gemm.b) if region.buffer.name in program.pinned]
    return f"T.annotate_layout pins {names[0]}" if names else None


def _product(gemm: Gemm, threads: int, target: Target) -> GemmPlan | str:
    """A plan with wgmma, or why there is none."""
    types = (gemm.a.buffer.dtype, gemm.b.buffer.dtype, gemm.c.buffer.dtype)
    product = next(
        (each for each in warpgroup_products(target.features) if (each.a_dtype, each.b_dtype, each.c_dtype) == types),
        None,
    )
    if product is None:
        return f"it does not multiply {types[0]} by {types[1]} into {types[2]}"
    if threads % GROUP_THREADS:
        return f"{threads} threads are no whole warp groups of {GROUP_THREADS}"
    if gemm.k % product.k:
        return f"K = {gemm.k} of a tile is not a multiple of {product.k}"
    for region, along_k in ((gemm.a, not gemm.transpose_a), (gemm.b, gemm.transpose_b)):
        if not is_whole(region) or len(region.buffer.shape) != 2:
            return f"{region.buffer.name} is not a whole tile"
        if region.buffer.scope != "shared":
            if region is gemm.b or gemm.transpose_a or not product.transposes:
                return f"{region.buffer.name} lies in registers"
            continue
        if not along_k and not product.transposes:
            return f"rows of {region.buffer.name} do not run along K, which {types[0]} needs"
        if region.buffer.shape[-1] * dtype_bytes(region.buffer.dtype) % OPERAND_BYTES:
            return f"a row of {region.buffer.name} is no whole number of {OPERAND_BYTES} bytes"
    if not is_whole(gemm.c):
        return f"it computes a part of {gemm.c.buffer.name}"
    layout = _accumulator(gemm, threads // GROUP_THREADS, product)
    if layout is None:
        return f"{gemm.m}x{gemm.n} does not divide into {threads // GROUP_THREADS} warp groups of {ROWS} rows"
    plan = GemmPlan("wgmma", layout, product)
    need, have = least_registers(gemm, plan), registers_available(target, threads)
    if need > have:
        return f"an instruction of {layout.columns} columns needs {need} registers of each of {threads} threads, {have} are there"
    return plan


def least_registers(gemm: Gemm, plan: GemmPlan) -> int:
    """What the assembler asks for: the accumulators of one instruction, and its other operands."""
    assert isinstance(plan.layout, WarpgroupLayout)
    product: WarpgroupProduct = plan.instruction
    return product.least_registers(plan.layout.columns, a_in_registers=gemm.a.buffer.scope != "shared")


def _accumulator(gemm: Gemm, groups: int, product: WarpgroupProduct) -> WarpgroupLayout | None:
    """Warp groups over the product: one above the other where that goes, so that each instruction is as wide as can be."""
    panel = _panels(gemm.b.buffer).panel
    counts = [count for count in range(1, groups + 1) if groups % count == 0]
    for columns_of_groups in counts if gemm.policy != "columns" else reversed(counts):
        rows_of_groups = groups // columns_of_groups
        if gemm.m % (rows_of_groups * ROWS) or gemm.n % columns_of_groups:
            continue
        width = gemm.n // columns_of_groups
        fitting = (each for each in product.columns() if width % each == 0 and (gemm.transpose_b or each % panel == 0))
        columns = next(fitting, None)
        if columns is not None:
            tiles = (gemm.m // (rows_of_groups * ROWS), width // columns)
            return WarpgroupLayout((gemm.m, gemm.n), (rows_of_groups, columns_of_groups), tiles, columns)
    return None


def _panels(tile: Buffer) -> SharedLayout:
    """Where the elements of an operand lie."""
    return SharedLayout.widest_panels(tile.shape, dtype_bytes(tile.dtype))


def is_whole(region: Region) -> bool:
    """Whether a region is its whole buffer."""
    return region.extents == region.buffer.shape and all(as_int(offset) == 0 for offset in region.offsets)
