"""Matrix products in upstream TileLang 0.1.15, for ``h200.py``: compiled here, run beside the others in the same process.

    python benchmarks/h200_tilelang.py BUNDLES         by an interpreter that has tilelang 0.1.15 and nvcc; needs no GPU

writes a library for each kernel to ``BUNDLES/tilelang`` (``JITKernel.export_library``), which TileLang's own runtime launches:
on the GPU ``h200.py`` needs the package ``apache-tvm-ffi`` and, named by ``TILELANG_RUNTIME``, the folder with the wheel's
libraries (and Z3's, which they need; ``LD_LIBRARY_PATH`` must name it too).  The kernels: the product with the tiles that its
examples and ours take; of few rows the transposed product and one by dot products; of up to 128 rows also a split along K with a
second kernel that adds up the parts.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "tilelang"
_TARGET = {"kind": "cuda", "arch": "sm_90a"}


def variants(row: dict[str, Any]) -> list[tuple[str, dict[str, int]]]:
    """The kernels to try for a row of ``h200.py``: kind, and what it takes."""

    def tile(
        kind: str, m: int, n: int, k: int, stages: int, threads: int, split: int = 1
    ) -> tuple[str, dict[str, int]]:
        return kind, {"bm": m, "bn": n, "bk": k, "stages": stages, "threads": threads, "split": split}

    m, n = row["M"], row["N"]
    if m <= 16:
        width = 8 if m <= 8 else 16
        found = [
            tile("few", width, 64, 128, 5, 128),
            tile("few", width, 64, 128, 10, 128),
            tile("few", width, 64, 256, 5, 128),
            tile("few", width, 128, 128, 5, 256),
        ]
        if m == 1:
            found += [
                tile("dots", 1, 4, 1024, 0, 128),
                tile("dots", 1, 8, 1024, 0, 256),
                tile("dots", 1, 2, 2048, 0, 128),
            ]
        return found
    if m <= 128:
        found = [
            tile("product", 128, 32, 128, 5, 256),
            tile("product", 128, 64, 64, 7, 256),
            tile("product", 128, 128, 64, 5, 256),
        ]
        split = 4 if n <= 4096 else 2
        if n <= 11008:
            found.append(tile("split", 128, 128, 64, 4, 256, split))
        return found
    found = [tile("product", 128, 256, 64, 4, 256), tile("product", 256, 128, 64, 4, 256)]
    if row["group"] == "square" and n < 8192:
        found += [tile("product", 128, 128, 64, 4, 256), tile("product", 128, 128, 64, 4, 128)]
    return found


def name_of(row: dict[str, Any], variant: tuple[str, dict[str, int]]) -> str:
    """Name of a library."""
    kind, sizes = variant
    layout = "nt" if row["transpose_B"] else "nn"
    numbers = "x".join(str(value) for value in sizes.values())
    return f"{row['dtype']}-{row['M']}x{row['N']}x{row['K']}-{layout}-{kind}-{numbers}"


# -- here ----------------------------------------------------------------------------------------------------------


def _product(row: dict[str, Any], bm: int, bn: int, bk: int, stages: int, threads: int, split: int) -> Any:
    import tilelang.language as T

    M, N, K, dtype, turned = row["M"], row["N"], row["K"], row["dtype"], row["transpose_B"]
    b_shape, b_tile = ((N, K), (bn, bk)) if turned else ((K, N), (bk, bn))

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            left = T.alloc_shared((bm, bk), dtype)
            right = T.alloc_shared(b_tile, dtype)
            total = T.alloc_fragment((bm, bn), "float32")
            T.use_swizzle(10)
            T.clear(total)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, ko * bk], left)
                if turned:
                    T.copy(B[bx * bn, ko * bk], right)
                else:
                    T.copy(B[ko * bk, bx * bn], right)
                T.gemm(left, right, total, transpose_B=turned)
            T.copy(total, C[by * bm, bx * bn])

    return main


def _few(row: dict[str, Any], bm: int, bn: int, bk: int, stages: int, threads: int, split: int) -> Any:
    import tilelang.language as T

    M, N, K, dtype = row["M"], row["N"], row["K"], row["dtype"]

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            left = T.alloc_shared((bm, bk), dtype)
            right = T.alloc_shared((bn, bk), dtype)
            total = T.alloc_fragment((bn, bm), "float32")
            T.clear(total)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, ko * bk], left)
                T.copy(B[bx * bn, ko * bk], right)
                T.gemm(right, left, total, transpose_B=True)
            for i, j in T.Parallel(bn, bm):
                if by * bm + j < M:
                    C[by * bm + j, bx * bn + i] = total[i, j]

    return main


def _dots(row: dict[str, Any], bm: int, bn: int, bk: int, stages: int, threads: int, split: int) -> Any:
    import tilelang.language as T

    N, K, dtype = row["N"], row["K"], row["dtype"]

    @T.prim_func
    def main(A: T.Tensor((1, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((1, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), threads=threads) as bx:
            sums = T.alloc_fragment((bn, bk), "float32")
            totals = T.alloc_fragment((bn,), "float32")
            T.clear(sums)
            for ko in T.serial(T.ceildiv(K, bk)):
                for i, k in T.Parallel(bn, bk):
                    if ko * bk + k < K:
                        left = T.cast(A[0, ko * bk + k], "float32")
                        sums[i, k] += left * T.cast(B[bx * bn + i, ko * bk + k], "float32")
            T.reduce_sum(sums, totals, dim=1)
            for i in T.Parallel(bn):
                C[0, bx * bn + i] = totals[i]

    return main


def _split(row: dict[str, Any], bm: int, bn: int, bk: int, stages: int, threads: int, split: int) -> Any:
    import tilelang.language as T

    M, N, K, dtype = row["M"], row["N"], row["K"], row["dtype"]
    part = -(-K // (bk * split)) * bk

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        P: T.Tensor((split, M, N), "float32"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), split, threads=threads) as (bx, by, bz):
            left = T.alloc_shared((bm, bk), dtype)
            right = T.alloc_shared((bn, bk), dtype)
            total = T.alloc_fragment((bm, bn), "float32")
            T.clear(total)
            for ko in T.Pipelined(T.ceildiv(part, bk), num_stages=stages):
                T.copy(A[by * bm, bz * part + ko * bk], left)
                T.copy(B[bx * bn, bz * part + ko * bk], right)
                T.gemm(left, right, total, transpose_B=True)
            T.copy(total, P[bz, by * bm, bx * bn])
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 8), threads=128) as (bx, by):
            sums = T.alloc_fragment((8, 128), "float32")
            T.clear(sums)
            for number in T.serial(split):
                for i, j in T.Parallel(8, 128):
                    sums[i, j] += P[number, by * 8 + i, bx * 128 + j]
            T.copy(sums, C[by * 8, bx * 128])

    return main


_MAKERS = {"product": _product, "few": _few, "dots": _dots, "split": _split}


def compile_all(bundles: Path) -> int:
    """A library for each variant of each row; what does not compile is listed with its error."""
    import tilelang
    from h200 import products

    out = bundles / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    refused: dict[str, str] = {}
    for row in products():
        for variant in variants(row):
            name = name_of(row, variant)
            if (out / f"{name}.so").exists():
                continue
            try:
                kernel = tilelang.compile(_MAKERS[variant[0]](row, **variant[1]), target=_TARGET)
                kernel.export_library(str(out / f"{name}.so"))
            except Exception as error:  # whatever a compiler may say: the others are tried all the same
                refused[name] = f"{type(error).__name__}: {error}"[:2000]
                print(f"REFUSED {name}: {refused[name][:300]}", flush=True)
                continue
            print(name, flush=True)
    (out / "refused.json").write_text(json.dumps({"tilelang": tilelang.__version__, "refused": refused}, indent=1))
    return 0


# -- on the GPU ----------------------------------------------------------------------------------------------------


def candidates(bundles: Path, row: dict[str, Any], a: Any, b: Any, out: Any) -> dict[str, Callable[[], Any]]:
    """A function for each library of a row: it computes ``a @ b`` (``a @ b.T``) into ``out``.

    Nothing where TileLang's runtime is absent.
    """
    if "TILELANG_RUNTIME" not in os.environ:
        return {}
    import ctypes

    import torch
    import tvm_ffi

    for library in ("libtvm_runtime.so", "libtilelang.so"):  # the second makes tensor maps
        ctypes.CDLL(str(Path(os.environ["TILELANG_RUNTIME"]) / library), mode=ctypes.RTLD_GLOBAL)
    found: dict[str, Callable[[], Any]] = {}
    for variant in variants(row):
        path = bundles / FOLDER / f"{name_of(row, variant)}.so"
        if not path.exists():
            continue
        function = tvm_ffi.load_module(str(path))["main"]
        tensors = [a, b, out]
        if variant[0] == "split":
            shape = (variant[1]["split"], *out.shape)
            tensors.insert(2, torch.empty(shape, dtype=torch.float32, device=out.device))
        label = f"TileLang-{variant[0]}-{'x'.join(str(value) for value in variant[1].values())}"
        found[label] = lambda function=function, tensors=tuple(tensors): function(*tensors)
    return found


def main() -> int:
    """Compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", type=Path)
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    return compile_all(parser.parse_args().bundles)


if __name__ == "__main__":
    sys.exit(main())
