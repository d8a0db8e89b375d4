"""How lane maps are written, and the maps of ldmatrix.

The matrix instructions themselves stand in ``mma_sync.py`` (NVIDIA) and ``mfma.py`` (AMD).  One table for lowering and
simulator; the tests check it against tables written out by hand.
"""

from __future__ import annotations

from tilelang_min.targets.records import LaneMap, Term


def lane(divisor: int, modulus: int, stride: int = 1) -> Term:
    """A term in the lane's number."""
    return Term("lane", divisor, modulus, stride)


def item(divisor: int, modulus: int, stride: int = 1) -> Term:
    """A term in the item's number."""
    return Term("item", divisor, modulus, stride)


LDMATRIX = LaneMap(row=(lane(4, 8),), column=(lane(1, 4, 2), item(1, 2)), lanes=32, items=2)
"""ldmatrix.m8n8.b16: the element (row address, column) of one 8x8 matrix of 16-bit values that each lane receives.

The instruction's destination register j holds matrix j; its low half is item 0, its high half item 1.  Of 8-bit values
the matrix is 8x16: item i of 16 bits holds columns 2i and 2i + 1.
"""

LDMATRIX_TRANS = LaneMap(row=(lane(1, 4, 2), item(1, 2)), column=(lane(4, 8),), lanes=32, items=2)
"""ldmatrix.trans: as :data:`LDMATRIX` with the matrix transposed; (row, column) still count as stored in shared
memory.  It transposes pairs of 8-bit values, not the values."""
