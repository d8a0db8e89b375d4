"""Kernels in forms that authors who come from TileLang write: ``if`` and loops inside nests, steps, hints, branches on memory."""

from __future__ import annotations

from typing import Any

import tilelang_min.language as T


def branches(m: int, n: int) -> Any:
    """An ``if`` of each point, nested and with else, on memory, fragments and registers; what it asks changes inside."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), Count: T.Tensor((m,), "int32")):
        with T.Kernel(T.ceildiv(m, 16), threads=64) as bx:
            tile = T.alloc_fragment((16, n), "float32")
            kept = T.alloc_shared((16, n), "float32", scope="shared.dyn")
            T.copy(A[bx * 16, 0], tile, coalesced_width=4)
            T.fill(kept, 9.0)
            for i, j in T.Parallel(16, n):
                if tile[i, j] > 0.0:
                    tile[i, j] = -tile[i, j]  # the branch is decided already
                    kept[i, j] = tile[i, j] - 1.0
                    if j % 2 == 0 and A[bx * 16 + i, j] < 1.0:
                        kept[i, j] += 5.0
                else:
                    x = tile[i, j] * 2.0
                    tile[i, j] = x
            for i, j in T.Parallel(16, n):
                if j >= i:
                    B[T.cast(bx * 16 + i, "uint32"), j] = tile[i, j] + kept[i, j]
            for i, j in T.Parallel(16, n):
                y = T.alloc_var("int32", init=1)
                if B[bx * 16 + i, j] > 0.0:
                    y = 2
                    T.atomic_add(Count[bx * 16 + i], y, memory_order="relaxed")

    return main


def branches_reference(a: Any, b: Any, count: Any) -> tuple[Any, Any]:
    """B where the column is not left of the row in its block; Count of what is positive in B, twice."""
    (m, n), out, counted = a.shape, b.copy(), count.copy()
    for row in range(m):
        for column in range(n):
            x = a[row, column]
            tile, kept = (-x, -x - 1) if x > 0 else (2 * x, 9.0)
            if x > 0 and column % 2 == 0 and x < 1:
                kept += 5
            if column >= row % 16:
                out[row, column] = tile + kept
            if out[row, column] > 0:
                counted[row] += 2
    return out, counted


def loops_in_nests(n: int) -> Any:
    """A loop inside a nest that unpacks four bits at a time, and one with a step that skips by a condition."""

    @T.prim_func
    def main(A: T.Tensor((n,), "uint8"), B: T.Tensor((n * 2,), "int32"), C: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 32), threads=64) as bx:
            for i in T.Parallel(32):
                for v in T.serial(2):
                    B[(bx * 32 + i) * 2 + v] = T.bitwise_and(T.shift_right(A[bx * 32 + i], 4 * v), 15)
            for i in T.Parallel(32):
                total = T.alloc_var("int32", init=0)
                for k in T.unroll(1, 8, 3):
                    if A[bx * 32 + i] > k * 20:
                        total += ~k
                C[bx * 32 + i] = T.clamp(total, -9, T.Cast("int32", T.floormod(bx + 5, 4) - 1))

    return main


def loops_reference(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """What :func:`loops_in_nests` leaves."""
    nibbles = [(int(x) >> (4 * v)) & 15 for x in a for v in range(2)]
    sums = [sum(~k for k in (1, 4, 7) if x > 20 * k) for x in a]
    high = [(place // 32 + 5) % 4 - 1 for place in range(len(a))]
    return nibbles, [max(min(s, h), -9) for s, h in zip(sums, high, strict=True)]


def masked_sum(rows: int, n: int) -> Any:
    """Blocks of columns that a mask in memory chooses; loops with a step, by name, and hints."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, n), "float32"), Mask: T.Tensor((n // 16,), "int32"), B: T.Tensor((rows, 16), "float32")
    ):
        with T.Kernel(T.ceildiv(rows, 16), threads=64) as bx:
            T.disable_warp_group_reg_alloc()
            T.assume(bx < 1000)
            mask = T.alloc_shared((n // 16,), "int32")
            tile = T.alloc_shared((16, 16), "float32")
            acc = T.alloc_fragment((16, 16), "float32")
            T.copy(Mask, mask)
            T.clear(acc)
            for k in T.serial(start=1, stop=n // 16, step=2):
                if mask[k] != 0 and Mask[k - 1] == 0:
                    T.copy(src=A[bx * 16, k * 16], dst=tile, disable_tma=True)
                    for i, j in T.Parallel(16, 16, coalesced_width=2):
                        acc[i, j] += tile[i, j]
            T.copy(acc, B[bx * 16, 0])

    return main


def masked_reference(a: Any, mask: Any, b: Any) -> tuple[Any]:
    """Sum of the odd blocks that are chosen and whose left neighbour is not."""
    chosen = [k for k in range(1, len(mask), 2) if mask[k] and not mask[k - 1]]
    return (sum((a[:, 16 * k : 16 * k + 16].astype("float64") for k in chosen), b * 0.0),)


def groups(rows: int, n: int, k: int, stages: int, block: int = 32) -> Any:
    """Products of groups of rows: where a group starts, and how much of K counts for it, is in memory."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        Starts: T.Tensor((3,), "int32"),
        Lengths: T.Tensor((2,), "int64"),
        C: T.Tensor((rows, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 64), 2, threads=128) as (bx, group):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((block, 64), "float32")
            steps = T.alloc_var("int32", init=0)
            first = Starts[group]
            for i in range(T.ceildiv(Starts[group + 1] - first, block)):
                T.clear(c)
                steps = T.ceildiv(T.cast(Lengths[group], "int32"), 32)
                for ko in T.Pipelined(steps, num_stages=stages):
                    steps = 0  # the loop runs as often as it said before
                    T.copy(A[first + i * block, ko * 32], a)
                    T.copy(B[ko * 32, bx * 64], b)
                    T.gemm(a, b, c)
                for x, y in T.Parallel(block, 64):
                    if first + i * block + x < Starts[group + 1]:
                        C[first + i * block + x, bx * 64 + y] = c[x, y]

    return main


def groups_reference(a: Any, b: Any, starts: Any, lengths: Any, c: Any) -> tuple[Any]:
    """Each group with the first columns of A and rows of B."""
    out = c.astype("float64")
    for group in range(2):
        rows, length = slice(starts[group], starts[group + 1]), int(lengths[group])
        out[rows] = a[rows, :length].astype("float64") @ b[:length].astype("float64")
    return (out,)


def nibble(bits: int, packed: Any, place: Any, dtype: Any) -> Any:
    """A number of few bits, as a helper that kernels call: signed, by the language's functions."""
    assert bits == 4
    assert packed.dtype == T.uint8
    mask = (1 << bits) - 1
    number = T.cast((packed >> (place * bits)) & mask, "int32")
    number -= T.if_then_else(number >= 8, 16, 0)
    if dtype == "int32":
        return number
    return number.astype(dtype)


@T.macro
def halves(x, y):
    """A macro that gives a value."""
    return (x + y) * T.float32(0.5)


def unpacked(n: int) -> Any:
    """Helper functions on expressions, a macro's value, small fragments that are the same in all threads, ``T.parallel``."""

    @T.prim_func
    def main(A: T.Tensor((n,), "uint8"), S: T.Tensor((n // 32,), "float32"), B: T.Tensor((n, 2), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=64) as bx:
            shape = [2, 3]
            scale = T.alloc_fragment(shape, "float32")
            mask = T.alloc_fragment((2,), "int32", "local")
            T.clear(mask[0])
            T.fill(mask[1], 1)
            for k in T.parallel(2):
                scale[1, k] = S[bx] + T.cast(k, "float32")
            if scale[1, 0] > 0.0:
                scale[1, 1] = halves(scale[1, 0], 3.0)
            for i, j in T.Parallel(32, 2):
                x = nibble(4, A[bx * 32 + i], j, T.float32) * scale[1, 1]
                B[bx * 32 + i, j] = x + nibble(4, A[bx * 32 + i], mask[1], "int32")

    return main


def unpacked_reference(a: Any, s: Any, b: Any) -> tuple[Any]:
    """What :func:`unpacked` leaves."""
    signed = [[((int(x) >> (4 * j)) & 15) - (16 if (int(x) >> (4 * j)) & 8 else 0) for j in range(2)] for x in a]
    scale = [(x + 3) * 0.5 if x > 0 else x + 1 for x in s]
    return ([[row[j] * scale[place // 32] + row[1] for j in range(2)] for place, row in enumerate(signed)],)


def bits(n: int) -> Any:
    """Operations on bits, and every hint to TileLang's compiler, which mean nothing here."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=64):
            T.disable_warp_group_reg_alloc()
            T.annotate_producer_reg_dealloc(24)
            T.annotate_consumer_reg_alloc(240)
            T.no_set_max_nreg()
            T.set_max_nreg(240, 1)
            T.annotate_l2_hit_ratio({A: 0.5})
            T.assume(n > 0)
            for i in T.Parallel(n):
                B[i] = T.bitwise_xor(T.bitwise_or(T.shift_left(A[i], 2), 5), T.bitwise_not(A[i])) + T.floordiv(A[i], 3)

    return main


def bits_reference(A: Any, B: Any) -> Any:
    return (((A << 2 | 5) ^ ~A) + A // 3,)
