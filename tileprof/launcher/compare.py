"""Comparison of results with a reference in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 22  # elements looked at at once, so that large outputs need little memory

DEFAULT_TOLERANCE = {
    "float64": (1e-10, 1e-10),
    "float32": (1e-4, 1e-4),
    "float16": (1e-2, 1e-2),
    "bfloat16": (2e-2, 2e-2),
    "float8_e4m3": (0.1, 0.1),
    "float8_e5m2": (0.2, 0.2),
}
"""(rtol, atol) by the narrowest floating-point type among the parameters; anything else must be equal."""

_WIDTH = {name: index for index, name in enumerate(DEFAULT_TOLERANCE)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcome over all outputs.

    ``max_rel_error`` is the largest error relative to the reference or, where that is smaller, to its root mean square,
    so that elements near zero do not decide.  ``worst`` describes the first wrong element for a message, empty where
    all are right.
    """

    ok: bool
    max_abs_error: float
    max_rel_error: float
    compared: int
    worst: str


def default_tolerance(dtypes: list[str]) -> tuple[float, float]:
    """(rtol, atol) for parameters of these types."""
    known = [dtype for dtype in dtypes if dtype in _WIDTH]
    return DEFAULT_TOLERANCE[max(known, key=_WIDTH.__getitem__)] if known else (0.0, 0.0)


def compare(
    results: Mapping[str, Array],
    reference: Mapping[str, Array],
    rtol: float,
    atol: float,
    masks: Mapping[str, np.ndarray[Any, np.dtype[np.bool_]]] | None = None,
) -> Comparison:
    """Compare each output with its reference: ``|result - reference| <= atol + rtol * |reference|`` everywhere.

    ``masks`` restricts outputs to the elements that are true.  NaN equals NaN and an infinity itself; a NaN or infinity
    in only one of the two is an error without limit.  Raises ValueError where the shapes differ.
    """
    worst_abs = worst_rel = 0.0
    compared = 0
    ok = True
    message = ""
    for name, expected in reference.items():
        actual = results[name]
        if actual.shape != expected.shape:
            raise ValueError(f"the reference's {name} has shape {expected.shape}, the kernel's {actual.shape}")
        mask = None if masks is None else masks[name].reshape(-1)
        scale = _root_mean_square(expected)
        flat, flat_expected = actual.reshape(-1), expected.reshape(-1)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            indices = np.arange(start, min(start + _CHUNK, flat.size))
            if mask is not None:
                indices = indices[mask[part]]
            a = flat[indices].astype(np.float64)
            b = flat_expected[indices].astype(np.float64)
            compared += indices.size
            if not indices.size:
                continue
            error = _errors(a, b)
            size = np.where(np.isfinite(b), np.abs(b), 0.0)
            bad = error > atol + rtol * size
            worst_abs = max(worst_abs, float(error.max()))
            floor = np.maximum(size, scale)
            relative = np.divide(error, floor, out=np.where(error > 0, np.inf, 0.0), where=floor > 0)
            worst_rel = max(worst_rel, float(relative.max()))
            if bad.any():
                ok = False
                if not message:
                    first = int(np.argmax(bad))
                    place = ", ".join(str(int(i)) for i in np.unravel_index(indices[first], actual.shape))
                    message = f"{name}[{place}] is {a[first]:.6g}, the reference {b[first]:.6g}"
    return Comparison(ok, worst_abs, worst_rel, compared, message)


def _root_mean_square(values: Array) -> float:
    wide = values.astype(np.float64, copy=False)
    finite = wide[np.isfinite(wide)]
    return math.sqrt(float(np.mean(np.square(finite)))) if finite.size else 0.0


def _errors(a: Array, b: Array) -> Array:
    """Absolute errors; 0 for equal infinities and two NaNs, infinity where only one is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    error = np.where(same, 0.0, error)
    return np.where(np.isnan(error), np.inf, error)
