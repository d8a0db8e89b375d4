"""Sizes of a case's runtime dimensions against what was compiled: names, the size of tensors, and of this machine's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import tilelang_min as tilelang
from tileprof.launcher.inputs import numpy_dtype
from tileprof.launcher.jobs import parameters_at
from tileprof.report import numbers
from tileprof.workload.problems import unknown

_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
"""Where a container's limit stands."""


class SizesProblem(Exception):
    """Sizes that do not fit the kernel or the machine; the text begins with their place in the workload file.

    ``status`` is how the case ends.
    """

    def __init__(self, message: str, places: Mapping[str, str], name: str = "", status: str = "compile_error") -> None:
        place = places.get(name) or places.get("")
        super().__init__(f"{place}: {message}" if place else message)
        self.status = status


def parameters_of(kernel: tilelang.Kernel, sizes: Mapping[str, int], places: Mapping[str, str]) -> list[dict[str, Any]]:
    """The parameters of a launch with these sizes, shapes in numbers.

    Raises SizesProblem for a size of no runtime dimension, a dimension without one, and a launch that is too large for the
    kernel's indices or grid.
    """
    for name in sizes:
        if name not in kernel.sizes:
            raise SizesProblem(unknown(f"runtime dimension of {kernel.name}", name, kernel.sizes), places, name)
    missing = [name for name in kernel.sizes if name not in sizes]
    if missing:
        words = ", ".join(missing)
        example = ", ".join(f"{name}: [1, 128]" for name in missing)
        raise SizesProblem(
            f"{words} of {kernel.name} is known at launch alone (T.dynamic): say how large, sizes: [{{{example}}}]",
            places,
        )
    try:
        kernel.grid_for(sizes)
        return parameters_at(kernel, dict(sizes))
    except tilelang.errors.LaunchError as error:
        raise SizesProblem(str(error), places, status="unsupported") from error


def check_memory(
    parameters: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, str],
    places: Mapping[str, str],
    *,
    reference: bool = False,
    free: int | None = None,
) -> None:
    """Raise SizesProblem where what a case needs at the least is more than this machine's ``free`` memory (found out if None).

    Needed are its tensors (zeros that are only read take none), a second set of those that the simulator writes, and with a
    ``reference`` those in float64.
    """
    free = free_memory() if free is None else free
    needed: dict[str, int] = {}
    for parameter in parameters:
        name, count = parameter["name"], prod(parameter["shape"])
        size = count * numpy_dtype(parameter["dtype"]).itemsize
        if parameter["access"] == "in":
            needed[name] = 0 if kinds.get(name) == "zeros" else size
        else:
            needed[name] = 2 * size + (8 * count if reference else 0)
    total = sum(needed.values())
    if free is None or total <= free:
        return
    largest = max(parameters, key=lambda parameter: needed[parameter["name"]])
    shape = " x ".join(str(extent) for extent in largest["shape"])
    raise SizesProblem(
        f"too large for this machine's memory: at least {numbers.si(total, 'B')} are needed, and {numbers.si(free, 'B')} are free\n"
        f"most is for {largest['name']}, {shape} {largest['dtype']}: {numbers.si(needed[largest['name']], 'B')} with what the "
        "simulator and the reference make of it",
        places,
        status="unsupported",
    )


def free_memory(memory: Path = _MEMORY, group: Path = _GROUP) -> int | None:
    """Bytes that processes can still have: what the system has available, or the container's limit leaves; None if unknown."""
    found = []
    try:
        rows = dict(line.split(":", 1) for line in memory.read_text().splitlines() if ":" in line)
        found.append(int(rows["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        pass
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        cached = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        found.append(limit - used + int(cached.get("inactive_file", 0)))
    except (OSError, ValueError):  # no limit: "max"
        pass
    return max(0, min(found)) if found else None
