"""Elementary functions of float64 that we bring ourselves: exact to the last bits on the CPU, and compiled for AMD."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from type_programs import elementwise

from tilelang_min.codegen import amd, cpu
from tilelang_min.program import ThreadProgram

COUNT = 1 << 14
WIDE = np.longdouble
SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308, 800, -800, 0.5, 3]

pytestmark = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="no wider float here to compare with")


def run(program: ThreadProgram, arrays: list[Any], folder: Path) -> Any:
    kernel = cpu.generate(program)
    path = folder / "kernel.so"
    path.write_bytes(kernel.binary)
    result = np.zeros(COUNT)
    function = ctypes.CDLL(str(path))[kernel.symbol]
    function.argtypes = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int32] * 2
    function(*(array.ctypes.data for array in arrays), result.ctypes.data, 0, program.grid[0])
    return result


def check(found: Any, exact: Any, units: float) -> None:
    """Finite results within ``units`` in the last place; zeros, infinities and NaN as they are."""
    expected = exact.astype(np.float64)
    finite = np.isfinite(expected)
    error = np.abs(found[finite].astype(WIDE) - exact[finite]) / np.spacing(np.abs(expected[finite])).astype(WIDE)
    assert error.max() <= units
    assert np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    zero = expected == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def mixed(rng: np.random.Generator, low: float, high: float) -> Any:
    """Special values, values between two bounds, small ones."""
    half = (COUNT - len(SPECIAL)) // 2
    small = rng.standard_normal(half) * 10.0 ** rng.uniform(-12, 0, half)
    return np.concatenate([np.array(SPECIAL, float), rng.uniform(low, high, half), small])


CASES: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "exp": (np.exp, -745, 709.7, 1.5),
    "exp2": (np.exp2, -1074, 1023.9, 1.5),
    "tanh": (np.tanh, -25, 25, 2.5),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -700, 50, 2.5),
}


@pytest.mark.parametrize(("target", "lanes"), [("cpu:x86-64-v2", 2), ("cpu", 8)])
@pytest.mark.parametrize("name", list(CASES))
def test_function(name: str, target: str, lanes: int, tmp_path: Path) -> None:
    exact, low, high, units = CASES[name]
    x = mixed(np.random.default_rng(1), low, high)
    program = elementwise(target, ["float64"], "float64", getattr(tirx, name), lanes=lanes, count=COUNT)
    with np.errstate(all="ignore"):
        check(run(program, [x], tmp_path), exact(x.astype(WIDE)), units)


@pytest.mark.parametrize(("target", "lanes"), [("cpu:x86-64-v2", 1), ("cpu", 4)])
@pytest.mark.parametrize("name", ["log", "log2"])
def test_logarithm(name: str, target: str, lanes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = mixed(rng, 0, 1)
    x[len(SPECIAL) :: 2] = np.exp(rng.uniform(-744, 709, len(x[len(SPECIAL) :: 2])))
    x[len(SPECIAL) + 1 :: 2] = 1 + x[len(SPECIAL) + 1 :: 2] / 4
    program = elementwise(target, ["float64"], "float64", getattr(tirx, name), lanes=lanes, count=COUNT)
    with np.errstate(all="ignore"):
        check(run(program, [x], tmp_path), getattr(np, name)(x.astype(WIDE)), 1.5)


@pytest.mark.parametrize(("target", "lanes"), [("cpu:x86-64-v2", 2), ("cpu", 8)])
def test_power(target: str, lanes: int, tmp_path: Path) -> None:
    """Large exponents of numbers near 1 and small ones of large numbers; every pair of special values as C has it."""
    rng = np.random.default_rng(3)
    quarter = COUNT // 4
    whole = rng.integers(-20, 20, (2, quarter)).astype(float)
    x = np.concatenate(
        [
            np.exp(rng.uniform(-20, 20, quarter)),
            1 + rng.standard_normal(quarter) * 1e-3,
            np.exp(rng.uniform(-700, 700, quarter)),
            whole[0],
        ]
    )
    y = np.concatenate(
        [rng.uniform(-30, 30, quarter), rng.uniform(-5e5, 5e5, quarter), rng.uniform(-1, 1, quarter), whole[1]]
    )
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL])
    x[: len(pairs)], y[: len(pairs)] = pairs.T
    program = elementwise(target, ["float64", "float64"], "float64", tirx.pow, lanes=lanes, count=COUNT)
    found = run(program, [x, y], tmp_path)
    with np.errstate(all="ignore"):
        exact, rounded = np.power(x.astype(WIDE), y.astype(WIDE)), np.power(x, y)
    plain = np.isfinite(rounded) & (np.abs(rounded) > 1e-300)
    check(np.where(plain, found, rounded), np.where(plain, exact, rounded.astype(WIDE)), 1.5)
    assert np.array_equal(found[~np.isfinite(rounded)], rounded[~np.isfinite(rounded)], equal_nan=True)
    tiny = np.isfinite(rounded) & ~plain
    assert np.abs(found[tiny] - rounded[tiny]).max() <= 1e-315
    assert np.array_equal(np.signbit(found[tiny]), np.signbit(rounded[tiny]))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_functions_compile_for_amd(arch: str) -> None:
    def every(x: Any) -> Any:
        total = tirx.exp(x) + tirx.exp2(x) + tirx.log(x) + tirx.log2(x) + tirx.tanh(x) + tirx.sigmoid(x)
        return tirx.pow(total, x) + tirx.sqrt(x) + tirx.rsqrt(x)

    kernel = amd.generate(elementwise(f"hip:{arch}", ["float64"], "float64", every, lanes=2))
    assert not kernel.resources.spilled_vgprs
    assert kernel.listing.attributed_fraction == 1
    assert sum("f64" in i.opcode for i in kernel.listing.instructions) > 200
