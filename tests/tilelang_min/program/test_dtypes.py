"""Data types against what NumPy, ml_dtypes and C say about them."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from tilelang_min import language
from tilelang_min.program import dtypes

C_TYPES = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "bool": ctypes.c_bool,
    **{f"int{bits}_t": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32)},
}
NAMES = (
    "float64 float32 float16 bfloat16 float8_e4m3 float8_e5m2 int8 int16 int32 int64 uint8 uint16 uint32 bool"
).split()


def test_the_table_has_the_types_of_the_language() -> None:
    assert list(dtypes.DATA_TYPES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes_agree(name: str) -> None:
    known = dtypes.DATA_TYPES[name]
    assert (
        known.size == dtypes.dtype_bytes(name) == dtypes.numpy_dtype(name).itemsize == ctypes.sizeof(C_TYPES[known.c])
    )


def test_names_of_others() -> None:
    assert dtypes.numpy_dtype("float8_e4m3") == np.dtype(ml_dtypes.float8_e4m3fn)
    assert dtypes.numpy_dtype("float8_e4m3fn") == np.dtype(ml_dtypes.float8_e4m3fn)
    assert dtypes.numpy_dtype("bfloat16") == np.dtype(ml_dtypes.bfloat16)
    assert dtypes.numpy_dtype("float8_e4m3fnuz") == np.dtype(ml_dtypes.float8_e4m3fnuz)
    assert dtypes.numpy_dtype("uint64") == np.dtype(np.uint64)
    assert dtypes.data_type("float8_e4m3fn") is dtypes.DATA_TYPES["float8_e4m3"]
    assert dtypes.data_type("float8_e4m3") is dtypes.DATA_TYPES["float8_e4m3"]
    assert dtypes.data_type("float7") is None
    for name in NAMES:
        assert dtypes.language_name(dtypes.numpy_dtype(name).name) == name
    with pytest.raises(TypeError):
        dtypes.numpy_dtype("float7")


@pytest.mark.parametrize("name", [*NAMES, *dtypes.OPERAND_TYPES])
def test_narrow_floats_and_their_largest_value(name: str) -> None:
    known = {**dtypes.DATA_TYPES, **dtypes.OPERAND_TYPES}[name]
    assert known.narrow == (name.startswith(("bfloat", "float8")))
    if known.narrow:
        assert known.largest == float(ml_dtypes.finfo(dtypes.numpy_dtype(name)).max)


def test_the_front_end_takes_what_it_took() -> None:
    assert language.DTYPES is dtypes.DTYPES
    assert set(dtypes.DTYPES) == set(dtypes.DATA_TYPES)
    assert all(size == dtypes.dtype_bytes(name) for name, size in dtypes.DTYPES.items())


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, tilelang_min.program.dtypes; print([m for m in ('numpy', 'ml_dtypes', 'tvm') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
