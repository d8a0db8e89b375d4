"""Conversions to and from the floats that NumPy lacks: bfloat16 and the 8-bit floats, which ml_dtypes provides.

What they mean stands in :mod:`tilelang_min.program.dtypes`: arithmetic goes by way of float32, 8-bit floats saturate, and
float64 is rounded once.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilelang_min.program.dtypes import DATA_TYPES, data_type, numpy_dtype

_LIMITS = {numpy_dtype(each.name): each.largest for each in DATA_TYPES.values() if each.narrow and each.size == 1}


def is_narrow(dtype: str) -> bool:
    """Whether arithmetic in this type goes by way of float32."""
    known = data_type(dtype)
    return known is not None and known.narrow


def widen(value: Any) -> Any:
    """A narrow value as float32, exactly."""
    return np.asarray(value).astype(np.float32)


def narrow(value: Any, dtype: Any) -> Any:
    """Any value rounded to a narrow type."""
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = _odd_float32(array)
    elif array.dtype != np.float32:
        array = array.astype(np.float32)
    limit = _LIMITS.get(np.dtype(dtype))
    return (array if limit is None else np.clip(array, -limit, limit)).astype(dtype)


def _odd_float32(value: Any) -> Any:
    """float64 as one of the two float32 around it, the one whose last bit is 1: rounding that again to fewer bits gives
    what rounding the float64 would."""
    nearest = value.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    even = (back != value) & (bits & 1 == 0) & (value == value)
    beyond = np.abs(back) > np.abs(value)
    return np.where(even, np.where(beyond, bits - np.uint32(1), bits + np.uint32(1)), bits).view(np.float32)


NAMESPACE: dict[str, Any] = {"narrow": narrow, "widen": widen, "ml": ml_dtypes}
"""Names for translated source."""
