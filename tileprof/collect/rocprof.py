"""Running rocprof v1, which old ROCm releases have: availability, input file, command line.

Reading its files is in ``rocprof_file.py``.  It cannot collect counters of 8-bit matrix products, and accumulates a level counter
only where SQ_ACCUM_PREV_HIRES stands directly behind it.  Written from its documentation: no AMD GPU was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tileprof.collect.rocprofv3 import with_amd_device
from tileprof.collect.tool import Availability, find_tool
from tileprof.errors import UsageError
from tileprof.metrics.amd_blocks import ACCUMULATE, NOT_IN_V1
from tileprof.plan.passes import PassPlan, over_limit

TOOL = "rocprof"
INSTALL = (
    "install rocprofiler of a ROCm before 7 and put rocprof on PATH, or name it in TILEPROF_ROCPROF; "
    "ROCm 6.2 and later have rocprofv3"
)


def find(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> str | None:
    """Path of rocprof: TILEPROF_ROCPROF, then PATH, then the newest ROCm below ``root``."""
    return find_tool(TOOL, "TILEPROF_ROCPROF", (f"opt/rocm*/bin/{TOOL}",), environment, root)


def available(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> Availability:
    """Whether rocprof can be used here; it tells no version."""
    path = find(environment, root)
    if path is None:
        return Availability(TOOL, False, why="not found", remedy=INSTALL)
    return with_amd_device(Availability(TOOL, True, path), root)


def input_text(plan: PassPlan, *, kernel: str | None = None, first: int | None = None, last: int | None = None) -> str:
    """The input file: a line ``pmc:`` a pass, and which launches.

    ``kernel`` is a part of the name, ``first`` and ``last`` are numbers of dispatches, from 0.  Raises UsageError for a pass
    above a block's limit.
    """
    lines = []
    for counters in plan.passes:
        if over_limit(counters):
            raise UsageError(
                f"one pass cannot count {', '.join(counters)}", remedy="let plan_passes split the counters"
            )
        names: list[str] = []
        for name in counters:
            if name in NOT_IN_V1:
                continue
            base = name.removesuffix("_ACCUM")
            # what is accumulated has to stand directly before it
            names += [base, ACCUMULATE] if base != name else [name]
        kept = list(dict.fromkeys(names)) if ACCUMULATE not in names else _once(names)
        if kept:
            lines.append(f"pmc: {' '.join(kept)}")
    if first is not None:
        lines.append(f"range: {first}:{(first if last is None else last) + 1}")
    if kernel:
        lines.append(f"kernel: {kernel}")
    return "\n".join(lines) + "\n"


def _once(names: Sequence[str]) -> list[str]:
    """Each name once; a counter that is accumulated stays where its accumulation follows it."""
    pairs = {names[i - 1] for i, name in enumerate(names) if name == ACCUMULATE}
    kept: list[str] = []
    for i, name in enumerate(names):
        followed = i + 1 < len(names) and names[i + 1] == ACCUMULATE
        if name == ACCUMULATE or followed or (name not in pairs and name not in kept):
            kept.append(name)
    return kept


def command(tool: str, child: Sequence[str], input_file: Path, output: Path) -> list[str]:
    """The command line; ``output`` is the CSV file, beside which others of the same name appear."""
    return [tool, "-i", str(input_file), "--timestamp", "on", "-o", str(output), *child]
