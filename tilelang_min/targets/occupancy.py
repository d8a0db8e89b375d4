"""How many blocks fit on a unit at once, and what keeps more from fitting.

One model for both vendors, with the vendor's granules: NVIDIA as ``cuda_occupancy.h`` has it, AMD as LLVM's
``AMDGPUBaseInfo.cpp`` (unified registers).  Scalar registers of AMD and clusters of NVIDIA are not considered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelang_min.errors import TargetError
from tilelang_min.targets.records import Target

LIMITERS = ("registers", "shared", "warps", "blocks", "barriers")
"""What can limit occupancy, in the order in which results name it."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks of one unit.

    ``occupancy`` is resident warps over the most a unit holds, 0 to 1.  ``limiters`` name every resource that alone
    would allow no more blocks; ``limits`` has the blocks that each resource allows (a resource that is not used is
    absent).  All None or empty on a CPU.
    """

    max_blocks_per_unit: int | None
    occupancy: float | None
    limiters: tuple[str, ...]
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)


def _round_up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


def occupancy(
    target: Target,
    *,
    threads: int,
    registers_per_thread: int | None,
    shared_bytes: int,
    barriers: int = 1,
    carveout_bytes: int | None = None,
) -> Occupancy:
    """Blocks of ``threads`` threads that one unit of ``target`` holds at once.

    ``registers_per_thread`` as the compiler reports them (AMD: architected and accumulation registers together; None:
    do not limit); ``shared_bytes`` static and dynamic bytes a block, without what the system reserves;
    ``carveout_bytes`` the shared memory a unit is set to (None: the largest).  A block that cannot be launched at all
    gives 0 blocks.
    """
    if threads < 1 or shared_bytes < 0 or barriers < 0 or (registers_per_thread or 0) < 0:
        raise TargetError(
            f"no such block: {threads=}, {registers_per_thread=}, {shared_bytes=}, {barriers=}",
            remedy="pass at least one thread and no negative count",
        )
    unit = target.limits
    if unit is None:
        return Occupancy(None, None, ())
    warps = -(-threads // target.warp_size)
    limits: dict[str, int] = {}
    if registers_per_thread:
        limits["registers"] = _blocks_by_registers(target, warps, registers_per_thread)
    allocated = _round_up(shared_bytes + target.shared.reserved_per_block, target.shared.granule)
    available = carveout_bytes if carveout_bytes is not None else _unit_bytes(target)
    if allocated:
        limits["shared"] = 0 if shared_bytes > target.shared.block_limit else available // allocated
    limits["warps"] = 0 if threads > target.max_threads_per_block else unit.max_warps // warps
    limits["blocks"] = unit.max_blocks
    if barriers and not (unit.barriers_free_for_one_warp and warps == 1):
        limits["barriers"] = unit.barriers // barriers
    blocks = min(limits.values())
    limiters = tuple(name for name in LIMITERS if limits.get(name) == blocks)
    return Occupancy(blocks, blocks * warps / unit.max_warps, limiters, limits)


def _unit_bytes(target: Target) -> int:
    if target.shared.carveouts is not None:
        return max(target.shared.carveouts)
    return target.shared.unit_bytes or 0


def _blocks_by_registers(target: Target, warps: int, registers_per_thread: int) -> int:
    file = target.registers
    if file.per_unit is None or file.granule is None or file.partitions is None:
        raise TargetError(f"{target.name} has no register file to limit occupancy")
    if registers_per_thread > file.per_thread:
        return 0
    per_warp = _round_up(registers_per_thread * target.warp_size, file.granule)
    # A partition holds whole warps, and the warps of a block are dealt out to the partitions in turn.
    return file.per_unit // file.partitions // per_warp * file.partitions // warps
