"""Running a kernel for a test: compiled and launched on the CPU, lowered and simulated for GPUs, or launched there too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilelang_min as tilelang
from tilelang_min.driver.build import thread_program
from tilelang_min.language import PrimFunc
from tilelang_min.program import ThreadProgram
from tilelang_min.simulate import simulate

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "int32": 0.0}
"""Largest difference from float64, relative to the largest expected value."""

LAUNCHED: dict[str, dict[str, Any]] = {"cpu": {}}
"""Targets whose kernels are launched, with options to compile them with; ``tests/gpu`` adds that of the GPU at hand."""


def run(kernel: PrimFunc, target: str, arrays: Sequence[Any], blocks: Sequence[Any] | None = None) -> dict[str, Any]:
    """What ``kernel`` leaves in its output parameters, by name.  ``arrays`` are not changed."""
    if target in LAUNCHED:
        compiled = tilelang.compile(kernel, target, cache=False, options=LAUNCHED[target])
        copies = [array.copy() for array in arrays]
        compiled(*copies)
        return {p.name: copy for p, copy in zip(compiled.parameters, copies, strict=True) if p.access != "in"}
    program = thread_program(kernel, tilelang.targets.resolve(target))[2]
    named = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    return dict(simulate(program, named, blocks=blocks, count=False).outputs)


def assert_close(actual: Any, expected: Any, what: str = "", scale: float = 1.0) -> None:
    """``actual`` equals ``expected`` (float64) within the tolerance of its type; infinities must agree exactly."""
    expected = np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape} instead of {expected.shape}"
    finite = np.isfinite(expected)
    assert np.array_equal(actual[~finite].astype(np.float64), expected[~finite], equal_nan=True), f"{what}: infinities"
    limit = TOLERANCE[actual.dtype.name] * scale * max(1.0, float(np.abs(expected[finite]).max(initial=0.0)))
    difference = np.abs(actual.astype(np.float64)[finite] - expected[finite])
    wrong = ~(difference <= limit)  # not >, so that NaN is wrong
    if wrong.any():
        where = np.argwhere(finite)[np.flatnonzero(wrong)[0]]
        raise AssertionError(
            f"{what}: {int(wrong.sum())} of {expected.size} elements are wrong; at {tuple(int(i) for i in where)}: "
            f"{actual[tuple(where)]} instead of {expected[tuple(where)]} (limit {limit:.2g})"
        )


def check(
    kernel: PrimFunc, target: str, arrays: Sequence[Any], reference: Callable[..., Sequence[Any]], what: str = ""
) -> None:
    """All outputs of all blocks against ``reference``, which takes the arrays and gives the outputs in order."""
    outputs = run(kernel, target, arrays)
    expected = reference(*arrays)
    assert len(outputs) == len(expected)
    for (name, actual), wanted in zip(outputs.items(), expected, strict=True):
        assert_close(actual, wanted, f"{what} {name} on {target}")


def some_blocks(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The four corners of a grid and one block of its inside."""
    xs, ys = {0, grid[0] // 2, grid[0] - 1}, {0, grid[1] // 2, grid[1] - 1}
    corners = {(x, y, 0) for x in (0, grid[0] - 1) for y in (0, grid[1] - 1)}
    return sorted(corners | {(sorted(xs)[len(xs) // 2], sorted(ys)[len(ys) // 2], 0)})


def check_blocks(
    kernel: PrimFunc, target: str, arrays: Sequence[Any], expected: Any, tile: tuple[int, int], what: str = ""
) -> ThreadProgram:
    """The last parameter's tiles of corner and inner blocks against ``expected``; nothing else may be written.

    ``tile`` is what one block writes: rows along y, columns along x.
    """
    program = thread_program(kernel, tilelang.targets.resolve(target))[2]
    blocks = some_blocks(program.grid)
    named = {parameter.name: array for parameter, array in zip(program.parameters, arrays, strict=True)}
    name = program.parameters[-1].name
    result = simulate(program, named, blocks=blocks, count=False).outputs[name]
    inside = np.zeros(result.shape, bool)
    for x, y, _ in blocks:
        inside[y * tile[0] : (y + 1) * tile[0], x * tile[1] : (x + 1) * tile[1]] = True
    assert_close(result[inside], np.asarray(expected)[inside], f"{what} on {target}")
    assert np.isnan(result[~inside].astype(np.float64)).all(), f"{what} on {target}: blocks write beyond their tile"
    return program
