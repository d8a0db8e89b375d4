"""Kernels with one fault each, and an argument that mends it: what the diagnosis finds, and what its advice does.

``workloads/diagnosis.yaml`` runs them both ways; ``docs/diagnosis.md`` has what each change was promised to bring on
an H200, and what it brought.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def product(M, N, K, layout="rows", block_M=128, block_N=128, block_K=32, num_stages=3, threads=128, dtype="float16"):
    """``C = A @ B`` with shared tiles whose layout is pinned: ``rows`` as they come, or ``swizzled`` as TileLang does it.

    A pinned layout keeps ``mma.sync`` and ``cp.async`` on Hopper too, whose occupancy and stages are those of an A100.
    """

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            if layout == "rows":
                T.annotate_layout({A_shared: T.rows(), B_shared: T.rows()})
            else:
                T.annotate_layout(
                    {
                        A_shared: tilelang.layout.make_swizzled_layout(A_shared),
                        B_shared: tilelang.layout.make_swizzled_layout(B_shared),
                    }
                )
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def single(M, N, K, precision="exact", block_M=64, block_N=64, block_K=32, num_stages=2, threads=128):
    """A float32 product: ``exact`` works on vectors, ``tf32`` on matrix units with 10 bits of mantissa."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float32")
            B_shared = T.alloc_shared((block_K, block_N), "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, precision=precision)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def ordered(M, N, K, panel=0, block_M=128, block_N=256, block_K=64, num_stages=4, threads=256, dtype="float16"):
    """``C = A @ B``; ``panel=1`` walks over the tiles row by row, 0 leaves their order to the compiler."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            if panel:
                T.use_swizzle(panel)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def transposed(M, N, staged=False, block=64, threads=256, dtype="float32"):
    """``B = A.T``: straight from registers, which writes columns, or ``staged`` through a shared tile."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            if staged:
                tile = T.alloc_shared((block, block), dtype)
                T.copy(A[by * block, bx * block], tile)
                for j, i in T.Parallel(block, block):
                    B[bx * block + j, by * block + i] = tile[i, j]
            else:
                for i, j in T.Parallel(block, block):
                    B[bx * block + j, by * block + i] = A[by * block + i, bx * block + j]

    return main


@tilelang.jit
def gated(M, N, K, block_M=96, block_N=96, block_K=32, num_stages=2, threads=64, dtype="float16"):
    """``C = silu(A @ W) * (A @ V)``, the gated unit of transformers: two accumulators, too many registers for 64 threads."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), W: T.Tensor((K, N), dtype), V: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_K, block_N), dtype)
            V_shared = T.alloc_shared((block_K, block_N), dtype)
            gate = T.alloc_fragment((block_M, block_N), "float32")
            value = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(gate)
            T.clear(value)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(W[ko * block_K, bx * block_N], W_shared)
                T.copy(V[ko * block_K, bx * block_N], V_shared)
                T.gemm(A_shared, W_shared, gate)
                T.gemm(A_shared, V_shared, value)
            for i, j in T.Parallel(block_M, block_N):
                value[i, j] = value[i, j] * gate[i, j] * T.sigmoid(gate[i, j])
            T.copy(value, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def smoothed(M, N, taps=16, tile="float16", block_M=32, block_N=128, threads=128, dtype="float16"):
    """``Y[i, :] = sum over t of W[t] * X[i + t, :]``, a filter along the rows, in float32.

    A shared tile of ``float16`` converts what it holds at each tap, one of ``float32`` once, on the way in.
    """

    @T.prim_func
    def main(X: T.Tensor((M + taps, N), dtype), W: T.Tensor((taps,), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            rows = T.alloc_shared((block_M + taps, block_N), tile)
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(X[by * block_M, bx * block_N], rows)
            T.clear(total)
            for t in T.serial(taps):
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += T.cast(rows[i + t, j], "float32") * W[t]
            T.copy(total, Y[by * block_M, bx * block_N])

    return main


@tilelang.jit
def scale_add(M, N, block_M=32, block_N=128, threads=256, dtype="float32"):
    """``C = 0.5 * A + B``: with :func:`relu` behind it what ``elementwise.py`` does in one kernel."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row = by * block_M + i
                column = bx * block_N + j
                C[row, column] = A[row, column] * 0.5 + B[row, column]

    return main


@tilelang.jit
def relu(M, N, block_M=32, block_N=128, threads=256, dtype="float32"):
    """``C = max(A, 0)``."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                row = by * block_M + i
                column = bx * block_N + j
                C[row, column] = T.max(A[row, column], 0.0)

    return main


def product_reference(A, B):
    """The product in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def transposed_reference(A):
    """The same elements, moved."""
    return A.T.copy()


def gated_reference(A, W, V):
    """The gated unit in float64."""
    gate = product_reference(A, W)
    return gate / (1 + np.exp(-gate)) * product_reference(A, V)


def smoothed_reference(X, W):
    """The filter in float64."""
    x, taps = X.astype(np.float64), len(W)
    return sum(float(W[t]) * x[t : t + len(x) - taps] for t in range(taps))


def scale_add_reference(A, B):
    """The scaled sum in float64."""
    return 0.5 * A.astype(np.float64) + B.astype(np.float64)


def relu_reference(A):
    """The cut in float64."""
    return np.maximum(A.astype(np.float64), 0.0)
