"""Arrays for a kernel that nobody gave any: random ones to time it on, zeros to count it on."""

from __future__ import annotations

from typing import Any

from tilelang_min.program import Parameter
from tilelang_min.program.dtypes import is_float, numpy_dtype


def random_arguments(parameters: tuple[Parameter, ...], seed: int = 0) -> tuple[Any, ...]:
    """Normal inputs and NaN-filled outputs for a kernel, as NumPy arrays."""
    import numpy as np

    generator = np.random.default_rng(seed)
    made: list[Any] = []
    for parameter in parameters:
        dtype = numpy_dtype(parameter.dtype)
        if not is_float(parameter.dtype):
            made.append(generator.integers(0, 100, parameter.extents).astype(dtype))
        elif parameter.access == "out":
            made.append(np.full(parameter.extents, np.nan, dtype))
        else:
            made.append(generator.standard_normal(parameter.extents, dtype=np.float32).astype(dtype))
    return tuple(made)


def zero_arguments(parameters: tuple[Parameter, ...]) -> tuple[Any, ...]:
    """Arrays of zeros, which cost nothing until somebody writes them."""
    import numpy as np

    return tuple(np.zeros(parameter.extents, numpy_dtype(parameter.dtype)) for parameter in parameters)
