"""Does a tile program fit its target?  Checked before anything is generated."""

from __future__ import annotations

from collections.abc import Mapping

from tilelang_min.errors import LanguageError, ResourceError
from tilelang_min.ir.expressions import as_int
from tilelang_min.ir.nodes import Buffer, Gemm, TileProgram
from tilelang_min.ir.shared_layout import SharedLayout, placed
from tilelang_min.program import SourceLocation
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target


def check_resources(
    program: TileProgram, target: Target, shared_layouts: Mapping[str, SharedLayout] | None = None
) -> None:
    """Raise ResourceError when a block needs more shared memory, registers or threads than the target has, or a launch more blocks.

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
    _check_grid(program, target)
    layouts = shared_layouts or {}
    need, tiles = _shared_need(program, layouts)
    if need > target.shared.block_limit:
        word = "LDS" if target.kind == "hip" else "shared memory"
        users = ", ".join(
            f"{buffer.name} {size:,} bytes"
            + (f" ({stages} stages)" if stages > 1 else "")
            + f" at line {buffer.location.line}"
            for size, stages, buffer in tiles[:4]
        )
        raise ResourceError(
            f"the block needs {need:,} bytes of {word}, {target.name} has {target.shared.block_limit:,}: {users}"
            f"{_used_by(program, {buffer.name: size for size, _, buffer in tiles}, 'bytes')}",
            location=tiles[0][2].location,
            remedy=_fewer_stages(program, layouts, target.shared.block_limit),
        )


def _shared_need(
    program: TileProgram, layouts: Mapping[str, SharedLayout], most_stages: int | None = None
) -> tuple[int, list[tuple[int, int, Buffer]]]:
    """Bytes of shared memory of a block, and (bytes, stages, tile) of each, the largest first; with ``most_stages``: if no tile
    had more."""
    tiles, places = [], []
    for buffer in program.buffers:
        if buffer.scope == "shared":
            stages = min(program.stages.get(buffer.name, 1), most_stages or 1 << 30)
            plain = SharedLayout.plain(buffer.shape, dtype_bytes(buffer.dtype))
            layout = layouts.get(buffer.name, plain)
            places.append((layout, stages))
            tiles.append((layout.bytes(stages), stages, buffer))
    return placed(places)[1], sorted(tiles, key=lambda item: -item[0])


def _fewer_stages(program: TileProgram, layouts: Mapping[str, SharedLayout], limit: int) -> str:
    """What to do about shared memory: the most stages that fit, where there are any."""
    for stages in range(max(program.stages.values(), default=1) - 1, 0, -1):
        need, _ = _shared_need(program, layouts, stages)
        if need <= limit:
            return f"use smaller tiles, or num_stages={stages}, which needs {need:,} bytes"
    return "use smaller tiles" + ("; one stage alone is too large" if program.stages else "")


def _used_by(program: TileProgram, sizes: Mapping[str, int], unit: str) -> str:
    """The operations that touch most of some buffers: ``; most of it is used by T.gemm(..) at line 12 (65,536 bytes), ..``."""
    by_operation = []
    for operation in program.operations:
        total = sum(size for name, size in sizes.items() if name in {*operation.reads, *operation.writes})
        if total and operation.kind not in ("kernel", "loop"):
            by_operation.append((total, operation))
    by_operation.sort(key=lambda item: -item[0])
    named = ", ".join(
        f"{operation.label} at line {operation.location.line} ({total:,} {unit})"
        for total, operation in by_operation[:3]
    )
    return f"; most is used by {named}" if named else ""


def _check_grid(program: TileProgram, target: Target) -> None:
    """What the hardware can count: blocks in each direction, and on AMD threads."""
    for axis, extent, most in zip("xyz", program.grid, target.max_grid, strict=True):
        if as_int(extent) is not None and extent > most:
            raise ResourceError(
                f"the grid {program.grid} has {extent:,} blocks along {axis}, {target.name} allows {most:,}",
                location=program.location,
                remedy="give a block more of the work"
                if axis == "x"
                else "put the longest dimension first, or give a block more of the work",
            )
    threads = (as_int(program.grid[0]) or 0) * program.threads
    if target.max_grid_threads is not None and threads > target.max_grid_threads:
        raise ResourceError(
            f"the grid {program.grid} has {threads:,} threads along x, {target.name} allows {target.max_grid_threads:,}",
            location=program.location,
            remedy="give a block more of the work",
        )


def registers_available(target: Target, threads: int) -> int:
    """Registers that each thread of a block can have at most: what an instruction can name, and what the file has for so many."""
    file = target.registers
    if file.per_unit is None or file.granule is None:
        return file.per_thread
    warps = -(-threads // target.warp_size)
    by_file = file.per_unit // warps // file.granule * file.granule // target.warp_size
    return min(file.per_thread, by_file)


def _check_fragments(program: TileProgram, target: Target) -> None:
    """A fragment that alone needs more registers than a thread can have would live in memory."""
    most = registers_available(target, program.threads)
    for buffer in program.buffers:
        if buffer.scope == "fragment":
            need = -(-buffer.elements // program.threads) * dtype_bytes(buffer.dtype) // 4
            if need > most:
                users = _used_by(program, {buffer.name: need}, "registers")
                raise ResourceError(
                    f"fragment {buffer.name} needs {need} registers of each of {program.threads} threads, {target.name} has "
                    f"{most} a thread{'' if most == target.registers.per_thread else ' in blocks of that size'}{users}",
                    location=buffer.location,
                    remedy="use a smaller tile or more threads"
                    if most == target.registers.per_thread
                    else "use a smaller tile",
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
