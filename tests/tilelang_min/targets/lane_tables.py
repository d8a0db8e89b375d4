"""Which lane holds which element, typed from the PTX ISA and the AMD ISA documents lane by lane, not from our formulas.

A table maps a lane to the (row, column) of its items in order.  ``across`` and ``down`` write out neighbours of one row or
column.
"""

from __future__ import annotations

Table = dict[int, list[tuple[int, int]]]


def across(row: int, first: int, last: int) -> list[tuple[int, int]]:
    """Columns ``first`` to ``last`` of a row."""
    return [(row, column) for column in range(first, last + 1)]


def down(column: int, first: int, last: int) -> list[tuple[int, int]]:
    """Rows ``first`` to ``last`` of a column."""
    return [(row, column) for row in range(first, last + 1)]


# PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": elements of lanes 0, 1, 6, 17 and 31.
A_16X16_B16: Table = {
    0: [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)],
    1: [(0, 2), (0, 3), (8, 2), (8, 3), (0, 10), (0, 11), (8, 10), (8, 11)],
    6: [(1, 4), (1, 5), (9, 4), (9, 5), (1, 12), (1, 13), (9, 12), (9, 13)],
    17: [(4, 2), (4, 3), (12, 2), (12, 3), (4, 10), (4, 11), (12, 10), (12, 11)],
    31: [(7, 6), (7, 7), (15, 6), (15, 7), (7, 14), (7, 15), (15, 14), (15, 15)],
}
B_16X8_B16: Table = {
    0: [(0, 0), (1, 0), (8, 0), (9, 0)],
    1: [(2, 0), (3, 0), (10, 0), (11, 0)],
    6: [(4, 1), (5, 1), (12, 1), (13, 1)],
    17: [(2, 4), (3, 4), (10, 4), (11, 4)],
    31: [(6, 7), (7, 7), (14, 7), (15, 7)],
}
C_16X8: Table = {
    0: [(0, 0), (0, 1), (8, 0), (8, 1)],
    1: [(0, 2), (0, 3), (8, 2), (8, 3)],
    6: [(1, 4), (1, 5), (9, 4), (9, 5)],
    17: [(4, 2), (4, 3), (12, 2), (12, 3)],
    31: [(7, 6), (7, 7), (15, 6), (15, 7)],
}
# "... for mma.m16n8k8", .f16: two registers of a, one of b.
A_16X8_B16: Table = {
    0: [(0, 0), (0, 1), (8, 0), (8, 1)],
    1: [(0, 2), (0, 3), (8, 2), (8, 3)],
    6: [(1, 4), (1, 5), (9, 4), (9, 5)],
    17: [(4, 2), (4, 3), (12, 2), (12, 3)],
    31: [(7, 6), (7, 7), (15, 6), (15, 7)],
}
B_8X8_B16: Table = {
    0: [(0, 0), (1, 0)],
    1: [(2, 0), (3, 0)],
    6: [(4, 1), (5, 1)],
    17: [(2, 4), (3, 4)],
    31: [(6, 7), (7, 7)],
}
# "... for mma.m16n8k8", .tf32: one element a register.
A_16X8_B32: Table = {
    0: [(0, 0), (8, 0), (0, 4), (8, 4)],
    1: [(0, 1), (8, 1), (0, 5), (8, 5)],
    6: [(1, 2), (9, 2), (1, 6), (9, 6)],
    17: [(4, 1), (12, 1), (4, 5), (12, 5)],
    31: [(7, 3), (15, 3), (7, 7), (15, 7)],
}
B_8X8_B32: Table = {
    0: [(0, 0), (4, 0)],
    1: [(1, 0), (5, 0)],
    6: [(2, 1), (6, 1)],
    17: [(1, 4), (5, 4)],
    31: [(3, 7), (7, 7)],
}
# "... for mma.m16n8k32", .s8 .u8 .e4m3 .e5m2: four elements a register.
A_16X32_B8: Table = {
    0: [*across(0, 0, 3), *across(8, 0, 3), *across(0, 16, 19), *across(8, 16, 19)],
    1: [*across(0, 4, 7), *across(8, 4, 7), *across(0, 20, 23), *across(8, 20, 23)],
    6: [*across(1, 8, 11), *across(9, 8, 11), *across(1, 24, 27), *across(9, 24, 27)],
    17: [*across(4, 4, 7), *across(12, 4, 7), *across(4, 20, 23), *across(12, 20, 23)],
    31: [*across(7, 12, 15), *across(15, 12, 15), *across(7, 28, 31), *across(15, 28, 31)],
}
B_32X8_B8: Table = {
    0: [*down(0, 0, 3), *down(0, 16, 19)],
    1: [*down(0, 4, 7), *down(0, 20, 23)],
    6: [*down(1, 8, 11), *down(1, 24, 27)],
    17: [*down(4, 4, 7), *down(4, 20, 23)],
    31: [*down(7, 12, 15), *down(7, 28, 31)],
}
# "... for mma.m8n8k16", .s8 .u8.
A_8X16_B8: Table = {
    0: across(0, 0, 3),
    1: across(0, 4, 7),
    6: across(1, 8, 11),
    17: across(4, 4, 7),
    31: across(7, 12, 15),
}
B_16X8_B8: Table = {0: down(0, 0, 3), 1: down(0, 4, 7), 6: down(1, 8, 11), 17: down(4, 4, 7), 31: down(7, 12, 15)}
C_8X8: Table = {0: across(0, 0, 1), 1: across(0, 2, 3), 6: across(1, 4, 5), 17: across(4, 2, 3), 31: across(7, 6, 7)}
# "... for mma.m8n8k4 with .f64 floating point type".
A_8X4_F64: Table = {0: [(0, 0)], 1: [(0, 1)], 6: [(1, 2)], 17: [(4, 1)], 31: [(7, 3)]}
B_4X8_F64: Table = {0: [(0, 0)], 1: [(1, 0)], 6: [(2, 1)], 17: [(1, 4)], 31: [(3, 7)]}
# "... for mma.m16n8k16 with .f64 floating point type".
A_16X16_F64: Table = {
    0: [(0, 0), (8, 0), (0, 4), (8, 4), (0, 8), (8, 8), (0, 12), (8, 12)],
    1: [(0, 1), (8, 1), (0, 5), (8, 5), (0, 9), (8, 9), (0, 13), (8, 13)],
    6: [(1, 2), (9, 2), (1, 6), (9, 6), (1, 10), (9, 10), (1, 14), (9, 14)],
    17: [(4, 1), (12, 1), (4, 5), (12, 5), (4, 9), (12, 9), (4, 13), (12, 13)],
    31: [(7, 3), (15, 3), (7, 7), (15, 7), (7, 11), (15, 11), (7, 15), (15, 15)],
}
B_16X8_F64: Table = {
    0: [(0, 0), (4, 0), (8, 0), (12, 0)],
    1: [(1, 0), (5, 0), (9, 0), (13, 0)],
    6: [(2, 1), (6, 1), (10, 1), (14, 1)],
    17: [(1, 4), (5, 4), (9, 4), (13, 4)],
    31: [(3, 7), (7, 7), (11, 7), (15, 7)],
}

# PTX ISA, ldmatrix: a lane receives two neighbours of a row; with .trans two neighbours of a column.
LDMATRIX_TABLE: Table = {
    0: across(0, 0, 1),
    3: across(0, 6, 7),
    4: across(1, 0, 1),
    17: across(4, 2, 3),
    31: across(7, 6, 7),
}
LDMATRIX_TRANS_TABLE: Table = {
    0: down(0, 0, 1),
    3: down(0, 6, 7),
    4: down(1, 0, 1),
    17: down(4, 2, 3),
    31: down(7, 6, 7),
}

MMA = {
    "m16n8k16.f16": (A_16X16_B16, B_16X8_B16, C_16X8),
    "m16n8k16.bf16": (A_16X16_B16, B_16X8_B16, C_16X8),
    "m16n8k16.f64": (A_16X16_F64, B_16X8_F64, C_16X8),
    "m16n8k8.f16": (A_16X8_B16, B_8X8_B16, C_16X8),
    "m16n8k8.tf32": (A_16X8_B32, B_8X8_B32, C_16X8),
    "m8n8k4.f64": (A_8X4_F64, B_4X8_F64, C_8X8),
    **{f"m16n8k32.{kind}": (A_16X32_B8, B_32X8_B8, C_16X8) for kind in ("s8", "u8", "e4m3", "e5m2")},
    **{f"m8n8k16.{kind}": (A_8X16_B8, B_16X8_B8, C_8X8) for kind in ("s8", "u8")},
}
"""Tables of a, b and c by shape and type of a."""

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
C_16X16: Table = {0: down(0, 0, 3), 15: down(15, 0, 3), 16: down(0, 4, 7), 37: down(5, 8, 11), 63: down(15, 12, 15)}
# Float64 accumulators: rows lane / 16, and 4, 8 and 12 below.
C_16X16_F64: Table = {
    0: [(0, 0), (4, 0), (8, 0), (12, 0)],
    15: [(0, 15), (4, 15), (8, 15), (12, 15)],
    16: [(1, 0), (5, 0), (9, 0), (13, 0)],
    37: [(2, 5), (6, 5), (10, 5), (14, 5)],
    63: [(3, 15), (7, 15), (11, 15), (15, 15)],
}
# k of a lane by its group, first and last: lanes 0 to 31 are group 0 of a 32-row tile, lanes 0 to 15 of a 16-row tile.
GROUPS_32 = {
    2: [(0, 0), (1, 1)],
    4: [(0, 1), (2, 3)],
    8: [(0, 3), (4, 7)],
    16: [(0, 7), (8, 15)],
    32: [(0, 15), (16, 31)],
    64: [(0, 31), (32, 63)],
}
GROUPS_16 = {
    4: [(0, 0), (1, 1), (2, 2), (3, 3)],
    8: [(0, 1), (2, 3), (4, 5), (6, 7)],
    16: [(0, 3), (4, 7), (8, 11), (12, 15)],
    32: [(0, 7), (8, 15), (16, 23), (24, 31)],
    64: [(0, 15), (16, 31), (32, 47), (48, 63)],
    128: [(0, 31), (32, 63), (64, 95), (96, 127)],
}


def mfma(tile: int, k: int, double: bool) -> tuple[Table, Table, Table]:
    """Tables of a, b and c of an MFMA: lane, its row (or column), its group of k."""
    if tile == 32:
        lanes = [(0, 0, 0), (5, 5, 0), (31, 31, 0), (32, 0, 1), (45, 13, 1), (63, 31, 1)]
        groups, c = GROUPS_32[k], C_32X32
    else:
        lanes = [(0, 0, 0), (15, 15, 0), (16, 0, 1), (26, 10, 1), (37, 5, 2), (63, 15, 3)]
        groups, c = GROUPS_16[k], C_16X16_F64 if double else C_16X16
    a = {lane: across(row, *groups[group]) for lane, row, group in lanes}
    return a, {lane: down(row, *groups[group]) for lane, row, group in lanes}, c
