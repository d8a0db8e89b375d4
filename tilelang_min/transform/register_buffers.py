"""Which products by ``mma.sync`` read their operands a step ahead, and in which loops that goes on across iterations.

A step reads what its instructions multiply, so that without a second set of registers they wait for shared memory at each step.
ptxas moves reads up inside of a tile, but not across the barrier in front of the next one; ``lower/register_buffers.py`` says
what becomes of such a loop.  It is taken where

* the loop is a pipeline of asynchronous copies whose work is products alone, all by ``mma.sync``, of an even number of steps
  together (so that every iteration begins with the same registers);
* none of them multiplies what another one makes;
* the accumulators and two sets of operands leave room for addresses among a thread's registers.
"""

from __future__ import annotations

from tilelang_min.analysis.limits import registers_available
from tilelang_min.errors import LanguageError
from tilelang_min.ir.layout import MatrixLayout
from tilelang_min.ir.nodes import (
    AsyncCommit,
    AsyncWait,
    Barrier,
    Conditional,
    Gemm,
    Loop,
    TileProgram,
    walk,
)
from tilelang_min.ir.plans import GemmPlan, Layouts, RegisterBuffers
from tilelang_min.ir.shared_layout import SharedLayout, placed
from tilelang_min.program.dtypes import dtype_bytes
from tilelang_min.targets import Target, occupancy

MODES = ("off", "tile", "loop", "always")
"""What the compile option ``double_buffer`` may say: nothing; inside of a tile, which costs registers and brought nothing on an
H200; through all iterations where it pays; wherever the loop has the form, at the price of any registers, and elsewhere inside of
tiles."""

ADDRESS_REGISTERS = 34
"""Registers for addresses, counters and predicates of a loop of products; ptxas took 25 to 33 of them."""


def mode_of(value: object) -> str:
    """What an option stands for; LanguageError where it is none of them."""
    if isinstance(value, bool):
        return "loop" if value else "off"
    if value in MODES:
        return str(value)
    raise LanguageError(
        f"compile option double_buffer is {value!r}", remedy=f"give True, False or one of {', '.join(MODES)}"
    )


def plan_register_buffers(program: TileProgram, target: Target, layouts: Layouts, mode: str) -> RegisterBuffers:
    """The plan; pipelines and barriers must be in place."""
    plan = RegisterBuffers()
    if mode == "off" or target.kind != "cuda":
        return plan
    loops: dict[int, int] = {}
    products: set[int] = set()
    for statement in walk(program.body):
        if isinstance(statement, Loop) and mode in ("loop", "always"):
            reason = why_not(program, target, layouts, statement, costs=mode == "loop")
            if reason is None:
                loops[statement.operation] = _parts(program, target, layouts, statement)
                plan.notes[statement.operation] = "operands of products are read a step ahead, across iterations"
            elif any(_by_mma(layouts, item) for item in statement.body):
                plan.notes[statement.operation] = f"operands are not read ahead across iterations: {reason}"
        if mode in ("tile", "always") and isinstance(statement, Gemm) and _by_mma(layouts, statement):
            products.add(statement.operation)
    plan.loops, plan.products = loops, frozenset(products)
    return plan


def why_not(program: TileProgram, target: Target, layouts: Layouts, loop: Loop, *, costs: bool = True) -> str | None:
    """Why operands are not read ahead across iterations of ``loop``; None: they are.  ``costs``: registers and blocks count."""
    head = loop.body[:4]
    if [type(item) for item in head] != [AsyncWait, Barrier, Conditional, AsyncCommit]:
        return "it is no pipeline of asynchronous copies"
    work = loop.body[4:]
    products = [item for item in work if isinstance(item, Gemm)]
    if len(products) != len(work):
        return "it does other work than products"
    if not all(_by_mma(layouts, item) for item in products):
        return "a product is not by mma.sync"
    steps = sum(item.k // layouts.gemms[item.operation].instruction.k for item in products)
    if steps % 2:
        return f"{steps} steps along K are an odd number"
    results = [item.c.buffer for item in products]
    for item in products:
        for buffer in (item.a.buffer, item.b.buffer):
            if any(buffer is result for result in results):
                return f"a product multiplies {buffer.name}, which another one makes"
    return _no_room(program, target, layouts, products) if costs else None


def _no_room(program: TileProgram, target: Target, layouts: Layouts, products: list[Gemm]) -> str | None:
    """What a second set of operands would cost too much of; None: there is room."""
    one, two = (registers_needed(layouts, products, sets) for sets in (1, 2))
    limit = registers_available(target, program.threads)
    if two > limit:
        return f"accumulators and two sets of operands take {two} of {limit} registers"
    blocks, fewer = (_blocks(program, target, layouts, each) for each in (one, two))
    if fewer < blocks:
        return f"a second set of operands leaves room for {fewer} instead of {blocks} blocks"
    return None


def _blocks(program: TileProgram, target: Target, layouts: Layouts, registers: int) -> int:
    """Blocks that a unit has room for, as far as is known before registers are dealt out."""
    tiles = [each for each in program.buffers if each.scope == "shared"]
    places = [
        layouts.shared.get(each.name) or SharedLayout.plain(each.shape, dtype_bytes(each.dtype)) for each in tiles
    ]
    _, shared = placed(zip(places, (program.stages.get(each.name, 1) for each in tiles), strict=True))
    fits = occupancy(target, threads=program.threads, registers_per_thread=registers, shared_bytes=shared)
    return fits.max_blocks_per_unit or 0


def _parts(program: TileProgram, target: Target, layouts: Layouts, loop: Loop) -> int:
    """Parts in which the copies of an iteration are started.

    One block alone on a unit has nothing else to do behind the barrier.  Where there are more, on an H200 two parts were up to 3 %
    faster with two steps, and slower with more, whose addresses take registers.
    """
    products = [item for item in loop.body if isinstance(item, Gemm)]
    steps = sum(item.k // layouts.gemms[item.operation].instruction.k for item in products)
    alone = _blocks(program, target, layouts, registers_needed(layouts, products, 2)) < 2
    return 1 if alone or steps > 2 else 2


def registers_needed(layouts: Layouts, products: list[Gemm], sets: int) -> int:
    """Registers of a thread for accumulators, so many sets of operands, and addresses."""
    sums = {item.c.buffer.name: item for item in products}
    held = sum(
        -(-layouts.gemms[item.operation].layout.registers * min(4, dtype_bytes(item.c.buffer.dtype)) // 4)
        for item in sums.values()
    )
    operands = max(_operands(layouts.gemms[item.operation], item) for item in products)
    return held + sets * operands + ADDRESS_REGISTERS


def _operands(plan: GemmPlan, gemm: Gemm) -> int:
    layout = plan.layout
    assert isinstance(layout, MatrixLayout)
    a = plan.instruction.registers("a") * layout.tiles[0] if plan.a_registers is None else 0
    b = plan.instruction.registers("b") * layout.tiles[1] if plan.b_registers is None else 0
    return int(a + b)


def _by_mma(layouts: Layouts, statement: object) -> bool:
    return isinstance(statement, Gemm) and layouts.gemms[statement.operation].kind == "mma"


__all__ = ["MODES", "mode_of", "plan_register_buffers", "registers_needed", "why_not"]
