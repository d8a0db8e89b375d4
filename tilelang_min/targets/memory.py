"""Phases of shared memory instructions and the request units of global memory, for both vendors, as data.

The rules that use them, with what was measured beyond them, are in ``tilelang_min.access``.
"""

from __future__ import annotations

from tilelang_min.targets.records import GlobalTransfer, SharedPhases

Phases = tuple[tuple[int, ...], ...]

NVIDIA_MODEL = (
    "CUDA C++ Programming Guide (32 banks of 4 bytes, 128 bytes a pass); phases confirmed by per-instruction wavefront "
    "counters on A100 and H200"
)
HIPKITTENS = "measured on an MI355X by HipKittens (analysis/paper_experiments/phases)"
CK_DOCS = "Composable Kernel documentation, lds_bank_conflicts"
ROCM_DOCS = "AMD ROCm documentation of the LDS"

NVIDIA_SECTORS = GlobalTransfer(
    load_bytes=32,
    store_bytes=32,
    source="Nsight Compute Profiling Guide: sectors of 32 bytes; exact in 128 of 128 patterns on an H200",
)
_AMD_TRUTH = "cache requests of a copy of known size (rocprof-compute's vcopy): TCP_TCC_READ_REQ and WRITE_REQ"
AMD_REQUESTS = {
    "gfx90a": GlobalTransfer(64, 64, f"{_AMD_TRUTH} on MI200"),
    "gfx942": GlobalTransfer(128, 64, f"{_AMD_TRUTH} on MI300X"),
    "gfx950": GlobalTransfer(128, 64, f"{_AMD_TRUTH} on MI350"),
}
"""Loads reach the L2 as whole lines on gfx942 and gfx950, stores in 64-byte parts everywhere."""


def successive(lanes: int, size: int) -> Phases:
    """Phases of ``size`` successive lanes each."""
    return tuple(tuple(range(first, first + size)) for first in range(0, lanes, size))


def _both_halves(*phases: tuple[int, ...]) -> Phases:
    """The phases of lanes 0 to 31, and the same for lanes 32 to 63."""
    return phases + tuple(tuple(lane + 32 for lane in phase) for phase in phases)


def nvidia_phases(features: frozenset[str]) -> tuple[SharedPhases, ...]:
    """Phases on an architecture with these features: as many lanes go together as fill 128 bytes."""
    kinds: list[tuple[str, str, tuple[int, ...]]] = [
        ("load", "LDS", (8, 16, 32, 64, 128)),
        ("store", "STS", (8, 16, 32, 64, 128)),
    ]
    kinds.append(("atomic", "ATOMS", (32,)))
    kinds.append(("atomic_increment", "ATOMS.POPC.INC", (32,)))
    kinds.append(("atomic_loop", "ATOMS.CAST", (32, 64)))
    if "cp_async" in features:
        kinds.append(("cp_async", "LDGSTS", (32, 64, 128)))
    rules = [
        SharedPhases(f"{opcode}.{width}", access, width, successive(32, min(32, 1024 // width)), 32, True, NVIDIA_MODEL)
        for access, opcode, widths in kinds
        for width in widths
    ]
    # Each matrix is a phase: eight rows of 16 bytes, whose addresses eight successive lanes give.
    for access, opcode in (("ldmatrix", "LDSM"), ("stmatrix", "STSM")):
        if access in features:
            rules.append(SharedPhases(opcode, access, 128, successive(32, 8), 32, True, NVIDIA_MODEL))
    return tuple(rules)


_B96_GROUPS = _both_halves(
    (0, 1, 2, 3, 20, 21, 22, 23),
    (4, 5, 6, 7, 16, 17, 18, 19),
    (8, 9, 10, 11, 28, 29, 30, 31),
    (12, 13, 14, 15, 24, 25, 26, 27),
)
_GFX950_B128_GROUPS = _both_halves(
    (0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27),
    (4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31),
)
_SUB_DWORD = "no public rule for sub-dword accesses; counted as the dwords that hold them"


def amd_phases(arch: str) -> tuple[SharedPhases, ...]:
    """Phases of LDS instructions on ``arch``.  There is none for ds_write_b96 and for transposing or direct loads."""
    halves, quarters, eighths = successive(64, 32), successive(64, 16), successive(64, 8)
    if arch == "gfx950":
        wide_reads = (
            SharedPhases("ds_read_b64", "load", 64, halves, 64, True, HIPKITTENS),
            SharedPhases("ds_read_b128", "load", 128, _GFX950_B128_GROUPS, 64, True, HIPKITTENS),
        )
        wide_store = f"{CK_DOCS}, for gfx942; not measured on gfx950"
    else:
        assumed = "" if arch == "gfx942" else "; assumed to hold on gfx90a as on gfx942"
        wide_reads = (
            SharedPhases("ds_read_b64", "load", 64, quarters, 32, True, ROCM_DOCS + assumed),
            SharedPhases("ds_read_b128", "load", 128, _B96_GROUPS, 32, True, CK_DOCS + assumed),
        )
        wide_store = CK_DOCS + assumed
    return (
        SharedPhases("ds_read_u8", "load", 8, halves, 32, False, _SUB_DWORD),
        SharedPhases("ds_read_u16", "load", 16, halves, 32, False, _SUB_DWORD),
        SharedPhases("ds_read_b32", "load", 32, halves, 32, True, ROCM_DOCS),
        *wide_reads,
        SharedPhases("ds_read_b96", "load", 96, _B96_GROUPS, 32, True, HIPKITTENS),
        SharedPhases("ds_write_b8", "store", 8, halves, 32, False, _SUB_DWORD),
        SharedPhases("ds_write_b16", "store", 16, halves, 32, False, _SUB_DWORD),
        SharedPhases("ds_write_b32", "store", 32, halves, 32, True, ROCM_DOCS),
        SharedPhases("ds_write_b64", "store", 64, quarters, 32, True, HIPKITTENS),
        SharedPhases("ds_write_b128", "store", 128, eighths, 32, True, wide_store),
    )
