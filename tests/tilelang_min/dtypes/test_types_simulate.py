"""The simulator's arithmetic in every data type, against values worked out from the definition of the formats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from type_programs import (
    FUNCTIONS,
    Build,
    arithmetic,
    conversions,
    elementwise,
    load,
    mark,
    matrices,
    store,
    through_shared,
    tvm_name,
)
from type_reference import FORMATS, INTEGERS, converted, rounded, same, samples

from tilelang_min.errors import SimulationError
from tilelang_min.program.dtypes import DATA_TYPES, numpy_dtype
from tilelang_min.simulate import simulate
from tilelang_min.targets import MatrixInstruction, resolve


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("target", "lanes"), [("cuda:sm_80", 1), ("cuda:sm_80", 2), ("hip:gfx950", 4), ("cpu", 8)])
def test_every_conversion(target: str, lanes: int) -> None:
    count = 1024
    program = conversions(target, lanes, count)
    values = {p.name: samples(p.dtype, count, rng(i)) for i, p in enumerate(program.parameters) if p.access == "in"}
    results = simulate(program, values, count=False).outputs
    assert len(results) == len(values) ** 2
    for name, found in results.items():
        source, result = next((s, r) for s in DATA_TYPES for r in DATA_TYPES if name == f"B_{s}_{r}")
        expected, defined = converted(values[f"A_{source}"], source, result)
        wrong = ~same(found, expected) & defined
        assert not wrong.any(), (name, values[f"A_{source}"][wrong][:4], found[wrong][:4], expected[wrong][:4])


EXACT: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "max": np.maximum,
    "larger": lambda x, y: np.where(x > y, x, y),
    "add_three": lambda x, y: x + 3,
}


@pytest.mark.parametrize(("target", "lanes"), [("cuda:sm_80", 1), ("hip:gfx942", 2), ("cpu", 4)])
def test_arithmetic_is_rounded_after_each_operation(target: str, lanes: int) -> None:
    count = 512
    program = arithmetic(target, lanes, count)
    values = {p.name: samples(p.dtype, count, rng(i)) for i, p in enumerate(program.parameters) if p.access == "in"}
    results = simulate(program, values, count=False).outputs
    for name in {p.dtype for p in program.parameters}:
        x, y = values[f"X_{name}"], values[f"Y_{name}"]
        for label in FUNCTIONS:
            found = results[f"B_{name}_{label}"]
            if name in INTEGERS:
                exact = EXACT[label](x.astype(object), y.astype(object))
                expected, _ = converted(np.asarray(exact, object), "whole", name)
            else:
                with np.errstate(all="ignore"):
                    expected = EXACT[label](x.astype(np.float64), y.astype(np.float64))
                    expected = expected if label == "larger" else rounded(expected, name)  # choosing changes no bits
            wrong = ~same(found, expected)
            assert not wrong.any(), (name, label, x[wrong][:4], y[wrong][:4], found[wrong][:4], expected[wrong][:4])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "float8_e5m2"])
def test_functions_of_narrow_floats_are_those_of_float32(dtype: str) -> None:
    values = samples(dtype, 256, rng(1))
    for function, exact in ((tirx.exp, np.exp), (tirx.sqrt, np.sqrt), (tirx.tanh, np.tanh)):
        found = simulate(elementwise("cuda:sm_80", [dtype], dtype, function), {"A0": values}).outputs["B"]
        with np.errstate(all="ignore"):
            expected = rounded(exact(values.astype(np.float32)).astype(np.float64), dtype)
        assert same(found, expected).all(), function


@pytest.mark.parametrize("dtype", [*FORMATS, "float64", *INTEGERS, "bool"])
def test_vectors_of_every_width_move_bits_unchanged(dtype: str) -> None:
    size = DATA_TYPES[dtype].size
    values = samples(dtype, 512, rng(2))
    for width in (1, 2, 4, 8, 16):
        if width < size:
            continue
        result = simulate(through_shared("cuda:sm_80", dtype, width // size, 512), {"A0": values})
        assert np.array_equal(result.outputs["B"].view(np.uint8), values.view(np.uint8)), width
        assert {c.width_bits for c in result.counts} == {8 * width}
        assert all(c.bytes == 512 * size for c in result.counts)


def every_instruction() -> list[tuple[str, MatrixInstruction]]:
    """Each instruction with the first target that has it."""
    targets = ["cuda:sm_75", "cuda:sm_80", "cuda:sm_89", "cuda:sm_90a", "hip:gfx90a", "hip:gfx942", "hip:gfx950"]
    found: dict[tuple[str, tuple[int, ...]], tuple[str, MatrixInstruction]] = {}
    for target in targets:
        for each in resolve(target).instruction_set:
            found.setdefault((each.name, each.modifiers), (target, each))
    return list(found.values())


EVERY = every_instruction()


def operand(dtype: str, shape: tuple[int, int], seed: int) -> Any:
    """Random elements: all values of an integer type, floats of moderate size."""
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return rng(seed).integers(limits.min, limits.max, shape, endpoint=True, dtype=numpy_dtype(dtype))
    return rng(seed).standard_normal(shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize(("target", "each"), EVERY, ids=[f"{e.name}{e.modifiers or ''}" for _, e in EVERY])
def test_every_matrix_instruction(target: str, each: MatrixInstruction) -> None:
    """d = a b + c: integers exactly, wrapping; floats to the precision of the accumulator."""
    a, b = operand(each.a_dtype, (each.m, each.k), 1), operand(each.b_dtype, (each.k, each.n), 2)
    c = operand(each.c_dtype, (each.m, each.n), 3)
    found = simulate(matrices(target, [each]), {"A0": a, "B0": b, "C0": c}).outputs["D0"]
    if each.c_dtype == "int32":
        c[::2] = np.int32(2**31 - 1)  # some sums wrap
        found = simulate(matrices(target, [each]), {"A0": a, "B0": b, "C0": c}).outputs["D0"]
        total = a.astype(object) @ b.astype(object) + c.astype(object)
        wrapped = np.array([(int(v) + 2**31) % 2**32 - 2**31 for v in total.reshape(-1)]).reshape(total.shape)
        assert (total >= 2**31).any()
        assert np.array_equal(found, wrapped)
        return
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if each.lossy:
        mask = np.uint32(0xFFFFE000)
        wide_a, wide_b = ((x.view(np.uint32) & mask).view(np.float32).astype(np.float64) for x in (a, b))
        assert np.abs(wide_a - a).max() > 0
    error = np.abs(found.astype(np.float64) - (wide_a @ wide_b + c.astype(np.float64)))
    bound = np.abs(wide_a) @ np.abs(wide_b) + np.abs(c.astype(np.float64))
    assert (error <= bound * 2.0 ** {"float64": -52, "float32": -24, "float16": -11}[each.c_dtype]).all()


def test_operands_of_a_wrong_type_are_refused() -> None:
    """An accumulator register of a wrong type, unknown modifiers, an instruction that the target lacks."""
    bf16 = next(e for e in resolve("cuda:sm_80").instruction_set if e.a_dtype == "bfloat16")
    with pytest.raises(
        SimulationError, match=r"target cuda:sm_75 has no matrix instruction mma.*nearest are: mma\.sync"
    ):
        simulate(matrices("cuda:sm_75", [bf16]), _zeros(bf16))
    scaled = next(e for e in resolve("hip:gfx950").instruction_set if e.modifiers[:2] == (1, 0))
    with pytest.raises(
        SimulationError, match=r"with modifiers \(2, 0, 0, 0, 0, 0\): known are \(0, 0, 0, 0, 0, 0\) or"
    ):
        simulate(matrices("hip:gfx950", [replace(scaled, modifiers=(2, 0, 0, 0, 0, 0))]), _zeros(scaled))
    wrong = replace(scaled, a_operand="float32x8")
    with pytest.raises(SimulationError, match="takes int32x8 for a"):
        simulate(matrices("hip:gfx950", [wrong]), _zeros(scaled))


def _zeros(each: MatrixInstruction) -> dict[str, Any]:
    shapes = {"A0": (each.a_dtype, (each.m, each.k)), "B0": (each.b_dtype, (each.k, each.n))}
    shapes["C0"] = (each.c_dtype, (each.m, each.n))
    return {name: np.zeros(shape, numpy_dtype(dtype)) for name, (dtype, shape) in shapes.items()}


def test_unwritten_registers_and_tiles_are_poison_in_narrow_floats() -> None:
    for dtype in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        b = Build("cuda:sm_80", threads=64)
        out = b.parameter("B", "float32", (128,), "out")
        tile, held = b.shared("tile", dtype, 64), b.local("held", dtype, 1)
        body = [mark(2)]
        for i, value in enumerate((load(tile, b.thread), held[0])):
            body.append(store(out, tirx.Cast("float32", value), b.thread + 64 * i))
        assert np.isnan(simulate(b.program(*body), {}).outputs["B"]).all(), dtype


def test_names_of_types() -> None:
    assert tvm_name("float8_e4m3", 4) == "float8_e4m3fnx4"
