"""What was decided when a kernel was compiled, as a JSON record that a bundle keeps for :mod:`tilelang_min.driver.explanation`."""

from __future__ import annotations

from typing import Any

from tilelang_min.ir.expressions import as_int, simplify
from tilelang_min.ir.nodes import Barrier, Copy, Gemm, Loop, Statement, TileProgram, walk
from tilelang_min.ir.plans import GemmPlan, Layouts
from tilelang_min.ir.printer import describe
from tilelang_min.targets import Target
from tilelang_min.transform.pipeline import why_not_ahead


def decisions(written: TileProgram, program: TileProgram, layouts: Layouts | None, target: Target) -> dict[str, Any]:
    """Pipelines, layouts, matrix products and barriers, from the program as ``written`` and as it is after all transforms.

    Operations are given by id.  ``layouts`` is None on a CPU, where each task has its tiles to itself.
    """
    chosen = layouts or Layouts()
    return {
        "tile_program": describe(program),
        "pipelines": [
            _pipeline(written, program, statement, target, chosen)
            for statement in walk(written.body)
            if isinstance(statement, Loop) and statement.kind == "pipelined"
        ],
        "products": [
            _product(written, statement, chosen) for statement in walk(written.body) if isinstance(statement, Gemm)
        ],
        "warp_groups": chosen.hopper.describe().splitlines() if chosen.hopper.gemms else [],
        "fragments": {name: layout.describe() for name, layout in chosen.fragments.items()},
        "shared_layouts": {name: layout.describe() for name, layout in chosen.shared.items()},
        "barriers": [
            {"operation": statement.operation, "reason": statement.reason}
            for statement in walk(program.body)
            if isinstance(statement, Barrier)
        ],
    }


def _pipeline(
    written: TileProgram, program: TileProgram, loop: Loop, target: Target, layouts: Layouts
) -> dict[str, Any]:
    extent = as_int(simplify(loop.extent))
    copies = [item for item in loop.body if isinstance(item, Copy)]
    stay = {copy.operation: why_not_ahead(written, loop, copy) for copy in copies}
    ahead = [copy.operation for copy in copies if stay[copy.operation] is None]
    stages = max(
        (program.stages.get(copy.target.buffer.name, 1) for copy in copies if stay[copy.operation] is None), default=1
    )
    if target.kind == "cpu":
        how = "a CPU prefetches by itself: an ordinary loop"
    elif loop.stages < 2:
        how = "one stage: an ordinary loop"
    elif not ahead:
        how = "no copy may run ahead: an ordinary loop"
    elif stages < 2:
        how = "too few iterations to run ahead: an ordinary loop"
    elif loop.operation in layouts.hopper.loops:
        how = "a producer warp group fills a ring of tiles by bulk copies (TMA)"
    elif _is_asynchronous(program.body, ahead):
        how = "asynchronous copies"
    else:
        how = "loads into registers before the work, stores behind it"
    return {
        "operation": loop.operation,
        "asked": loop.stages,
        "stages": stages,
        "iterations": extent,
        "how": how,
        "ahead": ahead if stages > 1 else [],
        "operands": layouts.ahead.notes.get(loop.operation),
        "stay": {str(operation): reason for operation, reason in stay.items() if reason is not None},
    }


def _is_asynchronous(body: tuple[Statement, ...], operations: list[int]) -> bool:
    return any(isinstance(item, Copy) and item.asynchronous and item.operation in operations for item in walk(body))


def _product(written: TileProgram, gemm: Gemm, layouts: Layouts) -> dict[str, Any]:
    plan = layouts.gemms.get(gemm.operation)
    described: dict[str, Any] = {
        "operation": gemm.operation,
        "shape": [gemm.m, gemm.n, gemm.k],
        "types": [gemm.a.buffer.dtype, gemm.b.buffer.dtype, gemm.c.buffer.dtype],
    }
    if plan is None:
        return {**described, "kind": "vector", "instruction": None, "layout": None, "refused": []}
    label = f"{written.operations[gemm.operation].label}: no "
    return {
        **described,
        "kind": plan.kind,
        "instruction": _instruction(plan),
        "layout": plan.layout.describe(),
        "refused": [
            *(note.removeprefix(label) for note in layouts.hopper.notes if note.startswith(label)),
            *plan.refused,
        ],
    }


def _instruction(plan: GemmPlan) -> str | None:
    """Name of the matrix instruction; that of a warp group goes by the columns that it multiplies at a time."""
    name = getattr(plan.instruction, "name", None)
    return name(getattr(plan.layout, "columns", 0)) if callable(name) else name
