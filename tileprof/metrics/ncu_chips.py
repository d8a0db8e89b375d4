"""Which counters each NVIDIA chip has: names are checked before anything runs, since ncu only shows ``n/a`` for others.

``data/ncu_names.tsv.gz`` lists the base names of eight chips as ``nvperf_host`` (CUPTI 13.4, for GV100 12.9) gives them.  What ncu
itself adds (launch facts, values by instruction, samples, derived metrics) is not in such lists and is let through.
"""

from __future__ import annotations

import difflib
import gzip
from collections.abc import Iterable
from functools import cache
from importlib import resources

CHIPS = {
    "sm_70": "GV100", "sm_75": "TU102", "sm_80": "GA100", "sm_86": "GA102", "sm_87": "GA102", "sm_89": "AD102",
    "sm_90": "GH100", "sm_100": "GB100", "sm_103": "GB100", "sm_120": "GB202", "sm_121": "GB202",
}  # fmt: skip
"""Chip whose names stand for an architecture."""

OF_NCU = (
    "launch__", "memory_", "derived__", "sass__", "inst_executed", "thread_inst_executed", "smsp__pcsamp_", "device__",
    "profiler__", "pmsampling:", "group:", "breakdown:", "regex:", "nvlink__", "source_", "sm__maximum_warps_",
    "smsp__maximum_warps_", "branch_inst_executed", "idc__", "numa__", "c2clink__",
)  # fmt: skip
"""Beginnings of names that come from ncu itself, or from parts of a machine that are not on every board."""

_ROLLUPS = {
    "counter": ("sum", "avg", "min", "max"),
    "ratio": ("ratio", "pct", "max_rate"),
    "throughput": ("avg", "min", "max", "sum"),
}
"""What has to follow a base name of each type."""


@cache
def _table() -> dict[str, tuple[str, frozenset[str]]]:
    """Base name -> its type and the chips that have it."""
    data = (resources.files("tileprof.metrics") / "data" / "ncu_names.tsv.gz").read_bytes()
    lines = gzip.decompress(data).decode().splitlines()
    chips = lines[0].split("\t")[2:]
    found = {}
    for line in lines[1:]:
        name, kind, *there = line.split("\t")
        found[name] = (kind, frozenset(chip for chip, has in zip(chips, there, strict=True) if has == "1"))
    return found


def base_names(arch: str) -> frozenset[str]:
    """Base names that the chip of an architecture (``sm_90``, ``sm_90a``) has; empty for an architecture without a list."""
    chip = CHIPS.get(arch.rstrip("af"))
    return frozenset(name for name, (_, chips) in _table().items() if chip in chips)


def problem(name: str, arch: str) -> str | None:
    """Why a full counter name cannot be collected on an architecture, with the nearest that can; None where it can or may.

    ``dram__bytes.sum.per_second`` is a base name and what follows.  Architectures without a list let everything through.
    """
    known = base_names(arch)
    if not known or name.startswith(OF_NCU):
        return None
    # names of sampled metrics have dots of their own
    base = name if name in known else next((b for b in _heads(name) if b in known), None)
    if base is None:
        head = name.partition(".")[0]
        near = difflib.get_close_matches(head, known, n=2, cutoff=0.7)
        elsewhere = sorted(_table()[head][1]) if head in _table() else []
        where = f", it is on {', '.join(elsewhere)}" if elsewhere else ""
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"{name} is no counter of {arch}{where}{hint}"
    kind = _table()[base][0]
    suffix = name[len(base) :].lstrip(".").partition(".")[0]
    if suffix not in _ROLLUPS[kind]:
        said = f"ends in .{suffix}" if suffix else "lacks its end"
        return f"{name} {said}: a {kind} takes {', '.join('.' + word for word in _ROLLUPS[kind])}"
    return None


def _heads(name: str) -> Iterable[str]:
    """Beginnings of a dotted name, longest first."""
    parts = name.split(".")
    return (".".join(parts[:i]) for i in range(len(parts) - 1, 0, -1))


def problems(names: Iterable[str], arch: str) -> list[str]:
    """Every :func:`problem` of these names, each once."""
    return list(dict.fromkeys(found for name in names if (found := problem(name, arch)) is not None))
