"""Quantities as people write them: ``120s``, ``1.5min``, ``5%``.  Numbers out, never strings."""

from __future__ import annotations

import re

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)\s*(ms|s|min|m|h)\s*")
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}

DURATION_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?(e[0-9]+)?\s*(ms|s|min|m|h)\s*$"
"""The written form of a duration, for JSON Schema."""
PERCENT_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"
"""The written form of a percentage, for JSON Schema."""


def parse_duration(value: object) -> float:
    """Seconds from ``120s``, ``500ms``, ``2min``, ``1h`` or a bare number of seconds; more than zero.

    Raises ValueError whose text says what was expected.
    """
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match:
            seconds = float(match.group(1)) * _SECONDS[match.group(2)]
    if seconds is None:
        raise ValueError(f"expected a duration such as 120s, 500ms or 2min, found {describe(value)}")
    if not 0 < seconds < 1e9:
        raise ValueError(f"a duration must be more than zero and less than thirty years, found {describe(value)}")
    return seconds


def parse_fraction(value: object) -> float:
    """A fraction from ``5%`` (0.05) or a bare number such as 0.05; zero or more.  Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6:
        return float(value)
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        if match:
            return float(match.group(1)) / 100.0
    raise ValueError(f"expected a percentage such as 5%, found {describe(value)}")


def describe(value: object) -> str:
    """A value as it is named in a message: ``'abc'``, ``a list``, ``nothing``."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
