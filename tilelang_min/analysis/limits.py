"""Does a tile program fit its target?  Checked before anything is generated."""

from __future__ import annotations

from collections.abc import Mapping

from tilelang_min.errors import LanguageError, ResourceError
from tilelang_min.ir.nodes import Gemm, TileProgram
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program import SourceLocation
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target


def check_resources(
    program: TileProgram, target: Target, shared_layouts: Mapping[str, SharedLayout] | None = None
) -> None:
    """Raise ResourceError when the block needs more shared memory or threads than the target has.

    Tiles that ``shared_layouts`` does not name lie row after row.
    """
    if target.kind == "cpu":
        return
    if program.threads > target.max_threads_per_block:
        raise ResourceError(
            f"{program.threads} threads a block, {target.name} allows {target.max_threads_per_block}",
            location=program.location,
            remedy="lower threads= of T.Kernel",
        )
    if program.threads % target.warp_size:
        word = "wavefront" if target.kind == "hip" else "warp"
        raise ResourceError(
            f"{program.threads} threads a block is not a multiple of the {word} of {target.warp_size} on {target.name}",
            location=program.location,
            remedy=f"use a multiple of {target.warp_size}",
        )
    _check_fragments(program, target)
    limit = 65535
    if max(program.grid[1:]) > limit or program.grid[0] >= 2**31:
        raise ResourceError(
            f"grid {program.grid} is too large: y and z are limited to {limit}",
            location=program.location,
            remedy="put the longest dimension first",
        )
    tiles, need = [], 0
    for buffer in program.buffers:
        if buffer.scope == "shared":
            stages = program.stages.get(buffer.name, 1)
            plain = SharedLayout.plain(buffer.shape, dtype_bytes(buffer.dtype))
            layout = (shared_layouts or {}).get(buffer.name, plain)
            size = (layout.pitch * (stages - 1) + layout.elements) * layout.itemsize
            need = -(-need // layout.alignment) * layout.alignment + -(-size // 128) * 128
            tiles.append((size, stages, buffer))
    if need > target.shared.block_limit:
        word = "LDS" if target.kind == "hip" else "shared memory"
        tiles.sort(key=lambda item: -item[0])
        users = ", ".join(
            f"{buffer.name} {size:,} bytes"
            + (f" ({stages} stages)" if stages > 1 else "")
            + f" at line {buffer.location.line}"
            for size, stages, buffer in tiles[:4]
        )
        raise ResourceError(
            f"the block needs {need:,} bytes of {word}, {target.name} has {target.shared.block_limit:,}: {users}",
            location=tiles[0][2].location,
            remedy="use smaller tiles or fewer stages",
        )


def _check_fragments(program: TileProgram, target: Target) -> None:
    """A fragment that alone needs more registers than a thread can have would live in memory."""
    for buffer in program.buffers:
        if buffer.scope == "fragment":
            need = -(-buffer.elements // program.threads) * dtype_bytes(buffer.dtype) // 4
            if need > target.registers.per_thread:
                raise ResourceError(
                    f"fragment {buffer.name} needs {need} registers of each of {program.threads} threads, {target.name} has "
                    f"{target.registers.per_thread} a thread",
                    location=buffer.location,
                    remedy="use a smaller tile or more threads",
                )


def require_accumulator(target: Target, gemm: Gemm, location: SourceLocation) -> None:
    """Raise LanguageError where the target does not add up in the type of C: float16, other than by matrix instructions."""
    dtype = gemm.c.buffer.dtype
    if dtype == "float16" and all(each.c_dtype != dtype for each in target.instruction_set):
        raise LanguageError(
            f"{target.name} does not add up matrix products in {dtype}",
            location=location,
            remedy=f"give {gemm.c.buffer.name} the type float32, and T.copy it into a {dtype} fragment",
        )
