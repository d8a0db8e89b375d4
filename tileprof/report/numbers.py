"""Numbers as people read them: units, SI prefixes, thousands separators, and a dash for what is not known.

Every function takes None and returns :data:`ABSENT` for it; values that are not finite are shown as such, never as a number.
"""

from __future__ import annotations

import math

ABSENT = "—"
"""What stands where a value is not known."""

MINUS = "−"
NO_BREAK = "\N{NO-BREAK SPACE}"

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def count(value: float | None) -> str:
    """A count in full with thousands separators: ``1,048,576``; a fraction keeps up to three decimals."""
    if value is None or not math.isfinite(value):
        return _special(value)
    if value == int(value):
        return _signed(f"{abs(int(value)):,}", value)
    return _signed(f"{abs(value):,.3f}".rstrip("0").rstrip("."), value)


def difference(value: float | None) -> str:
    """A difference with its sign: ``+229,376``, ``−12`` or ``0``."""
    if value is None or not math.isfinite(value) or value <= 0:
        return count(value)
    return "+" + count(value)


def si(value: float | None, unit: str = "", digits: int = 3) -> str:
    """A value with an SI prefix: ``151 GFLOP/s``, ``33.6 M``; small plain counts stay whole."""
    if value is None or not math.isfinite(value):
        return _special(value)
    rounded = round_to(abs(value), digits)
    factor, prefix = next((f, p) for f, p in _PREFIXES if rounded >= f or f == 1.0)
    tail = prefix + unit
    return _signed(f"{significant(abs(value) / factor, digits)}{NO_BREAK if tail else ''}{tail}", value)


def duration(nanoseconds: float | None, digits: int = 4) -> str:
    """A time in the unit that suits it: ``21.31 ms``."""
    if nanoseconds is None or not math.isfinite(nanoseconds):
        return _special(nanoseconds)
    rounded = round_to(abs(nanoseconds), digits)
    factor, unit = next((f, u) for f, u in _DURATIONS if rounded >= f or f == 1.0)
    return _signed(f"{significant(abs(nanoseconds) / factor, digits)}{NO_BREAK}{unit}", nanoseconds)


def seconds(value: float | None) -> str:
    """A time in seconds, for compile and wall times: ``142 ms``, ``1.9 s``."""
    return duration(None if value is None else value * 1e9, 3)


def byte_count(value: float | None) -> str:
    """Bytes of memory that is addressed: ``34,816 B``."""
    return ABSENT if value is None else f"{count(value)}{NO_BREAK}B"


def percent(fraction: float | None) -> str:
    """A share of 1 as ``12.3 %``; more than 100 % is shown, not clamped."""
    if fraction is None or not math.isfinite(fraction):
        return _special(fraction)
    return f"{significant(fraction * 100, 3)}{NO_BREAK}%"


def ratio(value: float | None) -> str:
    """A factor: ``8.00×``."""
    if value is None or not math.isfinite(value):
        return _special(value)
    return f"{significant(value, 3)}×"


def intensity(value: float | None) -> str:
    """Arithmetic intensity in FLOP/byte, four significant digits: ``170.7``."""
    if value is None or not math.isfinite(value):
        return _special(value)
    return significant(value, 4)


def significant(value: float, digits: int) -> str:
    """``value`` to so many significant digits without an exponent; integers beyond that keep all their digits."""
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 10**digits:
        return f"{int(value):,}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(round_to(value, digits)))))
    if decimals > 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals}f}"


def round_to(value: float, digits: int) -> float:
    """``value`` rounded to so many significant digits, so that 999.96 ns becomes 1 µs and not 1000 ns."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def _special(value: float | None) -> str:
    if value is None:
        return ABSENT
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else f"{MINUS}∞"


def _signed(text: str, value: float) -> str:
    return MINUS + text if value < 0 else text
