"""Source texts of the synthetic kernels, and where their statements stand."""

from __future__ import annotations

_TILED = '''
@tilelang.jit
def matmul_{name}(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, dtype="float16"):
    """Tiles in shared memory with {what} rows."""
    pad = {pad}

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K + pad), dtype)
            B_shared = T.alloc_shared((block_K, block_N + pad), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
'''

MATMUL = (
    '''"""Matrix products, from plain to padded: what tiles and padding are worth."""

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def matmul_naive(M, N, K, block=16, dtype="float16"):
    """One element of C a thread; no tiles, every operand straight from global memory."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=block * block) as (bx, by):
            acc = T.alloc_fragment((block, block), "float32")
            T.clear(acc)
            for k in T.serial(K):
                for i, j in T.Parallel(block, block):
                    acc[i, j] += T.cast(A[by * block + i, k], "float32") * T.cast(B[k, bx * block + j], "float32")
            T.copy(acc, C[by * block, bx * block])

    return main

'''
    + _TILED.format(name="tiled", what="plain", pad="0")
    + "\n"
    + _TILED.format(
        name="padded", what="padded", pad='8 if dtype == "float16" else 4  # 16 bytes: rows start 4 banks apart'
    )
    + '''

def reference(A, B):
    """float64 NumPy; cast down by the caller."""
    return A.astype("float64") @ B.astype("float64")
'''
)

ELEMENTWISE = '''"""y = alpha * x + y over one million elements."""

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def scale_add(N, block=1024, alpha=2.0, dtype="float32"):
    """Memory bound: two reads and a write for each multiply-add."""

    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=256) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = alpha * X[bx * block + i] + Y[bx * block + i]

    return main
'''


def line_of(text: str, after: str, fragment: str) -> tuple[int, int, str]:
    """Line (from 1), column (from 0) and text of the first ``fragment`` behind the line that has ``after``."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if after in line)
    for number in range(start, len(lines)):
        if fragment in lines[number]:
            return number + 1, lines[number].index(fragment), lines[number]
    raise LookupError(fragment)
