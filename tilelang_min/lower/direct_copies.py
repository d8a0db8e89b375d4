"""Copies that change no type: whole vectors that do not go through single elements, by ``cp.async`` where that was decided."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.script.tirx import ptx

from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Copy
from tilelang_min.ir.vectors import Nest
from tilelang_min.lower.context import Context, both
from tilelang_min.lower.element_groups import Point, in_memory, in_range, load_vector, ramp, vector_base, zeros
from tilelang_min.program.dtypes import dtype_bytes


def direct_copy(context: Context, nest: Nest, points: list[Point], copy: Copy, owner: Any) -> bool:
    """The copy of one group of elements (``points``); False, and nothing emitted, where they are no whole vectors.

    ``owner`` is the condition under which a thread writes memory (None: it always does).
    """
    if len(nest.accesses) != 2:
        return False  # an offset reads a tensor: element by element
    source, target = nest.accesses
    if source.buffer.dtype != target.buffer.dtype:
        return False
    width = len(points)
    sides = []
    for access in (source, target):
        if access.buffer.scope == "fragment":
            registers = [point.of(access.buffer.name) for point in points]
            if registers != list(range(registers[0], registers[0] + width)):
                return False
            sides.append((index(registers[0]), None))
            continue
        base = vector_base(context, nest, access, points)
        if base is None:
            return False
        sides.append((index(base), in_range(context, access, points[0])))
    (source_base, source_guard), (target_base, target_guard) = sides
    if in_memory(target):
        target_guard = both(owner, target_guard)
    source_flat, target_flat = context.storage[source.buffer.name], context.storage[target.buffer.name]
    size = width * dtype_bytes(source.buffer.dtype)
    if copy.asynchronous and size in (4, 8, 16) and target_guard is None:
        _cp_async(context, target_flat.ptr_to([target_base]), source_flat, source_base, source_guard, size)
        return True
    value = load_vector(source_flat, source_base, width)
    if source_guard is not None:
        # One store behind both cases: of a store in each, what the machine executes is up to its compiler, which merges
        # some and not others.
        staged = context.registers(f"{source.buffer.name}_in", source.buffer.tvm_dtype, width)
        load = tirx.BufferStore(staged, value, [ramp(0, width)])
        zero = tirx.BufferStore(staged, zeros(source.buffer.tvm_dtype, width), [ramp(0, width)])
        context.emit(tirx.IfThenElse(source_guard, load, zero))
        value = load_vector(staged, 0, width)
    store = tirx.BufferStore(target_flat, value, [ramp(target_base, width)])
    context.emit(store if target_guard is None else tirx.IfThenElse(target_guard, store, None))
    return True


def _cp_async(context: Context, target: Any, source: Any, base: Any, guard: Any, size: int) -> None:
    """cp.async; out of range it copies zero bytes and fills with zeros, from an address that is always valid."""
    name = "cp.async.cg.shared::cta.global" if size == 16 else "cp.async.ca.shared::cta.global"
    if guard is None:
        context.emit(tirx.Evaluate(ptx[name](target, source.ptr_to([base]), size)))
        return
    address = tirx.Select(guard, base, tirx.IntImm("int32", 0))
    count = tirx.Cast("uint32", tirx.Select(guard, tirx.IntImm("int32", size), tirx.IntImm("int32", 0)))
    context.emit(tirx.Evaluate(ptx[name](target, source.ptr_to([address]), size, count)))
