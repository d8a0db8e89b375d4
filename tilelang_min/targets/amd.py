"""AMD CDNA architectures and products as data.

Not here: matrix instructions (``mfma.py``), the occupancy formula (``occupancy.py``), counting rules
(``tilelang_min.access``).
"""

from __future__ import annotations

from collections.abc import Mapping

from tilelang_min.targets import mfma
from tilelang_min.targets.memory import AMD_REQUESTS, amd_phases
from tilelang_min.targets.records import Device, RegisterFile, SharedMemory, Target, UnitLimits

KIB = 1024
GB = 1_000_000_000
MHZ = 1_000_000

LLVM = "LLVM AMDGPUBaseInfo.cpp"
REGISTERS = RegisterFile(
    per_unit=4 * 512 * 64,
    per_thread=512,
    granule=8 * 64,
    partitions=4,
    source=f"{LLVM}: 512 unified registers a lane and SIMD (architected and accumulation), granule 8 a lane",
)
LIMITS = UnitLimits(
    max_warps=32,
    max_blocks=32,
    barriers=16,
    barriers_free_for_one_warp=True,
    source=f"{LLVM}: 8 waves a SIMD, 4 SIMDs; at most 16 workgroups of more than one wave, which need a barrier",
)

# arch: LDS KiB a unit (also the most a workgroup may have), granule in bytes
_LDS: dict[str, tuple[int, int]] = {"gfx90a": (64, 512), "gfx942": (64, 512), "gfx950": (160, 1280)}

_MATRIX = (mfma.MFMA_32X32X8_F16, mfma.MFMA_16X16X16_F16, mfma.MFMA_32X32X2_F32, mfma.MFMA_16X16X4_F32)

_FLOPS: dict[str, Mapping[str, float]] = {
    "gfx90a": {
        "matrix.float16": 1024,
        "matrix.bfloat16": 1024,
        "matrix.int8": 1024,
        "matrix.float32": 256,
        "matrix.float64": 256,
        "vector.float16": 256,
        "vector.float32": 256,
        "vector.float64": 128,
    },
    "gfx942": {
        "matrix.float16": 2048,
        "matrix.bfloat16": 2048,
        "matrix.tf32": 1024,
        "matrix.float8": 4096,
        "matrix.int8": 4096,
        "matrix.float32": 256,
        "matrix.float64": 256,
        "vector.float16": 256,
        "vector.float32": 256,
        "vector.float64": 128,
    },
    "gfx950": {
        "matrix.float16": 4096,
        "matrix.bfloat16": 4096,
        "matrix.float8": 8192,
        "matrix.int8": 8192,
        "matrix.float6": 16384,
        "matrix.float4": 16384,
        "matrix.float32": 256,
        "matrix.float64": 128,
        "vector.float16": 256,
        "vector.float32": 256,
        "vector.float64": 128,
    },
}
_RATES = (
    "AMD CDNA2, CDNA3 and CDNA4 white papers, table 1; vector.float32 with packed instructions (half of it without on "
    "gfx90a), vector.float16 assumed packed; LDS 128 bytes a clock (gfx950 reads of 8 and 16 bytes a lane: up to 256)"
)


_CACHE_BYTES = {"gfx90a": 8 * KIB * KIB, "gfx942": (32 + 256) * KIB * KIB, "gfx950": (32 + 256) * KIB * KIB}
"""L2 of all dies of the largest device, and the Infinity Cache behind it, which the runtime's attributes do not tell."""


def _device(arch: str, name: str, cus: int, clock_mhz: int, dram_gb_per_s: float) -> Device:
    return Device(
        name=name,
        units=cus,
        clock_hz=clock_mhz * MHZ,
        dram_bytes_per_s=round(dram_gb_per_s * GB),
        shared_bytes_per_clock_per_unit=128,
        flops_per_clock_per_unit=_FLOPS[arch],
        source=f"{_RATES}; units, clock, bandwidth and caches: AMD Instinct data sheet of the {name}",
        cache_bytes=_CACHE_BYTES[arch],
    )


_DEVICES: dict[str, tuple[Device, ...]] = {
    "gfx90a": (
        _device("gfx90a", "MI250X (one GCD)", 110, 1700, 1638),
        _device("gfx90a", "MI250 (one GCD)", 104, 1700, 1638),
        _device("gfx90a", "MI210", 104, 1700, 1638),
    ),
    "gfx942": (
        _device("gfx942", "MI300X", 304, 2100, 5300),
        _device("gfx942", "MI325X", 304, 2100, 6000),
        _device("gfx942", "MI300A", 228, 2100, 5300),
    ),
    "gfx950": (
        _device("gfx950", "MI355X", 256, 2400, 8000),
        _device("gfx950", "MI350X", 256, 2200, 8000),
    ),
}

ARCHITECTURES = tuple(_LDS)
"""Names of the known architectures."""

DEFAULT_ARCHITECTURE = "gfx942"


def target(arch: str) -> Target:
    """The target of a known architecture (``KeyError`` otherwise: names are checked by ``resolve``)."""
    kib, granule = _LDS[arch]
    return Target(
        kind="hip",
        arch=arch,
        name=f"hip:{arch}",
        vendor="amd",
        warp_size=64,
        max_threads_per_block=1024,
        shared=SharedMemory(
            banks=32,
            bank_bytes=4,
            static_limit=kib * KIB,
            block_limit=kib * KIB,
            unit_bytes=kib * KIB,
            reserved_per_block=0,
            granule=granule,
            carveouts=None,
            source=f"AMD CDNA ISA documents (32 banks; 64 for some reads of gfx950); {LLVM} (granule)",
        ),
        registers=REGISTERS,
        limits=LIMITS,
        matrix_instructions=_MATRIX,
        features=frozenset({"mfma"}),
        vector_bits=None,
        devices=_DEVICES[arch],
        source="AMD CDNA ISA documents; HIP programming guide (1024 threads a block)",
        shared_phases=amd_phases(arch),
        global_transfer=AMD_REQUESTS[arch],
        instruction_set=mfma.instruction_set(arch),
        max_grid_threads=2**32 - 1,  # HIP API reference, hipModuleLaunchKernel: grid times block below 2^32
    )
