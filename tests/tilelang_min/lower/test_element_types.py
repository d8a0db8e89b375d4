"""Element-wise kernels in every data type: the CPU by running, GPUs by simulation, against their types' own arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import LanguageError
from tilelang_min.frontend import parse
from tilelang_min.program.dtypes import DATA_TYPES, is_float, numpy_dtype

TARGETS = ("cpu", "cuda:sm_80", "hip:gfx942")
NUMBERS = [name for name in DATA_TYPES if name != "bool"]


def arithmetic(n: int, dtype: str) -> Any:
    """Sums, products, comparisons, numbers, a shared tile and a fragment, all in one type."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype), D: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 128), threads=64) as bx:
            shared = T.alloc_shared((128,), dtype)
            held = T.alloc_fragment((128,), dtype)
            T.copy(A[bx * 128], shared)
            T.copy(shared, held)
            for i in T.Parallel(128):
                C[bx * 128 + i] = held[i] * B[bx * 128 + i] + 3
            for i in T.Parallel(128):
                x = held[i] - B[bx * 128 + i]
                D[bx * 128 + i] = T.max(x, held[i]) if shared[i] > 2 else T.cast(x, dtype)

    return main


def conversions(n: int, source: str, result: str) -> Any:
    """By a copy and by T.cast."""

    @T.prim_func
    def main(A: T.Tensor((n,), source), B: T.Tensor((n,), result), C: T.Tensor((n,), result)):
        with T.Kernel(T.ceildiv(n, 128), threads=64) as bx:
            held = T.alloc_fragment((128,), source)
            T.copy(A[bx * 128], held)
            T.copy(held, B[bx * 128])
            for i in T.Parallel(128):
                C[bx * 128 + i] = T.cast(held[i], result)

    return main


def values(dtype: str, n: int, seed: int) -> Any:
    """Small numbers, negative ones too where there are any; of floats in steps of 1/4."""
    generator = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -9
    numbers = generator.integers(low, 9, n)
    return (numbers / 4 if is_float(dtype) else numbers).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("n", [256, 333])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic(dtype: str, target: str, n: int) -> None:
    a, b = values(dtype, n, 1), values(dtype, n, 2)
    kind = numpy_dtype(dtype)
    empty = np.full(n, 77, kind)
    found = run(arithmetic(n, dtype), target, [a, b, empty, empty])
    three = kind.type(3)
    exact = a.astype(np.float64) * b.astype(np.float64) + 3
    stepwise = (a * b).astype(kind) + three
    once = exact.astype(kind) if is_float(dtype) else stepwise
    # A multiplication and an addition may be one operation, which rounds once.
    assert ((found["C"] == stepwise) | (found["C"] == once)).all()
    difference = (a - b).astype(kind)
    assert np.array_equal(found["D"], np.where(a > kind.type(2), np.maximum(difference, a), difference))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", NUMBERS)
def test_conversions(source: str, target: str) -> None:
    a = values(source, 200, 3)
    for result in ("float32", "float16", "bfloat16", "int32", "int8", "float8_e4m3", "float64", "bool"):
        kind = numpy_dtype(result)
        empty = np.full(200, 1, kind)
        found = run(conversions(200, source, result), target, [a, empty, empty])
        wide = a.astype(np.float64)
        expected = wide != 0 if result == "bool" else (wide if is_float(result) else np.trunc(wide)).astype(kind)
        for name in "BC":
            assert np.array_equal(found[name], expected), (result, name)


def mixed(n: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((n,), "bfloat16"),
        B: T.Tensor((n,), "float16"),
        S: T.Tensor((n,), "int8"),
        J: T.Tensor((n,), "int64"),
        C: T.Tensor((n,), "float32"),
        D: T.Tensor((n,), "int64"),
        E: T.Tensor((n,), "bfloat16"),
    ):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                C[i] = A[i] + B[i]
                D[i] = S[i] + J[i]
                E[i] = T.exp(A[S[i]]) * 2.3

    return main


@pytest.mark.parametrize("target", TARGETS)
def test_types_that_meet(target: str) -> None:
    """bfloat16 and float16 meet in float32, integers in the wider one; a number takes the type of the tile; any integer is an
    index; functions of narrow floats are those of float32."""
    n = 64
    bf16 = numpy_dtype("bfloat16")
    a, b = values("bfloat16", n, 1), values("float16", n, 2)
    i, j = np.arange(n, dtype=np.int8)[::-1].copy(), np.arange(n, dtype=np.int64) * 2**40
    empty = (np.zeros(n, np.float32), np.zeros(n, np.int64), np.zeros(n, bf16))
    found = run(mixed(n), target, [a, b, i, j, *empty])
    assert np.array_equal(found["C"], a.astype(np.float32) + b.astype(np.float32))
    assert np.array_equal(found["D"], i + j)
    powers = np.exp(a[i].astype(np.float64)).astype(bf16)
    expected = (powers.astype(np.float32) * np.float32(bf16.type(2.3))).astype(np.float64)
    assert np.allclose(found["E"].astype(np.float64), expected, rtol=2**-7)


def reductions(dtype: str, total: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((16, 100), dtype), B: T.Tensor((16,), total), C: T.Tensor((16,), dtype)):
        with T.Kernel(1, threads=64) as _:
            tile = T.alloc_fragment((16, 100), dtype)
            sums = T.alloc_fragment((16,), total)
            largest = T.alloc_fragment((16,), dtype)
            T.copy(A, tile)
            T.reduce_sum(tile, sums, dim=1)
            T.reduce_max(tile, largest, dim=1)
            T.copy(sums, B)
            T.copy(largest, C)

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_reductions(dtype: str, target: str) -> None:
    """Sums of integers in int32, of floats in float32, of types of 8 bytes in themselves: on AMD those change lanes in halves."""
    size = DATA_TYPES[dtype].size
    total = dtype if size == 8 else "float32" if is_float(dtype) else "int32"
    a = values(dtype, 1600, 4).reshape(16, 100)
    a[:5] = values(dtype, 5 * 100, 5).reshape(5, 100) - numpy_dtype(dtype).type(0 if dtype.startswith("u") else 20)
    kernel = reductions(dtype, total)
    empty = np.full(16, 77)
    found = run(kernel, target, [a, empty.astype(total), empty.astype(numpy_dtype(dtype))])
    assert np.array_equal(found["B"].astype(np.float64), a.astype(np.float64).sum(1))
    assert np.array_equal(found["C"], a.max(1))
    if target != "cpu":
        tilelang.compile(kernel, target, cache=False)


def infinite(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                A[i] = -T.infinity(dtype)

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_infinity(dtype: str, target: str) -> None:
    found = run(infinite(dtype), target, [np.zeros(64, numpy_dtype(dtype))])["A"]
    assert np.array_equal(found.astype(np.float64), np.full(64, -np.inf))


def test_infinity_of_types_without() -> None:
    with pytest.raises(LanguageError, match="float8_e5m2 has no infinity"):
        parse(infinite("float8_e5m2"))


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx950"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_they_compile(dtype: str, target: str) -> None:
    kernel = tilelang.compile(arithmetic(333, dtype), target, cache=False)
    assert [parameter.dtype for parameter in kernel.parameters] == [dtype] * 4
