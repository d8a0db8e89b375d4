"""Which memory an NVIDIA machine instruction accesses, and in what way, by its opcode.

The kinds of access are the simulator's words, so that measured and simulated figures meet: ``load``, ``store``, ``ldmatrix``,
``stmatrix``, ``atomic``, ``cp_async`` (through L1) and ``cp_async_bypass`` (past it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tileprof.metrics.ncu_names import MEMORY_GLOBAL, MEMORY_SHARED

_OPCODE = re.compile(r"(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_:]+)*)")

_ACCESS = {
    "LDS": ("shared", "load"),
    "STS": ("shared", "store"),
    "LDSM": ("shared", "ldmatrix"),
    "STSM": ("shared", "stmatrix"),
    "ATOMS": ("shared", "atomic"),
    "LDG": ("global", "load"),
    "STG": ("global", "store"),
    "ATOMG": ("global", "atomic"),
    "ATOM": ("global", "atomic"),
    "RED": ("global", "atomic"),
    "REDG": ("global", "atomic"),
}
_GENERIC = {"LD": "load", "ST": "store"}


@dataclass(frozen=True, slots=True)
class Access:
    """``spaces`` holds ``shared``, ``global`` or both (an asynchronous copy reads one and writes the other)."""

    kind: str
    spaces: tuple[str, ...]


def opcode(text: str) -> str:
    """Opcode with its modifiers from a line of SASS, its predicate passed over: ``@P0 LDG.E R2, ...`` -> ``LDG.E``."""
    found = _OPCODE.match(text.strip())
    return found[1] if found else ""


def mnemonic(text: str) -> str:
    """Opcode without modifiers: ``LDG``."""
    return opcode(text).partition(".")[0]


def access(text: str, memory: int | None = None) -> Access | None:
    """The access of an instruction, or None where it accesses neither shared nor global memory.

    ``memory`` is the profiler's bit mask of memories reached, which decides generic loads and stores.  What is predicated on
    ``!PT`` never accesses anything: ptxas puts ``@!PT LDS RZ, [RZ]`` before asynchronous copies.
    """
    if text.lstrip().startswith("@!PT "):
        return None
    code = opcode(text)
    base = code.partition(".")[0]
    if base == "LDGSTS":
        return Access("cp_async_bypass" if ".BYPASS" in code else "cp_async", ("shared", "global"))
    if base in _ACCESS:
        space, kind = _ACCESS[base]
        return Access(kind, (space,))
    if base in _GENERIC and memory:
        spaces = (("shared", MEMORY_SHARED), ("global", MEMORY_GLOBAL))
        reached = tuple(space for space, bit in spaces if memory & bit)
        return Access(_GENERIC[base], reached) if reached else None
    return None


_BYPASS = re.compile(r"\bLDGSTS\.\S*BYPASS")
_P0 = re.compile(r"(?<![A-Z])P0\b")


def misread_by_profiler(text: str) -> bool:
    """Whether Nsight Compute's counters of this instruction are known to be wrong.

    ncu 2025.3.1 misreads predicate register P0 at asynchronous copies that bypass L1: an ``LDGSTS...BYPASS`` that names P0, as
    guard or as read predicate, shows too few wavefronts and sectors, often none (measured on an H200, docs/memory-model.md).
    """
    return bool(_BYPASS.search(text)) and bool(_P0.search(text))
