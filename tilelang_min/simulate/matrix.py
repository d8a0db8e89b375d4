"""Matrix instructions (mma.sync, MFMA) and ldmatrix, executed through the lane maps of ``targets``.

Products and sums are taken in float64 and rounded once to the accumulator's type; hardware adds in an order and with
intermediate precision of its own, so results agree to the last bits of float32, not bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang_min import targets
from tilelang_min.errors import SimulationError
from tilelang_min.targets import LaneMap, MatrixInstruction


def find_instruction(target: targets.Target, name: str) -> MatrixInstruction:
    """The target's matrix instruction of that PTX or LLVM name."""
    for instruction in target.matrix_instructions:
        if instruction.name == name:
            return instruction
    known = ", ".join(i.name for i in target.matrix_instructions) or "none"
    raise SimulationError(f"target {target.name} has no matrix instruction {name}; it has: {known}")


def gather_positions(lane_map: LaneMap, rows: int, columns: int, warps: int, packed: int) -> tuple[Any, Any]:
    """Where each matrix element lies in a register array.

    Registers are ``(words, threads)`` with ``packed`` items a word; the result indexes that memory item by item, shape
    ``(warps, rows, columns)``.  The second result marks elements that the map does not reach (None if there are none).
    """
    threads = warps * lane_map.lanes
    positions = np.full((rows, columns), -1, np.int64)
    lane, item = np.meshgrid(np.arange(lane_map.lanes), np.arange(lane_map.items), indexing="ij")
    row, column = (np.broadcast_to(np.asarray(x), lane.shape) for x in lane_map(lane, item))
    positions[row % rows, column % columns] = (item // packed) * threads * packed + lane * packed + item % packed
    missing = positions < 0
    offsets = np.arange(warps, dtype=np.int64) * lane_map.lanes * packed
    return offsets[:, None, None] + np.maximum(positions, 0), missing if missing.any() else None


def scatter_positions(lane_map: LaneMap, rows: int, columns: int, warps: int) -> Any:
    """For each item and thread, the position of its element in ``(warps, rows, columns)``; shape ``(items, threads)``."""
    item, lane = np.meshgrid(np.arange(lane_map.items), np.arange(lane_map.lanes), indexing="ij")
    row, column = (np.broadcast_to(np.asarray(x), lane.shape) for x in lane_map(lane, item))
    position = (row % rows) * columns + column % columns
    offsets = np.arange(warps, dtype=np.int64) * rows * columns
    return (offsets[None, :, None] + position[:, None, :]).reshape(lane_map.items, -1)


def matrix_operation(instruction: MatrixInstruction, warps: int, packed: bool) -> Callable[[Any, Any, Any], Any]:
    """The function ``(a, b, c) -> d`` on register arrays of shape ``(registers, threads)``.

    ``packed``: a and b are 32-bit words that hold several items each (NVIDIA), else one item each (AMD).
    """
    m, n, k = instruction.m, instruction.n, instruction.k
    a_type, b_type = np.dtype(instruction.a_dtype), np.dtype(instruction.b_dtype)
    c_type = np.dtype(instruction.c_dtype)
    a_packed = 4 // a_type.itemsize if packed else 1
    b_packed = 4 // b_type.itemsize if packed else 1
    a_at, a_missing = gather_positions(instruction.a_map, m, k, warps, a_packed)
    b_at, b_missing = gather_positions(instruction.b_map, k, n, warps, b_packed)
    d_at = scatter_positions(instruction.c_map, m, n, warps)

    def operand(registers: Any, dtype: Any, at: Any, missing: Any) -> Any:
        items = np.ascontiguousarray(registers).view(dtype).reshape(-1).take(at).astype(np.float64)
        if missing is not None:
            items[:, missing] = np.nan
        return items

    def run(a: Any, b: Any, c: Any) -> Any:
        product = np.matmul(operand(a, a_type, a_at, a_missing), operand(b, b_type, b_at, b_missing))
        result = product.reshape(-1).take(d_at)
        result += c
        return result.astype(c_type)

    return run


def ldmatrix_positions(matrices: int, transposed: bool, threads: int, warp_size: int) -> tuple[Any, Any]:
    """Which thread's row address, and which element of that row, each register half is filled from.

    Both results have shape ``(matrices, threads, 2)``.  Lane ``8 j + r`` of a warp gives the address of row r of matrix
    j; register j of each lane receives two elements of matrix j.
    """
    lane_map = targets.LDMATRIX_TRANS if transposed else targets.LDMATRIX
    matrix, thread, half = np.meshgrid(np.arange(matrices), np.arange(threads), np.arange(2), indexing="ij")
    row, column = lane_map(thread % warp_size, half)
    provider = thread // warp_size * warp_size + matrix * 8 + row % 8
    return provider, np.broadcast_to(column, provider.shape)
