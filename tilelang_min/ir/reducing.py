"""What a reduction is made of: the type it adds up in, its operands, and the threads that share an element of its result."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from tilelang_min.ir.layout import FragmentLayout
from tilelang_min.program.dtypes import DATA_TYPES

Coordinates = tuple[tuple[int, int], ...]


def accumulator_type(source: str, target: str) -> str:
    """The type in which a reduction adds up and compares: that of the result, never narrower than 32 bits."""
    kind = DATA_TYPES[target]
    if kind.size >= 4:
        return target
    if kind.kind == "float" or DATA_TYPES[source].kind == "float":
        return "float32"
    return "uint32" if kind.kind == "uint" else "int32"


def combine(kind: str, first: Any, second: Any) -> Any:
    """Two operands as one."""
    if kind in ("sum", "abssum"):
        return first + second
    return tirx.Min(first, second) if kind == "min" else tirx.Max(first, second)


def neutral(kind: str, dtype: str) -> Any:
    """The operand that changes nothing."""
    if kind in ("sum", "abssum", "absmax"):
        return tirx.const(0, dtype) if not dtype.startswith("float") else tirx.FloatImm(dtype, 0.0)
    if dtype.startswith("float"):
        return tirx.FloatImm(dtype, float("-inf") if kind == "max" else float("inf"))
    return tirx.min_value(dtype) if kind == "max" else tirx.max_value(dtype)


def operand(kind: str, value: Any, wide_type: str) -> Any:
    """An element in the type of the sum."""
    if str(value.ty.dtype) != wide_type:
        value = tirx.Cast(wide_type, value)
    if kind in ("abssum", "absmax") and not wide_type.startswith("uint"):
        return tirx.abs(value) if wide_type.startswith("float") else tirx.Max(value, 0 - value)
    return value


def combined(source: FragmentLayout, target: FragmentLayout) -> Coordinates:
    """Coordinates (stride, count) along which ``source`` differs and ``target`` is repeated: what a reduction goes over."""
    return tuple(
        coordinate
        for coordinate in source.coordinates
        if coordinate[1] > 1 and coordinate not in source.replicas and _repeated(target, coordinate)
    )


def _repeated(layout: FragmentLayout, coordinate: tuple[int, int]) -> bool:
    """Whether threads that differ in ``coordinate`` alone hold the same elements."""
    if coordinate in layout.replicas:
        return True
    stride, count = coordinate
    threads = np.arange(layout.threads)
    first = threads - threads // stride % count * stride
    return all(
        np.array_equal(np.broadcast_to(here, threads.shape), np.broadcast_to(there, threads.shape))
        for register in range(layout.registers)
        for here, there in zip(layout.position(threads, register), layout.position(first, register), strict=True)
    )


def lane_parts(coordinates: Coordinates, warp_size: int) -> tuple[int, ...]:
    """Lane distances (powers of two) over which a warp reduces ``coordinates``, ascending."""
    found = []
    for stride, count in coordinates:
        inside = _inside(stride, count, warp_size)
        found += [stride << bit for bit in range(inside.bit_length() - 1)]
    return tuple(sorted(found))


def warp_parts(coordinates: Coordinates, warp_size: int) -> Coordinates:
    """What is left of ``coordinates`` across warps."""
    found = []
    for stride, count in coordinates:
        inside = _inside(stride, count, warp_size)
        if count // inside > 1:
            found.append((stride * inside, count // inside))
    return tuple(found)


def first_lanes(coordinates: Coordinates, warp_size: int) -> Coordinates:
    """The part of ``coordinates`` inside a warp."""
    found = []
    for stride, count in coordinates:
        inside = _inside(stride, count, warp_size)
        if inside > 1:
            found.append((stride, inside))
    return tuple(found)


def _inside(stride: int, count: int, warp_size: int) -> int:
    """How much of a coordinate lies in one warp; layouts only have powers of two there."""
    if stride >= warp_size:
        return 1
    inside = min(count, warp_size // stride)
    if inside & (inside - 1) or count % inside or warp_size % stride:
        raise ValueError(f"threads {stride} apart, {count} of them, do not divide into warps of {warp_size}")
    return inside


__all__ = [
    "Coordinates",
    "accumulator_type",
    "combine",
    "combined",
    "first_lanes",
    "lane_parts",
    "neutral",
    "operand",
    "warp_parts",
]
