"""NVIDIA's warp-wide matrix instructions (``mma.sync``): which lane holds which element, and which architecture has which.

Formulas: PTX ISA, "Matrix Fragments for mma.*".  In all of them a lane's rows of a and c, and its columns of b, are
``lane // 4`` and 8 more; its place in the other direction is ``lane % 4``.  Not here: wgmma and tcgen05.
"""

from __future__ import annotations

from tilelang_min.targets.lane_maps import item, lane
from tilelang_min.targets.records import LaneMap, MatrixInstruction, Term

PTX_ISA = "PTX ISA 8.5, 9.7.14.5, matrix fragments for mma"

# PTX's word: type of the language
_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "e4m3": "float8_e4m3",
    "e5m2": "float8_e5m2",
    "s8": "int8",
    "u8": "uint8",
    "s32": "int32",
}
_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s32": 32}


def _along(count: int, run: int, first: int) -> tuple[Term, ...]:
    """Terms of the place along k: each of 4 lanes holds ``run`` neighbours, then those 4 * run further on, ...

    ``count`` elements of k in all; ``first`` items pass before the next run begins (those of the rows between).
    """
    terms: tuple[Term, ...] = (lane(1, 4, run),)
    if run > 1:
        terms += (item(1, run),)
    if count > 4 * run:
        terms += (item(first, count // (4 * run), 4 * run),)
    return terms


def _rows(count: int, items: int) -> tuple[Term, ...]:
    """Terms of the row: ``lane // 4``, and 8 more after ``items`` items where there are 16 rows."""
    return (lane(4, 8), item(items, 2, 8)) if count == 16 else (lane(4, 8),)


def _mma(m: int, k: int, d: str, a: str, b: str, c: str) -> MatrixInstruction:
    """``mma.sync.aligned.m{m}n8k{k}.row.col.d.a.b.c``."""
    run = max(1, 32 // _BITS[a])  # neighbours along k in one register
    halves = m // 8
    return MatrixInstruction(
        name=f"mma.sync.aligned.m{m}n8k{k}.row.col.{d}.{a}.{b}.{c}",
        m=m,
        n=8,
        k=k,
        a_dtype=_TYPES[a],
        b_dtype=_TYPES[b],
        c_dtype=_TYPES[c],
        a_map=LaneMap(_rows(m, run), _along(k, run, run * halves), lanes=32, items=m * k // 32),
        b_map=LaneMap(_along(k, run, run), (lane(4, 8),), lanes=32, items=k * 8 // 32),
        c_map=LaneMap(_rows(m, 2), (lane(1, 4, 2), item(1, 2)), lanes=32, items=m * 8 // 32),
        source=f"{PTX_ISA}.m{m}n8k{k}",
        a_operand="float64" if a == "f64" else "uint32",
        b_operand="float64" if b == "f64" else "uint32",
        # PTX's s32 accumulators are .b32 registers, which TVM's table takes as uint32; two f16 share one.
        c_operand=_TYPES[c] if c in ("f32", "f64") else "uint32",
        input_format="tf32" if a == "tf32" else None,
    )


M16N8K16_F16 = _mma(16, 16, "f32", "f16", "f16", "f32")
M16N8K16_F16_F16 = _mma(16, 16, "f16", "f16", "f16", "f16")
M16N8K16_BF16 = _mma(16, 16, "f32", "bf16", "bf16", "f32")
M16N8K8_F16 = _mma(16, 8, "f32", "f16", "f16", "f32")
M16N8K8_F16_F16 = _mma(16, 8, "f16", "f16", "f16", "f16")
M16N8K8_TF32 = _mma(16, 8, "f32", "tf32", "tf32", "f32")
M8N8K4_F64 = _mma(8, 4, "f64", "f64", "f64", "f64")
M16N8K16_F64 = _mma(16, 16, "f64", "f64", "f64", "f64")


def _integers(m: int, k: int) -> tuple[MatrixInstruction, ...]:
    """Products of 8-bit integers, signed, unsigned and mixed."""
    return tuple(_mma(m, k, "s32", a, b, "s32") for a, b in (("s8", "s8"), ("u8", "u8"), ("u8", "s8"), ("s8", "u8")))


_FLOAT8 = tuple(_mma(16, 32, "f32", a, b, "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))

_TURING = (M16N8K8_F16, M16N8K8_F16_F16, *_integers(8, 16))
_AMPERE = (
    *(M16N8K16_F16, M16N8K16_F16_F16, M16N8K16_BF16),
    *(M16N8K8_F16, M16N8K8_F16_F16, M16N8K8_TF32),
    M8N8K4_F64,
    *_integers(16, 32),
    *_integers(8, 16),
)
_ADA = (*_AMPERE, *_FLOAT8)
_HOPPER = (M16N8K16_F64, *_ADA)


def instruction_set(arch: str) -> tuple[MatrixInstruction, ...]:
    """All of an architecture, of each type the best first: f16 and 8-bit integers from sm_75, bf16, tf32 and f64 from sm_80,
    8-bit floats from sm_89, wide f64 on sm_90a.

    What ptxas 13.5 makes of them, read from SASS: 8-bit floats are one QMMA on sm_89 and sm_120a, but two HMMA with unpacking
    before on sm_90a and sm_100a, where wgmma and tcgen05 have that rate alone.  Wide f64 would be eight narrow ones on
    sm_100a and sm_120a.
    """
    if arch == "sm_90a":
        return _HOPPER
    number = int(arch.removeprefix("sm_").rstrip("a"))
    if number < 75:
        return ()  # Volta's m8n8k4 deals a matrix to groups of eight threads, like no later instruction: FMA instead
    if number >= 89:
        return _ADA
    return _AMPERE if number >= 80 else _TURING
