"""Matrix products whose K is shared out between blocks: through a workspace and a second kernel, and stream-K.

For products with fewer tiles than the device has units.  :func:`split_k_parts` and :func:`sum_parts` give the same bits in every
launch; :func:`stream_k` keeps every block of a fixed grid equally busy and adds up with atomics, in no order.
``atomics.py`` has the plain split along K with atomics.
"""

import numpy as np

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def split_k_parts(M, N, K, block_M=64, block_N=64, block_K=32, split=4, num_stages=2, threads=128, dtype="float16"):
    """``P[s] = A[:, part s] @ B[part s]``: the parts of ``split`` blocks of each tile, side by side in a workspace."""
    part = -(-K // (block_K * split)) * block_K

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), P: T.Tensor((split, M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(part // block_K, num_stages=num_stages):
                T.copy(A[by * block_M, bz * part + ko * block_K], A_shared)
                T.copy(B[bz * part + ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, P[bz, by * block_M, bx * block_N])

    return main


@tilelang.jit
def sum_parts(M, N, split=4, block_M=8, block_N=128, threads=128, dtype="float16"):
    """``C = sum over s of P[s]``, in order: the second kernel of a product split along K."""

    @T.prim_func
    def main(P: T.Tensor((split, M, N), "float32"), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for s in T.unroll(split):
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += P[s, by * block_M + i, bx * block_N + j]
            T.copy(total, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def stream_k(M, N, K, block_M=64, block_N=64, block_K=32, blocks=8, num_stages=2, threads=128, dtype="float16"):
    """``C += A @ B`` by ``blocks`` blocks, each of which walks over an equal share of all (tile, step along K).

    A share ends where it must, inside of a tile: what a block has of each tile it adds to C, which must be zero before the
    first launch.
    """
    columns = -(-N // block_N)
    steps = -(-K // block_K)
    items = -(-M // block_M) * columns * steps
    share = -(-items // blocks)
    tiles = (share + steps - 2) // steps + 1  # that a share can touch

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(blocks, threads=threads) as bx:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            for number in T.serial(tiles):
                tile = bx * share // steps + number
                row = tile // columns * block_M
                column = tile % columns * block_N
                first = T.max(bx * share - tile * steps, 0)
                last = T.min(T.min((bx + 1) * share, items) - tile * steps, steps)
                if first < last:
                    T.clear(C_local)
                    for ko in T.Pipelined(last - first, num_stages=num_stages):
                        T.copy(A[row, (first + ko) * block_K], A_shared)
                        T.copy(B[(first + ko) * block_K, column], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                    T.atomic_add(C[row, column], C_local)

    return main


def reference(A, B):
    """The product in float64."""
    return A.astype(np.float64) @ B.astype(np.float64)


def parts_reference(A, B, split=4, block_K=32):
    """The products of the parts along K in float64."""
    part = -(-A.shape[1] // (block_K * split)) * block_K
    cuts = [slice(s * part, (s + 1) * part) for s in range(split)]
    return np.stack([reference(A[:, cut], B[cut]) for cut in cuts])


def sum_reference(P):
    """The sum in float64."""
    return P.astype(np.float64).sum(axis=0)
