"""Arrays for a kernel that nobody gave any: random ones to time it on, zeros to count it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang_min.errors import LaunchError, did_you_mean
from tilelang_min.program import Parameter
from tilelang_min.program.dtypes import is_float, numpy_dtype

WAYS = ("Integer", "Uniform", "Normal", "Randn", "Zero", "One", "Auto")
"""Names of ``tilelang.TensorSupplyType``."""


def way(given: Any) -> str:
    """The name of a way of filling, given by name or as a member of TensorSupplyType.  LaunchError for another."""
    name = str(getattr(given, "name", given))
    if name not in WAYS:
        raise LaunchError(f"there is no tensor_supply_type {name!r}", remedy=did_you_mean(name, WAYS))
    return name


def filled(parameter: Parameter, kind: str, generator: Any) -> Any:
    """An input of a parameter's shape and type, filled in one of the :data:`WAYS`, by ``generator`` of NumPy."""
    import numpy as np

    dtype, shape = numpy_dtype(parameter.dtype), parameter.extents
    floating = is_float(parameter.dtype)
    if kind == "Zero":
        return np.zeros(shape, dtype)
    if kind == "One":
        return np.ones(shape, dtype)
    if parameter.dtype == "bool":
        return generator.integers(0, 2, shape).astype(dtype)
    if kind == "Integer" or (not floating and kind != "Auto"):
        low = 0 if parameter.dtype.startswith("uint") else -2
        return generator.integers(low, 3, shape).astype(dtype)
    if not floating:
        return generator.integers(0, 100, shape).astype(dtype)
    if kind == "Uniform":
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    return generator.standard_normal(shape, dtype=np.float32).astype(dtype)


def supplied_arguments(parameters: Sequence[Parameter], kind: str, seed: int = 0) -> tuple[Any, ...]:
    """As :func:`random_arguments`, with inputs filled in another way."""
    import numpy as np

    if kind == "Auto":
        return random_arguments(tuple(parameters), seed)
    generator = np.random.default_rng(seed)
    made = random_arguments(tuple(parameters), seed)
    return tuple(
        array if parameter.access == "out" else filled(parameter, kind, generator)
        for parameter, array in zip(parameters, made, strict=True)
    )


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
