"""Figures inside sentences: short amounts and shares, for findings and comparisons."""

from __future__ import annotations

import math

_STEPS = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))


def amount(value: float) -> str:
    """``8.39 M``, ``512``: three digits and a prefix; small whole numbers in full."""
    if not math.isfinite(value):
        return "an impossible number of"
    for factor, prefix in _STEPS:
        if abs(value) >= factor * 10 or (factor > 1e3 and abs(value) >= factor):
            return f"{value / factor:.3g}{prefix}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def share(value: float) -> str:
    """``12 %``."""
    return f"{value * 100:.3g} %" if math.isfinite(value) else "an impossible share"


def exact(value: float) -> str:
    """``8,388,608``: whole numbers in full, so that a difference of one shows; others with four digits."""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"
