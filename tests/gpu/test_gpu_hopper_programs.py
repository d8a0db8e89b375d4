"""Hand-written thread programs of Hopper's instructions: a real GPU and the simulator give the same results.

Boxes, barriers, clusters and integers bit by bit, floats within the rounding of their sums.  Needs TVM beside the GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_min.program.dtypes import numpy_dtype
from tilelang_min.runtime import cuda, cuda_launch

pytestmark = pytest.mark.gpu
PROGRAMS = Path(__file__).parents[1] / "tilelang_min" / "simulate"


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    pytest.importorskip("tvm")
    if cuda.device_info().compute_capability != (9, 0):
        pytest.skip("needs compute capability 9.0")
    sys.path.insert(0, str(PROGRAMS))
    yield
    sys.path.remove(str(PROGRAMS))


def same(program: Any, arrays: dict[str, Any], tolerance: float = 0.0) -> None:
    """Runs a program on the GPU and in the simulator; outputs may differ by ``tolerance`` of the largest element."""
    from tilelang_min.codegen.nvidia import generate
    from tilelang_min.simulate import simulate

    expected = simulate(program, arrays).outputs
    made = generate(program)
    names = [p.name for p in program.parameters]
    launcher = cuda_launch.load(
        made.binary,
        made.symbol,
        shared_bytes_dynamic=program.shared_bytes_dynamic,
        cluster=program.cluster,
        tensor_maps=program.tensor_maps,
        parameters=names,
    )
    with ExitStack() as cleanup:
        buffers = {}
        for parameter in program.parameters:
            dtype = numpy_dtype(parameter.dtype)
            given = arrays.get(parameter.name)
            if given is None:
                given = np.full(parameter.elements * dtype.itemsize, 0x7F, np.uint8)
            buffers[parameter.name] = cleanup.enter_context(cuda.DeviceBuffer.from_numpy(given))
        launcher([buffers[name].pointer for name in names], grid=program.grid, threads=program.threads)
        for name, wanted in expected.items():
            bits = np.empty(buffers[name].nbytes, np.uint8)
            buffers[name].read(bits)
            found = bits.view(wanted.dtype).reshape(wanted.shape).astype(np.float64)
            wanted = wanted.astype(np.float64)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.nanmax(np.abs(wanted)))
    launcher.close()


def values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    if "int" in dtype:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(numpy_dtype(dtype))


FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
PRODUCTS = [
    *(("float16", "float16", {"swizzle": swizzle}) for swizzle in (0, 32, 64, 128)),
    *(("float16", "float16", {"swizzle": s, "n": 128, "a_major": "mn", "b_major": "mn"}) for s in (0, 32, 64, 128)),
    *(("float32", "float32", {"swizzle": swizzle}) for swizzle in (0, 128)),
    *((a, b, {"registers": r}) for a in FLOAT8 for b in FLOAT8 for r in (False, True)),
    *((a, b, {"result": "s32", "registers": r}) for a in ("int8", "uint8") for b in ("int8", "uint8") for r in (0, 1)),
    *((dtype, dtype, {"registers": True}) for dtype in ("float16", "bfloat16", "float32")),
    ("float16", "float16", {"result": "f16"}),
    ("float16", "float16", {"sign": -1}),
    ("float16", "float16", {"accumulate": False}),
    *(("bfloat16", "bfloat16", {"n": n}) for n in (8, 120, 256)),
]


@pytest.mark.parametrize(("a", "b", "how"), PRODUCTS)
def test_products(a: str, b: str, how: dict[str, Any]) -> None:
    from hopper_programs import single_product

    rng = np.random.default_rng(1)
    k, n = 128 // numpy_dtype(a).itemsize, how.get("n", 16)
    first, second = values(rng, a, (64, k)), values(rng, b, (n, k))
    arrays = {
        "A": first if how.get("a_major", "k") == "k" else np.ascontiguousarray(first.T),
        "B": second if how.get("b_major", "k") == "k" else np.ascontiguousarray(second.T),
    }
    same(single_product(a, b, **how), arrays, 0.0 if "int" in a else 2e-3)


@pytest.mark.parametrize("transposed", [True, False])
def test_ring(transposed: bool) -> None:
    from hopper_programs import ring_gemm

    rng = np.random.default_rng(2)
    a, b = values(rng, "float16", (200, 136)), values(rng, "float16", (136, 104))
    arrays = {"A": a, "B": b if transposed else np.ascontiguousarray(b.T)}
    same(ring_gemm(200, 104, 136, stages=3, transposed_b=transposed), arrays, 2e-3)


@pytest.mark.parametrize(
    ("shape", "box", "at", "how"),
    [
        ((100,), (32,), (80,), {}),
        ((20, 64), (8, 32), (16, 48), {}),
        ((20, 64), (8, 32), (16, 16), {"reduction": "add"}),
        ((3, 5, 8), (2, 2, 8), (2, 4, 4), {}),
        ((2, 3, 4, 8), (1, 2, 3, 4), (1, 2, 2, 4), {}),
        ((2, 2, 3, 2, 8), (2, 1, 2, 2, 8), (1, 1, 2, 0, 0), {}),
        *(((16, s // 4), (16, s // 4), (0, 0), {"swizzle": s}) for s in (32, 64, 128)),
    ],
)
def test_boxes(shape: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...], how: dict[str, Any]) -> None:
    from test_hopper_copies import double_box

    a = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    same(double_box(shape, box, at, **how), {"A": a, "B": -a})


def test_negative_corners_barriers_and_clusters() -> None:
    from test_hopper_barriers import A, hand_over, share
    from test_hopper_blocks import persistent
    from test_hopper_copies import negative_load

    same(negative_load(), {"A": np.arange(1, 20 * 64 + 1, dtype=np.float32).reshape(20, 64)})
    same(hand_over(), {})
    same(share(), {"A": A})
    same(persistent(), {"A": values(np.random.default_rng(3), "float32", (120, 100))})
