"""Operations and least bytes of kernels with runtime dimensions are those of the kernel with numbers in their place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tilelang_min as tilelang
import tilelang_min.language as T
from tilelang_min.analysis.work import bytes_min, flops, work_terms
from tilelang_min.errors import BundleError, LaunchError
from tilelang_min.frontend import parse
from tilelang_min.program.sizes import evaluate
from tilelang_min.program.work import WorkTerm, flops_at, points_of

KERNELS = Path(__file__).parents[3] / "workloads" / "kernels"


def prim_func(module: str, name: str, **values: Any) -> Any:
    if str(KERNELS) not in sys.path:
        sys.path.insert(0, str(KERNELS))
    return getattr(__import__(module), name).prim_func(**values)


@pytest.mark.parametrize(
    ("module", "name", "constants", "launches"),
    [
        ("gemm", "gemm", {"N": 200, "K": 100}, [{"M": 1}, {"M": 7}, {"M": 1000}]),
        ("gemm", "gemm", {}, [{"M": 1, "N": 1, "K": 1}, {"M": 130, "N": 70, "K": 33}]),
        ("softmax", "online", {}, [{"M": 9, "N": 700}]),
        ("layernorm", "layernorm", {"N": 100}, [{"M": 9}]),
        (
            "attention",
            "attention",
            {"batch": 1, "heads": 2, "dim": 32, "causal": True},
            [{"seq_len": 1}, {"seq_len": 333}],
        ),
        ("reductions", "column_sums", {}, [{"M": 90, "N": 70}]),
        ("fused", "bias_gelu", {"K": 64}, [{"M": 90, "N": 70}]),
        ("matmul", "naive", {}, [{"M": 33, "N": 34, "K": 35}]),
        ("atomics", "split_k", {"N": 64, "K": 64}, [{"M": 300}]),
        ("transpose", "transpose", {"N": 64}, [{"M": 300}]),
    ],
)
def test_as_with_numbers(module: str, name: str, constants: dict[str, Any], launches: list[dict[str, int]]) -> None:
    sized = parse(prim_func(module, name, **constants, **{size: T.dynamic(size) for size in launches[0]}))
    stored = json.loads(json.dumps([term.to_json() for term in work_terms(sized)]))
    terms, least = [WorkTerm.from_json(record) for record in stored], bytes_min(sized)
    for sizes in launches:
        fixed = parse(prim_func(module, name, **constants, **sizes))
        assert flops_at(terms, sizes) == flops(fixed)
        assert evaluate(least, sizes) == bytes_min(fixed)


@pytest.mark.parametrize("name", ["x", "x0", "xx"])
def test_a_loop_whose_length_depends_on_the_block_and_on_sizes(name: str) -> None:
    def made(N: Any) -> Any:
        @T.prim_func
        def triangle(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(N, threads=32) as bx:
                acc = T.alloc_fragment((1,), "float32")
                T.clear(acc)
                for k in T.serial(bx, N):
                    if k % 3 == 0:
                        for i in T.Parallel(1):
                            acc[i] = acc[i] + A[k]
                for i in T.Parallel(1):
                    B[bx + i] = acc[i]

        return parse(triangle)

    terms = work_terms(made(T.dynamic(name)))
    for size in (1, 2, 50):
        assert flops_at(terms, {name: size}) == flops(made(size))
    assert flops_at(terms, {name: 50}) == {"float32": sum(k + 1 for k in range(50) if k % 3 == 0)}


def test_what_a_bundle_says_for_sizes(tmp_path: Path) -> None:
    kernel = tilelang.compile(
        prim_func("gemm", "gemm", M=T.dynamic("m"), N=64, K=32, block_M=32, block_N=32, block_K=32), "cpu"
    )
    kernel.save(tmp_path / "k.tlk")
    loaded = tilelang.load(tmp_path / "k.tlk")
    assert loaded.metadata.flops is None
    metadata = loaded.metadata_for({"m": 100})
    assert metadata.flops == {"float16": 2 * 100 * 64 * 32}
    assert metadata.bytes_min == 2 * (100 * 32 + 32 * 64 + 100 * 64)
    assert metadata.grid == loaded.grid_for({"m": 100})
    with pytest.raises(LaunchError, match="how large the runtime dimension m"):
        loaded.metadata_for({})
    del loaded.bundle.record["work"]  # as an earlier version wrote it
    assert loaded.metadata_for({"m": 100}).flops is None


@pytest.mark.parametrize("text", ["__import__('os')", "m.real", "m ** 2", "m[0]", "q", "1 <", "f(m, m)", "m < 1 < 2"])
def test_nothing_but_such_expressions_is_evaluated(text: str) -> None:
    with pytest.raises(BundleError, match="is no condition or extent"):
        points_of(WorkTerm({"float32": 1}, (("i", "0", "m"),), (text,)), {"m": 4})


def test_what_is_too_large_to_enumerate_counts_whole() -> None:
    box = (("i", "0", "m"), ("j", "i", "m"))
    assert points_of(WorkTerm({}, box, ()), {"m": 5}) == 5 * 5
    large = (("i", "0", "m"), ("j", "0", "m"))
    assert points_of(WorkTerm({}, large, ("i + j < 3",)), {"m": 10}) == 6
    assert points_of(WorkTerm({}, large, ("i + j < 3",)), {"m": 10_000}) == 10_000**2


def below_the_diagonal(rows: Any, block: int = 16, depth: int = 32) -> Any:
    """Products of the blocks on and below the diagonal, each masked."""

    @T.prim_func
    def main(
        Q: T.Tensor((rows, depth), "float32"),
        K: T.Tensor((rows, depth), "float32"),
        C: T.Tensor((rows, depth), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, block), threads=64) as bx:
            q = T.alloc_shared((block, depth), "float32")
            k = T.alloc_shared((block, depth), "float32")
            s = T.alloc_fragment((block, block), "float32")
            p = T.alloc_shared((block, block), "float32")
            o = T.alloc_fragment((block, depth), "float32")
            T.copy(Q[bx * block, 0], q)
            T.clear(o)
            for j in T.serial(bx + 1):
                T.copy(K[j * block, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                T.copy(s, p)
                T.gemm(p, k, o)
            T.copy(o, C[bx * block, 0])

    return main


@pytest.mark.parametrize("rows", [4096, 4090])
def test_long_sequences_are_counted_exactly(rows: int) -> None:
    """Pairs of blocks and of their rows are too many to look at one by one.

    Of the second product the last rows count whole: nothing that is copied fills them.
    """
    whole, ragged = divmod(rows, 16)
    pairs = whole * (whole + 1) // 2 * 256
    expected = {"float32": (pairs + ragged * rows + pairs + (16 if ragged else 0) * rows) * 2 * 32}
    fixed = tilelang.compile(below_the_diagonal(rows), "cpu", cache=False)
    assert fixed.metadata.flops == expected
    sized = tilelang.compile(below_the_diagonal(T.dynamic("m")), "cpu", cache=False)
    assert sized.metadata_for({"m": rows}).flops == expected
