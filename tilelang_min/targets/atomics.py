"""Which atomic operations a target has, as data: by space, operation and type.

An atomic is listed where one machine instruction does it, or where the vendor's compiler makes a loop of a load and a
compare-and-swap of it (:func:`is_loop`).  What is not listed does not exist for this compiler: 16-bit floats go in pairs
(``float16x2``), since no memory of these machines adds a single one.

Maxima and minima of floats are not listed either: lowering takes those of the same bits as integers.
"""

from __future__ import annotations

from functools import cache

from tilelang_min.targets.records import Target

SOURCE_NVIDIA = "PTX ISA, red and atom; what ptxas 13.5 makes of each for sm_75, sm_80 and sm_90a"
SOURCE_AMD = "LLVM AMDGPU, instruction definitions of gfx90a, gfx940 and gfx950; what LLVM 22 makes of each"

_INTEGERS = frozenset(f"{operation}.{dtype}" for operation in ("add", "max", "min") for dtype in ("int32", "uint32"))
_LONG = frozenset(f"{operation}.{dtype}" for operation in ("add", "max", "min") for dtype in ("int64", "uint64"))
_FLOATS = frozenset({"add.float32", "add.float64"})
_NATIVE_SHARED_NVIDIA = _INTEGERS
"""What the memory itself computes; every other shared atomic of NVIDIA is a loop."""


@cache
def atomics(target: Target, space: str) -> frozenset[str]:
    """Atomics on ``shared`` or ``global`` memory: ``add.int32``, ``max.uint64``, ``add.float16x2``."""
    plain = _INTEGERS | _LONG | _FLOATS
    if target.vendor == "nvidia":
        halves = {"add.float16x2"} | ({"add.bfloat16x2"} if "cluster" in target.features else set())
        return plain | halves
    if target.vendor == "amd":
        newer = target.arch != "gfx90a"
        halves = {"add.float16x2"} if newer or space == "global" else set()
        return plain | halves | ({"add.bfloat16x2"} if newer else set())
    return plain | {"add.float16"}  # x86: an instruction, or a loop around one


def is_loop(target: Target, space: str, operation: str) -> bool:
    """Whether an atomic is a loop of a load and a compare-and-swap, run until every lane has succeeded."""
    return target.vendor == "nvidia" and space == "shared" and operation not in _NATIVE_SHARED_NVIDIA


def counts_ones(target: Target, space: str, operation: str) -> bool:
    """Whether adding the constant 1 is an instruction of its own, which first adds up lanes that share an element."""
    return (
        target.vendor == "nvidia"
        and space == "shared"
        and operation in ("add.int32", "add.uint32")
        and "cp_async" in target.features  # sm_80: what ptxas 13.5 makes of it from there on
    )


__all__ = ["atomics", "counts_ones", "is_loop"]
