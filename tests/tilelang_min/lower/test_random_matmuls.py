"""Matrix products with random shapes, tiles, stages and transposes, against float64 on all elements."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_matmul import matmul, operands, product
from kernel_runs import assert_close, run

EXAMPLES = int(os.environ.get("TILELANG_TEST_EXAMPLES", "24"))
"""Examples a test; TILELANG_TEST_EXAMPLES=500 for a long run."""

SHAPES = st.integers(1, 70)
TILES = st.sampled_from([1, 3, 8, 12, 16, 24, 32, 48, 64])


@st.composite
def products(draw: Any) -> tuple[tuple[int, int, int], dict[str, Any]]:
    """Extents of a product and options of ``matmul``."""
    options = {
        "bm": draw(TILES),
        "bn": draw(TILES),
        "bk": draw(TILES),
        "stages": draw(st.integers(1, 4)),
        "threads": draw(st.sampled_from([64, 128, 192, 256])),
        "dtype": draw(st.sampled_from(["float16", "float32"])),
        "transpose_a": draw(st.booleans()),
        "transpose_b": draw(st.booleans()),
        "pad": draw(st.sampled_from([0, 0, 1, 4, 8])),
        "out": draw(st.sampled_from(["float32", "float32", "float16"])),
    }
    return (draw(SHAPES), draw(SHAPES), draw(SHAPES)), options


def check_product(target: str, extents: tuple[int, int, int], options: dict[str, Any]) -> None:
    m, n, k = extents
    transposes = options["transpose_a"], options["transpose_b"]
    a, b = operands(m, n, k, options["dtype"], *transposes)
    c = np.full((m, n), np.nan, options["out"])
    made = run(matmul(m, n, k, **options), target, [a, b, c])["C"]
    assert_close(made, product(a, b, *transposes), f"{extents} {options} on {target}")


QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@QUICK
@given(products())
def test_on_nvidia(case: tuple[tuple[int, int, int], dict[str, Any]]) -> None:
    check_product("cuda:sm_80", *case)


@QUICK
@given(products())
def test_on_amd(case: tuple[tuple[int, int, int], dict[str, Any]]) -> None:
    check_product("hip:gfx942", *case)


@QUICK
@given(products())
def test_on_the_cpu(case: tuple[tuple[int, int, int], dict[str, Any]]) -> None:
    check_product("cpu", *case)
