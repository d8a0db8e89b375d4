"""What conversions and arithmetic shall give, from the definition of the formats: no cast of NumPy or ml_dtypes rounds here."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_min.program.dtypes import numpy_dtype

# bits of precision, smallest exponent of a normal number, largest finite value, what is beyond it
FORMATS: dict[str, tuple[int, int, float, bool]] = {
    "float32": (24, -126, float(2**128 - 2**104), False),
    "float16": (11, -14, 65504.0, False),
    "bfloat16": (8, -126, float(2**128 - 2**120), False),
    "float8_e4m3": (4, -6, 448.0, True),
    "float8_e5m2": (3, -14, 57344.0, True),
}
"""The last entry: whether what is too large becomes the largest (else an infinity)."""

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
FLOATS = ("float64", *FORMATS)


def rounded(values: Any, dtype: str) -> Any:
    """float64 values to the nearest that ``dtype`` has, ties to even, as float64."""
    if dtype == "float64":
        return values
    precision, smallest, largest, saturates = FORMATS[dtype]
    _, exponent = np.frexp(values)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, smallest) - (precision - 1))
    with np.errstate(all="ignore"):
        result = np.where(np.isfinite(values), np.rint(values / quantum) * quantum, values)
        beyond = np.abs(result) > largest
        return np.where(beyond, np.copysign(largest if saturates else np.inf, values), result)


def converted(values: Any, source: str, result: str) -> tuple[Any, Any]:
    """(expected values, where they are defined) of a conversion; floats as float64, integers and bools in their type.

    ``source`` may be ``whole``: Python integers of any size.
    """
    everywhere = np.ones(values.shape, bool)
    if source == result:
        return values, everywhere
    if result == "bool":
        return values.astype(np.float64) != 0, everywhere
    if source in (*INTEGERS, "bool", "whole"):
        if result in INTEGERS:
            bits = 8 * numpy_dtype(result).itemsize
            whole = [int(value) & (1 << bits) - 1 for value in values]
            if result.startswith("int"):
                whole = [value - (1 << bits) if value >> (bits - 1) else value for value in whole]
            return np.array(whole, numpy_dtype(result)), everywhere
        exact = np.array([float(int(value)) for value in values])  # Python rounds once; float64 is at the end or exact
        small = result not in ("float64", "float32", "float16")
        return rounded(rounded(exact, "float32") if small else exact, result), everywhere
    exact = values.astype(np.float64)
    if result in FLOATS:
        return rounded(exact, result), everywhere
    limits = np.iinfo(result)
    with np.errstate(all="ignore"):
        whole = np.trunc(exact)
        inside = (whole >= float(limits.min)) & (whole < 2.0 ** (limits.bits - (result.startswith("int"))))
        return np.where(inside, whole, 0.0).astype(numpy_dtype(result)), inside


def same(found: Any, expected: Any) -> Any:
    """Where values are equal: zeros by sign too, any NaN equal to any other."""
    if found.dtype.kind in "iub":
        return found == expected
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), expected.astype(np.float64)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def samples(dtype: str, count: int, rng: np.random.Generator) -> Any:
    """Values that matter: every one of an 8-bit type, special ones, ties between neighbours of narrower types, random ones."""
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if kind.itemsize == 1:
        return np.resize(np.arange(256).astype(np.uint8).view(kind), count)
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        edges = [limits.min, limits.max, 0, 1, 127, 128, 255, 256, 32767]
        small = rng.integers(-100 if limits.min else 0, 100, count // 2)
        wide = rng.integers(limits.min, limits.max, count - count // 2 - len(edges), endpoint=True, dtype=kind)
        return np.concatenate([np.array(edges).astype(kind), small.astype(kind), wide])
    edges = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 448, 449, 464, 480, 57344, 61440, 65504, 65520, 1e30, -1e30, 2.0**-9]
    )
    quarter = (count - len(edges)) // 4
    random = rng.standard_normal(quarter) * 2.0 ** rng.integers(-20, 20, quarter)
    ties = (2 * rng.integers(1, 256, quarter) + 1) * 2.0 ** rng.integers(-28, 9, quarter)
    beside = (ties + ties * 2.0**-40) * rng.choice(
        [-1, 1], quarter
    )  # in float64 on one side of the tie, in float32 on it
    whole = rng.integers(-200, 200, count - len(edges) - 3 * quarter) / 4
    every = np.concatenate([edges, random, ties, beside, whole])
    with np.errstate(all="ignore"):
        return every.astype(kind)
