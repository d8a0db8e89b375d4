"""Warp group products in every type and layout of operands, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_programs import single_product

from tilelang_min.errors import SimulationError
from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.simulate.warpgroup import Descriptor, Product
from tilelang_min.targets import resolve

rng = np.random.default_rng(11)


def values(dtype: str, shape: tuple[int, ...]) -> Any:
    if "int" in dtype:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(numpy_dtype(dtype))


def check(dtype: str, other: str = "", *, sign: int = 1, accumulate: bool = True, **how: Any) -> None:
    other = other or dtype
    k, n = 128 // numpy_dtype(dtype).itemsize, how.get("n", 16)
    a, b = values(dtype, (64, k)), values(other, (n, k))
    given = {
        "A": a if how.get("a_major", "k") == "k" else np.ascontiguousarray(a.T),
        "B": b if how.get("b_major", "k") == "k" else np.ascontiguousarray(b.T),
    }
    program = single_product(dtype, other, sign=sign, accumulate=accumulate, **how)
    result = simulate(program, given).outputs["D"]
    first, second = a.astype(np.float64), b.astype(np.float64)
    if dtype == "float32":  # tf32 drops 13 bits
        first, second = (
            (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64) for x in (a, b)
        )
    step = 32 // numpy_dtype(dtype).itemsize
    last = slice(0, k) if accumulate else slice(k - step, k)
    expected = sign * (first[:, last] @ second[:, last].T) + (2 if accumulate else 0)
    if result.dtype == np.int32:
        np.testing.assert_array_equal(result, expected)
    else:
        tolerance = 2e-2 if result.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_k_major_in_every_swizzle(dtype: str, swizzle: int) -> None:
    check(dtype, swizzle=swizzle, result="s32" if dtype == "int8" else "f32")


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_mn_major_in_every_swizzle(swizzle: int) -> None:
    check("float16", swizzle=swizzle, n=128, a_major="mn", b_major="mn")
    check("bfloat16", swizzle=swizzle, n=64, b_major="mn")


@pytest.mark.parametrize("a", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("b", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_floats(a: str, b: str) -> None:
    check(a, b)
    check(a, b, registers=True)


@pytest.mark.parametrize("a", ["int8", "uint8"])
@pytest.mark.parametrize("b", ["int8", "uint8"])
def test_eight_bit_integers(a: str, b: str) -> None:
    check(a, b, result="s32")
    check(a, b, result="s32", registers=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_from_registers(dtype: str) -> None:
    check(dtype, registers=True)


def test_float16_sums_signs_and_no_accumulation() -> None:
    check("float16", result="f16")
    check("float16", sign=-1)
    check("float16", accumulate=False)


@pytest.mark.parametrize("n", [8, 24, 120, 256])
def test_widths(n: int) -> None:
    check("float16", n=n)


def test_accumulators_read_too_early() -> None:
    with pytest.raises(
        SimulationError, match=r"operation 4 \(line 14\) accesses acc .* while the wgmma of operation 3"
    ):
        check("float16", early=True)


def test_descriptor_fields() -> None:
    bits = 0x1234 | 0x40 << 16 | 0x80 << 32 | 1 << 62
    assert Descriptor.of(bits) == Descriptor(0x12340, 0x400, 0x800, 128)
    assert [Descriptor.of(mode << 62).swizzle for mode in range(4)] == [0, 128, 64, 32]
    with pytest.raises(SimulationError, match="base offset"):
        Descriptor.of(bits | 1 << 49)


@pytest.mark.parametrize(
    "types", ["m64n12k16.f32.f16.f16", "m64n16k8.f32.f16.f16", "m64n40k32.s32.s8.s8", "m64n16k16.f32.f16.bf16"]
)
def test_products_that_do_not_exist(types: str) -> None:
    with pytest.raises(SimulationError, match="there is no instruction wgmma"):
        Product.of(f"wgmma.mma_async.sync.aligned.{types}", resolve("cuda:sm_90a"))


def test_all_warps_of_a_group_take_part() -> None:
    """The products under a condition on the warp, next to a wait, so that warps run apart."""
    with pytest.raises(SimulationError, match=r"threads 0 to 95 .* issue 4 wgmma, and threads 96 to 127"):
        simulate(single_product("float16", only=96), operands())
    with pytest.raises(SimulationError, match="which belong to no whole warp group"):
        simulate(single_product("float16", threads=64), operands())


def operands() -> dict[str, Any]:
    return {"A": values("float16", (64, 64)), "B": values("float16", (16, 64))}
