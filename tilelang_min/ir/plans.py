"""How one matrix product is carried out on a GPU: instruction, warps and layout.  Made by ``transform/``, read by ``lower/``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang_min.ir.layout import BlockedLayout, MatrixLayout, OuterProductLayout


@dataclass(frozen=True)
class GemmPlan:
    """``kind``: ``mma`` (mma.sync with ldmatrix), ``mfma``, ``outer`` (FMA, register blocks) or ``plain`` (FMA, one element at a time).

    ``instruction`` is the target's MatrixInstruction for the first two.  ``k_pack`` is how many MFMAs share one wide read of A.
    ``note`` says why a slower kind was taken, for people.
    """

    kind: str
    layout: MatrixLayout | OuterProductLayout | BlockedLayout
    instruction: Any = None
    k_pack: int = 1
    note: str = ""
