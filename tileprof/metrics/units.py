"""Units as profilers spell them, turned into the catalogue's.

Spellings changed over the years (``nsecond`` became ``ns``) and profilers scale units per row (``us``, ``Kbyte``, ``Ghz``).
Decimal prefixes throughout: Nsight Compute's Kbyte is 1000 bytes.
"""

from __future__ import annotations

from tileprof.errors import ProfileFormatError

# spelling in lower case -> (canonical unit, factor)
_BASE: dict[str, tuple[str, float]] = {
    "": ("", 1.0),
    "%": ("ratio", 0.01),
    "ratio": ("ratio", 1.0),
    "ns": ("ns", 1.0),
    "nsecond": ("ns", 1.0),
    "us": ("ns", 1e3),
    "usecond": ("ns", 1e3),
    "ms": ("ns", 1e6),
    "msecond": ("ns", 1e6),
    "s": ("ns", 1e9),
    "second": ("ns", 1e9),
    "hz": ("Hz", 1.0),
    "cycle/second": ("Hz", 1.0),
    "cycle/s": ("Hz", 1.0),
    "cycle/nsecond": ("Hz", 1e9),
    "cycle/ns": ("Hz", 1e9),
    "cycle/usecond": ("Hz", 1e6),
    "cycle/us": ("Hz", 1e6),
    "byte": ("bytes", 1.0),
    "bytes": ("bytes", 1.0),
    "byte/block": ("bytes", 1.0),
    "register/thread": ("registers", 1.0),
    "sector": ("sectors", 1.0),
    "sectors": ("sectors", 1.0),
    "inst": ("instructions", 1.0),
    "request": ("requests", 1.0),
    "requests": ("requests", 1.0),
    "sample": ("samples", 1.0),
    "samples": ("samples", 1.0),
    "warp": ("warps", 1.0),
    "thread": ("threads", 1.0),
    "block": ("blocks", 1.0),
    "cycle": ("cycles", 1.0),
}
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_PREFIXED = ("byte", "bytes", "byte/block", "hz", "inst", "sector", "cycle")


def _resolve(unit: str) -> tuple[str, float] | None:
    word = unit.strip().lower()
    if word in _BASE:
        return _BASE[word]
    for prefix, factor in _PREFIXES.items():
        if word.startswith(prefix) and word[1:] in _PREFIXED:
            canonical, base = _BASE[word[1:]]
            return canonical, base * factor
    return None


def known_unit(unit: str) -> str | None:
    """Canonical unit of a profiler's spelling, or None: ``known_unit("Mbyte") == "bytes"``."""
    found = _resolve(unit)
    return found[0] if found else None


def convert(value: float, unit: str, canonical: str) -> float:
    """A profiler's value in the catalogue's unit: ``convert(1.5, "us", "ns") == 1500.0``.

    An empty unit is taken for the canonical one, since profilers leave plain counts without.  Raises
    :class:`ProfileFormatError` where the unit is unknown or of another quantity.
    """
    found = _resolve(unit)
    if found is not None and found[0] == "":
        return value
    if found is None or found[0] != canonical:
        raise ProfileFormatError(
            f"a profiler's value in {unit!r} cannot be turned into {canonical!r}",
            remedy="report this with the name and version of the profiler; the table is in tileprof/metrics/units.py",
        )
    return value * found[1]
