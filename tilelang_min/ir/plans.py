"""Decisions that ``transform/`` takes and ``lower/`` follows: layouts, and how each matrix product is carried out on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilelang_min.ir.layout import BlockedLayout, FragmentLayout, GridLayout, MatrixLayout, OuterProductLayout
from tilelang_min.ir.shared_layout import SharedLayout
from tilelang_min.program.dtypes import dtype_bytes


@dataclass(frozen=True)
class GemmPlan:
    """How one matrix product is carried out.

    ``kind``: ``mma`` (mma.sync with ldmatrix), ``mfma``, ``outer`` (FMA, register blocks) or ``plain`` (FMA, element by element).
    ``instruction`` is the target's MatrixInstruction for the first two.  ``k_pack`` is how many MFMAs share one wide read of A.
    ``note`` says why a slower kind was taken, for people.
    """

    kind: str
    layout: MatrixLayout | OuterProductLayout | BlockedLayout | GridLayout
    instruction: Any = None
    k_pack: int = 1
    note: str = ""


def ldmatrix_brings(dtype: str, along_k: bool) -> bool:
    """Whether ldmatrix can bring an operand of mma.sync, whose rows in shared memory run along K or across.

    It moves 16 bytes at a time, whatever they hold; its transposing form exchanges elements of 16 bits.
    """
    size = dtype_bytes(dtype)
    return size == 2 or (size < 8 and along_k)


@dataclass
class Layouts:
    """All decisions of a program.

    ``fragments`` by buffer name, ``nests`` by ``id()`` of the statement, ``gemms`` by operation id.
    ``registers`` says, by statement and fragment, which register of the fragment goes with each register of the nest; absent: the
    one of that number.  ``origins``: the operation that decided the layout of a fragment that is reduced or meets others of lower
    rank.  ``shared``: where the elements of shared tiles lie, by name; absent: row after row.
    """

    fragments: dict[str, FragmentLayout] = field(default_factory=dict)
    nests: dict[int, FragmentLayout] = field(default_factory=dict)
    gemms: dict[int, GemmPlan] = field(default_factory=dict)
    registers: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    origins: dict[str, int] = field(default_factory=dict)
    shared: dict[str, SharedLayout] = field(default_factory=dict)
