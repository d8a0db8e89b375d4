"""The kernels that `tileprof calibrate` measures a GPU with, in the project's own language.

Each keeps one unit busy and little else: DRAM, the L2 cache, shared memory, the multiply-add units, the matrix units.  What
a launch moves or computes follows from its arguments.
"""

import tilelang_min as tilelang
import tilelang_min.language as T


@tilelang.jit
def copy(N, block=4096, threads=256, dtype="float32"):
    """``B = A``; moves 2 N elements through DRAM where N is far larger than the L2 cache."""

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]

    return main


@tilelang.jit
def read_around(chunks, blocks, rounds, chunk=8192, threads=256):
    """Every block reads ``rounds`` chunks of A, each another one than before, and adds them up: A stays in L2, and leaves L1."""

    @T.prim_func
    def main(A: T.Tensor((chunks, chunk), "float32"), B: T.Tensor((blocks, chunk), "float32")):
        with T.Kernel(blocks, threads=threads) as bx:
            total = T.alloc_fragment((chunk,), "float32")
            T.clear(total)
            for r in T.serial(rounds):
                for i in T.Parallel(chunk):
                    total[i] += A[(bx + r * 7) % chunks, i]
            T.copy(total, B[bx, 0])

    return main


@tilelang.jit
def shared_reads(blocks, rounds, rows=8, width=1024, threads=256):
    """Every block reads the rows of a shared tile in turn, 16 bytes a thread, free of conflicts, and adds them up."""

    @T.prim_func
    def main(A: T.Tensor((rows, width), "float32"), B: T.Tensor((blocks, width), "float32")):
        with T.Kernel(blocks, threads=threads) as bx:
            tile = T.alloc_shared((rows, width), "float32")
            total = T.alloc_fragment((width,), "float32")
            T.clear(total)
            T.copy(A, tile)
            for r in T.serial(rounds):
                for i in T.Parallel(width):
                    total[i] += tile[r % rows, i]
            T.copy(total, B[bx, 0])

    return main


@tilelang.jit
def multiply_adds(blocks, rounds, width=4096, threads=256, unroll=16, dtype="float32"):
    """Every thread keeps ``width / threads`` independent sums, ``x = x * a + b``, from registers alone."""

    @T.prim_func
    def main(A: T.Tensor((width,), dtype), F: T.Tensor((2,), dtype), B: T.Tensor((blocks, width), dtype)):
        with T.Kernel(blocks, threads=threads) as bx:
            x = T.alloc_fragment((width,), dtype)
            factor = T.alloc_var(dtype, init=F[0])
            offset = T.alloc_var(dtype, init=F[1])
            T.copy(A, x)
            for r in T.serial(rounds):
                for u in T.unroll(unroll):
                    for i in T.Parallel(width):
                        x[i] = x[i] * factor + offset
            T.copy(x, B[bx, 0])

    return main


@tilelang.jit
def paired_multiply_adds(blocks, rounds, width=4096, threads=256, unroll=16, dtype="float16"):
    """As :func:`multiply_adds`, every element with a factor and an offset of its own.

    On NVIDIA GPUs one instruction (HFMA2) does two halves, and two kinds of units take it.  With one factor for all, which is
    one half read twice, ptxas uses one kind alone: half the rate.
    """

    @T.prim_func
    def main(A: T.Tensor((width,), dtype), F: T.Tensor((2, width), dtype), B: T.Tensor((blocks, width), dtype)):
        with T.Kernel(blocks, threads=threads) as bx:
            x = T.alloc_fragment((width,), dtype)
            factor = T.alloc_fragment((width,), dtype)
            offset = T.alloc_fragment((width,), dtype)
            T.copy(A, x)
            T.copy(F[0, 0], factor)
            T.copy(F[1, 0], offset)
            for r in T.serial(rounds):
                for u in T.unroll(unroll):
                    for i in T.Parallel(width):
                        x[i] = x[i] * factor[i] + offset[i]
            T.copy(x, B[bx, 0])

    return main


@tilelang.jit
def matrix_products(
    blocks, rounds, block_M=128, block_N=128, block_K=64, threads=128, dtype="float16", accumulator="float32"
):
    """Every block multiplies the same two shared tiles again and again."""

    @T.prim_func
    def main(
        A: T.Tensor((block_M, block_K), dtype),
        B: T.Tensor((block_K, block_N), dtype),
        C: T.Tensor((blocks, block_M, block_N), accumulator),
    ):
        with T.Kernel(blocks, threads=threads) as bx:
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), accumulator)
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            for _ in T.serial(rounds):
                T.gemm(a, b, c)
            T.copy(c, C[bx, 0, 0])

    return main


@tilelang.jit
def streamed_products(
    M, N, K, block_M=128, block_N=256, block_K=64, num_stages=4, threads=256, dtype="float16", accumulator="float32"
):
    """A whole product, operands along K in memory: loads, products and the pipeline between them at their best."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), accumulator)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_N, block_K), dtype)
            c = T.alloc_fragment((block_M, block_N), accumulator)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[bx * block_N, k * block_K], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * block_M, bx * block_N])

    return main
