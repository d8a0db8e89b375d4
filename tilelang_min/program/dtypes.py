"""Data types, the same words in every room: the language's names, their size, and what NumPy, TVM and C call them.

:data:`DATA_TYPES` is every type that the thread program, the code generators and the simulator know.  :data:`DTYPES` are those
that the front end takes: all of them.  Importing this module imports neither NumPy nor
ml_dtypes; :func:`numpy_dtype` does.

What conversions mean, on every target:

* to a float: to nearest, ties to even;
* float to integer: toward zero (out of range: undefined); integer to integer: wraps; anything to bool: ``x != 0``;
* to ``float8_*``: beyond the largest finite value comes that value, infinities included (what the hardware calls
  *satfinite*); NaN stays NaN;
* float64 to a 16-bit or 8-bit float rounds once; integers to these go by way of float32.

Arithmetic in ``bfloat16`` and ``float8_*`` is that of float32 on the same values, rounded after each operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class DataType:
    """One type.

    ``kind`` is ``float``, ``int``, ``uint`` or ``bool``; ``size`` bytes of an element.  ``tvm`` is TVM's name, which buffers
    and casts of a thread program carry; ``numpy`` the name in NumPy, or in ml_dtypes where NumPy has none; ``c`` the C type of
    an element in memory.  ``largest`` is the largest finite value of a narrow float (one that arithmetic widens to float32).
    """

    name: str
    kind: str
    size: int
    tvm: str
    numpy: str
    c: str
    largest: float | None = None

    @property
    def narrow(self) -> bool:
        """Whether arithmetic goes by way of float32: bfloat16 and the 8-bit floats."""
        return self.largest is not None


def _plain(kind: str, bits: int, c: str) -> DataType:
    name = f"{kind}{bits}"
    return DataType(name, kind, bits // 8, name, name, c)


_ALL = (
    _plain("float", 64, "double"),
    _plain("float", 32, "float"),
    _plain("float", 16, "uint16_t"),
    DataType("bfloat16", "float", 2, "bfloat16", "bfloat16", "uint16_t", (2 - 2**-7) * 2.0**127),
    DataType("float8_e4m3", "float", 1, "float8_e4m3fn", "float8_e4m3fn", "uint8_t", 448.0),
    DataType("float8_e5m2", "float", 1, "float8_e5m2", "float8_e5m2", "uint8_t", 57344.0),
    _plain("int", 8, "int8_t"),
    _plain("int", 16, "int16_t"),
    _plain("int", 32, "int32_t"),
    _plain("int", 64, "int64_t"),
    _plain("uint", 8, "uint8_t"),
    _plain("uint", 16, "uint16_t"),
    _plain("uint", 32, "uint32_t"),
    DataType("bool", "bool", 1, "bool", "bool", "bool"),
)

DATA_TYPES: dict[str, DataType] = {each.name: each for each in _ALL}
"""Every data type of the language by its name."""

OPERAND_TYPES: dict[str, DataType] = {
    each.name: each
    for each in (
        DataType("float8_e4m3fnuz", "float", 1, "float8_e4m3fnuz", "float8_e4m3fnuz", "uint8_t", 240.0),
        DataType("float8_e5m2fnuz", "float", 1, "float8_e5m2fnuz", "float8_e5m2fnuz", "uint8_t", 57344.0),
    )
}
"""Types that the language does not have and a matrix instruction reads: the 8-bit floats of gfx942 (exponents biased by one
more than in ``float8_e4m3`` and ``float8_e5m2``, no negative zero, no infinities)."""

_BY_TVM_NAME = {each.tvm: each for each in (*_ALL, *OPERAND_TYPES.values())}

DTYPES: dict[str, int] = {each.name: each.size for each in _ALL}
"""Data types that the front end takes, and their size in bytes."""


def dtype_bytes(dtype: str) -> int:
    """Size of one element in bytes, for any type of :data:`DATA_TYPES`, in either spelling."""
    return (data_type(dtype) or DATA_TYPES[dtype]).size


def is_float(dtype: str) -> bool:
    """Whether a type, in either spelling, is a floating-point one."""
    known = data_type(dtype)
    return known is not None and known.kind == "float"


def data_type(name: str) -> DataType | None:
    """The type of a name, in the language's spelling or in TVM's (``float8_e4m3fn``); None for what is neither."""
    return _BY_TVM_NAME.get(name) or DATA_TYPES.get(name)


@cache
def numpy_dtype(name: str) -> Any:
    """The ``numpy.dtype`` of a type (either spelling; also ``uint64``, which only addresses and wide operands have).

    bfloat16 and the 8-bit floats are those of ml_dtypes, where ``float8_e4m3`` alone is another format: ours is its
    ``float8_e4m3fn``.  Raises ``TypeError`` for a name that is no type.
    """
    import numpy as np

    known = data_type(name)
    if known is not None and known.narrow:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, known.numpy))
    return np.dtype(name if known is None else known.numpy)


def language_name(numpy_name: str) -> str:
    """The language's name of a NumPy, ml_dtypes or torch type name: ``float8_e4m3fn`` is ``float8_e4m3``."""
    known = _BY_TVM_NAME.get(numpy_name)
    return numpy_name if known is None else known.name
