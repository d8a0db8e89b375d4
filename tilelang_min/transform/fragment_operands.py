"""Operands of matrix products that lie in registers.

Where the fragment's layout is the one that the instruction takes, nothing is done: on NVIDIA the accumulators of m16n8 side by side
are the operand A of m16n8k16, so that a product feeds the next one without leaving its registers.  Elsewhere the fragment goes
through a shared tile of the compiler's own::

    T.gemm(P, V, O)      ->      copy(P, P_tile);  T.gemm(P_tile, V, O)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from tvm import tirx

from tilelang_min.errors import LayoutError
from tilelang_min.ir.nodes import Buffer, Copy, Gemm, Region, Statement, TileProgram, replaced, walk
from tilelang_min.ir.operand_layout import operand_layout
from tilelang_min.ir.plans import HopperPlan, Layouts
from tilelang_min.ir.replicated import register_map
from tilelang_min.targets import Target
from tilelang_min.transform.gemm_plans import plan_gemm
from tilelang_min.transform.layouts import choose_layouts


def layouts_with_operands(
    program: TileProgram, target: Target, hopper: HopperPlan | None = None
) -> tuple[TileProgram, Layouts]:
    """Layouts of all fragments, and the program with those operands copied to shared tiles that no instruction can take.

    ``hopper`` as for :func:`~tilelang_min.transform.layouts.choose_layouts`.
    """
    notes: dict[int, str] = {}
    program, layouts, elsewhere = _best_policy(program, target, hopper, notes)
    while elsewhere:
        program = _through_tiles(program, elsewhere, notes)
        layouts, elsewhere = _attempt(program, target, hopper)
    for operation, note in notes.items():
        plan = layouts.gemms[operation]
        layouts.gemms[operation] = dataclasses.replace(plan, note="; ".join(filter(None, (plan.note, note))))
    return program, layouts


_Elsewhere = list[tuple[Gemm, str]]
"""Products, and the side of each whose fragment its instruction cannot take."""


def _attempt(program: TileProgram, target: Target, hopper: HopperPlan | None) -> tuple[Layouts, _Elsewhere]:
    layouts = choose_layouts(program, target, hopper)
    gemms = [statement for statement in walk(program.body) if isinstance(statement, Gemm)]
    return layouts, [(gemm, side) for gemm in gemms for side in "ab" if not _take(layouts, gemm, side)]


def _best_policy(
    program: TileProgram, target: Target, hopper: HopperPlan | None, notes: dict[int, str]
) -> tuple[TileProgram, Layouts, _Elsewhere]:
    """The program as it is, or in a form that the author left open.

    That is with warps one above the other, where only so layouts agree or more operands stay in registers; else with all products
    held to one instruction and one grid of warps, where only so layouts agree.
    """
    rows = _rewritten(program, lambda gemm: gemm.policy == "any", policy="rows")
    free = [item.operation for item in walk(program.body) if isinstance(item, Gemm) and item.policy == "any"]
    failure: LayoutError | None = None
    try:
        layouts, elsewhere = _attempt(program, target, hopper)
        if not elsewhere or not free:
            return program, layouts, elsewhere
    except LayoutError as error:
        failure = error
    if free:
        with suppress(LayoutError):
            other, fewer = _attempt(rows, target, hopper)
            if failure is not None or len(fewer) < len(elsewhere):
                said = "warps stand one above the other, so that fragments of several products agree"
                notes.update(dict.fromkeys(free, said))
                return rows, other, fewer
    if failure is None:
        return program, layouts, elsewhere
    policies = {item.policy for item in walk(program.body) if isinstance(item, Gemm)}
    if {"rows", "columns"} <= policies:  # what the author says cannot be
        raise failure
    slower: tuple[TileProgram, Layouts, _Elsewhere, str] | None = None
    for held, note in _held_together(rows, target):
        with suppress(LayoutError):
            layouts, elsewhere = _attempt(held, target, hopper)
            if _kinds(layouts) == _kinds_alone(program, target, hopper):
                notes.update(dict.fromkeys(layouts.gemms, note))
                return held, layouts, elsewhere
            slower = slower or (held, layouts, elsewhere, note)
    if slower is None:
        raise failure
    notes.update(dict.fromkeys(slower[1].gemms, slower[3]))
    return slower[:3]


def _held_together(program: TileProgram, target: Target) -> Iterator[tuple[TileProgram, str]]:
    """The program with all products held to one instruction height and as many rows of warps, most rows first."""
    warps = program.threads // target.warp_size
    heights = sorted({each.m for each in target.instruction_set} | {0}, reverse=True)
    for count in (count for count in range(warps, 0, -1) if warps % count == 0):
        for height in heights:
            note = f"held to {count} rows of warps" + (f" and instructions of {height} rows" if height else "")
            held = _rewritten(program, lambda gemm: True, agree=(height, count))
            yield held, f"{note}, so that fragments of several products agree"


def _kinds(layouts: Layouts) -> dict[int, str]:
    return {operation: plan.kind for operation, plan in layouts.gemms.items()}


def _kinds_alone(program: TileProgram, target: Target, hopper: HopperPlan | None) -> dict[int, str]:
    """How each product would be carried out if it met no other."""
    found = {} if hopper is None else {operation: plan.kind for operation, plan in hopper.gemms.items()}
    for gemm in walk(program.body):
        if isinstance(gemm, Gemm) and gemm.operation not in found:
            found[gemm.operation] = plan_gemm(gemm, program.threads, target, program.pinned).kind
    return found


def _rewritten(program: TileProgram, chosen: Callable[[Gemm], bool], **changes: Any) -> TileProgram:
    """The program with ``changes`` in every product that is ``chosen``."""

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Gemm) and chosen(statement):
            statement = dataclasses.replace(statement, **changes)
        return (statement,)

    return dataclasses.replace(program, body=replaced(program.body, change))


def _take(layouts: Layouts, gemm: Gemm, side: str) -> bool:
    """Whether an operand lies in shared memory, or where the instruction takes it: its plan then says in which registers."""
    buffer = (gemm.a if side == "a" else gemm.b).buffer
    if buffer.scope != "fragment":
        return True
    plan = layouts.gemms[gemm.operation]
    needed = operand_layout(gemm, plan, side)
    registers = None if needed is None else register_map(needed, (0, 1), layouts.fragments[buffer.name])
    if registers is None:
        return False
    layouts.gemms[gemm.operation] = (
        dataclasses.replace(plan, a_registers=registers)
        if side == "a"
        else dataclasses.replace(plan, b_registers=registers)
    )
    return True


def _through_tiles(program: TileProgram, elsewhere: list[tuple[Gemm, str]], notes: dict[int, str]) -> TileProgram:
    tiles: dict[str, Buffer] = {}

    def tile(fragment: Buffer) -> Buffer:
        if fragment.name not in tiles:
            name = program.unused(f"{fragment.name}_tile", tiles.values())
            tiles[fragment.name] = dataclasses.replace(
                fragment, name=name, scope="shared", var=_variable(fragment, name)
            )
        return tiles[fragment.name]

    def change(statement: Statement) -> tuple[Statement, ...]:
        out: list[Statement] = []
        for side in [side for gemm, side in elsewhere if gemm is statement]:
            assert isinstance(statement, Gemm)
            region = statement.a if side == "a" else statement.b
            place = Region(tile(region.buffer), region.offsets, region.extents)
            out.append(Copy(statement.operation, region, place))
            said = "goes through shared memory: the product takes it from other lanes than hold it"
            known = notes.get(statement.operation)
            notes[statement.operation] = "; ".join(filter(None, (known, f"{region.buffer.name} {said}")))
            statement = (
                dataclasses.replace(statement, a=place) if side == "a" else dataclasses.replace(statement, b=place)
            )
        return (*out, statement)

    body = replaced(program.body, change)
    return dataclasses.replace(program, body=body, buffers=(*program.buffers, *tiles.values()))


def _variable(fragment: Buffer, name: str) -> object:
    return tirx.decl_buffer(fragment.shape, fragment.tvm_dtype, name, scope="local")


__all__ = ["layouts_with_operands"]
