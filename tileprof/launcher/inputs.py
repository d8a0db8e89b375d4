"""Input arrays, the same for a seed wherever they are made; poison for outputs, so that what was not written shows.

A parameter is a dictionary with ``name``, ``dtype``, ``shape`` and ``access`` (``in``, ``out`` or ``inout``).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_POISON_BYTE = 0xA5
_POISON_NAN = {2: 0x7EA5, 4: 0x7FE5A5A5, 8: 0x7FFDA5A5A5A5A5A5}  # quiet NaNs with a payload nobody computes
_ARANGE_MODULUS = 1024  # exact in every type, float16 included
_INTEGER_RANGE = (-4, 5)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a language type; those that NumPy lacks come from ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        scalar: Any = getattr(ml_dtypes, {"float8_e4m3": "float8_e4m3fn"}.get(name, name))
        found: np.dtype[Any] = np.dtype(scalar)
        return found


def make_array(kind: str, name: str, shape: Sequence[int], dtype: str, seed: int) -> Array:
    """An array of ``kind``: normal, uniform in [0, 1), zeros, ones, or arange (0, 1, ... modulo 1024).

    Random integers are uniform in -4 to 4 (0 to 4 where unsigned), random booleans even.  Values depend on ``seed`` and
    ``name``.
    """
    target = numpy_dtype(dtype)
    shape = tuple(shape)
    if kind == "zeros":
        return np.zeros(shape, target)
    if kind == "ones":
        return np.ones(shape, target)
    if kind == "arange":
        count = int(np.prod(shape, dtype=np.int64))
        return (np.arange(count, dtype=np.int64) % _ARANGE_MODULUS).astype(target).reshape(shape)
    if kind not in ("normal", "uniform"):
        raise ValueError(f"unknown kind of input {kind!r}")
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if target.kind == "b":
        return generator.integers(0, 2, shape).astype(target)
    if target.kind in "iu":
        low, high = _INTEGER_RANGE
        return generator.integers(0 if target.kind == "u" else low, high, shape).astype(target)
    wide = np.float64 if target == np.float64 else np.float32
    if kind == "normal":
        return generator.standard_normal(shape, dtype=wide).astype(target)
    return generator.random(shape, dtype=wide).astype(target)


class InputCache:
    """Arrays by what makes them: variants of a kernel have the same inputs, and making them takes longer than a launch.

    Whoever takes an array must not write to it.  The oldest go where all together have more than ``most_bytes``.
    """

    def __init__(self, most_bytes: int = 2 << 30) -> None:
        self.most_bytes = most_bytes
        self._arrays: dict[tuple[Any, ...], Array] = {}

    def array(self, kind: str, name: str, shape: Sequence[int], dtype: str, seed: int) -> Array:
        """As :func:`make_array`."""
        key = (kind, name, tuple(shape), dtype, seed)
        made = self._arrays.pop(key, None)
        if made is None:
            made = make_array(*key)
        self._arrays[key] = made  # at the end: the first is the one that was not asked for the longest time
        while len(self._arrays) > 1 and sum(one.nbytes for one in self._arrays.values()) > self.most_bytes:
            del self._arrays[next(iter(self._arrays))]
        return made


def poison(shape: Sequence[int], dtype: str) -> Array:
    """An array of a bit pattern that no kernel computes: a NaN with a payload, or bytes of 0xA5."""
    target = numpy_dtype(dtype)
    if target.kind == "f" and target.itemsize in _POISON_NAN:
        bits = np.full(tuple(shape), _POISON_NAN[target.itemsize], f"u{target.itemsize}")
        return bits.view(target)
    if target.kind == "b":
        return np.zeros(tuple(shape), target)
    return np.full((*shape, target.itemsize), _POISON_BYTE, np.uint8).view(target).reshape(tuple(shape))


def make_arguments(
    parameters: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, Any],
    seed: int,
    given: Mapping[str, Array],
    cache: InputCache | None = None,
) -> dict[str, Array]:
    """Arrays for all parameters in order: ``given`` ones copied, others by their kind, normal by default.

    An output without a kind is poisoned.  With a ``cache`` inputs that are only read come from there.
    """
    arrays: dict[str, Array] = {}
    for parameter in parameters:
        name, shape, dtype = parameter["name"], parameter["shape"], parameter["dtype"]
        if name in given:
            arrays[name] = np.ascontiguousarray(given[name]).copy()
        elif name in kinds or parameter["access"] != "out":
            make = make_array if cache is None or parameter["access"] != "in" else cache.array
            arrays[name] = make(str(kinds.get(name, "normal")), name, shape, dtype, seed)
        else:
            arrays[name] = poison(shape, dtype)
    return arrays


def written(before: Array, after: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which elements have other bits than before."""
    width = f"u{before.dtype.itemsize}"
    changed: np.ndarray[Any, np.dtype[np.bool_]] = before.view(width) != after.view(width)
    return changed
