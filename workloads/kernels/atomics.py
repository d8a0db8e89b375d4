"""Kernels whose blocks add up in one place with atomics: a histogram, and a matrix product split along K.

Both add to what their result holds already: it must be zero before the first launch.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def histogram(N, bins=256, block=4096, threads=256):
    """``H[v]`` counts how often ``v`` is in X: first in shared memory, a block's part, then added up in global memory.

    Values outside of 0 to bins - 1 are not counted.
    """

    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            counts = T.alloc_shared((bins,), "int32")
            T.clear(counts)
            for i in T.Parallel(block):
                value = T.if_then_else(bx * block + i < N, X[bx * block + i], -1)
                T.atomic_add(counts[value], 1)
            T.atomic_add(H, counts)

    return main


@tilelang.jit
def split_k(M, N, K, block_M=64, block_N=64, block_K=32, split=4, num_stages=2, threads=128, dtype="float16"):
    """``C += A @ B``: ``split`` blocks share a tile of C, each along its part of K; for products with few tiles and a long K."""
    pad = 16 // np.dtype(dtype).itemsize
    part = -(-K // (block_K * split)) * block_K

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K + pad), dtype)
            B_shared = T.alloc_shared((block_K, block_N + pad), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(part // block_K, num_stages=num_stages):
                T.copy(A[by * block_M, bz * part + ko * block_K], A_shared[:, 0:block_K])
                T.copy(B[bz * part + ko * block_K, bx * block_N], B_shared[:, 0:block_N])
                T.gemm(A_shared[:, 0:block_K], B_shared[:, 0:block_N], C_local)
            T.atomic_add(C[by * block_M, bx * block_N], C_local)

    return main


def split_k_reference(A, B):
    """The product in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def histogram_reference(X, bins=256):
    """The same by NumPy."""
    return np.bincount(X[(X >= 0) & (bins > X)], minlength=bins)[:bins]


def bytes_of_text(shape, bins, rng):
    """Values of which few are frequent, as in text."""
    return np.minimum(rng.geometric(0.05, shape), bins - 1).astype(np.int32)
