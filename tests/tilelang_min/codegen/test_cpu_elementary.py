from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amd_programs import load, mark, store
from cpu_programs import program, run, unary
from tvm import tirx

from tilelang_min.codegen.cpu import generate
from tilelang_min.errors import CodegenError
from tilelang_min.program import Parameter
from tilelang_min.targets import cpu

HERE = cpu.detect()
LEVELS = [level for level in cpu.ARCHITECTURES if cpu.ARCHITECTURES.index(level) <= cpu.ARCHITECTURES.index(HERE)]
LEVELS = [level for level in LEVELS if "+" not in level]  # extensions do not touch these

REFERENCES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigmoid": lambda x: np.where(x >= 0, 1.0, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x))),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
EDGES = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    88.72283,
    88.8,
    -87.4,
    -103.9,
    -104.5,
    128.0,
    127.99,
    -149.0,
    -150.5,
]
EDGES += [1e-45, 1.1e-38, 3.4e38, 0.625, 0.6249, 9.0, 10.0, -9.0]


def arguments() -> np.ndarray[Any, Any]:
    """float32 of every exponent and sign, dense where functions vary, and the edges."""
    rng = np.random.default_rng(0)
    any_bits = rng.integers(0, 2**32, 2**17, dtype=np.uint32).view(np.float32)
    parts = [any_bits, rng.uniform(-110, 110, 2**16), rng.uniform(-2, 2, 2**15), rng.uniform(0.7, 1.42, 2**15), EDGES]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def distance(result: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Error in units of the last place of the float32 nearest to the exact value; 0 where both are that or NaN."""
    nearest = exact.astype(np.float32)
    unit = np.spacing(np.abs(np.where(np.isfinite(nearest), nearest, np.float32(3e38)))).astype(np.float64)
    same = (result == nearest) | (np.isnan(result) & np.isnan(nearest))
    return np.where(same, 0.0, np.abs(result.astype(np.float64) - exact) / unit)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", REFERENCES)
def test_float32_functions_are_within_two_and_a_bit_units(name: str, level: str, tmp_path: Path) -> None:
    x = arguments()
    lanes = {"x86-64-v2": 4, "x86-64-v3": 8, "x86-64-v4": 16}[level.partition("+")[0]]
    x = np.concatenate([x, np.ones(-len(x) % lanes, np.float32)])
    y = np.empty_like(x)
    kernel = generate(unary(getattr(tirx, name), len(x), lanes, target=f"cpu:{level}"))
    run(kernel, tmp_path, len(x) // lanes, x, y)
    with np.errstate(all="ignore"):
        error = distance(y, REFERENCES[name](x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 2.2, f"{name}({x[worst]!r}) = {y[worst]!r}"
    assert kernel.listing.attributed_fraction >= 0.95
    # What is inlined belongs to the operation that calls it.
    least = 2 if "sqrt" in name else 20
    assert sum(one.operation == 1 for one in kernel.listing.instructions) >= least


def test_scalars_and_nested_calls(tmp_path: Path) -> None:
    parameters = (Parameter("A", "float32", (100,), "in"), Parameter("B", "float32", (100,), "out"))

    def body(block: Any, a: Any, b: Any) -> list[Any]:
        return [mark(1), store(b, tirx.log(tirx.exp(load(a, block)) + tirx.exp(load(a, block))), block)]

    x = np.linspace(-20, 20, 100).astype(np.float32)
    y = np.empty_like(x)
    run(generate(program("nested", parameters, (100, 1, 1), body, (2, 3))), tmp_path, 100, x, y)
    assert np.allclose(y, np.log(2 * np.exp(x.astype(np.float64))), rtol=0, atol=2e-6)


def test_float16_is_computed_in_float32(tmp_path: Path) -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = np.empty_like(x)
    run(generate(unary(tirx.exp, len(x), dtype="float16")), tmp_path, len(x) // 8, x, y)
    with np.errstate(all="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float32).astype(np.float16)
    known = ~np.isnan(expected)
    assert np.isnan(y[~known]).all()
    assert np.abs(y[known].view(np.int16).astype(int) - expected[known].view(np.int16).astype(int)).max() <= 1


def test_powers_follow_c(tmp_path: Path) -> None:
    special = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-40, 1e30, 2.5], np.float32)
    grid = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    rng = np.random.default_rng(2)
    random = np.stack([np.exp(rng.uniform(-20, 20, 4096)), rng.uniform(-8, 8, 4096)]).astype(np.float32)
    x, y = (np.ascontiguousarray(part) for part in np.concatenate([grid, random], axis=1))
    parameters = tuple(Parameter(n, "float32", (len(x),), a) for n, a in (("X", "in"), ("Y", "in"), ("Z", "out")))

    def body(block: Any, first: Any, second: Any, out: Any) -> list[Any]:
        at = block * 8
        return [mark(1), store(out, tirx.pow(load(first, at, 8), load(second, at, 8)), at, 8)]

    z = np.empty_like(x)
    run(generate(program("power", parameters, (len(x) // 8, 1, 1), body, (2, 3))), tmp_path, len(x) // 8, x, y, z)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
        error = distance(z, expected)
    worst = int(np.argmax(error))
    assert error[worst] <= 1.0, f"{x[worst]!r} ** {y[worst]!r} = {z[worst]!r}, not {expected[worst]!r}"
    zeros = z == 0
    assert np.array_equal(np.signbit(z[zeros]), np.signbit(expected[zeros]))


def test_what_is_not_available_is_said_with_what_is() -> None:
    with pytest.raises(CodegenError, match=r"sin is not available(.|\n)*exp"):
        generate(unary(tirx.sin, 64))
    with pytest.raises(CodegenError, match=r"cos is not available(.|\n)*tanh"):
        generate(unary(lambda x: tirx.Cast("float32x8", tirx.cos(tirx.Cast("float64x8", x))), 64))
