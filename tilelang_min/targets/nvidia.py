"""NVIDIA architectures and products as data.

Not here: matrix instructions (``mma_sync.py``), the occupancy formula (``occupancy.py``), counting rules
(``tilelang_min.access``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilelang_min.targets import mma_sync
from tilelang_min.targets.memory import NVIDIA_SECTORS, nvidia_phases
from tilelang_min.targets.records import Device, RegisterFile, SharedMemory, Target, UnitLimits

KIB = 1024
GB = 1_000_000_000
MHZ = 1_000_000

OCCUPANCY_HEADER = "cuda_occupancy.h (CUDA 13.0); reproduces Nsight Compute's block limits on cc 7.5, 8.0, 8.6 and 9.0"
BANKS = "CUDA C++ Programming Guide, compute capability 5.x to 9.x: 32 banks of 4 bytes, 128 bytes a clock"

REGISTERS = RegisterFile(
    per_unit=65536,
    per_thread=255,
    granule=256,
    partitions=4,
    source=f"{OCCUPANCY_HEADER}; 255 usable registers a thread: CUDA C++ Programming Guide, technical specifications",
)

_HOPPER_CARVEOUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
_MMA_SYNC = frozenset({"ldmatrix", "cp_async", "mma_sync"})
_CLUSTERS = _MMA_SYNC | {"stmatrix", "cluster", "tma"}

# arch: max warps, max blocks, barriers, shared KiB of a unit, of a block, bytes reserved, granule, carve-outs, features
_ARCHITECTURES: dict[str, tuple[int, int, int, int, int, int, int, tuple[int, ...], frozenset[str]]] = {
    "sm_70": (64, 32, 64, 96, 96, 0, 256, (0, 8, 16, 32, 64, 96), frozenset()),
    "sm_75": (32, 16, 32, 64, 64, 0, 256, (32, 64), frozenset({"ldmatrix"})),
    "sm_80": (64, 32, 64, 164, 163, 1024, 128, (0, 8, 16, 32, 64, 100, 132, 164), _MMA_SYNC),
    "sm_86": (48, 16, 16, 100, 99, 1024, 128, (0, 8, 16, 32, 64, 100), _MMA_SYNC),
    "sm_89": (48, 24, 24, 100, 99, 1024, 128, (0, 8, 16, 32, 64, 100), _MMA_SYNC),
    "sm_90a": (64, 32, 64, 228, 227, 1024, 128, _HOPPER_CARVEOUTS, _CLUSTERS | {"wgmma"}),
    "sm_100a": (64, 32, 64, 228, 227, 1024, 128, _HOPPER_CARVEOUTS, _CLUSTERS | {"tcgen05"}),
    "sm_120a": (48, 24, 24, 100, 99, 1024, 128, (0, 8, 16, 32, 64, 100), _CLUSTERS),
}


def _rates(**rates: float) -> Mapping[str, float]:
    """Rates with keys as data spells them: ``matrix_float16`` is ``matrix.float16``."""
    return {key.replace("_", ".", 1): value for key, value in rates.items()}


STATIC_SHARED_BYTES = 48 * KIB
"""Shared memory that a block has without asking for more (CUDA C++ Programming Guide, shared memory)."""
PORTABLE_CLUSTER = 8
"""Blocks of the largest cluster that every GPU with clusters has (CUDA C++ Programming Guide, thread block clusters)."""


def _device(
    name: str,
    sms: int,
    clock_mhz: int,
    dram_gb_per_s: float,
    rates: Mapping[str, float],
    source: str,
    clocks: Mapping[str, int] | None = None,
    clusters: tuple[int, ...] = (),
    l2_bytes_per_s: float | None = None,
) -> Device:
    return Device(
        name=name,
        units=sms,
        clock_hz=clock_mhz * MHZ,
        dram_bytes_per_s=round(dram_gb_per_s * GB),
        shared_bytes_per_clock_per_unit=128,
        flops_per_clock_per_unit=rates,
        source=f"{source}; shared memory: {BANKS}",
        clock_hz_by_rate=dict(clocks or {}),
        clusters=clusters,
        l2_bytes_per_s=None if l2_bytes_per_s is None else round(l2_bytes_per_s),
    )


_VOLTA = _rates(matrix_float16=1024, vector_float32=128, vector_float64=64, vector_float16=256)
_TURING = _rates(matrix_float16=1024, vector_float32=128, vector_float64=4, vector_float16=256)
_AMPERE = _rates(
    matrix_float16=2048,
    matrix_bfloat16=2048,
    matrix_tf32=1024,
    matrix_int8=4096,
    matrix_float64=128,
    vector_float32=128,
    vector_float64=64,
    vector_float16=512,
)
# GeForce parts: float16 products with float32 accumulation run at half the rate of float16 accumulation.
_AMPERE_GEFORCE = _rates(
    matrix_float16=512,
    matrix_bfloat16=512,
    matrix_tf32=256,
    matrix_int8=2048,
    vector_float32=256,
    vector_float64=4,
    vector_float16=256,
)
_ADA_GEFORCE = {**_AMPERE_GEFORCE, "matrix.float8": 1024}
# mma.sync reaches two thirds of what wgmma does on Hopper.
_HOPPER = {
    **_rates(
        matrix_float16=4096,
        matrix_bfloat16=4096,
        matrix_tf32=2048,
        matrix_float8=8192,
        matrix_int8=8192,
        matrix_float64=256,
        vector_float32=256,
        vector_float64=128,
        vector_float16=512,
    ),
    "matrix.float16.mma_sync": 8192 / 3,
}
_HOPPER_TENSOR = {
    key: 1830 * MHZ
    for key in (
        "matrix.float16",
        "matrix.float16.mma_sync",
        "matrix.bfloat16",
        "matrix.tf32",
        "matrix.float8",
        "matrix.int8",
    )
}
# cuOccupancyMaxActiveClusters on one H200, a block of 61,440 bytes of shared memory or more; other parts may differ.
_HOPPER_CLUSTERS = (132, 66, 39, 30, 22, 17, 15, 15)
# Bulk loads of a persistent product of 4096^3 by tiles of 128x256: 1.61 GB in 176.8 us (benchmarks/results/2026-11-30-h200.json).
_HOPPER_L2 = 9.1e12
_A100_L2 = 5120 * 1410 * MHZ  # NVIDIA A100 white paper: 5120 bytes a clock
_HOPPER_PCIE_TENSOR = {key: 1620 * MHZ for key in _HOPPER_TENSOR}
_BLACKWELL = _rates(
    matrix_float16=8192,
    matrix_bfloat16=8192,
    matrix_tf32=4096,
    matrix_float8=16384,
    matrix_int8=16384,
    matrix_float4=32768,
    matrix_float64=128,
    vector_float32=256,
    vector_float64=128,
)
_BLACKWELL_GEFORCE = _rates(matrix_float16=512, matrix_bfloat16=512, vector_float32=256, vector_float64=4)

_V100 = "NVIDIA V100 white paper (80 SMs, 1530 MHz: 15.7 TFLOP/s float32, 125 float16 by tensor cores; 900 GB/s)"
_A100 = "NVIDIA A100 white paper (108 SMs, 1410 MHz boost: 312 TFLOP/s dense float16, 19.5 float32, 9.7 float64)"
_H100 = "NVIDIA H100 white paper (SXM5: 132 SMs, 1980 MHz: 66.9 TFLOP/s float32; 1830 MHz: 989.4 dense float16)"
_H100_PCIE = "NVIDIA H100 white paper (PCIe: 114 SMs, 1755 MHz: 51.2 TFLOP/s float32; 1620 MHz: 756 dense float16)"
_B200 = "NVIDIA HGX B200 data sheet (2250 TFLOP/s dense float16, 75 float32, 8 TB/s; the clock is derived from these)"
_GA102 = "NVIDIA GA102 white paper (35.6 TFLOP/s float32, 71 dense float16 with float32 accumulation, 936 GB/s)"
_AD102 = "NVIDIA Ada white paper (82.6 TFLOP/s float32, 165.2 dense float16 with float32 accumulation, 1008 GB/s)"
_RTX5090 = "Nsight Compute reports of an RTX 5090 (170 SMs, FFMA 21760 a clock); data sheet (2407 MHz, 1792 GB/s)"

_DEVICES: dict[str, tuple[Device, ...]] = {
    "sm_70": (_device("V100 SXM2", 80, 1530, 900, _VOLTA, _V100),),
    "sm_75": (_device("T4", 40, 1590, 320, _TURING, "NVIDIA T4 data sheet (8.1 TFLOP/s float32, 65 float16)"),),
    "sm_80": (
        _device("A100 SXM 80GB", 108, 1410, 2039, _AMPERE, _A100, l2_bytes_per_s=_A100_L2),
        _device("A100 SXM 40GB", 108, 1410, 1555, _AMPERE, _A100, l2_bytes_per_s=_A100_L2),
        _device("A100 PCIe 80GB", 108, 1410, 1935, _AMPERE, _A100, l2_bytes_per_s=_A100_L2),
    ),
    "sm_86": (_device("RTX 3090", 82, 1695, 936, _AMPERE_GEFORCE, _GA102),),
    "sm_89": (_device("RTX 4090", 128, 2520, 1008, _ADA_GEFORCE, _AD102),),
    "sm_90a": (
        _device("H100 SXM", 132, 1980, 3350, _HOPPER, _H100, _HOPPER_TENSOR, _HOPPER_CLUSTERS, _HOPPER_L2),
        replace(
            _device(
                "H200 SXM",
                132,
                1980,
                4800,
                _HOPPER,
                f"{_H100}; H200 data sheet (4.8 TB/s)",
                _HOPPER_TENSOR,
                _HOPPER_CLUSTERS,
                _HOPPER_L2,
            ),
            launch_ns=3600,  # one block, cold L2, median: benchmarks/h200_diagnosis.py
        ),
        _device("H100 PCIe", 114, 1755, 2039, _HOPPER, _H100_PCIE, _HOPPER_PCIE_TENSOR),
    ),
    "sm_100a": (_device("B200", 148, 1850, 8000, _BLACKWELL, _B200),),
    "sm_120a": (_device("RTX 5090", 170, 2407, 1792, _BLACKWELL_GEFORCE, _RTX5090),),
}

ARCHITECTURES = tuple(_ARCHITECTURES)
"""Names of the known architectures."""

DEFAULT_ARCHITECTURE = "sm_80"


def target(arch: str) -> Target:
    """The target of a known architecture (``KeyError`` otherwise: names are checked by ``resolve``)."""
    warps, blocks, barriers, unit_kib, block_kib, reserved, granule, carveouts, features = _ARCHITECTURES[arch]
    return Target(
        kind="cuda",
        arch=arch,
        name=f"cuda:{arch}",
        vendor="nvidia",
        warp_size=32,
        max_threads_per_block=1024,
        shared=SharedMemory(
            banks=32,
            bank_bytes=4,
            static_limit=STATIC_SHARED_BYTES,
            block_limit=block_kib * KIB,
            unit_bytes=unit_kib * KIB,
            reserved_per_block=reserved,
            granule=granule,
            carveouts=tuple(size * KIB for size in carveouts),
            source=f"{OCCUPANCY_HEADER}; {BANKS}",
        ),
        registers=REGISTERS,
        limits=UnitLimits(
            max_warps=warps,
            max_blocks=blocks,
            barriers=barriers,
            barriers_free_for_one_warp=False,
            source=OCCUPANCY_HEADER,
        ),
        matrix_instructions=(mma_sync.M16N8K16_F16,) if "mma_sync" in features else (),
        features=features,
        vector_bits=None,
        devices=_DEVICES[arch],
        source="CUDA C++ Programming Guide, technical specifications by compute capability",
        shared_phases=nvidia_phases(features),
        global_transfer=NVIDIA_SECTORS,
        instruction_set=mma_sync.instruction_set(arch),
        max_cluster=PORTABLE_CLUSTER if "cluster" in features else 1,
    )
