"""The vendor's word for each thing: data use canonical names, reports speak as the reader's manuals do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Words:
    """How one vendor calls the memory of a block, a pass over it, the unit that holds blocks, and so on."""

    vendor: str
    shared: str
    transactions: str
    unit: str
    warp: str
    block: str


_NVIDIA = Words("NVIDIA", "shared memory", "transactions", "SM", "warp", "block")
_AMD = Words("AMD", "LDS", "LDS cycles", "CU", "wavefront", "workgroup")
_CPU = Words("CPU", "tile buffers", "transactions", "core", "thread", "block")


def words(target: str) -> Words:
    """Words for a target such as ``cuda:sm_80``, ``hip:gfx942`` or ``cpu``; unknown ones speak as NVIDIA does."""
    kind = target.partition(":")[0]
    return {"hip": _AMD, "rocm": _AMD, "cpu": _CPU}.get(kind, _NVIDIA)


def limiter_words(metadata: Mapping[str, Any], target: str) -> list[str]:
    """What limits the occupancy, in the vendor's words."""
    vocabulary = words(target)
    names = {"shared": vocabulary.shared, "warps": f"{vocabulary.warp}s", "blocks": f"{vocabulary.block}s"}
    return [names.get(name, name) for name in metadata.get("occupancy_limiters") or ()]


ACCESSES = {
    "load": "load",
    "store": "store",
    "ldmatrix": "ldmatrix",
    "cp_async": "cp.async",
    "cp_async_bypass": "cp.async.cg",
    "stmatrix": "stmatrix",
    "tma_load": "bulk load",
    "tma_store": "bulk store",
    "remote_store": "store to another block",
    "wgmma": "wgmma operand",
}
"""Kinds of access as assembly spells them."""

STATUS_WORDS = {
    "ok": "ran",
    "compile_error": "compile error",
    "unsupported": "unsupported",
    "incorrect": "wrong result",
    "crashed": "crashed",
    "timeout": "time limit",
    "invalid_measurement": "invalid measurement",
    "not_run": "not run",
    "lost": "lost",
}
"""Status of a case as the reader sees it."""

PROVENANCE_WORDS = {
    "measured": "Counted or timed while the kernel ran on hardware.",
    "simulated": "Counted while the simulator executed the very thread program that the code generator printed.",
    "static": "Read from the binary, its listing or the vendor compiler's log; nothing was executed.",
    "derived": "Calculated from other figures by the formula that is named.",
    "datasheet": "The vendor's nominal figure: clock times units. No code reaches it.",
}
"""What each kind of provenance means."""
