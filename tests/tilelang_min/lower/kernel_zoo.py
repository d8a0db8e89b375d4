"""Small kernels that use one feature each, with what they should compute.

Every entry of ``ZOO`` is (factory, inputs, reference): ``inputs`` makes the arrays from a random generator, outputs filled with
NaN; ``reference`` computes the outputs in float64 from the inputs.
"""

import math

import numpy as np

import tilelang_min.language as T

THREADS = 64


def normal(generator, *shape, dtype="float32"):
    return generator.standard_normal(shape).astype(dtype)


def empty(*shape, dtype="float32"):
    return np.full(shape, np.nan, dtype) if np.dtype(dtype).kind == "f" else np.full(shape, 77, dtype)


# -- copies --------------------------------------------------------------------------------------------------------


def copy_1d(n, tile=128, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, tile), threads=THREADS) as bx:
            S = T.alloc_shared((tile,), dtype)
            T.copy(A[bx * tile], S)
            T.copy(S, B[bx * tile])

    return main


def copy_through_fragment(m, n, tile_m=16, tile_n=32, dtype="float32", to="float32"):
    """Global -> shared -> fragment (another type) -> global."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), to)):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=THREADS) as (bx, by):
            S = T.alloc_shared((tile_m, tile_n), dtype)
            F = T.alloc_fragment((tile_m, tile_n), to)
            T.copy(A[by * tile_m, bx * tile_n], S)
            T.copy(S, F)
            T.copy(F, B[by * tile_m, bx * tile_n])

    return main


def copy_batched(b, m, n, tile_m=16, tile_n=16):
    """A 3-D tensor, a batch a block; the tile is 2-D."""

    @T.prim_func
    def main(A: T.Tensor((b, m, n), "float32"), B: T.Tensor((b, m, n), "float32")):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), b, threads=THREADS) as (bx, by, bz):
            S = T.alloc_shared((tile_m, tile_n), "float32")
            T.copy(A[bz, by * tile_m, bx * tile_n], S)
            T.copy(S, B[bz, by * tile_m : by * tile_m + tile_m, bx * tile_n : bx * tile_n + tile_n])

    return main


def copy_column(m, n):
    """A column of a matrix: a tile of trailing extent one."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, 1), "float32")):
        with T.Kernel(T.ceildiv(m, 64), threads=THREADS) as bx:
            F = T.alloc_fragment((64, 1), "float32")
            T.copy(A[bx * 64 : bx * 64 + 64, n - 1 : n], F)
            T.copy(F, B[bx * 64, 0])

    return main


def thin_fragments(n):
    """Fragments with dimensions of extent one, next to vectors of shared memory."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n, 1), "float32")):
        with T.Kernel(T.ceildiv(n, 256), threads=THREADS) as bx:
            S = T.alloc_shared((256,), "float32")
            column = T.alloc_fragment((256, 1), "float32")
            row = T.alloc_fragment((1, 256), "float32")
            T.copy(A[bx * 256], S)
            T.copy(S, column)
            T.copy(S, row)
            for i in T.Parallel(256):
                column[i, 0] = column[i, 0] + row[0, i]
            T.copy(row, B[bx * 256])
            T.copy(column, C[bx * 256, 0])

    return main


def single_elements():
    """Tiles of one element."""

    @T.prim_func
    def main(A: T.Tensor((1,), "float32"), B: T.Tensor((1, 1), "float32")):
        with T.Kernel(1, threads=THREADS):
            S = T.alloc_shared((1, 1), "float32")
            F = T.alloc_fragment((1,), "float32")
            T.copy(A, F)
            for i in T.Parallel(1):
                F[i] = F[i] + 1.0
            T.copy(F, S)
            T.copy(S, B)

    return main


def wrapped_index(n):
    """An index that is no straight line: in range at both ends of a vector, out of range in between."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=THREADS):
            for i in T.Parallel(64):
                B[i] = A[(i * 13) % 64] + A[63 - i]

    return main


def serial_register_index(n):
    """An array of registers indexed by a loop that is not unrolled, also beyond its end."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            x = T.alloc_local((3,), "float32")
            for k in T.serial(5):
                x[k] = A[k] + k
            for k in T.serial(5):
                for i in T.Parallel(64):
                    B[bx * 64 + i] = T.if_then_else(k == 0, 0.0, B[bx * 64 + i]) + x[k]

    return main


def copy_shifted(n, shift):
    """A window that starts before and ends behind the tensor: what is outside reads as zero."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=THREADS) as bx:
            S = T.alloc_shared((32,), "float32")
            T.copy(A[bx * 32 - shift], S)
            T.copy(S, B[bx * 32])

    return main


def copy_gathered(n):
    """Rows chosen by an index tensor: the offset of a copy reads a tensor."""

    @T.prim_func
    def main(A: T.Tensor((n, 32), "float32"), rows: T.Tensor((n,), "int32"), B: T.Tensor((n, 32), "float32")):
        with T.Kernel(n, threads=THREADS) as bx:
            S = T.alloc_shared((32,), "float32")
            T.copy(A[rows[bx], 0:32], S)
            T.copy(S, B[bx, 0:32])

    return main


# -- fills and element-wise nests ------------------------------------------------------------------------------------


def fill_value(m, n, value, dtype="float32"):
    @T.prim_func
    def main(B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=THREADS) as (bx, by):
            F = T.alloc_fragment((8, 32), dtype)
            S = T.alloc_shared((8, 32), dtype)
            T.fill(F, value)
            T.copy(F, S)
            T.copy(S, B[by * 8, bx * 32])

    return main


def fill_part(n, value):
    """A slice of a shared tile is filled again."""

    @T.prim_func
    def main(B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            S = T.alloc_shared((64,), "float32")
            T.clear(S)
            T.fill(S[16:48], value)
            T.copy(S, B[bx * 64])

    return main


def fill_global(m, n, value):
    """Regions of a tensor itself are filled."""

    @T.prim_func
    def main(B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=THREADS) as (bx, by):
            T.fill(B[by * 8 : by * 8 + 8, bx * 32 : bx * 32 + 32], value)

    return main


def fill_from_tile(n):
    """The value of a fill is an element of a tensor."""

    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            S = T.alloc_shared((64,), "float32")
            T.fill(S, A[2] * 2)
            T.copy(S, B[bx * 64])

    return main


def local_names(n):
    """Names bound inside a nest: expressions, and values read from tiles that are kept."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 256), threads=THREADS) as bx:
            for i in T.Parallel(256):
                at = bx * 256 + i
                x = A[at]
                y = x * x + 1.0
                B[at] = y / x

    return main


def scalar_outside(n):
    """A value read outside of the nest and a register of each thread, used inside."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            scale = A[0]
            shift = T.alloc_local((2,), "float32")
            shift[0] = 3.0
            shift[1] = shift[0] * scale
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * scale + shift[1]

    return main


def local_array(n):
    """An array of registers filled as a whole and updated in a loop."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            powers = T.alloc_local((4,), "float32")
            T.fill(powers, 1.0)
            for k in T.unroll(4):
                powers[k] = powers[k] * (k + 1)
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * powers[3] + powers[0]

    return main


def shared_element(n):
    """One element of a shared tile is written by an ordinary assignment, read by all."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            S = T.alloc_shared((2,), "float32")
            S[0] = A[0] + 1.0
            S[1] = S[0] * 2.0
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * S[1]

    return main


def stencil(n):
    """Neighbours of a shared tile: reads at other places than the write."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            S = T.alloc_shared((66,), "float32")
            T.copy(A[bx * 64 - 1], S)
            for i in T.Parallel(64):
                B[bx * 64 + i] = S[i] + 2.0 * S[i + 1] - S[i + 2]

    return main


def transpose(m, n):
    """A shared tile written in one order and read in the other."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((n, m), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 16), threads=THREADS) as (bx, by):
            S = T.alloc_shared((16, 33), "float32")
            T.copy(A[by * 16, bx * 32], S[:, 0:32])
            for i, j in T.Parallel(32, 16):
                B[bx * 32 + i, by * 16 + j] = S[j, i]

    return main


def math_functions(n, dtype="float32"):
    """Every function of the language, away from its singularities."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            for i in T.Parallel(64):
                x = T.abs(A[bx * 64 + i]) + 1.0
                smooth = T.exp(-x) + T.exp2(x * 0.5) + T.log(x) + T.sqrt(x) + T.rsqrt(x)
                B[bx * 64 + i] = T.max(T.min(smooth, 4.0), x**2 - 3.0) if n > 0 else x
                C[bx * 64 + i] = T.if_then_else(
                    (A[bx * 64 + i] > 0 and i % 2 == 0) or not i < 60, (i + 7) // 3, -((i * 5) % 7)
                )

    return main


def math_reference(A, B, C):
    x = np.abs(A.astype(np.float64)) + 1.0
    i = np.arange(len(A)) % 64
    smooth = np.exp(-x) + np.exp2(x * 0.5) + np.log(x) + np.sqrt(x) + 1 / np.sqrt(x)
    chosen = ((A > 0) & (i % 2 == 0)) | ~(i < 60)
    return np.maximum(np.minimum(smooth, 4.0), x**2 - 3.0), np.where(chosen, (i + 7) // 3, -((i * 5) % 7))


def infinities(n):
    """Infinity as a value, from the language and from Python."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float16")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            F = T.alloc_fragment((64,), "float32")
            T.fill(F, -T.infinity("float32"))
            for i in T.Parallel(64):
                F[i] = T.max(F[i], A[bx * 64 + i])
            T.copy(F, B[bx * 64])
            for i in T.Parallel(64):
                C[bx * 64 + i] = T.if_then_else(A[bx * 64 + i] > 0, float("inf"), -math.inf)

    return main


# -- conditions and loops ----------------------------------------------------------------------------------------------


def condition_on_block(m, n):
    """Blocks of different rows and columns do different things."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=THREADS) as (bx, by):
            S = T.alloc_shared((8, 32), "float32")
            T.copy(A[by * 8, bx * 32], S)
            if bx == 0:
                for i, j in T.Parallel(8, 32):
                    S[i, j] = S[i, j] * 2.0
            elif by > 0 and bx + by < 3:
                T.fill(S, 7.0)
            else:
                for i, j in T.Parallel(8, 32):
                    S[i, j] = S[i, j] - 1.0
            T.copy(S, B[by * 8, bx * 32])

    return main


def condition_reference(A, B):
    rows, columns = np.indices(A.shape)
    by, bx = rows // 8, columns // 32
    return np.where(bx == 0, A * 2.0, np.where((by > 0) & (bx + by < 3), 7.0, A - 1.0))


def loops(n, steps=5):
    """Serial, unrolled and plain ranges, with a start, with a bound that depends on a loop and on the block."""

    @T.prim_func
    def main(A: T.Tensor((steps + 3, n), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=THREADS) as bx:
            F = T.alloc_fragment((64,), "float32")
            T.clear(F)
            for k in T.serial(steps):
                for j in range(k, k + 2):
                    for i in T.Parallel(64):
                        F[i] += A[j, bx * 64 + i] * (k + 1)
            for u in T.unroll(1, 4):
                for i in T.Parallel(64):
                    F[i] = F[i] * 0.5 + A[u, bx * 64 + i]
            for _ in T.serial(bx % 2 + 1):
                for i in T.Parallel(64):
                    F[i] += 1.0
            for _ in range(3, 3):
                T.clear(F)
            T.copy(F, B[bx * 64])

    return main


def loops_reference(A, B):
    steps = A.shape[0] - 3
    total = np.zeros(A.shape[1])
    for k in range(steps):
        for j in (k, k + 1):
            total += A[j].astype(np.float64) * (k + 1)
    for u in range(1, 4):
        total = total * 0.5 + A[u]
    return total + np.arange(A.shape[1]) // 64 % 2 + 1


def read_back(m):
    """A tensor is written and read again by the same block, by other threads than wrote it."""

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), W: T.Tensor((m, 64), "float32"), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(m, threads=THREADS) as bx:
            for i in T.Parallel(64):
                W[bx, i] = A[bx, i] + 1.0
            for i in T.Parallel(64):
                B[bx, i] = W[bx, 63 - i] * 2.0

    return main


def written_twice(n):
    """One fill and one copy of the same tensor: the second must win, whichever threads do them."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=THREADS) as bx:
            F = T.alloc_fragment((128,), "float32")
            T.fill(B[bx * 128 : bx * 128 + 128], 5.0)
            T.copy(A[bx * 128], F)
            T.copy(F, B[bx * 128])

    return main


# -- element stores out of range -------------------------------------------------------------------------------------------


def element_store(n):
    """One element a block, in a grid that is larger than the tensor."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n + 3, threads=THREADS) as bx:
            B[bx] = A[bx + 1] * 2.0

    return main


def f64(*arrays):
    return [array.astype(np.float64) for array in arrays]


def _cases():
    for n in (1, 7, 129, 1000, 1024):
        for dtype in ("float32", "float16"):
            yield (
                f"copy_1d[{n},{dtype}]",
                copy_1d(n, dtype=dtype),
                lambda g, n=n, dtype=dtype: [normal(g, n, dtype=dtype), empty(n, dtype=dtype)],
                lambda A, B: (A,),
            )
    for m, n in ((1, 1), (7, 129), (33, 40), (48, 64)):
        for dtype, to in (("float32", "float16"), ("float16", "float32"), ("float16", "float16")):
            yield (
                f"copy_through_fragment[{m}x{n},{dtype}->{to}]",
                copy_through_fragment(m, n, dtype=dtype, to=to),
                lambda g, m=m, n=n, dtype=dtype, to=to: [normal(g, m, n, dtype=dtype), empty(m, n, dtype=to)],
                lambda A, B: (A.astype(B.dtype),),
            )
    yield "copy_batched", copy_batched(3, 17, 30), lambda g: [normal(g, 3, 17, 30), empty(3, 17, 30)], lambda A, B: (A,)
    yield (
        "copy_batched[even]",
        copy_batched(2, 32, 32),
        lambda g: [normal(g, 2, 32, 32), empty(2, 32, 32)],
        lambda A, B: (A,),
    )
    for m in (64, 100):
        yield (
            f"copy_column[{m}]",
            copy_column(m, 5),
            lambda g, m=m: [normal(g, m, 5), empty(m, 1)],
            lambda A, B: (A[:, 4:],),
        )
    yield (
        "thin_fragments",
        thin_fragments(1000),
        lambda g: [normal(g, 1000), empty(1000), empty(1000, 1)],
        lambda A, B, C: (A, 2.0 * A[:, None].astype(np.float64)),
    )
    yield "single_elements", single_elements(), lambda g: [normal(g, 1), empty(1, 1)], lambda A, B: (A[:, None] + 1.0,)
    for n in (40, 64):
        yield (
            f"wrapped_index[{n}]",
            wrapped_index(n),
            lambda g, n=n: [normal(g, n), empty(64)],
            lambda A, B: (
                (lambda p: p[np.arange(64) * 13 % 64] + p[63 - np.arange(64)])(np.append(f64(A)[0], np.zeros(64))),
            ),
        )
    yield (
        "serial_register_index",
        serial_register_index(100),
        lambda g: [normal(g, 100), empty(100)],
        lambda A, B: (np.full(100, A[:3].astype(np.float64).sum() + 3),),
    )
    for shift in (4, 5, -9):
        yield (
            f"copy_shifted[{shift}]",
            copy_shifted(96, shift),
            lambda g: [normal(g, 96), empty(96)],
            lambda A, B, shift=shift: (np.array([A[i - shift] if 0 <= i - shift < 96 else 0.0 for i in range(96)]),),
        )
    yield (
        "copy_gathered",
        copy_gathered(9),
        lambda g: [normal(g, 9, 32), g.permutation(9).astype(np.int32), empty(9, 32)],
        lambda A, rows, B: (A[rows],),
    )
    for m, n in ((8, 32), (13, 45)):
        for value in (0, -2.5):
            yield (
                f"fill_value[{m}x{n},{value}]",
                fill_value(m, n, value),
                lambda g, m=m, n=n: [empty(m, n)],
                lambda B, value=value: (np.full(B.shape, float(value)),),
            )
        yield (
            f"fill_global[{m}x{n}]",
            fill_global(m, n, 1.25),
            lambda g, m=m, n=n: [empty(m, n)],
            lambda B: (np.full(B.shape, 1.25),),
        )
    yield (
        "fill_part",
        fill_part(100, 3.0),
        lambda g: [empty(100)],
        lambda B: (np.where((np.arange(100) % 64 >= 16) & (np.arange(100) % 64 < 48), 3.0, 0.0),),
    )
    yield (
        "fill_from_tile",
        fill_from_tile(100),
        lambda g: [normal(g, 4), empty(100)],
        lambda A, B: (np.full(100, 2.0 * A[2].astype(np.float64)),),
    )
    for n in (256, 1001):
        yield (
            f"local_names[{n}]",
            local_names(n),
            lambda g, n=n: [normal(g, n) + np.float32(5), empty(n)],
            lambda A, B: ((A.astype(np.float64) ** 2 + 1) / A,),
        )
        yield (
            f"scalar_outside[{n}]",
            scalar_outside(n),
            lambda g, n=n: [normal(g, n), empty(n)],
            lambda A, B: (A.astype(np.float64) * A[0] + 3.0 * A[0].astype(np.float64),),
        )
        yield (
            f"local_array[{n}]",
            local_array(n),
            lambda g, n=n: [normal(g, n), empty(n)],
            lambda A, B: (A.astype(np.float64) * 4 + 1,),
        )
        yield (
            f"shared_element[{n}]",
            shared_element(n),
            lambda g, n=n: [normal(g, n), empty(n)],
            lambda A, B: (A.astype(np.float64) * 2.0 * (A[0].astype(np.float64) + 1),),
        )
        yield (
            f"stencil[{n}]",
            stencil(n),
            lambda g, n=n: [normal(g, n), empty(n)],
            lambda A, B: (
                (lambda p: p[:-2] + 2.0 * p[1:-1] - p[2:])(np.concatenate([[0.0], A.astype(np.float64), [0.0]])),
            ),
        )
        yield (
            f"infinities[{n}]",
            infinities(n),
            lambda g, n=n: [normal(g, n), empty(n), empty(n, dtype="float16")],
            lambda A, B, C: (A, np.where(A > 0, np.inf, -np.inf)),
        )
        yield (
            f"written_twice[{n}]",
            written_twice(n),
            lambda g, n=n: [normal(g, n), empty(n)],
            lambda A, B: (A,),
        )
        yield (
            f"loops[{n}]",
            loops(n),
            lambda g, n=n: [normal(g, 8, n), empty(n)],
            lambda A, B: (loops_reference(A, B),),
        )
    for dtype in ("float32", "float16"):
        yield (
            f"math_functions[{dtype}]",
            math_functions(300, dtype),
            lambda g, dtype=dtype: [normal(g, 300, dtype=dtype), empty(300, dtype=dtype), empty(300, dtype="int32")],
            math_reference,
        )
    for m, n in ((16, 32), (17, 45)):
        yield (
            f"transpose[{m}x{n}]",
            transpose(m, n),
            lambda g, m=m, n=n: [normal(g, m, n), empty(n, m)],
            lambda A, B: (A.T,),
        )
    for m, n in ((24, 96), (21, 100)):
        yield (
            f"condition_on_block[{m}x{n}]",
            condition_on_block(m, n),
            lambda g, m=m, n=n: [normal(g, m, n), empty(m, n)],
            lambda A, B: (condition_reference(A.astype(np.float64), B),),
        )
    yield (
        "read_back",
        read_back(5),
        lambda g: [normal(g, 5, 64), empty(5, 64), empty(5, 64)],
        lambda A, W, B: (A.astype(np.float64) + 1, (A[:, ::-1].astype(np.float64) + 1) * 2),
    )
    yield (
        "element_store",
        element_store(9),
        lambda g: [normal(g, 9), empty(9)],
        lambda A, B: (np.append(A[1:].astype(np.float64), 0.0) * 2,),
    )


ZOO = {name: (kernel, inputs, reference) for name, kernel, inputs, reference in _cases()}
