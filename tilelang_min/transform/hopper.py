"""Which parts of a kernel take Hopper's own instructions: warp group products, the tensor memory accelerator, a producer.

Before (``num_stages=4``, ``threads=256``), the author's program::

    for k in T.Pipelined(n, num_stages=4):
        T.copy(A[.., k], A_shared)
        T.copy(B[k, ..], B_shared)
        T.gemm(A_shared, B_shared, C_local)

The plan: the product by wgmma (C in a WarpgroupLayout, A_shared and B_shared in panels of 128 bytes), the loop a ring of four
stages.  A choice that does not fit is left to the path of sm_80, for this statement or for the whole kernel, and noted.

=================  =================================================================================================
wgmma              types of ``targets/wgmma.py``; threads a multiple of 128; 64 rows a warp group; operands that are
                   whole tiles whose rows are whole panels of 32 bytes or more
ring               every copy of the loop that can run ahead brings a whole tile of a tensor that nothing writes, whose
                   rows lie on 16 bytes; a warp group product reads it; what surrounds the loop reads no tile
=================  =================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod
from typing import Any

from tilelang_min.analysis.limits import registers_available
from tilelang_min.analysis.regions import written
from tilelang_min.errors import LanguageError
from tilelang_min.ir.expressions import as_int, loads, uses
from tilelang_min.ir.nodes import Buffer, Conditional, Copy, Gemm, Loop, Region, Statement, TileProgram, walk
from tilelang_min.ir.plans import HopperPlan
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.program.tensor_maps import MOST_BOX_EXTENT, MOST_DIMENSIONS, UNIT_BYTES
from tilelang_min.targets import Target, occupancy
from tilelang_min.targets.wgmma import (
    GROUP_THREADS,
)
from tilelang_min.transform.hopper_products import is_whole, least_registers, plan_products
from tilelang_min.transform.pipeline import can_run_ahead

_OTHER_REGISTERS = 40
"""What a thread needs beside its fragments, about."""


@dataclass(frozen=True)
class HopperOptions:
    """What may be used; the compile option ``hopper`` gives some of them by name.

    ``split``: blocks share the iterations of a tile's loop where there are few tiles; a number says how many do.
    Clusters are off: pairs of blocks that share loads were right and slower on an H200 at every size of ``docs/hopper.md``.
    """

    wgmma: bool = True
    tma: bool = True
    warp_specialize: bool = True
    persistent: bool = True
    overlap: bool = True
    cluster: bool = False
    split: bool | int = True

    @classmethod
    def of(cls, value: object) -> HopperOptions:
        """The options that a dictionary stands for; True is none of them, False all off.  LanguageError for anything else."""
        names = [field.name for field in fields(cls)]
        if isinstance(value, bool):
            return cls() if value else cls(**dict.fromkeys(names, False))
        if isinstance(value, dict):
            for name, item in value.items():
                number = name == "split" and isinstance(item, int) and item > 0
                if name not in names or not (isinstance(item, bool) or number):
                    raise LanguageError(
                        f"compile option hopper: {name!r}: {item!r} is not understood",
                        remedy=f"give a truth value for some of {', '.join(names)}; for split also a number of blocks",
                    )
            return cls(**value)
        raise LanguageError(
            f"compile option hopper is {value!r}", remedy="give True, False, or a dictionary such as {'tma': False}"
        )


def plan_hopper(program: TileProgram, target: Target, options: HopperOptions) -> HopperPlan:
    """The plan; empty where the target has no such instructions."""
    plan = HopperPlan()
    if not {"wgmma", "tma"} <= target.features:
        return plan
    if not options.wgmma:
        return plan
    plan_products(program, target, plan)
    if plan.gemms and options.tma and options.warp_specialize:
        loops = list(_rings(program, program.body, plan, target))
        plan.overlap = options.overlap
        plan.loops = frozenset(loop.operation for loop in loops)
        if loops:
            _order(program, loops, target, options, plan)
    return plan


# -- the order of blocks -------------------------------------------------------------------------------------------


def _order(program: TileProgram, loops: list[Loop], target: Target, options: HopperOptions, plan: HopperPlan) -> None:
    """Persistent blocks, the order of tiles, and pairs of blocks that share loads.

    Of tiles that run together the fewest bytes come into the cache when ``rows`` x ``units / rows`` of them share ``rows`` tiles
    of what depends on the row of the grid alone, and ``units / rows`` of what depends on the column.  Two neighbours along the
    direction on which fewer bytes depend are a cluster: each brings one half of what both need.
    """
    bx, by, _ = program.block_variables
    units = target.devices[0].units
    copies = [item for loop in loops for item in loop.body if isinstance(item, Copy)]
    moved = {id(copy): prod(copy.source.extents) * dtype_bytes(copy.source.buffer.dtype) for copy in copies}

    def shared(variable: Any) -> int:
        """Bytes that blocks which differ in ``variable`` alone have in common."""
        return sum(moved[id(copy)] for copy in copies if not any(uses(item, variable) for item in copy.source.offsets))

    # Along a column of the grid blocks share what does not depend on the row, and the other way round.
    in_column, in_row = shared(by), shared(bx)
    sizes = [1 << bit for bit in range(units.bit_length())]
    choices = []
    for order, variable, extent, together, apart in (
        ("row", by, program.grid[1], in_column, in_row),
        ("column", bx, program.grid[0], in_row, in_column),
    ):
        pairs = (
            options.cluster
            and not program.sizes
            and together > 0
            and extent % 2 == 0
            and units % 2 == 0
            and not _depends(program, loops, variable)
        )
        size = min(sizes, key=lambda count, a=apart, b=together: count * a + -(-units // count) * b)  # type: ignore[misc]
        choices.append((pairs, together, max(2, size), order))
    best = max(choices, key=lambda choice: choice[:2])
    if program.panel is not None:
        best = next(choice for choice in choices if choice[3] == program.panel[1])
        best = (best[0] and program.panel[0] % 2 == 0, best[1], *program.panel)
    plan.cluster = 2 if best[0] else 1
    if program.panel is not None or best[0] or (in_column and in_row):
        plan.panel = (best[2], best[3])
    # Other work than products leaves less to overlap between tiles, and units that take the next block when they are free
    # do better than a fixed share, the more so where blocks differ in length.
    products = all(
        isinstance(item, Copy) or (isinstance(item, Gemm) and item.operation in plan.gemms)
        for loop in loops
        for item in loop.body
    )
    alone = _resident(program, loops, plan, target) == 1
    known = [as_int(extent) for extent in program.grid]
    more = any(extent is None for extent in known) or prod(known) > units  # type: ignore[arg-type]
    plan.persistent = options.persistent and alone and products and more


def _resident(program: TileProgram, loops: list[Loop], plan: HopperPlan, target: Target) -> int:
    """Blocks that fit on a unit, as far as tiles and accumulators tell: where several do, they overlap one another's ends."""
    groups = program.threads // GROUP_THREADS
    if groups > 1:
        return 1  # registers move to the consumers, and none are left
    stages = {
        item.target.buffer.name: loop.stages for loop in loops for item in walk(loop.body) if isinstance(item, Copy)
    }
    need = 0
    for tile in (buffer for buffer in program.buffers if buffer.scope == "shared"):
        need += tile.elements * dtype_bytes(tile.dtype) * stages.get(tile.name, 1)
    held = sum(
        tile.elements * dtype_bytes(tile.dtype) // (4 * program.threads)
        for tile in program.buffers
        if tile.scope == "fragment"
    )
    found = occupancy(
        target,
        threads=program.threads + GROUP_THREADS,
        registers_per_thread=min(held + _OTHER_REGISTERS, target.registers.per_thread),
        shared_bytes=min(need, target.shared.block_limit),
    )
    return found.max_blocks_per_unit or 1


def _depends(program: TileProgram, loops: list[Loop], variable: Any) -> bool:
    """Whether how often the loops run depends on ``variable``: their own lengths, or those and the conditions around them."""
    numbers = {loop.operation for loop in loops}
    for statement in walk(program.body):
        if isinstance(statement, (Loop, Conditional)):
            inside = {item.operation for item in walk((statement,)) if isinstance(item, Loop)}
            if inside & numbers:
                values = (
                    (statement.condition,)
                    if isinstance(statement, Conditional)
                    else (statement.start, statement.extent)
                )
                if any(uses(value, variable) for value in values):
                    return True
    return False


# -- rings ---------------------------------------------------------------------------------------------------------


def _rings(program: TileProgram, body: tuple[Statement, ...], plan: HopperPlan, target: Target) -> Iterator[Loop]:
    """Pipelined loops that can be rings, among statements whose surroundings a producer can follow."""
    for statement in body:
        if isinstance(statement, Conditional):
            inside = [item for item in walk((statement,)) if isinstance(item, Loop) and item.kind == "pipelined"]
            if loads(statement.condition):
                for loop in inside:
                    _note(program, plan, loop, "it stands under a condition that reads a tile")
                continue
            yield from _rings(program, statement.then, plan, target)
            yield from _rings(program, statement.otherwise, plan, target)
        elif isinstance(statement, Loop) and statement.kind != "pipelined":
            if not loads(statement.extent) and not loads(statement.start):
                yield from _rings(program, statement.body, plan, target)
        elif isinstance(statement, Loop):
            reason = _no_room(program, plan, target) or _no_ring(program, statement, plan)
            if reason is None:
                yield statement
            else:
                _note(program, plan, statement, reason)


def _note(program: TileProgram, plan: HopperPlan, loop: Loop, reason: str) -> None:
    plan.notes.append(f"{program.operations[loop.operation].label}: no producer warp group: {reason}")


def _no_room(program: TileProgram, plan: HopperPlan, target: Target) -> str | None:
    """Why a block cannot have a producer beside its threads; None: it can."""
    threads = program.threads + GROUP_THREADS
    if threads > target.max_threads_per_block:
        return f"{program.threads} threads leave no room for it in a block of {target.max_threads_per_block}"
    # What consumers are given later does not count: ptxas wants the registers at the start.
    have = registers_available(target, threads)
    gemms = [item for item in walk(program.body) if isinstance(item, Gemm) and item.operation in plan.gemms]
    need = max((least_registers(gemm, plan.gemms[gemm.operation]) for gemm in gemms), default=0)
    if need > have:
        return f"products need {need} registers of each of {program.threads} threads, beside it they have {have}"
    return None


def _no_ring(program: TileProgram, loop: Loop, plan: HopperPlan) -> str | None:
    """Why a pipelined loop is no ring; None: it is."""
    if loop.stages < 2:
        return "it has one stage"
    if loads(loop.extent) or loads(loop.start):
        return "its length is read from a tile"
    copies = [item for item in loop.body if isinstance(item, Copy) and can_run_ahead(program, loop, item)]
    if not copies:
        return "none of its copies can run ahead"
    tiles = {copy.target.buffer.name for copy in copies}
    products = [item for item in walk(loop.body) if isinstance(item, Gemm) and item.operation in plan.gemms]
    if not any({item.a.buffer.name, item.b.buffer.name} & tiles for item in products):
        return "no product of warp groups reads its tiles"
    everywhere = [buffer for statement in walk(program.body) for buffer in written(statement)]
    for copy in copies:
        source = copy.source.buffer
        if any(source is buffer for buffer in everywhere):
            return f"the kernel writes {source.name}, from which it copies"
        if copy.target.buffer.name in program.pinned:
            return f"T.annotate_layout pins {copy.target.buffer.name}"
        reason = _no_boxes(copy.source, copy.target, plan.shared)
        if reason is not None:
            return reason
    return None


def _no_boxes(tensor: Region, tile: Region, shared: dict[str, SharedLayout]) -> str | None:
    """Why the tensor memory accelerator cannot bring a whole tile from a region of a tensor; None: it can."""
    name, size = tensor.buffer.name, dtype_bytes(tensor.buffer.dtype)
    reason = no_map(tensor.buffer)
    if tensor.buffer.dtype != tile.buffer.dtype:
        return f"{name} and {tile.buffer.name} have different types"
    if not is_whole(tile):
        return f"{tile.buffer.name} is filled in parts"
    if reason is not None:
        return reason
    if tensor.extents[-1] != tile.buffer.shape[-1] or tensor.extents[-1] == 1:
        return f"rows of {tile.buffer.name} do not run along rows of {name}"
    if any(extent > MOST_BOX_EXTENT for extent in tensor.extents[:-1]):
        return f"more than {MOST_BOX_EXTENT} rows of {name} at once"
    layout = shared.get(tile.buffer.name) or SharedLayout.plain(tile.buffer.shape, size)
    if layout.panel > MOST_BOX_EXTENT or layout.panel * size % UNIT_BYTES or layout.row_stride != layout.panel:
        return f"rows of {tile.buffer.name} are no boxes"
    return None


def no_map(tensor: Buffer) -> str | None:
    """Why no tensor map describes a tensor; None: one does."""
    name, size = tensor.name, dtype_bytes(tensor.dtype)
    if as_int(tensor.shape[-1]) is None:
        return f"how long rows of {name} are is known at launch alone"
    if tensor.shape[-1] * size % UNIT_BYTES:
        return f"rows of {name} are {tensor.shape[-1] * size} bytes long, no multiple of {UNIT_BYTES}"
    if len(tensor.shape) > MOST_DIMENSIONS:
        return f"{name} has more than {MOST_DIMENSIONS} dimensions"
    return None
