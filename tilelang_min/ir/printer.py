"""A tile program as text: one line a statement, with its operation and line."""

from __future__ import annotations

from tilelang_min.ir.hopper import ClusterSum, RingLoop
from tilelang_min.ir.nodes import (
    Assign,
    AsyncCommit,
    AsyncWait,
    Barrier,
    Conditional,
    Copy,
    Expr,
    Fill,
    Gemm,
    Loop,
    Parallel,
    Reduce,
    Region,
    SchedulingFence,
    Statement,
    TileProgram,
)


def describe(program: TileProgram) -> str:
    """The whole program."""
    lines = [f"kernel {program.name}  grid {program.grid}  threads {program.threads}"]
    for buffer in (*program.parameters, *program.buffers):
        stages = program.stages.get(buffer.name, 1)
        shape = "x".join(map(str, buffer.shape))
        lines.append(
            f"  {buffer.scope:8} {buffer.name}: {buffer.dtype} {shape}" + (f" x {stages} stages" if stages > 1 else "")
        )
    _block(program, program.body, "  ", lines)
    return "\n".join(lines)


def _block(program: TileProgram, statements: tuple[Statement, ...], indent: str, lines: list[str]) -> None:
    for statement in statements:
        line = program.operations[statement.operation].location.line
        lines.append(f"{indent}{_text(statement)}    # operation {statement.operation}, line {line}")
        if isinstance(statement, Loop):
            _block(program, statement.body, indent + "  ", lines)
        elif isinstance(statement, Conditional):
            _block(program, statement.then, indent + "  ", lines)
            if statement.otherwise:
                lines.append(f"{indent}else")
                _block(program, statement.otherwise, indent + "  ", lines)
        elif isinstance(statement, Parallel):
            for assign in statement.body:
                lines.append(f"{indent}  {_text(assign)}")


def _text(statement: Statement) -> str:
    if isinstance(statement, Copy):
        kind = "copy async" if statement.asynchronous else "copy"
        return f"{kind} {_region(statement.source, statement.source_stage)} -> {_region(statement.target, statement.target_stage)}"
    if isinstance(statement, Fill):
        return f"fill {_region(statement.region)} = {statement.value}"
    if isinstance(statement, Gemm):
        marks = "".join(mark for mark, on in (("ᵀA", statement.transpose_a), ("ᵀB", statement.transpose_b)) if on)
        operands = f"{_region(statement.a, statement.a_stage)} @ {_region(statement.b, statement.b_stage)}"
        return f"gemm{marks} {_region(statement.c)} {'=' if statement.clear else '+='} {operands}"
    if isinstance(statement, Reduce):
        step = "" if statement.step == "whole" else f" ({statement.step})"
        sign = "=" if statement.clear else f"{statement.kind}="
        what = f"{statement.kind} over {statement.axis} of {_region(statement.source)}"
        return f"reduce{step} {_region(statement.target)} {sign} {what}"
    if isinstance(statement, Assign):
        sign = f"atomic {statement.atomic}=" if statement.atomic else "="
        return f"{statement.buffer.name}[{', '.join(map(str, statement.indices))}] {sign} {statement.value}"
    if isinstance(statement, Parallel):
        pairs = ", ".join(f"{v.name} < {e}" for v, e in zip(statement.variables, statement.extents, strict=True))
        return f"parallel {pairs}"
    if isinstance(statement, RingLoop) and statement.ring is not None:
        loads = "; ".join(_text(copy) for copy in statement.ring.loads)
        head = f"for {statement.variable.name} in {statement.start} .. {statement.start + statement.extent}"
        return f"{head} (ring of {statement.ring.stages} stages, {statement.ring.stage.name}: {loads})"
    if isinstance(statement, Loop):
        return f"for {statement.variable.name} in {statement.start} .. {statement.start + statement.extent} ({statement.kind})"
    if isinstance(statement, Conditional):
        return f"if {statement.condition}"
    if isinstance(statement, ClusterSum):
        return f"sum {statement.source.name} over the cluster -> {statement.target.name}, by way of {statement.scratch.name}"
    if isinstance(statement, AsyncWait):
        return f"wait until {statement.pending} groups pending"
    return {Barrier: "barrier", AsyncCommit: "commit", SchedulingFence: "scheduling fence"}[type(statement)]


def _region(region: Region, stage: Expr = None) -> str:
    parts = [
        f"{offset}" if extent == 1 else f"{offset}:+{extent}"
        for offset, extent in zip(region.offsets, region.extents, strict=True)
    ]
    return f"{region.buffer.name}[{', '.join(parts)}]" + ("" if stage is None else f"@({stage})")
