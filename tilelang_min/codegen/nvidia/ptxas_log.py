"""Reads ``ptxas -v``: registers, spills, stack and shared memory, by kernel.

Blocks are told apart by name and never by order: device functions that were not inlined have a property block too, which
stands after the figures of the kernel that calls them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_BARRIERS = re.compile(r"used (\d+) barriers")


@dataclass(frozen=True, slots=True)
class PtxasFigures:
    """What ptxas says of one kernel for one architecture.

    ``registers`` a thread; ``stack_bytes`` (the kernel's own frame) and spills in bytes a thread, static;
    ``cumulative_stack_bytes`` with called functions, where ptxas knows it; ``shared_bytes`` a block, without the 1 KiB that
    the system reserves on newer architectures; ``barriers`` a block.
    """

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    barriers: int | None
    cumulative_stack_bytes: int | None


def read_ptxas_log(log: str, name: str, arch: str | None = None) -> PtxasFigures | None:
    """Figures of kernel ``name`` (as in the binary: mangled unless extern "C"); None where the log does not hold them.

    ``arch`` such as ``sm_90a`` chooses where one log has several; without it the first is taken.
    """
    frame: tuple[int, int, int] | None = None
    inside = False  # within the block of the kernel wanted
    properties_of: str | None = None
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            inside = entry[1] == name and arch in (None, entry[2])
            properties_of, frame = None, None
        elif not inside:
            continue
        elif properties := _PROPERTIES.search(line):
            properties_of = properties[1]
        elif (figures := _FRAME.search(line)) and properties_of == name:
            frame = (int(figures[1]), int(figures[2]), int(figures[3]))
        elif (used := _USED.search(line)) and frame is not None:
            rest = used[2]
            shared = _SHARED.search(rest)
            barriers, stack = _BARRIERS.search(rest), _STACK.search(rest)
            return PtxasFigures(
                registers=int(used[1]),
                stack_bytes=frame[0],
                spill_store_bytes=frame[1],
                spill_load_bytes=frame[2],
                shared_bytes=sum(int(part) for part in shared.groups() if part) if shared else 0,
                barriers=int(barriers[1]) if barriers else None,
                cumulative_stack_bytes=int(stack[1]) if stack else None,
            )
    return None
