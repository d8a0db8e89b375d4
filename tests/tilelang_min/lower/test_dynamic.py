"""``T.dynamic``: one kernel for every size, right results, and errors that say which tensors disagree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_dynamic import matmul, matmul_of_all, scaled
from kernel_runs import assert_close
from test_workload_kernels import load

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.errors import BundleError, LanguageError, LaunchError, ShapeError
from tilelang_min.program.sizes import evaluate

TARGETS = ["cpu", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]


def product(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(m)
    a, b = ((chance.standard_normal(shape) / 2).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b, np.full((m, n), np.nan, np.float32)


def result(kernel: tilelang.Kernel, *arrays: Any) -> Any:
    """The last parameter after a launch on the CPU, or simulated."""
    if kernel.target.kind == "cpu":
        kernel(*arrays)
        return arrays[-1]
    return kernel.simulate(*arrays, count=False).outputs[kernel.parameters[-1].name]


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_of_any_number_of_rows(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel, one entry of the cache, for all of them; it survives saving."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    kernel = tilelang.compile(matmul(72, 48), target)
    assert kernel.sizes == ("m",)
    assert kernel.parameters[0].shape == ("m", 48)
    assert kernel.bundle_record()["grid"] == [2, "(m + 63) // 64", 1]
    assert kernel.metadata.grid == (2, "(m + 63) // 64", 1)
    assert kernel.metadata.flops is None
    assert "(m + 63) // 64" in kernel.explain()
    kernel.save(tmp_path / "kernel.tlk")
    again = tilelang.load(tmp_path / "kernel.tlk")
    for m in (1, 7, 128, 1000 if target == "cpu" else 200):
        a, b, c = product(m, 72, 48)
        assert_close(result(again if m == 7 else kernel, a, b, c), a.astype(np.float64) @ b, f"m = {m}")
    assert tilelang.compile(matmul(72, 48), target).bundle_record()["hash"] == kernel.bundle_record()["hash"]
    if target == "cuda:sm_80":
        assert "cp.async" in kernel.source()
        assert "mma.sync" in kernel.source()
    if target == "cuda:sm_90a":
        assert [item.shape for item in kernel.tensor_maps] == [("m", 48), (48, 72), ("m", 72)]
        assert "wgmma" in kernel.source()


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
def test_every_dimension_at_launch(target: str) -> None:
    kernel = tilelang.compile(matmul_of_all(), target, cache=False)
    assert kernel.sizes == ("m", "k", "n")
    for m, n, k in ((1, 1, 1), (33, 40, 70), (64, 96, 32)):
        a, b, c = product(m, n, k)
        assert_close(result(kernel, a, b, c), a.astype(np.float64) @ b, f"{m} x {n} x {k}")


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
def test_vectors_of_any_length(target: str) -> None:
    kernel = tilelang.compile(scaled(), target, cache=False)
    for n in (1, 255, 512, 1000):
        a = np.arange(n, dtype=np.float32)
        b, length = np.full(n, np.nan, np.float32), np.zeros(n, np.int32)
        if target == "cpu":
            kernel(a, b, length)
        else:
            made = kernel.simulate(a, b, length).outputs
            b, length = made["B"], made["L"]
        np.testing.assert_array_equal(b, 2 * a)
        np.testing.assert_array_equal(length, n - np.arange(n))


def test_sizes_are_computed_in_front_of_the_kernel_too() -> None:
    """What a factory computes of a runtime dimension is what its kernel would."""
    m = T.dynamic("m")
    blocks, rest = (2 * m + 3) // 4 - m % 2, 100 - m

    @T.prim_func
    def main(A: T.Tensor((m,), "int32")):
        with T.Kernel(blocks, threads=32) as bx:
            A[bx] = rest

    kernel = tilelang.compile(main, "cpu", cache=False)
    for size in (1, 2, 9, 40):
        expected = (2 * size + 3) // 4 - size % 2
        assert kernel.grid_for({"m": size}) == (expected, 1, 1)
        array = np.zeros(size, np.int32)
        kernel(array)
        np.testing.assert_array_equal(array, np.where(np.arange(size) < expected, 100 - size, 0))


def test_counts_are_those_of_a_kernel_compiled_for_the_size() -> None:
    """Of a product whose rows are known at launch, at 192 of them; the accesses are as wide."""
    kernel = tilelang.compile(matmul(64, 64), "cuda:sm_80", cache=False)
    with pytest.raises(LaunchError, match="nothing says how large the runtime dimension m"):
        kernel.analyse()
    loads = {
        (count.buffer, count.width_bits): count.sectors
        for count in kernel.analyse(sizes={"m": 192}).counts
        if count.space == "global"
    }
    assert loads == {("A", 128): 192 * 64 * 2 // 32, ("B", 128): 3 * 64 * 64 * 2 // 32, ("C", 64): 192 * 64 * 4 // 32}


def test_a_factory_takes_a_runtime_dimension_in_place_of_a_number() -> None:
    """The product of ``workloads/`` as it stands; keys tell names of dimensions and numbers apart."""
    factory = load("gemm").gemm
    options: dict[str, Any] = {"block_M": 64, "block_N": 64, "block_K": 32, "threads": 128}
    keys = set()
    for rows in (T.dynamic("m"), T.dynamic("rows"), 64):
        kernel = factory.for_target("cpu")(rows, 64, 40, **options)
        keys.add(kernel.bundle_record()["hash"])
        a, b, _ = product(64, 64, 40)
        c = np.full((64, 64), np.nan, np.float16)
        kernel(a, b, c)
        assert_close(c, a.astype(np.float64) @ b)
    assert len(keys) == 3


def test_an_empty_tensor_launches_nothing() -> None:
    kernel = tilelang.compile(matmul(64, 64), "cpu", cache=False)
    kernel(*product(0, 64, 64))
    kernel.bind(*product(0, 64, 64))()


def test_outputs_are_allocated_by_the_sizes_of_the_inputs() -> None:
    kernel = tilelang.compile(matmul(64, 64), "cpu", out_idx=[2], cache=False)
    a, b, _ = product(5, 64, 64)
    assert_close(kernel(a, b), a.astype(np.float64) @ b)
    again = np.zeros((5, 64), np.float32)
    tilelang.compile(matmul(64, 64), "cpu", cache=False).bind(a, b, again)()
    assert_close(again, a.astype(np.float64) @ b)


def test_tensors_that_disagree() -> None:
    kernel = tilelang.compile(matmul(64, 64), "cpu", cache=False)
    a, b, _ = product(7, 64, 64)
    with pytest.raises(LaunchError, match="m is 7 in dimension 0 of A, but 8 in dimension 0 of C"):
        kernel(a, b, np.zeros((8, 64), np.float32))
    with pytest.raises(LaunchError, match=r"parameter A must have shape \(7, 64\), the tensor has \(7, 32\)"):
        kernel(np.zeros((7, 32), np.float16), b, np.zeros((7, 64), np.float32))
    with pytest.raises(LaunchError, match="takes 3 tensors"):
        kernel(a, b)
    with pytest.raises(LaunchError, match="the grid of kernel matmul_of_m depends on m"):
        _ = kernel.grid
    assert kernel.grid_for({"m": 129}) == (1, 3, 1)
    with pytest.raises(LaunchError, match="how large the runtime dimension m of"):
        kernel.grid_for({"q": 3})
    with pytest.raises(LaunchError, match="how large the runtime dimension m of"):
        kernel.suggestions()


def test_mistakes_in_kernels() -> None:
    m: Any = T.dynamic("m")
    other: Any = T.dynamic("q")

    @T.prim_func
    def unbound(A: T.Tensor((64,), "float32")):
        with T.Kernel(T.ceildiv(m, 64), threads=64) as bx:
            for i in T.Parallel(64):
                A[i] = bx

    @T.prim_func
    def whole(A: T.Tensor((m,), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "float32")
            T.copy(A, tile)

    @T.prim_func
    def tile_of_it(A: T.Tensor((m,), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((m,), "float32")
            T.copy(A[0], tile)

    @T.prim_func
    def two_things(q: T.Tensor((other,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                q[i] = 0

    for kernel, kind, message in (
        (unbound, ShapeError, "nothing says how large the runtime dimension m is"),
        (whole, ShapeError, "A as a whole has a size that is known at launch alone"),
        (tile_of_it, LanguageError, "must be an integer known at compile time"),
        (two_things, LanguageError, "'q' is a tensor and a runtime dimension"),
    ):
        with pytest.raises(kind, match=message):
            tilelang.compile(kernel, "cpu", cache=False)
    with pytest.raises(LanguageError, match="'2m' is no name"):
        T.dynamic("2m")
    with pytest.raises(LanguageError, match="runtime dimensions are int32"):
        T.dynamic("m", "int64")


def test_the_text_of_a_grid_is_arithmetic_alone() -> None:
    assert evaluate("max((m + 63) // 64, 2) * 3 % 7 - 1", {"m": 129}) == 1
    for text in ("__import__('os')", "m.real", "m if m else 1", "unknown", "min()", "(m"):
        with pytest.raises(BundleError, match="is no extent of a grid"):
            evaluate(text, {"m": 1})


@pytest.mark.parametrize("name", ["for", "1m", "größe", "a-b"])
def test_names_of_runtime_dimensions(name: str) -> None:
    """They stand in C and in the text of a grid."""
    with pytest.raises(LanguageError, match=f"{name}' is no name") as caught:
        T.dynamic(name)
    assert "no word of Python" in (caught.value.remedy or "")
