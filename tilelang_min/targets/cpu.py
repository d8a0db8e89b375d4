"""CPUs as a target: the micro-architecture levels of x86-64, and which of them this machine has.

A CPU has no datasheet ceilings here: those are measured.
"""

from __future__ import annotations

import platform
from pathlib import Path

from tilelang_min.errors import TargetError
from tilelang_min.targets.records import RegisterFile, SharedMemory, Target

LEVELS_SOURCE = "x86-64 psABI, micro-architecture levels"

# level: flags of /proc/cpuinfo that it adds to the level before
_FLAGS: dict[str, frozenset[str]] = {
    "x86-64-v2": frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    "x86-64-v3": frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v4+vnni": frozenset({"avx512_vnni"}),
}
# level: vector bits, vector registers
_VECTORS: dict[str, tuple[int, int]] = {
    "x86-64-v2": (128, 16),
    "x86-64-v3": (256, 16),
    "x86-64-v4": (512, 32),
    "x86-64-v4+vnni": (512, 32),
}

ARCHITECTURES = tuple(_FLAGS)
"""Names of the known levels, lowest first.  What follows a plus are extensions that the level itself does not have."""

TILE_BYTES = 1024 * 1024

LINE_BYTES = 64
"""A cache line of every x86-64 processor."""

STREAM_BYTES = 32 * 1024 * 1024
"""A result of so many bytes will not be found in a cache by whoever reads it next."""

STREAM_RUN_BYTES = 2048
"""Shortest run of stores that is worth sending past the caches: at the ends of each run parts of lines are written, which costs
more there than in a cache."""

PANEL_BYTES = 32 * 1024
"""What should stay in the first data cache while it is used over and over: these have 32 to 48 KiB."""


def detect(cpuinfo: str | None = None) -> str:
    """The highest level that the machine's first processor has; ``cpuinfo`` is the text of ``/proc/cpuinfo``.

    Raises :class:`TargetError` where the processor is no x86-64 of level 2 or above, or cannot be asked.
    """
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise TargetError(
                f"cannot find out what this {platform.machine()} processor is: {error}",
                remedy='name the level, as in "cpu:x86-64-v3"',
            ) from error
    flags: frozenset[str] = frozenset()
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            flags = frozenset(value.split())
            break
    found: str | None = None
    for level, needed in _FLAGS.items():
        if not needed <= flags:
            break
        found = level
    if found is None:
        raise TargetError(
            "this processor has no x86-64-v2 instructions, the least that CPU kernels need",
            remedy='compile for a GPU target, or name the level of the machine that will run it, as in "cpu:x86-64-v3"',
        )
    return found


def target(arch: str, name: str | None = None) -> Target:
    """The target of a known level (``KeyError`` otherwise: names are checked by ``resolve``)."""
    bits, registers = _VECTORS[arch]
    return Target(
        kind="cpu",
        arch=arch,
        name=name or f"cpu:{arch}",
        vendor="cpu",
        warp_size=1,
        max_threads_per_block=1024,
        shared=SharedMemory(
            banks=None,
            bank_bytes=None,
            static_limit=TILE_BYTES,
            block_limit=TILE_BYTES,
            unit_bytes=None,
            reserved_per_block=0,
            granule=64,
            carveouts=None,
            source="our choice: tiles live on the calling thread's stack (8 MiB on Linux) and should stay in cache",
        ),
        registers=RegisterFile(
            per_unit=None,
            per_thread=registers,
            granule=None,
            partitions=None,
            source=f"{LEVELS_SOURCE}; vector registers",
        ),
        limits=None,
        matrix_instructions=(),
        features=frozenset(arch.split("+")[1:]),
        vector_bits=bits,
        devices=(),
        source=f"{LEVELS_SOURCE}; threads a block as on GPUs, so that one kernel compiles for all",
    )
