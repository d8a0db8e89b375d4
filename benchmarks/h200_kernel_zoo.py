"""Kernels whose memory counters are compared with an H200's: the factories and the list.

Many small kernels rather than few large ones: matrix products with every padding, transposed operands and ragged edges,
transposes, strided and shifted copies, broadcasts, shared tiles read in ways that conflict, and reductions.  Compiled, measured and
joined by ``h200_kernels.py``.  Shared tiles keep plain rows (``T.rows()``): conflicts are what is measured here.
"""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tilelang_min.language as T

THREADS = 128


def gemm(M, N, K, bm, bn, bk, pad_a, pad_b, stages, dtype, ta=False, tb=False, threads=THREADS):
    """``C = op(A) @ op(B)`` with rows of shared tiles padded by ``pad_a`` and ``pad_b`` elements."""
    a_shape, b_shape = ((K, M) if ta else (M, K)), ((N, K) if tb else (K, N))
    a_rows, a_columns = (bk, bm) if ta else (bm, bk)
    b_rows, b_columns = (bn, bk) if tb else (bk, bn)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((a_rows, a_columns + pad_a), dtype)
            B_shared = T.alloc_shared((b_rows, b_columns + pad_b), dtype)
            T.annotate_layout({A_shared: T.rows(), B_shared: T.rows()})
            C_local = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if ta:
                    T.copy(A[ko * bk, by * bm], A_shared[:, 0:a_columns])
                else:
                    T.copy(A[by * bm, ko * bk], A_shared[:, 0:a_columns])
                if tb:
                    T.copy(B[bx * bn, ko * bk], B_shared[:, 0:b_columns])
                else:
                    T.copy(B[ko * bk, bx * bn], B_shared[:, 0:b_columns])
                T.gemm(
                    A_shared[:, 0:a_columns],
                    B_shared[:, 0:b_columns],
                    C_local,
                    transpose_A=ta,
                    transpose_B=tb,
                )
            T.copy(C_local, C[by * bm, bx * bn])

    return main


def transpose_read(m, n, tm, tn, pad, dtype):
    """Rows into a shared tile, columns out of it."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n, m), dtype)):
        with T.Kernel(T.ceildiv(n, tn), T.ceildiv(m, tm), threads=THREADS) as (bx, by):
            S = T.alloc_shared((tm, tn + pad), dtype)
            T.annotate_layout({S: T.rows()})
            T.copy(A[by * tm, bx * tn], S[:, 0:tn])
            for i, j in T.Parallel(tn, tm):
                B[bx * tn + i, by * tm + j] = S[j, i]

    return main


def transpose_write(m, n, tm, tn, pad, dtype):
    """Columns into a shared tile, rows out of it."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n, m), dtype)):
        with T.Kernel(T.ceildiv(n, tn), T.ceildiv(m, tm), threads=THREADS) as (bx, by):
            S = T.alloc_shared((tn, tm + pad), dtype)
            T.annotate_layout({S: T.rows()})
            for i, j in T.Parallel(tm, tn):
                S[j, i] = A[by * tm + i, bx * tn + j]
            T.copy(S[:, 0:tm], B[bx * tn, by * tm])

    return main


def transpose_global(m, n, tm, tn, dtype):
    """No shared tile: columns of the tensor are read."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n, m), dtype)):
        with T.Kernel(T.ceildiv(m, tm), T.ceildiv(n, tn), threads=THREADS) as (bx, by):
            for i, j in T.Parallel(tn, tm):
                B[by * tn + i, bx * tm + j] = A[bx * tm + j, by * tn + i]

    return main


def strided(m, n, stride, offset, dtype):
    """Every ``stride``-th element of a row, from ``offset`` on."""

    @T.prim_func
    def main(A: T.Tensor((m, n * stride + offset), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 16), threads=THREADS) as (bx, by):
            for i, j in T.Parallel(16, 64):
                B[by * 16 + i, bx * 64 + j] = A[by * 16 + i, (bx * 64 + j) * stride + offset]

    return main


def shifted(n, tile, shift, dtype):
    """A window that starts ``shift`` elements early: reads beyond both ends are zero."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, tile), threads=THREADS) as bx:
            S = T.alloc_shared((tile,), dtype)
            T.copy(A[bx * tile - shift], S)
            T.copy(S, B[bx * tile])

    return main


def copy_through(m, n, tm, tn, pad, dtype, to):
    """Global, shared, registers of another type, global."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), to)):
        with T.Kernel(T.ceildiv(n, tn), T.ceildiv(m, tm), threads=THREADS) as (bx, by):
            S = T.alloc_shared((tm, tn + pad), dtype)
            T.annotate_layout({S: T.rows()})
            F = T.alloc_fragment((tm, tn), to)
            T.copy(A[by * tm, bx * tn], S[:, 0:tn])
            T.copy(S[:, 0:tn], F)
            T.copy(F, B[by * tm, bx * tn])

    return main


def broadcast(m, n, tm, tn, dtype):
    """``C[i, j] = A[i, j] * row[j] + column[i]``."""

    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype),
        row: T.Tensor((n,), dtype),
        column: T.Tensor((m,), dtype),
        C: T.Tensor((m, n), dtype),
    ):
        with T.Kernel(T.ceildiv(n, tn), T.ceildiv(m, tm), threads=THREADS) as (bx, by):
            for i, j in T.Parallel(tm, tn):
                C[by * tm + i, bx * tn + j] = A[by * tm + i, bx * tn + j] * row[bx * tn + j] + column[by * tm + i]

    return main


def shared_broadcast(m, n, tm, tn, dtype):
    """The same with row and column in shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype),
        row: T.Tensor((n,), dtype),
        column: T.Tensor((m,), dtype),
        C: T.Tensor((m, n), dtype),
    ):
        with T.Kernel(T.ceildiv(n, tn), T.ceildiv(m, tm), threads=THREADS) as (bx, by):
            R = T.alloc_shared((tn,), dtype)
            Q = T.alloc_shared((tm,), dtype)
            T.copy(row[bx * tn], R)
            T.copy(column[by * tm], Q)
            for i, j in T.Parallel(tm, tn):
                C[by * tm + i, bx * tn + j] = A[by * tm + i, bx * tn + j] * R[j] + Q[i]

    return main


def shared_stride(n, stride, dtype):
    """A row of shared memory read at a stride, all around."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 1024), threads=THREADS) as bx:
            S = T.alloc_shared((1024,), dtype)
            T.copy(A[bx * 1024], S)
            for i in T.Parallel(1024):
                B[bx * 1024 + i] = S[(i * stride) % 1024]

    return main


def shared_scatter(n, stride, dtype):
    """A row of shared memory written at a stride (odd, so that nothing is written twice)."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 1024), threads=THREADS) as bx:
            S = T.alloc_shared((1024,), dtype)
            for i in T.Parallel(1024):
                S[(i * stride) % 1024] = A[bx * 1024 + i]
            T.copy(S, B[bx * 1024])

    return main


def diagonal(n, tile, pad, dtype):
    """Diagonals of a shared tile."""

    @T.prim_func
    def main(A: T.Tensor((n, n), dtype), B: T.Tensor((n, n), dtype)):
        with T.Kernel(T.ceildiv(n, tile), T.ceildiv(n, tile), threads=THREADS) as (bx, by):
            S = T.alloc_shared((tile, tile + pad), dtype)
            T.annotate_layout({S: T.rows()})
            T.copy(A[by * tile, bx * tile], S[:, 0:tile])
            for i, j in T.Parallel(tile, tile):
                B[by * tile + i, bx * tile + j] = S[j, (i + j) % tile]

    return main


def swizzled(n, dtype):
    """A transpose through a tile whose columns are permuted by hand."""

    @T.prim_func
    def main(A: T.Tensor((n, n), dtype), B: T.Tensor((n, n), dtype)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(n, 32), threads=THREADS) as (bx, by):
            S = T.alloc_shared((32, 32), dtype)
            T.annotate_layout({S: T.rows()})
            for i, j in T.Parallel(32, 32):
                S[i, (i + j) % 32] = A[by * 32 + i, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                B[bx * 32 + i, by * 32 + j] = S[j, (i + j) % 32]

    return main


def stencil(m, n, dtype):
    """Five points of a shared tile with a border."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 16), threads=THREADS) as (bx, by):
            S = T.alloc_shared((18, 34), dtype)
            T.annotate_layout({S: T.rows()})
            T.copy(A[by * 16 - 1, bx * 32 - 1], S)
            for i, j in T.Parallel(16, 32):
                B[by * 16 + i, bx * 32 + j] = (
                    S[i, j + 1] + S[i + 2, j + 1] + S[i + 1, j] + S[i + 1, j + 2] - 4.0 * S[i + 1, j + 1]
                )

    return main


def row_sums(m, n, tm, pad, dtype):
    """Each thread walks along a row of a shared tile: all read one column at a time."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, tm), threads=THREADS) as bx:
            S = T.alloc_shared((tm, n + pad), dtype)
            T.annotate_layout({S: T.rows()})
            total = T.alloc_fragment((tm,), "float32")
            T.copy(A[bx * tm, 0], S[:, 0:n])
            T.clear(total)
            for k in T.serial(n):
                for i in T.Parallel(tm):
                    total[i] += T.cast(S[i, k], "float32")
            T.copy(total, B[bx * tm])

    return main


def softmax(m, n, tm, pad, dtype):
    """Softmax of rows without a reduction operation: a thread a row, three walks over the shared tile."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(m, tm), threads=THREADS) as bx:
            S = T.alloc_shared((tm, n + pad), dtype)
            T.annotate_layout({S: T.rows()})
            most = T.alloc_fragment((tm,), "float32")
            total = T.alloc_fragment((tm,), "float32")
            T.copy(A[bx * tm, 0], S[:, 0:n])
            T.fill(most, -T.infinity("float32"))
            T.clear(total)
            for k in T.serial(n):
                for i in T.Parallel(tm):
                    most[i] = T.max(most[i], T.cast(S[i, k], "float32"))
            for k in T.serial(n):
                for i in T.Parallel(tm):
                    S[i, k] = T.cast(T.exp(T.cast(S[i, k], "float32") - most[i]), dtype)
                    total[i] += T.cast(S[i, k], "float32")
            for k in T.serial(n):
                for i in T.Parallel(tm):
                    S[i, k] = T.cast(T.cast(S[i, k], "float32") / total[i], dtype)
            T.copy(S[:, 0:n], B[bx * tm, 0])

    return main


def naive(M, N, K, block, dtype):
    """One element of the product a thread, from global memory."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=block * block) as (bx, by):
            total = T.alloc_fragment((block, block), "float32")
            T.clear(total)
            for k in T.serial(K):
                for i, j in T.Parallel(block, block):
                    total[i, j] += T.cast(A[by * block + i, k], "float32") * T.cast(B[k, bx * block + j], "float32")
            T.copy(total, C[by * block, bx * block])

    return main


def histogram(n, bins, block, dtype, shared):
    """Weights added up by value, in shared memory first or straight in global memory."""

    @T.prim_func
    def main(W: T.Tensor((n,), dtype), X: T.Tensor((n,), "int32"), H: T.Tensor((bins,), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=THREADS) as bx:
            part = T.alloc_shared((bins,), dtype)
            if shared:
                T.clear(part)
                for i in T.Parallel(block):
                    value = T.if_then_else(bx * block + i < n, X[bx * block + i], -1) % bins
                    T.atomic_add(part[value], W[bx * block + i])
                T.atomic_add(H, part)
            else:
                for i in T.Parallel(block):
                    value = T.if_then_else(bx * block + i < n, X[bx * block + i], -1) % bins
                    T.atomic_add(H[value], W[bx * block + i])

    return main


def scattered(n, stride, dtype, operation):
    """Atomics on shared memory at a stride, several to one element; then on global memory."""
    atomic = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}[operation]

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((1024,), dtype)):
        with T.Kernel(T.ceildiv(n, 2048), threads=THREADS) as bx:
            S = T.alloc_shared((1024,), dtype)
            T.clear(S)
            for i in T.Parallel(2048):
                atomic(S[(i * stride) % 1024], A[bx * 2048 + i])
            for i in T.Parallel(1024):
                atomic(B[(i * stride) % 1024], S[i])

    return main


def one_warp(n, bins, dtype):
    """Loops of compare-and-swap in a warp that nobody disturbs."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((bins,), dtype)):
        with T.Kernel(T.ceildiv(n, 256), threads=32) as bx:
            S = T.alloc_shared((bins,), dtype)
            T.clear(S)
            for i in T.Parallel(256):
                T.atomic_add(S[(i * i) % bins], A[bx * 256 + i])
            T.atomic_add(B, S)

    return main


def counted(n, bins, stride):
    """Ones added up: an instruction of its own."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=THREADS):
            part = T.alloc_shared((bins,), "int32")
            T.clear(part)
            for i in T.Parallel(1024):
                T.atomic_add(part[(i * i // 7 + i * stride) % bins], 1)
            T.atomic_add(H, part)

    return main


F16, F32 = "float16", "float32"
SHORT = {F16: "f16", F32: "f32"}


def _products() -> Iterator[tuple[str, Any]]:
    """Paddings of both operands, stages, tiles, transposed operands, edges."""
    for number, pad in enumerate((0, 4, 8, 16, 24)):
        for dtype in (F16, F32):
            stages = 1 + number % 3
            yield f"gemm-pad{pad}-s{stages}", gemm(256, 256, 512, 64, 64, 32, pad, pad, stages, dtype)
    for dtype in (F16, F32):
        for ta, tb in ((True, False), (False, True), (True, True)):
            name = f"gemm-{'t' if ta else 'n'}{'t' if tb else 'n'}"
            yield f"{name}-pad0", gemm(256, 256, 256, 64, 64, 32, 0, 0, 2, dtype, ta, tb)
            yield f"{name}-pad8", gemm(256, 256, 256, 64, 64, 32, 8, 8, 3, dtype, ta, tb)
        yield "gemm-128x128x32", gemm(1024, 1024, 1024, 128, 128, 32, 8, 8, 2, dtype)
        yield "gemm-128x64x64", gemm(512, 512, 512, 128, 64, 64, 0, 8, 2, dtype)
        yield "gemm-64x128x64", gemm(512, 512, 512, 64, 128, 64, 8, 0, 1, dtype)
        yield "gemm-64x64x64-1000", gemm(1000, 1000, 1000, 64, 64, 64, 8, 8, 2, dtype)
        yield "gemm-96x64x32", gemm(192, 256, 128, 96, 64, 32, 16, 4, 2, dtype)
        yield "gemm-64x64x32-edges", gemm(200, 136, 72, 64, 64, 32, 8, 8, 1, dtype)
        yield "gemm-64x64x32-odd", gemm(129, 131, 67, 64, 64, 32, 8, 8, 2, dtype)
        yield "naive", naive(64, 96, 128, 16, dtype)
        yield "naive-odd", naive(50, 67, 33, 16, dtype)


def _nests() -> Iterator[tuple[str, Any]]:
    """Everything without a matrix product."""
    for dtype in (F16, F32):
        for pad in (0, 1, 2, 3, 4):
            yield f"transpose-read-pad{pad}", transpose_read(128, 256, 32, 32, pad, dtype)
            yield f"transpose-write-pad{pad}", transpose_write(128, 256, 32, 32, pad, dtype)
        yield "transpose-read-64x16-pad1", transpose_read(128, 256, 64, 16, 1, dtype)
        yield "transpose-read-ragged", transpose_read(100, 300, 32, 32, 1, dtype)
        yield "transpose-read-odd", transpose_read(101, 77, 32, 32, 0, dtype)
        yield "transpose-write-odd", transpose_write(101, 77, 32, 32, 1, dtype)
        yield "transpose-global", transpose_global(128, 256, 32, 32, dtype)
        for stride, offset in ((2, 0), (3, 1), (8, 5), (33, 0)):
            yield f"strided-{stride}-{offset}", strided(48, 256, stride, offset, dtype)
        yield "strided-ragged", strided(37, 101, 2, 3, dtype)
        for shift in (0, 1, 4, 8, -5):
            yield f"shifted{shift}".replace("-", "m"), shifted(4096, 512, shift, dtype)
        yield "shifted-ragged", shifted(3001, 512, 3, dtype)
        yield "broadcast", broadcast(64, 512, 16, 128, dtype)
        yield "broadcast-ragged", broadcast(61, 500, 16, 128, dtype)
        yield "broadcast-odd", broadcast(61, 501, 16, 128, dtype)
        yield "shared-broadcast", shared_broadcast(64, 512, 16, 128, dtype)
        yield "shared-broadcast-odd", shared_broadcast(61, 501, 16, 128, dtype)
        for stride in (1, 2, 3, 4, 8, 32, 33):
            yield f"shared-stride{stride}", shared_stride(4096, stride, dtype)
        for stride in (3, 17, 33):
            yield f"shared-scatter{stride}", shared_scatter(4096, stride, dtype)
        for pad in (0, 1):
            yield f"diagonal-pad{pad}", diagonal(128, 32, pad, dtype)
            yield f"row-sums-pad{pad}", row_sums(512, 64, 128, pad, dtype)
            yield f"softmax-pad{pad}", softmax(256, 64, 128, pad, dtype)
        yield "row-sums-ragged", row_sums(500, 50, 128, 1, dtype)
        yield "swizzled", swizzled(128, dtype)
        yield "stencil", stencil(64, 128, dtype)
        yield "stencil-odd", stencil(61, 77, dtype)
    for dtype, to in ((F16, F32), (F32, F16)):
        for pad in (0, 8):
            yield f"copy-through-pad{pad}", copy_through(128, 256, 32, 64, pad, dtype, to)
        yield "copy-through-ragged", copy_through(101, 250, 32, 64, 0, dtype, to)
        yield "copy-through-odd", copy_through(101, 255, 32, 64, 4, dtype, to)


def _reductions() -> Iterator[tuple[str, Any]]:
    """The reductions of ``workloads/kernels``."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "workloads" / "kernels"))
    try:
        import reductions
        import rmsnorm
        import softmax
    finally:
        sys.path.pop(0)
    factories = (
        softmax.rows,
        softmax.online,
        rmsnorm.rmsnorm,
        reductions.row_absmax,
        reductions.column_sums,
    )
    for factory in factories:
        for dtype in (F16, F32):
            yield f"reduce-{factory.__name__}", factory.prim_func(64, 1024, dtype=dtype)
            yield f"reduce-{factory.__name__}-ragged", factory.prim_func(61, 1000, dtype=dtype)


def _atomics() -> Iterator[tuple[str, Any]]:
    """Histograms, atomics at strides, matrix products split along K."""
    for dtype in ("int32", "float32", "float64"):
        for bins in (16, 64, 1000):
            yield f"histogram-{bins}", histogram(8192, bins, 2048, dtype, True)
        yield "histogram-ragged", histogram(7001, 100, 2048, dtype, True)
        yield "histogram-global", histogram(8192, 100, 2048, dtype, False)
        yield "one-warp", one_warp(2048, 40, dtype)
    for operation in ("add", "max", "min"):
        for stride in (1, 2, 8, 32, 33):
            yield f"atomic-{operation}-stride{stride}", scattered(8192, stride, "int32", operation)
    for bins, stride in ((32, 1), (256, 3), (1024, 32)):
        yield f"counted-{bins}-{stride}", counted(8192, bins, stride)
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "workloads" / "kernels"))
    try:
        import atomics
    finally:
        sys.path.pop(0)
    for dtype in (F16, F32):
        yield "split-k", atomics.split_k.prim_func(128, 128, 1024, dtype=dtype)
        yield "split-k-ragged", atomics.split_k.prim_func(100, 130, 1000, dtype=dtype)
    yield "histogram-workload", atomics.histogram.prim_func(100000)


def kernels() -> dict[str, Any]:
    """All kernels by name; the type of the operands ends the name."""
    found: dict[str, Any] = {}
    for name, kernel in (*_products(), *_nests(), *_reductions(), *_atomics()):
        dtype = next(iter(kernel.function.__annotations__.values())).dtype
        key = f"{name}-{SHORT.get(dtype, dtype)}"
        found[key] = dataclasses.replace(kernel, label=key.replace("-", "_"))
    return found
