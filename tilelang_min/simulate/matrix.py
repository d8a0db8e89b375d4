"""Matrix instructions (mma.sync, MFMA) and ldmatrix, executed through the lane maps of ``targets``.

Products and sums are taken in float64, which is exact for integers, and rounded once to the accumulator's type; hardware
adds in an order and with intermediate precision of its own, so floats agree to the last bits, not bit by bit.  Integer
accumulators wrap.  Where an instruction cuts its operands down (tf32, xf32) their low bits are dropped.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang_min import targets
from tilelang_min.errors import SimulationError
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.targets import LaneMap, MatrixInstruction

_TF32_BITS = np.uint32(0xFFFFE000)
"""Sign, exponent and 10 bits of mantissa of a float32."""


def find_instruction(target: targets.Target, name: str, modifiers: tuple[int, ...] = ()) -> MatrixInstruction:
    """The target's matrix instruction of that PTX or LLVM name, called with these modifiers."""
    named = [instruction for instruction in target.instruction_set if instruction.name == name]
    for instruction in named:
        if instruction.modifiers == modifiers:
            return instruction
    if named:
        known = " or ".join(str(instruction.modifiers) for instruction in named)
        raise SimulationError(f"{name} with modifiers {modifiers}: known are {known}")
    near = difflib.get_close_matches(name, {i.name for i in target.instruction_set}, n=4, cutoff=0.0)
    known = ", ".join(near) or "none at all"
    raise SimulationError(f"target {target.name} has no matrix instruction {name}; nearest are: {known}")


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


def matrix_operation(instruction: MatrixInstruction, warps: int) -> Callable[[Any, Any, Any], Any]:
    """The function ``(a, b, c) -> d`` on register arrays of shape ``(registers, threads)``, of the types of the operands."""
    m, n, k = instruction.m, instruction.n, instruction.k
    a_type, b_type, c_type = (numpy_dtype(getattr(instruction, f"{matrix}_dtype")) for matrix in "abc")
    a_at, a_missing = gather_positions(instruction.a_map, m, k, warps, _packed(instruction.a_operand, a_type))
    b_at, b_missing = gather_positions(instruction.b_map, k, n, warps, _packed(instruction.b_operand, b_type))
    d_at = scatter_positions(instruction.c_map, m, n, warps)
    c_packed = _packed(instruction.c_operand, c_type)
    word = numpy_dtype(_element(instruction.c_operand))
    integers = c_type.kind == "i"

    def operand(registers: Any, dtype: Any, at: Any, missing: Any) -> Any:
        values = np.ascontiguousarray(registers).view(dtype)
        if instruction.input_format is not None:
            values = (values.view(np.uint32) & _TF32_BITS).view(np.float32)
        items = values.reshape(-1).take(at).astype(np.float64)
        if missing is not None:
            items[:, missing] = np.nan
        return items

    def run(a: Any, b: Any, c: Any) -> Any:
        product = np.matmul(operand(a, a_type, a_at, a_missing), operand(b, b_type, b_at, b_missing))
        result = product.reshape(-1).take(d_at)
        if integers:
            total = result.astype(np.int64)
            total += np.ascontiguousarray(c).view(c_type)
            return total.astype(c_type).view(word)
        result += _unpacked(c, c_type, c_packed)
        return _repacked(result.astype(c_type), word, c_packed)

    return run


def _element(operand: str) -> str:
    """``int16x4`` -> ``int16``."""
    return operand.partition("x")[0]


def _packed(operand: str, dtype: Any) -> int:
    """Items of type ``dtype`` in one element of an operand."""
    return int(numpy_dtype(_element(operand)).itemsize) // int(dtype.itemsize)


def _unpacked(words: Any, dtype: Any, packed: int) -> Any:
    """Registers ``(words, threads)`` that hold ``packed`` items each as ``(items, threads)``."""
    if packed == 1:
        return words
    count, threads = words.shape
    items = np.ascontiguousarray(words).view(dtype).reshape(count, threads, packed)
    return items.transpose(0, 2, 1).reshape(count * packed, threads)


def _repacked(items: Any, word: Any, packed: int) -> Any:
    """The inverse of :func:`_unpacked`."""
    if packed == 1:
        return items
    count, threads = items.shape
    rows = np.ascontiguousarray(items.reshape(count // packed, packed, threads).transpose(0, 2, 1))
    return rows.view(word).reshape(count // packed, threads)


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
