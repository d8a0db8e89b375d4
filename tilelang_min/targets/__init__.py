"""What each machine is, as data; the only place that machine numbers are read from.

``resolve("cuda:sm_80")`` gives a :class:`Target`: sizes, register files, matrix instructions with their lane maps,
devices with peaks.  :func:`occupancy` says how many blocks fit on a unit.  Imports nothing but the standard library.
"""

from tilelang_min.targets.hosts import processor_name, runs_on
from tilelang_min.targets.kfd import KfdGpu, amd_gpus, gfx_name
from tilelang_min.targets.lane_maps import LDMATRIX, LDMATRIX_TRANS
from tilelang_min.targets.occupancy import Occupancy, occupancy
from tilelang_min.targets.peaks import dram_bytes_per_second, flops_per_second, shared_bytes_per_second
from tilelang_min.targets.records import (
    Device,
    GlobalTransfer,
    LaneMap,
    MatrixInstruction,
    RegisterFile,
    SharedMemory,
    SharedPhases,
    Target,
    Term,
    UnitLimits,
)
from tilelang_min.targets.resolve import names, resolve

__all__ = [
    "LDMATRIX",
    "LDMATRIX_TRANS",
    "Device",
    "GlobalTransfer",
    "KfdGpu",
    "LaneMap",
    "MatrixInstruction",
    "Occupancy",
    "RegisterFile",
    "SharedMemory",
    "SharedPhases",
    "Target",
    "Term",
    "UnitLimits",
    "amd_gpus",
    "dram_bytes_per_second",
    "flops_per_second",
    "gfx_name",
    "names",
    "occupancy",
    "processor_name",
    "resolve",
    "runs_on",
    "shared_bytes_per_second",
]
