"""Which lane holds which matrix element, for every matrix instruction the compiler uses.

One table for lowering and simulator.  It is checked against tables written out by hand in the tests.  Formulas: PTX ISA
"Matrix Fragments for mma.m16n8k16" and "ldmatrix"; AMD CDNA2/CDNA3 ISA documents, "Matrix Arithmetic Instructions".
"""

from __future__ import annotations

from tilelang_min.targets.records import LaneMap, MatrixInstruction, Term

PTX_ISA = "PTX ISA 8.5, 9.7.14.5"
CDNA_ISA = "AMD CDNA3 ISA, chapter 7; identical in CDNA2 and CDNA4 for these instructions"


def _lane(divisor: int, modulus: int, stride: int = 1) -> Term:
    return Term("lane", divisor, modulus, stride)


def _item(divisor: int, modulus: int, stride: int = 1) -> Term:
    return Term("item", divisor, modulus, stride)


LDMATRIX = LaneMap(row=(_lane(4, 8),), column=(_lane(1, 4, 2), _item(1, 2)), lanes=32, items=2)
"""ldmatrix.m8n8.b16: the element (row address, column) of one 8x8 matrix of 16-bit values that each lane receives.

The instruction's destination register j holds matrix j; its low half is item 0, its high half item 1.
"""

LDMATRIX_TRANS = LaneMap(row=(_lane(1, 4, 2), _item(1, 2)), column=(_lane(4, 8),), lanes=32, items=2)
"""ldmatrix.trans: as :data:`LDMATRIX` with the matrix transposed; (row, column) still count as stored in shared
memory."""

MMA_M16N8K16_F16 = MatrixInstruction(
    name="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    m=16,
    n=8,
    k=16,
    a_dtype="float16",
    b_dtype="float16",
    c_dtype="float32",
    # a0 a1 | a2 a3 eight rows below | a4 a5 eight columns right | a6 a7 both
    a_map=LaneMap((_lane(4, 8), _item(2, 2, 8)), (_lane(1, 4, 2), _item(1, 2), _item(4, 2, 8)), lanes=32, items=8),
    b_map=LaneMap((_lane(1, 4, 2), _item(1, 2), _item(2, 2, 8)), (_lane(4, 8),), lanes=32, items=4),
    c_map=LaneMap((_lane(4, 8), _item(2, 2, 8)), (_lane(1, 4, 2), _item(1, 2)), lanes=32, items=4),
    source=f"{PTX_ISA}, matrix fragments for mma.m16n8k16 with floating point type",
)

# The accumulator of a 32x32 MFMA: lane % 32 is the column; items come in groups of 4 rows, and the groups of the two
# halves of the wave alternate.
_C_32X32 = LaneMap((_item(4, 4, 8), _lane(32, 2, 4), _item(1, 4)), (_lane(1, 32),), lanes=64, items=16)
_C_16X16 = LaneMap((_lane(16, 4, 4), _item(1, 4)), (_lane(1, 16),), lanes=64, items=4)


def _mfma(name: str, tile: int, dtype: str, items: int, c_map: LaneMap) -> MatrixInstruction:
    """An MFMA of one block: lane % tile is the row of a (column of b), each group of lanes holds ``items`` successive
    k."""
    groups = 64 // tile
    k: tuple[Term, ...] = (_lane(tile, groups, items), _item(1, items)) if items > 1 else (_lane(tile, groups),)
    across = (_lane(1, tile),)
    return MatrixInstruction(
        name=f"llvm.amdgcn.mfma.{name}",
        m=tile,
        n=tile,
        k=groups * items,
        a_dtype=dtype,
        b_dtype=dtype,
        c_dtype="float32",
        a_map=LaneMap(across, k, lanes=64, items=items),
        b_map=LaneMap(k, across, lanes=64, items=items),
        c_map=c_map,
        source=CDNA_ISA,
    )


MFMA_32X32X8_F16 = _mfma("f32.32x32x8f16", 32, "float16", 4, _C_32X32)
MFMA_16X16X16_F16 = _mfma("f32.16x16x16f16", 16, "float16", 4, _C_16X16)
MFMA_32X32X2_F32 = _mfma("f32.32x32x2f32", 32, "float32", 1, _C_32X32)
MFMA_16X16X4_F32 = _mfma("f32.16x16x4f32", 16, "float32", 1, _C_16X16)
