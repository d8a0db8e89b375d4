"""AMD's wavefront-wide matrix instructions (MFMA): which lane holds which element, and which architecture has which.

Formulas: AMD CDNA2, CDNA3 and CDNA4 ISA documents, "Matrix Arithmetic Instructions".  ``lane % tile`` is the row of a, the
column of b and the column of c; each group of ``tile`` lanes holds a run of neighbours along k.  Accumulators come four
rows at a time; those of float64 one at a time.

The 8-bit floats of gfx942 are not the language's: :data:`tilelang_min.program.dtypes.OPERAND_TYPES`.
"""

from __future__ import annotations

from tilelang_min.targets.lane_maps import item, lane
from tilelang_min.targets.records import LaneMap, MatrixInstruction, Term

CDNA_ISA = "AMD CDNA2, CDNA3 and CDNA4 ISA, matrix arithmetic instructions"
_F8F6F4 = f"{CDNA_ISA}; the order along k within 128 (64) is ours, a product does not depend on it"

_C_32X32 = LaneMap((item(4, 4, 8), lane(32, 2, 4), item(1, 4)), (lane(1, 32),), lanes=64, items=16)
_C_16X16 = LaneMap((lane(16, 4, 4), item(1, 4)), (lane(1, 16),), lanes=64, items=4)
_C_16X16_F64 = LaneMap((lane(16, 4), item(1, 4, 4)), (lane(1, 16),), lanes=64, items=4)


def _mfma(
    name: str,
    tile: int,
    k: int,
    a: str,
    operand: str,
    c: str = "float32",
    *,
    b: str | None = None,
    modifiers: tuple[int, ...] = (0, 0, 0),
    input_format: str | None = None,
    source: str = CDNA_ISA,
) -> MatrixInstruction:
    """An MFMA of one block with tiles of ``tile`` x ``tile``; ``operand`` is the type of a and b in the call."""
    groups = 64 // tile
    items = k // groups
    along: tuple[Term, ...] = (lane(tile, groups, items), item(1, items)) if items > 1 else (lane(tile, groups),)
    across = (lane(1, tile),)
    c_map = _C_32X32 if tile == 32 else _C_16X16_F64 if c == "float64" else _C_16X16
    return MatrixInstruction(
        name=f"llvm.amdgcn.mfma.{name}",
        m=tile,
        n=tile,
        k=k,
        a_dtype=a,
        b_dtype=b or a,
        c_dtype=c,
        a_map=LaneMap(across, along, lanes=64, items=items),
        b_map=LaneMap(along, across, lanes=64, items=items),
        c_map=c_map,
        source=source,
        a_operand=operand,
        b_operand=operand,
        c_operand=f"{c}x{c_map.items}",
        modifiers=modifiers,
        input_format=input_format,
    )


MFMA_32X32X8_F16 = _mfma("f32.32x32x8f16", 32, 8, "float16", "float16x4")
MFMA_16X16X16_F16 = _mfma("f32.16x16x16f16", 16, 16, "float16", "float16x4")
MFMA_32X32X2_F32 = _mfma("f32.32x32x2f32", 32, 2, "float32", "float32")
MFMA_16X16X4_F32 = _mfma("f32.16x16x4f32", 16, 4, "float32", "float32")

_COMMON = (
    *(MFMA_32X32X8_F16, MFMA_16X16X16_F16, MFMA_32X32X2_F32, MFMA_16X16X4_F32),
    _mfma("f32.32x32x8bf16.1k", 32, 8, "bfloat16", "int16x4"),
    _mfma("f32.16x16x16bf16.1k", 16, 16, "bfloat16", "int16x4"),
    _mfma("f64.16x16x4f64", 16, 4, "float64", "float64", "float64"),
)
_INT8_4 = (
    _mfma("i32.32x32x8i8", 32, 8, "int8", "int32", "int32"),
    _mfma("i32.16x16x16i8", 16, 16, "int8", "int32", "int32"),
)
_INT8_8 = (
    _mfma("i32.32x32x16.i8", 32, 16, "int8", "int64", "int32"),
    _mfma("i32.16x16x32.i8", 16, 32, "int8", "int64", "int32"),
)
_XF32 = (
    _mfma("f32.32x32x4.xf32", 32, 4, "float32", "float32x2", input_format="xf32"),
    _mfma("f32.16x16x8.xf32", 16, 8, "float32", "float32x2", input_format="xf32"),
)


def _float8(kinds: dict[str, str]) -> tuple[MatrixInstruction, ...]:
    """All pairs of AMD's two words for 8-bit floats, and the types behind them."""
    return tuple(
        _mfma(f"f32.{shape}.{a}.{b}", tile, k, kinds[a], "int64", b=kinds[b])
        for a in kinds
        for b in kinds
        for shape, tile, k in (("32x32x16", 32, 16), ("16x16x32", 16, 32))
    )


def _scaled_float8() -> tuple[MatrixInstruction, ...]:
    """The instructions of twice the rate that take any narrow float; the modifiers name the formats of a and b, scales
    are none."""
    kinds = {"float8_e4m3": 0, "float8_e5m2": 1}
    return tuple(
        _mfma(f"scale.f32.{shape}.f8f6f4", tile, k, a, "int32x8", b=b, modifiers=(ca, cb, 0, 0, 0, 0), source=_F8F6F4)
        for a, ca in kinds.items()
        for b, cb in kinds.items()
        for shape, tile, k in (("32x32x64", 32, 64), ("16x16x128", 16, 128))
    )


_INSTRUCTIONS: dict[str, tuple[MatrixInstruction, ...]] = {
    "gfx90a": (*_COMMON, *_INT8_4),
    "gfx942": (*_COMMON, *_INT8_8, *_XF32, *_float8({"fp8": "float8_e4m3fnuz", "bf8": "float8_e5m2fnuz"})),
    "gfx950": (
        _mfma("f32.32x32x16.f16", 32, 16, "float16", "float16x8"),
        _mfma("f32.16x16x32.f16", 16, 32, "float16", "float16x8"),
        _mfma("f32.32x32x16.bf16", 32, 16, "bfloat16", "int16x8"),
        _mfma("f32.16x16x32.bf16", 16, 32, "bfloat16", "int16x8"),
        _mfma("i32.32x32x32.i8", 32, 32, "int8", "int32x4", "int32"),
        _mfma("i32.16x16x64.i8", 16, 64, "int8", "int32x4", "int32"),
        *_scaled_float8(),
        *_COMMON,
        *_INT8_8,
        *_float8({"fp8": "float8_e4m3", "bf8": "float8_e5m2"}),
    ),
}


def instruction_set(arch: str) -> tuple[MatrixInstruction, ...]:
    """All of an architecture, of each type the fastest first."""
    return _INSTRUCTIONS[arch]
