"""The clock of a multiprocessor in CUDA C++, for instrumented builds.

A macro, so that the line table names the operation (:mod:`tilelang_min.codegen.nvidia.text`).  ``volatile`` and the clobbered
memory keep the compiler from moving reads across one another and memory accesses across reads.
"""

from __future__ import annotations

from tilelang_min.program.instrument import CLOCK

# All 64 bits, also where fewer would do: %clock becomes S2UR, which compute capability 8.0 waits for; this becomes CS2R.
_MACRO = f'#define {CLOCK}(into) asm volatile("mov.u64 %0, %%clock64;" : "=l"(into) : : "memory")\n'


def definitions(text: str) -> str:
    """The definition of the clock read that printed CUDA C++ calls; empty where there is none."""
    return _MACRO if f"{CLOCK}(" in text else ""
