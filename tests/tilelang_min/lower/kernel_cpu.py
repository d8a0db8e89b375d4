"""Kernels whose copies, products and stores the CPU treats specially."""

import tilelang_min.language as T


def product(M, N, K, bm, bn, bk, dtype, result, transpose_a=False, transpose_b=False):
    a_shape, b_shape = ((K, M) if transpose_a else (M, K)), ((N, K) if transpose_b else (K, N))
    a_tile, b_tile = ((bk, bm) if transpose_a else (bm, bk)), ((bn, bk) if transpose_b else (bk, bn))

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), result)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a = T.alloc_shared(a_tile, dtype)
            b = T.alloc_shared(b_tile, dtype)
            c = T.alloc_fragment((bm, bn), result)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                if transpose_a:
                    T.copy(A[k * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, k * bk], a)
                if transpose_b:
                    T.copy(B[bx * bn, k * bk], b)
                else:
                    T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b)
            T.copy(c, C[by * bm, bx * bn])

    return main


def plain(M, N, K, bm, bn, bk, dtype="float32", result="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), result)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), result)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * bm, bx * bn])

    return main


def changed(n):
    """The tile of A is doubled before the product: its copy has to be made."""

    @T.prim_func
    def main(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32"), C: T.Tensor((n, n), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((n, n), "float32")
            b = T.alloc_shared((n, n), "float32")
            c = T.alloc_fragment((n, n), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(n, n):
                a[i, j] = a[i, j] * 2.0
            T.gemm(a, b, c)
            T.copy(c, C)

    return main


def overwritten(n):
    """The tensor is overwritten between the copy and the product: the tile keeps what it was."""

    @T.prim_func
    def main(A: T.Tensor((n, n), "float32"), C: T.Tensor((n, n), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((n, n), "float32")
            c = T.alloc_fragment((n, n), "float32")
            T.clear(c)
            T.copy(A, a)
            T.fill(A, 7.0)
            T.gemm(a, a, c)
            T.copy(c, C)

    return main


def doubled(rows, columns, bm, bn):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(columns, bn), T.ceildiv(rows, bm), threads=128) as (bx, by):
            for i, j in T.Parallel(bm, bn):
                B[by * bm + i, bx * bn + j] = A[by * bm + i, bx * bn + j] * 2.0

    return main
