"""Floating-point operations and least bytes of a kernel, counted on the tile program.

A fused multiply-add is 2 operations, a transcendental function 1.  Ragged tiles count only the elements that exist: the
operations of a matrix product are those of its whole tiles cut to the range of its operands where that is known, which is exact
for products whose tiles come from plain copies.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tilelang_min.ir.expressions import as_int, is_symbolic
from tilelang_min.ir.nodes import Conditional, Copy, Gemm, Loop, Parallel, Region, Statement, TileProgram, walk
from tilelang_min.program.dtypes import dtype_bytes

_ONE = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min)
_CALLS = ("exp", "exp2", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "pow")


def flops(program: TileProgram) -> dict[str, int]:
    """Operations a launch by type of the arithmetic (``float32``: results in float32, whatever the operands)."""
    counts: Counter[str] = Counter()
    blocks = program.grid[0] * program.grid[1] * program.grid[2]
    _count(program, program.body, blocks, counts)
    return {dtype: count for dtype, count in sorted(counts.items()) if count}


def _count(program: TileProgram, statements: tuple[Statement, ...], times: int, counts: Counter[str]) -> None:
    for statement in statements:
        if isinstance(statement, Loop):
            extent = as_int(statement.extent)
            _count(program, statement.body, times * (extent if extent is not None else 1), counts)
        elif isinstance(statement, Conditional):
            _count(program, statement.then, times, counts)
            _count(program, statement.otherwise, times, counts)
        elif isinstance(statement, Gemm):
            counts[_matrix_type(statement)] += _gemm_flops(program, statement, times)
        elif isinstance(statement, Parallel):
            points = _points(program, statement, times)
            for assign in statement.body:
                for dtype, number in _expression(assign.value).items():
                    counts[dtype] += points * number


def _matrix_type(gemm: Gemm) -> str:
    return gemm.a.buffer.dtype


def _gemm_flops(program: TileProgram, gemm: Gemm, times: int) -> int:
    """2 m n k for each execution; cut at the edges of the tensors when the operands' tiles are plain copies of them."""
    rows = _covered(program, gemm.a, 1 if gemm.transpose_a else 0)
    inner = _covered(program, gemm.a, 0 if gemm.transpose_a else 1)
    columns = _covered(program, gemm.b, 0 if gemm.transpose_b else 1)
    if rows is None or columns is None or inner is None:
        return 2 * gemm.m * gemm.n * gemm.k * times
    blocks_m = -(-rows // gemm.m)
    blocks_n = -(-columns // gemm.n)
    blocks_k = -(-inner // gemm.k)
    if blocks_m * blocks_n * blocks_k == times:
        return 2 * rows * columns * inner
    return 2 * gemm.m * gemm.n * gemm.k * times


def _covered(program: TileProgram, region: Region, axis: int) -> int | None:
    """Extent of the tensor along ``axis`` that fills this tile, when one copy of a 2-D tensor does."""
    copies = [
        statement
        for statement in walk(program.body)
        if isinstance(statement, Copy) and statement.target.buffer is region.buffer
    ]
    sources = {id(copy.source.buffer): copy.source.buffer for copy in copies}
    if len(sources) != 1:
        return None
    source = next(iter(sources.values()))
    return source.shape[axis] if source.scope == "global" and len(source.shape) == 2 else None


def _points(program: TileProgram, nest: Parallel, times: int) -> int:
    """Points of a nest over the launch, without those that only touch elements beyond the end of what they write."""
    points = 1
    for extent in nest.extents:
        points *= extent
    whole = points * times
    targets = [assign for assign in nest.body if assign.buffer.scope == "global"]
    if (
        len(targets) == 1
        and times * points >= targets[0].buffer.elements
        and len(targets[0].buffer.shape) == len(nest.extents)
    ):
        tensor = targets[0].buffer
        padded = 1
        for extent, tile in zip(tensor.shape, nest.extents, strict=True):
            padded *= -(-extent // tile) * tile
        if padded and whole % padded == 0:
            return whole // padded * tensor.elements
    return whole


def _expression(value: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    if not is_symbolic(value):
        return counts

    def arithmetic(node: Any) -> None:
        dtype = str(node.ty.dtype)
        if dtype.startswith("float"):
            counts[dtype] += 1

    def call(node: Any) -> None:
        if str(getattr(node.op, "name", "")).split(".")[-1] in _CALLS:
            counts[str(node.ty.dtype)] += 1

    tvm_ffi.structural_walk(value, [(_ONE, arithmetic), (ir.Call, call)])
    return counts


def bytes_min(program: TileProgram) -> int:
    """Bytes that must cross the memory interface: every parameter read once if it is read, written once if it is written."""
    total = 0
    read = {name for operation in program.operations[1:] for name in operation.reads}
    written = {name for operation in program.operations[1:] for name in operation.writes}
    for parameter in program.parameters:
        size = parameter.elements * dtype_bytes(parameter.dtype)
        total += size * ((parameter.name in read) + (parameter.name in written))
    return total


__all__ = ["bytes_min", "flops"]
