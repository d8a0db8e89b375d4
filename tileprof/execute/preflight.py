"""Before a run: may the profiler count?  A counter is read while this process holds the GPU, so that nothing else measures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tilelang_min import targets
from tileprof.collect import ncu_probe, rocprofv3, rocprofv3_probe
from tileprof.collect.ncu_probe import CounterRead
from tileprof.collect.tool import Availability
from tileprof.errors import MeasurementInvalid
from tileprof.execute.gpu_lock import LONGEST_WAIT_S, first_device, held


def read_counter(
    say: Callable[[str], None] = lambda _: None, longest_s: float = LONGEST_WAIT_S, root: Path = Path("/")
) -> tuple[Availability, CounterRead | None]:
    """ncu as a real counter read leaves it, and the read; None where there is nothing to try it with.

    Waits up to ``longest_s`` seconds for another run on the GPU, of which ``say`` hears; ``root`` is for tests.
    """
    found = ncu_probe.candidate(root=root)
    if not found.usable:
        return found, None
    try:
        with held(first_device("nvidia"), threading.Event(), say, longest_s=longest_s):
            return ncu_probe.read_with(found, root)
    except MeasurementInvalid as error:
        return found.denied(f"not tried: {error}", "try again when that run has ended"), None


def ncu_preflight(say: Callable[[str], None] = lambda _: None) -> Availability:
    """Whether ncu can read counters here, found out by reading one."""
    return read_counter(say)[0]


def read_amd_counter(
    say: Callable[[str], None] = lambda _: None, longest_s: float = LONGEST_WAIT_S, root: Path = Path("/")
) -> tuple[Availability, CounterRead | None]:
    """The same with rocprofv3 on the first AMD GPU; nothing is tried where the compiler has no target for it."""
    found = rocprofv3.available(root=root)
    gpus = targets.kfd.visible(targets.amd_gpus(root))
    if not found.usable or not gpus or f"hip:{gpus[0].arch}" not in targets.names():
        return found, None
    try:
        with held(first_device("amd"), threading.Event(), say, longest_s=longest_s):
            return rocprofv3_probe.read_counter(found, gpus[0].arch)
    except MeasurementInvalid as error:
        return found.denied(f"not tried: {error}", "try again when that run has ended"), None


def rocprofv3_preflight(say: Callable[[str], None] = lambda _: None) -> Availability:
    """Whether rocprofv3 can read counters here, found out by reading one."""
    return read_amd_counter(say)[0]
