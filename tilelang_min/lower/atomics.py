"""Atomic updates of an element: the call that a target has for them.

======================================  ===================================================================================
in the tile program                     in the thread program
======================================  ===================================================================================
add; max and min of integers            a call (:mod:`tilelang_min.program.atomics`)
max and min of floats                   of their bits: floats of one sign are ordered as signed integers or, backwards, as
                                        unsigned ones::

                                            if bits >= 0: max as int32      (a minimum: min as int32)
                                            else:         min as uint32     (max as uint32)
add of 16-bit floats, on a GPU          a call for two neighbours
on a CPU, of a block's own tile         a plain update: one thread runs the block
======================================  ===================================================================================
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from tilelang_min.errors import TargetError
from tilelang_min.ir.expressions import index
from tilelang_min.ir.nodes import Buffer, Expr
from tilelang_min.lower.context import Context, sequence
from tilelang_min.program.atomics import AtomicCall
from tilelang_min.program.dtypes import dtype_bytes, is_float
from tilelang_min.targets.atomics import atomics

_PLAIN = {"add": tirx.Add, "max": tirx.Max, "min": tirx.Min}
_OTHER = {"max": "min", "min": "max"}


def in_pairs(context: Context, buffer: Buffer) -> bool:
    """Whether elements of a buffer are updated two at a time."""
    return context.target.kind != "cpu" and dtype_bytes(buffer.dtype) == 2


def atomic_update(
    context: Context, buffer: Buffer, element: Expr, values: list[Any], operation: str, statement: int
) -> Any:
    """The statement that updates ``element`` of a buffer's storage (and the next one, of two ``values``).

    ``statement`` is the tile operation.  Raises TargetError, at its line, for what the target does not have.
    """
    storage, dtype = context.storage[buffer.name], buffer.dtype
    if context.target.kind == "cpu" and buffer.scope == "shared":
        place = index(element)
        return tirx.BufferStore(storage, _PLAIN[operation](storage[place], values[0]), [place])
    address = storage.ptr_to([index(element)])
    if operation != "add" and is_float(dtype):
        bits = 8 * dtype_bytes(dtype)
        held = tirx.Var(context.fresh("bits"), f"int{bits}")
        signed = _call(
            context, AtomicCall(buffer.scope, operation, f"int{bits}"), buffer, operation, statement, address, [held]
        )
        other = AtomicCall(buffer.scope, _OTHER[operation], f"uint{bits}")
        unsigned = tirx.reinterpret(f"uint{bits}", held)
        backwards = _call(context, other, buffer, operation, statement, address, [unsigned])
        return sequence(
            [
                tirx.Bind(held, tirx.reinterpret(f"int{bits}", values[0])),
                tirx.IfThenElse(held >= tirx.const(0, f"int{bits}"), signed, backwards),
            ]
        )
    call = AtomicCall(buffer.scope, operation, dtype, len(values))
    return _call(context, call, buffer, operation, statement, address, values)


def _call(
    context: Context,
    call: AtomicCall,
    buffer: Buffer,
    operation: str,
    statement: int,
    address: Any,
    values: list[Any],
) -> Any:
    require_atomic(context, call, buffer, operation, statement)
    return tirx.Evaluate(tirx.call_extern("void", call.name, address, *values))


def require_atomic(context: Context, call: AtomicCall, buffer: Buffer, operation: str, statement: int) -> None:
    """Raise TargetError where the target has no such instruction."""
    known = atomics(context.target, buffer.scope)
    if call.kind in known:
        return
    halves = [kind for kind in known if kind.endswith("x2") and kind.startswith(f"{operation}.{buffer.dtype}")]
    if halves and call.lanes == 1:
        message = f"{context.target.name} adds {buffer.dtype} in {buffer.scope} memory two neighbours at a time"
        remedy = (
            "update a whole region, or in T.Parallel elements side by side: the last index must be the last loop variable, "
            "from an even place, with an even extent"
        )
    else:
        message = f"{context.target.name} has no atomic {operation} of {buffer.dtype} in {buffer.scope} memory"
        remedy = "collect in float32 or int32, and convert at the end"
    raise TargetError(message, location=context.program.operations[statement].location, remedy=remedy)


__all__ = ["atomic_update", "in_pairs"]
