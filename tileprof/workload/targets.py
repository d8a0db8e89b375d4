"""Target names of the workload file -> canonical names and the facts that ``where`` expressions may read."""

from __future__ import annotations

import importlib.util

import tilelang_min as tilelang
from tilelang_min import errors as tilelang_errors
from tilelang_min import targets as tilelang_targets
from tileprof.workload.problems import unknown
from tileprof.workload.records import Scalar, TargetEntry

PLANNED = {
    "muxi": "MetaX targets are not there yet",
}
"""Targets that a workload may name although this version cannot compile for them, and why."""


def _missing(name: str) -> str | None:
    """What an installation lacks to compile for a target, or None."""
    if name == "cuda:sm_70" and importlib.util.find_spec("nvidia.cuda_nvrtc") is None:
        return "sm_70 needs the CUDA 12 compiler: python -m pip install 'tileprof[volta]'"
    return None


FACTS = (
    "shared_bytes",
    "shared_bytes_static",
    "warp_size",
    "max_threads_per_block",
    "registers_per_thread",
    "vector_bits",
)
"""Names of target facts in ``where`` expressions; those that a target does not have are absent."""


class TargetProblem(Exception):
    """A target name that nobody knows; the text says so and names the nearest."""


def resolve_target(name: str, text: str, profilers: tuple[str, ...]) -> TargetEntry:
    """The entry called ``name`` for the target ``text``.  Raises TargetProblem."""
    wanted = text.strip()
    unsupported = PLANNED.get(wanted) or _missing(wanted)
    if unsupported is not None:
        return TargetEntry(name, wanted, wanted.partition(":")[0], profilers, unsupported=unsupported)
    if wanted == "auto":
        wanted = f"{tilelang.get_backend()}:{tilelang.get_target_arch()}"
        wanted = "cpu" if wanted.startswith("cpu") else wanted
    try:
        target = tilelang_targets.resolve(wanted)
    except tilelang_errors.TargetError:
        words = ["auto", *tilelang_targets.names(), *PLANNED]
        spelt = f"hip{wanted[4:]}" if wanted.startswith("rocm") else wanted
        raise TargetProblem(unknown("target", spelt, words).replace(f"'{spelt}'", f"'{wanted}'", 1)) from None
    facts: dict[str, Scalar | None] = {
        "shared_bytes": target.shared.block_limit,
        "shared_bytes_static": target.shared.static_limit,
        "warp_size": target.warp_size,
        "max_threads_per_block": target.max_threads_per_block,
        "registers_per_thread": target.registers.per_thread,
        "vector_bits": target.vector_bits,
    }
    known = {key: value for key, value in facts.items() if value is not None}
    return TargetEntry(name, target.name, target.kind, profilers, facts=known)
