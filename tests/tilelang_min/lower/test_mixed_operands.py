"""Products of operands of two types, and of float32 cut down to tf32 where the author asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import run

import tilelang_min.language as T
from tilelang_min.driver.build import thread_program
from tilelang_min.errors import LanguageError
from tilelang_min.frontend import parse
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.targets import resolve


def product(
    a_type: str, b_type: str, out: str, transpose_a: bool = False, transpose_b: bool = False, precision: str = "exact"
) -> Any:
    """A product of 64 x 64 x 64."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), a_type), B: T.Tensor((64, 64), b_type), C: T.Tensor((64, 64), out)):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((64, 64), a_type)
            B_s = T.alloc_shared((64, 64), b_type)
            acc = T.alloc_fragment((64, 64), out)
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.clear(acc)
            T.gemm(A_s, B_s, acc, transpose_A=transpose_a, transpose_B=transpose_b, precision=precision)
            T.copy(acc, C)

    return main


def values(dtype: str, seed: int) -> Any:
    """A matrix of a type."""
    generator = np.random.default_rng(seed)
    if "int" in dtype:
        return generator.integers(0 if dtype.startswith("u") else -100, 100, (64, 64)).astype(dtype)
    return generator.standard_normal((64, 64)).astype(numpy_dtype(dtype))


def error(target: str, a_type: str, b_type: str, out: str, transposes: tuple[bool, bool], precision: str) -> float:
    """Largest difference from float64, relative to the largest element."""
    a, b = values(a_type, 1), values(b_type, 2)
    kernel = product(a_type, b_type, out, *transposes, precision)
    made = run(kernel, target, [a, b, np.zeros((64, 64), out)])["C"].astype(np.float64)
    left, right = a.astype(np.float64), b.astype(np.float64)
    expected = (left.T if transposes[0] else left) @ (right.T if transposes[1] else right)
    return float(np.abs(made - expected).max() / np.abs(expected).max())


def plan(target: str, *types: str, precision: str = "exact") -> Any:
    layouts = thread_program(product(*types, precision=precision), resolve(target))[1]
    assert layouts is not None
    return next(iter(layouts.gemms.values()))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_75", "cuda:sm_89", "hip:gfx942", "hip:gfx950"])
@pytest.mark.parametrize(
    ("types", "transposes"),
    [
        (("float8_e4m3", "float8_e5m2", "float32"), (False, True)),
        (("float8_e5m2", "float8_e4m3", "float32"), (False, False)),
        (("int8", "uint8", "int32"), (False, True)),
        (("uint8", "int8", "int32"), (True, False)),
    ],
)
def test_two_types(target: str, types: tuple[str, str, str], transposes: tuple[bool, bool]) -> None:
    """Launched on Hopper, products of warp groups add float8 in fewer bits than float32 has (``docs/hopper.md``)."""
    limit = 1e-12 if types[2] == "int32" else 5e-4 if target == "cuda:sm_90a" else 1e-6
    assert error(target, *types, transposes, "exact") < limit


def test_two_types_have_instructions_of_their_own() -> None:
    assert plan("cuda:sm_89", "float8_e4m3", "float8_e5m2", "float32").instruction.name.endswith("f32.e4m3.e5m2.f32")
    assert plan("cuda:sm_80", "uint8", "int8", "int32").instruction.name.endswith("s32.u8.s8.s32")
    assert plan("hip:gfx950", "float8_e5m2", "float8_e4m3", "float32").kind == "mfma"
    assert "no matrices of int8 and uint8 into int32" in plan("hip:gfx942", "int8", "uint8", "int32").note


@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("transposes", [(False, False), (False, True), (True, True)])
def test_tf32_where_asked_for(target: str, transposes: tuple[bool, bool]) -> None:
    """Ten bits of mantissa, cut off: between 1e-5 and 2e-3 of the largest element."""
    types = ("float32", "float32", "float32")
    assert 1e-5 < error(target, *types, transposes, "tf32") < 2e-3
    assert error(target, *types, transposes, "exact") < 1e-6


def test_targets_without_tf32_are_exact() -> None:
    types = ("float32", "float32", "float32")
    for target in ("cuda:sm_75", "cpu"):
        assert error(target, *types, (False, False), "tf32") < 1e-6
    assert "has no tf32" in plan("cuda:sm_75", *types, precision="tf32").note


def test_other_pairs_are_errors() -> None:
    with pytest.raises(LanguageError, match=r"A is float16 and B is float32(.|\n)*only float8_e4m3 and float8_e5m2"):
        parse(product("float16", "float32", "float32"))
    with pytest.raises(LanguageError, match="'tf32' is no precision of a product of float16"):
        parse(product("float16", "float16", "float32", precision="tf32"))
