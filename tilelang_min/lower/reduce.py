"""Reductions on a GPU: registers of each thread, then lanes of each warp, then warps through shared memory.

For a row that 4 lanes of 2 warps hold, 2 elements each::

    part = x[0] + x[1]
    part = part + shuffle_xor(part, 1);  part = part + shuffle_xor(part, 2)
    if lane % 4 == 0: scratch[warp, row] = part
    barrier                                                    # by its own pass
    out = scratch[0, row] + scratch[1, row]                    # in every thread

Each lane adds the same pairs, so all replicas of the result have the same bits, on every run.  On NVIDIA lanes exchange values by
``shfl.sync.bfly``; on AMD by ``ds_swizzle`` within 32 lanes and ``ds_bpermute`` across.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tvm import tirx

from tilelang_min.errors import TargetError
from tilelang_min.ir.expressions import as_int, index
from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.ir.nodes import Reduce
from tilelang_min.ir.plans import Layouts
from tilelang_min.ir.reducing import (
    Coordinates,
    accumulator_type,
    combine,
    combined,
    first_lanes,
    lane_parts,
    neutral,
    operand,
    warp_parts,
)
from tilelang_min.ir.replicated import register_map, wide
from tilelang_min.lower.context import Context, both
from tilelang_min.program.dtypes import DATA_TYPES, dtype_bytes


def lower_reduce(context: Context, layouts: Layouts, reduction: Reduce) -> None:
    """One reduction, or one step of it."""
    context.mark(reduction.operation)
    source, target = reduction.source.buffer, reduction.target.buffer
    layout, held = layouts.fragments[source.name], layouts.fragments[target.name]
    dtype = accumulator_type(source.dtype, target.dtype)
    over = combined(layout, held)
    if reduction.step != "finish":
        parts = _in_warps(context, reduction, layout, held, over, dtype)
        if reduction.step == "whole":
            for register in range(held.registers):
                _result(context, reduction, register, parts[index(register)])
        else:
            _give(context, reduction, layout, held, over, parts)
        return
    scratch, parts = context.storage[_scratch(reduction).name], _scratch(reduction).shape[0]
    for first, width in _runs(context, reduction, held, dtype_bytes(_scratch(reduction).dtype)):
        place = _place(context, reduction, held, first)
        values: list[list[Any]] = []
        for part in range(parts):
            at = index(context.simplify(place + part * target.elements))
            if width == 1:
                values.append([scratch[at]])
                continue
            read = context.registers(f"{target.name}_read", dtype, width)
            load = tirx.BufferStore(read, tirx.BufferLoad(scratch, [tirx.Ramp(at, 1, width)]), [tirx.Ramp(0, 1, width)])
            there = context.exists(held, first)
            context.emit(load if there is None else tirx.IfThenElse(there, load, None))
            values.append([read[index(item)] for item in range(width)])
        for item in range(width):
            register, total = first + item, values[0][item]
            for value in values[1:]:
                total = combine(reduction.kind, total, value[item])
            exists = context.exists(held, register)
            if exists is not None:
                total = tirx.if_then_else(exists, total, neutral(reduction.kind, dtype))
            _result(context, reduction, register, total)


def _in_warps(
    context: Context, reduction: Reduce, layout: FragmentLayout, held: FragmentLayout, over: Coordinates, dtype: str
) -> Any:
    """For each register of the result, what the thread's warp has of it."""
    source = reduction.source.buffer
    dims = tuple(place for place, axis in enumerate(wide(source.shape)) if axis != reduction.axis)
    registers = register_map(layout, dims, held)
    if registers is None:
        raise ValueError("the layouts of a reduction were checked when they were chosen")
    parts = context.registers(f"{reduction.target.buffer.name}_part", dtype, held.registers)
    started: set[int] = set()
    for number, register in enumerate(registers):
        value = operand(reduction.kind, context.storage[source.name][index(number)], dtype)
        exists = context.exists(layout, number)
        if exists is not None:
            value = tirx.Select(exists, value, neutral(reduction.kind, dtype))
        if register in started:
            value = combine(reduction.kind, parts[index(register)], value)
        started.add(register)
        context.emit(tirx.BufferStore(parts, value, [index(register)]))
    for distance in lane_parts(over, context.target.warp_size):
        other = context.registers(f"{reduction.target.buffer.name}_other", dtype, 1)
        for register in range(held.registers):
            context.emit(tirx.BufferStore(other, shuffle_xor(context, parts[index(register)], distance), [index(0)]))
            total = combine(reduction.kind, parts[index(register)], other[index(0)])
            context.emit(tirx.BufferStore(parts, total, [index(register)]))
    return parts


def _give(
    context: Context, reduction: Reduce, layout: FragmentLayout, held: FragmentLayout, over: Coordinates, parts: Any
) -> None:
    """The first lane of each warp that has a part of an element writes it to the scratch tile."""
    first = context.owner((*first_lanes(over, context.target.warp_size), *layout.replicas))
    number: Any = 0
    for stride, count in reversed(warp_parts(over, context.target.warp_size)):
        number = number * count + context.thread // stride % count
    scratch = context.storage[_scratch(reduction).name]
    for register, width in _runs(context, reduction, held, dtype_bytes(_scratch(reduction).dtype)):
        place = _place(context, reduction, held, register) + number * prod(reduction.target.buffer.shape)
        at = index(context.simplify(place))
        if width == 1:
            store = tirx.BufferStore(scratch, parts[index(register)], [at])
        else:
            value = tirx.BufferLoad(parts, [tirx.Ramp(index(register), 1, width)])
            store = tirx.BufferStore(scratch, value, [tirx.Ramp(at, 1, width)])
        guard = both(first, context.exists(held, register))
        context.emit(store if guard is None else tirx.IfThenElse(guard, store, None))


def _runs(context: Context, reduction: Reduce, held: FragmentLayout, size: int) -> Iterator[tuple[int, int]]:
    """Registers of the result whose elements lie side by side in the scratch tile: the first, and how many go as one vector."""
    for group in held.groups:
        width = len(group)
        places = [_place(context, reduction, held, register) for register in group]
        steps = [as_int(context.simplify(place - places[0])) for place in places]
        if list(group) != list(range(group[0], group[0] + width)) or steps != list(range(width)):
            width = 1
        while width > 1 and (
            width * size > 16
            or prod(reduction.target.buffer.shape) % width
            or not context.proves(tirx.EQ(tirx.floormod(index(places[0]), width), 0))
        ):
            width //= 2
        yield from ((register, width) for register in group[::width])


def _place(context: Context, reduction: Reduce, held: FragmentLayout, register: int) -> Any:
    """Row-major number of a result's element."""
    total: Any = 0
    for item, extent in zip(held.position(context.thread, register), reduction.target.buffer.shape, strict=True):
        total = total * extent + item
    return total


def _scratch(reduction: Reduce) -> Any:
    if reduction.scratch is None:
        raise ValueError("a reduction in two steps has a scratch tile")
    return reduction.scratch


def _result(context: Context, reduction: Reduce, register: int, value: Any) -> None:
    """One element of the result into its register, with what was there before unless it is cleared."""
    target = reduction.target.buffer
    storage, slot = context.storage[target.name], index(register)
    dtype = str(value.ty.dtype)
    if not reduction.clear:
        old = storage[slot] if target.dtype == dtype else tirx.Cast(dtype, storage[slot])
        value = combine(reduction.kind, old, value)
    context.emit(
        tirx.BufferStore(storage, value if target.dtype == dtype else tirx.Cast(target.tvm_dtype, value), [slot])
    )


def shuffle_xor(context: Context, value: Any, distance: int) -> Any:
    """The value of the lane whose number differs in bit ``distance``, for types of 4 and 8 bytes; on AMD of 8 in two halves."""
    dtype, target = str(value.ty.dtype), context.target
    if target.kind == "cuda":
        everyone = tirx.IntImm("uint32", 0xFFFFFFFF)
        return tirx.call_intrin(
            dtype, "tirx.tvm_warp_shuffle_xor", everyone, value, index(distance), index(32), index(32)
        )
    if DATA_TYPES[dtype].size == 8:
        halves, others = context.array("halves", "int32", 2), context.array("other_halves", "int32", 2)
        both_halves = tirx.Ramp(index(0), 1, 2)
        context.emit(tirx.BufferStore(halves, tirx.reinterpret("int32x2", value), [both_halves]))
        for half in (0, 1):
            moved = shuffle_xor(context, halves[index(half)], distance)
            context.emit(tirx.BufferStore(others, moved, [index(half)]))
        return tirx.reinterpret(dtype, tirx.BufferLoad(others, [both_halves]))
    if DATA_TYPES[dtype].size != 4:
        raise TargetError(f"{target.name} cannot exchange {dtype} between lanes", remedy="reduce in float32 or int32")
    bits = value if dtype == "int32" else tirx.reinterpret("int32", value)
    if distance < 32:
        pattern = tirx.IntImm("int32", distance << 10 | 0x1F)  # xor mask, or mask, and mask of the 5 lane bits
        moved = tirx.call_llvm_pure_intrin("int32", "llvm.amdgcn.ds.swizzle", bits, pattern)
    else:
        lane = (context.thread + distance) % target.warp_size  # of 64 lanes the one in the other half
        moved = tirx.call_llvm_pure_intrin("int32", "llvm.amdgcn.ds.bpermute", lane * 4, bits)
    return moved if dtype == "int32" else tirx.reinterpret(dtype, moved)


__all__ = ["lower_reduce", "shuffle_xor"]
