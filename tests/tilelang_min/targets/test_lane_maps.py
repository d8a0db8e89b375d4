"""Lane maps against tables written out by hand from the PTX ISA and the AMD ISA documents, not from our formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tilelang_min.targets import LDMATRIX, LDMATRIX_TRANS, LaneMap, MatrixInstruction, resolve

Table = dict[int, list[tuple[int, int]]]

# PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": elements of lanes 0, 1, 6, 17 and 31.
MMA_A: Table = {
    0: [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)],
    1: [(0, 2), (0, 3), (8, 2), (8, 3), (0, 10), (0, 11), (8, 10), (8, 11)],
    6: [(1, 4), (1, 5), (9, 4), (9, 5), (1, 12), (1, 13), (9, 12), (9, 13)],
    17: [(4, 2), (4, 3), (12, 2), (12, 3), (4, 10), (4, 11), (12, 10), (12, 11)],
    31: [(7, 6), (7, 7), (15, 6), (15, 7), (7, 14), (7, 15), (15, 14), (15, 15)],
}
MMA_B: Table = {
    0: [(0, 0), (1, 0), (8, 0), (9, 0)],
    1: [(2, 0), (3, 0), (10, 0), (11, 0)],
    6: [(4, 1), (5, 1), (12, 1), (13, 1)],
    17: [(2, 4), (3, 4), (10, 4), (11, 4)],
    31: [(6, 7), (7, 7), (14, 7), (15, 7)],
}
MMA_C: Table = {
    0: [(0, 0), (0, 1), (8, 0), (8, 1)],
    1: [(0, 2), (0, 3), (8, 2), (8, 3)],
    6: [(1, 4), (1, 5), (9, 4), (9, 5)],
    17: [(4, 2), (4, 3), (12, 2), (12, 3)],
    31: [(7, 6), (7, 7), (15, 6), (15, 7)],
}

# AMD CDNA3 ISA, matrix arithmetic instructions: 32x32 accumulators, sixteen rows of one column a lane.
ROWS_LOW = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]
ROWS_HIGH = [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31]
C_32X32: Table = {
    0: [(row, 0) for row in ROWS_LOW],
    5: [(row, 5) for row in ROWS_LOW],
    31: [(row, 31) for row in ROWS_LOW],
    33: [(row, 1) for row in ROWS_HIGH],
    63: [(row, 31) for row in ROWS_HIGH],
}
C_16X16: Table = {
    0: [(0, 0), (1, 0), (2, 0), (3, 0)],
    15: [(0, 15), (1, 15), (2, 15), (3, 15)],
    16: [(4, 0), (5, 0), (6, 0), (7, 0)],
    37: [(8, 5), (9, 5), (10, 5), (11, 5)],
    63: [(12, 15), (13, 15), (14, 15), (15, 15)],
}
A_32X32X8: Table = {
    0: [(0, 0), (0, 1), (0, 2), (0, 3)],
    31: [(31, 0), (31, 1), (31, 2), (31, 3)],
    32: [(0, 4), (0, 5), (0, 6), (0, 7)],
    45: [(13, 4), (13, 5), (13, 6), (13, 7)],
    63: [(31, 4), (31, 5), (31, 6), (31, 7)],
}
B_32X32X8: Table = {
    0: [(0, 0), (1, 0), (2, 0), (3, 0)],
    31: [(0, 31), (1, 31), (2, 31), (3, 31)],
    32: [(4, 0), (5, 0), (6, 0), (7, 0)],
    45: [(4, 13), (5, 13), (6, 13), (7, 13)],
    63: [(4, 31), (5, 31), (6, 31), (7, 31)],
}
A_16X16X16: Table = {
    0: [(0, 0), (0, 1), (0, 2), (0, 3)],
    15: [(15, 0), (15, 1), (15, 2), (15, 3)],
    16: [(0, 4), (0, 5), (0, 6), (0, 7)],
    37: [(5, 8), (5, 9), (5, 10), (5, 11)],
    63: [(15, 12), (15, 13), (15, 14), (15, 15)],
}
B_16X16X16: Table = {
    0: [(0, 0), (1, 0), (2, 0), (3, 0)],
    15: [(0, 15), (1, 15), (2, 15), (3, 15)],
    16: [(4, 0), (5, 0), (6, 0), (7, 0)],
    37: [(8, 5), (9, 5), (10, 5), (11, 5)],
    63: [(12, 15), (13, 15), (14, 15), (15, 15)],
}
A_32X32X2: Table = {0: [(0, 0)], 31: [(31, 0)], 32: [(0, 1)], 45: [(13, 1)], 63: [(31, 1)]}
B_32X32X2: Table = {0: [(0, 0)], 31: [(0, 31)], 32: [(1, 0)], 45: [(1, 13)], 63: [(1, 31)]}
A_16X16X4: Table = {0: [(0, 0)], 15: [(15, 0)], 16: [(0, 1)], 37: [(5, 2)], 63: [(15, 3)]}
B_16X16X4: Table = {0: [(0, 0)], 15: [(0, 15)], 16: [(1, 0)], 37: [(2, 5)], 63: [(3, 15)]}

# PTX ISA, ldmatrix: a lane receives two neighbours of a row; with .trans two neighbours of a column.
LDMATRIX_TABLE: Table = {
    0: [(0, 0), (0, 1)],
    3: [(0, 6), (0, 7)],
    4: [(1, 0), (1, 1)],
    17: [(4, 2), (4, 3)],
    31: [(7, 6), (7, 7)],
}
LDMATRIX_TRANS_TABLE: Table = {
    0: [(0, 0), (1, 0)],
    3: [(6, 0), (7, 0)],
    4: [(0, 1), (1, 1)],
    17: [(2, 4), (3, 4)],
    31: [(6, 7), (7, 7)],
}

TABLES: dict[str, tuple[Table, Table, Table]] = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": (MMA_A, MMA_B, MMA_C),
    "llvm.amdgcn.mfma.f32.32x32x8f16": (A_32X32X8, B_32X32X8, C_32X32),
    "llvm.amdgcn.mfma.f32.16x16x16f16": (A_16X16X16, B_16X16X16, C_16X16),
    "llvm.amdgcn.mfma.f32.32x32x2f32": (A_32X32X2, B_32X32X2, C_32X32),
    "llvm.amdgcn.mfma.f32.16x16x4f32": (A_16X16X4, B_16X16X4, C_16X16),
}


def instructions() -> dict[str, MatrixInstruction]:
    """Every matrix instruction of every target, by name."""
    targets = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942", "hip:gfx950")
    return {each.name: each for target in targets for each in resolve(target).matrix_instructions}


def maps() -> Iterator[tuple[str, LaneMap, Table, tuple[int, int]]]:
    """(label, map, table, extent of the matrix) of every map there is."""
    for name, each in instructions().items():
        a, b, c = TABLES[name]
        yield f"{name} a", each.a_map, a, (each.m, each.k)
        yield f"{name} b", each.b_map, b, (each.k, each.n)
        yield f"{name} c", each.c_map, c, (each.m, each.n)
    yield "ldmatrix", LDMATRIX, LDMATRIX_TABLE, (8, 8)
    yield "ldmatrix.trans", LDMATRIX_TRANS, LDMATRIX_TRANS_TABLE, (8, 8)


MAPS = list(maps())


def agrees(lane_map: LaneMap, table: Table) -> bool:
    return all(
        len(elements) == lane_map.items
        and all(lane_map(lane, item) == element for item, element in enumerate(elements))
        for lane, elements in table.items()
    )


def test_every_instruction_has_a_table() -> None:
    assert set(instructions()) == set(TABLES)


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_agrees_with_the_table(label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]) -> None:
    assert agrees(lane_map, table), label


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_covers_the_matrix_once(label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]) -> None:
    lane, item = np.meshgrid(np.arange(lane_map.lanes), np.arange(lane_map.items), indexing="ij")
    row, column = lane_map(lane, item)
    assert sorted(zip(row.ravel().tolist(), column.ravel().tolist(), strict=True)) == [
        (r, c) for r in range(extent[0]) for c in range(extent[1])
    ]


@pytest.mark.parametrize(("label", "lane_map", "table", "extent"), MAPS, ids=[entry[0] for entry in MAPS])
def test_changing_any_term_disagrees_with_the_table(
    label: str, lane_map: LaneMap, table: Table, extent: tuple[int, int]
) -> None:
    """The tables are strong enough: every single change of a map is noticed."""
    for side in ("row", "column"):
        terms = getattr(lane_map, side)
        for index, term in enumerate(terms):
            wrong_terms = [
                replace(term, divisor=term.divisor * 2),
                replace(term, modulus=term.modulus // 2),
                replace(term, stride=term.stride * 2),
                replace(term, stride=term.stride + 1),
                replace(term, stride=0),
                replace(term, source="item" if term.source == "lane" else "lane"),
            ]
            for wrong in wrong_terms:
                changed = (*terms[:index], wrong, *terms[index + 1 :])
                assert not agrees(replace(lane_map, **{side: changed}), table), (label, side, index, wrong)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_fragments_multiply_to_the_product(name: str) -> None:
    """a, b and c maps belong together: the dimensions the instruction states are those of its maps."""
    each = instructions()[name]
    assert each.a_map.lanes * each.a_map.items == each.m * each.k
    assert each.b_map.lanes * each.b_map.items == each.k * each.n
    assert each.c_map.lanes * each.c_map.items == each.m * each.n
    shape = name.rsplit(".", 1)[-1] if "mfma" in name else name.split(".")[3]
    digits = shape.replace("m", "").replace("n", "x").replace("k", "x").removesuffix("f16").removesuffix("f32")
    assert digits == f"{each.m}x{each.n}x{each.k}"


def test_which_targets_have_which() -> None:
    assert [each.name for each in resolve("cuda:sm_80").matrix_instructions] == [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    ]
    assert resolve("cuda:sm_75").matrix_instructions == ()  # m16n8k16 needs sm_80
    for arch in ("gfx90a", "gfx942", "gfx950"):
        assert {each.name for each in resolve(f"hip:{arch}").matrix_instructions} == {
            name for name in TABLES if "amdgcn" in name
        }
    assert resolve("cpu:x86-64-v3").matrix_instructions == ()
