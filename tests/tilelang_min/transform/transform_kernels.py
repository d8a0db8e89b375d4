"""Kernels for tests of the transforms, and the transforms in the compiler's order."""

from __future__ import annotations

from typing import Any

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.frontend import parse
from tilelang_min.ir.nodes import Barrier, Statement, TileProgram, walk
from tilelang_min.ir.printer import describe
from tilelang_min.transform.barriers import insert_barriers
from tilelang_min.transform.pipeline import pipeline

SM80 = tilelang.targets.resolve("cuda:sm_80")
GFX942 = tilelang.targets.resolve("hip:gfx942")
CPU = tilelang.targets.resolve("cpu")


def transformed(kernel: Any, target: Any) -> TileProgram:
    """Pipelines expanded and barriers inserted."""
    return insert_barriers(pipeline(parse(kernel), target))


def body_text(program: TileProgram) -> list[str]:
    """Statements as lines without their operation, indentation kept."""
    first = 1 + len(program.parameters) + len(program.buffers)
    return [line.split("    #")[0][2:] for line in describe(program).splitlines()[first:]]


def barriers(program: TileProgram) -> int:
    """Number of barriers written in the program."""
    return sum(isinstance(statement, Barrier) for statement in walk(program.body))


def before_barriers(program: TileProgram) -> list[str]:
    """For each barrier, what stands right behind it."""
    out: list[str] = []

    def visit(statements: tuple[Statement, ...]) -> None:
        lines = [program.operations[item.operation].label for item in statements]
        for number, item in enumerate(statements):
            if isinstance(item, Barrier):
                out.append(lines[number + 1])
            for inner in ("body", "then", "otherwise"):
                children = getattr(item, inner, ())
                if children and isinstance(children[0], Statement):
                    visit(children)

    visit(program.body)
    return out


def product(steps: int, stages: int) -> Any:
    """A matrix product of ``steps`` iterations."""

    @T.prim_func
    def main(
        A: T.Tensor((64, steps * 16), "float16"),
        B: T.Tensor((steps * 16, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 16), "float16")
            R = T.alloc_shared((16, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            T.clear(F)
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(A[0, k * 16], S)
                T.copy(B[k * 16, 0], R)
                T.gemm(S, R, F)
            T.copy(F, C)

    return main
