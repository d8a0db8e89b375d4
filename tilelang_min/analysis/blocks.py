"""Classes of blocks that behave alike, so that one block stands for all of its class.

Blocks of one kernel differ in what they execute only through conditions on their indices, which guard ragged tiles.  Along an
axis whose index occurs in a condition the last block is a class of its own; along the others all blocks are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.program import ThreadProgram


@dataclass(frozen=True, slots=True)
class BlockClass:
    """``count`` blocks that behave like ``representative`` (x, y, z)."""

    representative: tuple[int, int, int]
    count: int


def block_classes(program: ThreadProgram) -> tuple[BlockClass, ...]:
    """All classes; their counts add up to the grid."""
    guarded = _guarded_axes(program)
    axes: list[list[tuple[int, int]]] = []
    for extent, named in zip(program.grid, guarded, strict=True):
        if extent == 1 or not named:
            axes.append([(0, extent)])
        else:
            axes.append([(0, extent - 1), (extent - 1, 1)])
    return tuple(BlockClass((x[0], y[0], z[0]), x[1] * y[1] * z[1]) for x, y, z in product(*axes))


def _guarded_axes(program: ThreadProgram) -> tuple[bool, bool, bool]:
    """For x, y and z: whether a condition of the program names the block's index, directly or through a bound name."""
    names: dict[str, Any] = {}
    conditions: list[Any] = []

    def attribute(node: Any) -> None:
        if node.attr_key == "thread_extent" and str(node.node.thread_tag).startswith("blockIdx."):
            names[str(node.node.thread_tag)[-1]] = node.node.var

    def call(node: Any) -> None:
        if str(getattr(node.op, "name", "")) == "tirx.if_then_else":
            conditions.append(node.args[0])

    tvm_ffi.structural_walk(
        program.function.body,
        [
            (tirx.AttrStmt, attribute),
            (tirx.IfThenElse, lambda node: conditions.append(node.condition)),
            (tirx.Select, lambda node: conditions.append(node.condition)),
            (ir.Call, call),
        ],
    )
    used: list[Any] = []
    for condition in conditions:
        tvm_ffi.structural_walk(condition, (tirx.Var, lambda var: used.append(var)))
    if not names:  # a CPU program: block indices are bound names
        named = {str(var.name) for var in used}
        return "bx" in named, "by" in named, "bz" in named
    found = [axis in names and any(var.same_as(names[axis]) for var in used) for axis in "xyz"]
    return found[0], found[1], found[2]
