"""What a machine runs: which binaries its GPU takes, and what its processor is called."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path


def runs_on(arch: str, device: str) -> bool:
    """Whether a binary for ``arch`` (``sm_80``, ``sm_90a``, ``gfx942``) runs on a GPU of architecture ``device``, spelt alike.

    A cubin runs on devices of its major revision and of its minor one or a later; one for an architecture with a suffix runs on
    that one only (CUDA C++ Programming Guide, binary compatibility).  AMD code objects run on their own architecture.
    """
    wanted, have = (re.fullmatch(r"sm_(\d+)(\d)([af]?)", name) for name in (arch, device))
    if wanted is None or have is None:
        return arch == device
    if wanted[1] != have[1]:
        return False
    return wanted[2] == have[2] if wanted[3] else int(have[2]) >= int(wanted[2])


@cache
def processor_name() -> str:
    """What the system calls the processor, or else the instruction set's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
