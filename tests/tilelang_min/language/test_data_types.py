"""Data types as values: ``T.float16``, ``T.dtype(...)``, and types of other packages in their place."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LanguageError
from tilelang_min.language.types import normal_dtype


def test_types_are_text_with_a_size() -> None:
    assert T.float16 == "float16"
    assert [each.bits for each in (T.float16, T.float8_e4m3fn, T.int4, T.uint64)] == [16, 8, 4, 64]
    assert [each.bytes for each in (T.float32, T.bool, T.int4)] == [4, 1, 1]
    assert (T.float, T.half, T.double, T.int, T.uint) == ("float32", "float16", "float64", "int32", "uint32")
    assert T.dtype("float").itemsize == 4


def test_types_of_numpy_ml_dtypes_and_python() -> None:
    given = (np.float16, np.dtype("int8"), ml_dtypes.bfloat16, np.dtype(ml_dtypes.float8_e4m3fn), float, int, bool)
    wanted = ["float16", "int8", "bfloat16", "float8_e4m3", "float32", "int32", "bool"]
    assert [normal_dtype(each) for each in given] == wanted
    assert normal_dtype(object()) is None
    assert normal_dtype(list) is None


def test_types_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert T.dtype(torch.bfloat16) == "bfloat16"
    assert T.float8_e4m3.as_torch() is torch.float8_e4m3fn


def test_no_type_and_no_kernel() -> None:
    with pytest.raises(LanguageError, match="'floaty' is no data type"):
        T.dtype("floaty")
    with pytest.raises(LanguageError, match=r"T\.float32\(\.\.\.\) was called outside a kernel"):
        T.float32(1.0)


@tilelang.jit
def convert(n, dtype):
    @T.prim_func
    def main(A: T.Tensor((n,), np.int32), B: T.Tensor([n], dtype)):
        with T.Kernel(1, threads=32):
            tile = T.alloc_fragment((n,), dtype)
            for i in T.Parallel(n):
                tile[i] = T.float32(A[i]) / T.float32(4) + tile.dtype(1)
            T.copy(tile, B)

    return main


@pytest.mark.parametrize("dtype", [T.float32, "float16", ml_dtypes.bfloat16])
def test_conversions_by_a_type(dtype: object) -> None:
    a = np.arange(-16, 16, dtype=np.int32)
    b = np.zeros(32, normal_dtype(dtype))
    convert.for_target("cpu")(32, dtype)(a, b)
    assert np.array_equal(b.astype("float32"), a / 4 + 1)


@tilelang.jit
def of_four_bits(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "uint8")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((n,), T.int4)
            T.copy(A, tile)

    return main


def test_types_that_no_tile_has() -> None:
    with pytest.raises(LanguageError, match="no tile of int4 can be made in this version") as caught:
        of_four_bits.for_target("cpu")(32)
    assert "two 4-bit numbers in a uint8" in (caught.value.remedy or "")
